"""Holds the vectors of an index in memory, and finds exact nearest neighbours by one matrix product per block.

A matrix product rounds differently by row, but ranking must not depend on the row. So the product only selects the rows
that may be among the nearest, and their cosines are computed row by row. Quantised bytes select rows likewise.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.store.int8_vectors import BlockPacking, Int8Block, QuantisedQuestion, RoughProducts, simsimd
from memd.store.packed_vectors import AT_ONCE as CONVERTED_AT_ONCE
from memd.store.packed_vectors import PackedVectors

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ids = NDArray[np.int64]

# The size of a block of vectors. Growth and compaction copy one block at a time, in about a millisecond; with one array,
# all vectors would be copied while searches wait.
BLOCK_BYTES = 8 << 20
FEWEST_ROWS = 64
WORTH_BYTES = 256  # rows; a float product of fewer takes less than 50 µs

# Rows that are gathered in one step: an array of several MB is unmapped each time, and mapping it again takes eight times
# as long as the work.
AT_ONCE = 64

DEAD = -1  # as a kind: the row is deleted

# The rounding error of a float32 dot product of unit vectors, per dimension.
# Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1.
_ROUNDED = 2.0**-23

BESIDE_BYTES = 8 + 1  # of a row: its id and kind


def row_bytes(dimensions: int) -> int:
    """The most memory that a row takes: its vector as floats, id and kind."""
    return 4 * dimensions + BESIDE_BYTES


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk with its vector, as stored."""

    id: ChunkId
    kind: int  # the kind of its file
    vector: bytes  # float32, little-endian, length 1


class MatrixBlock(msgspec.Struct, frozen=True):
    """A snapshot of one block."""

    vectors: Floats | PackedVectors  # (n, dimensions)
    ids: NDArray[np.int64]  # (n,)
    kinds: NDArray[np.int8]  # (n,); DEAD: the row is deleted
    by_id: tuple[NDArray[np.intp], Ids] | None = None  # rows sorted by id, and their ids; None: sorted
    rough: Int8Block | None = None  # quantised first rows; None: there are none
    held: frozenset[int] | None = None  # at least the kinds of its rows that are not deleted; None: unknown

    def rows_of(self, chunk_ids: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the rows of chunks, and for each whether the chunk is in this block and not deleted."""
        if not len(self.ids):
            return np.zeros(len(chunk_ids), np.intp), np.zeros(len(chunk_ids), np.bool_)
        order, ids = self.by_id or (None, self.ids)
        # Of several rows of one chunk, only the last one may be alive.
        at = np.maximum(ids.searchsorted(chunk_ids, side="right") - 1, 0)
        rows = at if order is None else order[at]
        return rows, (self.ids[rows] == chunk_ids) & (self.kinds[rows] != DEAD)

    def may_hold(self, first: int, last: int) -> bool:
        """Return whether any chunk with an id of first..last may be in this block."""
        _, ids = self.by_id or (None, self.ids)
        return bool(len(ids) and ids[0] <= last and ids[-1] >= first)


class Rows(msgspec.Struct, frozen=True):
    """A snapshot of all blocks; writers do not change it."""

    parts: tuple[MatrixBlock, ...]

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(part.kinds != DEAD)) for part in self.parts)

    def have(self, chunk_ids: Ids) -> NDArray[np.bool_]:
        """Return whether each chunk has a vector."""
        have = np.zeros(len(chunk_ids), np.bool_)
        for part in self.parts:
            have |= part.rows_of(chunk_ids)[1]
        return have


class _Block:
    """A block with a fixed capacity, filled from the first row on."""

    def __init__(self, rough: Int8Block) -> None:
        capacity = len(rough.vectors)
        self._rough = rough
        self._ids = np.zeros(capacity, np.int64)
        self._kinds = np.full(capacity, DEAD, np.int8)
        self._by_id: tuple[NDArray[np.intp], Ids] | None = None  # see MatrixBlock; of the first rows
        self._ascends = True
        self._alive = 0
        self._held: frozenset[int] = frozenset()  # see MatrixBlock
        self.used = 0

    @classmethod
    def empty(cls, dimensions: int, capacity: int) -> "_Block":
        return cls(Int8Block(np.empty((capacity, dimensions), np.float32)))

    @classmethod
    def full(cls, rough: Int8Block, ids: Ids, kinds: NDArray[np.int8]) -> "_Block":
        block = cls(rough)
        block._ids[:], block._kinds[:] = ids, kinds
        block._note(0, len(ids))
        return block

    def __len__(self) -> int:
        return self._alive

    @property
    def is_full(self) -> bool:
        return self.used == len(self._ids)

    @property
    def is_sparse(self) -> bool:
        """Whether it is full and at least half of its rows are deleted."""
        return self.is_full and 2 * len(self) <= self.used

    @property
    def resident_bytes(self) -> int:
        vectors = self._rough.vectors
        floats = 0 if isinstance(vectors, PackedVectors) else self.used * vectors[0].nbytes
        return floats + self._rough.resident_bytes + self.used * BESIDE_BYTES

    @property
    def lacks_bytes(self) -> bool:
        """Whether enough rows lack quantised bytes for computing them to be worthwhile, or the block can be packed."""
        return self.used - len(self._rough) >= WORTH_BYTES or (self.is_full and not self._rough.is_settled)

    def make_bytes(self) -> None:
        """Quantise the rows that lack bytes, or pack a full block; rows may be added meanwhile."""
        self._rough.make(self._kinds[: self.used])

    def add(self, row: Row) -> None:
        # Readers see only `used` rows, so the new row is written first, and `used` is raised last.
        at = self.used
        self._floats[at] = np.frombuffer(row.vector, "<f4")
        self._ids[at], self._kinds[at] = row.id, row.kind
        self._note(at, at + 1)

    @property
    def _floats(self) -> Floats:
        vectors = self._rough.vectors
        assert not isinstance(vectors, PackedVectors)  # only a full block is packed, and none is written to
        return vectors

    def _note(self, start: int, end: int) -> None:
        came = self._ids[max(0, start - 1) : end]
        self._ascends = self._ascends and bool((came[1:] > came[:-1]).all())
        self._alive += end - start
        self._held = self._held.union(self._kinds[start:end].tolist())
        self.used = end

    def remove(self, chunk_ids: Ids) -> None:
        part = self.part()
        if not part.may_hold(int(chunk_ids.min()), int(chunk_ids.max())):
            return
        rows, is_here = part.rows_of(chunk_ids)
        gone = distinct(rows[is_here])
        self._kinds[gone] = DEAD
        self._alive -= len(gone)

    def part(self) -> MatrixBlock:
        n = self.used
        if not self._ascends and (self._by_id is None or len(self._by_id[0]) < n):
            order = np.argsort(self._ids[:n], kind="stable")
            self._by_id = order, self._ids[order]
        vectors = self._rough.vectors
        some = vectors if isinstance(vectors, PackedVectors) else vectors[:n]
        return MatrixBlock(some, self._ids[:n], self._kinds[:n], self._by_id, self._rough, self._held)

    def take(self, other: MatrixBlock, rows: NDArray[np.intp]) -> None:
        """Append some rows of another block; they must fit."""
        start, end = self.used, self.used + len(rows)
        floats = self._floats[start:end]
        for first in range(0, len(rows), CONVERTED_AT_ONCE):
            some = slice(first, first + CONVERTED_AT_ONCE)
            floats[some] = other.vectors[_as_slice(rows[some])]
        self._ids[start:end], self._kinds[start:end] = other.ids[rows], other.kinds[rows]
        self._note(start, end)

    @property
    def room(self) -> int:
        return len(self._ids) - self.used


class _BlockOfRows:
    """The rows of a block that is packed as they come."""

    def __init__(self, capacity: int, dimensions: int) -> None:
        self._packing = BlockPacking(capacity, dimensions)
        self._ids, self._kinds = np.empty(capacity, np.int64), np.empty(capacity, np.int8)
        self._used = 0

    @property
    def room(self) -> int:
        return len(self._ids) - self._used

    def add(self, other: MatrixBlock, rows: NDArray[np.intp]) -> None:
        """Append some rows of another block; they must fit."""
        some = _as_slice(rows)
        new = slice(self._used, self._used + len(rows))
        self._ids[new], self._kinds[new] = other.ids[some], other.kinds[some]
        self._packing.add(other.vectors[some], self._kinds[new])
        self._used += len(rows)

    @property
    def is_worthwhile(self) -> bool:
        return self._packing.is_worthwhile

    def block(self) -> _Block:
        return _Block.full(self._packing.block(self._kinds), self._ids, self._kinds)

    def part(self) -> MatrixBlock:
        return MatrixBlock(self._packing.floats(), self._ids[: self._used], self._kinds[: self._used])


def _as_slice(rows: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Return ascending row numbers as a slice if they follow each other: nothing is copied then."""
    if not len(rows):
        return slice(0)
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


class Matrix:
    """Vectors by chunk id, with one writer and any number of concurrent readers.

    Readers take a snapshot. The writer appends rows after those in the snapshot, marks rows as DEAD, or replaces blocks whose
    rows it has copied.
    """

    def __init__(self, dimensions: int, *, block_bytes: int = BLOCK_BYTES) -> None:
        """Create an empty matrix.

        Args:
            dimensions: The dimensions of the vectors.
            block_bytes: The size of a block.
        """
        self.dimensions = dimensions
        self._capacity = max(FEWEST_ROWS, block_bytes // (4 * dimensions))
        self._blocks: list[_Block] = []

    @classmethod
    def of(
        cls, dimensions: int, parts: Iterable[MatrixBlock], count: int, *, block_bytes: int = BLOCK_BYTES
    ) -> "Matrix":
        """Create a matrix of the live rows of some blocks, which are of different chunks.

        What fills a block is packed as it comes: no block of floats is written and read again.

        Args:
            dimensions: The dimensions of the vectors.
            parts: The blocks; each is used before the next one is taken.
            count: How many live rows are expected.
            block_bytes: The size of a block.

        Raises:
            ValueError: a vector has other dimensions.
        """
        rows = cls(dimensions, block_bytes=block_bytes)
        capacity = rows._capacity
        full = count // capacity if simsimd() is not None else 0
        packing = _BlockOfRows(capacity, dimensions) if full else None
        for part in parts:
            left = np.flatnonzero(part.kinds != DEAD)
            while len(left):
                if packing is None:
                    block = rows._last()
                    fitting, left = left[: block.room], left[block.room :]
                    block.take(part, fitting)
                    if block.is_full:
                        block.make_bytes()  # now, so that never more than one block is of floats
                    continue
                fitting, left = left[: packing.room], left[packing.room :]
                packing.add(part, fitting)
                if not packing.room:
                    rows._blocks.append(packing.block())
                    is_next = packing.is_worthwhile and len(rows._blocks) < full
                    packing = _BlockOfRows(capacity, dimensions) if is_next else None
        if packing is not None:  # fewer rows than expected
            part = packing.part()
            rows._last().take(part, np.arange(len(part.ids)))
        return rows

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __contains__(self, chunk_id: ChunkId) -> bool:
        return any(block.part().rows_of(np.array([chunk_id]))[1].any() for block in self._blocks)

    @property
    def resident_bytes(self) -> int:
        """The memory of all rows, in bytes."""
        return sum(block.resident_bytes for block in self._blocks)

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows of chunks that have none.

        Raises:
            ValueError: a vector has other dimensions.
        """
        for row in rows:
            self._last().add(row)

    def _last(self) -> _Block:
        """Return the last block, or a new one if it is full."""
        while not self._blocks or self._blocks[-1].is_full:
            self._make_room()
        return self._blocks[-1]

    def remove(self, chunk_ids: Iterable[ChunkId]) -> None:
        """Mark the rows of chunks as deleted; unknown ids are ignored."""
        gone = np.fromiter(chunk_ids, np.int64)
        for block in self._blocks if len(gone) else ():
            block.remove(gone)

    def _make_room(self) -> None:
        """Append a block, and move the live rows of up to two sparse blocks into it: each edit leaves some deleted rows."""
        fresh = _Block.empty(self.dimensions, self._capacity)
        sparse = [block for block in self._blocks if block.is_sparse][:2]
        for block in sparse:
            part = block.part()
            fresh.take(part, np.flatnonzero(part.kinds != DEAD))
        # One assignment: a search sees the blocks of before or of after.
        self._blocks = [*(block for block in self._blocks if block not in sparse), fresh]

    @property
    def lacks_bytes(self) -> bool:
        """Whether `make_bytes` has work to do."""
        return any(block.lacks_bytes for block in self._blocks)

    def make_bytes(self) -> None:
        """Quantise the rows that have no bytes yet, and pack full blocks; 3 ms for 5,000 rows of 384 dimensions.

        Searches and the writer may go on meanwhile.
        """
        for block in self._blocks:
            if block.lacks_bytes:
                block.make_bytes()

    def snapshot(self) -> Rows:
        """Return a snapshot; nothing is copied."""
        return Rows(tuple(block.part() for block in self._blocks))


def nearest(rows: Rows, query: Floats, limit: int, kinds: Collection[Kind]) -> list[ChunkId]:
    """Return the nearest chunks, nearest first; see `scan`."""
    return scan(rows, query, limit, kinds).nearest()


def scan(
    rows: Rows,
    query: Floats,
    limit: int,
    kinds: Collection[Kind],
    among: Sequence[Ids | None] = (None,),
) -> "NearestRows":
    """Find the chunks nearest to a query, among files of the given kinds.

    Args:
        rows: The vectors.
        query: Shape (dimensions,), length 1.
        limit: The most chunks per source and filter.
        kinds: The kinds of files that are visible.
        among: One filter per element: the ascending ids of the chunks to choose from; None: all. The mean cosine is that of
            all visible chunks, so that a filter changes no score.
    """
    held = [part.held for part in rows.parts]
    here = [kind for kind in kinds if any(one is None or kind in one for one in held)]
    scanned = NearestRows(query, limit, here, among)
    # Block by block: arrays over all rows are so large that each is mapped and unmapped again, which stops every thread of the
    # process. All products first: the bytes of a block displace everything else from the processor's cache.
    by_bytes = [scanned.rough_products(part) for part in rows.parts]
    for part, products in zip(rows.parts, by_bytes, strict=True):
        scanned.look(part, products)
    scanned.compare()
    return scanned


class NearestRows:
    """The nearest chunks of each source, in the blocks scanned so far."""

    def __init__(
        self,
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        among: Sequence[Ids | None] = (None,),
    ) -> None:
        """Start without blocks; for the arguments see `scan`."""
        self._query = query
        self._kinds = frozenset(kinds)
        self._sources = [
            _NearestOfSource([kind for kind in kinds if kind.source == source], limit, some)
            for source in {kind.source for kind in kinds}
            for some in among
        ]
        self._count = 0
        self._total = 0.0  # sum of all cosines

    def rough_products(self, part: MatrixBlock) -> RoughProducts | None:
        """Return the approximate cosines of the rows of a block; None: it has no bytes."""
        return part.rough.products(self._question, len(part.ids)) if part.rough else None

    def look(self, part: MatrixBlock, by_bytes: RoughProducts | None = None) -> None:
        """Select the rows of a block that may be among the nearest.

        Args:
            part: The block.
            by_bytes: Its `rough_products`; None: a matrix product tells what may be near.
        """
        if part.rough is None or by_bytes is None:
            rough = part.vectors[:] @ self._query
            seen = rough if _is_all(part, self._kinds) else rough[lookup(self._kinds)[part.kinds]]
            self._count += len(seen)
            self._total += float(seen.sum(dtype=np.float64))
        else:
            rough = by_bytes.products
            for kind, (count, total) in part.rough.sums(part.kinds).items():
                if kind in self._kinds:
                    self._count += count
                    self._total += float(total @ self._as_doubles)
        for one in self._sources:
            one.look(part, rough, by_bytes)

    @cached_property
    def _question(self) -> QuantisedQuestion:
        return QuantisedQuestion.of(self._query)

    @cached_property
    def _as_doubles(self) -> Doubles:
        return self._query.astype(np.float64)  # once, and not for each block

    def compare(self) -> NDArray[np.intp]:
        """Compute the exact cosines of the selected rows; return which rows of the last block are among the nearest so far."""
        found = [one.compare(self._query) for one in self._sources]
        return np.concatenate(found) if found else np.empty(0, np.intp)

    def nearest(self) -> list[ChunkId]:
        """Return the nearest chunks of all sources and filters, nearest first; ties are broken by id."""
        if not self._sources:
            return []
        ids = np.concatenate([one.ids for one in self._sources])
        far = np.concatenate([one.far for one in self._sources])
        ordered: list[ChunkId] = ids[np.lexsort((ids, far))].tolist()
        return list(dict.fromkeys(ordered))

    def nearest_cosines(self) -> tuple[Ids, Doubles]:
        """Return the same chunks as ascending ids, and their cosines."""
        ids = np.concatenate([np.empty(0, np.int64), *(one.ids for one in self._sources)])
        order = np.argsort(ids)
        far = np.concatenate([np.empty(0), *(one.far for one in self._sources)])
        return ids[order], -far[order]

    def mean_cosine(self) -> tuple[float, int]:
        """Return the mean cosine of all visible chunks (its rounding depends on the order of rows), and their number."""
        return (self._total / self._count if self._count else 0.0), self._count


class _NearestOfSource:
    """The nearest chunks of one source, in the blocks scanned so far."""

    def __init__(self, kinds: Collection[Kind], limit: int, among: Ids | None) -> None:
        self._kinds = frozenset(kinds)
        self._among = among
        self._limit = limit
        # Blocks, selected rows, and lower bounds of their distances.
        self._looked: list[tuple[MatrixBlock, NDArray[np.intp], Floats]] = []
        # Upper bounds of the distances of the nearest, unsorted, and the largest of them if there are `limit`.
        self._most: NDArray[Any] = np.empty(0, np.float32)
        self._border: float = np.inf
        self.ids = np.empty(0, np.int64)
        self.far: NDArray[Any] = np.empty(0, np.float64)

    def look(self, part: MatrixBlock, rough: Floats, by_bytes: RoughProducts | None) -> None:
        """Select rows of a block by approximate cosines `rough`, those of `by_bytes` or, without them, of a matrix product."""
        margin = by_bytes.margin if by_bytes is not None else _ROUNDED * part.vectors.shape[1]
        # Of the negated values: a partition by the largest takes ten times as long if many are equal.
        far = -rough
        if self._among is not None or not _is_all(part, self._kinds):
            visible = lookup(self._kinds)[part.kinds].nonzero()[0]
            if self._among is not None:
                visible = visible[places_among(self._among, part.ids[visible])[1]]
            far = far[visible]
            near = (far <= self._most_far(far, margin)).nonzero()[0]
            visible, far = visible[near], far[near]
        else:
            visible = (far <= self._most_far(far, margin)).nonzero()[0]
            far = far[visible]
        margins = margin if by_bytes is None else by_bytes.margins(visible)
        self._note(np.concatenate((self._most, far + margins)))
        self._looked.append((part, visible, far - margins))

    def _most_far(self, far: Floats, margin: float) -> float:
        """Return the approximate distance above which a row of these is not among the nearest."""
        border = self._border
        if border == np.inf and len(far) >= 2 * self._limit:
            # Otherwise all rows of the first block would be looked at more closely.
            border = float(np.partition(far, self._limit - 1)[self._limit - 1]) + margin
        return border + margin

    def _note(self, most: NDArray[Any]) -> None:
        """Keep the smallest of some upper bounds."""
        if len(most) >= self._limit:
            most = np.partition(most, self._limit - 1)[: self._limit]
            self._border = float(most[-1])
        self._most = most

    def compare(self, query: Floats) -> NDArray[np.intp]:
        """See NearestRows.compare."""
        border, looked = self._border, self._looked
        if not looked:
            return np.empty(0, np.intp)
        self._looked = []
        rows = [visible[least <= border] for _, visible, least in looked]
        ids = [part.ids[some] for (part, *_), some in zip(looked, rows, strict=True)]
        cosines = [
            _row_by_row(part.vectors, some, query) for (part, *_), some in zip(looked, rows, strict=True)
        ]
        all_ids = np.concatenate((self.ids, *ids))
        all_far = np.concatenate((self.far, -np.concatenate(cosines)))
        kept = _smallest(all_far, all_ids, self._limit)
        self.ids, self.far = all_ids[kept], all_far[kept]
        self._note(self.far)
        before = len(all_ids) - len(rows[-1])
        return rows[-1][kept[kept >= before] - before]


def _is_all(part: MatrixBlock, kinds: frozenset[int]) -> bool:
    """Return whether a block is known to hold rows of these kinds alone, none of them deleted."""
    return part.held is not None and part.held <= kinds and part.kinds.min(initial=0) != DEAD


def _row_by_row(vectors: Floats | PackedVectors, rows: NDArray[np.intp], query: Floats) -> Floats:
    """Return dot products that do not depend on the position of a row."""
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        if isinstance(vectors, PackedVectors):
            found[some] = vectors.products(rows[some], query)
        else:
            np.vecdot(vectors.take(rows[some], 0), query, out=found[some])
    return found


def _smallest(far: NDArray[Any], ids: NDArray[np.int64], limit: int) -> NDArray[np.intp]:
    """Return the indexes of the smallest values, unsorted; ties are broken by id."""
    if len(far) <= limit:
        return np.arange(len(far))
    border = np.partition(far, limit - 1)[limit - 1]
    less, equal = (far < border).nonzero()[0], (far == border).nonzero()[0]
    equal = equal[np.argsort(ids[equal])]
    return np.concatenate((less, equal[: limit - len(less)]))


def places_among(ascending: Ids, ids: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the positions of ids in an ascending array, and whether each is in it."""
    if not len(ascending):
        return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.bool_)
    at = np.minimum(ascending.searchsorted(ids), len(ascending) - 1)
    return at, ascending[at] == ids


def distinct(values: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Return the distinct values, ascending.

    np.unique, np.isin and np.union1d import numpy.ma on first use. In a search, that import fails if the process has no free
    file descriptor.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def lookup(kinds: Collection[Kind]) -> NDArray[np.bool_]:
    """Return a read-only array that maps a kind to whether it is among `kinds`; its last element is for DEAD."""
    return _lookup(frozenset(kinds))


@cache  # a search calls this four times with the same kinds
def _lookup(kinds: frozenset[Kind]) -> NDArray[np.bool_]:
    seen = np.zeros(np.iinfo(np.int8).max + 2, np.bool_)
    seen[[int(kind) for kind in kinds]] = True
    seen.flags.writeable = False
    return seen


def cosines(rows: Rows, query: Floats, chunk_ids: Ids) -> Doubles:
    """Return the cosine of each chunk with a query of length 1; NaN: the chunk has no vector.

    Computed row by row: equal texts must have equal cosines.
    """
    found = np.full(len(chunk_ids), np.nan)
    for places, part, at in _rows_of(rows, chunk_ids):
        found[places] = _row_by_row(part.vectors, at, query)
    return found


def vectors_of(rows: Rows, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Floats]:
    """Return the vectors of chunks; chunks without one are left out."""
    return {
        chunk_ids[place]: vector
        for places, part, at in _rows_of(rows, np.array(chunk_ids, np.int64))
        for place, vector in zip(places.tolist(), part.vectors[at], strict=True)
    }


def _rows_of(rows: Rows, chunk_ids: Ids) -> Iterator[tuple[NDArray[np.intp], MatrixBlock, NDArray[np.intp]]]:
    """Yield for each block: the indexes, within `chunk_ids`, of the chunks that it holds; the block; and their rows."""
    for part in rows.parts:
        at, is_here = part.rows_of(chunk_ids)
        if is_here.any():
            yield is_here.nonzero()[0], part, at[is_here]
