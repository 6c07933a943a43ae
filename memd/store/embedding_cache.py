"""embeddings.sqlite: the cache of vectors by text hash, shared by all agents; it outlives indexes."""

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
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.timers import Backoff, Clock
from memd.store import recovery
from memd.store.database import Database
from memd.store.errors import StoreDamaged, StoreNewer, StoreUnavailable
from memd.store.int16_vectors import pack, rounded, unpack
from memd.store.migrations import BackupCopy

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()

LOOKUP = 400  # hashes per statement
UNSAVED = 4000  # vectors that are kept in memory while the file cannot be written: 6 MB of 384 dimensions
PRUNED_AT_ONCE = 500  # vectors per step of 25 ms, which blocks other writes
# The fraction by which the cache may exceed its bound, so that not every edit counts all vectors.
PRUNE_SLACK = 64
REOPEN_S = 20.0  # the longest time between two attempts to open or write a failing file

Space = tuple[str, str, str]  # provider, model, provider key


class CachedTexts(msgspec.Struct, frozen=True):
    """What the cache holds of some texts; it may hold neither vector nor refusal of a text."""

    vectors: Mapping[TextHash, bytes]
    refused: frozenset[TextHash]  # texts that the provider cannot embed


class EmbeddingStore:
    """Vectors and refusals of all vector spaces, by text hash.

    The cache only saves work, so nothing waits for it. A damaged file is quarantined when the damage is noticed, and replaced by an
    empty one. While the file cannot be read or written, new vectors are kept in memory, so that a full disk does not make memd pay
    for the same text repeatedly.
    """

    def __init__(self, file: Path, clock: Clock = time.monotonic, rng: Random | None = None) -> None:
        """Create the object; `open` opens the file.

        Args:
            file: The path; its directory must exist.
            clock: Returns seconds, monotonic.
            rng: Source of the jitter of backoffs.
        """
        self.file = file
        self.failure: str | None = None  # why the file cannot be used; None: it can
        # Notified when an empty file has replaced a damaged one, so that it lacks the vectors of indexes.
        self.renewed = ChangeNotifier()
        self._clock = clock
        self._rng = rng or Random()
        self._needed = 0  # the number of indexes that are being rebuilt from it
        self._failing = asyncio.Event()
        self._database = Database(file, "embeddings", remakes=True)
        # The time of the next attempt to open the file; None: it is open.
        self._open_again_at: float | None = 0.0
        # Why the last attempt to open the file failed.
        self._unopened: StoreUnavailable | StoreNewer | None = None
        self._repairing = asyncio.Lock()
        # Vectors that are not written yet, the oldest first.
        self._vectors: dict[tuple[Space, TextHash], tuple[bytes, float]] = {}
        self._refusals: dict[tuple[Space, TextHash], tuple[str, float]] = {}  # likewise, refusals
        self._written = 0  # the number of vectors written, including overwritten ones
        # The number of vectors in the file minus `_written` at that time; None: not counted yet.
        self._counted: int | None = None

    async def open(self) -> None:
        """Open the file; if that fails, work without it until it succeeds."""
        await self._attempt(self._opened)
        if self._database.read_only is not None:
            self._record_failure(self._database.read_only)

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()

    async def run(self) -> None:
        """Write pending vectors as soon as that is possible, until cancelled."""
        backoff = Backoff(self._rng, cap_s=REOPEN_S)
        while True:
            await self._failing.wait()
            await asyncio.sleep(backoff.failed())
            if self._open_again_at is not None:
                self._open_again_at = 0.0
            await self._attempt(self._save)
            if self.failure is None:
                backoff.reset()

    @property
    def ended_cleanly(self) -> bool:
        """Whether the previous daemon left a file and closed it: otherwise a power failure may have lost recent vectors."""
        return self._database.ended_cleanly

    def damaged_files(self) -> list[Path]:
        """Return the quarantined files, the newest first."""
        return recovery.kept_damaged(self.file)

    @property
    def copies(self) -> tuple[BackupCopy, ...]:
        """The backups made before migrations, until the migrated file has proved sound."""
        return self._database.copies

    async def drop_copies(self, which: Collection[BackupCopy]) -> None:
        """See Database.drop_copies."""
        await self._database.drop_copies(which)

    async def check(self) -> None:
        """Check the file for damage; a damaged one is replaced.

        Raises:
            StoreDamaged: it was damaged.
            StoreUnavailable, StoreNewer, StoreClosed.
        """
        database, seen = await self._opened(), self.renewed.version
        try:
            await database.check()
        except StoreDamaged as damage:
            await self._replace_damaged(seen, damage)
            raise

    # --- vectors and refusals

    async def look_up(self, space: Space, hashes: Sequence[TextHash], now: float) -> CachedTexts:
        """Return cached vectors and refusals of texts; found vectors count as used now."""
        unsaved = rounded(
            {
                text_hash: self._vectors[space, text_hash][0]
                for text_hash in hashes
                if (space, text_hash) in self._vectors
            }
        )
        refused = self._unsaved_refusals(space, hashes)
        saved = await self._attempt(self.read, _look_up, space, hashes) or CachedTexts({}, frozenset())
        if saved.vectors and self.failure is None:
            await self._attempt(self.write, _touch, space, list(saved.vectors), now)
        return CachedTexts({**saved.vectors, **unsaved}, refused | saved.refused)

    async def held(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Return the hashes whose vectors are cached; they do not count as used."""
        unsaved = frozenset(text_hash for text_hash in hashes if (space, text_hash) in self._vectors)
        return unsaved | (await self._attempt(self.read, _held, space, hashes) or frozenset())

    async def put(self, space: Space, vectors: Mapping[TextHash, bytes], now: float) -> None:
        """Cache vectors; they are read again as `int16_vectors.rounded` has them."""
        for text_hash, vector in vectors.items():
            self._vectors[space, text_hash] = vector, now
        await self._attempt(self._save)
        while len(self._vectors) > UNSAVED:
            del self._vectors[next(iter(self._vectors))]

    async def refused(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Return the hashes of texts that the provider cannot embed."""
        unsaved = self._unsaved_refusals(space, hashes)
        return unsaved | (await self._attempt(self.read, _refused, space, hashes) or frozenset())

    def _unsaved_refusals(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        return frozenset(text_hash for text_hash in hashes if (space, text_hash) in self._refusals)

    async def refuse(self, space: Space, text_hash: TextHash, reason: str, now: float) -> None:
        """Store that the provider cannot embed a text."""
        self._refusals[space, text_hash] = reason, now
        await self._attempt(self._save)

    async def forget(self, space: Space, hashes: Sequence[TextHash]) -> None:
        """Delete vectors and refusals of texts; does nothing if a newer memd wrote the file.

        Raises:
            StoreUnavailable, StoreDamaged: nothing was deleted.
        """
        with contextlib.suppress(StoreNewer):
            await self.write(_forget, space, hashes)
        for text_hash in hashes:
            self._vectors.pop((space, text_hash), None)
            self._refusals.pop((space, text_hash), None)

    async def prune(self, max_entries: int, now: float) -> int:
        """Delete some of the least recently used vectors; return their number.

        Repeated until it returns 0, it leaves at most max_entries plus the slack. Nothing is deleted within `needed`.
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
        """Prevent pruning meanwhile, since an index is being rebuilt from the cache."""
        self._needed += 1
        try:
            yield
        finally:
            self._needed -= 1

    # --- the file

    async def _attempt(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Await work; return None if the file cannot be used now."""
        try:
            return await work(*args, **kwargs)
        except (StoreUnavailable, StoreDamaged, StoreNewer) as failure:
            self._record_failure(str(failure))
            return None

    def _record_failure(self, failure: str | None) -> None:
        if failure is None and self.failure is not None:
            log.info("cache.recovered", file=str(self.file))
        elif failure is not None and self.failure is None:
            log.warning("cache.lost", file=str(self.file), reason=failure)
        self.failure = failure
        (self._failing.clear if failure is None else self._failing.set)()

    async def _opened(self) -> Database:
        """Return the database, after opening it if necessary.

        Raises:
            StoreUnavailable, StoreNewer: it cannot be opened, or a recent attempt failed.
        """
        async with self._repairing:
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
        await self._database.exchange(lambda: recovery.quarantine(self.file, str(damage)))
        self._counted = None
        self.renewed.notify()

    async def _replace_damaged(self, seen: int, damage: StoreDamaged) -> None:
        async with self._repairing:
            if self.renewed.version == seen:  # otherwise another request has replaced the damaged file
                await self._start_anew(damage)

    async def read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in a read transaction; a damaged file is replaced and read once more.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: the file cannot be read.
        """
        return await self._with_repair(lambda database: database.read(fn, *args, **kwargs))

    async def write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in one transaction; a damaged file is replaced and written once more.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: nothing was written.
        """
        return await self._writing(lambda database: database.write(fn, *args, **kwargs))

    async def write_lasting(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write as `write` does, and sync to disk before returning.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: nothing was written.
        """
        return await self._writing(lambda database: database.write_lasting(fn, *args, **kwargs))

    async def _writing(self, write: Callable[[Database], Awaitable[T]]) -> T:
        """Write to the file; after a failed sync, rewrite the whole file before."""

        async def renewed(database: Database) -> T:
            if database.unsynced is not None:
                await database.write_anew()
            return await write(database)

        return await self._with_repair(renewed)

    async def _with_repair(self, use: Callable[[Database], Awaitable[T]]) -> T:
        """Use the file; if it is damaged, replace it and try once more."""
        database, seen = await self._opened(), self.renewed.version
        # Paid vectors are not given up because of a temporary failure of the disk.
        with contextlib.suppress(StoreDamaged):
            return await use(database)
        try:
            return await use(database)
        except StoreDamaged as damage:
            await self._replace_damaged(seen, damage)
            return await use(database)

    async def _save(self) -> None:
        """Write pending vectors and refusals."""
        vectors, refusals = dict(self._vectors), dict(self._refusals)
        await self.write(put_rows, vectors, refusals)
        self._written += len(vectors)
        for saved, unsaved in ((vectors, self._vectors), (refusals, self._refusals)):
            for key, value in saved.items():
                if unsaved.get(key) is value:
                    del unsaved[key]
        # Not earlier: a read, or a prune without any find, does not prove that writing works.
        self._record_failure(None)


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
    """Insert vectors and refusals, each with the current time."""
    connection.executemany(
        "INSERT OR REPLACE INTO cache (provider, model, provider_key, hash, vector, exponent, used_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (*space, text_hash, *packed, now)
            for ((space, text_hash), (_, now)), packed in zip(
                vectors.items(), pack([vector for vector, _ in vectors.values()]), strict=True
            )
        ],
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
    """Return the number of vectors in the cache; it reads an index only, 10 ms for 500,000."""
    present: int = connection.execute("SELECT count(*) FROM cache").get
    return present


def _prune(connection: apsw.Connection, most: int, now: float) -> int:
    # Otherwise vectors used while the clock was ahead would stay the most recent for years.
    connection.execute("UPDATE cache SET used_at = ?1 WHERE used_at > ?1", (now,))
    connection.execute(
        "DELETE FROM cache WHERE (provider, model, provider_key, hash) IN"
        " (SELECT provider, model, provider_key, hash FROM cache ORDER BY used_at LIMIT ?)",
        (most,),
    )
    return connection.changes()


class KnownVectors:
    """The cache of one vector space."""

    def __init__(self, store: EmbeddingStore, space: Space, clock: Clock = time.time) -> None:
        self.store = store
        self.space = space
        self._clock = clock

    async def look_up(self, hashes: Sequence[TextHash]) -> CachedTexts:
        """Return cached vectors and refusals of texts; found vectors count as used now."""
        return await self.store.look_up(self.space, hashes, self._clock())

    async def held(self, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Return the hashes whose vectors are cached; they do not count as used."""
        return await self.store.held(self.space, hashes)

    async def put(self, vectors: Mapping[TextHash, bytes]) -> None:
        """Cache vectors."""
        await self.store.put(self.space, vectors, self._clock())

    async def refused(self, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Return the hashes of texts that the provider cannot embed."""
        return await self.store.refused(self.space, hashes)

    async def refuse(self, text_hash: TextHash, reason: str) -> None:
        """Store that the provider cannot embed a text."""
        await self.store.refuse(self.space, text_hash, reason, self._clock())

    async def prune(self, max_entries: int) -> int:
        """Delete some of the least recently used vectors of all spaces; return their number. See EmbeddingStore.prune."""
        return await self.store.prune(max_entries, self._clock())

    async def forget(self, hashes: Sequence[TextHash]) -> None:
        """Delete vectors and refusals of texts."""
        await self.store.forget(self.space, hashes)
