"""Searches the vectors of an index on disk, with only their ids and kinds in memory.

The vectors are read in blocks and compared by the same arithmetic as vectors in memory, so that a question has the same
candidates and bitwise equal cosines.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.store.vector_matrix import (
    BESIDE_BYTES,
    DEAD,
    Floats,
    Ids,
    Matrix,
    MatrixBlock,
    NearestRows,
    Row,
    Rows,
    distinct,
    places_among,
)

Block = tuple[Ids, Floats]  # (n,), (n, dimensions); an id that is no chunk's: the row is empty


class ListedVector(msgspec.Struct, frozen=True):
    """A snapshot of the ids and kinds of the chunks that have vectors on disk."""

    ids: Ids  # (n,), ascending
    kinds: NDArray[np.int8]  # (n,)

    def __len__(self) -> int:
        return len(self.ids)

    def have(self, chunk_ids: Ids) -> NDArray[np.bool_]:
        """Return whether each chunk has a vector."""
        return places_among(self.ids, chunk_ids)[1]


class NearVectors(msgspec.Struct, frozen=True):
    """The result of a search in vectors on disk."""

    chunk_ids: list[ChunkId]  # nearest first
    rows: Rows  # the vectors of these chunks, and of those in `also`
    mean_cosine: tuple[float, int]  # see NearestRows.mean_cosine


class DiskVectors:
    """The ids and kinds of the vectors in the index file, with one writer.

    Readers take a snapshot; the writer replaces the arrays. That copies a hundredth of what the vectors would take.
    """

    def __init__(self, dimensions: int, listed: ListedVector) -> None:
        """Start with the listed chunks.

        Args:
            dimensions: The dimensions of their vectors.
            listed: The chunks.
        """
        self.dimensions = dimensions
        self._listed = listed

    @classmethod
    def of(cls, rows: Matrix) -> "DiskVectors":
        """Create it from vectors in memory, which the caller then releases."""
        parts = rows.snapshot().parts
        alive = [np.flatnonzero(part.kinds != DEAD) for part in parts]
        return cls(
            rows.dimensions,
            listed(
                [part.ids[at] for part, at in zip(parts, alive, strict=True)],
                [part.kinds[at] for part, at in zip(parts, alive, strict=True)],
            ),
        )

    def __len__(self) -> int:
        return len(self._listed.ids)

    @property
    def resident_bytes(self) -> int:
        """The memory of ids and kinds, in bytes."""
        return len(self) * BESIDE_BYTES

    def add(self, rows: Iterable[Row]) -> None:
        """Add chunks that are not listed yet."""
        came = [(row.id, row.kind) for row in rows]
        if came:
            ids, kinds = (list(column) for column in zip(*came, strict=True))
            now = self._listed
            self._listed = listed(
                [now.ids, np.array(ids, np.int64)],
                [now.kinds, np.array(kinds, np.int8)],
            )

    def remove(self, chunk_ids: Iterable[ChunkId]) -> None:
        """Remove chunks; unknown ids are ignored."""
        at, is_there = places_among(self._listed.ids, np.fromiter(chunk_ids, np.int64))
        if is_there.any():
            gone, now = at[is_there], self._listed
            self._listed = ListedVector(np.delete(now.ids, gone), np.delete(now.kinds, gone))

    def snapshot(self) -> ListedVector:
        """Return a snapshot; nothing is copied."""
        return self._listed


def listed(ids: Sequence[Ids], kinds: Sequence[NDArray[np.int8]]) -> ListedVector:
    """Create a snapshot from arrays of ids, in any order, and their kinds."""
    if not ids:
        return ListedVector(np.empty(0, np.int64), np.empty(0, np.int8))
    joined = np.concatenate(ids)
    # True after an edit, whose chunks have the highest ids; avoids sorting, 1 ms per 60,000.
    if (joined[1:] > joined[:-1]).all():
        return ListedVector(joined, np.concatenate(kinds))
    order = np.argsort(joined)
    return ListedVector(joined[order], np.concatenate(kinds)[order])


def parts(known: ListedVector, blocks: Iterable[Block]) -> Iterator[MatrixBlock]:
    """Yield blocks as `NearestRows.look` takes them; rows of chunks that are not listed are DEAD."""
    for ids, vectors in blocks:
        at, is_there = places_among(known.ids, ids)
        kinds = np.full(len(ids), DEAD, np.int8)
        kinds[is_there] = known.kinds[at[is_there]]
        yield MatrixBlock(vectors, ids, kinds)


def nearest(
    known: ListedVector,
    blocks: Iterable[Block],
    query: Floats,
    limit: int,
    kinds: Collection[Kind],
    also: Collection[ChunkId],
    among: Sequence[Ids | None] = (None,),
) -> NearVectors | None:
    """Find the chunks nearest to a query, reading each block once; see vector_matrix.scan.

    Args:
        known: The chunks that may be found.
        blocks: All stored vectors; a block is valid until the next one is read.
        query: Shape (dimensions,), length 1.
        limit: The most chunks per source and filter.
        kinds: The kinds of files that are visible.
        also: Chunks whose vectors are returned at any distance.
        among: See vector_matrix.scan.

    Returns:
        None if no listed chunk is stored: another index has replaced theirs.
    """
    scanned = NearestRows(query, limit, kinds, among)
    wanted = np.sort(np.fromiter(also, np.int64, len(also)))
    kept: list[MatrixBlock] = []
    is_any_known = not len(known.ids)
    for part in parts(known, blocks):
        is_alive = part.kinds != DEAD
        is_any_known = is_any_known or bool(is_alive.any())
        is_kept = places_among(wanted, part.ids)[1] & is_alive
        scanned.look(part)
        is_kept[scanned.compare()] = True
        kept.append(_some(part, is_kept))
    if not is_any_known:
        return None
    nearest_ids = scanned.nearest()
    # Drops rows that were among the nearest only until nearer ones were found.
    needed = distinct(np.concatenate((wanted, np.array(nearest_ids, np.int64))))
    last = [_some(part, places_among(needed, part.ids)[1]) for part in kept if len(part.ids)]
    return NearVectors(nearest_ids, Rows(tuple(last)), scanned.mean_cosine())


def _some(part: MatrixBlock, is_kept: NDArray[np.bool_]) -> MatrixBlock:
    """Return a copy of some rows."""
    ids = part.ids[is_kept]
    order = None if (ids[1:] > ids[:-1]).all() else np.argsort(ids)
    by_id = None if order is None else (order, ids[order])
    return MatrixBlock(part.vectors[is_kept], ids, part.kinds[is_kept], by_id)
