"""Finds the file systems of memory from Linux's mountinfo."""

import contextlib
import errno
import os
import re
import select
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from memd.text.memory_paths import Root, descends, only_file, parts_below

_MOUNTINFO = Path("/proc/self/mountinfo")
# The process has no free descriptor or memory to read with; the files may exist.
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_ESCAPE = re.compile(r"\\([0-7]{3})")

# Changes made elsewhere cause no events here: on other machines, on the host of a virtual machine, or in a program that serves
# the file system (FUSE).
_REMOTE = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fakeowner", "fuse", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
})  # fmt: skip


class Mount(msgspec.Struct, frozen=True):
    """The relevant fields of a line of mountinfo; see proc_pid_mountinfo(5)."""

    number: int
    parent: int
    device: str  # major:minor
    point: Path
    kind: str
    source: str

    @property
    def is_remote(self) -> bool:
        """Whether files can change without an event. A local disk that a program serves (fuseblk) counts as local."""
        return self.kind in _REMOTE or self.kind.startswith("fuse.")


def read_mounts(file: Path = _MOUNTINFO) -> str:
    """Return the text of mountinfo; empty on systems other than Linux.

    Raises:
        OSError: one of EXHAUSTED; the text cannot be read now.
    """
    try:
        return file.read_text("utf-8", "surrogateescape")
    except OSError as failure:
        if failure.errno in EXHAUSTED:
            raise
        return ""


class MountEvents:
    """Detects mounts and unmounts by polling mountinfo; see poll in proc(5)."""

    def __init__(self, file: Path = _MOUNTINFO) -> None:
        """Start to detect changes; without mountinfo, none are ever reported."""
        self._descriptor: int | None = None
        self._wakes: select.epoll | None = None
        with contextlib.suppress(OSError):
            self._descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLPRI)
            self._wakes = _readable_on_urgent(self._descriptor)
        self._have_changed = False

    @property
    def wakes(self) -> int | None:
        """A descriptor that becomes readable for a moment when mounts change: `acknowledge` must be called then. None: there is none.

        The file itself is always readable, so an event loop cannot wait for it.
        """
        return None if self._wakes is None else self._wakes.fileno()

    def acknowledge(self) -> None:
        """Record that mounts have changed; must be called when `wakes` became readable, which consumed the event."""
        self._have_changed = True

    def have_changed(self) -> bool:
        """Return whether mounts have changed since the last `take`. Costs a microsecond."""
        self._have_changed = self._have_changed or (self._descriptor is not None and bool(self._poll.poll(0)))
        return self._have_changed

    def take(self) -> bool:
        """Return whether mounts have changed since the last call."""
        changed, self._have_changed = self.have_changed(), False
        return changed

    def close(self) -> None:
        """Close the file."""
        if self._wakes is not None:
            self._wakes.close()
            self._wakes = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _readable_on_urgent(descriptor: int) -> select.epoll:
    """Return an epoll that becomes readable when the descriptor has urgent data.

    Raises:
        OSError: the system reports no events for this file.
    """
    wakes = select.epoll()
    try:
        wakes.register(descriptor, select.EPOLLPRI)
    except OSError:
        wakes.close()
        raise
    return wakes


def parsed(text: str) -> tuple[Mount, ...]:
    """Return the mounts in a mountinfo; malformed lines are skipped."""
    return tuple(mount for line in text.splitlines() if (mount := _parsed(line)) is not None)


def _parsed(line: str) -> Mount | None:
    fields, found, rest = line.partition(" - ")
    try:
        number, parent, device, _, point = fields.split(" ")[:5]
        kind, source = (*rest.split(" "), "")[:2]
        ids = int(number), int(parent)
    except ValueError:
        return None
    return Mount(*ids, device, Path(_plain(point)), kind, _plain(source)) if found else None


def _plain(field: str) -> str:
    return _ESCAPE.sub(lambda octal: chr(int(octal.group(1), 8)), field)


def concerning(roots: Iterable[Root], mounts: Iterable[Mount]) -> dict[Path, Mount]:
    """Return the mount of each root, and the mounts below a root at places where notes can be.

    Each mount above or below a root changes the result, also if it hides or uncovers another mount.
    """
    mounts = tuple(mounts)
    tops, children = _hung(mounts)
    concerned: dict[Path, Mount] = {}
    for root in roots:
        places = [_place(root), *(mount.point for mount in mounts if _may_hold_notes(root, mount.point))]
        for place in places:
            under = _under(place, tops, children)
            if under is not None and (place == places[0] or under.point == place):
                concerned[place] = under
    return concerned


def mounted(places: Iterable[Path], mounts: Iterable[Mount]) -> frozenset[Path]:
    """Return those of some places that are mount points."""
    tops, children = _hung(tuple(mounts))
    return frozenset(
        place
        for place in places
        if (under := _under(place, tops, children)) is not None and under.point == place
    )


def unseen(roots: Iterable[Root], concerned: dict[Path, Mount]) -> dict[Path, Mount]:
    """Return the places of memory where files can change without an event; none of them is below another one of its root."""
    remote = {place: mount for place, mount in concerned.items() if mount.is_remote}
    whole = {_place(root) for root in roots} & remote.keys()
    return {
        place: mount
        for place, mount in remote.items()
        if place in whole or not any(place.is_relative_to(above) for above in whole)
    }


def _place(root: Root) -> Path:
    return root.directory / (only_file(root) or "")


def _may_hold_notes(root: Root, point: Path) -> bool:
    parts = parts_below(root, point)
    return parts is not None and parts != () and descends(root, parts)


def _hung(mounts: Collection[Mount]) -> tuple[list[Mount], dict[int, list[Mount]]]:
    """Return the mounts whose parent is not among these, and the children of each mount by its number."""
    children: dict[int, list[Mount]] = {}
    for mount in mounts:
        if mount.parent != mount.number:
            children.setdefault(mount.parent, []).append(mount)
    numbers = {mount.number for mount in mounts}
    tops = [mount for mount in mounts if mount.parent not in numbers or mount.parent == mount.number]
    return tops, children


def _under(place: Path, tops: list[Mount], children: dict[int, list[Mount]]) -> Mount | None:
    """Return the mount that a place is on, by following mount points from the top; None: there is none."""
    at: Mount | None = None
    onward: Iterable[Mount] = tops
    while (into := _first_on_the_way(place, onward)) is not None:
        at, onward = into, children.get(into.number, ())
    return at


def _first_on_the_way(place: Path, mounts: Iterable[Mount]) -> Mount | None:
    on_the_way: Iterator[Mount] = (mount for mount in mounts if place.is_relative_to(mount.point))
    return min(on_the_way, key=lambda mount: len(mount.point.parts), default=None)
