"""The memory tools of an agent."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from memd_client import AsyncClient, Client
from memd_client.messages import PLACES_FROM, Found, Get, Hit, Note, Reply, Request, Search
from memd_client.tools import (
    MAX_CHARS,
    TOOLS,
    AsyncTools,
    Tools,
    anthropic_tools,
    memory_section,
    openai_tools,
)
from memd_client.watermark import marked_reply
from tests.bounds import shipped
from tests.client.scripted_server import Peer, serving
from tests.daemon.process import Daemon

Call = Callable[..., dict[str, Any]]
FOUND = Found(results=[Hit(path="MEMORY.md", start_line=1, end_line=2, score=0.5, snippet="PostgreSQL")])
NOTE = Note(path="MEMORY.md", text="PostgreSQL", end_line=1)


def _blocking(address: Path, *calls: tuple[str, object], **options: Any) -> list[dict[str, Any]]:
    tools = Tools(lambda: Client(address, timeout=60), **options)
    try:
        return [tools.call(*call) for call in calls]
    finally:
        tools.close()


def _asynchronous(address: Path, *calls: tuple[str, object], **options: Any) -> list[dict[str, Any]]:
    async def ask() -> list[dict[str, Any]]:
        tools = AsyncTools(lambda: AsyncClient(address, timeout=60), **options)
        try:
            return [await tools.call(*call) for call in calls]
        finally:
            await tools.close()

    return asyncio.run(ask())


Asking = Callable[..., list[dict[str, Any]]]
BOTH = pytest.mark.parametrize("ask", [_blocking, _asynchronous])


def answering(*replies: Reply, heard: list[Request]) -> Callable[[Peer], None]:
    """A script of one connection that keeps what it was asked."""

    def script(peer: Peer) -> None:
        peer.greet()
        heard.extend(peer.answer_next(reply) for reply in replies)
        peer.wait_for_end()

    return script


@BOTH
def test_the_asker_is_bound_when_the_tools_are_made(ask: Asking, address: Path) -> None:
    """What a model passes as its session key, or agent, changes nothing."""
    heard: list[Request] = []
    forged = {"sessionKey": "agent:main:main", "session_key": "x", "agent": "main"}
    with serving(address, answering(FOUND, NOTE, heard=heard)):
        ask(
            address,
            ("memory_search", {"query": "which?", "maxResults": "3", "minScore": 0.2, **forged}),
            ("memory_get", {"path": "MEMORY.md", "from": 2, "lines": 5, **forged}),
            agent="work",
            session_key="agent:work:telegram:group:7",
        )
    asker: dict[str, Any] = {"agent": "work", "session_key": "agent:work:telegram:group:7"}
    assert heard == [
        Search(query="which?", max_results=3, min_score=0.2, **asker),
        Get(path="MEMORY.md", start_line=2, lines=5, **asker),
    ]


@BOTH
def test_a_path_is_tried_as_it_is_and_then_as_a_citation(ask: Asking, address: Path) -> None:
    """A model copies what stands behind "Source:"."""
    heard: list[Request] = []
    missing = Note(path="a.md#L3-L9", missing=True)
    with serving(address, answering(missing, NOTE, heard=heard)):
        (reply,) = ask(address, ("memory_get", {"path": "a.md#L3-L9"}))
    assert heard == [Get(path="a.md#L3-L9"), Get(path="a.md", start_line=3, lines=7)]
    assert reply["text"] == "PostgreSQL"


@BOTH
def test_what_makes_no_sense_is_not_sent(ask: Asking, address: Path) -> None:
    """There is no daemon, and none is missed."""
    for call in (("memory_search", {"maxResults": "six"}), ("memory_write", {}), ("memory_get", "nonsense")):
        (reply,) = ask(address, call)
        assert reply["results"] == []
        assert "disabled" not in reply
        assert "memory_" in reply["action"]


@BOTH
@pytest.mark.parametrize("tool", [("memory_search", {"query": "q"}), ("memory_get", {"path": "MEMORY.md"})])
def test_without_a_daemon_the_reply_tells_how_to_start_it(
    ask: Asking, address: Path, tool: tuple[str, object]
) -> None:
    """No exception, for an agent that has nobody to catch it."""
    (reply,) = ask(address, tool)
    assert (reply["results"], reply["disabled"]) == ([], True)
    assert str(address) in reply["error"]
    assert "memd-ctl up" in reply["action"]


@BOTH
def test_a_daemon_that_dies_in_mid_call_is_told_and_the_next_call_works(ask: Asking, address: Path) -> None:
    """The connection is made anew."""

    def dies(peer: Peer) -> None:
        peer.greet()
        peer.hear()

    heard: list[Request] = []
    call = ("memory_search", {"query": "which?"})
    with serving(address, dies, answering(FOUND, heard=heard)):
        lost, found = ask(address, call, call)
    assert lost["disabled"]
    assert "memd-ctl status" in lost["action"]
    assert found["results"][0]["snippet"] == "PostgreSQL"


@BOTH
def test_a_daemon_that_talks_nonsense_is_told(ask: Asking, address: Path) -> None:
    """Like one that is not there."""

    def babbles(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        peer.wait_for_end()

    with serving(address, babbles):
        (reply,) = ask(address, ("memory_search", {"query": "which?"}))
    assert reply["disabled"]


@BOTH
def test_closed_tools_tell_that_they_are_closed(ask: Asking, address: Path) -> None:
    """Instead of raising."""
    tools = Tools(lambda: Client(address))
    tools.close()
    assert tools.call("memory_search", {"query": "q"})["disabled"]
    assert ask(address) == []


@pytest.mark.parametrize("kind", [Tools, AsyncTools])
def test_replies_cannot_be_bounded_to_nothing(kind: type[Tools | AsyncTools], address: Path) -> None:
    """There must be room to tell what is wrong."""
    least = shipped("memd_client.tool_replies.LEAST_CHARS")
    with pytest.raises(ValueError, match=f"max_chars is {least - 1}; it must be {least} or more"):
        kind(max_chars=least - 1)
    kind(max_chars=least)


# --- with a real daemon

LONG_LINE = " ".join(f'word{n} "é数"' for n in range(2_500)) + " zebrafinch"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """Some notes, and one that is long."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home), settings='citations = "on"')
        daemon.write(
            "MEMORY.md", "- We picked the PostgreSQL database for billing.\n    - its cat is called Mochi\n"
        )
        daemon.write(
            "memory/long.md",
            "".join(f"## Part {n}\n\nbilling database part {n}: {'x' * 500}\n\n" for n in range(30)),
        )
        daemon.write("memory/line.md", f"# A line\n\n{LONG_LINE}\nthe end\n")
        with daemon.start(), daemon.client() as client:
            client.sync()
            yield daemon


@BOTH
def test_recall_in_two_steps(ask: Asking, daemon: Daemon) -> None:
    """Search, then read on around a hit, with the JSON text that an interface hands over."""
    (found,) = ask(
        daemon.socket,
        ("memory_search", '{"query": "which database did we pick for billing?", "maxResults": 1}'),
    )
    (hit,) = found["results"]
    assert hit["path"] == "MEMORY.md"
    assert hit["snippet"].endswith(f"\n\nSource: {hit['citation']}")
    assert (found["provider"], found["fallback"], found["citations"]) == ("hashing", False, True)
    (read,) = ask(daemon.socket, ("memory_get", {"path": hit["path"], "from": hit["startLine"], "lines": 2}))
    assert read["text"].splitlines()[1] == "    - its cat is called Mochi"


@BOTH
def test_replies_fit_a_window(ask: Asking, daemon: Daemon) -> None:
    """Four thousand characters, unless more or fewer are wanted; the rest of a note is read by and by."""
    many = {"query": "billing database part", "maxResults": 50}
    whole = {"path": "memory/long.md"}
    found, read = ask(daemon.socket, ("memory_search", many), ("memory_get", whole))
    for reply in (found, read):
        assert 2_500 < len(json.dumps(reply, ensure_ascii=False, separators=(",", ":"))) <= MAX_CHARS
    assert read["nextLine"] == read["endLine"] + 1
    (more,) = ask(daemon.socket, ("memory_search", many), max_chars=100_000)
    (fewer,) = ask(daemon.socket, ("memory_search", many), max_chars=1_000)
    assert len(more["results"]) > len(found["results"]) > len(fewer["results"]) >= 1
    assert fewer["omitted"] == len(more["results"]) - len(fewer["results"])


@BOTH
@pytest.mark.parametrize("max_chars", [1_000, 4_000, 100_000])
def test_all_of_a_line_that_is_too_long_for_a_reply_can_be_read(
    ask: Asking, daemon: Daemon, max_chars: int
) -> None:
    """From nextLine to nextLine, whatever a reply has room for; search shows what stands at its end."""
    (found,) = ask(daemon.socket, ("memory_search", {"query": "zebrafinch"}))
    (hit,) = found["results"]
    text, following = "", hit["startLine"]
    while following is not None:
        (read,) = ask(
            daemon.socket, ("memory_get", {"path": hit["path"], "from": following}), max_chars=max_chars
        )
        assert "truncated" not in read
        following = read.get("nextLine")
        text += read["text"] + ("" if following is None or following > PLACES_FROM else "\n")
    assert text == f"{LONG_LINE}\nthe end"


@BOTH
@pytest.mark.parametrize(("made_with", "sent"), [({}, None), ({"max_chars": 2_000}, 0)])
def test_the_configured_bound_holds_unless_the_tools_name_one(
    ask: Asking, address: Path, made_with: dict[str, int], sent: int | None
) -> None:
    """The daemon keeps to its configuration, or sends all for the tools to choose from."""
    heard: list[Request] = []
    with serving(address, answering(FOUND, heard=heard)):
        ask(address, ("memory_search", {"query": "q"}), **made_with)
    assert heard == [Search(query="q", max_chars=sent)]


@BOTH
@pytest.mark.parametrize(("configured", "least"), [(12_000, 10_000), (1_500, 1_000), (0, 3_000)])
def test_a_reply_is_as_long_as_memd_is_configured_for(
    ask: Asking, address: Path, configured: int, least: int
) -> None:
    """More or less than usual; a daemon that does not say gets the usual bound."""
    hits = [
        Hit(path=f"memory/{n}.md", start_line=1, end_line=1, score=0.5, snippet="x" * 300) for n in range(50)
    ]
    found = Found(results=hits, max_chars=configured)
    with serving(address, answering(found, heard=[])):
        (reply,) = ask(address, ("memory_search", {"query": "q"}))
    assert least < len(json.dumps(reply, separators=(",", ":"))) <= (configured or MAX_CHARS)


@BOTH
def test_a_reply_may_have_just_so_many_characters(ask: Asking, address: Path) -> None:
    """Its mark is counted."""
    hits = [
        Hit(path=f"memory/{n}.md", start_line=1, end_line=1, score=0.5, snippet="x" * 300) for n in range(9)
    ]
    with serving(address, *[answering(Found(results=hits), heard=[])] * 3):
        (whole,) = ask(address, ("memory_search", {"query": "q"}), max_chars=100_000)
        chars = len(json.dumps(whole, separators=(",", ":")))
        for max_chars, count in ((chars, 9), (chars - 1, 8)):
            (reply,) = ask(address, ("memory_search", {"query": "q"}), max_chars=max_chars)
            assert len(reply["results"]) == count


@BOTH
def test_a_shared_conversation_gets_no_memory_of_the_owner(ask: Asking, daemon: Daemon) -> None:
    """Whatever the model asks for."""
    searched, read = ask(
        daemon.socket,
        ("memory_search", {"query": "which database did we pick for billing?"}),
        ("memory_get", {"path": "MEMORY.md"}),
        session_key="agent:main:telegram:group:7",
    )
    assert (searched["results"], searched["scopeDenied"]) == ([], True)
    assert read == marked_reply({"path": "MEMORY.md", "text": "", "missing": True})


@BOTH
def test_an_agent_that_is_not_there_is_told(ask: Asking, daemon: Daemon) -> None:
    """A person can mend that."""
    (reply,) = ask(daemon.socket, ("memory_search", {"query": "q"}), agent="nobody")
    assert reply["disabled"]
    assert "nobody" in reply["error"]
    assert "memd-ctl status" in reply["action"]


@BOTH
def test_a_megabyte_of_query_is_answered(ask: Asking, daemon: Daemon) -> None:
    """And remarked on."""
    (reply,) = ask(daemon.socket, ("memory_search", {"query": "billing database " * 61_681}))
    assert reply["results"]
    assert "only the first 2,000" in reply["remarks"][0]


# --- how the tools are told of


def test_schemas_are_of_draft_2020_12() -> None:
    """And take what the tools take."""
    for tool in TOOLS:
        schema = json.loads(json.dumps(dict(tool.schema)))
        Draft202012Validator.check_schema(schema)
    search = Draft202012Validator(dict(TOOLS[0].schema))
    assert search.is_valid({"query": "q", "maxResults": 6, "minScore": 0.2})
    assert not search.is_valid({"maxResults": 6})
    assert not search.is_valid({"query": "q", "sessionKey": "agent:main:main"})
    get = Draft202012Validator(dict(TOOLS[1].schema))
    assert get.is_valid({"path": "a.md", "from": 1, "lines": 3})
    assert get.is_valid({"path": "a.md", "startLine": 1})
    assert not get.is_valid({"path": "a.md", "from": 0})


def test_the_descriptions_tell_when_to_search_and_what_comes_next() -> None:
    """Recall is mandatory, memory_get is the second step, and trouble is for the user to know."""
    search, get = TOOLS
    assert "Mandatory recall" in search.description
    assert "memory_get" in search.description
    assert "disabled=true" in search.description
    assert "second step" in get.description
    assert "nextLine" in get.description


def test_tools_as_interfaces_take_them() -> None:
    """Plain dictionaries, which their owner may change."""
    chat, responses, anthropic = openai_tools(), openai_tools("responses"), anthropic_tools()
    names = ["memory_search", "memory_get"]
    assert [one["function"]["name"] for one in chat] == names
    assert [one["name"] for one in responses] == names
    assert [one["name"] for one in anthropic] == names
    assert {one["type"] for one in (*chat, *responses)} == {"function"}
    assert chat[0]["function"]["parameters"] == responses[0]["parameters"] == anthropic[0]["input_schema"]
    json.dumps([chat, responses, anthropic])
    anthropic[0]["input_schema"]["properties"].clear()
    assert anthropic_tools()[0]["input_schema"]["properties"]


def test_the_memory_section_tells_when_to_write() -> None:
    """At once when asked, before compaction, at the end; what lasts to MEMORY.md, the day's work to its note."""
    section = memory_section()
    for said in (
        "Remember this",
        "at once",
        "compacted",
        "when it ends",
        "MEMORY.md",
        "memory/YYYY-MM-DD.md",
        "append",
    ):
        assert said in section
    assert "Source:" in section


def test_the_memory_section_follows_what_a_session_may() -> None:
    """Without writing, without citations, and without a word of MEMORY.md where others read along."""
    assert "Write it down" not in memory_section(writes=False)
    assert "Source:" not in memory_section(citations=False)
    assert "Do not mention paths" in memory_section(citations=False)
    assert "MEMORY.md" not in memory_section(private=False)


def test_the_tools_need_msgspec_alone() -> None:
    """No event loop, no SDK, nothing of the daemon."""
    program = (
        "import sys; sys.modules['typing_extensions'] = None; bare = set(sys.modules); import memd_client.tools; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - bare} - sys.stdlib_module_names)"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == {"memd_client", "msgspec"}
    assert (
        "asyncio"
        not in subprocess.run(
            [sys.executable, "-P", "-c", "import sys, memd_client.tools; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )
