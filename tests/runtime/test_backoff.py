from random import Random

import pytest

from memd.runtime.backoff import Backoff, delay_s


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
