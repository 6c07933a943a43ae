"""Which indexed files are gone for good, decided from what the index knows and a scan saw.

A file that the scan did not find was deleted, unless the scan could not look where it was. That a directory is empty says
nothing: a person may have emptied it, or made it anew. What says that a disk is away is a mount point that is none now.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from memd.sources.scan import BlindReason, MountPoint, Scan
from memd.text.memory_paths import Root, descends, is_under, is_under_any, parts_below, prefix_of


def kept(
    known: Collection[str], mounts: Iterable[MountPoint], scan: Scan, *, force: bool = False
) -> dict[str, BlindReason]:
    """The indexed names that the scan covers, did not find, and had no chance to find, each with why.

    Args:
        known: Names in the index.
        mounts: What mounts_after gave for the scan before.
        scan: What was seen now.
        force: Keep nothing for want of a root. What lies on a disk that is not mounted, or where this user may not look,
            is somewhere all the same.
    """
    blind = {prefix: why for prefix, why in scan.blind.items() if not (force and why is BlindReason.ABSENT)}
    blind |= {mount.prefix: BlindReason.UNMOUNTED for mount in mounts if not _is_mounted(mount, scan)}
    missed = (name for name in known if name not in scan.found and scan.covers(name))
    return {name: _why(name, blind) for name in missed if is_under_any(name, blind)}


def mounts_after(mounts: Iterable[MountPoint], scan: Scan, kept: Collection[str]) -> frozenset[MountPoint]:
    """The mount points to expect from now on.

    One that is none now is expected back as long as a file is kept for its sake. Only a scan of everything can tell that
    none is.
    """
    away = frozenset(mount for mount in mounts if not _is_mounted(mount, scan))
    if scan.looked is None:
        away = frozenset(mount for mount in away if any(is_under(name, mount.prefix) for name in kept))
    return scan.mounts | away


def still_covered(mounts: Iterable[MountPoint], roots: Iterable[Root]) -> frozenset[MountPoint]:
    """Those of the mount points that are of a root: the configuration may have changed since they were seen."""
    roots = tuple(roots)
    return frozenset(mount for mount in mounts if any(_concerns(mount, root) for root in roots))


def _concerns(mount: MountPoint, root: Root) -> bool:
    if root.directory.is_relative_to(mount.place):
        return mount.prefix == prefix_of(root)
    parts = parts_below(root, Path(mount.place))
    return parts is not None and descends(root, parts)


def _is_mounted(mount: MountPoint, scan: Scan) -> bool:
    # A scan that is about names below a mount point has passed through it, and noted it.
    return mount in scan.mounts


def _why(name: str, blind: dict[str, BlindReason]) -> BlindReason:
    return blind[max((prefix for prefix in blind if is_under(name, prefix)), key=len)]
