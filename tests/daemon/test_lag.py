import asyncio
import time

import pytest

from tests.daemon import lag
from tests.daemon.lag import BOUNDS_MS, Lag
from tests.wait import until_async


@pytest.mark.parametrize(
    ("late_s", "unscheduled_s", "computed_s", "expected_ms"),
    [
        (0.030, 0.0, 0.050, 30.0),  # another thread computed on the second processor
        (0.030, 0.025, 0.030, 5.0),  # the system ran somebody else
        (0.030, 0.0, 0.012, 12.0),  # whoever held the loop up was not running all the time
        (0.0, 0.010, 0.010, 0.0),
    ],
)
def test_only_what_the_process_computed_is_held_against_it(
    late_s: float, unscheduled_s: float, computed_s: float, expected_ms: float
) -> None:
    """Neither other processes nor a lack of processors make a loop look blocked."""
    seen = Lag()
    seen.add(late_s, unscheduled_s, computed_s)
    assert seen.longest_computing_ms == pytest.approx(expected_ms)
    assert seen.longest_ms == pytest.approx(1000 * late_s)
    place = sum(expected_ms > bound for bound in BOUNDS_MS)
    assert [number for number, count in enumerate(seen.computing) if count] == [place]


async def test_a_loop_that_computes_is_seen_to_be_blocked() -> None:
    """A function that does not give way for some time makes the next tick late by that."""
    told: list[Lag] = []
    ticks = 0

    def waited() -> float:
        nonlocal ticks
        ticks += 1
        return 0.0

    watching = asyncio.create_task(lag.watch(told.append, waited))
    await until_async(lambda: ticks > 2)
    end = time.thread_time() + 0.06
    while time.thread_time() < end:
        pass
    before = ticks
    await until_async(lambda: ticks > before + 1)
    watching.cancel()
    await asyncio.wait([watching])
    [seen] = told
    assert seen.longest_computing_ms > 40
    assert seen.longest_ms >= seen.longest_ready_ms >= seen.longest_computing_ms
    assert "blocked" in lag.told(seen)


def test_the_time_without_a_processor_only_grows() -> None:
    """Seconds, since the thread began."""
    assert 0 <= lag.unscheduled_s() <= lag.unscheduled_s()
