"""Plans the work of a pass, from the state of the index and of the disk."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from memd.domain_types import FoundFile, Kind
from memd.sources.scan_result import BlindReason, MountPoint, Scan
from memd.sources.vanished import kept
from memd.store.files import KnownFile
from memd.text.memory_paths import Root, find_place, is_session

# A group is read, chunked and written in some 50 ms, the longest wait of an edit at that moment.
GROUP_FILES = 32
GROUP_BYTES = 128_000
EVENT_BYTES = 1000  # per event of a session in a database, whose size is counted in events


class PassPlan(msgspec.Struct, frozen=True):
    """The work of one pass."""

    read: tuple[FoundFile, ...]  # files whose stamps are new or changed, the most important first
    remove: tuple[str, ...]  # indexed files that were deleted
    # Indexed files that were not found but may exist elsewhere or later, with the reason.
    kept: Mapping[str, BlindReason]

    @property
    def notes(self) -> tuple[FoundFile, ...]:
        """The files to read that are no transcripts."""
        return tuple(found for found in self.read if not found.kind.is_session)

    @property
    def sessions(self) -> tuple[FoundFile, ...]:
        """The transcripts to read, if they are due."""
        return tuple(found for found in self.read if found.kind.is_session)


def plan(
    known: Mapping[str, KnownFile],
    mounts: Iterable[MountPoint],
    scan: Scan,
    roots: Sequence[Root],
    *,
    marked: Collection[Path] = (),
    force: bool,
) -> PassPlan:
    """Compare the state of the index with the state of the disk.

    Args:
        known: The indexed files in the scanned places.
        mounts: The expected mount points.
        scan: The files on disk.
        roots: The agent's roots: of notes that they do not admit, such as those that are excluded now, none is kept.
        marked: Files reported as changed: their stamps may have been restored. The stamp of a session in a database is computed
            from its content, and cannot be.
        force: Read every file, even with an unchanged stamp, and remove files of missing roots.
    """
    marked_locations = frozenset(map(str, marked))
    read = [
        found
        for path, found in scan.found.items()
        if force
        or (before := known.get(path)) is None
        or before.stamp != found.stamp
        or before.kind is not found.kind
        or (marked_locations and found.location in marked_locations and not found.entry)
    ]
    read.sort(key=lambda found: (found.kind is not Kind.CURATED, -found.stamp.mtime_ns, found.path))
    missed = [path for path in known.keys() - scan.found.keys() if scan.covers(path)]
    still = {
        path: why
        for path, why in kept(missed, mounts, scan, force=force).items()
        if is_session(path) or find_place(path, roots) is not None
    }
    return PassPlan(tuple(read), tuple(sorted(path for path in missed if path not in still)), still)


def groups(read: Sequence[FoundFile]) -> Iterator[Sequence[FoundFile]]:
    """Yield groups of files in the same order, each as large as one step handles; a large file is alone."""
    start = size = 0
    for end, found in enumerate(read):
        length = found.stamp.size * (EVENT_BYTES if found.entry else 1)
        if end > start and (end - start == GROUP_FILES or size + length > GROUP_BYTES):
            yield read[start:end]
            start, size = end, 0
        size += length
    if start < len(read):
        yield read[start:]
