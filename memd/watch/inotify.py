"""Raw events from inotify, the Linux kernel's file notification.

watchfiles ignores a queue overflow and an unmounted file system, and fails at a name that is not UTF-8; each of these loses edits.
An idle watch of this module costs nothing.
"""

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from memd.runtime.threads import Threads
from memd.watch.events import Change, EventBatch, FeedBroken, FeedPosition, RawEvent
from memd.watch.mounts import MountEvents
from memd.watch.watch_plan import WatchPlan

# From linux/inotify.h.
MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
Q_OVERFLOW = 0x4000
_ISDIR = 0x40000000
_ONLYDIR = 0x01000000
_DONT_FOLLOW = 0x02000000
_MASK_ADD = 0x20000000

_CAME = CREATE | MOVED_TO
_WENT = DELETE | MOVED_FROM | DELETE_SELF | MOVE_SELF | UNMOUNT
_WANTED = MODIFY | ATTRIB | CLOSE_WRITE | _CAME | DELETE | MOVED_FROM | DELETE_SELF | MOVE_SELF

_MOVED = DELETE_SELF | MOVE_SELF  # for directories above a root, whose content does not matter

_WRITTEN = MODIFY | ATTRIB | CLOSE_WRITE  # for single files; ATTRIB: the number of its names has changed

_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_INT = struct.Struct("i")
_PIECE_BYTES = 1 << 16
_PIECES = 16  # read at once, before other tasks of the event loop run

_LIMITS = Path("/proc/sys/fs/inotify")
# The value recommended for a limit: twice the current one, and at least this.
_WATCHES = 524_288
_INSTANCES = 1024

_libc = ctypes.CDLL(None, use_errno=True)


class InotifyFeed:
    """Watches each directory in one inotify instance."""

    def __init__(self, *, gather_s: float = 0.02) -> None:
        """Create a feed without watches.

        Args:
            gather_s: Events within this time of the first are one batch, unless a task waits for them.
        """
        self._gather_s = gather_s
        self._loop = asyncio.get_running_loop()
        self._descriptor: int | None = None
        self._paths: dict[
            int, list[Path]
        ] = {}  # by watch: its directories, several if one is mounted at two places
        self._above: set[int] = set()  # watches of directories above the roots
        self._tells_of_roots = False
        self._setting: asyncio.Future[None] | None = None
        self._stopped = False
        self._readable = asyncio.Event()
        self._hurried = asyncio.Event()
        self._mounts: MountEvents | None = None
        self._given = 0

    async def start(self, plan: WatchPlan) -> None:
        """Set the watches; see events.Feed."""
        self._descriptor = _instance()
        self._mounts = MountEvents()
        # On a thread of its own, since a directory may be on a disk that does not answer.
        setting = Threads(1, "memd-watch").run(self._set, self._descriptor, plan)
        self._setting = asyncio.ensure_future(setting)
        await asyncio.shield(self._setting)
        self._loop.add_reader(self._descriptor, self._on_readable)
        self._wait_for_mounts()

    async def next(self, until: float) -> EventBatch:
        """Return the next events; see events.Feed."""
        try:
            async with asyncio.timeout_at(until):
                await self._readable.wait()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._gather_s):
                        await self._hurried.wait()
        except TimeoutError:
            if not (self._readable.is_set() or self._has_remounted):
                return EventBatch()
        assert self._descriptor is not None
        assert self._mounts is not None
        self._readable.clear()
        self._hurried.clear()
        raw = b"".join(_pieces(self._descriptor))
        remounted = self._mounts.take()
        self._given += len(raw) + remounted
        self._loop.add_reader(self._descriptor, self._on_readable)
        self._wait_for_mounts()
        return msgspec.structs.replace(batch_of(raw, self._paths, self._above), remounted=remounted)

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:
        """Set a watch on each; see events.Feed."""
        assert self._descriptor is not None
        return await Threads(1, "memd-watch").run(self._set_on_files, self._descriptor, tuple(files))

    @property
    def reports_roots(self) -> bool:
        """See events.Feed. False if a directory above a root can be entered but not listed, so that it cannot be watched."""
        return self._tells_of_roots and self._mounts is not None and self._mounts.wakes is not None

    def position(self) -> FeedPosition:
        """Return the feed itself."""
        return self

    @property
    def given(self) -> int:
        """See events.FeedPosition; in bytes, where a mount since the last call counts as one more."""
        return self._given

    def queued(self) -> int:
        """See events.FeedPosition; counted like `given`."""
        if self._descriptor is None:
            return self._given
        (unread,) = _INT.unpack(fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(_INT.size)))
        return self._given + int(unread) + self._has_remounted

    @property
    def _has_remounted(self) -> bool:
        return self._mounts is not None and self._mounts.have_changed()

    def hurry(self) -> None:
        """See events.FeedPosition."""
        self._hurried.set()
        self._readable.set()

    async def stop(self) -> None:
        """Remove the watches."""
        self._stopped = True
        if self._mounts is not None:
            if (wakes := self._mounts.wakes) is not None:
                self._loop.remove_reader(wakes)
            self._mounts.close()
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        self._loop.remove_reader(descriptor)
        if self._setting is None or self._setting.done():
            os.close(descriptor)
        else:
            # The thread still uses the descriptor; if it were closed now, its number could be reused for another file.
            self._setting.add_done_callback(lambda setting: _close_after(setting, descriptor))

    def _on_readable(self) -> None:
        # Removed until the next batch: the descriptor stays readable until it is read, and would wake the loop again and again.
        assert self._descriptor is not None
        self._loop.remove_reader(self._descriptor)
        self._readable.set()

    def _wait_for_mounts(self) -> None:
        assert self._mounts is not None
        if (wakes := self._mounts.wakes) is not None:
            self._loop.add_reader(wakes, self._on_mount, wakes)

    def _on_mount(self, wakes: int) -> None:
        assert self._mounts is not None
        self._loop.remove_reader(wakes)
        self._mounts.acknowledge()
        self._readable.set()

    def _set(self, descriptor: int, plan: WatchPlan) -> None:
        self._set_above(descriptor, plan.above)
        directories = sorted(plan.flat)
        for directory in directories:
            if self._stopped:
                return
            number = _libc.inotify_add_watch(
                descriptor, os.fsencode(directory), _WANTED | _ONLYDIR | _DONT_FOLLOW
            )
            if number != -1:
                self._paths.setdefault(number, []).append(directory)
            # Otherwise the directory was deleted meanwhile, which the watch of its parent or the next check reports.
            elif (why := ctypes.get_errno()) not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}:
                raise FeedBroken(_refused(why, len(directories)))

    def _set_above(self, descriptor: int, directories: Iterable[Path]) -> None:
        mask = _MOVED | _ONLYDIR | _DONT_FOLLOW | _MASK_ADD
        for directory in directories:
            if self._stopped:
                return
            number = _libc.inotify_add_watch(descriptor, os.fsencode(directory), mask)
            if number == -1:
                return
            self._above.add(number)
        self._tells_of_roots = True

    def _set_on_files(self, descriptor: int, files: Iterable[Path]) -> frozenset[Path]:
        watched: set[Path] = set()
        for file in files:
            if self._stopped:
                break
            number = _libc.inotify_add_watch(descriptor, os.fsencode(file), _WRITTEN | _DONT_FOLLOW)
            # If no watch is left, or the file is gone, its directory is watched nevertheless.
            if number != -1 and file not in (paths := self._paths.setdefault(number, [])):
                paths.append(file)
                watched.add(file)
        return frozenset(watched)


def batch_of(
    raw: bytes, paths: Mapping[int, Sequence[Path]], above: Container[int] = frozenset()
) -> EventBatch:
    """Parse inotify records into raw events.

    Args:
        raw: Any number of whole struct inotify_event.
        paths: The directories of each watch.
        above: The watches of directories above the roots.
    """
    events: set[RawEvent] = set()
    created: set[str] = set()
    closed: set[str] = set()
    incomplete = uprooted = False
    for record in _records(raw):
        number, mask, _, _ = _HEAD.unpack_from(record)
        incomplete |= bool(mask & Q_OVERFLOW)
        uprooted |= bool(mask & _MOVED) and number in above
        change = _change(mask)
        if change is None:
            continue
        name = os.fsdecode(record[_HEAD.size :].rstrip(b"\0"))
        for path in paths.get(number, ()):
            # Not by pathlib, which would delay the event loop ten times as long.
            place = f"{str(path).rstrip('/')}/{name}" if name else str(path)
            events.add((change, place))
            if mask & CREATE and not mask & _ISDIR:
                created.add(place)
            elif mask & CLOSE_WRITE and name:
                closed.add(place)
    return EventBatch(
        frozenset(events), incomplete=incomplete, begun=frozenset(created - closed), uprooted=uprooted
    )


def _records(raw: bytes) -> set[bytes]:
    # A few files that are written all the time fill the queue with thousands of equal records.
    records: set[bytes] = set()
    at = 0
    while at < len(raw):
        (length,) = _INT.unpack_from(raw, at + _HEAD.size - _INT.size)
        end = at + _HEAD.size + length
        records.add(raw[at:end])
        at = end
    return records


def _change(mask: int) -> Change | None:
    if mask & _WENT:
        return Change.deleted
    if mask & _CAME:
        return Change.added
    return Change.modified if mask & (MODIFY | ATTRIB | CLOSE_WRITE) else None


def _pieces(descriptor: int) -> Iterator[bytes]:
    for _ in range(_PIECES):
        with contextlib.suppress(BlockingIOError):
            yield os.read(descriptor, _PIECE_BYTES)
            continue
        return


def _close_after(setting: asyncio.Future[None], descriptor: int) -> None:
    if not setting.cancelled():
        setting.exception()  # marks the exception as retrieved
    os.close(descriptor)


def _instance() -> int:
    """Create an inotify instance.

    Raises:
        FeedBroken: the system refuses one.
    """
    descriptor: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor != -1:
        return descriptor
    why = ctypes.get_errno()
    if why != errno.EMFILE:
        raise FeedBroken(f"the system gives no inotify instance: {os.strerror(why)}")
    if _is_out_of_descriptors():
        raise FeedBroken("the daemon has as many files open as it may (ulimit -n)")
    raise FeedBroken(
        "all inotify instances of this user are taken by other programs; "
        f"`sudo sysctl fs.inotify.max_user_instances={_more_than('max_user_instances', _INSTANCES)}` allows more"
    )


def _refused(why: int, directories: int) -> str:
    if why == errno.ENOSPC:
        return (
            f"{directories} directories are to be watched, and this user has not as many inotify watches left; "
            f"`sudo sysctl fs.inotify.max_user_watches={_more_than('max_user_watches', _WATCHES)}` allows more"
        )
    return f"the system refuses a watch: {os.strerror(why)}"


def _is_out_of_descriptors() -> bool:
    # The kernel has one errno for both limits. If the root directory cannot be opened either, it is the limit of open files.
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return True
    return False


def _more_than(limit: str, least: int) -> int:
    try:
        return max(least, 2 * int((_LIMITS / limit).read_text(encoding="ascii")))
    except (OSError, ValueError):
        return least


def sets_watches_by_directory(platform: str) -> bool:
    """Return whether a platform uses inotify, so that each directory needs a watch."""
    return platform.startswith(("linux", "android"))
