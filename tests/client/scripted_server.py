"""A daemon that says what a test wrote down for it, over a real Unix socket."""

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memd_client import codec
from memd_client.messages import PROTOCOL, Hello, Reply, Request

TIMEOUT_S = 60.0  # until a test that hangs fails


class Peer:
    """The daemon's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(TIMEOUT_S)
        self._frames = codec.FrameReader(codec.REQUEST_LIMIT)

    def greet(self, protocol: int = PROTOCOL) -> Hello:
        """Take the client's greeting, then give the daemon's."""
        hello = self.hear_greeting()
        self.send_frame(codec.encode_hello(Hello(protocol=protocol, version="9.9")))
        return hello

    def hear_greeting(self) -> Hello:
        """The client's greeting, which must be the first it says."""
        return codec.decode_hello(self._next_payload())

    def hear(self) -> tuple[int, Request]:
        """The next request."""
        return codec.decode_request(self._next_payload())

    def answer(self, request_id: int, reply: Reply) -> None:
        self.send_frame(codec.encode_reply(request_id, reply))

    def answer_next(self, reply: Reply) -> Request:
        """Hear a request and give it this reply."""
        request_id, request = self.hear()
        self.answer(request_id, reply)
        return request

    def send_frame(self, payload: bytes) -> None:
        self.send(codec.encode_frame(payload, codec.REPLY_LIMIT))

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def wait_for_end(self) -> None:
        """Return when the client has closed the connection, whatever it says until then."""
        with suppress(ConnectionResetError):
            while self._connection.recv(1 << 16):
                pass

    def interrupt_until_end(self, number: int) -> None:
        """Send this process a signal until the client has closed the connection.

        One signal is not enough: it may arrive just before the client's thread waits for the socket, which it then does not
        interrupt, or another thread may take it.

        Raises:
            TimeoutError: it has not closed the connection in time.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            os.kill(os.getpid(), number)
            self._connection.settimeout(0.05)
            with suppress(TimeoutError, ConnectionResetError):
                if not self._connection.recv(1 << 16):
                    return
            if time.monotonic() > deadline:
                raise TimeoutError

    def is_quiet(self, for_s: float) -> bool:
        """Whether the client says nothing more for so many seconds."""
        self._connection.settimeout(for_s)
        try:
            return not self._connection.recv(1)
        except TimeoutError:
            return True
        finally:
            self._connection.settimeout(TIMEOUT_S)

    def _next_payload(self) -> bytes:
        while (payload := self._frames.next_frame()) is None:
            data = self._connection.recv(1 << 16)
            if not data:
                raise EOFError
            self._frames.feed(data)
        return payload


Script = Callable[[Peer], None]


def unless_left(script: Script) -> Script:
    """Return the script for a client that may leave at any moment, which does not fail the test."""

    def play(peer: Peer) -> None:
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            script(peer)

    return play


@contextmanager
def serving(address: Path, *scripts: Script) -> Iterator[None]:
    """A daemon at the address that plays one script a connection, in order, then accepts no more.

    The socket is gone afterwards. A script that fails, or was never played, fails the test.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen(8)
    stop, stopped = socket.socketpair()
    failures: list[BaseException] = []
    thread = threading.Thread(target=_play_all, args=(listener, stopped, scripts, failures))
    thread.start()
    try:
        yield
    except BaseException:
        stop.close()  # the test has failed already: let the scripts that nobody came for go
        raise
    finally:
        thread.join(2 * TIMEOUT_S)
        for end in (listener, stop, stopped):
            end.close()
        address.unlink()
    assert not thread.is_alive(), "a script did not end"
    if failures:
        raise failures[0]


def _play_all(
    listener: socket.socket, stopped: socket.socket, scripts: Sequence[Script], failures: list[BaseException]
) -> None:
    threads = []
    for number, script in enumerate(scripts):
        ready, _, _ = select.select([listener, stopped], [], [], TIMEOUT_S)
        if listener not in ready:
            failures.append(AssertionError(f"nobody came for script {number}"))
            break
        connection, _ = listener.accept()
        threads.append(threading.Thread(target=_play, args=(script, connection, failures)))
        threads[-1].start()
    listener.shutdown(socket.SHUT_RDWR)  # from here on a client is refused
    for thread in threads:
        thread.join(TIMEOUT_S)


def _play(script: Script, connection: socket.socket, failures: list[BaseException]) -> None:
    with connection:
        try:
            script(Peer(connection))
        except (AssertionError, OSError, EOFError, codec.InvalidPayload, codec.InvalidMessage) as error:
            failures.append(error)
