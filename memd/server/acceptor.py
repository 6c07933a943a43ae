"""Accepts clients on the daemon's socket, as long as file descriptors are left for the daemon's own work."""

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
from memd.runtime.timers import until_next_tick_s
from memd.server import listening_socket
from memd.server.connection import Connection
from memd.server.handlers import Handlers

log = structlog.get_logger()

LOOK_S = 2.0  # between two checks whether the socket's file still exists
# descriptors of the process itself: the cache, the worker, providers, those that the interpreter opens
OWN = 64
# Descriptors of a busy agent: its index, one being rebuilt, files and directories being read, watches,
# another backend.
OF_AN_AGENT = 40
OF_A_QUIET_AGENT = 16  # its index and its watches: 13 were measured
LEAST = 8  # connections that are always allowed


class AdmissionPolicy(msgspec.Struct, frozen=True):
    """What happens to clients when there is no room for all."""

    again_s: float = 0.05  # between two checks whether there is room
    # a client that was silent for longer may be disconnected: it reconnects on its next request
    resting_s: float = 60.0
    # One in so many connections is dropped at a time, so that not every new client causes a scan of all of
    # them.
    share: int = 16
    said_s: float = 60.0  # between two log lines about this
    at_once: int = 64  # connections accepted before the event loop runs anything else


_USUAL = AdmissionPolicy()


def most_connections(descriptors: int, agents: int) -> int:
    """Return how many clients may be connected without taking descriptors that the daemon needs for its own work.

    Args:
        descriptors: The process's limit of open files.
        agents: The number of agents that run.
    """
    return max(LEAST, descriptors - OWN - OF_AN_AGENT * agents)


def most_agents(descriptors: int) -> int:
    """Return how many agents may run so that all have the descriptors that they cannot do without.

    Args:
        descriptors: The process's limit of open files.
    """
    return max(1, (descriptors - OWN - LEAST) // OF_A_QUIET_AGENT)


class Acceptor:
    """Accepts connections on a listening socket.

    When the limit is reached, the clients that were silent for longest are disconnected, which their next
    call does not notice. If there are none, new clients wait in the kernel's queue until another leaves. The
    server of an asyncio event loop would instead close their connections without an answer, or retry accept()
    in a loop.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], Connection],
        connections: Collection[Connection],
        most: Callable[[], int],
        policy: AdmissionPolicy = _USUAL,
    ) -> None:
        """Start accepting on the running event loop.

        Args:
            listening: A non-blocking socket; `close` closes it.
            make: Creates the protocol object of a connection.
            connections: The open connections.
            most: Returns how many connections are allowed now.
            policy: What happens at the limit.
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
        """Accept on another socket from now on; the previous one is closed."""
        old, self._listening = self._listening, listening
        if self._again is None:  # else the timer calls _listen soon
            self._loop.remove_reader(old)
            self._listen()
        old.close()

    async def close(self) -> None:
        """Stop accepting, and close the listening socket."""
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
                self._close_idle()
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
        # The client has left already, or no descriptors are left for the transport.
        except OSError as failure:
            log.debug("server.connection_not_begun", reason=failure.strerror)
            accepted.close()

    def _close_idle(self) -> None:
        now = self._loop.time()
        silent = sorted(
            (since, id(one), one)
            for one in self._connections
            if (since := one.silent_since) is not None and now - since > self._policy.resting_s
        )
        for _, _, one in silent[: max(1, len(self._connections) // self._policy.share)]:
            one.close()

    def _pause(self, reason: str) -> None:
        """Stop accepting for `again_s`; without a pause the same accept() would fail in a loop."""
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
    """Serve clients within the block, on the service manager's socket if `given`, else on a new one at `path`."""
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
    """Bind the socket again whenever its file was deleted; without the file clients assume that no daemon runs."""
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
