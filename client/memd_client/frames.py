"""Bytes to frames and back: a length of 4 bytes, big-endian, then that many bytes of payload."""

import struct

REQUEST_LIMIT = 1 << 20  # bytes of payload from a client
REPLY_LIMIT = 8 << 20  # bytes of payload from the daemon

_HEADER = struct.Struct(">I")


class FrameTooLarge(Exception):
    """A frame is longer than its direction allows. Nothing after it can be read: close the connection.

    Attributes:
        length: Bytes of payload, as announced.
        limit: Bytes of payload that are allowed.
    """

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(length, limit)
        self.length = length
        self.limit = limit

    def __str__(self) -> str:
        return f"a frame of {self.length} bytes where {self.limit} are allowed"


def encode(payload: bytes, limit: int) -> bytes:
    """One frame with this payload.

    Raises:
        FrameTooLarge: the payload has more than limit bytes.
    """
    if len(payload) > limit:
        raise FrameTooLarge(len(payload), limit)
    return _HEADER.pack(len(payload)) + payload


class FrameReader:
    """Finds the frames in a stream of bytes that arrives in pieces.

    After each ``feed`` call ``next_frame`` until it gives None. A frame over the limit is refused when its
    header is there, so no more than one frame within the limit and the last piece fed are ever held.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    @property
    def is_midway(self) -> bool:
        """Whether the stream has stopped inside a frame."""
        return bool(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the stream."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The payload of the next frame; None until all of it is there. A payload may be empty.

        Raises:
            FrameTooLarge: the next frame is over the limit. The stream is of no use any more.
        """
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(buffer)
        if length > self._limit:
            raise FrameTooLarge(length, self._limit)
        end = _HEADER.size + length
        if len(buffer) < end:
            return None
        with memoryview(buffer) as view:
            payload = bytes(view[_HEADER.size : end])
        # A bytearray forgets its head without moving its tail: many frames at once cost no more each.
        del buffer[:end]
        return payload
