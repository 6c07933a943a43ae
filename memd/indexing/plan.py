"""What a pass has to do: from what the index knows and what the disk shows."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from memd.domain_types import FoundFile, Kind
from memd.sources.scan import BlindReason, MountPoint, Scan
from memd.sources.vanished import kept
from memd.store.files import KnownFile

# A group is read, cut and written in some 50 ms: so long an edit of that moment waits at most.
GROUP_FILES = 32
GROUP_BYTES = 128_000
EVENT_BYTES = 1000  # of an event of a session in a database, whose size is told in events


class PassPlan(msgspec.Struct, frozen=True):
    """The work of one pass."""

    read: tuple[FoundFile, ...]  # new or changed as far as their stamps tell; the most wanted first
    remove: tuple[str, ...]  # indexed, and gone from the disk
    kept: Mapping[str, BlindReason]  # indexed, and not found, although they may be somewhere

    @property
    def notes(self) -> tuple[FoundFile, ...]:
        """Those to read that are no transcripts."""
        return tuple(found for found in self.read if not found.kind.is_session)

    @property
    def sessions(self) -> tuple[FoundFile, ...]:
        """The transcripts to read, if they are due."""
        return tuple(found for found in self.read if found.kind.is_session)


def plan(
    known: Mapping[str, KnownFile],
    mounts: Iterable[MountPoint],
    scan: Scan,
    *,
    marked: Collection[Path] = (),
    force: bool,
) -> PassPlan:
    """Compare what is known with what is there.

    Args:
        known: What the index holds of the places that were scanned.
        mounts: The mount points that are expected.
        scan: What is there now.
        marked: Files of which somebody told that they changed: their stamps may have been set back. The stamp of a session in
            a database is made of what it holds, and cannot be.
        force: Read every file, whatever its stamp says, and keep nothing for want of a root.
    """
    marked_files = marked or ()  # nothing is hashed where nothing was told
    read = [
        found
        for path, found in scan.found.items()
        if force
        or path not in known
        or known[path].stamp != found.stamp
        or known[path].kind != found.kind
        or (found.file in marked_files and not found.entry)
    ]
    read.sort(key=lambda found: (found.kind is not Kind.CURATED, -found.stamp.mtime_ns, found.path))
    still = kept(known, mounts, scan, force=force)
    missed = (path for path in known if path not in scan.found and scan.covers(path))
    return PassPlan(tuple(read), tuple(sorted(path for path in missed if path not in still)), still)


def groups(read: Sequence[FoundFile]) -> Iterator[Sequence[FoundFile]]:
    """Files in the same order, as many together as are taken in at once; a large one alone."""
    start = size = 0
    for end, found in enumerate(read):
        length = found.stamp.size * (EVENT_BYTES if found.entry else 1)
        if end > start and (end - start == GROUP_FILES or size + length > GROUP_BYTES):
            yield read[start:end]
            start, size = end, 0
        size += length
    if start < len(read):
        yield read[start:]
