"""Opens the file of a transcript, with `sources.safe_open`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from memd.model import FoundFile, Stamp
from memd.sources.safe_open import FileMissing, open_inside, refusal
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
