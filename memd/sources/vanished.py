"""Decides which indexed files are gone, from the index and a scan.

A file that the scan did not find was deleted, unless the scan could not look at its place. An empty directory is no sign of an
unmounted disk, since a person may have emptied it; a former mount point without a mount is one.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from memd.sources.scan_result import BlindReason, MountPoint, Scan
from memd.text.memory_paths import Root, descends, is_under, is_under_any, parts_below, prefix_of


def kept(
    known: Collection[str], mounts: Iterable[MountPoint], scan: Scan, *, force: bool = False
) -> dict[str, BlindReason]:
    """The indexed names that the scan covers and could not have found, each with the reason; they stay indexed.

    Args:
        known: Names in the index.
        mounts: The result of mounts_after for the last scan.
        scan: What was seen now.
        force: Do not keep files of a missing root. Files on an unmounted disk, or in a directory that this user cannot
            read, are kept all the same: they exist.
    """
    blind = {prefix: why for prefix, why in scan.blind.items() if not (force and why is BlindReason.ABSENT)}
    blind |= {mount.prefix: BlindReason.UNMOUNTED for mount in mounts if not _is_mounted(mount, scan)}
    missed = (name for name in known if name not in scan.found and scan.covers(name))
    return {name: _why(name, blind) for name in missed if is_under_any(name, blind)}


def mounts_after(mounts: Iterable[MountPoint], scan: Scan, kept: Collection[str]) -> frozenset[MountPoint]:
    """The mount points to expect from now on.

    A former mount point is expected back while a file is kept because of it. Only a full scan can find that none is.
    """
    away = frozenset(mount for mount in mounts if not _is_mounted(mount, scan))
    if scan.looked is None:
        away = frozenset(mount for mount in away if any(is_under(name, mount.prefix) for name in kept))
    return scan.mounts | away


def still_covered(mounts: Iterable[MountPoint], roots: Iterable[Root]) -> frozenset[MountPoint]:
    """The mount points that still belong to a root: the configuration may have changed since."""
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
