"""A disk that fails stops nothing but what needs it, and nothing is wrong afterwards (invariant 6)."""

from pathlib import Path

import msgspec
import pytest

from tests.faults.apart import run_apart
from tests.faults.failing import Failures


@pytest.mark.long
@pytest.mark.parametrize("days", [24])
def test_days_with_a_failing_disk_end_well(tmp_path: Path, days: int) -> None:
    """Whichever operation fails, and for however long: all answers are true, the daemon lives, and ends in order."""
    told = tmp_path / "told.json"
    run_apart(["-m", "tests.faults", "--json", str(told), "--failures", str(days), "--seed", "6"])
    failures = msgspec.json.decode(told.read_bytes(), type=dict[str, Failures])["failures"]
    assert failures.days == days
    assert failures.met > days // 2
    assert failures.warned > 0
    assert len(failures.errors) >= min(days - 1, 4)
