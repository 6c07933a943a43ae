"""Sees to it that nothing that was taken out of an index is left in its log."""

import asyncio
from random import Random

import structlog

from memd.errors import TransientError
from memd.runtime.backoff import Backoff
from memd.store.errors import StoreDamaged
from memd.store.index import Index

log = structlog.get_logger()

_AGAIN_S = 2.0
_LONGEST_WAIT_S = 600.0


async def keep_wiping(index: Index, left_over: asyncio.Event, *, again_s: float = _AGAIN_S) -> None:
    """Empty the log of an index whenever something may be left in it that the index holds no more, for ever.

    That may be what better rules have taken out, or what somebody has deleted: until other pages are written over it, it
    would stand in the log.

    Args:
        index: Whose log.
        left_over: Set by whoever has put another index in its place, or taken the last of some text out of it.
        again_s: Between two attempts, where searches leave no moment for it; longer and longer where the disk fails.
    """
    backoff = Backoff(Random(), first_s=again_s, cap_s=_LONGEST_WAIT_S)
    while True:
        await left_over.wait()
        left_over.clear()
        try:
            is_empty = await index.empty_log()
        except (TransientError, StoreDamaged) as trouble:
            wait_s = backoff.failed()
            log.warning("sync.log_not_emptied", reason=str(trouble), wait_s=round(wait_s, 1))
        else:
            backoff.reset()
            wait_s = again_s
            if is_empty:
                continue
        asyncio.get_running_loop().call_later(wait_s, left_over.set)
