from random import Random

import pytest

from memd.runtime.backoff import delay_s


@pytest.mark.parametrize(("failures", "full"), [(1, 1.0), (2, 2.0), (4, 8.0), (7, 60.0), (5000, 60.0)])
def test_waits_double_up_to_the_cap(failures: int, full: float) -> None:
    """Each wait lies between half and all of the doubled one, and never above the cap."""
    waits = [delay_s(failures, Random(seed)) for seed in range(200)]
    assert all(full / 2 <= wait_s <= full for wait_s in waits)
    assert max(waits) - min(waits) > full / 4
