"""Decides when to scan all files although no change is known."""

import asyncio
import sys
import time
from collections.abc import Callable

import msgspec
import structlog

from memd.indexing.debounced_changes import DebouncedChanges
from memd.runtime.timers import until_next_tick_s

log = structlog.get_logger()

# Clocks are read one after the other; on a busy machine time passes in between.
_SLACK_S = 2.0

TICK_S = 6.0  # the period of reading the clocks, paid by each agent of an idle daemon


class ClockReading(msgspec.Struct, frozen=True):
    """Three clocks at one moment, in seconds."""

    awake: float  # does not advance while the machine sleeps
    elapsed: float  # advances while the machine sleeps
    wall: float  # Unix time; may be set by people and networks


class ScanSchedule:
    """Decides when a scan is due, in spite of sleep and clock changes."""

    def __init__(self, interval_s: float, now: ClockReading) -> None:
        """Start with a scan that has just begun.

        Args:
            interval_s: Seconds between two scans, including sleep of the machine; 0: only clock events cause scans.
            now: The current clocks.
        """
        self._interval_s = interval_s
        self._scanned_at = now.elapsed
        self._last = now

    def due(self, now: ClockReading) -> str | None:
        """Return why a scan is due, which then counts as begun; None: none is due. Must be called every few seconds."""
        last, self._last = self._last, now
        awake, elapsed, wall = now.awake - last.awake, now.elapsed - last.elapsed, now.wall - last.wall
        if elapsed - awake > _SLACK_S:
            reason = "the machine was asleep"
        elif abs(wall - elapsed) > _SLACK_S:
            # A machine paused by its host sees only this. It misses what happened meanwhile on shared disks.
            reason = "the clock was set"
        elif self._interval_s and now.elapsed - self._scanned_at >= self._interval_s:
            reason = "the interval is over"
        else:
            return None
        self._scanned_at = now.elapsed
        return reason


def read_clocks() -> ClockReading:
    """Read the clocks of this machine."""
    if sys.platform == "darwin":
        awake, elapsed = time.CLOCK_UPTIME_RAW, time.CLOCK_MONOTONIC
    elif sys.platform == "linux":
        awake, elapsed = time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME
    else:
        awake = elapsed = time.CLOCK_MONOTONIC
    return ClockReading(time.clock_gettime(awake), time.clock_gettime(elapsed), time.time())


async def scan_periodically(
    pending: DebouncedChanges,
    interval_s: float,
    *,
    clocks: Callable[[], ClockReading] = read_clocks,
    tick_s: float = TICK_S,
) -> None:
    """Mark everything whenever a scan is due, until cancelled.

    Args:
        pending: Receives the mark.
        interval_s: See ScanSchedule.
        clocks: Reads the clocks.
        tick_s: The period of reading them. No timer is set for the interval, since most timers stop while the machine sleeps.
    """
    schedule, loop = ScanSchedule(interval_s, clocks()), asyncio.get_running_loop()
    while True:
        await asyncio.sleep(until_next_tick_s(loop.time(), tick_s))
        reason = schedule.due(clocks())
        if reason is not None:
            log.info("sync.scan_due", reason=reason)
            pending.mark_all()
