"""Whether the engine that was chosen answers, as a table."""

import pytest

from memd.backends.fallback_state import BuiltinInUse, PrimaryInUse, Standing, failed, may_be_tried


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (PrimaryInUse(), 100.0, BuiltinInUse(100.0, "gone", 160.0)),
        (BuiltinInUse(100.0, "slow", 160.0), 170.0, BuiltinInUse(100.0, "gone", 230.0)),
        (BuiltinInUse(100.0, "slow", 160.0), 110.0, BuiltinInUse(100.0, "gone", 170.0)),
    ],
    ids=["at first", "again after the cool-down", "again before its end"],
)
def test_a_failure_begins_a_cool_down(before: Standing, now: float, after: Standing) -> None:
    """The reason is the last one, the beginning the first, and the cool-down begins anew."""
    assert failed(before, "gone", now, 60.0) == after


@pytest.mark.parametrize(
    ("standing", "now", "may"),
    [
        (PrimaryInUse(), 0.0, True),
        (BuiltinInUse(100.0, "gone", 160.0), 159.9, False),
        (BuiltinInUse(100.0, "gone", 160.0), 160.0, True),
        (BuiltinInUse(100.0, "gone", 100.0), 100.0, True),
    ],
)
def test_an_engine_that_failed_is_left_alone_for_a_while(standing: Standing, now: float, may: bool) -> None:
    """Until the cool-down is over; one of no length is over at once."""
    assert may_be_tried(standing, now) is may
