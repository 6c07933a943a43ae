import os
import subprocess
import sys

import pytest

from memd.footprint.processes import give_back, resident_bytes

MB = 1_000_000


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_it_is_told_how_much_a_process_holds(platform: str) -> None:
    """Its own process and another; by the kernel itself, and by the library that other systems need."""
    assert sys.platform == "linux"
    held = resident_bytes(os.getpid(), platform=platform)
    assert held is not None
    assert 10 * MB < held < 4000 * MB
    ballast = b"x" * (100 * MB)
    with_ballast = resident_bytes(os.getpid(), platform=platform)
    assert with_ballast is not None
    assert with_ballast - held > 50 * MB
    assert len(ballast) == 100 * MB
    with subprocess.Popen(["sleep", "60"]) as other:
        assert 0 < (resident_bytes(other.pid, platform=platform) or 0) < 100 * MB
        other.kill()


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_process_that_is_gone_holds_nothing_that_can_be_told(platform: str) -> None:
    """It may end between two looks."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert resident_bytes(gone.pid, platform=platform) is None


PROGRAM = """
import numpy, os
from memd.footprint.processes import give_back, resident_bytes
# The allocator takes large blocks for ordinary ones once such a block was freed.
del [numpy.ones(1 << 20)][:]
blocks = [numpy.ones(1 << 18) for _ in range(100)]  # 2 MB each
pins = [numpy.ones(200) for _ in range(100)]
full = resident_bytes(os.getpid())
del blocks
freed = resident_bytes(os.getpid())
give_back()
print(full, freed, resident_bytes(os.getpid()))
"""


def test_what_is_freed_goes_back_to_the_system() -> None:
    """Whatever the allocator would rather keep."""
    told = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    full, _, left = map(int, told.stdout.split())
    assert full - left > 150 * MB
    give_back()


PROGRAM_OF_LARGE = """
import numpy, os
from memd.footprint.processes import resident_bytes, return_large_blocks
# 16 MB: the allocator takes smaller blocks for ordinary ones once such a block was freed.
del [numpy.ones(1 << 21)][:]
return_large_blocks()
blocks = [(numpy.ones(1 << 16), numpy.ones(200)) for _ in range(200)]  # half a MB, then a little
full = resident_bytes(os.getpid())
blocks = [little for _, little in blocks]
print(full, resident_bytes(os.getpid()))
"""


def test_large_blocks_go_back_as_they_are_freed() -> None:
    """Even after a larger one, and with small ones between them."""
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM_OF_LARGE], check=True, capture_output=True, text=True
    )
    full, left = map(int, told.stdout.split())
    assert full - left > 80 * MB
