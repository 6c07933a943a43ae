"""A loopback relay in front of a server, which can stop passing data on without closing connections."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 65_536


class Relay:
    """Passes bytes between clients and a server, unless it is held."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._moving = threading.Event()
        self._moving.set()
        self._sockets: list[socket.socket] = []
        self.accepted = 0

    def hold(self) -> None:
        """Stop passing data on; clients wait for their replies."""
        self._moving.clear()

    def release(self) -> None:
        """Pass data on again, including what arrived meanwhile."""
        self._moving.set()

    def serve(self) -> None:
        """Accept clients until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.accepted += 1
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self._moving.wait()
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all connections."""
        self._moving.set()
        for one in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def relay(port: int) -> Iterator[Relay]:
    """Run a relay in front of a loopback port."""
    one = Relay(port)
    threading.Thread(target=one.serve, daemon=True).start()
    try:
        yield one
    finally:
        one.close()
