"""Has the C allocator return free memory to the system."""

import asyncio
import contextlib
import ctypes

LARGE_BYTES = 256 << 10
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def give_back() -> None:
    """Return unused pages to the system (malloc_trim). Blocks, for some milliseconds if there are many.

    Only the GNU C library keeps so many that this is needed; other libraries have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def give_back_beside() -> None:
    """Call give_back on a thread, and do not wait for it; do nothing if no thread can be started."""
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
