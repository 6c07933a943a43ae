"""Accepts clients at the socket of the daemon, as many as there are descriptors for beside the daemon's own work."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from pathlib import Path

import msgspec
import structlog

from memd import VERSION
from memd.agent.agents import Agents
from memd.maintenance.loop import BackgroundTask, BackgroundTasks
from memd.runtime.process import open_files
from memd.runtime.timing import until_next_tick_s
from memd.server import listening_socket
from memd.server.connection import Connection
from memd.server.handlers import Handlers

log = structlog.get_logger()

LOOK_S = 1.0  # between two looks whether the socket has its file
OWN = 64  # descriptors: the cache, the worker, providers, what the interpreter has open
# Its index, one that is built beside, files and directories being read, watches, another engine.
OF_AN_AGENT = 40
OF_A_QUIET_AGENT = 16  # its index and its watches: measured are thirteen
LEAST = 8  # connections, however few descriptors there are


class AdmissionPolicy(msgspec.Struct, frozen=True):
    """How those who connect are treated where there is no room for all."""

    again_s: float = 0.05  # between two looks whether there is room
    resting_s: float = 60.0  # a client that said nothing for longer gives way: it connects again when it has something to say
    # One in so many gives way at once, so that not each newcomer has all of them looked through.
    share: int = 16
    said_s: float = 60.0  # between two lines of the log about it
    at_once: int = 64  # connections that are taken in before anything else has its turn


_USUAL = AdmissionPolicy()


def most_connections(descriptors: int, agents: int) -> int:
    """How many clients may be connected so that the daemon always finds descriptors for its own work.

    Args:
        descriptors: That the process may have.
        agents: That run in it.
    """
    return max(LEAST, descriptors - OWN - OF_AN_AGENT * agents)


def most_agents(descriptors: int) -> int:
    """How many agents may run so that each, and the daemon itself, finds the descriptors that it cannot be without.

    Args:
        descriptors: That the process may have.
    """
    return max(1, (descriptors - OWN - LEAST) // OF_A_QUIET_AGENT)


class Acceptor:
    """Accepts what comes to a listening socket.

    Where no more may be connected, those who have been silent for longest are parted with, which their next call does not
    notice. Else newcomers wait in the kernel's queue until somebody leaves. An event loop's own server would close their
    connections unanswered, or ask for a descriptor without end.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], Connection],
        connections: Collection[Connection],
        most: Callable[[], int],
        policy: AdmissionPolicy = _USUAL,
    ) -> None:
        """Begin to accept, on the loop that runs.

        Args:
            listening: Does not block; it is closed at the end.
            make: Makes the daemon's side of a connection.
            connections: Those that there are.
            most: How many there may be just now.
            policy: Where there is no room.
        """
        self._listening = listening
        self._make = make
        self._connections = connections
        self._most = most
        self._policy = policy
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._said_at: float | None = None
        self._listen()

    def listen_on(self, listening: socket.socket) -> None:
        """Accept what comes to another socket, and no more to the old one, which is closed."""
        old, self._listening = self._listening, listening
        if self._again is None:  # else it is looked at in a moment
            self._loop.remove_reader(old)
            self._listen()
        old.close()

    async def close(self) -> None:
        """Accept nobody any more."""
        if self._again is not None:
            self._again.cancel()
        else:
            self._loop.remove_reader(self._listening)
        self._listening.close()
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _listen(self) -> None:
        self._again = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(self._policy.at_once):
            there = len(self._connections) + len(self._beginning)
            if there >= (most := self._most()):
                self._part_with_silent()
                self._pause(f"{most} clients are connected, and no more may be (ulimit -n)")
                return
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as failure:
                self._pause(failure.strerror or str(failure))
                return
            accepted.setblocking(False)
            begin = self._loop.create_task(self._begin(accepted))
            self._beginning.add(begin)
            begin.add_done_callback(self._beginning.discard)

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        # It is gone already, or there are no descriptors for what a transport needs.
        except OSError as failure:
            log.debug("server.connection_not_begun", reason=failure.strerror)
            accepted.close()

    def _part_with_silent(self) -> None:
        now = self._loop.time()
        silent = sorted(
            (since, id(one), one)
            for one in self._connections
            if (since := one.silent_since) is not None and now - since > self._policy.resting_s
        )
        for _, _, one in silent[: max(1, len(self._connections) // self._policy.share)]:
            one.close()

    def _pause(self, reason: str) -> None:
        """Let newcomers wait a moment: asked at once, the kernel would say the same without end."""
        self._loop.remove_reader(self._listening)
        self._again = self._loop.call_later(self._policy.again_s, self._listen)
        now = self._loop.time()
        if self._said_at is None or now - self._said_at >= self._policy.said_s:
            self._said_at = now
            log.warning(
                "server.full", connections=len(self._connections) + len(self._beginning), reason=reason
            )


@contextlib.asynccontextmanager
async def answering(
    path: Path,
    given: socket.socket | None,
    handlers: Handlers,
    agents: Agents,
    tasks: asyncio.TaskGroup,
    background: BackgroundTasks,
) -> AsyncIterator[None]:
    """Answer whoever connects, at a socket that the service manager has opened or at one of our own."""
    connections: set[Connection] = set()
    listening = listening_socket.ListeningSocket(path, given)
    acceptor = Acceptor(
        listening.socket,
        lambda: Connection(handlers.of_client(), os.getuid(), VERSION, connections),
        connections,
        lambda: most_connections(open_files(), len(agents.all())),
    )
    keeping = tasks.create_task(
        background.keep(BackgroundTask("keeping the socket", partial(keep_listening, listening, acceptor)))
    )
    try:
        yield
    finally:
        keeping.cancel()
        await acceptor.close()
        listening.remove()
        for connection in list(connections):
            connection.close()


async def keep_listening(listening: listening_socket.ListeningSocket, acceptor: Acceptor) -> None:
    """Bind the socket again whose file was deleted: clients would take the daemon for one that does not run."""
    said: str | None = None
    while True:
        await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), LOOK_S))
        if not listening.is_gone():
            continue
        try:
            acceptor.listen_on(listening.bind_again())
        except listening_socket.SocketUnusable as failure:
            if str(failure) != said:
                log.error("server.socket_gone", reason=str(failure))
            said = str(failure)
        else:
            said = None
            log.warning("server.socket_bound_again", reason="its file was deleted")
