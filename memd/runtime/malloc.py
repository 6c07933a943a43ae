"""Has the C allocator return free memory to the system."""

import asyncio
import contextlib
import ctypes

LARGE_BYTES = 256 << 10
ARENAS = 2
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h
_ARENAS_OPTION = -8  # M_ARENA_MAX


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
    _set(_MMAP_THRESHOLD, LARGE_BYTES)


def share_arenas() -> None:
    """Have all threads allocate from ARENAS arenas; call it before there are threads.

    The GNU C library makes one for each thread, up to eight for each processor, and each keeps what its thread has freed. Threads
    of the daemon seldom allocate at the same time: most hold the lock of the interpreter meanwhile.
    """
    _set(_ARENAS_OPTION, ARENAS)


def _set(option: int, value: int) -> None:
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(option, value)
