"""The background tasks of one agent's index, and the triggers that they wait for.

Each function returns one task, which `memd.maintenance.loop` runs: merging the keyword index, truncating the
WAL, checking integrity, refilling the cache of vectors, and deleting backups of older schemas.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from itertools import islice
from typing import Protocol

import structlog

from memd.maintenance.loop import BackgroundTask
from memd.runtime.timers import Clock, until_next_tick_s
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index
from memd.store.integrity import IndexDamage
from memd.store.migrations import BackupCopy, is_old

log = structlog.get_logger()

# Changed files after which merging is worthwhile: it makes a search of the keywords of 20,000 chunks a third
# faster, for work of 0.15 s.
MANY = 100
# Deleted words stay in the keyword index until its segments are merged, so after this time fewer changes
# suffice.
LATE_S = 3600.0


class MaintenanceTriggers:
    """Records changes of one index since its keywords were merged, its WAL was truncated, and the daemon started."""

    def __init__(self, *, late_s: float = LATE_S) -> None:
        """Create triggers that assume changes before the daemon started.

        Args:
            late_s: Seconds after the first change at which the keywords are merged, even if few changes
                follow.
        """
        self.left_over = asyncio.Event()  # text deleted from the index may still be in its WAL
        self.whole = asyncio.Event()  # a pass over everything has succeeded
        self._late_s = late_s
        self._changed = 0
        self._some = asyncio.Event()
        self._some.set()
        self._enough = asyncio.Event()

    def note(self, files: int = MANY) -> None:
        """Record that so many files have changed; without a number, all of them."""
        self._changed += files
        self._some.set()
        if self._changed >= MANY:
            self._enough.set()

    @property
    def is_due(self) -> bool:
        """Whether anything has changed since the keywords were last merged."""
        return self._some.is_set()

    async def enough(self) -> None:
        """Wait until the keywords should be merged; changes from then on count for the next time."""
        await self._some.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._late_s):
                await self._enough.wait()
        self._some.clear()
        self._enough.clear()
        self._changed = 0


def optimize_keywords(index: Index, triggers: MaintenanceTriggers) -> BackgroundTask:
    """Merge the segments of the keyword index in steps, between which edits and searches proceed."""

    async def run() -> None:
        more = await index.tidy_keywords(begin=True)
        while more:
            more = await index.tidy_keywords(begin=False)
        while await index.database.shrink():
            pass
        log.debug("sync.keywords_tidied")
        triggers.left_over.set()  # the keyword index no longer contains words of deleted texts

    return BackgroundTask(
        "optimizing keywords", run, triggers.enough, put_off="sync.keywords_not_tidied", damage=index.damage
    )


_AGAIN_S = 2.0


def truncate_wal(index: Index, triggers: MaintenanceTriggers, *, again_s: float = _AGAIN_S) -> BackgroundTask:
    """Truncate the WAL of an index whenever it may contain text that was deleted from the index.

    Such text, removed by improved redaction or deleted by its owner, would stay in the WAL until other pages
    overwrite it.

    Args:
        index: The index whose WAL is truncated.
        triggers: Say whether text is left over.
        again_s: Seconds between two attempts while searches leave no moment for it.
    """

    async def run() -> None:
        triggers.left_over.clear()
        if not await index.database.truncate_wal():
            asyncio.get_running_loop().call_later(again_s, triggers.left_over.set)

    return BackgroundTask(
        "emptying the log", run, triggers.left_over.wait, put_off="sync.log_not_emptied", damage=index.damage
    )


BACKUPS_EVERY_S = 3600.0  # a backup is kept for a day, so a check per hour is enough
CHECK_EVERY_S = 3600.0  # a check of 20,000 chunks takes 0.2 s of one core
GONE_S = 10.0  # between two checks whether the file still exists


def check_integrity(
    index: Index, is_busy: Callable[[], bool], *, every_s: float = CHECK_EVERY_S, gone_s: float = GONE_S
) -> BackgroundTask:
    """Check an index after the previous daemon was killed, and then regularly while nothing else runs.

    Args:
        index: The index, open.
        is_busy: Returns whether a check would be in the way.
        every_s: Seconds between two checks.
        gone_s: Seconds between two checks whether the file still exists.
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


BATCH = 400  # texts looked up at a time


async def refill(index: Index, cache: EmbeddingStore) -> int:
    """Copy vectors that the index has and the cache lacks into the cache; return how many were copied.

    Only what can be read is copied: vectors that cannot be read are embedded again when they are needed.
    """
    done = 0
    try:
        fingerprint = await index.fingerprint()
        if fingerprint is None or fingerprint.space is None:
            return 0
        known = KnownVectors(cache, fingerprint.space)
        hashes = iter(await index.embedded())
        while some := list(islice(hashes, BATCH)):
            there = (await known.look_up(some)).vectors
            missing = await index.vectors_of([one for one in some if one not in there])
            if missing:
                await known.put(missing)
                done += len(missing)
    except (StoreDamaged, StoreUnavailable) as trouble:
        log.warning("cache.refill_cut_short", index=index.file.name, reason=str(trouble))
    if done:
        log.info("cache.refilled", index=index.file.name, vectors=done)
    return done


def refill_cache(index: Index, cache: EmbeddingStore) -> BackgroundTask:
    """Refill the cache if it is new, after the previous daemon was killed, and whenever it was replaced by an empty one.

    After a power cut the cache may lack vectors that the index has, because caching a vector does not wait
    for the disk.
    """
    seen = 0  # so that replacements from before this index was opened count, too
    is_first = not cache.ended_cleanly

    async def due() -> None:
        nonlocal seen, is_first
        if not is_first:
            seen = await cache.renewed.since(seen)
        is_first = False

    async def run() -> None:
        await refill(index, cache)

    return BackgroundTask("refilling the cache", run, due)


class UpgradedDatabase(Protocol):
    """A database whose schema may have been upgraded."""

    @property
    def copies(self) -> tuple[BackupCopy, ...]:
        """The backups from before its upgrades."""
        ...

    async def check(self) -> None:
        """Check the database.

        Raises:
            StoreDamaged: it is damaged.
            StoreUnavailable, StoreClosed: it cannot be read.
        """
        ...

    async def drop_copies(self, which: Collection[BackupCopy]) -> None:
        """Delete backups.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: some still exist.
        """
        ...


def delete_backups(
    store: UpgradedDatabase,
    whole: asyncio.Event,
    damage: IndexDamage | None,
    *,
    every_s: float = BACKUPS_EVERY_S,
    clock: Clock = time.time,
) -> BackgroundTask:
    """Check regularly whether backups of a database can be deleted.

    A backup is deleted when it is old, a pass over everything has succeeded with the database since the
    daemon started, and SQLite finds the database intact. An index that was rebuilt needs no backup in any
    case, as nothing in it is from the old one.

    Args:
        store: The database, open.
        whole: Set once a pass over everything has succeeded with it.
        damage: Where damage is reported; None: the store replaces its file itself.
        every_s: Seconds between two checks.
        clock: Returns Unix time.
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
