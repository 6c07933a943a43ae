"""How much memory processes hold, and giving back what this one has no use for."""

import ctypes
import os
import sys
from pathlib import Path

LARGE_BYTES = 256 << 10
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def resident_bytes(pid: int, *, platform: str = sys.platform) -> int | None:
    """Memory that a process holds, as `top` has it: what it shares with others counts whole. None: it is gone.

    Args:
        pid: Of a process of this user.
        platform: As sys.platform has it.
    """
    if platform == "linux":
        try:
            return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return None
    # Only here: Linux needs no library for it, and this one takes 3 MB itself.
    import psutil  # noqa: PLC0415

    try:
        held: int = psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None
    return held


def give_back() -> None:
    """Have the allocator return pages that nothing is on. Blocks; for some milliseconds where there is much.

    Only the GNU C library keeps so much that this is needed; others have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def return_large_blocks() -> None:
    """Have the allocator return what is LARGE_BYTES or more as soon as it is free, from now on.

    The GNU C library stops doing so once a larger block was freed: what a search reads from disk then stays in the heap
    of each thread that ever searched. It costs a search 0.2 ms.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_MMAP_THRESHOLD, LARGE_BYTES)
