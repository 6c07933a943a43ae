import os
import subprocess
import sys

import pytest

from memd.memory_limit.process_memory import resident_bytes

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
