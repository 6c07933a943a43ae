"""The vectors of an index in memory: finds exact nearest neighbours by one matrix product for each block.

The product of a matrix rounds by the place of a row in it, and what is near must not depend on where it stands. So it tells
which rows may be among the nearest, and the cosines of these are computed row by row. Bytes tell the same, where they are made.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.store.rough_vectors import RoughBlock

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ids = NDArray[np.int64]

# Vectors are kept in blocks of so many bytes. Growing and tidying touch one block at a time, for a millisecond: one
# array for all would have to be copied whole, while searches wait.
BLOCK_BYTES = 8 << 20
FEWEST_ROWS = 64
WORTH_BYTES = 256  # rows: a product of floats with fewer costs less than 50 µs

# Rows that are gathered at once: an array of a few MB is given back to the system each time, and costs eight times the work
# to get again.
AT_ONCE = 64

DEAD = -1  # in the place of a kind

# By how much two sums of a product of float32 vectors of length 1 can differ, for each dimension.
# Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1.
_ROUNDED = 2.0**-23


def row_bytes(dimensions: int) -> int:
    """Memory that a row takes: its vector, its id and its kind."""
    return 4 * dimensions + 8 + 1


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk with its vector."""

    id: ChunkId
    kind: int  # of its file
    vector: bytes  # float32, little-endian, of length 1


class MatrixBlock(msgspec.Struct, frozen=True):
    """The rows of one block that a search may look at."""

    vectors: Floats  # (n, dimensions)
    ids: NDArray[np.int64]  # (n,)
    kinds: NDArray[np.int8]  # (n,); DEAD: the row is of no chunk any more
    by_id: tuple[NDArray[np.intp], Ids] | None = None  # the rows by id, and their ids; None: these ascend
    rough: RoughBlock | None = None  # of the first rows; None: there is none

    def rows_of(self, chunk_ids: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The rows of chunks, and whether they are here; what came since is not, nor what went."""
        nowhere = np.zeros(len(chunk_ids), np.intp), np.zeros(len(chunk_ids), np.bool_)
        if not len(self.ids):
            return nowhere
        order, ids = self.by_id or (None, self.ids)
        if ids[-1] < chunk_ids.min(initial=ids[-1] + 1) or ids[0] > chunk_ids.max(initial=ids[0] - 1):
            return nowhere
        # Of rows of the same chunk the last one may be alive.
        at = np.maximum(np.searchsorted(ids, chunk_ids, side="right") - 1, 0)
        rows = at if order is None else order[at]
        return rows, (self.ids[rows] == chunk_ids) & (self.kinds[rows] != DEAD)


class Rows(msgspec.Struct, frozen=True):
    """A state of the matrix that a search may hold on to while writers go on."""

    parts: tuple[MatrixBlock, ...]


class _Block:
    """A fixed number of rows, filled from the first to the last."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._vectors = np.zeros((capacity, dimensions), np.float32)
        self._ids = np.zeros(capacity, np.int64)
        self._kinds = np.full(capacity, DEAD, np.int8)
        self._by_id: tuple[NDArray[np.intp], Ids] | None = None  # as of MatrixBlock, of the first rows
        self._ascends = True
        self._alive = 0
        self._rough = RoughBlock(self._vectors)
        self.used = 0

    def __len__(self) -> int:
        return self._alive

    @property
    def is_full(self) -> bool:
        return self.used == len(self._ids)

    @property
    def is_sparse(self) -> bool:
        """Whether it is done with, and half of it dead."""
        return self.is_full and 2 * len(self) <= self.used

    @property
    def resident_bytes(self) -> int:
        return self.used * row_bytes(self._vectors.shape[1]) + self._rough.resident_bytes

    @property
    def lacks_bytes(self) -> bool:
        """Whether there are enough rows without bytes that it is worth making them."""
        return self.used - len(self._rough) >= WORTH_BYTES

    def make_bytes(self) -> None:
        """Make the bytes that are missing; rows may be added meanwhile."""
        self._rough.make(self._kinds[: self.used])

    def add(self, row: Row) -> None:
        # What a search must not see yet is behind the rows that it was given; the id comes last of all.
        at = self.used
        self._vectors[at] = np.frombuffer(row.vector, "<f4")
        self._ids[at], self._kinds[at] = row.id, row.kind
        self._note(at, at + 1)

    def _note(self, start: int, end: int) -> None:
        came = self._ids[max(0, start - 1) : end]
        self._ascends = self._ascends and bool((came[1:] > came[:-1]).all())
        self._alive += end - start
        self.used = end

    def remove(self, chunk_ids: Ids) -> None:
        rows, is_here = self.part().rows_of(chunk_ids)
        gone = distinct(rows[is_here])
        self._kinds[gone] = DEAD
        self._alive -= len(gone)

    def part(self) -> MatrixBlock:
        n = self.used
        if not self._ascends and (self._by_id is None or len(self._by_id[0]) < n):
            order = np.argsort(self._ids[:n], kind="stable")
            self._by_id = order, self._ids[order]
        return MatrixBlock(self._vectors[:n], self._ids[:n], self._kinds[:n], self._by_id, self._rough)

    def take(self, other: MatrixBlock, rows: NDArray[np.intp]) -> None:
        """Append some rows of another block; there must be room."""
        start, end = self.used, self.used + len(rows)
        self._vectors[start:end] = other.vectors[rows]
        self._ids[start:end], self._kinds[start:end] = other.ids[rows], other.kinds[rows]
        self._note(start, end)

    @property
    def room(self) -> int:
        return len(self._ids) - self.used


class Matrix:
    """Vectors by chunk id, added and removed by one writer, searched by any number of readers.

    Readers take the blocks as they are at that moment. A writer only ever fills a block behind what they see, kills a
    row by its kind, or leaves a block away whose rows it has put into another.
    """

    def __init__(self, dimensions: int, *, block_bytes: int = BLOCK_BYTES) -> None:
        """Nothing is in it yet.

        Args:
            dimensions: Of the vectors.
            block_bytes: How large a block may become.
        """
        self.dimensions = dimensions
        self._capacity = max(FEWEST_ROWS, block_bytes // (4 * dimensions))
        self._blocks: list[_Block] = []

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __contains__(self, chunk_id: ChunkId) -> bool:
        return any(block.part().rows_of(np.array([chunk_id]))[1].any() for block in self._blocks)

    @property
    def resident_bytes(self) -> int:
        """Memory held by the rows."""
        return sum(block.resident_bytes for block in self._blocks)

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, of chunks that have none.

        Raises:
            ValueError: a vector does not have the dimensions of the others.
        """
        for row in rows:
            self._last().add(row)

    def take(self, part: MatrixBlock) -> None:
        """Append what is alive in a part, of chunks that have no row.

        Raises:
            ValueError: its vectors do not have the dimensions of the others.
        """
        left = np.flatnonzero(part.kinds != DEAD)
        while len(left):
            block = self._last()
            fitting, left = left[: block.room], left[block.room :]
            block.take(part, fitting)

    def _last(self) -> _Block:
        """A block that is not full."""
        while not self._blocks or self._blocks[-1].is_full:
            self._make_room()
        return self._blocks[-1]

    def remove(self, chunk_ids: Iterable[ChunkId]) -> None:
        """Forget chunks; those without a row are passed over."""
        gone = np.fromiter(chunk_ids, np.int64)
        for block in self._blocks:
            block.remove(gone)

    def _make_room(self) -> None:
        """Begin a block, with what is left of two that are half dead: each edit of a file leaves a few dead rows behind."""
        fresh = _Block(self.dimensions, self._capacity)
        sparse = [block for block in self._blocks if block.is_sparse][:2]
        for block in sparse:
            part = block.part()
            fresh.take(part, np.flatnonzero(part.kinds != DEAD))
        # In one step: a search takes the blocks of before or of after.
        self._blocks = [*(block for block in self._blocks if block not in sparse), fresh]

    @property
    def lacks_bytes(self) -> bool:
        """Whether there is anything for make_bytes to do."""
        return any(block.lacks_bytes for block in self._blocks)

    def make_bytes(self) -> None:
        """Make the bytes that searches compare first, of rows that have none; 3 ms for 5,000 rows of 384 dimensions.

        Others may search meanwhile, and a writer may go on.
        """
        for block in self._blocks:
            if block.lacks_bytes:
                block.make_bytes()

    def snapshot(self) -> Rows:
        """The rows of this moment, without a copy."""
        return Rows(tuple(block.part() for block in self._blocks))


def nearest(rows: Rows, query: Floats, limit: int, kinds: Collection[Kind]) -> list[ChunkId]:
    """See scan: the chunks that were found, nearest first."""
    return scan(rows, query, limit, kinds).nearest()


def scan(
    rows: Rows,
    query: Floats,
    limit: int,
    kinds: Collection[Kind],
    among: Sequence[Ids | None] = (None,),
) -> "NearestRows":
    """Look for the chunks nearest to a query of length 1, of files of the given kinds only.

    Args:
        rows: Where to look.
        query: Shape (dimensions,).
        limit: How many of each source at most.
        kinds: What may be seen.
        among: The nearest of the chunks with these ids and of those are found, and so on; each ascending. None: of all. The
            mean cosine is that of all that may be seen, so that a filter changes no score.
    """
    scanned = NearestRows(query, limit, kinds, among)
    # Block by block: arrays of all rows would be so large that each is asked of the system anew and given back, for
    # which every thread of the process has to be stopped.
    for part in rows.parts:
        scanned.look(part)
    scanned.compare()
    return scanned


class NearestRows:
    """The nearest of each source in the blocks so far."""

    def __init__(
        self,
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        among: Sequence[Ids | None] = (None,),
    ) -> None:
        """No block was looked at yet; for the arguments see scan."""
        self._query = query
        self._seen = lookup(kinds)
        self._sources = [
            _NearestOfSource([kind for kind in kinds if kind.source == source], limit, some)
            for source in {kind.source for kind in kinds}
            for some in among
        ]
        self._count = 0
        self._total = 0.0  # of all cosines

    def look(self, part: MatrixBlock) -> None:
        """Look at another block; which of its rows are among the nearest, compare tells."""
        by_bytes = None if part.rough is None else part.rough.products(self._query, len(part.ids))
        if part.rough is None or by_bytes is None:
            rough, margin = part.vectors @ self._query, _ROUNDED * len(self._query)
            seen = rough[self._seen[part.kinds]]
            self._count += len(seen)
            self._total += float(seen.sum(dtype=np.float64))
        else:
            rough, margin = by_bytes
            for kind, (count, total) in part.rough.sums(part.kinds).items():
                if self._seen[kind]:
                    self._count += count
                    self._total += float(total @ self._query)
        for one in self._sources:
            one.look(part, rough, margin)

    def compare(self) -> list[NDArray[np.intp]]:
        """Compare what may be near with the query; of each block since the last call the rows that are among the nearest."""
        found = [one.compare(self._query) for one in self._sources]
        return [np.concatenate(rows) for rows in zip(*found, strict=True)]

    def nearest(self) -> list[ChunkId]:
        """The nearest of all sources together, nearest first; equal ones in the order of their ids."""
        if not self._sources:
            return []
        ids = np.concatenate([one.ids for one in self._sources])
        far = np.concatenate([one.far for one in self._sources])
        ordered: list[ChunkId] = ids[np.lexsort((ids, far))].tolist()
        return list(dict.fromkeys(ordered))

    def nearest_cosines(self) -> tuple[Ids, Doubles]:
        """The same chunks by their ids, ascending, with the cosine of each; as cosines gives it."""
        ids = np.concatenate([np.empty(0, np.int64), *(one.ids for one in self._sources)])
        order = np.argsort(ids)
        far = np.concatenate([np.empty(0), *(one.far for one in self._sources)])
        return ids[order], -far[order]

    def mean_cosine(self) -> tuple[float, int]:
        """The mean cosine of all that may be seen, rounded by where they stand, and how many these are."""
        return (self._total / self._count if self._count else 0.0), self._count


class _NearestOfSource:
    """The nearest of one source so far."""

    def __init__(self, kinds: Collection[Kind], limit: int, among: Ids | None) -> None:
        self._seen = lookup(kinds)
        self._among = among
        self._limit = limit
        # Rows, and how far they are at least.
        self._looked: list[tuple[MatrixBlock, NDArray[np.intp], Floats]] = []
        # How far the nearest are at most, the farthest last.
        self._most: NDArray[Any] = np.empty(0, np.float32)
        self.ids = np.empty(0, np.int64)
        self.far: NDArray[Any] = np.empty(0, np.float64)

    def look(self, part: MatrixBlock, rough: Floats, margin: float) -> None:
        """Look at a block with the products of its rows."""
        visible = np.flatnonzero(self._seen[part.kinds])
        if self._among is not None:
            visible = visible[places_among(self._among, part.ids[visible])[1]]
        # From this side: a partition of the other takes ten times as long where many are equal.
        far = -rough[visible]
        near = far <= self._border + margin
        visible, far = visible[near], far[near]
        most = np.concatenate((self._most, far + margin))
        self._most = np.partition(most, self._limit - 1)[: self._limit] if len(most) > self._limit else most
        self._looked.append((part, visible, far - margin))

    @property
    def _border(self) -> float:
        """What is farther is not among the nearest."""
        return float(self._most.max()) if len(self._most) == self._limit else np.inf

    def compare(self, query: Floats) -> list[NDArray[np.intp]]:
        """See NearestRows.compare."""
        border, before = self._border, len(self.ids)
        rows = [visible[least <= border] for _, visible, least in self._looked]
        blocks = [part for part, *_ in self._looked]
        self._looked.clear()
        ids = [part.ids[some] for part, some in zip(blocks, rows, strict=True)]
        far = [-_row_by_row(part.vectors, some, query) for part, some in zip(blocks, rows, strict=True)]
        all_ids, all_far = np.concatenate((self.ids, *ids)), np.concatenate((self.far, *far))
        kept = _smallest(all_far, all_ids, self._limit)
        self.ids, self.far = all_ids[kept], all_far[kept]
        self._most = self.far
        is_kept = np.zeros(len(all_ids), np.bool_)
        is_kept[kept] = True
        ends = before + np.cumsum([len(some) for some in rows])
        return [some[is_kept[end - len(some) : end]] for some, end in zip(rows, ends.tolist(), strict=True)]


def _row_by_row(vectors: Floats, rows: NDArray[np.intp], query: Floats) -> Floats:
    """The products of some rows with a vector, each the same wherever it stands."""
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        np.vecdot(vectors[rows[some]], query, out=found[some])
    return found


def _smallest(far: NDArray[Any], ids: NDArray[np.int64], limit: int) -> NDArray[np.intp]:
    """Which are the smallest, in no order; of equal ones those with the lowest ids."""
    if len(far) <= limit:
        return np.arange(len(far))
    border = np.partition(far, limit - 1)[limit - 1]
    less, equal = np.flatnonzero(far < border), np.flatnonzero(far == border)
    equal = equal[np.argsort(ids[equal])]
    return np.concatenate((less, equal[: limit - len(less)]))


def places_among(ascending: Ids, ids: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where ids are among others, and whether they are."""
    if not len(ascending):
        return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.bool_)
    at = np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)
    return at, ascending[at] == ids


def distinct(values: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """The values, ascending, each once.

    np.unique, and what is made of it (np.isin, np.union1d), imports numpy.ma when it is first called: in the middle of a search,
    which fails then where the process has no more descriptors.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def lookup(kinds: Collection[Kind]) -> NDArray[np.bool_]:
    """Whether rows of a kind are seen, by kind; the last place is that of DEAD. The array cannot be written."""
    return _lookup(frozenset(kinds))


@cache  # a search asks four times for the same
def _lookup(kinds: frozenset[Kind]) -> NDArray[np.bool_]:
    seen = np.zeros(np.iinfo(np.int8).max + 2, np.bool_)
    seen[[int(kind) for kind in kinds]] = True
    seen.flags.writeable = False
    return seen


def cosines(rows: Rows, query: Floats, chunk_ids: Ids) -> Doubles:
    """The cosine of each of these chunks with a query of length 1; NaN: the chunk has no vector.

    Row by row: equal texts must tie whatever their place.
    """
    found = np.full(len(chunk_ids), np.nan)
    for places, part, at in _rows_of(rows, chunk_ids):
        found[places] = _row_by_row(part.vectors, at, query)
    return found


def vectors_of(rows: Rows, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Floats]:
    """The vectors of these chunks; chunks without one are left out."""
    return {
        chunk_ids[place]: vector
        for places, part, at in _rows_of(rows, np.array(chunk_ids, np.int64))
        for place, vector in zip(places.tolist(), part.vectors[at], strict=True)
    }


def _rows_of(rows: Rows, chunk_ids: Ids) -> Iterator[tuple[NDArray[np.intp], MatrixBlock, NDArray[np.intp]]]:
    """Of each block the places, among some chunks, of those that it has, and their rows."""
    for part in rows.parts:
        at, is_here = part.rows_of(chunk_ids)
        if is_here.any():
            yield np.flatnonzero(is_here), part, at[is_here]
