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

    What was a mount point and is none now is certain: whatever lies in its place, the files of the disk are kept until
    it is back, or the process starts again.
    """
    known = frozenset(names)
    missing = {name for name in known if name not in scan.found and scan.covers(name)}
    unmounted = {
        prefix
        for prefix, anchor in before.items()
        if anchor.mounted
        and not _is_mounted(scan.anchors.get(prefix))
        and any(is_under(name, prefix) for name in missing)
    }
    return frozenset(unmounted) | frozenset(
        prefix
        for prefix, anchor in scan.anchors.items()
        if any(is_under(name, prefix) for name in known)
        and not any(is_under(name, prefix) for name in scan.found)
        and _may_be_unmounted(before.get(prefix), anchor)
    )


def anchors_after(before: Mapping[str, Anchor], scan: Scan, lost: frozenset[str]) -> dict[str, Anchor]:
    """What to compare the next scan with: the anchors as last seen with their files.

    A scan of some places may find a new file in the place of a disk without missing any that lay on it. So it takes
    note of what was mounted, and leaves it to a scan of everything to see that nothing is missed.
    """
    if scan.looked is not None:
        mounted = {prefix: anchor for prefix, anchor in scan.anchors.items() if anchor.mounted}
        known = {
            prefix: anchor for prefix, anchor in before.items() if anchor.mounted or prefix not in mounted
        }
        return {**scan.anchors, **known}
    kept = {
        prefix: anchor
        for prefix, anchor in before.items()
        if prefix in lost or not anchor.mounted or is_under_any(prefix, scan.blind)
    }
    return {**kept, **{prefix: anchor for prefix, anchor in scan.anchors.items() if prefix not in lost}}


def _is_mounted(now: Anchor | None) -> bool:
    # A scan that is about names below a mount point has passed through it, and noted it.
    return now is not None and now.mounted


def _may_be_unmounted(before: Anchor | None, now: Anchor) -> bool:
    if before is None:
        return now.empty
    if (before.device, before.inode) == (now.device, now.inode):
        return False
    return now.empty or before.device != now.device
