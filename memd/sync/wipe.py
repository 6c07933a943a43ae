"""Sees to it that nothing of an index that was replaced is left in its files."""

import asyncio

import structlog

from memd.errors import TransientError
from memd.store.index import Index
from memd.store.trouble import StoreDamaged

log = structlog.get_logger()

_AGAIN_S = 2.0


async def keep_wiping(index: Index, replaced: asyncio.Event, *, again_s: float = _AGAIN_S) -> None:
    """Empty the log of an index whenever it was replaced, for ever.

    What the old one said may be what better rules have taken out: until other pages are written over it, it would
    stand in the log.

    Args:
        index: Whose log.
        replaced: Set by whoever has put another index in its place.
        again_s: Between two attempts, where searches leave no moment for it.
    """
    while True:
        await replaced.wait()
        replaced.clear()
        if not await _wiped(index):
            asyncio.get_running_loop().call_later(again_s, replaced.set)


async def _wiped(index: Index) -> bool:
    try:
        return await index.empty_log()
    except (TransientError, StoreDamaged) as trouble:
        log.warning("sync.log_not_emptied", reason=str(trouble))
        return False
