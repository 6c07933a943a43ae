"""Opens transcripts, decompresses them in bounded memory, and measures how much they have grown."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import zstandard

from memd.domain_types import FoundFile, Stamp
from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileMissing, FileUnreadable, open_inside, refusal
from memd.sources.transcripts.read_position import ReadProgress
from memd.text.memory_paths import Parts, Root, SessionPaths, admits, name_of, parts_below

if TYPE_CHECKING:
    from typing_extensions import Buffer

PACKED_SUFFIX = ".zst"
OBJECT_SUFFIX = ".json"


class OpenTranscript(NamedTuple):
    """An opened transcript."""

    descriptor: int
    stamp: Stamp  # taken before the file was read
    packed: bool  # whether it is compressed with zstd
    is_object: bool  # whether it is one JSON object on many lines, which is rewritten each time


@contextmanager
def open_transcript(found: FoundFile, roots: Sequence[Root]) -> Iterator[OpenTranscript]:
    """Open the file of a transcript below its root, and close it at the end.

    The name in the index does not contain the path; found.file does, from a scan of the roots. It is checked again that the file
    belongs into the index under that name.

    Raises:
        FileMissing: there is no such file, or it is in none of the roots.
        OutsideFence: it is a symlink, is behind one, or is not a regular file.
        FileUnreadable: no permission, or a failing disk.
        ProcessExhausted: the process has no free descriptors.
    """
    root, parts = _place(found, roots)
    descriptor = open_inside(root.directory, parts)
    try:
        try:
            status = os.fstat(descriptor)
        except OSError as failure:
            raise refusal(failure, found.path) from failure
        stamp = Stamp.of(status)
        name = found.file.name
        yield OpenTranscript(descriptor, stamp, name.endswith(PACKED_SUFFIX), name.endswith(OBJECT_SUFFIX))
    finally:
        os.close(descriptor)


def _place(found: FoundFile, roots: Sequence[Root]) -> tuple[Root, Parts]:
    for root in roots:
        parts = parts_below(root, found.file) if isinstance(root, SessionPaths) else None
        if parts and admits(root, parts) and name_of(root, parts) == found.path:
            return root, parts
    raise FileMissing(found.path, "in no root")


_PIECE_BYTES = 1 << 16


class Growth(msgspec.Struct, frozen=True):
    """How much of a file is new; all of it, if the file was replaced."""

    bytes: int
    lines: int  # complete lines among the bytes that were read


def growth(found: FoundFile, roots: Sequence[Root], progress: ReadProgress | None, *, at_most: int) -> Growth:
    """Return how much of a file is new: bytes by its size, and lines by the line ends in the new part.

    Lines of a compressed file are not counted, since it does not grow any more.

    Args:
        found: The file.
        roots: The agent's roots.
        progress: The progress of the last reading; None: the file was never read.
        at_most: The most bytes to read after the last position (delta_bytes of the settings): a file that has grown by
            more is due whatever its number of lines.

    Raises:
        SourceError: it cannot be opened or read.
        ProcessExhausted: the process has no free descriptors.
    """
    with open_transcript(found, roots) as opened:
        size = opened.stamp.size
        is_same = (
            progress is not None
            and progress.inode == opened.stamp.inode
            and progress.packed == opened.packed
            and size >= progress.mark.length
            and (size == progress.mark.length or not progress.packed)
        )
        begin = progress.mark.length if progress is not None and is_same else 0
        new = size - begin
        if opened.packed or opened.is_object or new >= at_most:
            return Growth(new, 0)
        try:
            return Growth(new, _lines(opened.descriptor, begin, size))
        except OSError as failure:
            raise refusal(failure, found.path) from failure


def _lines(descriptor: int, begin: int, end: int) -> int:
    lines, at = 0, begin
    while at < end and (piece := os.pread(descriptor, min(_PIECE_BYTES, end - at), at)):
        lines += piece.count(b"\n")
        at += len(piece)
    return lines


# Far more than any transcript has. A few kilobytes can decompress to any size.
MAX_UNPACKED_BYTES = 1 << 30
# Transcripts compress to some dozens of times less. A far higher ratio means a decompression bomb.
_MOST_TIMES = 1000
_ALWAYS_BYTES = 1 << 26
MAX_WINDOW_BYTES = 1 << 27  # the default limit of the zstd tool
_UNPACKED_PIECE_BYTES = 1 << 20
_PACKED_PIECE_BYTES = 1 << 17


class ZstdDamaged(FileUnreadable):
    """The file is not a zstd file, or is damaged."""


class _Beginning(io.RawIOBase):
    """A stream of the first bytes of an open file."""

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
    yield from unpacked_stream(_Beginning(descriptor, length), length, shown)


def unpacked_stream(source: io.RawIOBase, length: int, shown: str) -> Iterator[bytes]:
    """Decompress a stream that holds so many bytes; like unpacked."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    given, most = 0, min(MAX_UNPACKED_BYTES, max(_ALWAYS_BYTES, length * _MOST_TIMES))
    packed = io.BufferedReader(source, _PACKED_PIECE_BYTES)
    with decompressor.stream_reader(packed, read_across_frames=True) as stream:
        while piece := _next(stream, shown):
            given += len(piece)
            if given > most:
                raise TooLarge(shown, f"holds more than {most >> 20} MiB when decompressed")
            yield piece


def _next(stream: zstandard.ZstdDecompressionReader, shown: str) -> bytes:
    try:
        return stream.read(_UNPACKED_PIECE_BYTES)
    except zstandard.ZstdError as error:
        raise ZstdDamaged(shown, f"cannot be decompressed ({error})") from error
