"""What is freed goes back to the system."""

import ctypes
import os
import subprocess
import sys

import pytest

from memd.runtime.malloc import give_back
from tests.bounds import shipped

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


PROGRAM_OF_THREADS = """
import ctypes, os, sys, threading
from memd.runtime import malloc
if sys.argv[1] == "shared":
    malloc.share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
barrier, addresses = threading.Barrier(8), []

def allocate():
    barrier.wait()
    addresses.append(libc.malloc(1000))
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.fdopen.restype = ctypes.c_void_p
out = libc.fdopen(1, b"w")
libc.malloc_info(0, out)
libc.fflush.argtypes = [ctypes.c_void_p]
libc.fflush(out)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only the GNU C library has arenas")
def test_threads_share_arenas() -> None:
    """Without that, each of several threads has its own."""

    def arenas(how: str) -> int:
        program = [sys.executable, "-c", PROGRAM_OF_THREADS, how]
        usual = {
            name: value
            for name, value in os.environ.items()
            if name not in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
        }
        told = subprocess.run(program, check=True, capture_output=True, text=True, env=usual)
        return told.stdout.count("<heap nr=")

    assert arenas("shared") <= shipped("memd.runtime.malloc.ARENAS") < arenas("not")
