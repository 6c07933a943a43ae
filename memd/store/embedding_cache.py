"""embeddings.sqlite: the cache of vectors by text hash, for all agents; it survives rebuilds of indexes."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw
import msgspec
import structlog

from memd.domain_types import TextHash
from memd.runtime.synchronization import ChangeNotifier
from memd.runtime.timing import Backoff, Clock
from memd.store import recovery
from memd.store.compact_vectors import pack, rounded, unpack
from memd.store.database import Database
from memd.store.errors import StoreDamaged, StoreNewer, StoreUnavailable
from memd.store.migrations import BackupCopy

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()

LOOKUP = 400  # hashes a statement
UNSAVED = 4000  # vectors that are kept in memory while none can be written: 6 MB of 384 dimensions
PRUNED_AT_ONCE = 500  # vectors: 25 ms, in which nothing else is written
# A cache may be larger than it should be by this part, so that not each edit has all of it counted.
PRUNE_SLACK = 64
REOPEN_S = 20.0  # between two attempts at a file that could not be opened or written, at most

Space = tuple[str, str, str]  # provider, model, provider key


class CachedTexts(msgspec.Struct, frozen=True):
    """What the cache knows of some texts, at one moment; of those that are in neither it knows nothing."""

    vectors: Mapping[TextHash, bytes]
    refused: frozenset[TextHash]  # set aside: the provider cannot embed them


class EmbeddingStore:
    """Vectors and refusals of every embedding space, keyed by the text's hash.

    It only saves work, so nothing may have to wait for it. A file that turns out to be damaged is set aside whenever
    that shows, and a new one made. One that cannot be read or written is done without: what comes in meanwhile is kept
    in memory, so that a full disk does not make memd pay for the same text again and again.
    """

    def __init__(self, file: Path, clock: Clock = time.monotonic, rng: Random | None = None) -> None:
        """Does not open the file.

        Args:
            file: Where it is; its directory must exist.
            clock: Seconds, monotonic.
            rng: Source of the jitter of a backoff.
        """
        self.file = file
        self.trouble: str | None = None  # why it is done without
        # Notified whenever a new file took the place of a damaged one, and lacks what indexes still have.
        self.renewed = ChangeNotifier()
        self._clock = clock
        self._rng = rng or Random()
        self._needed = 0  # how many indexes are built from it
        self._troubled = asyncio.Event()
        self._database = Database(file, "embeddings", remakes=True)
        self._open_again_at: float | None = 0.0  # None: it is open
        self._unopened: StoreUnavailable | StoreNewer | None = None  # why it is not, when that was tried last
        self._mending = asyncio.Lock()
        # Vectors that are not written yet, the oldest first.
        self._vectors: dict[tuple[Space, TextHash], tuple[bytes, float]] = {}
        self._refusals: dict[tuple[Space, TextHash], tuple[str, float]] = {}  # likewise
        self._written = 0  # vectors, those included that were there before
        # Vectors in the file, less those written by then; None: not counted yet.
        self._counted: int | None = None

    async def open(self) -> None:
        """Open the file, or do without it until it can be."""
        await self._attempt(self._opened)
        if self._database.read_only is not None:
            self._enter(self._database.read_only)

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()

    async def run(self) -> None:
        """Write what could not be written as soon as it can be; runs until it is cancelled."""
        backoff = Backoff(self._rng, cap_s=REOPEN_S)
        while True:
            await self._troubled.wait()
            await asyncio.sleep(backoff.failed())
            if self._open_again_at is not None:
                self._open_again_at = 0.0
            await self._attempt(self._save)
            if self.trouble is None:
                backoff.reset()

    @property
    def ended_cleanly(self) -> bool:
        """Whether the daemon before this one left a file, and closed it: else a power cut may have taken the last of it."""
        return self._database.ended_cleanly

    def damaged_files(self) -> list[Path]:
        """Damaged files that are kept for inspection, the newest first."""
        return recovery.kept_damaged(self.file)

    @property
    def copies(self) -> tuple[BackupCopy, ...]:
        """Of the file as it was before it was brought up to date, until what came of it is proven."""
        return self._database.copies

    async def drop_copies(self, which: Collection[BackupCopy]) -> None:
        """See Database.drop_copies."""
        await self._database.drop_copies(which)

    async def check(self) -> None:
        """Look for damage; a file that has some is replaced.

        Raises:
            StoreDamaged: it was.
            StoreUnavailable, StoreNewer, StoreClosed.
        """
        database, seen = await self._opened(), self.renewed.version
        try:
            await database.check()
        except StoreDamaged as damage:
            await self._mended(seen, damage)
            raise

    # --- vectors and refusals

    async def look_up(self, space: Space, hashes: Sequence[TextHash], now: float) -> CachedTexts:
        """The vectors that are cached, and the texts that are set aside, by one read; a hit becomes as young as now."""
        unsaved = rounded(
            {
                text_hash: self._vectors[space, text_hash][0]
                for text_hash in hashes
                if (space, text_hash) in self._vectors
            }
        )
        refused = self._unsaved_refusals(space, hashes)
        saved = await self._attempt(self.read, _look_up, space, hashes) or CachedTexts({}, frozenset())
        if saved.vectors and self.trouble is None:
            await self._attempt(self.write, _touch, space, list(saved.vectors), now)
        return CachedTexts({**saved.vectors, **unsaved}, refused | saved.refused)

    async def held(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """The texts whose vectors are cached; they stay as old as they are."""
        unsaved = frozenset(text_hash for text_hash in hashes if (space, text_hash) in self._vectors)
        return unsaved | (await self._attempt(self.read, _held, space, hashes) or frozenset())

    async def put(self, space: Space, vectors: Mapping[TextHash, bytes], now: float) -> None:
        """Cache vectors."""
        for text_hash, vector in vectors.items():
            self._vectors[space, text_hash] = vector, now
        await self._attempt(self._save)
        while len(self._vectors) > UNSAVED:
            del self._vectors[next(iter(self._vectors))]

    async def refused(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Those of the texts that are set aside."""
        unsaved = self._unsaved_refusals(space, hashes)
        return unsaved | (await self._attempt(self.read, _refused, space, hashes) or frozenset())

    def _unsaved_refusals(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        return frozenset(text_hash for text_hash in hashes if (space, text_hash) in self._refusals)

    async def refuse(self, space: Space, text_hash: TextHash, reason: str, now: float) -> None:
        """Set a text aside."""
        self._refusals[space, text_hash] = reason, now
        await self._attempt(self._save)

    async def forget(self, space: Space, hashes: Sequence[TextHash]) -> None:
        """Delete what is known of texts: vectors and refusals. Of what a newer memd wrote nothing is known here.

        Raises:
            StoreUnavailable, StoreDamaged: they are known as before.
        """
        with contextlib.suppress(StoreNewer):
            await self.write(_forget, space, hashes)
        for text_hash in hashes:
            self._vectors.pop((space, text_hash), None)
            self._refusals.pop((space, text_hash), None)

    async def prune(self, max_entries: int, now: float) -> int:
        """Delete some of the vectors that were not used for longest; how many.

        Called until it is 0, it leaves no more than max_entries and a little. None goes within needed().
        """
        most = max_entries + max_entries // PRUNE_SLACK
        if self._needed or (self._counted is not None and self._counted + self._written <= most):
            return 0
        before = self._written
        present = await self._attempt(self.read, count_kept)
        self._counted = None if present is None else present - before
        if present is None or present <= most:
            return 0
        pruned = await self._attempt(self.write, _prune, min(PRUNED_AT_ONCE, present - max_entries), now) or 0
        if self._counted is not None:
            self._counted -= pruned
        return pruned

    @contextlib.contextmanager
    def needed(self) -> Iterator[None]:
        """Have nothing pruned meanwhile: an index that is built anew takes its vectors from here, file by file."""
        self._needed += 1
        try:
            yield
        finally:
            self._needed -= 1

    # --- the file

    async def _attempt(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What work returns; None where the file cannot be used now."""
        try:
            return await work(*args, **kwargs)
        except (StoreUnavailable, StoreDamaged, StoreNewer) as failure:
            self._enter(str(failure))
            return None

    def _enter(self, trouble: str | None) -> None:
        if trouble is None and self.trouble is not None:
            log.info("cache.recovered", file=str(self.file))
        elif trouble is not None and self.trouble is None:
            log.warning("cache.lost", file=str(self.file), reason=trouble)
        self.trouble = trouble
        (self._troubled.clear if trouble is None else self._troubled.set)()

    async def _opened(self) -> Database:
        """The file, opened if it was not.

        Raises:
            StoreUnavailable, StoreNewer: it cannot be; why is remembered for a while.
        """
        async with self._mending:
            if self._open_again_at is None:
                return self._database
            if self._clock() < self._open_again_at and self._unopened is not None:
                raise self._unopened.with_traceback(None)
            self._open_again_at = self._clock() + REOPEN_S
            try:
                try:
                    await self._database.open()
                except StoreDamaged as damage:
                    await self._start_anew(damage)
            except (StoreUnavailable, StoreNewer) as failure:
                self._unopened = failure
                raise
            self._open_again_at = self._unopened = None
            return self._database

    async def _start_anew(self, damage: StoreDamaged) -> None:
        await self._database.exchange(lambda: recovery.set_aside(self.file, str(damage)))
        self._counted = None
        self.renewed.notify()

    async def _mended(self, seen: int, damage: StoreDamaged) -> None:
        async with self._mending:
            if self.renewed.version == seen:  # else another request met the same damage first
                await self._start_anew(damage)

    async def read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...), seeing one state of the file; one that turns out to be damaged is replaced first.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: it cannot be done without here.
        """
        return await self._relying(lambda database: database.read(fn, *args, **kwargs))

    async def write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in one transaction; a file that turns out to be damaged is replaced first.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: nothing of it was written.
        """
        return await self._writing(lambda database: database.write(fn, *args, **kwargs))

    async def write_lasting(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like write; and it is on the disk itself when this returns.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: nothing of it was written.
        """
        return await self._writing(lambda database: database.write_lasting(fn, *args, **kwargs))

    async def _writing(self, write: Callable[[Database], Awaitable[T]]) -> T:
        """What comes of a write to the file, which is made anew before where a sync of it has failed."""

        async def renewed(database: Database) -> T:
            if database.unsynced is not None:
                await database.write_anew()
            return await write(database)

        return await self._relying(renewed)

    async def _relying(self, use: Callable[[Database], Awaitable[T]]) -> T:
        """What comes of a use of the file; of another one, where it is damaged."""
        database, seen = await self._opened(), self.renewed.version
        # What was paid for is not given up because a disk has failed for a moment.
        with contextlib.suppress(StoreDamaged):
            return await use(database)
        try:
            return await use(database)
        except StoreDamaged as damage:
            await self._mended(seen, damage)
            return await use(database)

    async def _save(self) -> None:
        """Write what is not written yet."""
        vectors, refusals = dict(self._vectors), dict(self._refusals)
        await self.write(put_rows, vectors, refusals)
        self._written += len(vectors)
        for saved, unsaved in ((vectors, self._vectors), (refusals, self._refusals)):
            for key, value in saved.items():
                if unsaved.get(key) is value:
                    del unsaved[key]
        # Not before: neither a read nor a prune without a find shows that writing works again.
        self._enter(None)


def _select(
    table: str, columns: str, connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]
) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    unique = list(dict.fromkeys(hashes))
    for start in range(0, len(unique), LOOKUP):
        some = unique[start : start + LOOKUP]
        marks = ",".join("?" * len(some))
        found += connection.execute(
            f"SELECT {columns} FROM {table} WHERE provider = ? AND model = ? AND provider_key = ? AND hash IN ({marks})",
            (*space, *some),
        ).fetchall()
    return found


def _look_up(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> CachedTexts:
    rows = _select("cache", "hash, vector, exponent", connection, space, hashes)
    try:
        vectors = {TextHash(row[0]): unpack(row[1], row[2]) for row in rows}
    except (TypeError, ValueError) as error:
        raise StoreDamaged("a vector in the cache is not what was written there") from error
    return CachedTexts(vectors, _refused(connection, space, hashes))


def _held(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
    return frozenset(TextHash(row[0]) for row in _select("cache", "hash", connection, space, hashes))


def _refused(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
    return frozenset(TextHash(row[0]) for row in _select("set_aside", "hash", connection, space, hashes))


def _touch(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash], now: float) -> None:
    connection.executemany(
        "UPDATE cache SET used_at = ? WHERE provider = ? AND model = ? AND provider_key = ? AND hash = ?",
        [(now, *space, text_hash) for text_hash in hashes],
    )


def put_rows(
    connection: apsw.Connection,
    vectors: Mapping[tuple[Space, TextHash], tuple[bytes, float]],
    refusals: Mapping[tuple[Space, TextHash], tuple[str, float]],
) -> None:
    """Cache vectors and set texts aside, each with the time of now."""
    connection.executemany(
        "INSERT OR REPLACE INTO cache (provider, model, provider_key, hash, vector, exponent, used_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*space, text_hash, *pack(vector), now) for (space, text_hash), (vector, now) in vectors.items()],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO set_aside (provider, model, provider_key, hash, reason, at) VALUES (?, ?, ?, ?, ?, ?)",
        [(*space, text_hash, reason, now) for (space, text_hash), (reason, now) in refusals.items()],
    )


def _forget(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> None:
    for table in ("cache", "set_aside"):
        connection.executemany(
            f"DELETE FROM {table} WHERE provider = ? AND model = ? AND provider_key = ? AND hash = ?",
            [(*space, text_hash) for text_hash in hashes],
        )


def count_kept(connection: apsw.Connection) -> int:
    """The number of vectors in the cache. Reads through its index: 10 ms for 500,000."""
    present: int = connection.execute("SELECT count(*) FROM cache").get
    return present


def _prune(connection: apsw.Connection, most: int, now: float) -> int:
    # After a clock that was ahead, what was used then would stay the youngest for years.
    connection.execute("UPDATE cache SET used_at = ?1 WHERE used_at > ?1", (now,))
    connection.execute(
        "DELETE FROM cache WHERE (provider, model, provider_key, hash) IN"
        " (SELECT provider, model, provider_key, hash FROM cache ORDER BY used_at LIMIT ?)",
        (most,),
    )
    return connection.changes()


class KnownVectors:
    """What one embedding space holds of texts that were embedded before."""

    def __init__(self, store: EmbeddingStore, space: Space, clock: Clock = time.time) -> None:
        self.store = store
        self.space = space
        self._clock = clock

    async def look_up(self, hashes: Sequence[TextHash]) -> CachedTexts:
        """The vectors that are cached, and the texts that are set aside; a hit becomes as young as now."""
        return await self.store.look_up(self.space, hashes, self._clock())

    async def held(self, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """The texts whose vectors are cached; they stay as old as they are."""
        return await self.store.held(self.space, hashes)

    async def put(self, vectors: Mapping[TextHash, bytes]) -> None:
        """Cache vectors."""
        await self.store.put(self.space, vectors, self._clock())

    async def refused(self, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Those of the texts that are set aside."""
        return await self.store.refused(self.space, hashes)

    async def refuse(self, text_hash: TextHash, reason: str) -> None:
        """Set a text aside."""
        await self.store.refuse(self.space, text_hash, reason, self._clock())

    async def prune(self, max_entries: int) -> int:
        """Delete some of the vectors of any space that were not used for longest; how many. See EmbeddingStore.prune."""
        return await self.store.prune(max_entries, self._clock())

    async def forget(self, hashes: Sequence[TextHash]) -> None:
        """Delete what is known of texts."""
        await self.store.forget(self.space, hashes)
