"""Connections of the daemon's own kind over a handler of the test, on an event loop in a thread."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from memd.server import listening_socket
from memd.server.acceptor import Acceptor, AdmissionPolicy
from memd.server.connection import Connection, ConnectionLimits, Handle


@contextmanager
def serving(
    path: Path,
    handle: Handle,
    bounds: ConnectionLimits | None = None,
    *,
    uid: int | None = None,
    most: int = 1000,
    policy: AdmissionPolicy | None = None,
) -> Iterator[set[Connection]]:
    """Answer whoever connects; the connections that are open."""
    connections: set[Connection] = set()
    limits = ConnectionLimits() if bounds is None else bounds
    owner = os.getuid() if uid is None else uid
    is_up, ended = threading.Event(), asyncio.Event()
    loop = uvloop.new_event_loop()

    async def serve() -> None:
        acceptor = Acceptor(
            listening_socket.bind(path),
            lambda: Connection(handle, owner, "1.2.3", connections, limits),
            connections,
            lambda: most,
            policy or AdmissionPolicy(),
        )
        is_up.set()
        await ended.wait()
        await acceptor.close()
        for connection in list(connections):
            connection.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert is_up.wait(60)
        yield connections
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(60)
        loop.close()
        path.unlink(missing_ok=True)
