"""Giving memory back to the system that the allocator would rather keep."""

import asyncio
import contextlib
import ctypes

LARGE_BYTES = 256 << 10
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def give_back() -> None:
    """Have the allocator return pages that nothing is on. Blocks; for some milliseconds where there is much.

    Only the GNU C library keeps so much that this is needed; others have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def give_back_beside() -> None:
    """See give_back; nobody waits for it, and where no thread can be started it is left for the next time."""
    with contextlib.suppress(RuntimeError):
        await asyncio.to_thread(give_back)


def return_large_blocks() -> None:
    """Have the allocator return what is LARGE_BYTES or more as soon as it is free, from now on.

    The GNU C library stops doing so once a larger block was freed: what a search reads from disk then stays in the heap
    of each thread that ever searched. It costs a search 0.2 ms.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_MMAP_THRESHOLD, LARGE_BYTES)
