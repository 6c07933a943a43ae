"""When to scan everything although nothing is known to have changed."""

import asyncio
import sys
import time
from collections.abc import Callable

import msgspec
import structlog

from memd.indexing.pending_changes import PendingChanges
from memd.runtime.timing import until_next_tick_s

log = structlog.get_logger()

# Clocks are read one after the other, and a busy machine does something else in between.
_SLACK_S = 2.0

TICK_S = 6.0  # between two looks at the clocks, each of which costs every agent of an idle daemon


class ClockReading(msgspec.Struct, frozen=True):
    """Three clocks at one moment, in seconds."""

    awake: float  # stands still while the machine sleeps
    elapsed: float  # does not
    wall: float  # Unix time; people and networks set it


class ScanSchedule:
    """Tells when a scan is due, whatever the machine and its clocks do."""

    def __init__(self, interval_s: float, now: ClockReading) -> None:
        """A scan has just begun.

        Args:
            interval_s: Between two scans, the sleep of the machine included; 0: only the clocks cause any.
            now: What the clocks say.
        """
        self._interval_s = interval_s
        self._scanned_at = now.elapsed
        self._last = now

    def due(self, now: ClockReading) -> str | None:
        """Why a scan is due, which then counts as begun; None where none is. To be asked every few seconds."""
        last, self._last = self._last, now
        awake, elapsed, wall = now.awake - last.awake, now.elapsed - last.elapsed, now.wall - last.wall
        if elapsed - awake > _SLACK_S:
            reason = "the machine was asleep"
        elif abs(wall - elapsed) > _SLACK_S:
            # A machine that its host paused sees only this. What happened meanwhile on disks it shares, it does not.
            reason = "the clock was set"
        elif self._interval_s and now.elapsed - self._scanned_at >= self._interval_s:
            reason = "the interval is over"
        else:
            return None
        self._scanned_at = now.elapsed
        return reason


def read_clocks() -> ClockReading:
    """The clocks of this machine."""
    if sys.platform == "darwin":
        awake, elapsed = time.CLOCK_UPTIME_RAW, time.CLOCK_MONOTONIC
    elif sys.platform == "linux":
        awake, elapsed = time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME
    else:
        awake = elapsed = time.CLOCK_MONOTONIC
    return ClockReading(time.clock_gettime(awake), time.clock_gettime(elapsed), time.time())


async def scan_periodically(
    pending: PendingChanges,
    interval_s: float,
    *,
    clocks: Callable[[], ClockReading] = read_clocks,
    tick_s: float = TICK_S,
) -> None:
    """Find what no watcher saw, for ever.

    Args:
        pending: Where to mark.
        interval_s: See ScanSchedule.
        clocks: Of this machine.
        tick_s: How often to look at them. No timer is set for the interval: most stand still while the machine sleeps.
    """
    schedule, loop = ScanSchedule(interval_s, clocks()), asyncio.get_running_loop()
    while True:
        await asyncio.sleep(until_next_tick_s(loop.time(), tick_s))
        reason = schedule.due(clocks())
        if reason is not None:
            log.info("sync.scan_due", reason=reason)
            pending.mark_all()
