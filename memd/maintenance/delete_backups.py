"""Deletes the copy of a database of an older schema once what came of it is proven."""

import asyncio
import logging
import time
from collections.abc import Collection
from typing import Protocol

from memd.maintenance.loop import BackgroundTask
from memd.runtime.ticks import Clock
from memd.store.backups import BackupCopy, is_old
from memd.store.index_damage import IndexDamage

EVERY_S = 3600.0  # a copy is kept for a day: one look in an hour is soon enough


class UpgradedDatabase(Protocol):
    """A database that may have been brought up to date."""

    @property
    def copies(self) -> tuple[BackupCopy, ...]:
        """Of it as it was before."""
        ...

    async def check(self) -> None:
        """Look for damage.

        Raises:
            StoreDamaged: there is some.
            StoreUnavailable, StoreClosed: it cannot be looked at.
        """
        ...

    async def drop_copies(self, which: Collection[BackupCopy]) -> None:
        """Delete copies.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: some are still there.
        """
        ...


def delete_backups(
    store: UpgradedDatabase,
    whole: asyncio.Event,
    damage: IndexDamage | None,
    *,
    every_s: float = EVERY_S,
    clock: Clock = time.time,
) -> BackgroundTask:
    """Look now and then whether the copies of a database can go.

    A copy goes when a pass over everything has succeeded with the database in this life of the daemon, SQLite finds nothing
    wrong with it, and the copy is old. An index that was built anew needs none in any case: nothing in it comes from it.

    Args:
        store: Is open.
        whole: Set as soon as a pass over everything has succeeded with it.
        damage: Where damage is reported; None: the store replaces its file itself.
        every_s: Between two looks, in seconds.
        clock: Unix time.
    """
    is_first = True

    async def due() -> None:
        nonlocal is_first
        await whole.wait()
        while True:
            if not is_first:
                await asyncio.sleep(every_s)
            is_first = False
            if store.copies:
                return

    async def run() -> None:
        await store.check()
        now = clock()
        proven = [copy for copy in store.copies if is_old(now - copy.made_at)]
        if proven:
            await store.drop_copies(proven)

    return BackgroundTask(
        "deleting old copies" + ("" if damage else " of the cache"),
        run,
        due,
        put_off="store.not_proven",
        level=logging.INFO,
        damage=damage,
    )
