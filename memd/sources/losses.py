"""Which indexed files are gone for good, decided from what the index knows and a scan saw.

A file that the scan did not find may have been deleted, or its disk may not be mounted just now. Deleting too little
leaves a few stale hits until the next scan; deleting too much throws away what a person wrote and expects to find. So
where it cannot be told, everything stays.
"""

from collections.abc import Iterable, Mapping

from memd.paths import is_under, is_under_any
from memd.sources.scan import Anchor, Scan


def gone(names: Iterable[str], before: Mapping[str, Anchor], scan: Scan) -> frozenset[str]:
    """The indexed names that the scan covers, did not find, and had every chance to find.

    Args:
        names: In the index.
        before: What anchors_after gave for the scan before; empty for the first of a process.
        scan: What was seen now.
    """
    known = frozenset(names)
    kept = scan.blind | lost_roots(known, before, scan)
    return frozenset(
        name
        for name in known
        if name not in scan.found and scan.covers(name) and not is_under_any(name, kept)
    )


def lost_roots(names: Iterable[str], before: Mapping[str, Anchor], scan: Scan) -> frozenset[str]:
    """The prefixes whose files went away all at once, in a way that unmounting a disk also looks like.

    A mount point without its disk is a directory with nothing in it, or with something else, on another device. A
    directory that a person emptied is still the same one. After a restart nothing is known of the directory before:
    then one with nothing in it at all, not even a hidden file, counts as lost.
    """
    known = frozenset(names)
    return frozenset(
        prefix
        for prefix, anchor in scan.anchors.items()
        if any(is_under(name, prefix) for name in known)
        and not any(is_under(name, prefix) for name in scan.found)
        and _may_be_unmounted(before.get(prefix), anchor)
    )


def anchors_after(before: Mapping[str, Anchor], scan: Scan, lost: frozenset[str]) -> dict[str, Anchor]:
    """What to compare the next scan with: the anchors as last seen with their files."""
    return {**before, **{prefix: anchor for prefix, anchor in scan.anchors.items() if prefix not in lost}}


def _may_be_unmounted(before: Anchor | None, now: Anchor) -> bool:
    if before is None:
        return now.empty
    if (before.device, before.inode) == (now.device, now.inode):
        return False
    return now.empty or before.device != now.device
