"""The background tasks of one agent's index, and the triggers that they wait for.

Each function describes one task, which `memd.maintenance.loop` runs: merging of the keyword index, truncation of the WAL,
integrity check, refilling of the cache of vectors, deletion of the copies of an older schema.
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
from memd.runtime.timing import Clock, until_next_tick_s
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index
from memd.store.integrity import IndexDamage
from memd.store.migrations import BackupCopy, is_old

log = structlog.get_logger()

# Files whose change makes it worth while: the keyword index of 20,000 chunks is searched in a third less time
# afterwards, for the work of 0.15 s.
MANY = 100
# The words of what was deleted stay in the keyword index until its parts are merged, so that fewer changes count, too.
LATE_S = 3600.0


class MaintenanceTriggers:
    """Changes of one index since its keywords were put in order, its log was emptied, and the daemon began."""

    def __init__(self, *, late_s: float = LATE_S) -> None:
        """All of it may have changed in an earlier life of the daemon.

        Args:
            late_s: After the first change, in seconds, the keywords are put in order however few follow.
        """
        self.left_over = asyncio.Event()  # text that is in the index no more may still be in its log
        self.whole = asyncio.Event()  # a pass over everything has succeeded
        self._late_s = late_s
        self._changed = 0
        self._some = asyncio.Event()
        self._some.set()
        self._enough = asyncio.Event()

    def note(self, files: int = MANY) -> None:
        """So many files have changed; without a number, all of them."""
        self._changed += files
        self._some.set()
        if self._changed >= MANY:
            self._enough.set()

    @property
    def is_due(self) -> bool:
        """Whether anything has changed since the keywords were last put in order, or that was begun."""
        return self._some.is_set()

    async def enough(self) -> None:
        """Wait until the keywords are to be put in order; what is noted from then on counts for the next time."""
        await self._some.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._late_s):
                await self._enough.wait()
        self._some.clear()
        self._enough.clear()
        self._changed = 0


def optimize_keywords(index: Index, triggers: MaintenanceTriggers) -> BackgroundTask:
    """Merge the parts of the keyword index. Edits and searches go on meanwhile, between two steps."""

    async def run() -> None:
        more = await index.tidy_keywords(begin=True)
        while more:
            more = await index.tidy_keywords(begin=False)
        while await index.database.shrink():
            pass
        log.debug("sync.keywords_tidied")
        triggers.left_over.set()  # the index holds no word any more that is in none of its texts

    return BackgroundTask(
        "optimizing keywords", run, triggers.enough, put_off="sync.keywords_not_tidied", damage=index.damage
    )


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


BACKUPS_EVERY_S = 3600.0  # a copy is kept for a day: one look in an hour is soon enough
CHECK_EVERY_S = 3600.0  # a check of 20,000 chunks takes 0.2 s of one core
GONE_S = 10.0  # between two looks whether the file is still there


def check_integrity(
    index: Index, is_busy: Callable[[], bool], *, every_s: float = CHECK_EVERY_S, gone_s: float = GONE_S
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


BATCH = 400  # texts that are looked up at once


async def refill(index: Index, cache: EmbeddingStore) -> int:
    """Put into the cache what the index has and the cache has not; how many vectors.

    As far as both can be read: what cannot be had is embedded again when it is wanted.
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
    """Refill the cache where it is new or the daemon before was killed, and each time it had to begin anew.

    After a power cut it may lack what the index has: nobody waits for the disk when a vector is cached.
    """
    seen = 0  # also what was lost before this index was opened
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
    every_s: float = BACKUPS_EVERY_S,
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
