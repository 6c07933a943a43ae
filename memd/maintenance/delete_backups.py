"""Deletes the copy of a database of an older schema once what came of it is proven."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Protocol

import structlog

from memd.errors import TransientError
from memd.store.backups import BackupCopy, is_old
from memd.store.errors import StoreDamaged

log = structlog.get_logger()

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


async def keep_proving(
    store: UpgradedDatabase,
    whole: asyncio.Event,
    damaged: Callable[[str], None],
    *,
    every_s: float = EVERY_S,
    clock: Callable[[], float] = time.time,
) -> None:
    """Look now and then whether the copies of a database can go, for ever.

    A copy goes when a pass over everything has succeeded with the database in this life of the daemon, SQLite finds nothing
    wrong with it, and the copy is old. An index that was built anew needs none in any case: nothing in it comes from it.

    Args:
        store: Is open.
        whole: Set as soon as a pass over everything has succeeded with it.
        damaged: Told what is wrong with it.
        every_s: Between two looks, in seconds.
        clock: Unix time.
    """
    await whole.wait()
    while True:
        if store.copies:
            await _prove(store, damaged, clock)
        await asyncio.sleep(every_s)


async def _prove(store: UpgradedDatabase, damaged: Callable[[str], None], clock: Callable[[], float]) -> None:
    try:
        await store.check()
        now = clock()
        proven = [copy for copy in store.copies if is_old(now - copy.made_at)]
        if proven:
            await store.drop_copies(proven)
    except StoreDamaged as damage:
        damaged(str(damage))
    except TransientError as trouble:
        log.info("store.not_proven", reason=str(trouble))
