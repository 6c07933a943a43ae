"""Those who look now and then look at the same moments."""

import pytest

from memd.runtime.ticks import until_next_tick_s


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
