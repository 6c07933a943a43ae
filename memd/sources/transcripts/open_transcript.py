"""Opens the file of a transcript, and measures how much has come to it since it was read."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from memd.model import FoundFile, Stamp
from memd.sources.safe_open import FileMissing, open_inside, refusal
from memd.sources.transcripts.progress import ReadProgress
from memd.text.memory_paths import Parts, Root, SessionPaths, admits, name_of, parts_below

PACKED_SUFFIX = ".zst"


class OpenTranscript(NamedTuple):
    """A transcript that can be read."""

    descriptor: int
    stamp: Stamp  # from before anything was read
    packed: bool  # compressed with zstd


@contextmanager
def open_transcript(found: FoundFile, roots: Sequence[Root]) -> Iterator[OpenTranscript]:
    """Open the file of a transcript below its root, and close it at the end.

    The name in the index does not contain the path; found.file has it, from a scan of the roots. Whether such a file belongs
    into the index, under that name, is checked here again.

    Raises:
        FileMissing: there is no such file, or it is in none of the roots.
        OutsideFence: it is a symlink, is behind one, or is not a regular file.
        FileUnreadable: no permission, or a failing disk.
        ProcessExhausted: no more descriptors.
    """
    root, parts = _place(found, roots)
    descriptor = open_inside(root.directory, parts)
    try:
        try:
            status = os.fstat(descriptor)
        except OSError as failure:
            raise refusal(failure, found.path) from failure
        stamp = Stamp.of(status)
        yield OpenTranscript(descriptor, stamp, found.file.name.endswith(PACKED_SUFFIX))
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
    """How much of a file is new; everything, if it is another file than the one that was read."""

    bytes: int
    lines: int  # that are complete, among as many bytes as were looked at


def growth(found: FoundFile, roots: Sequence[Root], progress: ReadProgress | None, *, at_most: int) -> Growth:
    """How much is new, by the size of the file and the ends of lines in what came.

    Lines of a compressed file are not counted: its writer is done with it.

    Args:
        found: The file.
        roots: Of the agent.
        progress: Of the last reading; None: it was never read.
        at_most: So many bytes are read, from where the last reading ended; delta_bytes of the settings. A file
            that has grown by as much is due whatever its lines.

    Raises:
        SourceError: it cannot be opened or read.
        ProcessExhausted: no more descriptors.
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
        if opened.packed or new >= at_most:
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
