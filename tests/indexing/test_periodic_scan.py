"""When to scan everything although nothing is known to have changed."""

import asyncio
from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace

import pytest

from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.periodic_scan import ClockReading, ScanSchedule, read_clocks, scan_periodically
from memd.runtime.timers import Debouncer
from tests.bounds import shipped
from tests.clock import for_s, hastily, now_s
from tests.wait import until_async

START = ClockReading(awake=1000.0, elapsed=5000.0, wall=1_700_000_000.0)
DAY = 86_400.0


def after(awake: float, *, asleep: float = 0.0, set_by: float = 0.0) -> ClockReading:
    """The clocks after some time awake and asleep, the wall clock set forward by something."""
    return ClockReading(
        START.awake + awake, START.elapsed + awake + asleep, START.wall + awake + asleep + set_by
    )


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (after(2), None),
        (after(599), None),
        (after(600), "the interval is over"),
        (after(2, asleep=3), "the machine was asleep"),
        (after(2, asleep=DAY), "the machine was asleep"),
        (after(2, asleep=1), None),
        (after(2, set_by=7200), "the clock was set"),
        (after(2, set_by=-30 * DAY), "the clock was set"),
        (after(2, set_by=-0.5), None),
        (after(600, set_by=-DAY), "the clock was set"),
    ],
)
def test_due(reading: ClockReading, reason: str | None) -> None:
    """A scan is due after the interval, whenever the machine slept, and when its clock was set by more than a trifle."""
    assert ScanSchedule(600, START).due(reading) == reason


def test_the_interval_counts_sleep() -> None:
    """Many short sleeps, each a trifle, do not stretch the interval, as a timer would have it."""
    timetable = ScanSchedule(600, START)
    readings = [after(10.0 * n, asleep=1.5 * n) for n in range(1, 200)]
    due = [reading.elapsed - START.elapsed for reading in readings if timetable.due(reading)]
    assert due[0] == pytest.approx(600, abs=12)
    assert all(later - earlier <= 612 for earlier, later in pairwise(due))


@pytest.mark.parametrize("jump", [7200, -7200, -400 * DAY])
def test_a_clock_that_is_set_neither_delays_nor_repeats(jump: float) -> None:
    """One scan for the jump; the next one comes an interval later, whatever the clock shows."""
    timetable = ScanSchedule(600, START)
    assert timetable.due(after(2, set_by=jump)) == "the clock was set"
    assert timetable.due(after(4, set_by=jump)) is None
    assert timetable.due(after(601, set_by=jump)) is None
    assert timetable.due(after(602, set_by=jump)) == "the interval is over"


def test_without_an_interval() -> None:
    """Where no scans are wanted, sleep still causes one: nobody saw what happened meanwhile."""
    timetable = ScanSchedule(0, START)
    assert timetable.due(after(100 * DAY)) is None
    assert timetable.due(after(100 * DAY + 2, asleep=60)) == "the machine was asleep"


def test_the_clocks_of_this_machine() -> None:
    """They go forward, and sleep is counted by one of them."""
    first = read_clocks()
    second = read_clocks()
    assert second.awake >= first.awake
    assert second.elapsed >= second.awake - 1
    assert second.wall > 1_700_000_000


@pytest.mark.parametrize(
    ("platform", "clocks"), [("darwin", (8.0, 6.0)), ("linux", (1.0, 7.0)), ("win32", (1.0, 1.0))]
)
def test_which_clocks_count_sleep(
    monkeypatch: pytest.MonkeyPatch, platform: str, clocks: tuple[float, float]
) -> None:
    """On Linux CLOCK_BOOTTIME does and CLOCK_MONOTONIC does not, on macOS CLOCK_MONOTONIC does; elsewhere none is known."""
    made = SimpleNamespace(
        CLOCK_UPTIME_RAW=8, CLOCK_MONOTONIC=6 if platform == "darwin" else 1, CLOCK_BOOTTIME=7
    )
    made.clock_gettime, made.time = float, lambda: 3.0
    monkeypatch.setattr("memd.indexing.periodic_scan.time", made)
    monkeypatch.setattr("memd.indexing.periodic_scan.sys", SimpleNamespace(platform=platform))
    assert read_clocks() == ClockReading(*clocks, 3.0)


async def test_scans_at_once_after_sleep() -> None:
    """Across a sleep of the machine, everything is marked at the first look at the clocks, and once."""
    now = [START]
    pending = DebouncedChanges(Debouncer(quiet_s=1, cap_s=1), asyncio.get_running_loop().time)
    task = asyncio.create_task(scan_periodically(pending, 600, clocks=lambda: now[0], tick_s=0.005))
    try:
        await asyncio.sleep(0)  # it reads the clocks for the first time
        now[0] = after(300)
        assert not pending.count
        now[0] = after(301, asleep=100)
        await until_async(lambda: pending.count)
        assert (await pending.take()).everything
        now[0] = after(890, asleep=100)  # 589 s after that scan, and 890 s awake
        now[0] = after(902, asleep=100)
        await until_async(lambda: pending.count)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_how_often_the_clocks_are_read() -> None:
    """At common moments: the timers of many agents wake the daemon once."""
    tick_s, read = shipped("memd.indexing.periodic_scan.TICK_S"), list[float]()

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def clocks() -> ClockReading:
            read.append(loop.time())
            return START

        pending = DebouncedChanges(Debouncer(quiet_s=1, cap_s=1), loop.time)
        await for_s(3.5 * tick_s, scan_periodically(pending, 600, clocks=clocks))

    hastily(main())
    assert len(read) in {4, 5}
    assert all(at % tick_s == pytest.approx(0.0, abs=0.01) for at in read[1:])


@pytest.mark.parametrize("beyond_s", [0.0, 0.1])
def test_clocks_differ_by_a_little_on_a_busy_machine(beyond_s: float) -> None:
    """What is more is a sleep, or somebody who set one."""
    apart_s = shipped("memd.indexing.periodic_scan._SLACK_S") + beyond_s
    slept = ScanSchedule(0, ClockReading(0.0, 0.0, 0.0)).due(
        ClockReading(10.0, 10.0 + apart_s, 10.0 + apart_s)
    )
    was_set = ScanSchedule(0, ClockReading(0.0, 0.0, 0.0)).due(ClockReading(10.0, 10.0, 10.0 + apart_s))
    assert (slept is not None, was_set is not None) == (beyond_s > 0, beyond_s > 0)


def test_only_what_is_due_is_marked() -> None:
    """A scan each interval, and none in between: each reads the stamps of all files."""

    async def marked_s() -> list[float]:
        pending = DebouncedChanges(Debouncer(quiet_s=1, cap_s=1), now_s)
        scans = asyncio.create_task(
            scan_periodically(pending, 600, clocks=lambda: ClockReading(now_s(), now_s(), now_s()))
        )
        found = []
        for _ in range(3):
            await pending.take()
            found.append(now_s())
        scans.cancel()
        await asyncio.wait([scans])
        return found

    assert hastily(marked_s()) == pytest.approx([600, 1200, 1800], abs=5)
