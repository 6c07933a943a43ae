"""Sees to it that nothing that was taken out of an index is left in its log."""

import asyncio

from memd.maintenance.loop import BackgroundTask
from memd.maintenance.triggers import MaintenanceTriggers
from memd.store.index import Index

_AGAIN_S = 2.0


def truncate_wal(index: Index, triggers: MaintenanceTriggers, *, again_s: float = _AGAIN_S) -> BackgroundTask:
    """Empty the log of an index whenever something may be left in it that the index holds no more.

    That may be what better rules have taken out, or what somebody has deleted: until other pages are written over it, it
    would stand in the log.

    Args:
        index: Whose log.
        triggers: Whether something is left over.
        again_s: Between two attempts, where searches leave no moment for it.
    """

    async def run() -> None:
        triggers.left_over.clear()
        if not await index.database.empty_log():
            asyncio.get_running_loop().call_later(again_s, triggers.left_over.set)

    return BackgroundTask(
        "emptying the log", run, triggers.left_over.wait, put_off="sync.log_not_emptied", damage=index.damage
    )
