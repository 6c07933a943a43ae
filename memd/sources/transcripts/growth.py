"""Measures how much a transcript has grown since it was read, without parsing it."""

import os
from collections.abc import Sequence

import msgspec

from memd.model import FoundFile
from memd.sources.safe_open import refusal
from memd.sources.transcripts.open_transcript import open_transcript
from memd.sources.transcripts.progress import ReadProgress
from memd.text.memory_paths import Root

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
