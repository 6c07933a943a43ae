"""Every way in which memory can be out of reach, as an agent's tools tell of it."""

import asyncio
import os
import signal
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from memd_client import AsyncClient, Client
from memd_client.messages import PROTOCOL
from memd_client.tools import AsyncTools, Tools
from tests.client.scripted_server import Peer, serving
from tests.daemon.process import Daemon
from tests.wait import until

SEARCH = ("memory_search", {"query": "lighthouse"})
GET = ("memory_get", {"path": "memory/a.md"})
RED = "The lighthouse was painted red.\n"
GROUP = "agent:main:telegram:group:7"


def blocking(
    socket: Path, *calls: tuple[str, object], timeout: float = 20, **asker: Any
) -> list[dict[str, Any]]:
    """What the tools of a program without an event loop reply."""
    tools = Tools(lambda: Client(socket, timeout=timeout), **asker)
    try:
        return [tools.call(*call) for call in calls]
    finally:
        tools.close()


def asynchronous(
    socket: Path, *calls: tuple[str, object], timeout: float = 20, **asker: Any
) -> list[dict[str, Any]]:
    """And those of one with an event loop."""

    async def ask() -> list[dict[str, Any]]:
        tools = AsyncTools(lambda: AsyncClient(socket, timeout=timeout), **asker)
        try:
            return [await tools.call(*call) for call in calls]
        finally:
            await tools.close()

    return asyncio.run(ask())


def ask(socket: Path, *calls: tuple[str, object], timeout: float = 20, **asker: Any) -> list[dict[str, Any]]:
    """The replies of both, one after the other."""
    return [
        *blocking(socket, *calls, timeout=timeout, **asker),
        *asynchronous(socket, *calls, timeout=timeout, **asker),
    ]


def is_disabled(reply: dict[str, Any], *words: str) -> bool:
    """Whether a reply says that memory is not there, why, and what to do; else the test fails."""
    assert reply["results"] == []
    assert reply.get("text", "") == ""
    assert reply["disabled"] is True
    assert reply["error"]
    assert reply["action"]
    told = f"{reply['error']} {reply['action']}"
    assert all(word in told for word in words), told
    return True


def state_of(pid: int) -> str:
    """What the system says a process is at: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def halted(daemon: Daemon) -> Iterator[None]:
    """A daemon that does nothing meanwhile."""
    daemon.process.send_signal(signal.SIGSTOP)
    until(lambda: state_of(daemon.process.pid) == "T")
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_a_daemon_that_is_down(home: Path, daemon: Daemon) -> None:
    """Whether it never ran, has stopped, or was killed and left its socket behind."""
    assert all(is_disabled(reply, "memd-ctl up") for reply in ask(home / "s", SEARCH, GET))
    daemon.start().stop()
    assert all(is_disabled(reply, "memd-ctl up") for reply in ask(daemon.socket, SEARCH, GET))
    daemon.start().kill()
    assert stat.S_ISSOCK(daemon.socket.stat().st_mode)
    assert all(is_disabled(reply, "memd-ctl up") for reply in ask(daemon.socket, SEARCH, GET))


def test_a_daemon_that_dies_in_the_middle_of_a_call(daemon: Daemon) -> None:
    """The agent has a reply as soon as that is known, and the next daemon answers."""
    daemon.write("memory/a.md", RED)
    daemon.start()
    replies: list[dict[str, Any]] = []

    def take(asking: Callable[..., list[dict[str, Any]]], call: tuple[str, object]) -> None:
        replies.extend(asking(daemon.socket, call))

    with halted(daemon):
        ways = [(asking, call) for asking in (blocking, asynchronous) for call in (SEARCH, GET)]
        threads = [threading.Thread(target=take, args=way) for way in ways]
        for thread in threads:
            thread.start()
        until(lambda: connections(daemon.socket) >= len(threads))
        daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait(60)
    for thread in threads:
        thread.join(60)
    assert [is_disabled(reply) for reply in replies] == [True] * len(threads)
    daemon.start()
    with daemon.client() as client:
        client.sync()
    assert not [reply for reply in ask(daemon.socket, SEARCH, GET) if "disabled" in reply]


def connections(socket: Path) -> int:
    """How many there are to a socket, accepted or not, as the system counts them."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    # By the name that it was bound under, in the same directory.
    return sum(f"{socket.parent}/" in line and line.split()[5] in {"02", "03"} for line in lines)


def test_a_daemon_that_does_not_answer(daemon: Daemon) -> None:
    """After the client's own time."""
    daemon.start()
    with halted(daemon):
        for reply in ask(daemon.socket, SEARCH, GET, timeout=0.2):
            assert is_disabled(reply, "0.2 s")


@pytest.mark.parametrize(
    "behaves",
    [
        lambda peer: peer.greet(protocol=PROTOCOL + 1),
        lambda peer: peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        lambda peer: peer.hear_greeting(),
    ],
    ids=["of another protocol", "no daemon of memd's", "hangs up"],
)
def test_something_else_that_listens(home: Path, behaves: Callable[[Peer], object]) -> None:
    """A daemon of another version, another program, or one that hangs up."""
    address = home / "s"
    for call in (SEARCH, GET):
        with serving(address, lambda peer: (behaves(peer), None)[1]):
            (reply,) = blocking(address, call, timeout=60)
        assert is_disabled(reply)
        with serving(address, lambda peer: (behaves(peer), None)[1]):
            (reply,) = asynchronous(address, call, timeout=60)
        assert is_disabled(reply)


def test_a_store_that_cannot_be_used(daemon: Daemon) -> None:
    """One of a newer memd: the reply names it and what mends it, while other agents are answered."""
    work = daemon.home / "work"
    (work / "memory").mkdir(parents=True)
    (work / "memory" / "a.md").write_text(RED)
    daemon.configure(f'[agents.work]\nworkspace = "{work}"')
    daemon.start().stop()
    file = daemon.state / "agents" / "main.sqlite"
    whole = bytearray(file.read_bytes())
    struct.pack_into(">i", whole, 60, 99)  # the schema's number
    file.write_bytes(whole)
    daemon.start()
    for reply in ask(daemon.socket, SEARCH, GET, agent="main"):
        assert is_disabled(reply, "newer memd", str(file))
    with daemon.client() as client:
        client.sync(agent="work")
    assert ask(daemon.socket, SEARCH, agent="work")[0]["results"]


def test_an_index_that_is_broken(daemon: Daemon) -> None:
    """One whose tables are gone while the daemon runs: never an exception, and it mends itself."""
    daemon.write("memory/a.md", RED)
    daemon.start()
    with daemon.client() as client:
        client.sync()
    other = apsw.Connection(str(daemon.state / "agents" / "main.sqlite"))
    other.set_busy_timeout(10_000)
    other.execute("DROP TABLE chunks")
    other.close()
    for reply in ask(daemon.socket, SEARCH):
        assert reply["results"] or is_disabled(reply, "rebuilt")
    until(lambda: ask(daemon.socket, SEARCH)[0]["results"], 20)


def test_an_agent_that_is_not_there(daemon: Daemon) -> None:
    """By name, or by the session's key."""
    daemon.start()
    askers: list[dict[str, Any]] = [{"agent": "nobody"}, {"session_key": "agent:nobody:main"}]
    for asker in askers:
        for reply in ask(daemon.socket, SEARCH, GET, **asker):
            assert is_disabled(reply, "nobody")


def test_what_scope_denies_is_no_trouble(daemon: Daemon) -> None:
    """No results, no text, no error: nothing is broken, and the reply says that the conversation may not search."""
    daemon.write("memory/a.md", RED)
    daemon.start()
    with daemon.client() as client:
        client.sync()
    askers: list[dict[str, Any]] = [
        {"session_key": GROUP},
        {"agent": "main", "session_key": "agent:other:main"},
    ]
    for asker in askers:
        for reply in ask(daemon.socket, SEARCH, **asker):
            assert (reply["results"], reply["scopeDenied"]) == ([], True)
            assert not {"error", "disabled"} & reply.keys()
        for reply in ask(daemon.socket, GET, **asker):
            assert {"path": "memory/a.md", "text": "", "missing": True}.items() <= reply.items()


def test_arguments_that_make_no_sense_leave_memory_there(daemon: Daemon) -> None:
    """The model is told how to call, and its next call is answered."""
    daemon.write("memory/a.md", RED)
    daemon.start()
    with daemon.client() as client:
        client.sync()
    calls: list[tuple[str, object]] = [("memory_search", {}), ("memory_get", {}), ("memory_search", "{")]
    for reply in ask(daemon.socket, *calls):
        assert reply["error"]
        assert reply["action"]
        assert "disabled" not in reply
    assert all(reply["results"] for reply in ask(daemon.socket, SEARCH))


def test_a_socket_that_may_not_be_opened(home: Path) -> None:
    """One that is no socket at all, or below a directory that is a file."""
    (home / "s").write_text("no socket")
    for socket in (home / "s", home / "s" / "t"):
        for reply in ask(socket, SEARCH, GET):
            assert is_disabled(reply)


def test_nothing_of_this_ends_the_agent(daemon: Daemon) -> None:
    """The same tools go from no daemon to one, through its death, to the next."""
    daemon.write("memory/a.md", RED)
    tools = Tools(lambda: Client(daemon.socket, timeout=60))
    assert is_disabled(tools.call(*SEARCH))
    for _ in range(2):
        daemon.start()
        with daemon.client() as client:
            client.sync()
        assert tools.call(*SEARCH)["results"]
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait(60)
        assert is_disabled(tools.call(*SEARCH))
    tools.close()
