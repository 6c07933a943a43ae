"""The vectors of an index in memory: exact nearest neighbours by one matrix product."""

from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.model import ChunkId, Kind

Floats = NDArray[np.float32]

# Rows that are multiplied at once: an array of a few MB is given back to the system each time, and costs eight times the
# work to get again.
BLOCK = 32


class Rows(msgspec.Struct, frozen=True):
    """A state of the matrix that a search may hold on to while writers go on."""

    vectors: Floats  # (n, dimensions)
    ids: NDArray[np.int64]  # (n,)
    kinds: NDArray[np.int8]  # (n,); -1: the row is dead
    row_of: dict[int, int]  # by chunk id; rows that came since, at n and above, may be in it


class Matrix:
    """Vectors by chunk id, appended and removed by one writer, searched by any number of readers.

    Readers take the arrays as they are at that moment. A writer only ever appends behind what they see, kills a row by
    its kind, or puts a new set of arrays in place.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._clear(16)

    def _clear(self, capacity: int) -> None:
        self._vectors = np.zeros((capacity, self.dimensions), np.float32)
        self._ids = np.zeros(capacity, np.int64)
        self._kinds = np.full(capacity, -1, np.int8)
        self._used = 0
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, chunk_id: ChunkId) -> bool:
        return chunk_id in self._row_of

    @property
    def resident_bytes(self) -> int:
        """Memory held by the arrays."""
        return self._vectors.nbytes + self._ids.nbytes + self._kinds.nbytes

    def fill(self, count: int, rows: Iterable[tuple[ChunkId, int, bytes]]) -> None:
        """Put so many (chunk id, kind, float32 vector) in place of everything; they are taken in one by one."""
        self._clear(max(16, count + count // 8))
        self.add(rows)

    def add(self, rows: Iterable[tuple[ChunkId, int, bytes]]) -> None:
        """Append (chunk id, kind, float32 vector of length 1)."""
        for chunk_id, kind, vector in rows:
            if self._used == len(self._ids):
                self._grow()
            at = self._used
            self._vectors[at] = np.frombuffer(vector, "<f4")
            self._ids[at], self._kinds[at] = chunk_id, kind
            self._row_of[chunk_id] = at
            self._used = at + 1

    def remove(self, chunk_ids: Iterable[ChunkId]) -> None:
        """Forget chunks; those without a row are passed over."""
        for chunk_id in chunk_ids:
            row = self._row_of.pop(chunk_id, None)
            if row is not None:
                self._kinds[row] = -1

    def _grow(self) -> None:
        # Dead rows go when room is needed: an edited file leaves a few behind each time.
        alive = np.flatnonzero(self._kinds[: self._used] >= 0)
        capacity = max(16, len(alive) * 2)
        vectors = np.zeros((capacity, self.dimensions), np.float32)
        ids, kinds = np.zeros(capacity, np.int64), np.full(capacity, -1, np.int8)
        vectors[: len(alive)] = self._vectors[alive]
        ids[: len(alive)], kinds[: len(alive)] = self._ids[alive], self._kinds[alive]
        self._vectors, self._ids, self._kinds = vectors, ids, kinds
        self._used = len(alive)
        self._row_of = {int(chunk_id): row for row, chunk_id in enumerate(ids[: len(alive)])}

    def snapshot(self) -> Rows:
        """The rows of this moment, without a copy."""
        used = self._used
        return Rows(self._vectors[:used], self._ids[:used], self._kinds[:used], self._row_of)


def nearest(rows: Rows, query: Floats, limit: int, kinds: Collection[Kind]) -> list[ChunkId]:
    """The chunks nearest to a query of length 1, nearest first, of files of the given kinds only."""
    if len(rows.ids) == 0:
        return []
    near = rows.vectors @ query
    visible = np.isin(rows.kinds, [int(kind) for kind in kinds])
    near[~visible] = -np.inf
    take = min(limit, int(np.count_nonzero(visible)))
    if take == 0:
        return []
    best = np.argpartition(-near, take - 1)[:take]
    order = np.lexsort((rows.ids[best], -near[best]))
    return [ChunkId(int(chunk_id)) for chunk_id in rows.ids[best[order]]]


def cosines(rows: Rows, query: Floats, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, float]:
    """The cosine of each of these chunks with a query of length 1; chunks without a vector are left out.

    In float64 and row by row: the product of a whole matrix rounds by the place of a row in it, and equal texts must
    tie whatever their place.
    """
    row_of = {one: row for one in chunk_ids if (row := rows.row_of.get(one, len(rows.ids))) < len(rows.ids)}
    at = np.fromiter(row_of.values(), np.intp, len(row_of))
    precise = query.astype(np.float64)
    values: list[float] = []
    for start in range(0, len(at), BLOCK):
        values += (rows.vectors[at[start : start + BLOCK]] * precise).sum(axis=1).tolist()
    return dict(zip(row_of, values, strict=True))
