"""The vectors that searches of one index use: in memory, or read from disk at each search."""

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
from memd.store import disk_vectors, vector_matrix, vectors
from memd.store.database import Database
from memd.store.embedding_cache import Space
from memd.store.errors import StoreDamaged, StoreUnavailable

REST_S = 1.0  # for which a search waits for the end of a change that it has met
# After a search of vectors on disk, until what its thread read with is given back: for each search by itself it takes an eighth of
# the processor's time, most of it to get the same memory again.
GIVE_BACK_S = 1.0
ANEW_S = 1.0  # between two attempts at reading from the file what memory had no room for
# Vectors that are taken in or forgotten in a few hundred microseconds.
AT_ONCE = 500

Floats = NDArray[np.float32]
# The vectors themselves, or what is known of those on disk.
Held = vector_matrix.Matrix | disk_vectors.DiskVectors


async def at_rest(changing: asyncio.Lock, most_s: float) -> bool:
    """Whether the lock of changes becomes free within so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(most_s), changing:
            return True
    return False


class SearchVectors:
    """The vectors of one index with their space. Every change of them is made while the index holds the lock."""

    def __init__(
        self, database: Database, changing: asyncio.Lock, *, resident: bool, like: "SearchVectors | None"
    ) -> None:
        """There are none until load was called and its result taken.

        Args:
            database: Of the index.
            changing: Held during each change of the index.
            resident: Whether they are to be in memory; else a search reads them from the file.
            like: Those of an index that decides that for this one, too; None: none does.
        """
        self.space: Space | None = None  # None: the index has no place for vectors
        self.has_parts = False  # whether parts of chunks have vectors of that space, too, or are to have them
        self.asked_at: float | None = None  # of the monotonic clock: when a search last wanted them
        self.anew_s = ANEW_S  # from one try to have them in memory to the next
        self._database = database
        self._changing = changing
        self._resident = resident
        self._like = like
        # The vectors, or what is known of those on disk; None: the index has no place for any.
        self.held: Held | None = None
        self._following = Threads(1, f"memd-vectors-{database.file.stem}")
        self._making: asyncio.Task[None] | None = None  # bytes of vectors in memory
        self._giving_back: asyncio.Task[None] | None = None

    # --- what a search reads

    def current(self) -> tuple[Space, vector_matrix.Rows | disk_vectors.ListedVector] | None:
        """The vectors of this moment with the space that they belong to: only such a question may meet them.

        They are the vectors themselves, for vector_matrix.nearest, or what is known of those on disk, for nearest.
        """
        if self.held is None or self.space is None or not len(self.held):
            return None
        self.asked_at = time.monotonic()
        return self.space, self.held.snapshot()

    def snapshot(self) -> vector_matrix.Rows | None:
        """The vectors of this moment that are in memory, for vector_matrix.nearest and vector_matrix.cosines."""
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
        """Like disk_vectors.nearest, over the vectors in the file; None: they are those of another model by now.

        Raises:
            StoreDamaged: a vector does not have the dimensions of the others.
        """
        try:
            stored = vectors.blocks(connection, len(query))
            return disk_vectors.nearest(known, stored, query, limit, kinds, also, among)
        except ValueError as error:
            if self._changing.locked() or self.held is None or self.held.dimensions != len(query):
                return None
            raise StoreDamaged(
                f"{self._database.file}: vectors in it are not of {len(query)} dimensions"
            ) from error

    def was_searched(self) -> None:
        """Have the memory given back, in a while, that a search of vectors on disk took.

        Else what each thread read stays with it: 18 MB more after ten searches of 16 MB of vectors.
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
        """The vectors of the file, to be given to take."""
        read = vectors.loaded if self.is_to_be_resident else vectors.shelved
        return read(connection, dimensions)

    def take(self, held: Held | None, space: Space | None, *, has_parts: bool) -> None:
        """Search these vectors from now on."""
        self.held, self.space, self.has_parts = held, space, has_parts
        self._make_bytes_beside()

    def _make_bytes_beside(self) -> None:
        """Have the bytes made that searches compare first; 50 ms of the processor for 100,000 vectors, in no search."""
        held = self.held
        if self._making is None and isinstance(held, vector_matrix.Matrix) and held.lacks_bytes:
            self._making = asyncio.create_task(self._make_bytes(held))

    async def _make_bytes(self, held: vector_matrix.Matrix) -> None:
        try:
            # Where memory is short, searches do without.
            with contextlib.suppress(NoMemory, NoThread):
                await self._following.run(held.make_bytes)
        finally:
            self._making = None
        if self.held is not held:
            self._make_bytes_beside()

    async def close(self) -> None:
        """Stop what goes on beside searches."""
        tasks = [task for task in (self._making, self._giving_back) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def follow(self, gone: Sequence[ChunkId], came: Sequence[vector_matrix.Row]) -> None:
        """Have what is in memory follow a change of the file, one change after the other.

        Where memory is short it may be left with half a change, which no later change makes up for: then all is read
        from the file.
        """
        held = self.held
        if held is None:
            return
        try:
            await self._follow_with(held, gone, came)
        except (MemoryError, NoMemory):
            self.held = await self._read_anew(held.dimensions)
        self._shelve_if_wanted()  # with like set, no call of shelve comes
        self._make_bytes_beside()

    async def _follow_with(
        self, held: Held, gone: Sequence[ChunkId], came: Sequence[vector_matrix.Row]
    ) -> None:
        if len(gone) + len(came) <= AT_ONCE:
            held.remove(gone)
            held.add(came)
        else:
            # A branch that is checked out, or a note of many megabytes: no search may wait for that.
            for change in (partial(held.remove, gone), partial(held.add, came)):
                try:
                    await self._following.run(change)
                except NoThread:
                    change()  # what is written is searched, whatever it takes

    async def _read_anew(self, dimensions: int) -> vector_matrix.Matrix:
        while True:
            await asyncio.sleep(self.anew_s)
            with contextlib.suppress(StoreUnavailable):
                return await self._database.read(vectors.loaded, dimensions) or vector_matrix.Matrix(
                    dimensions
                )

    async def move_where_wanted(self) -> None:
        """Have the vectors in memory or on disk, as it is decided.

        Raises:
            StoreUnavailable, StoreDamaged: they stay on disk until they are wanted again.
        """
        self._shelve_if_wanted()
        if isinstance(self.held, disk_vectors.DiskVectors) and self.is_to_be_resident:
            loaded = await self._database.read(vectors.loaded, self.held.dimensions)
            if loaded is not None:
                self.held = loaded
                self._make_bytes_beside()

    def _shelve_if_wanted(self) -> None:
        if isinstance(self.held, vector_matrix.Matrix) and not self.is_to_be_resident:
            # Six milliseconds for 100,000: a thread would hold on to what is given up for a while.
            self.held = disk_vectors.DiskVectors.of(self.held)

    # --- where they are

    @property
    def is_to_be_resident(self) -> bool:
        """Whether they are to be in memory."""
        return self._resident if self._like is None else self._like.is_to_be_resident

    @property
    def is_shelved(self) -> bool:
        """Whether a search reads them from the file."""
        return isinstance(self.held, disk_vectors.DiskVectors)

    @property
    def resident_bytes(self) -> int:
        """Memory that they take."""
        return 0 if self.held is None else self.held.resident_bytes

    @property
    def whole_bytes(self) -> int:
        """Memory that they take, or would take if they were all there."""
        if isinstance(self.held, disk_vectors.DiskVectors):
            return len(self.held) * vector_matrix.row_bytes(self.held.dimensions)
        return self.resident_bytes

    async def shelve(self) -> None:
        """Give up their memory: from now on a search reads them from the file, with the same answers.

        Searches that are under way hold on to what they were given.
        """
        async with self._changing:
            self._resident = False
            self._shelve_if_wanted()

    async def unshelve(self) -> None:
        """Have them in memory again; searches go on meanwhile.

        Raises:
            StoreUnavailable, StoreDamaged: they stay on disk until they are wanted again.
        """
        async with self._changing:
            self._resident = True
            await self.move_where_wanted()

    async def release_pages(self) -> None:
        """Give up what is kept of their file in memory; see Database.release_pages."""
        await self._database.release_pages()
