import math

import pytest

from memd_client.timeout import checked_timeout, patience_ms
from tests.bounds import shipped


@pytest.mark.parametrize(
    ("left_s", "expected"),
    [
        (None, None),
        (10.0, 9300),
        (1.0, 750),
        (0.3, 85),
        (0.2, 0),
        (0.01, 0),
        (0.0, 0),
        (-5.0, 0),
        (3600.0, 3_419_800),
    ],
)
def test_patience(left_s: float | None, expected: int | None) -> None:
    """The daemon gets a little less time than the caller has left, never less than none."""
    assert patience_ms(left_s) == expected


@pytest.mark.parametrize("timeout", [None, 0.001, 1, 10.0, shipped("memd_client.timeout._LONGEST_S")])
def test_possible_timeouts(timeout: float | None) -> None:
    """Any time that can pass is a timeout, and so is none."""
    assert checked_timeout(timeout) == timeout


@pytest.mark.parametrize(
    "timeout", [0, 0.0, -1, math.nan, math.inf, -math.inf, shipped("memd_client.timeout._LONGEST_S") + 1]
)
def test_impossible_timeouts(timeout: float) -> None:
    """A time in which nothing could be answered, or that no operating system can wait, is refused."""
    with pytest.raises(ValueError, match="timeout"):
        checked_timeout(timeout)
