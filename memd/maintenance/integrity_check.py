"""Looks for damage that no statement has met yet."""

import asyncio
from collections.abc import Callable

import structlog

from memd.runtime.ticks import until_beat_s
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable
from memd.store.index import Index

log = structlog.get_logger()

EVERY_S = 3600.0  # a check of 20,000 chunks takes 0.2 s of one core
GONE_S = 10.0  # between two looks whether the file is still there


async def keep_checking(
    index: Index,
    damaged: Callable[[str], None],
    is_busy: Callable[[], bool],
    *,
    every_s: float = EVERY_S,
    gone_s: float = GONE_S,
) -> None:
    """Check an index where the daemon before was killed, and then now and then while nothing else goes on, for ever.

    Args:
        index: Is open.
        damaged: Told what is wrong.
        is_busy: Whether a check would be in the way.
        every_s: Between two checks, in seconds.
        gone_s: Between two looks whether the file is still there.
    """
    if not index.ended_cleanly:
        await _check(index, damaged)
    since_s = 0.0
    while True:
        wait_s = until_beat_s(asyncio.get_running_loop().time(), gone_s)
        await asyncio.sleep(wait_s)
        since_s += wait_s
        if index.is_gone:
            damaged(f"{index.file} was deleted or replaced while memd had it open")
        elif since_s >= every_s and not is_busy():
            since_s = 0.0
            await _check(index, damaged)


async def _check(index: Index, damaged: Callable[[str], None]) -> None:
    try:
        await index.check()
    except StoreDamaged as damage:
        damaged(str(damage))
    except (StoreUnavailable, StoreClosed) as trouble:
        log.info("store.not_checked", file=str(index.file), reason=str(trouble))
    else:
        log.debug("store.checked", file=str(index.file))
