"""The long search for odd inputs tells what it tried, and what it found."""

import re
import subprocess
import sys

import pytest

# In a process of its own: to import it changes how hard every test after it tries.
_SCRIPT = """
import sys
from hypothesis import given, strategies as st
from tests.faults import fuzz

every = [one for kind in (fuzz.KINDS, fuzz.MORE) for tried in kind.values() for one in tried]
assert all(hasattr(one.test, "hypothesis") for one in every)
assert len({id(one.test) for one in every}) == len(every) > 30
assert fuzz.main(["--kind", "environment", "--minutes", "0.001", "--seed", "5"]) == 0

@given(st.integers())
def test_wrong(number):
    assert number < 1000

tally = fuzz.Tally()
fuzz._try(fuzz.Property(test_wrong), 0.1, 7, tally)
print(tally.examples > 1, len(tally.found))
print(tally.found[0])
"""


@pytest.mark.long
def test_what_is_tried_and_found_is_told() -> None:
    """A line for each kind; of a failure its seed and the smallest input."""
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.stderr == ""
    line, tally, *told = ran.stdout.splitlines()
    assert re.fullmatch(r"environment: \d+ examples of 1 tests in \d+ s, nothing found", line)
    assert tally == "True 1"
    assert told[0] == "--- __main__.test_wrong, --seed 7"
    assert "    number=1000," in told
