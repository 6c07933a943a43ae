"""Who may connect where there is no room for all."""

import asyncio
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
import structlog

from memd.agent.agents import Agents
from memd.maintenance.loop import FIRST_WAIT_S, BackgroundTasks
from memd.server.acceptor import (
    LEAST,
    LOOK_S,
    OF_A_QUIET_AGENT,
    OF_AN_AGENT,
    OWN,
    Acceptor,
    AdmissionPolicy,
    answering,
    keep_listening,
    most_agents,
    most_connections,
)
from memd.server.connection import Connection
from memd.server.listening_socket import ListeningSocket
from memd_client.messages import Get, Note, Reply, Request
from tests.bounds import shipped
from tests.clock import for_s, hastily, now_s, run_hastily
from tests.server.serving import serving
from tests.server.stranger import Stranger
from tests.wait import until_async


async def echo(request: Request) -> Reply:
    """A note that names what was asked for."""
    assert isinstance(request, Get)
    return Note(path=request.path)


def answers(stranger: Stranger) -> bool:
    """Whether it gets what it asks for."""
    stranger.ask(Get(path="a.md"))
    return stranger.hear() == (1, Note(path="a.md"))


@pytest.mark.parametrize(
    ("descriptors", "agents", "most"),
    [
        (10_240, 1, 10_136),
        (1024, 5, 760),
        (256, 1, 152),
        (256, 4, 32),
        (OWN + OF_AN_AGENT + LEAST + 1, 1, LEAST + 1),
        (64, 1, LEAST),
        (20, 0, LEAST),
    ],
)
def test_the_daemons_own_work_has_its_share_of_the_descriptors(
    descriptors: int, agents: int, most: int
) -> None:
    """What is left for clients is what the agents do not need, and never nothing."""
    assert most_connections(descriptors, agents) == most


@pytest.mark.parametrize(
    ("descriptors", "most"),
    [
        (20, 1),
        (OWN + LEAST + 2 * OF_A_QUIET_AGENT - 1, 1),
        (OWN + LEAST + 2 * OF_A_QUIET_AGENT, 2),
        (256, 11),
        (1024, 59),
        (10_240, 635),
    ],
)
def test_so_many_agents_find_the_descriptors_that_they_need(descriptors: int, most: int) -> None:
    """Beside the daemon's own and a few clients; one runs in any case."""
    assert most_agents(descriptors) == most


def test_newcomers_wait_until_somebody_leaves(address: Path) -> None:
    """With as many connected as may be, one more is served as soon as there is room, and nobody is turned away."""
    with serving(address, echo, most=2) as connections, ExitStack() as stack:
        first, second = (stack.enter_context(Stranger(address)) for _ in range(2))
        for one in (first, second):
            one.greet()
        third = stack.enter_context(Stranger(address))
        for _ in range(20):
            assert answers(first)
            assert answers(second)
        assert len(connections) == 2
        second.leave()
        third.greet()
        assert answers(third)
        assert answers(first)


def test_who_says_nothing_gives_way(address: Path) -> None:
    """A newcomer takes the place of a connection that was silent for long; one that is at work keeps its own."""
    release, at_work = asyncio.Event(), threading.Event()

    async def slow(request: Request) -> Reply:
        assert isinstance(request, Get)
        at_work.set()
        (release.set if request.path == "go on" else release.clear)()
        await release.wait()
        return Note(path=request.path)

    with (
        serving(address, slow, most=2, policy=AdmissionPolicy(resting_s=0.05)),
        Stranger(address) as busy,
        Stranger(address) as silent,
    ):
        busy.greet()
        silent.greet()
        busy.ask(Get(path="slow"))
        assert at_work.wait(60)
        with Stranger(address) as newcomer:
            newcomer.greet()
            assert silent.hear_end() == b""
            newcomer.ask(Get(path="go on"))
            assert newcomer.hear() == (1, Note(path="go on"))
        assert busy.hear() == (1, Note(path="slow"))


class Quiet:
    """A connection that has said nothing for so many seconds."""

    def __init__(self, silent_s: float | None) -> None:
        self.silent_since = None if silent_s is None else asyncio.get_running_loop().time() - silent_s
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("silent", "parted"),
    [
        ([None, 59.0], []),
        ([59.0, 61.0, 62.0, None], [62.0]),
        ([*range(100, 131)], [130]),
        ([*range(100, 148)], [145, 146, 147]),
        ([3000.0, *[1.0] * 63], [3000.0]),
    ],
)
async def test_one_in_sixteen_gives_way_after_a_minute_of_silence(
    address: Path, silent: list[float | None], parted: list[float]
) -> None:
    """Those first that have been silent for longest, one at least; nobody who is at work."""
    connections = {Quiet(one): one for one in silent}
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as newcomer:
        listening.bind(str(address))
        listening.listen()
        listening.setblocking(False)
        asked = asyncio.Event()

        def most() -> int:
            asked.set()
            return len(connections)

        acceptor = Acceptor(listening, never_made, cast("Any", connections), most)
        newcomer.connect(str(address))
        await asked.wait()
        await acceptor.close()
    assert sorted(silent_s for one, silent_s in connections.items() if one.is_closed and silent_s) == parted


async def test_a_client_that_is_let_in_while_the_daemon_stops_is_a_connection_when_it_has_stopped(
    address: Path,
) -> None:
    """The daemon closes its connections afterwards: one that came to be later would stay open."""
    asked, made = asyncio.Event(), list[asyncio.BaseTransport]()

    class Newcomer(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    def most() -> int:
        asked.set()
        return 1

    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as newcomer:
        listening.bind(str(address))
        listening.listen()
        listening.setblocking(False)
        acceptor = Acceptor(listening, cast("Any", Newcomer), [], most)
        newcomer.connect(str(address))
        await asked.wait()
        await acceptor.close()
        assert len(made) == 1
        made[0].close()


@pytest.mark.parametrize(("seconds", "lines"), [(59.0, 1), (61.0, 2), (119.0, 2), (121.0, 3)])
def test_that_nobody_can_connect_is_logged_once_a_minute(address: Path, seconds: float, lines: int) -> None:
    """Not at each look, of which there are twenty a second; and again as long as it lasts."""

    async def crowded() -> None:
        with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as newcomer:
            listening.bind(str(address))
            listening.listen()
            listening.setblocking(False)
            acceptor = Acceptor(listening, never_made, [], lambda: 0)
            newcomer.connect(str(address))
            await asyncio.sleep(seconds)
            await acceptor.close()

    with structlog.testing.capture_logs() as logs:
        hastily(crowded())
    assert [event["event"] for event in logs] == ["server.full"] * lines


async def test_a_crowd_of_newcomers_keeps_nothing_else_waiting(address: Path) -> None:
    """After 64 of them everything else has its turn, and then the next ones."""
    looks: list[int] = []
    seen: list[int] = []

    def most() -> int:
        if not looks:
            asyncio.get_running_loop().call_soon(lambda: seen.append(len(looks)))
        looks.append(1)
        return 1000

    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(address))
        listening.listen(128)
        listening.setblocking(False)
        for _ in range(100):
            stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(address))
        acceptor = Acceptor(listening, refused, [], most)
        await until_async(lambda: len(looks) == 101)  # the last one finds nobody
        await acceptor.close()
    assert seen == [shipped("memd.server.acceptor.AdmissionPolicy.at_once")]


def refused() -> Connection:
    raise OSError("no descriptors")


def never_made() -> Connection:
    raise AssertionError("there is no room for another connection")


def made_of_nobody() -> Connection:
    raise AssertionError("nobody connects")


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_socket_is_looked_at_only_while_it_is_accepted_from(
    address: Path, *, is_full: bool, is_replaced: bool
) -> None:
    """A reader that outlives its socket would be called for whatever has its descriptor next."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def most() -> int:
        asked.set()
        return 0

    with ExitStack() as stack:
        listening, other = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        for one, path in ((listening, address), (other, address.with_suffix(".2"))):
            one.bind(str(path))
            one.listen()
            one.setblocking(False)
        acceptor = Acceptor(listening, made_of_nobody, [], most, AdmissionPolicy(again_s=3600.0))
        watched = [listening.fileno(), other.fileno()]
        if is_full:
            newcomer = stack.enter_context(socket.socket(socket.AF_UNIX))
            newcomer.connect(str(address))
            await asked.wait()
            assert not loop.remove_reader(watched[0])
        if is_replaced:
            acceptor.listen_on(other)
            assert listening.fileno() == -1
            assert not loop.remove_reader(watched[0])
        await acceptor.close()
        assert [loop.remove_reader(one) for one in watched] == [False, False]


@run_hastily
async def test_a_socket_is_bound_again_within_seconds() -> None:
    """So often it is looked at."""
    looked_at: list[float] = []

    class Watched(ListeningSocket):
        def __init__(self) -> None:
            """Bind nothing."""

        def is_gone(self) -> bool:
            looked_at.append(now_s())
            return False

    await for_s(3.5 * LOOK_S, keep_listening(Watched(), cast("Any", None)))
    assert looked_at == pytest.approx([LOOK_S, 2 * LOOK_S, 3 * LOOK_S])


def test_an_unforeseen_error_does_not_end_the_watch_over_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, and the socket whose file was deleted is bound again a little later."""
    address = tmp_path / "s"
    is_gone = ListeningSocket.is_gone
    failures = [ValueError("a bug")]

    def failing_once(socket: ListeningSocket) -> bool:
        if failures:
            raise failures.pop()
        return is_gone(socket)

    monkeypatch.setattr(ListeningSocket, "is_gone", failing_once)

    async def main() -> bool:
        background = BackgroundTasks(None, Random(0))
        async with (
            asyncio.TaskGroup() as tasks,
            answering(address, None, cast("Any", None), Agents(), tasks, background),
        ):
            address.unlink()
            await asyncio.sleep(FIRST_WAIT_S + 10 * LOOK_S)
            return address.exists()

    with structlog.testing.capture_logs() as logs:
        assert hastily(main())
    assert [event["event"] for event in logs] == ["maintenance.failed", "server.socket_bound_again"]
    assert not address.exists()
