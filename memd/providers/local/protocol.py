"""What the daemon and its embedding worker say to each other: a 4-byte big-endian length, then msgpack."""

from collections.abc import Iterator

import msgspec

MAX_FRAME_BYTES = 65_536  # a passage has 8 KiB at most, a vector 1.5 KiB


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has loaded the model."""

    version: str  # of the package that holds the model
    dimensions: int


class Passage(msgspec.Struct, frozen=True, tag=True):
    """Embed one text."""

    id: int
    text: str


class Embedded(msgspec.Struct, frozen=True, tag=True):
    """The answer to the Passage of the same id."""

    id: int
    vector: bytes  # float32 in the machine's byte order


class BrokenFrame(ValueError):
    """The bytes are not what the other side would send."""


def encode(message: Ready | Passage | Embedded) -> bytes:
    """One frame."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(4, "big") + body


class WorkerFrameReader:
    """Bytes in, whole frames out."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies of the frames that are complete by now.

        Raises:
            BrokenFrame: a length that no message has.
        """
        self._data += data
        while len(self._data) >= 4:
            end = 4 + int.from_bytes(self._data[:4], "big")
            if end > 4 + MAX_FRAME_BYTES:
                raise BrokenFrame(f"a frame of {end - 4} bytes")
            if len(self._data) < end:
                return
            body = bytes(self._data[4:end])
            del self._data[:end]
            yield body
