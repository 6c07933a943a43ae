"""Looks for damage that no statement has met yet."""

import asyncio
import logging
from collections.abc import Callable

import structlog

from memd.maintenance.loop import BackgroundTask
from memd.runtime.ticks import until_next_tick_s
from memd.store.errors import StoreDamaged
from memd.store.index import Index

log = structlog.get_logger()

EVERY_S = 3600.0  # a check of 20,000 chunks takes 0.2 s of one core
GONE_S = 10.0  # between two looks whether the file is still there


def check_integrity(
    index: Index, is_busy: Callable[[], bool], *, every_s: float = EVERY_S, gone_s: float = GONE_S
) -> BackgroundTask:
    """Check an index where the daemon before was killed, and then now and then while nothing else goes on.

    Args:
        index: Is open.
        is_busy: Whether a check would be in the way.
        every_s: Between two checks, in seconds.
        gone_s: Between two looks whether the file is still there.
    """
    since_s = 0.0
    is_first = not index.database.ended_cleanly

    async def due() -> None:
        nonlocal since_s, is_first
        while not is_first:
            wait_s = until_next_tick_s(asyncio.get_running_loop().time(), gone_s)
            await asyncio.sleep(wait_s)
            since_s += wait_s
            if index.database.is_gone or (since_s >= every_s and not is_busy()):
                return
        is_first = False

    async def run() -> None:
        nonlocal since_s
        if index.database.is_gone:
            raise StoreDamaged(f"{index.file} was deleted or replaced while memd had it open")
        since_s = 0.0
        await index.database.check()
        log.debug("store.checked", file=str(index.file))

    return BackgroundTask(
        "checking the index", run, due, put_off="store.not_checked", level=logging.INFO, damage=index.damage
    )
