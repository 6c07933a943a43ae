"""The vectors that searches of one index use: in memory, or read from disk for each search."""

import asyncio
import contextlib
import time
from collections.abc import Collection, Sequence
from functools import partial

import apsw
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.runtime import malloc
from memd.runtime.threads import NoMemory, NoThread, Threads
from memd.store import disk_vectors, vector_matrix, vector_table
from memd.store.database import Database
from memd.store.embedding_cache import Space
from memd.store.errors import StoreDamaged, StoreUnavailable

REST_S = 1.0  # the longest wait of a search for a running change to end
# The delay after a search of vectors on disk until freed memory is returned to the system. Returning it after each search
# takes an eighth of the processor time, mostly to map the same memory again.
GIVE_BACK_S = 1.0
ANEW_S = 1.0  # between attempts to read the file when memory is short
# Vectors that are added or removed on the event loop, in a few hundred microseconds.
AT_ONCE = 500

Floats = NDArray[np.float32]
# The vectors themselves, or the list of those on disk.
Held = vector_matrix.Matrix | disk_vectors.DiskVectors


class SearchVectors:
    """The vectors of one index with their space. They are changed only while the index holds the change lock."""

    def __init__(
        self, database: Database, changing: asyncio.Lock, *, resident: bool, like: "SearchVectors | None"
    ) -> None:
        """Start without vectors; `load` reads them, and `take` puts them in place.

        Args:
            database: The database of the index.
            changing: The lock that is held during each change of the index.
            resident: Whether the vectors are kept in memory; otherwise searches read them from the file.
            like: The vectors of another index, which decide that for these too; None: `resident` does.
        """
        self.space: Space | None = None  # None: the index has no vector table
        self.has_parts = False  # whether parts of chunks get vectors of that space too
        self.asked_at: float | None = None  # time.monotonic() of the last search that used them
        self.anew_s = ANEW_S  # between attempts to read them into memory
        self._database = database
        self._changing = changing
        self._resident = resident
        self._like = like
        # The vectors, or the list of those on disk; None: the index has no vector table.
        self.held: Held | None = None
        self._following = Threads(1, f"memd-vectors-{database.file.stem}")
        self._making: asyncio.Task[None] | None = None  # quantises vectors in memory
        self._giving_back: asyncio.Task[None] | None = None

    # --- what a search reads

    def current(self) -> tuple[Space, vector_matrix.Rows | disk_vectors.ListedVector] | None:
        """Return a snapshot of the vectors with their space; only a question of the same space may be compared.

        The snapshot is for vector_matrix.scan if the vectors are in memory, and for `nearest` otherwise.
        """
        if self.held is None or self.space is None or not len(self.held):
            return None
        self.asked_at = time.monotonic()
        return self.space, self.held.snapshot()

    def snapshot(self) -> vector_matrix.Rows | None:
        """Return a snapshot of the vectors in memory; None: they are not."""
        return self.held.snapshot() if isinstance(self.held, vector_matrix.Matrix) else None

    def nearest(
        self,
        connection: apsw.Connection,
        known: disk_vectors.ListedVector,
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        also: Collection[ChunkId],
        among: Sequence[vector_matrix.Ids | None] = (None,),
    ) -> disk_vectors.NearVectors | None:
        """Call disk_vectors.nearest on the vectors in the file; return None if those belong to another index by now.

        Raises:
            StoreDamaged: a vector has other dimensions than the query.
        """
        try:
            stored = vector_table.blocks(connection, len(query))
            return disk_vectors.nearest(known, stored, query, limit, kinds, also, among)
        except ValueError as error:
            if self._changing.locked() or self.held is None or self.held.dimensions != len(query):
                return None
            raise StoreDamaged(
                f"{self._database.file}: vectors in it are not of {len(query)} dimensions"
            ) from error

    def was_searched(self) -> None:
        """Schedule the return of memory that a search of vectors on disk has freed.

        Otherwise each thread's heap keeps what it read: 18 MB more after ten searches of 16 MB of vectors.
        """
        if self.is_shelved and self._giving_back is None:
            self._giving_back = asyncio.create_task(self._give_back())

    async def _give_back(self) -> None:
        try:
            await asyncio.sleep(GIVE_BACK_S)
            await malloc.give_back_beside()
        finally:
            self._giving_back = None

    # --- changes, made while the lock is held

    def load(self, connection: apsw.Connection, dimensions: int) -> Held | None:
        """Read the vectors of the file, or their list; the result is for `take`."""
        read = vector_table.loaded if self.is_to_be_resident else vector_table.shelved
        return read(connection, dimensions)

    def take(self, held: Held | None, space: Space | None, *, has_parts: bool) -> None:
        """Replace the vectors that are searched."""
        self.held, self.space, self.has_parts = held, space, has_parts
        self._make_bytes_beside()

    def _make_bytes_beside(self) -> None:
        """Quantise vectors in the background; it takes 50 ms of processor time for 100,000 vectors."""
        held = self.held
        if self._making is None and isinstance(held, vector_matrix.Matrix) and held.lacks_bytes:
            self._making = asyncio.create_task(self._make_bytes(held))

    async def _make_bytes(self, held: vector_matrix.Matrix) -> None:
        try:
            # If memory is short, searches compare floats.
            with contextlib.suppress(NoMemory, NoThread):
                await self._following.run(held.make_bytes)
        finally:
            self._making = None
        if self.held is not held:
            self._make_bytes_beside()

    async def close(self) -> None:
        """Cancel background tasks."""
        tasks = [task for task in (self._making, self._giving_back) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def follow(self, gone: Sequence[ChunkId], came: Sequence[vector_matrix.Row]) -> None:
        """Apply a change of the file to what is in memory.

        If memory runs out, half of the change may be applied, and no later change repairs that. Then all vectors are read from
        the file again.
        """
        held = self.held
        if held is None:
            return
        try:
            await self._follow_with(held, gone, came)
        except (MemoryError, NoMemory):
            self.held = await self._read_anew(held.dimensions)
        self._shelve_if_wanted()  # with `like`, `shelve` is not called
        self._make_bytes_beside()

    async def _follow_with(
        self, held: Held, gone: Sequence[ChunkId], came: Sequence[vector_matrix.Row]
    ) -> None:
        if len(gone) + len(came) <= AT_ONCE:
            held.remove(gone)
            held.add(came)
        else:
            # Large, as after a checkout of a branch or for a note of many megabytes: the event loop must not block for it.
            for change in (partial(held.remove, gone), partial(held.add, came)):
                try:
                    await self._following.run(change)
                except NoThread:
                    change()  # what was written must be found, even if this blocks

    async def _read_anew(self, dimensions: int) -> vector_matrix.Matrix:
        while True:
            await asyncio.sleep(self.anew_s)
            with contextlib.suppress(StoreUnavailable):
                return await self._database.read(vector_table.loaded, dimensions) or vector_matrix.Matrix(
                    dimensions
                )

    async def move_where_wanted(self) -> None:
        """Move the vectors to memory or disk, where `is_to_be_resident` wants them.

        Raises:
            StoreUnavailable, StoreDamaged: they stay on disk until they are wanted again.
        """
        self._shelve_if_wanted()
        if isinstance(self.held, disk_vectors.DiskVectors) and self.is_to_be_resident:
            loaded = await self._database.read(vector_table.loaded, self.held.dimensions)
            if loaded is not None:
                self.held = loaded
                self._make_bytes_beside()

    def _shelve_if_wanted(self) -> None:
        if isinstance(self.held, vector_matrix.Matrix) and not self.is_to_be_resident:
            # On the event loop, 6 ms for 100,000 vectors: a thread would hold a reference to the released matrix for a while.
            self.held = disk_vectors.DiskVectors.of(self.held)

    # --- where they are

    @property
    def is_to_be_resident(self) -> bool:
        """Whether the vectors should be in memory."""
        return self._resident if self._like is None else self._like.is_to_be_resident

    @property
    def is_shelved(self) -> bool:
        """Whether searches read the vectors from the file."""
        return isinstance(self.held, disk_vectors.DiskVectors)

    @property
    def resident_bytes(self) -> int:
        """The memory of the vectors, in bytes."""
        return 0 if self.held is None else self.held.resident_bytes

    @property
    def whole_bytes(self) -> int:
        """The memory of the vectors if all were in memory, in bytes."""
        if isinstance(self.held, disk_vectors.DiskVectors):
            return len(self.held) * vector_matrix.row_bytes(self.held.dimensions)
        return self.resident_bytes

    async def shelve(self) -> None:
        """Release the memory of the vectors; searches read them from the file from now on, with equal results.

        Running searches keep their snapshot.
        """
        async with self._changing:
            self._resident = False
            self._shelve_if_wanted()

    async def unshelve(self) -> None:
        """Read the vectors into memory again; searches go on meanwhile.

        Raises:
            StoreUnavailable, StoreDamaged: they stay on disk until they are wanted again.
        """
        async with self._changing:
            self._resident = True
            await self.move_where_wanted()

    async def release_pages(self) -> None:
        """Release cached pages of the file; see Database.release_pages."""
        await self._database.release_pages()
