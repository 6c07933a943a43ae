import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import ChunkId, Kind
from memd.store import disk_vectors, vector_matrix
from memd.store.disk_vectors import Block, DiskVectors
from memd.store.vector_matrix import Matrix, MatrixBlock, Row
from tests.store.conftest import DIMENSIONS, vector_of

EVERYTHING = frozenset(Kind)
KINDS = [Kind.CURATED, Kind.NOTE, Kind.SESSION]
NOTHING = disk_vectors.listed([], [])

# A chunk: which vector it has (few, so that many are equal), and of what kind it is.
CHUNKS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(KINDS)), max_size=120)


def rows_of(chunks: list[tuple[int, Kind]]) -> list[Row]:
    return [
        Row(ChunkId(3 * number), int(kind), vector_of(seed)) for number, (seed, kind) in enumerate(chunks)
    ]


def blocks_of(rows: list[Row], size: int) -> Iterator[Block]:
    """As a file may have them: in any order, some of them of chunks that are not listed."""
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        ids = np.array([row.id for row in some], np.int64)
        yield ids, np.frombuffer(b"".join(row.vector for row in some), "<f4").reshape(-1, DIMENSIONS)


@given(CHUNKS, st.integers(1, 50), st.integers(1, 40), st.sets(st.integers(0, 400)), st.randoms())
def test_what_is_found_on_disk_is_what_is_found_in_memory(
    chunks: list[tuple[int, Kind]], size: int, limit: int, also: set[int], random: Any
) -> None:
    """The same candidates in the same order, with the same cosines to the last bit, however the rows lie."""
    rows = rows_of(chunks)
    resident = Matrix(DIMENSIONS, block_bytes=1)
    resident.add(rows)
    shuffled = [*rows, Row(ChunkId(10_000), int(Kind.NOTE), vector_of(3))]
    random.shuffle(shuffled)
    query = np.frombuffer(vector_of(3), "<f4")
    for kinds in (EVERYTHING, frozenset({Kind.NOTE}), frozenset({Kind.SESSION, Kind.CURATED})):
        scanned = vector_matrix.scan(resident.snapshot(), query, limit, kinds)
        near = scanned.nearest()
        wanted = [ChunkId(one) for one in also]
        known = DiskVectors.of(resident).snapshot()
        found = disk_vectors.nearest(known, blocks_of(shuffled, size), query, limit, kinds, wanted)
        assert found is not None
        assert found.chunk_ids == near
        assert found.mean_cosine == pytest.approx(scanned.mean_cosine(), abs=1e-6)
        assert told(found.rows, query, [*near, *wanted]) == told(resident.snapshot(), query, [*near, *wanted])


def told(rows: vector_matrix.Rows, query: vector_matrix.Floats, chunk_ids: list[ChunkId]) -> dict[int, float]:
    wanted = list(dict.fromkeys(chunk_ids))
    found = zip(wanted, vector_matrix.cosines(rows, query, np.array(wanted, np.int64)).tolist(), strict=True)
    return {one: cosine for one, cosine in found if not math.isnan(cosine)}


@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 60), unique=True, max_size=20)), max_size=12)
)
def test_what_was_added_and_not_removed_is_listed(steps: list[tuple[bool, list[int]]]) -> None:
    """In the order of ids, each with its kind; a state that a search holds does not change."""
    kept, alive = DiskVectors(DIMENSIONS, NOTHING), dict[int, int]()
    for is_added, numbers in steps:
        before = kept.snapshot()
        ids = before.ids.tolist()
        if is_added:
            new = {n: n % 3 for n in numbers if n not in alive}
            kept.add(Row(ChunkId(n), kind, b"") for n, kind in new.items())
            alive |= new
        else:
            kept.remove([ChunkId(n) for n in numbers])
            alive = {n: what for n, what in alive.items() if n not in numbers}
        assert before.ids.tolist() == ids
    now = kept.snapshot()
    assert len(kept) == len(alive)
    assert list(zip(now.ids.tolist(), now.kinds.tolist(), strict=True)) == sorted(alive.items())


def test_it_takes_a_hundredth_of_the_vectors() -> None:
    """What is left in memory is what a search needs to know of each row."""
    rows = Matrix(384)
    vector = np.ones(384, "<f4").tobytes()
    rows.add(Row(ChunkId(n), int(Kind.NOTE), vector) for n in range(1000))
    assert 50 * DiskVectors.of(rows).resident_bytes < rows.resident_bytes


def test_the_vectors_of_another_index_are_none() -> None:
    """Where none of the chunks is among what is stored, another index has taken the place of theirs."""
    rows = rows_of([(1, Kind.NOTE)] * 5)
    query = np.frombuffer(vector_of(1), "<f4")
    known = disk_vectors.listed([np.arange(1000, 1005)], [np.full(5, Kind.NOTE, np.int8)])
    for stored in (rows, []):
        assert (
            disk_vectors.nearest(known, blocks_of(stored, 2), query, 3, EVERYTHING, [ChunkId(1001)]) is None
        )
    found = disk_vectors.nearest(NOTHING, blocks_of(rows, 2), query, 3, EVERYTHING, [])
    assert found is not None
    assert found.chunk_ids == []
    assert np.isnan(vector_matrix.cosines(found.rows, query, np.array([0]))).all()


@pytest.mark.parametrize("size", [1, 7, 64, 500])
def test_a_matrix_takes_blocks_of_any_size(size: int) -> None:
    """What is loaded from a file is what was added row by row, without the rows that are no chunk's.

    It is the same where fewer rows or more come than were expected.
    """
    rows = rows_of([(n % 9, KINDS[n % 3]) for n in range(300)])
    one_by_one = Matrix(DIMENSIONS, block_bytes=1)
    one_by_one.add(rows)
    known = DiskVectors.of(one_by_one).snapshot()
    stray = Row(ChunkId(7), int(Kind.NOTE), vector_of(1))
    for expected in (300, 0, 100, 1000):
        parts = disk_vectors.parts(known, blocks_of([*rows, stray], size))
        taken = Matrix.of(DIMENSIONS, parts, expected, block_bytes=1)
        assert len(taken) == 300
        assert contents(taken) == contents(one_by_one)


def contents(rows: Matrix) -> dict[int, tuple[int, bytes]]:
    found: dict[int, tuple[int, bytes]] = {}
    for part in rows.snapshot().parts:
        found |= {
            chunk_id: (kind, vector.tobytes())
            for chunk_id, kind, vector in _each(part)
            if kind != vector_matrix.DEAD
        }
    return found


def _each(part: MatrixBlock) -> Iterator[tuple[int, int, Any]]:
    return zip(part.ids.tolist(), part.kinds.tolist(), part.vectors[:], strict=True)
