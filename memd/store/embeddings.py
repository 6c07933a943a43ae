"""embeddings.sqlite: vectors by text hash, for all agents. What was paid for, kept when an index goes."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import structlog

from memd.model import TextHash
from memd.store import index
from memd.store.database import Database, StoreDamaged

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()

LOOKUP = 400  # hashes a statement

Space = tuple[str, str, str]  # provider, model, provider key


class EmbeddingStore:
    """Vectors and refusals of every embedding space, keyed by the text's hash.

    A file that turns out to be damaged is set aside whenever that shows, and a new one made: it only saves work, and
    no index may have to wait for it.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._database = Database(file, "embeddings")
        self._mending = asyncio.Lock()

    async def open(self) -> None:
        """Open the file; a damaged one is set aside and a new one made: the indexes keep their vectors.

        Raises:
            StoreUnavailable, StoreNewer.
        """
        try:
            await self._database.open()
        except StoreDamaged as damage:
            await self._start_anew(self._database, damage)

    async def _start_anew(self, broken: Database, damage: StoreDamaged) -> None:
        async with self._mending:
            if self._database is not broken:
                return  # another request met the same damage first
            await broken.close()
            aside = index.set_aside(self.file)
            log.warning("store.set_aside", file=str(self.file), kept_as=str(aside), reason=str(damage))
            fresh = Database(self.file, "embeddings")
            await fresh.open()
            self._database = fresh

    async def _read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        database = self._database
        try:
            return await database.read(fn, *args, **kwargs)
        except StoreDamaged as damage:
            await self._start_anew(database, damage)
            return await self._database.read(fn, *args, **kwargs)

    async def _write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        database = self._database
        try:
            return await database.write(fn, *args, **kwargs)
        except StoreDamaged as damage:
            await self._start_anew(database, damage)
            return await self._database.write(fn, *args, **kwargs)

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()

    async def get(self, space: Space, hashes: Sequence[TextHash], now: float) -> dict[TextHash, bytes]:
        """The vectors that are cached; a hit becomes as young as now."""
        found = await self._read(_get, space, hashes)
        if found:
            await self._write(_touch, space, list(found), now)
        return found

    async def put(self, space: Space, vectors: Mapping[TextHash, bytes], now: float) -> None:
        """Cache vectors."""
        await self._write(_put, space, vectors, now)

    async def refused(self, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Those of the texts that are set aside."""
        return await self._read(_refused, space, hashes)

    async def refuse(self, space: Space, text_hash: TextHash, reason: str, now: float) -> None:
        """Set a text aside."""
        await self._write(_refuse, space, text_hash, reason, now)

    async def forget(self, space: Space, hashes: Sequence[TextHash]) -> None:
        """Delete what is known of texts: vectors and refusals."""
        await self._write(_forget, space, hashes)

    async def prune(self, max_entries: int) -> int:
        """Delete the vectors that were not used for longest; how many."""
        return await self._write(_prune, max_entries)


def _select(
    table: str, columns: str, connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]
) -> list[tuple[bytes, ...]]:
    found: list[tuple[bytes, ...]] = []
    unique = list(dict.fromkeys(hashes))
    for start in range(0, len(unique), LOOKUP):
        some = unique[start : start + LOOKUP]
        marks = ",".join("?" * len(some))
        rows: list[tuple[bytes, ...]] = connection.execute(
            f"SELECT {columns} FROM {table} WHERE provider = ? AND model = ? AND provider_key = ? AND hash IN ({marks})",
            (*space, *some),
        ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
        found += rows
    return found


def _get(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
    rows = _select("cache", "hash, vector", connection, space, hashes)
    return {TextHash(row[0]): row[1] for row in rows}


def _refused(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
    return frozenset(TextHash(row[0]) for row in _select("set_aside", "hash", connection, space, hashes))


def _touch(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash], now: float) -> None:
    connection.executemany(
        "UPDATE cache SET used_at = ? WHERE provider = ? AND model = ? AND provider_key = ? AND hash = ?",
        [(now, *space, text_hash) for text_hash in hashes],
    )


def _put(connection: apsw.Connection, space: Space, vectors: Mapping[TextHash, bytes], now: float) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO cache (provider, model, provider_key, hash, vector, used_at) VALUES (?, ?, ?, ?, ?, ?)",
        [(*space, text_hash, vector, now) for text_hash, vector in vectors.items()],
    )


def _refuse(connection: apsw.Connection, space: Space, text_hash: TextHash, reason: str, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO set_aside (provider, model, provider_key, hash, reason, at) VALUES (?, ?, ?, ?, ?, ?)",
        (*space, text_hash, reason, now),
    )


def _forget(connection: apsw.Connection, space: Space, hashes: Sequence[TextHash]) -> None:
    for table in ("cache", "set_aside"):
        connection.executemany(
            f"DELETE FROM {table} WHERE provider = ? AND model = ? AND provider_key = ? AND hash = ?",
            [(*space, text_hash) for text_hash in hashes],
        )


def _prune(connection: apsw.Connection, max_entries: int) -> int:
    present: int = connection.execute("SELECT count(*) FROM cache").get
    if present <= max_entries:
        return 0
    connection.execute(
        "DELETE FROM cache WHERE (provider, model, provider_key, hash) IN"
        " (SELECT provider, model, provider_key, hash FROM cache ORDER BY used_at LIMIT ?)",
        (present - max_entries,),
    )
    return connection.changes()


class KnownVectors:
    """What one embedding space holds of texts that were embedded before."""

    def __init__(self, store: EmbeddingStore, space: Space, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._space = space
        self._clock = clock

    async def get(self, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
        """The vectors that are cached; a hit becomes as young as now."""
        return await self._store.get(self._space, hashes, self._clock())

    async def put(self, vectors: Mapping[TextHash, bytes]) -> None:
        """Cache vectors."""
        await self._store.put(self._space, vectors, self._clock())

    async def refused(self, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Those of the texts that are set aside."""
        return await self._store.refused(self._space, hashes)

    async def refuse(self, text_hash: TextHash, reason: str) -> None:
        """Set a text aside."""
        await self._store.refuse(self._space, text_hash, reason, self._clock())

    async def forget(self, hashes: Sequence[TextHash]) -> None:
        """Delete what is known of texts."""
        await self._store.forget(self._space, hashes)
