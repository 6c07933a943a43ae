"""memd-mcp, as clients start it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from memd_client import tool_replies
from memd_client.mcp.protocol import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from memd_client.mcp.server import status_reply
from memd_client.messages import Found, Health, Search, StatusReport, Vectors
from memd_client.tools import MAX_CHARS, TOOLS
from memd_client.watermark import marked_reply
from tests.bounds import shipped
from tests.client.conftest import finishing_within
from tests.client.scripted_server import Peer, serving
from tests.ctl.answers import agent
from tests.daemon.process import Daemon
from tests.wait import until

if TYPE_CHECKING:  # to import it takes a second, in each worker
    from mcp import Client as McpClient

TIMEOUT_S = 60.0
SERVER = [sys.executable, "-P", "-m", "memd_client.mcp"]

GREETING = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)
CALL = {
    "id": 2,
    "method": "tools/call",
    "params": {"name": "memory_search", "arguments": {"query": "which?"}},
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """Some notes, and one that is long."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home))
        daemon.write("MEMORY.md", "- We picked the PostgreSQL database for billing.\n")
        for number in range(20):
            daemon.write(
                f"memory/{number}.md", f"# Billing {number}\n\nbilling database {number} {'é' * 600}\n"
            )
        with daemon.start(), daemon.client() as client:
            client.sync()
            yield daemon


@asynccontextmanager
async def connected(
    *arguments: object, environ: Mapping[str, str] | None = None, mode: str = "auto"
) -> AsyncIterator["McpClient"]:
    """The SDK's client, with a memd-mcp of its own."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - see above
    from mcp.client.stdio import stdio_client  # noqa: PLC0415 - likewise

    parameters = StdioServerParameters(
        command=SERVER[0], args=[*SERVER[1:], *map(str, arguments)], env=dict(environ or {})
    )
    assert sys.__stderr__ is not None  # else it is the one of the test that first imported it
    async with Client(stdio_client(parameters, errlog=sys.__stderr__), mode=mode) as client:
        yield client


async def called(client: "McpClient", name: str, **arguments: object) -> tuple[bool, dict[str, Any]]:
    """Whether a call went wrong, and what was answered."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert content.type == "text"
    assert result.structured_content is None  # the text would be paid for twice
    assert len(content.text) <= MAX_CHARS
    return bool(result.is_error), json.loads(content.text)


async def test_a_client_searches_reads_and_looks(daemon: Daemon) -> None:
    """With what search gave, over one connection."""
    async with connected("--socket", daemon.socket) as client:
        failed, found = await called(
            client, "memory_search", query="PostgreSQL database for billing", maxResults="1"
        )
        assert not failed
        (hit,) = found["results"]
        assert (hit["path"], hit["citation"]) == ("MEMORY.md", "MEMORY.md#L1")
        failed, read = await called(client, "memory_get", path=hit["citation"])
        assert (failed, read["text"]) == (False, "- We picked the PostgreSQL database for billing.")
        failed, status = await called(client, "memory_status")
        assert not failed
        assert status["agents"]["main"]["files"] == 21
        assert status["agents"]["main"]["vectors"] == {"done": 21, "waiting": 0}


async def test_beyond_the_end_of_a_note_it_is_told_where_that_is(daemon: Daemon) -> None:
    """And no line is named that there is not."""
    async with connected("--socket", daemon.socket) as client:
        failed, read = await called(client, "memory_get", path="memory/3.md", **{"from": 99})
    assert not failed
    assert read == marked_reply({"path": "memory/3.md", "text": "", "startLine": 99, "totalLines": 3})


async def test_the_tools_are_told_of_as_reading_only(daemon: Daemon) -> None:
    """A client need not ask its user; and nothing is so long that Claude Code would cut it."""
    async with connected("--socket", daemon.socket) as client:
        tools = (await client.list_tools()).tools
        assert client.instructions is not None
        assert "memory_search" in client.instructions
        assert len(client.instructions) < 2_000
        assert client.server_info is not None
        assert client.server_info.name == "memd"
    assert [tool.name for tool in tools] == ["memory_search", "memory_get", "memory_status"]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.annotations.idempotent_hint
        assert not tool.annotations.open_world_hint
        assert not tool.annotations.destructive_hint
        assert len(tool.description or "") < 2_000
    assert [tool.input_schema for tool in tools[:2]] == [dict(tool.schema) for tool in TOOLS]


@pytest.mark.parametrize("revision", [*HANDSHAKE_REVISIONS, *STATELESS_REVISIONS])
async def test_each_revision_of_the_protocol_is_spoken(daemon: Daemon, revision: str) -> None:
    """By the SDK's client, with the handshake and without one: what it reads is checked against its own schemas."""
    mode = "legacy" if revision in HANDSHAKE_REVISIONS else revision
    async with connected("--socket", daemon.socket, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 3
        failed, read = await called(client, "memory_get", path="memory/3.md", lines=1)
        assert (failed, read["text"]) == (False, "# Billing 3")
        with pytest.raises(Exception, match="Method not found"):
            await client.list_resources()
    with started("--socket", daemon.socket) as process:
        greeting = json.loads(json.dumps(GREETING).replace("2025-06-18", revision))
        tell(process, *greeting)
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())["result"]["protocolVersion"]
        hang_up_input(process)
    assert told == (revision if revision in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1])


async def test_a_client_finds_out_by_itself_that_no_handshake_is_needed(daemon: Daemon) -> None:
    """As the newest revision has it: it asks what is spoken, and goes on without a greeting."""
    async with connected("--socket", daemon.socket) as client:
        assert client.protocol_version == STATELESS_REVISIONS[-1]


def test_a_call_that_is_cancelled_gets_no_answer_and_the_next_one_does(address: Path) -> None:
    """The daemon is told nothing: it answers into the void."""
    answered: list[int] = []

    def slow(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        tell(
            process,
            {"method": "notifications/cancelled", "params": {"requestId": CALL["id"]}},
            {"method": "notifications/cancelled", "params": {"requestId": "never"}},
            {"method": "notifications/cancelled", "params": {"requestId": []}},
            {"id": 3, "method": "ping"},
        )
        # Before the connection ends, which would be an answer.
        assert process.stdout is not None
        answered.extend(json.loads(process.stdout.readline())["id"] for _ in range(2))
        hang_up_input(process)
        process.wait(TIMEOUT_S)

    with serving(address, slow), started("--socket", address) as process:
        tell(process, *GREETING, CALL)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""
    assert answered == [1, 3]


def test_what_was_asked_before_the_client_hung_up_is_answered(address: Path) -> None:
    """Where no daemon is needed for it, also through a pipe of a shell."""
    asked = "".join(
        f"{json.dumps({'jsonrpc': '2.0', 'id': number, 'method': 'tools/list'})}\n" for number in range(40)
    )
    ran = subprocess.run(
        [*SERVER, "--socket", str(address)], input=asked.encode(), capture_output=True, check=True
    )
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == list(range(40))
    assert ran.stderr == b""


async def test_replies_are_bounded(daemon: Daemon) -> None:
    """In characters of all that is sent; whole hits are left out."""
    async with connected("--socket", daemon.socket, "--max-chars", 2000) as client:
        _, found = await called(client, "memory_search", query="billing database", maxResults=50)
        assert found["omitted"] >= 1
        assert len(tool_replies.encoded(found)) <= 2_000
        assert all("…" not in hit["snippet"] for hit in found["results"])
        _, read = await called(client, "memory_get", path="memory/3.md")
        assert len(tool_replies.encoded(read)) <= 2_000


async def test_arguments_that_make_no_sense_are_a_result(daemon: Daemon) -> None:
    """That the model can mend; no error of the protocol."""
    async with connected("--socket", daemon.socket) as client:
        failed, reply = await called(client, "memory_search", query="q", maxResults="six")
        assert failed
        assert reply["error"] == 'maxResults is "six"; it must be a whole number from 1 to 50.'
        failed, reply = await called(client, "memory_forget")
        assert failed
        assert "There is no tool" in reply["error"]
        assert all(tool.name in reply["action"] for tool in (await client.list_tools()).tools)
        failed, reply = await called(
            client, "memory_search", query="billing " * 131_072, session_key="agent:x:main"
        )
        assert not failed
        assert len(reply["remarks"]) == 2


async def test_a_session_key_is_bound_by_flag_or_environment(daemon: Daemon) -> None:
    """And the flag goes before it."""
    environ = {
        "MEMD_SOCKET": str(daemon.socket),
        "MEMD_SESSION_KEY": "agent:main:telegram:group:7",
        "MEMD_AGENT": "main",
    }
    async with connected(environ=environ) as client:
        assert "MEMORY.md" not in (client.instructions or "MEMORY.md")
        failed, reply = await called(client, "memory_search", query="billing", session_key="agent:main:main")
        assert not failed
        assert (reply["results"], reply["scopeDenied"]) == ([], True)
    async with connected("--session-key", "agent:main:main", environ=environ) as client:
        failed, reply = await called(client, "memory_search", query="billing")
        assert not failed
        assert reply["results"]
    # A variable that was never filled is nobody's key, and not the owner's.
    async with connected(environ=environ | {"MEMD_SESSION_KEY": ""}) as client:
        failed, reply = await called(client, "memory_search", query="billing")
        assert (failed, reply["scopeDenied"]) == (False, True)


async def test_many_calls_at_once(daemon: Daemon) -> None:
    """Each gets its own answer."""
    async with connected("--socket", daemon.socket) as client:
        read = await asyncio.gather(
            *(called(client, "memory_get", path=f"memory/{number}.md", lines=1) for number in range(20))
        )
    assert [reply["text"] for _, reply in read] == [f"# Billing {number}" for number in range(20)]


async def test_a_daemon_that_is_down_is_a_result_and_the_next_call_works() -> None:
    """Before its first start, and after it was killed in between."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home))
        daemon.write("MEMORY.md", "- PostgreSQL\n")
        async with connected("--socket", daemon.socket) as client:
            for name in ("memory_search", "memory_get", "memory_status"):
                failed, reply = await called(client, name, query="PostgreSQL", path="MEMORY.md")
                assert failed
                assert reply["disabled"]
                assert "memd-ctl up" in reply["action"]
            with daemon:
                failed, reply = await called(client, "memory_get", path="MEMORY.md")
                assert (failed, reply["text"]) == (False, "- PostgreSQL")
                daemon.kill()
                failed, reply = await called(client, "memory_get", path="MEMORY.md")
                assert failed
                daemon.start()
                failed, reply = await called(client, "memory_get", path="MEMORY.md")
                assert (failed, reply["text"]) == (False, "- PostgreSQL")


async def test_a_daemon_that_dies_in_mid_call_is_a_result(address: Path) -> None:
    """Which comes at once."""

    def dies(peer: Peer) -> None:
        peer.greet()
        peer.hear()

    with serving(address, dies):
        async with connected("--socket", address) as client:
            failed, reply = await called(client, "memory_search", query="which?")
    assert failed
    assert "memd-ctl status" in reply["action"]


# --- the process


def started(
    *arguments: object, environ: Mapping[str, str] | None = None, program: Sequence[str] = tuple(SERVER)
) -> "subprocess.Popen[bytes]":
    """A memd-mcp whose streams are in our hands."""
    return subprocess.Popen(
        [*program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | (environ or {}),
    )


def tell(process: "subprocess.Popen[bytes]", *messages: Mapping[str, Any]) -> None:
    """Send messages."""
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def hang_up_input(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()


def hang_up_output(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdout is not None
    process.stdout.close()


def hang_up(process: "subprocess.Popen[bytes]") -> None:
    hang_up_output(process)
    hang_up_input(process)


def terminate(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()


@pytest.mark.parametrize("disconnect", [hang_up_input, hang_up, terminate])
def test_a_call_that_runs_when_the_client_hangs_up_is_finished(
    address: Path, disconnect: Callable[["subprocess.Popen[bytes]"], None]
) -> None:
    """And answered, if somebody still reads; the server ends quietly after it."""

    def waits(peer: Peer) -> None:
        peer.greet()
        number, request = peer.hear()
        assert isinstance(request, Search)
        disconnect(process)
        peer.answer(number, Found(results=[], stale=False))
        peer.wait_for_end()

    patient = finishing_within(10 * TIMEOUT_S)
    with serving(address, waits), started("--socket", address, program=patient) as process:
        tell(process, *GREETING, CALL)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
        if disconnect is not hang_up:
            assert process.stdout is not None
            assert [json.loads(line)["id"] for line in process.stdout] == [1, 2]


def test_a_second_signal_ends_it_at_once(address: Path) -> None:
    """Although the daemon does not answer the call that runs."""

    def waits(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        until(has_ended, TIMEOUT_S)

    def has_ended() -> bool:
        process.terminate()
        return process.poll() is not None

    patient = finishing_within(10 * TIMEOUT_S)
    with serving(address, waits), started("--socket", address, program=patient) as process:
        tell(process, *GREETING, CALL)
        assert process.wait(TIMEOUT_S) == -signal.SIGTERM


def test_a_call_that_takes_too_long_keeps_it_no_longer_than_that(address: Path) -> None:
    """Where the daemon does not answer."""

    def waits(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        hang_up_input(process)
        peer.wait_for_end()

    with serving(address, waits), started("--socket", address, program=finishing_within(0.01)) as process:
        tell(process, *GREETING)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == 1
        tell(process, CALL)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout.read() == b""


def test_a_client_that_reads_no_more_ends_it_quietly(address: Path) -> None:
    """Although it has not closed the other direction."""
    with started("--socket", address) as process:
        tell(process, *GREETING)
        assert process.stdout is not None
        process.stdout.readline()
        hang_up_output(process)
        tell(process, CALL)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "<&- >&- 2>&-", "</dev/null"])
def test_without_a_client_it_ends_quietly(redirection: str) -> None:
    """Whatever was closed before it began."""
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -P -m memd_client.mcp {redirection}', sys.executable],
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_standard_output_is_the_protocol_alone(address: Path) -> None:
    """Each line is a message of it, after calls that went well or not and lines that are no JSON."""
    with started("--socket", address) as process:
        tell(process, *GREETING)
        assert process.stdin is not None
        process.stdin.write(b"nonsense\n[]\n{}\n\xff\n")
        tell(process, CALL, {"id": 3, "method": "tools/list"}, {"id": 4, "method": "no/such"})
        assert process.stdout is not None
        answered: dict[Any, Any] = {}
        while not answered.keys() >= {1, 2, 3, 4}:
            message = json.loads(process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            answered[message.get("id")] = message
        hang_up_input(process)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout.read() == b""
    assert answered[2]["result"]["isError"]
    assert "error" in answered[4]


def _spoiled(arguments: str) -> bytes:
    """A call of memory_search with these arguments, as text."""
    return f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"memory_search","arguments":{arguments}}}}}'.encode()


NESTED = "[" * 5_000 + "]" * 5_000
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
LONGEST_LINE = shipped("memd_client.mcp.lines.LONGEST_LINE")


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (_spoiled(r'{"query":"walnut \ud83d"}'), {7}),
        (_spoiled(r'{"query":"walnut \udc00\ud83d"}'), {7}),
        (_spoiled(f'{{"query":{NESTED}}}'), {7}),
        (_spoiled(f'{{"query":"walnut","more":{"9" * 5_000}}}'), {7}),
        (_spoiled('{"query":"walnut"'), {7}),
        (_spoiled("[1]"), {7}),
        (_spoiled('"walnut"'), {7}),
        (_spoiled('{"query":"walnut \xff"}').replace("\xff".encode(), b"\xff"), {7}),
        (_spoiled('{"query":"%s"}' % ("a" * (5 << 20))), {7}),
        (PING.replace(b"7", b"7.5"), {None}),
        (PING.replace(b"7", b"null"), {None}),
        (PING.replace(b"7", rb'"\ud83d"'), {"\ud83d"}),
        (PING.replace(b"}", b',"params":[1]}'), {7}),
        (b'{"id":7,"method":"ping"}', {7}),
        (b'{"jsonrpc":"2.0","method":5}', {None}),
        (b"[" + PING + b"," + PING.replace(b"7", b"8") + b"]", {7, 8}),
        (b"[" + PING + b",5]", {7, None}),
        (b"[]", {None}),
        (b"nonsense", {None}),
        (b"{}", {None}),
        (b"{", {None}),
        (b"\xff", {None}),
        (NESTED.encode(), {None}),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_every_line_is_answered(
    serving_nobody: "subprocess.Popen[bytes]", line: bytes, ids: set[int | str | None]
) -> None:
    """Under its ids, where it has any: a caller that gets no answer waits for a minute or more."""
    stdin, stdout = serving_nobody.stdin, serving_nobody.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(line + b"\n" + PING.replace(b"7", b'"last"') + b"\n")
    stdin.flush()
    answered: set[int | str | None] = set()
    with failing_after(serving_nobody):
        while not {"last", *ids} <= answered:
            message = json.loads(stdout.readline())
            assert ("result" in message) != ("error" in message)
            answered.add(message["id"])
    assert answered == {"last", *ids}


@pytest.mark.parametrize(("beyond", "is_taken"), [(0, True), (1, False), (100, False)])
def test_a_line_may_have_so_many_bytes(
    serving_nobody: "subprocess.Popen[bytes]", beyond: int, is_taken: bool
) -> None:
    """Its end among them; a longer one is refused under its id, and the next one is read."""
    stdin, stdout = serving_nobody.stdin, serving_nobody.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(PING.ljust(LONGEST_LINE - 1 + beyond) + b"\n" + PING.replace(b"7", b"8") + b"\n")
    stdin.flush()
    with failing_after(serving_nobody):
        answers = {message["id"]: message for message in (json.loads(stdout.readline()) for _ in range(2))}
    assert ("result" in answers[7]) is is_taken
    assert "result" in answers[8]


def test_half_a_character_in_a_question_is_searched_for_without_it(daemon: Daemon) -> None:
    """As the emoji was cut by a JavaScript program."""
    with started("--socket", daemon.socket) as process:
        tell(process, *GREETING)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_spoiled(r'{"query":"PostgreSQL database \ud83d"}') + b"\n")
        process.stdin.flush()
        with failing_after(process):
            while (message := json.loads(process.stdout.readline()))["id"] != 7:
                pass
        hang_up_input(process)
    reply = json.loads(message["result"]["content"][0]["text"])
    assert "MEMORY.md" in {hit["path"] for hit in reply["results"]}


@pytest.fixture(scope="module")
def serving_nobody() -> Iterator["subprocess.Popen[bytes]"]:
    """A memd-mcp without a daemon, that is greeted."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home, started("--socket", f"{home}/s") as process:
        tell(process, *GREETING)
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        hang_up_input(process)


@contextmanager
def failing_after(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Ends the process where nothing comes, so that a read ends in a failure."""
    timer = threading.Timer(TIMEOUT_S, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.mark.parametrize("arguments", [["--max-chars", "999"], ["--max-chars", "many"], ["--agnet", "x"]])
def test_a_mistake_on_the_command_line_is_told_before_anything_is_loaded(arguments: list[str]) -> None:
    """With the status for it."""
    program = (
        "import sys\n"
        "from memd_client.mcp.__main__ import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: print('asyncio' in sys.modules, end.code)"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False 2\n"
    assert "memd-mcp: error:" in ran.stderr


def test_the_server_needs_msgspec_alone() -> None:
    """No SDK: programs do not wait long for a server before their first request to a model."""
    program = (
        "import sys; sys.modules['typing_extensions'] = None; bare = set(sys.modules); import memd_client.mcp.server; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - bare} - sys.stdlib_module_names)"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == {"memd_client", "msgspec"}


# --- the status


def _report(**agents: Any) -> StatusReport:
    return StatusReport(
        version="0.1.0", protocol=2, pid=7, uptime_s=0.5, socket="/run/s", config=None, agents=agents
    )


def test_a_status_tells_what_is_wrong() -> None:
    """Only that; what works is not spoken of."""
    sick = agent(
        keyword=Health(ok=False, reason="broken"),
        rebuild="it was asked for",
        vectors=Vectors(done=1, waiting=2),
    )
    told = status_reply(_report(main=agent(), work=sick), 10_000)["agents"]
    assert "trouble" not in told["main"]
    assert told["work"]["trouble"] == {"keyword": "broken"}
    assert told["work"]["rebuild"] == "it was asked for"
    assert told["work"]["vectors"] == {"done": 1, "waiting": 2}


def test_a_status_tells_what_the_daemon_fails_at() -> None:
    """Beside the agents, and only what does not work."""
    well = _report(main=agent())
    sick = msgspec.structs.replace(
        well,
        cache=Health(ok=False, reason="full"),
        synonyms=Health(ok=False, reason="no file"),
        daemon_health=Health(ok=False, reason="no descriptors"),
    )
    assert not {"cacheTrouble", "synonymsTrouble", "daemonTrouble"} & status_reply(well, 10_000).keys()
    reply = status_reply(sick, 10_000)
    told = (reply["cacheTrouble"], reply["synonymsTrouble"], reply["daemonTrouble"])
    assert told == ("full", "no file", "no descriptors")


def test_no_reason_is_longer_than_a_model_needs() -> None:
    """Whatever stands in it: an exception may quote a page."""
    most = shipped("memd_client.mcp.server._REASON_CHARS")
    sick = agent(keyword=Health(ok=False, reason="k" * (most + 1)), rebuild="r" * (most + 1))
    told = status_reply(_report(main=sick), 10_000)["agents"]["main"]
    assert (told["trouble"]["keyword"], told["rebuild"]) == ("k" * most, "r" * most)


def test_what_a_conversation_is_not_told_is_left_out() -> None:
    """A model would take a zero for a number."""
    told = status_reply(_report(main=agent(workspace="", files=0, chunks=0)), 10_000)["agents"]["main"]
    assert not {"workspace", "files", "chunks", "vectors", "pendingChanges"} & told.keys()
    assert told["provider"]


def test_a_status_of_many_agents_is_bounded() -> None:
    """Those without room are counted."""
    reply = status_reply(_report(**{f"agent{number}": agent() for number in range(100)}), 1_000)
    assert len(tool_replies.encoded(reply)) <= 1_000
    assert len(reply["agents"]) + reply["omitted"] == 100
    assert reply["agents"]
