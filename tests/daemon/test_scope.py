"""Who sees what: sessions, groups and agents, through search, explain and get."""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client import Client, RequestFailed
from memd_client.messages import Note
from tests.daemon.keys import DIRECT, SHARED, UNKNOWN, key_of
from tests.daemon.process import Daemon
from tests.wait import until

OTHER_AGENTS = """
[agents.open]
workspace = "{home}/open"
extra_paths = ["{home}/extra"]
scope = {{ default = "allow", rules = [] }}

[agents.channels]
workspace = "{home}/open"
scope = {{ default = "deny", rules = [
    {{ action = "deny", match = {{ channel = "telegram", chat_type = "group" }} }},
    {{ action = "allow", match = {{ channel = "telegram" }} }},
    {{ action = "allow", match = {{ chat_type = "channel" }} }},
] }}

[agents.prefixes]
workspace = "{home}/open"
scope = {{ default = "allow", rules = [
    {{ action = "allow", match = {{ key_prefix = "Telegram:Group:1" }} }},
    {{ action = "deny", match = {{ key_prefix = "telegram:" }} }},
    {{ action = "deny", match = {{ raw_key_prefix = "AGENT:prefixes:discord:" }} }},
] }}

[daemon]
log_level = "debug"
"""


COPIES = (
    "MEMORY.sync-conflict-20261123-161318-BTMRC5A.md",
    "USER (1).md",
    "memory/MEMORY.sync-conflict-20261123-161318-BTMRC5A.md",
    "memory/kept/memory - 副本.md",
)
EXTRA_COPIES = ("MEMORY (ann's conflicted copy 2026-11-29).md", "gemini copy.md", "Copy of memory_summary.md")


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    """Several agents with rules of their own; what is theirs and what is curated can be told by its words."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch).resolve()
        daemon = Daemon(home, settings=OTHER_AGENTS.format(home=home))
        daemon.write("MEMORY.md", "Curated: the lighthouse keeper is called Ingrid. #secret [[a]]\n")
        daemon.write("USER.md", "Curated: the owner was born in a lighthouse.\n")
        daemon.write("memory/a.md", "Walrus: the lighthouse of main was painted red. #sea [[nowhere]]\n")
        # More and better chunks about it than a search considers, in all of which a group has no part.
        sections = (
            f"# Lighthouse {number}\n\nCurated: lighthouse lighthouse {number}.\n" for number in range(400)
        )
        other = home / "open"
        (other / "memory" / "kept").mkdir(parents=True)
        (other / "MEMORY.md").write_text("\n".join(sections))
        (other / "user.md").write_text("Curated: the owner collects lighthouse stamps.\n")
        (other / "memory" / "kept" / "MEMORY.md").write_text("Curated: an old memory of a lighthouse.\n")
        (other / "memory" / "a.md").write_text(
            "Heron: on the island, besides the chapel, stands a lighthouse with green shutters.\n"
        )
        for name in COPIES:
            (other / name).write_text("Curated: a copy of what is said of a lighthouse.\n")
        (home / "extra").mkdir()
        for name in EXTRA_COPIES:
            (home / "extra" / name).write_text("Curated: a copy of somebody else's lighthouse.\n")
        (home / "extra" / "MEMORY.md").write_text("Curated: somebody else's lighthouse.\n")
        (home / "extra" / "b.md").write_text("Heron: a lighthouse beyond the workspace.\n")
        with daemon:
            with daemon.client() as client:
                client.sync()
            yield daemon


@pytest.fixture
def client(served: Daemon) -> Iterator[Client]:
    """A client of the daemon."""
    with served.client() as one:
        yield one


@pytest.mark.parametrize("shape", DIRECT)
def test_the_owner_sees_everything(client: Client, shape: str | None) -> None:
    """Without a key, in the main session and in direct messages: curated files and notes."""
    key = key_of(shape, "main")
    agent = "main" if key is None else None
    found = client.search("lighthouse", agent=agent, session_key=key, max_results=50)
    assert {hit.path for hit in found.results} == {"MEMORY.md", "USER.md", "memory/a.md"}
    assert not found.scope_denied
    assert client.get("MEMORY.md", agent=agent, session_key=key).text.startswith("Curated")


@pytest.mark.parametrize("shape", [*SHARED, *UNKNOWN], ids=lambda shape: ascii(shape[:40]))
def test_whoever_is_not_direct_is_denied_by_default(client: Client, shape: str) -> None:
    """A group, and a key that does not say what it is, get nothing, and search says that it was denied."""
    key = key_of(shape, "main")
    found = client.search("lighthouse", agent="main", session_key=key)
    assert (found.results, found.scope_denied, found.degraded) == ([], True, [])
    explained = client.explain("lighthouse", agent="main", session_key=key)
    assert (explained.found.scope_denied, explained.candidates, explained.terms) == (True, [], [])
    assert explained.found == found
    for path in ("memory/a.md", "MEMORY.md", "memory/missing.md"):
        assert client.get(path, agent="main", session_key=key) == Note(path=path, missing=True)


@pytest.mark.parametrize("shape", [*SHARED, *UNKNOWN], ids=lambda shape: ascii(shape[:40]))
def test_curated_files_are_never_for_a_group(client: Client, shape: str) -> None:
    """Where a group may search, it finds notes, even as the only result, and nothing of MEMORY.md and USER.md."""
    key = key_of(shape, "open")
    for max_results in (1, 6, 50):
        found = client.search(
            "lighthouse", agent="open", session_key=key, max_results=max_results, min_score=0.0
        )
        assert not found.scope_denied
        assert len(found.results) == min(max_results, 2)
        assert all(hit.snippet.startswith("Heron") for hit in found.results)
    explained = client.explain("lighthouse", agent="open", session_key=key, max_results=50)
    assert explained.found.results
    assert explained.candidates
    assert "Curated" not in str(explained)
    assert not [
        one.path for one in explained.candidates if one.path.lower().endswith(("memory.md", "user.md"))
    ]


@pytest.mark.parametrize("shape", [*SHARED, *UNKNOWN[:4]])
def test_a_group_cannot_read_curated_files(client: Client, served: Daemon, shape: str) -> None:
    """The reply is that of a file which does not exist, while notes can be read."""
    key = key_of(shape, "open")
    extra = served.home.resolve() / "extra"
    copies = (*COPIES, *(f"{extra}/{name}" for name in EXTRA_COPIES))
    for path in copies:
        assert client.get(path, agent="open").text.startswith("Curated: a copy")  # the owner reads them
    private = ("MEMORY.md", "user.md", "memory/kept/MEMORY.md", f"{extra}/MEMORY.md", *copies)
    for path in (*private, "memory/missing.md"):
        assert client.get(path, agent="open", session_key=key) == Note(path=path, missing=True)
    for path in ("memory/a.md", f"{extra}/b.md"):
        assert client.get(path, agent="open", session_key=key).text.startswith("Heron")


def test_tags_are_those_of_what_a_conversation_may_see(client: Client) -> None:
    """Of the agents of the owner; to a key only of its own agent, without curated files, and nothing where it is denied."""
    everything = client.tags().agents
    assert set(everything) == {"main", "open", "channels", "prefixes"}
    assert [one.name for one in everything["main"].tags] == ["sea", "secret"]
    assert [(one.name, one.missing) for one in everything["main"].links] == [("a", False), ("nowhere", True)]
    with pytest.raises(RequestFailed, match="may not"):
        client.tags(session_key="agent:main:telegram:group:7")
    (seen,) = client.tags(session_key="agent:channels:telegram:channel:7").agents.items()
    assert seen[0] == "channels"
    with pytest.raises(RequestFailed, match="may not"):
        client.tags("open", session_key="agent:main:main")
    assert set(client.tags(session_key="agent:main:main").agents) == {"main"}


def test_denied_and_missing_look_the_same(client: Client) -> None:
    """Whatever lines are asked for, the whole reply of a denied file equals that of a missing one but for its name."""
    for agent, key in (("main", "agent:main:telegram:group:1"), ("open", "agent:open:telegram:group:1")):
        for start_line, lines in ((1, None), (5, 3), (999_999, 1)):
            denied = client.get("MEMORY.md", agent=agent, session_key=key, start_line=start_line, lines=lines)
            missing = client.get(
                "NOTHING.md", agent=agent, session_key=key, start_line=start_line, lines=lines
            )
            assert denied == Note(path="MEMORY.md", missing=True, start_line=start_line)
            assert missing == Note(path="NOTHING.md", missing=True, start_line=start_line)


@pytest.mark.parametrize(
    ("agent", "rest", "allowed"),
    [
        ("channels", "telegram:direct:1", True),
        ("channels", "telegram:group:1", False),
        ("channels", "telegram:channel:1", True),
        ("channels", "discord:channel:1", True),
        ("channels", "discord:group:1", False),
        ("channels", "discord:direct:1", False),
        ("channels", "main", False),
        ("channels", "telegramm:direct:1", False),
        ("prefixes", "telegram:group:1", True),
        ("prefixes", "telegram:group:1:topic:5", True),
        ("prefixes", "telegram:group:123", False),
        ("prefixes", "TELEGRAM:group:1", True),
        ("prefixes", "telegram:group:2", False),
        ("prefixes", "telegram:direct:1", False),
        ("prefixes", "telegra:group:2", True),
        ("prefixes", "discord:group:1", False),
        ("prefixes", "Discord:Group:1", False),
        ("prefixes", "slack:group:1", True),
        ("prefixes", "main", True),
    ],
)
def test_the_first_rule_that_matches_decides(client: Client, agent: str, rest: str, allowed: bool) -> None:
    """By messenger, kind of chat, and beginning of the key; after the last rule, the default."""
    key = f"agent:{agent}:{rest}"
    found = client.search("lighthouse shutters", session_key=key)
    assert found.scope_denied is not allowed
    assert bool(found.results) is allowed
    assert client.get("memory/a.md", session_key=key).missing is not allowed


def test_a_key_of_another_agent_is_denied(client: Client) -> None:
    """The agent that is named and the one in the key must be the same, or nothing is seen of either."""
    for agent, key in (
        ("main", "agent:open:main"),
        ("open", "agent:main:main"),
        ("open", "agent:nobody:main"),
    ):
        found = client.search("lighthouse", agent=agent, session_key=key)
        assert (found.results, found.scope_denied) == ([], True)
        assert client.explain("lighthouse", agent=agent, session_key=key).found.scope_denied
        assert client.get("memory/a.md", agent=agent, session_key=key) == Note(
            path="memory/a.md", missing=True
        )


def test_the_agent_of_the_key_is_meant(client: Client) -> None:
    """Without a name it is the key's agent, then main; a key of nobody's is an error."""
    assert client.search("walrus", session_key="agent:main:main").results[0].path == "memory/a.md"
    assert client.search("heron", session_key="agent:open:main").results[0].snippet.startswith("Heron")
    assert client.search("walrus").results[0].snippet.startswith("Walrus")
    with pytest.raises(RequestFailed) as failed:
        client.search("walrus", session_key="agent:nobody:main")
    assert failed.value.code == "unknown_agent"


def test_one_agent_never_sees_anothers(client: Client, served: Daemon) -> None:
    """Hits, candidates and files are one's own, though the paths be the same."""
    mine = client.search("lighthouse walrus heron", agent="main", max_results=50, min_score=0.0)
    theirs = client.search("lighthouse walrus heron", agent="open", max_results=50, min_score=0.0)
    assert "Heron" not in str(mine.results)
    assert "Walrus" not in str(theirs.results)
    explained = client.explain("heron island chapel", agent="main", max_results=50, min_score=0.0)
    assert explained.candidates
    assert {one.path for one in explained.candidates} <= {"MEMORY.md", "USER.md", "memory/a.md"}
    assert client.get("memory/a.md", agent="main").text.startswith("Walrus")
    assert client.get("memory/a.md", agent="open").text.startswith("Heron")
    extra = f"{served.home.resolve()}/extra/b.md"
    assert client.get(extra, agent="main").missing
    assert not client.get(extra, agent="open").missing


def test_a_rule_that_changes_holds_from_the_reload_on(home: Path) -> None:
    """After SIGHUP, a group that was let in is denied, in search and in get."""
    key = "agent:main:telegram:group:1"
    with (
        Daemon(home, settings='scope = { default = "allow", rules = [] }') as daemon,
        daemon.client() as client,
    ):
        daemon.write("memory/a.md", "The lighthouse is red.\n")
        client.sync()
        assert client.search("lighthouse", session_key=key).results
        daemon.configure("")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.search("lighthouse", session_key=key).scope_denied)
        assert client.get("memory/a.md", session_key=key).missing
        assert client.search("lighthouse").results


def test_the_log_holds_no_memory(client: Client, served: Daemon) -> None:
    """With everything written down, neither what was remembered nor what was asked is in it, nor a session's key."""
    client.search("porcupine lighthouse heron", agent="open", session_key="agent:open:telegram:group:-909")
    client.search("porcupine lighthouse heron", agent="main", session_key="agent:main:telegram:group:-909")
    client.get("memory/a.md", agent="main")
    log = served.printed()
    assert "scope.denied" in log
    assert "embed.stored" in log
    for word in (
        "lighthouse",
        "Lighthouse",
        "Walrus",
        "Heron",
        "Curated",
        "Ingrid",
        "porcupine",
        "walrus",
        "-909",
    ):
        assert word not in log
