import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.store import vector_matrix
from memd.store.vector_matrix import FEWEST_ROWS, Matrix, Row
from tests.bounds import shipped
from tests.store.conftest import DIMENSIONS, vector_of

EVERYTHING = frozenset(Kind)


def row(number: int, *, kind: Kind = Kind.NOTE, seed: int | None = None) -> Row:
    """A chunk with a vector of its own, or the vector of another."""
    return Row(ChunkId(number), int(kind), vector_of(number if seed is None else seed))


def small() -> Matrix:
    """One whose blocks are as small as they can be."""
    return Matrix(DIMENSIONS, block_bytes=1)


def question(seed: int) -> NDArray[np.float32]:
    return np.frombuffer(vector_of(seed), "<f4")


def cosines_of(rows: Matrix, query: NDArray[np.float32], ids: Iterable[int]) -> dict[int, float]:
    wanted = list(ids)
    found = vector_matrix.cosines(rows.snapshot(), query, np.array(wanted, np.int64)).tolist()
    return {one: cosine for one, cosine in zip(wanted, found, strict=True) if not math.isnan(cosine)}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(1, 150)),
            st.tuples(st.just("remove"), st.integers(0, 10**6)),
        ),
        max_size=30,
    )
)
def test_what_was_added_and_not_removed_is_found(steps: list[tuple[str, int]]) -> None:
    """Whatever comes and goes, the nearest are those that a look at each of them tells."""
    rows, alive, made = small(), dict[int, NDArray[np.float32]](), 0
    for what, number in steps:
        if what == "add":
            rows.add([row(n, seed=n % 50) for n in range(made, made + number)])
            alive |= {n: question(n % 50) for n in range(made, made + number)}
            made += number
        else:
            gone = [n for n in alive if (n * 2654435761 + number) % 4]
            rows.remove([ChunkId(n) for n in [*gone, made + 5]])
            alive = {n: vector for n, vector in alive.items() if n not in gone}
    assert len(rows) == len(alive)
    query = question(1000)
    near = vector_matrix.nearest(rows.snapshot(), query, 10**6, EVERYTHING)
    assert sorted(near) == sorted(alive)
    mean, count = vector_matrix.scan(rows.snapshot(), query, 1, EVERYTHING).mean_cosine()
    assert count == len(alive)
    assert mean == pytest.approx(sum(float(one @ query) for one in alive.values()) / max(1, count), abs=1e-5)
    exact = {n: float(vector.astype(np.float64) @ query) for n, vector in alive.items()}
    assert [exact[n] for n in near] == pytest.approx(sorted(exact.values(), reverse=True), abs=1e-6)
    assert cosines_of(rows, query, [*alive, made + 5]) == pytest.approx(exact, abs=1e-6)


def test_rows_that_are_gone_take_no_room_for_ever() -> None:
    """A note that is edited for years leaves no more behind than a few blocks."""
    rows = small()
    rows.add(row(n) for n in range(1000))
    before = rows.resident_bytes
    for number in range(1000, 6000):
        rows.add([row(number, seed=1)])
        rows.remove([ChunkId(number - 1000)])
    assert len(rows) == 1000
    assert rows.resident_bytes < 2.5 * before


def test_a_search_keeps_the_rows_that_it_was_given() -> None:
    """What comes, goes and is put together afterwards changes no vector that a search scans."""
    rows = small()
    rows.add(row(n) for n in range(4 * FEWEST_ROWS))
    query = question(3)
    given = rows.snapshot()
    rows.remove([ChunkId(n) for n in range(4 * FEWEST_ROWS) if n % 5])
    rows.add(row(n) for n in range(1000, 1000 + 4 * FEWEST_ROWS))
    near = vector_matrix.nearest(given, query, 10**6, EVERYTHING)
    assert sorted(near) == [n for n in range(4 * FEWEST_ROWS) if n % 5 == 0]
    exact = {n: float(question(n).astype(np.float64) @ query) for n in near}
    assert [exact[n] for n in near] == pytest.approx(sorted(exact.values(), reverse=True), abs=1e-6)
    assert np.isnan(vector_matrix.cosines(given, query, np.array([1001]))).all()


def test_equal_vectors_tie_exactly_wherever_they_stand() -> None:
    """The cosine of a text does not depend on its place in the matrix."""
    rows = small()
    rows.add(row(n, seed=n % 7) for n in range(300))
    found = cosines_of(rows, question(99), range(300))
    assert all(found[n] == found[n % 7] for n in range(300))


def test_only_chunks_that_may_be_seen_are_near() -> None:
    """Rows of other kinds take nobody's place."""
    rows = small()
    kinds = [Kind.CURATED if n % 10 else Kind.NOTE for n in range(200)]
    rows.add(row(n, kind=kind) for n, kind in enumerate(kinds))
    near = vector_matrix.nearest(rows.snapshot(), question(1), 15, frozenset({Kind.NOTE, Kind.SESSION}))
    assert len(near) == 15
    assert all(n % 10 == 0 for n in near)
    assert vector_matrix.nearest(rows.snapshot(), question(1), 15, frozenset({Kind.SESSION})) == []


def test_each_source_has_its_nearest() -> None:
    """However many of the other are nearer; all of them in one order."""
    rows = small()
    kinds = [Kind.SESSION if n % 20 else Kind.NOTE for n in range(400)]
    rows.add(row(n, kind=kind) for n, kind in enumerate(kinds))
    near = vector_matrix.nearest(rows.snapshot(), question(1), 15, EVERYTHING)
    apart = [
        vector_matrix.nearest(rows.snapshot(), question(1), 15, kinds)
        for kinds in ({Kind.NOTE, Kind.CURATED}, {Kind.SESSION})
    ]
    assert [len(some) for some in apart] == [15, 15]
    whole = vector_matrix.nearest(rows.snapshot(), question(1), 400, EVERYTHING)
    assert near == [one for one in whole if one in {*apart[0], *apart[1]}]


@pytest.mark.parametrize("limit", [1, 2, 3, 50, 499, 1999, 2000])
def test_as_many_as_are_wanted_are_the_nearest(limit: int) -> None:
    """Of many rows in one block, or in many."""
    query = question(7)
    for rows in (small(), Matrix(DIMENSIONS)):
        rows.add(row(n) for n in range(2000))
        near = vector_matrix.nearest(rows.snapshot(), query, 2000, EVERYTHING)
        assert vector_matrix.nearest(rows.snapshot(), query, limit, EVERYTHING) == near[:limit]


def test_equal_ones_are_in_the_order_of_their_ids() -> None:
    """The order does not depend on where rows stand."""
    rows = small()
    rows.add(row(n, seed=1) for n in (5, 3, 9, 1))
    assert vector_matrix.nearest(rows.snapshot(), question(1), 4, EVERYTHING) == [1, 3, 5, 9]


def test_a_vector_of_another_size_is_refused() -> None:
    """It would be no vector of this model."""
    rows = Matrix(DIMENSIONS)
    with pytest.raises(ValueError, match="broadcast"):
        rows.add([Row(ChunkId(1), int(Kind.NOTE), np.ones(3, "<f4").tobytes())])
    assert len(rows) == 0


@given(st.permutations(range(1, 40)), st.integers(1, 39))
def test_of_equal_ones_the_oldest_are_taken(numbers: list[int], limit: int) -> None:
    """Wherever they lie, and however many are wanted: else the same search would find now these, now those."""
    rows = small()
    for number in numbers:
        rows.add([row(number, seed=1)])
    assert vector_matrix.nearest(rows.snapshot(), question(1), limit, EVERYTHING) == [*range(1, limit + 1)]


@pytest.mark.parametrize("spread", [1e-8, 1e-7, 1e-6, 1e-4, 1.0])
def test_what_is_nearly_as_near_is_told_apart_row_by_row(spread: float) -> None:
    """The nearest are those of products of single rows to the last bit, though a product of a matrix rounds otherwise."""
    rng = np.random.default_rng(int(1 / spread))
    some = rng.standard_normal(384) + spread * rng.standard_normal((3000, 384))
    vectors = (some / np.linalg.norm(some, axis=1, keepdims=True)).astype("<f4")
    rows = Matrix(384, block_bytes=700 * 4 * 384)
    rows.add(Row(ChunkId(n), int(Kind.NOTE), vector.tobytes()) for n, vector in enumerate(vectors))
    for query in (vectors[7], (rng.standard_normal(384) / 19).astype("<f4")):
        cosines = np.vecdot(vectors, query)
        expected = np.lexsort((np.arange(3000), -cosines))[:200]
        assert vector_matrix.nearest(rows.snapshot(), query, 200, EVERYTHING) == expected.tolist()
        found = vector_matrix.cosines(rows.snapshot(), query, expected)
        assert found.tolist() == cosines[expected].tolist()


@pytest.mark.parametrize("bytes_are_made", [False, True])
def test_a_scan_tells_the_cosines_of_what_it_found(bytes_are_made: bool) -> None:
    """To the last bit those that a look at the rows tells, of what came in any order, by the ids of the chunks."""
    rows = small()
    numbers = [7 * n % 1000 for n in range(1000)]
    rows.add(row(number, kind=Kind.SESSION if number % 3 else Kind.NOTE) for number in numbers)
    rows.remove([ChunkId(number) for number in range(0, 1000, 5)])
    if bytes_are_made:
        rows.make_bytes()
    scanned = vector_matrix.scan(rows.snapshot(), question(3), 40, EVERYTHING)
    ids, cosines = scanned.nearest_cosines()
    assert ids.tolist() == sorted(scanned.nearest())
    assert dict(zip(ids.tolist(), cosines.tolist(), strict=True)) == cosines_of(
        rows, question(3), ids.tolist()
    )
    by_cosine = sorted(ids.tolist(), key=lambda one: (-cosines[ids.tolist().index(one)], one))
    assert scanned.nearest() == by_cosine


def test_the_vectors_of_chunks_are_told_whichever_block_they_are_in() -> None:
    """Those that have none are left out."""
    rows = small()
    rows.add([row(number) for number in range(1, 3 * FEWEST_ROWS)])
    rows.remove([ChunkId(5)])
    wanted = [ChunkId(number) for number in (3 * FEWEST_ROWS - 1, 5, 1, FEWEST_ROWS + 1, 9999)]
    found = vector_matrix.vectors_of(rows.snapshot(), wanted)
    assert found.keys() == {1, FEWEST_ROWS + 1, 3 * FEWEST_ROWS - 1}
    for chunk_id, vector in found.items():
        np.testing.assert_array_equal(vector, question(int(chunk_id)))
        assert chunk_id in rows
    assert ChunkId(5) not in rows
    assert ChunkId(9999) not in rows


@pytest.mark.parametrize("bytes_are_made", [False, True])
def test_the_nearest_of_some_chunks_are_found_however_many_others_are_nearer(*, bytes_are_made: bool) -> None:
    """And those of all beside them, each once; the mean cosine is that of all."""
    rows = Matrix(DIMENSIONS)
    rows.add(row(n) for n in range(FEWEST_ROWS))
    if bytes_are_made:
        rows.make_bytes()
    query = question(1)
    whole = vector_matrix.nearest(rows.snapshot(), query, FEWEST_ROWS, EVERYTHING)
    far = np.sort(np.array(whole[-20:], np.int64))
    scanned = vector_matrix.scan(rows.snapshot(), query, 5, EVERYTHING, (None, far, far[:0]))
    found = scanned.nearest_cosines()[0].tolist()
    assert sorted(found) == sorted([*whole[:5], *whole[-20:-15]])
    assert scanned.mean_cosine()[1] == FEWEST_ROWS


def test_rows_are_put_in_the_order_of_their_ids_once_and_only_where_they_are_not() -> None:
    """Chunks that come get larger ids; what is restored may not."""
    rows = Matrix(DIMENSIONS)
    rows.add(row(n) for n in (2, 3, 5))
    [ascending] = rows.snapshot().parts
    assert ascending.by_id is None
    rows.add([row(4)])
    [first], [again] = rows.snapshot().parts, rows.snapshot().parts
    assert first.by_id is not None
    assert first.by_id is again.by_id
    assert [one.tolist() for one in first.by_id] == [[0, 1, 3, 2], [2, 3, 4, 5]]
    rows.add([row(9)])
    [more] = rows.snapshot().parts
    assert more.by_id is not None
    assert more.by_id[1].tolist() == [2, 3, 4, 5, 9]
    assert cosines_of(rows, question(4), [4, 5]).keys() == {4, 5}


def test_a_block_has_room_for_so_many_rows_however_small_it_is_to_be() -> None:
    """The next row begins another."""
    fewest, rows = shipped("memd.store.vector_matrix.FEWEST_ROWS"), small()
    rows.add(row(n) for n in range(fewest))
    assert len(rows.snapshot().parts) == 1
    rows.add([row(fewest)])
    assert len(rows.snapshot().parts) == 2
