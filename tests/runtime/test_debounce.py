"""When a burst of marks is over."""

import pytest

from memd.runtime.debounce import Debouncer


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
