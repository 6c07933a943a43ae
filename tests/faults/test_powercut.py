"""A power cut leaves nothing wrong behind: what it took from the disk is made good by the next daemon (invariant 2)."""

from pathlib import Path

import msgspec
import pytest

from tests.faults.apart import run_apart
from tests.faults.powercut import Tally

_RUN = """
import sys
import msgspec
from tests.faults.powercut import run_powercuts
tally = run_powercuts(int(sys.argv[1]), int(sys.argv[2]), print, ignores_syncs=sys.argv[3] == "True")
open(sys.argv[4], "wb").write(msgspec.json.encode(tally))
"""


def run(tmp_path: Path, cuts: int, seed: int, *, ignores_syncs: bool) -> Tally:
    """What happened after so many power cuts."""
    told = tmp_path / "told.json"
    run_apart(["-c", _RUN, str(cuts), str(seed), str(ignores_syncs), str(told)])
    return msgspec.json.decode(told.read_bytes(), type=Tally)


@pytest.mark.parametrize("cuts", [3, pytest.param(24, marks=pytest.mark.long)])
def test_after_each_power_cut_the_index_becomes_that_of_a_fresh_start(tmp_path: Path, cuts: int) -> None:
    """Whatever was not synced is lost or torn: no damage, no vector is lost that was certain, and no source changes."""
    tally = run(tmp_path, cuts, 1, ignores_syncs=False)
    assert tally.cuts == cuts
    assert tally.losing > cuts // 4
    assert tally.damaged == 0
    assert len(tally.kinds) > min(cuts, 12) * 2 // 3


@pytest.mark.long
def test_a_disk_that_only_says_that_it_syncs_does_damage(tmp_path: Path) -> None:
    """The power cuts are worth something: what is made good after them is not good by itself."""
    assert run(tmp_path, 60, 3, ignores_syncs=True).damaged > 0
