"""The messages between the daemon and its embedding worker: a 4-byte big-endian length, then msgpack."""

from collections.abc import Iterator, Sequence

import msgspec

MAX_FRAME_BYTES = 65_536  # passages together have at most 8 KiB, a vector 1.5 KiB


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has loaded the model."""

    version: str  # of the package that contains the model
    dimensions: int


class Passages(msgspec.Struct, frozen=True, tag=True):
    """Embed some texts."""

    id: int
    texts: Sequence[str]


class Embedded(msgspec.Struct, frozen=True, tag=True):
    """The answer to the Passages of the same id."""

    id: int
    vectors: bytes  # one behind the other, float32 in the machine's byte order


class BrokenFrame(ValueError):
    """Bytes that are not a valid frame."""


def encode(message: Ready | Passages | Embedded) -> bytes:
    """Encode a message as a frame."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(4, "big") + body


class WorkerFrameReader:
    """Splits bytes into frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Return the bodies of the frames that are complete.

        Raises:
            BrokenFrame: the length is invalid.
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
