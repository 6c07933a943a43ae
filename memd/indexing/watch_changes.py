"""Marks what changes on the disk: as events report it, and where the system reports none, by comparing stamps in intervals."""

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
from memd.indexing.pending_changes import PendingChanges
from memd.runtime import safe_traceback
from memd.runtime.threads import Threads
from memd.runtime.timing import ClockNs
from memd.sources.notes import reliable_stamp
from memd.sources.scan import scan
from memd.text.memory_paths import Root
from memd.watch.watcher import Event, PathsChanged, RescanNeeded, WatcherHealth

log = structlog.get_logger()

Looks = Mapping[Path, Stamp]
Look = Callable[[frozenset[Path]], Looks]

# With so many paths at once, looking at everything costs a pass less than looking at each.
_MANY_PATHS = 1000


class PollPace(msgspec.Struct, frozen=True):
    """How often to look.

    A look at 10,000 files takes 0.2 s on a local disk, and then comes every 4 s: a twentieth of one core at most,
    however many files there are. Half a minute a look means a network that should not be asked more often than this.
    """

    least_s: float = 2.0  # between two looks: as soon as a person expects to find what was saved
    share: float = 20.0  # times what the look took
    most_s: float = 600.0
    failed_s: float = 10.0  # after a look that failed

    def pause_s(self, took_s: float) -> float:
        """How long to wait after a look that took so long."""
        return min(self.most_s, max(self.least_s, self.share * took_s))


_USUAL = PollPace()


class PolledPlaces:
    """The places where changes are not seen as they happen; empty as a rule."""

    def __init__(self) -> None:
        self._places: frozenset[Path] = frozenset()
        self._changed = asyncio.Event()

    def take(self) -> frozenset[Path]:
        """What they are now: files, and directories with all below. Later changes are told by changed."""
        self._changed.clear()
        return self._places

    def be(self, places: frozenset[Path]) -> None:
        """From now on, it is these."""
        if places != self._places:
            self._places = places
            self._changed.set()

    async def changed(self, within_s: float | None) -> None:
        """Wait until they are others than were taken, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._changed.wait()


async def poll(
    unseen: PolledPlaces,
    pending: PendingChanges,
    look: Look,
    *,
    pace: PollPace = _USUAL,
    now_ns: ClockNs = time.time_ns,
) -> None:
    """Mark what changes in the unseen places, for ever.

    The files are compared with what they looked like at the look before, not with the index: so a pass, and a search
    that waits for one, is needed only when there is something to do.

    Args:
        unseen: Where to look.
        pending: Where to mark.
        look: What the files in some places look like; it may block.
        pace: How often.
        now_ns: Unix time in nanoseconds; see sources.notes.reliable_stamp.
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
    """What the files in some places look like, compared with the look before."""

    def __init__(self, look: Look, now_ns: ClockNs = time.time_ns) -> None:
        """Nobody has looked yet.

        Args:
            look: What the files in some places look like; it may block.
            now_ns: Unix time in nanoseconds; see sources.notes.reliable_stamp.
        """
        self._look = look
        self._now_ns = now_ns
        self._places: frozenset[Path] = frozenset()
        self._before: Looks = {}
        self.took_s = 0.0  # the last look
        self.at = -math.inf  # when it ended, by time.monotonic

    def changed(self, places: frozenset[Path]) -> frozenset[Path] | None:
        """The files that came, went or look different; None: nobody looked there before, so anything may have changed.

        Raises:
            MemdError, OSError: the places could not be looked at; the next look is compared with the last that could.
        """
        # Measured where the work is done: what others keep the event loop busy with is not the disk's doing.
        began, began_ns = time.monotonic(), self._now_ns()
        after = self._look(places)
        self.at = time.monotonic()
        self.took_s = self.at - began
        changed = differences(self._before, after) if places == self._places else None
        self._places = places
        self._before = {file: reliable_stamp(stamp, began_ns) for file, stamp in after.items()}
        return changed

    def forget(self) -> None:
        """The next look is the first."""
        self._places, self._before = frozenset(), {}


def differences(before: Looks, after: Looks) -> frozenset[Path]:
    """The files that came, went or look different."""
    return frozenset(file for file in before.keys() | after.keys() if before.get(file) != after.get(file))


def look_by_scan(roots: Sequence[Root], max_bytes: int) -> Look:
    """What the indexable files of these roots look like, by stats alone."""

    def look(places: frozenset[Path]) -> Looks:
        looks: dict[Path, Stamp] = {}
        for found in scan(roots, max_bytes=max_bytes, within=places).found.values():
            stamp = looks.get(found.file)
            looks[found.file] = found.stamp if stamp is None else _both(stamp, found.stamp)
        return looks

    return look


def _both(one: Stamp, other: Stamp) -> Stamp:
    """What tells whether one of two sessions in a database has changed."""
    return Stamp(
        size=one.size + other.size,
        mtime_ns=max(one.mtime_ns, other.mtime_ns),
        inode=one.inode ^ other.inode,
        ctime_ns=one.ctime_ns ^ other.ctime_ns,
    )


async def follow(
    events: AsyncGenerator[Event, None],
    pending: PendingChanges,
    look: Look,
    on_health: Callable[[WatcherHealth], None],
    *,
    pace: PollPace = _USUAL,
) -> None:
    """Mark every change of memory, for ever.

    Args:
        events: Of watch.
        pending: Where to mark.
        look: How to look where no events come from; see poll.
        on_health: Called with whether changes are seen.
        pace: How often to look there.
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
                        unseen.be(event.unseen)
