"""Periodic timers tick together, a burst of marks is over at a known time, and the waits after failures grow."""

from random import Random

import pytest

from memd.runtime.timers import Backoff, Debouncer, delay_s, until_next_tick_s


@pytest.mark.parametrize(
    ("now", "period_s", "expected"),
    [(0.0, 2.0, 2.0), (0.5, 2.0, 1.5), (1.75, 2.0, 0.25), (2.0, 2.0, 2.0), (1001.25, 0.5, 0.25)],
)
def test_the_next_tick(now: float, period_s: float, expected: float) -> None:
    """The wait ends at a multiple of the period, and is never over at once."""
    assert until_next_tick_s(now, period_s) == expected


def test_two_of_the_same_period_meet() -> None:
    """Whenever they begin to wait, they end at the same moment."""
    assert {now + until_next_tick_s(now, 2.0) for now in (10.0, 10.5, 11.25, 11.75)} == {12.0}


@pytest.mark.parametrize("now", [0.6, 0.9999999999, 4.3])
def test_the_tick_that_woke_is_over(now: float) -> None:
    """What is left of it by rounding alone is not waited for: an event loop would wake at once, time and again."""
    assert until_next_tick_s(now, 0.1) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("marks", "due_at"),
    [
        ([], None),
        ([10.0], 11.5),
        ([10.0, 10.5], 12.0),
        ([10.0, 11.0, 12.0, 13.0, 14.0], 15.5),
        ([10.0, 11.0, 12.0, 13.0, 14.0, 15.0], 16.0),
        ([10.0, 15.9], 16.0),
        ([10.0, 10.0], 11.5),
    ],
)
def test_due(marks: list[float], due_at: float | None) -> None:
    """The work is due after quiet, and after the cap however many marks follow."""
    debounce = Debouncer(quiet_s=1.5, cap_s=6.0)
    for now in marks:
        debounce.mark(now)
    assert debounce.due_at() == due_at


def test_clear_ends_the_burst() -> None:
    """A mark after the work began is the first of another burst."""
    debounce = Debouncer(quiet_s=1.5, cap_s=6.0)
    debounce.mark(10.0)
    debounce.clear()
    assert debounce.due_at() is None
    debounce.mark(15.0)
    debounce.mark(16.0)
    assert debounce.due_at() == 17.5


def test_no_quiet_asked_for() -> None:
    """Without a quiet time the work is due at once."""
    debounce = Debouncer(quiet_s=0.0, cap_s=0.0)
    debounce.mark(3.0)
    assert debounce.due_at() == 3.0


@pytest.mark.parametrize(("failures", "full"), [(1, 1.0), (2, 2.0), (4, 8.0), (7, 60.0), (5000, 60.0)])
def test_waits_double_up_to_the_cap(failures: int, full: float) -> None:
    """Each wait lies between half and all of the doubled one, and never above the cap."""
    waits = [delay_s(failures, Random(seed)) for seed in range(200)]
    assert all(full / 2 <= wait_s <= full for wait_s in waits)
    assert max(waits) - min(waits) > full / 4


def test_a_success_makes_the_next_failure_a_first_one() -> None:
    """Waits grow with each failure in a row, and begin anew after a reset."""
    backoff = Backoff(Random(1), first_s=1.0, cap_s=8.0)
    full = 1.0
    for _ in range(6):
        assert full / 2 <= backoff.failed() <= full
        full = min(8.0, 2 * full)
    backoff.reset()
    assert backoff.failed() <= 1.0
