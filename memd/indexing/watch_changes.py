"""Marks changed files: as events report them and, where there are no events, by periodic comparison of stamps."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec
import structlog

from memd.domain_types import Stamp
from memd.indexing.debounced_changes import DebouncedChanges
from memd.runtime import safe_traceback
from memd.runtime.threads import Threads
from memd.runtime.timers import ClockNs
from memd.sources.notes import reliable_stamp
from memd.sources.scan import scan
from memd.text.memory_paths import Root
from memd.watch.watcher import Event, PathsChanged, RescanNeeded, WatcherHealth

log = structlog.get_logger()

Looks = Mapping[Path, Stamp]
Look = Callable[[frozenset[Path]], Looks]

# Above this number of paths, a scan of everything is cheaper for a pass than a check of each path.
_MANY_PATHS = 1000


class PollPace(msgspec.Struct, frozen=True):
    """How often to compare stamps.

    A check of 10,000 files takes 0.2 s on a local disk, and is then repeated every 4 s: a twentieth of one core at most, for any
    number of files. A check of half a minute indicates a slow network, which should not be used more often than this.
    """

    least_s: float = 2.0  # between two checks: the delay that a user accepts for a saved file
    share: float = 20.0  # times the duration of the check
    most_s: float = 600.0
    failed_s: float = 10.0  # after a failed check

    def pause_s(self, took_s: float) -> float:
        """Return the pause after a check of this duration, in seconds."""
        return min(self.most_s, max(self.least_s, self.share * took_s))


_USUAL = PollPace()


class PolledPlaces:
    """The places without file system events; usually none."""

    def __init__(self) -> None:
        self._places: frozenset[Path] = frozenset()
        self._changed = asyncio.Event()

    def take(self) -> frozenset[Path]:
        """Return the current places: files, and directories with all below. `changed` reports later changes."""
        self._changed.clear()
        return self._places

    def replace(self, places: frozenset[Path]) -> None:
        """Replace the places."""
        if places != self._places:
            self._places = places
            self._changed.set()

    async def changed(self, within_s: float | None) -> None:
        """Wait until the places differ from those last taken, or for `within_s` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._changed.wait()


async def poll(
    unseen: PolledPlaces,
    pending: DebouncedChanges,
    look: Look,
    *,
    pace: PollPace = _USUAL,
    now_ns: ClockNs = time.time_ns,
) -> None:
    """Mark changes in places without events, until cancelled.

    The files are compared with their state at the last check and not with the index, so that passes, and searches that wait for
    them, are needed only for changes.

    Args:
        unseen: The places.
        pending: Receives the marks.
        look: Returns the stamps of the files in some places; may block.
        pace: How often to check.
        now_ns: Returns Unix time in nanoseconds; see sources.notes.reliable_stamp.
    """
    threads = Threads(1, "memd-poll")
    comparison = PollComparison(look, now_ns)
    failed = ""
    while True:
        wanted = unseen.take()
        if not wanted:
            comparison.forget()
            await unseen.changed(None)
            continue
        try:
            changed = await threads.run(comparison.changed, wanted)
        except Exception as failure:  # noqa: BLE001 - the top of a loop that has to go on: the next look may succeed
            reason = safe_traceback.cause(failure)
            if reason != failed:
                log.warning("poll.failed", reason=reason)
            failed = reason
            await unseen.changed(pace.failed_s)
            continue
        if changed is None or len(changed) > _MANY_PATHS:
            pending.mark_all()
        elif changed:
            pending.mark(changed)
        await unseen.changed(pace.pause_s(comparison.took_s))


class PollComparison:
    """Compares the stamps of the files in some places with those of the last check."""

    def __init__(self, look: Look, now_ns: ClockNs = time.time_ns) -> None:
        """Start without a check.

        Args:
            look: Returns the stamps of the files in some places; may block.
            now_ns: Returns Unix time in nanoseconds; see sources.notes.reliable_stamp.
        """
        self._look = look
        self._now_ns = now_ns
        self._places: frozenset[Path] = frozenset()
        self._before: Looks = {}
        self.took_s = 0.0  # duration of the last check
        self.at = -math.inf  # time.monotonic() at its end

    def changed(self, places: frozenset[Path]) -> frozenset[Path] | None:
        """Return the files that were created, deleted or changed; None if other places were checked last.

        Raises:
            MemdError, OSError: the check failed; the next one is compared with the last successful one.
        """
        # Measured on this thread, so that the load of the event loop does not count.
        began, began_ns = time.monotonic(), self._now_ns()
        after = self._look(places)
        self.at = time.monotonic()
        self.took_s = self.at - began
        changed = differences(self._before, after) if places == self._places else None
        self._places = places
        self._before = {file: reliable_stamp(stamp, began_ns) for file, stamp in after.items()}
        return changed

    def forget(self) -> None:
        """Forget the last check."""
        self._places, self._before = frozenset(), {}


def differences(before: Looks, after: Looks) -> frozenset[Path]:
    """Return the files that were created, deleted or changed."""
    return frozenset(file for file in before.keys() | after.keys() if before.get(file) != after.get(file))


def look_by_scan(roots: Sequence[Root], max_bytes: int) -> Look:
    """Return a function that returns the stamps of indexable files, by stat calls alone."""

    def look(places: frozenset[Path]) -> Looks:
        looks: dict[Path, Stamp] = {}
        for found in scan(roots, max_bytes=max_bytes, within=places).found.values():
            file = found.file
            stamp = looks.get(file)
            looks[file] = found.stamp if stamp is None else _both(stamp, found.stamp)
        return looks

    return look


def _both(one: Stamp, other: Stamp) -> Stamp:
    """Combine the stamps of two sessions in one database."""
    return Stamp(
        size=one.size + other.size,
        mtime_ns=max(one.mtime_ns, other.mtime_ns),
        inode=one.inode ^ other.inode,
        ctime_ns=one.ctime_ns ^ other.ctime_ns,
    )


async def follow(
    events: AsyncGenerator[Event, None],
    pending: DebouncedChanges,
    look: Look,
    on_health: Callable[[WatcherHealth], None],
    *,
    pace: PollPace = _USUAL,
) -> None:
    """Mark every change of memory, until cancelled.

    Args:
        events: The events of watch.
        pending: Receives the marks.
        look: Returns stamps of files in places without events; see poll.
        on_health: Called with the health of the watcher.
        pace: How often to check places without events.
    """
    unseen = PolledPlaces()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(poll(unseen, pending, look, pace=pace))
        async with aclosing(events):
            async for event in events:
                match event:
                    case PathsChanged():
                        pending.mark(event.paths)
                    case RescanNeeded():
                        pending.mark_all()
                    case WatcherHealth():
                        on_health(event)
                        unseen.replace(event.unseen)
