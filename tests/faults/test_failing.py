"""A disk that fails stops nothing but what needs it, and nothing is wrong afterwards (invariant 6)."""

from pathlib import Path

import msgspec

from tests.faults.apart import run_apart
from tests.faults.failing import Failures


def test_days_with_a_failing_disk_end_well(tmp_path: Path) -> None:
    """Whichever operation fails, and for however long: all answers are true, the daemon lives, and ends in order."""
    told = tmp_path / "told.json"
    run_apart(["-m", "tests.faults", "--json", str(told), "--failures", "12", "--seed", "1"])
    failures = msgspec.json.decode(told.read_bytes(), type=dict[str, Failures])["failures"]
    assert failures.days == 12
    assert failures.met > 6
    assert failures.warned > 0
    assert len(failures.errors) >= 4
