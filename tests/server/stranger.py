"""A client that keeps to the protocol only as far as a test wants it to."""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from memd_client import codec
from memd_client.messages import PROTOCOL, Failure, Hello, Reply, Request

TIMEOUT_S = 20.0  # until a test that hangs fails


class Stranger:
    """One connection, byte by byte."""

    def __init__(self, path: Path) -> None:
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.settimeout(TIMEOUT_S)
        self.connection.connect(str(path))
        self._frames = codec.FrameReader(codec.REPLY_LIMIT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    # --- saying

    def say(self, data: bytes) -> None:
        """Bytes as they are."""
        self.connection.sendall(data)

    def say_frame(self, payload: bytes) -> None:
        """A frame, whatever is in it."""
        self.say(framed(payload))

    def greet(self, protocol: int = PROTOCOL) -> Hello:
        """Greet, and hear the greeting of the daemon."""
        self.say_frame(codec.encode_hello(Hello(protocol=protocol, version="9.9")))
        return codec.decode_hello(self._payload())

    def ask(self, *requests: Request, first: int = 1) -> None:
        """Requests in one piece, with ids from the first on, without waiting for answers."""
        self.say(b"".join(asked(number, request) for number, request in enumerate(requests, first)))

    def ask_raw(self, number: int, message: Any) -> None:
        """Anything that msgpack can carry, as a request."""
        self.say_frame(msgspec.msgpack.encode([number, message]))

    def finish(self) -> None:
        """Say no more, and go on listening."""
        self.connection.shutdown(socket.SHUT_WR)

    def leave(self) -> None:
        """Hang up."""
        self.connection.close()

    # --- hearing

    def hear(self) -> tuple[int, Reply]:
        """The next answer, with the id of its request."""
        return codec.decode_reply(self._payload())

    def hear_some(self, count: int) -> dict[int, Reply]:
        """So many answers, by the id of their requests."""
        answers = [self.hear() for _ in range(count)]
        return dict(answers)

    def hear_failure(self, number: int = 0) -> Failure:
        """The next answer, which must be a failure under this id; 0 is about the connection."""
        answered, reply = self.hear()
        assert answered == number
        assert isinstance(reply, Failure)
        return reply

    def hear_end(self) -> bytes:
        """What comes until the daemon has closed the connection."""
        heard = b""
        with suppress(ConnectionResetError):
            while piece := self.connection.recv(1 << 16):
                heard += piece
        return heard

    def _payload(self) -> bytes:
        while (payload := self._frames.next_frame()) is None:
            piece = self.connection.recv(1 << 16)
            assert piece, "the daemon closed the connection"
            self._frames.feed(piece)
        return payload


def framed(payload: bytes) -> bytes:
    """A frame, even one that is too long."""
    return struct.pack(">I", len(payload)) + payload


def asked(number: int, request: Request) -> bytes:
    """The frame of a request."""
    return framed(codec.encode_request(number, request))


def whole(answers: dict[int, Reply], numbers: Sequence[int]) -> bool:
    """Whether each request has its own answer, and none is a failure."""
    return sorted(answers) == sorted(numbers) and not any(
        isinstance(reply, Failure) for reply in answers.values()
    )
