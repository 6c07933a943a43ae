"""What is freed goes back to the system."""

import subprocess
import sys

from memd.runtime.malloc import give_back

MB = 1_000_000

PROGRAM = """
import numpy, os
from memd.runtime.malloc import give_back
from memd.memory_limit.enforce import resident_bytes
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
from memd.runtime.malloc import return_large_blocks
from memd.memory_limit.enforce import resident_bytes
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
