"""What is told once in a while."""

import pytest

from memd.runtime.slow_log import RateLimiter


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([], []),
        ([5.0], [0]),
        ([5.0, 14.9, 15.0], [0, None, 1]),
        ([5.0, 5.0, 6.0, 7.0, 100.0, 101.0, 110.0], [0, None, None, None, 3, None, 1]),
        ([0.0, 20.0, 40.0], [0, 0, 0]),
    ],
)
def test_one_is_told_in_ten_seconds(times: list[float], expected: list[int | None]) -> None:
    """The next one says how many were left out in between."""
    limiter = RateLimiter(10.0)
    assert [limiter.suppressed("search", at) for at in times] == expected


def test_kinds_do_not_hide_one_another() -> None:
    """A flood of one is no reason not to hear of another."""
    limiter = RateLimiter()
    assert [limiter.suppressed("search", 1.0) for _ in range(5)] == [0, None, None, None, None]
    assert limiter.suppressed("get", 1.0) == 0
    assert limiter.suppressed("search", 12.0) == 4
