"""Listening at the socket of the daemon, for as long as it runs."""

import asyncio
import contextlib
import os
import socket as socketlib
from collections.abc import AsyncIterator
from pathlib import Path

import structlog

from memd.agent.agents import Agents
from memd.runtime.process import open_files
from memd.runtime.ticks import until_next_tick_s
from memd.server import listener
from memd.server.acceptor import Acceptor, most_connections
from memd.server.connection import Connection
from memd.server.handlers import Handlers
from memd.version import VERSION

log = structlog.get_logger()

LOOK_S = 1.0  # between two looks whether the socket has its file


@contextlib.asynccontextmanager
async def answering(
    path: Path, given: socketlib.socket | None, handlers: Handlers, agents: Agents, tasks: asyncio.TaskGroup
) -> AsyncIterator[None]:
    """Answer whoever connects, at a socket that the service manager has opened or at one of our own."""
    connections: set[Connection] = set()
    listening = listener.Listening(path, given)
    acceptor = Acceptor(
        listening.socket,
        lambda: Connection(handlers.of_client(), os.getuid(), VERSION, connections),
        connections,
        lambda: most_connections(open_files(), len(agents.all())),
    )
    keeping = tasks.create_task(keep_listening(listening, acceptor))
    try:
        yield
    finally:
        keeping.cancel()
        await acceptor.close()
        listening.remove()
        for connection in list(connections):
            connection.close()


async def keep_listening(listening: listener.Listening, acceptor: Acceptor) -> None:
    """Bind the socket again whose file was deleted: clients would take the daemon for one that does not run."""
    said: str | None = None
    while True:
        await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), LOOK_S))
        if not listening.is_gone():
            continue
        try:
            acceptor.listen_on(listening.bind_again())
        except listener.SocketUnusable as failure:
            if str(failure) != said:
                log.error("server.socket_gone", reason=str(failure))
            said = str(failure)
        else:
            said = None
            log.warning("server.socket_bound_again", reason="its file was deleted")
