"""Decompresses a zstd file piece by piece, in bounded memory."""

import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import zstandard

from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileUnreadable

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Far more than anybody says. A few kilobytes can be made to hold any number of bytes.
MAX_UNPACKED_BYTES = 1 << 30
# What is said and done repeats itself some dozens of times. A small file that holds much more was made to fill memory.
_MOST_TIMES = 1000
_ALWAYS_BYTES = 1 << 26
_MAX_WINDOW_BYTES = 1 << 27  # what the zstd tool accepts by itself
_PIECE_BYTES = 1 << 20
_PACKED_PIECE_BYTES = 1 << 17


class ZstdDamaged(FileUnreadable):
    """The file is not a zstd file, or is damaged."""


class _Beginning(io.RawIOBase):
    """The first bytes of an open file, for a reader of streams."""

    def __init__(self, descriptor: int, length: int) -> None:
        self._descriptor = descriptor
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        room = memoryview(buffer)
        piece = os.pread(self._descriptor, min(len(room), self._length - self._at), self._at)
        room[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def unpacked(descriptor: int, length: int, shown: str) -> Iterator[bytes]:
    """Decompress the first length bytes, all frames; a truncated file gives what it can.

    Raises:
        ZstdDamaged: it cannot be decompressed.
        TooLarge: it contains more than the limit for such a file.
        OSError: it cannot be read.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    given, most = 0, min(MAX_UNPACKED_BYTES, max(_ALWAYS_BYTES, length * _MOST_TIMES))
    packed = io.BufferedReader(_Beginning(descriptor, length), _PACKED_PIECE_BYTES)
    with decompressor.stream_reader(packed, read_across_frames=True) as stream:
        while piece := _next(stream, shown):
            given += len(piece)
            if given > most:
                raise TooLarge(shown, f"holds more than {most >> 20} MiB when decompressed")
            yield piece


def _next(stream: zstandard.ZstdDecompressionReader, shown: str) -> bytes:
    try:
        return stream.read(_PIECE_BYTES)
    except zstandard.ZstdError as error:
        raise ZstdDamaged(shown, f"cannot be decompressed ({error})") from error
