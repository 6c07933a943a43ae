"""A disk that fails stops nothing but what needs it, and nothing is wrong afterwards (invariant 6)."""

import subprocess
import sys
from pathlib import Path

import msgspec

from tests.daemon.process import ROOT
from tests.faults.failing import Failures


def test_days_with_a_failing_disk_end_well(tmp_path: Path) -> None:
    """Whichever operation fails, and for however long: all answers are true, the daemon lives, and ends in order."""
    told = tmp_path / "told.json"
    ran = subprocess.run(  # in a process of its own because it forks, and threads do not survive that
        [sys.executable, "-m", "tests.faults", "--json", str(told), "--failures", "12", "--seed", "1"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    failures = msgspec.json.decode(told.read_bytes(), type=dict[str, Failures])["failures"]
    assert failures.days == 12
    assert failures.met > 6
    assert failures.warned > 0
    assert len(failures.errors) >= 4
