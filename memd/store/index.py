"""The index of one agent: its database together with the vectors in memory."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray

from memd.model import Chunk, ChunkId, FoundFile, Kind, TextHash
from memd.store import chunks, files, keywords, matrix, meta, vectors
from memd.store.database import Database, StoreDamaged

log = structlog.get_logger()

T = TypeVar("T")
Floats = NDArray[np.float32]


class Reader:
    """Chunks of one state of an index, for whoever ranks them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def places(self, chunk_ids: Sequence[ChunkId]) -> list[chunks.Place]:
        """Where chunks stand; those that are gone are left out."""
        return chunks.places(self._connection, chunk_ids)

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, chunks.StoredChunk]:
        """Chunks with their text; those that are gone are left out."""
        return chunks.texts(self._connection, chunk_ids)


class Index:
    """Files, chunks, keywords and vectors of one agent."""

    def __init__(self, file: Path) -> None:
        self.file = file
        extension, self.extension_trouble = vectors.find_extension()
        self._extension = extension
        self._database = Database(file, "index", extension=extension, prepare=keywords.prepare)
        self._matrix: matrix.Matrix | None = None

    async def open(self) -> None:
        """Open the file; one that is damaged is set aside under another name, and a new one made.

        Raises:
            StoreUnavailable, StoreNewer.
        """
        try:
            await self._database.open()
        except StoreDamaged as damage:
            await self.start_over(damage)

    async def start_over(self, damage: StoreDamaged) -> None:
        """Set the file aside under another name, and begin with an empty one.

        Raises:
            StoreUnavailable.
        """
        await self._database.close()
        aside = set_aside(self.file)
        log.warning("store.set_aside", file=str(self.file), kept_as=str(aside), reason=str(damage))
        self._database = Database(self.file, "index", extension=self._extension, prepare=keywords.prepare)
        self._matrix = None
        await self._database.open()

    async def close(self) -> None:
        """Close the file, rolling back a write that is under way."""
        await self._database.close()

    # --- what it was built for

    async def fingerprint(self) -> meta.Fingerprint | None:
        """What the index was built for."""
        return await self._database.read(meta.get_fingerprint)

    async def adopt(self, fingerprint: meta.Fingerprint) -> None:
        """Remember what the index is built for, make room for vectors of that size, and load those there are."""

        def prepare(connection: apsw.Connection) -> matrix.Matrix | None:
            stored = meta.get_fingerprint(connection)
            kept = fingerprint
            if fingerprint.provider is None and stored is not None:
                # No provider today: the vectors stay as they are, for the day it is back.
                kept = msgspec.structs.replace(
                    fingerprint,
                    provider=stored.provider,
                    model=stored.model,
                    key=stored.key,
                    dimensions=stored.dimensions,
                )
            meta.put_fingerprint(connection, kept)
            if fingerprint.dimensions is None:
                return None
            vectors.prepare(connection, fingerprint.dimensions)
            loaded = matrix.Matrix(fingerprint.dimensions)
            loaded.fill(*vectors.load(connection))
            return loaded

        loaded = await self._database.write(prepare)
        if loaded is not None:
            self._matrix = loaded

    # --- what sync does

    async def known(self, within: Collection[str] | None = None) -> dict[str, files.KnownFile]:
        """Indexed files by path: those of some paths, those below them, and maybe others; None: all."""
        return await self._database.read(files.known, within)

    async def find(self, path: str) -> files.KnownFile | None:
        """One indexed file."""
        return await self._database.read(files.find, path)

    async def restamp(self, found: Sequence[FoundFile]) -> None:
        """Remember the new stamps of files whose content is the same."""

        def restamp_all(connection: apsw.Connection) -> None:
            for one in found:
                files.restamp(connection, one)

        if found:
            await self._database.write(restamp_all)

    async def replace(
        self,
        found: FoundFile,
        content_hash: bytes,
        cut: Sequence[Chunk],
        vector_of: Mapping[TextHash, bytes],
        refused: frozenset[TextHash],
    ) -> files.Replaced:
        """Make the index hold exactly these chunks for a file, in one transaction."""
        [replaced] = await self.replace_all([files.Change(found, content_hash, cut)], vector_of, refused)
        return replaced

    async def replace_all(
        self,
        changes: Sequence[files.Change],
        vector_of: Mapping[TextHash, bytes],
        refused: frozenset[TextHash],
    ) -> list[files.Replaced]:
        """Make the index hold some files as they are now, all of them in one transaction.

        Args:
            changes: The files, with all their chunks.
            vector_of: Float32 vectors that are known already, by text hash.
            refused: Hashes of texts that are set aside.
        """
        usable = vector_of if self._matrix is not None else {}

        def replace_each(connection: apsw.Connection) -> list[files.Replaced]:
            return [files.replace(connection, change, usable, refused) for change in changes]

        done = await self._database.write(replace_each)
        if self._matrix is not None:
            for replaced in done:
                self._matrix.remove(replaced.removed)
                self._matrix.add(replaced.embedded)
        return done

    async def remove(self, paths: Sequence[str]) -> None:
        """Take files out, in one transaction."""
        gone = await self._database.write(files.remove, paths)
        if self._matrix is not None:
            self._matrix.remove(gone)

    async def waiting(
        self, limit: int, passed_over: frozenset[ChunkId] = frozenset()
    ) -> list[chunks.WaitingChunk]:
        """Chunks that wait for a vector, the most wanted first; none where vectors have no place."""
        return [] if self._matrix is None else await self._database.read(chunks.waiting, limit, passed_over)

    async def add_vectors(self, rows: Sequence[tuple[ChunkId, TextHash, bytes]]) -> int:
        """Store vectors of chunks that still are what was embedded; how many were."""
        if self._matrix is None:
            return 0
        vector_of = {chunk_id: vector for chunk_id, _, vector in rows}
        stored = await self._database.write(vectors.add, rows)
        self._matrix.add([(chunk_id, kind, vector_of[chunk_id]) for chunk_id, kind in stored])
        return len(stored)

    async def set_aside(self, text_hash: TextHash) -> None:
        """Mark the chunks of a text that no provider will ever embed."""
        await self._database.write(chunks.set_aside, text_hash)

    async def hashes(self) -> list[TextHash]:
        """The hash of every chunk's embedded text."""
        return await self._database.read(chunks.hashes)

    async def counts(self) -> chunks.Counts:
        """How much the index holds."""
        return await self._database.read(chunks.counts)

    # --- what a search reads

    async def keywords(
        self, match: str, limit: int, kinds: Collection[Kind]
    ) -> list[tuple[ChunkId, keywords.Match]]:
        """The best keyword matches by chunk, best first.

        Raises:
            StoreDamaged: the keyword index is broken.
        """
        return await self._database.read(keywords.search, match, limit, kinds)

    @property
    def has_vectors(self) -> bool:
        """Whether there is any vector to compare with."""
        return self._matrix is not None and len(self._matrix) > 0

    def snapshot(self) -> matrix.Rows | None:
        """The vectors of this moment, for matrix.nearest and matrix.cosines."""
        return None if self._matrix is None else self._matrix.snapshot()

    async def read(self, use: Callable[["Reader"], T]) -> T:
        """Run use(reader) on a thread, over one state of the index."""
        return await self._database.read(lambda connection: use(Reader(connection)))

    # --- a rebuild

    async def start_ids_at(self, first: int) -> None:
        """Give chunk ids from here on."""

        def start(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'chunks'")
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('chunks', ?)", (first - 1,))

        await self._database.write(start)

    async def become(self, other: "Index") -> None:
        """Take over the content of an index that was built beside this one, and has been handed over."""
        built = await other.hand_over()
        await self._database.replace_from(other.file)
        self._matrix = built
        # Only now: until the vectors fit the content, searches find by keywords alone.
        await self._database.checkpoint(wait=False)

    async def hand_over(self) -> matrix.Matrix | None:
        """Put everything into the file itself and close it; the vectors in memory go to whoever takes the file."""
        await self._database.checkpoint(wait=True)
        await self.close()
        return self._matrix

    @property
    def store_bytes(self) -> int:
        """Size of the database on disk, its log included."""
        total = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                total += Path(f"{self.file}{suffix}").stat().st_size
        return total


def set_aside(file: Path) -> Path:
    """Move a damaged database out of the way; its new name. The log of it goes too: it belongs to that file."""
    number = next(n for n in range(1, 1_000_000) if not Path(f"{file}.damaged-{n}").exists())
    aside = Path(f"{file}.damaged-{number}")
    file.rename(aside)
    remove_logs(file)
    return aside


def remove_logs(file: Path) -> None:
    """Delete the -wal and -shm of a database that is not there any more."""
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)


def remove(file: Path) -> None:
    """Delete a database."""
    file.unlink(missing_ok=True)
    remove_logs(file)
