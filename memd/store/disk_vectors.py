"""Searches the vectors of an index on disk; only the id and the kind of each are in memory.

The vectors are read in blocks, as they are stored, and compared by the same arithmetic as vectors in memory: a question has the same
candidates and the same cosines, to the last bit.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.store.vector_matrix import (
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

Block = tuple[Ids, Floats]  # (n,), (n, dimensions); an id of no chunk: the row holds nothing

# Of a row: its id and its kind. The vector of the bundled model has 1536 bytes.
_ROW_BYTES = 8 + 1


class ListedVector(msgspec.Struct, frozen=True):
    """A state of the shelf that a search may hold on to: the chunks that have a vector, by id."""

    ids: Ids  # (n,), ascending
    kinds: NDArray[np.int8]  # (n,)


class NearVectors(msgspec.Struct, frozen=True):
    """What was found among vectors on disk."""

    chunk_ids: list[ChunkId]  # nearest first
    rows: Rows  # their vectors, and those that were asked for besides
    mean_cosine: tuple[float, int]  # see NearestRows.mean_cosine


class DiskVectors:
    """The chunks of an index whose vectors are in its file, added and removed by one writer.

    Readers take the arrays as they are at that moment; a writer puts others in their place. That copies a hundredth of
    what the vectors would take.
    """

    def __init__(self, dimensions: int, listed: ListedVector) -> None:
        """These chunks are on it.

        Args:
            dimensions: Of their vectors.
            listed: The chunks.
        """
        self.dimensions = dimensions
        self._listed = listed

    @classmethod
    def of(cls, rows: Matrix) -> "DiskVectors":
        """What vectors in memory leave behind when they are given up."""
        parts = rows.snapshot().parts
        alive = [np.flatnonzero(part.kinds != DEAD) for part in parts]
        return cls(
            rows.dimensions,
            _listed(
                [part.ids[at] for part, at in zip(parts, alive, strict=True)],
                [part.kinds[at] for part, at in zip(parts, alive, strict=True)],
            ),
        )

    def __len__(self) -> int:
        return len(self._listed.ids)

    @property
    def resident_bytes(self) -> int:
        """Memory held by what is known of each."""
        return len(self) * _ROW_BYTES

    def add(self, rows: Iterable[Row]) -> None:
        """List chunks that are not on it."""
        came = [(row.id, row.kind) for row in rows]
        if came:
            ids, kinds = (list(column) for column in zip(*came, strict=True))
            now = self._listed
            self._listed = _listed(
                [now.ids, np.array(ids, np.int64)],
                [now.kinds, np.array(kinds, np.int8)],
            )

    def remove(self, chunk_ids: Iterable[ChunkId]) -> None:
        """Forget chunks; those that are not on it are passed over."""
        at, is_there = places_among(self._listed.ids, np.fromiter(chunk_ids, np.int64))
        if is_there.any():
            gone, now = at[is_there], self._listed
            self._listed = ListedVector(np.delete(now.ids, gone), np.delete(now.kinds, gone))

    def snapshot(self) -> ListedVector:
        """The chunks of this moment, without a copy."""
        return self._listed


def listed(rows: Iterable[tuple[int, int]]) -> ListedVector:
    """Chunks with their kinds, in the order of their ids."""
    table = np.fromiter(rows, np.dtype([("id", np.int64), ("kind", np.int8)]))
    return ListedVector(*(np.ascontiguousarray(table[name]) for name in ("id", "kind")))


def _listed(ids: list[Ids], kinds: list[NDArray[np.int8]]) -> ListedVector:
    if not ids:
        return listed(())
    joined = np.concatenate(ids)
    # This is so after an edit, whose chunks have the highest ids: 1 ms less of each 60,000.
    if (joined[1:] > joined[:-1]).all():
        return ListedVector(joined, np.concatenate(kinds))
    order = np.argsort(joined)
    return ListedVector(joined[order], np.concatenate(kinds)[order])


def parts(known: ListedVector, blocks: Iterable[Block]) -> Iterator[MatrixBlock]:
    """Blocks as a search scans them; rows of chunks that are not listed are dead."""
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
    """See vector_matrix.nearest; one look at each block.

    Args:
        known: The chunks that may be found.
        blocks: All vectors that are stored; a block need not outlive the next.
        query: Shape (dimensions,), of length 1.
        limit: How many of each source at most.
        kinds: What may be seen.
        also: Chunks whose vectors are wanted however far they are.
        among: As of vector_matrix.scan.

    Returns:
        None: not one of the listed chunks is among what is stored. Another index has taken the place of theirs.
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
        for near in scanned.compare():
            is_kept[near] = True
        kept.append(_some(part, is_kept))
    if not is_any_known:
        return None
    nearest_ids = scanned.nearest()
    # What was near for a while, until nearer ones came, is not needed any more.
    needed = distinct(np.concatenate((wanted, np.array(nearest_ids, np.int64))))
    last = [_some(part, places_among(needed, part.ids)[1]) for part in kept if len(part.ids)]
    return NearVectors(nearest_ids, Rows(tuple(last)), scanned.mean_cosine())


def _some(part: MatrixBlock, is_kept: NDArray[np.bool_]) -> MatrixBlock:
    """A copy of some rows."""
    ids = part.ids[is_kept]
    order = None if (ids[1:] > ids[:-1]).all() else np.argsort(ids)
    by_id = None if order is None else (order, ids[order])
    return MatrixBlock(part.vectors[is_kept], ids, part.kinds[is_kept], by_id)
