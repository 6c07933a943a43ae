import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.store import int8_vectors, vector_matrix
from memd.store.int8_vectors import Int8Block, QuantisedQuestion, simsimd
from memd.store.vector_matrix import Matrix, Row

DIMENSIONS, ROWS_OF_BLOCK = 64, 500
EVERYTHING = frozenset(Kind)
NOTES = frozenset({Kind.NOTE})

Floats = NDArray[np.float32]


def some_vectors(seed: int, count: int, *, spread: float = 1.0) -> Floats:
    """Vectors of length 1, around one of them where the spread is small."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(DIMENSIONS) + spread * rng.standard_normal((count, DIMENSIONS))
    return np.ascontiguousarray(found / np.linalg.norm(found, axis=1, keepdims=True), "<f4")


def in_blocks(vectors: Floats) -> Matrix:
    """A matrix of them with blocks that are full; every third is of a session."""
    rows = Matrix(DIMENSIONS, block_bytes=ROWS_OF_BLOCK * 4 * DIMENSIONS)
    add(rows, vectors, 0)
    return rows


def add(rows: Matrix, vectors: Floats, first: int) -> None:
    """Add vectors from one on."""
    kinds = (Kind.NOTE, Kind.CURATED, Kind.SESSION)
    rows.add(
        Row(ChunkId(n), int(kinds[n % 3]), one.tobytes()) for n, one in enumerate(vectors[first:], first)
    )


@pytest.mark.skipif(int8_vectors.simsimd() is None, reason="simsimd has no wheel here")
@pytest.mark.parametrize("spread", [0.01, 0.3, 10.0])
def test_bytes_find_what_floats_find(monkeypatch: pytest.MonkeyPatch, spread: float) -> None:
    """The same chunks in the same order, with the same mean, of what is left when half are gone, too.

    Of the last block only the first rows have bytes, and it grows on.
    """
    vectors = some_vectors(1, 4 * ROWS_OF_BLOCK + 437, spread=spread)
    asked = [
        *some_vectors(2, 20, spread=spread),
        *some_vectors(3, 20),
        vectors[5],
        np.eye(DIMENSIONS, dtype="<f4")[3],
    ]
    rows, gone = in_blocks(vectors[: 4 * ROWS_OF_BLOCK + 300]), set[int]()
    rows.make_bytes()
    add(rows, vectors, 4 * ROWS_OF_BLOCK + 300)
    *full, growing = rows.snapshot().parts
    assert [len(block.rough or ()) for block in full] == [ROWS_OF_BLOCK] * 4
    assert (len(growing.rough or ()), len(growing.ids)) == (300, 437)
    for _ in range(3):
        for query in asked:
            for kinds in (EVERYTHING, NOTES):
                by_bytes = vector_matrix.scan(rows.snapshot(), query, 50, kinds)
                with monkeypatch.context() as without:
                    without.setattr(int8_vectors, "simsimd", lambda: None)
                    by_floats = vector_matrix.scan(rows.snapshot(), query, 50, kinds)
                assert by_bytes.nearest() == by_floats.nearest()
                assert by_bytes.mean_cosine() == pytest.approx(by_floats.mean_cosine(), abs=1e-6)
        gone |= {n for n in range(len(vectors)) if (n * 2654435761) % 7 < 2 + len(gone) // 900}
        rows.remove([ChunkId(n) for n in gone])


def test_the_margin_holds_for_products() -> None:
    """Also where one dimension is much larger than all others, and for a vector of nothing."""
    vectors = some_vectors(4, 300)
    vectors[:100, 7] += 20 * np.float32(np.abs(vectors).max())
    vectors[:100] /= np.linalg.norm(vectors[:100], axis=1, keepdims=True)
    vectors[200] = 0
    block = Int8Block(vectors)
    assert block.resident_bytes == 0
    for made in (0, 120, 300):
        block.make(np.zeros(made, np.int8))
        if simsimd() is None:
            pytest.skip("simsimd has no wheel here")
        assert block.resident_bytes == made * (DIMENSIONS + 4)
        for query in some_vectors(5, 50):
            for count in (100, 250, 300):
                found = block.products(QuantisedQuestion.of(query), count)
                assert (found is None) == (made == 0)
                if found is not None:
                    errors = np.abs(found.products - vectors[:count] @ query)
                    assert len(errors) == count
                    assert errors.max() < found.margin
                    assert (errors < found.margins(np.arange(count))).all()


def test_the_sums_are_those_of_rows_that_are_there() -> None:
    """A row that goes, and one that is of another kind now, are taken out of what was added up."""
    vectors = some_vectors(6, 90)
    kinds = np.arange(90, dtype=np.int8) % 3
    block = Int8Block(vectors)
    for count in (40, 90, 70, 90):
        found = block.sums(kinds[:count])
        for kind in (0, 1, 2):
            number, total = found.get(kind, (0, np.zeros(DIMENSIONS)))
            those = vectors[:count][kinds[:count] == kind].astype(np.float64)
            assert number == len(those)
            np.testing.assert_allclose(total, those.sum(axis=0), atol=1e-12)
        kinds = np.where(np.arange(90) % 4 == 0, -1, np.roll(kinds, 1)).astype(np.int8)


def test_what_multiplies_bytes_here_is_used_only_if_it_does_so_rightly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it is installed; a version that multiplies otherwise, or not at all, is done without."""
    installed = find_spec("simsimd") is not None
    simsimd.cache_clear()
    assert (simsimd() is not None) is installed
    wrong = ([[1], [2]], TypeError("another signature"), ValueError("no such kind"), AttributeError("cdist"))
    for told in wrong:

        def cdist(*_: object, told: object = told) -> object:
            if isinstance(told, Exception):
                raise told
            return told

        monkeypatch.setitem(sys.modules, "simsimd", SimpleNamespace(cdist=cdist))
        simsimd.cache_clear()
        assert simsimd() is None
    monkeypatch.undo()
    simsimd.cache_clear()


def test_what_multiplies_bytes_is_loaded_before_a_search_wants_it() -> None:
    """With the bytes: in the middle of a search there may be no descriptor left."""
    simsimd.cache_clear()
    block, query = Int8Block(some_vectors(7, 3)), QuantisedQuestion.of(some_vectors(8, 1)[0])
    block.products(query, 3)
    assert simsimd.cache_info().currsize == 0
    block.make(np.zeros(3, np.int8))
    assert simsimd.cache_info().currsize == 1
