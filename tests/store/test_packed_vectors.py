from itertools import pairwise

import numpy as np
import pytest

from memd.domain_types import ChunkId, Kind
from memd.store import int8_vectors, int16_vectors, vector_matrix
from memd.store.int8_vectors import BlockPacking, Int8Block, QuantisedQuestion
from memd.store.packed_vectors import Floats, PackedVectors
from memd.store.vector_matrix import Matrix, MatrixBlock, Row
from tests.bounds import shipped

DIMENSIONS, ROWS_OF_BLOCK = 64, 700
EVERYTHING = frozenset(Kind)

needs_simsimd = pytest.mark.skipif(int8_vectors.simsimd() is None, reason="simsimd has no wheel here")


def stored(seed: int, count: int, *, spread: float = 1.0) -> Floats:
    """Vectors of length 1 as an index has them."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(DIMENSIONS) + spread * rng.standard_normal((count, DIMENSIONS))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    rounded = int16_vectors.rounded({n: one.astype("<f4").tobytes() for n, one in enumerate(found)})
    return np.array([np.frombuffer(one, "<f4") for one in rounded.values()])


def packed(vectors: Floats) -> PackedVectors:
    """The same, packed."""
    found = PackedVectors.of(vectors)
    assert found is not None
    return found


def test_what_comes_out_is_bitwise_what_went_in() -> None:
    """Also what integers do not represent: such rows are kept as floats, and so is one that has no high byte."""
    vectors = stored(1, 1000)
    vectors[3] = 0
    odd = {
        7: np.full(DIMENSIONS, 1 / 3, np.float32),
        400: np.full(DIMENSIONS, 1e-38, np.float32),
        999: np.linspace(-1, 1, DIMENSIONS, dtype=np.float32),
    }
    for row, vector in odd.items():
        vectors[row] = vector
    one = packed(vectors)
    assert len(one) == 1000
    assert odd.keys() <= set(one.others.tolist())
    assert len(one.others) < 20
    for rows in (
        slice(None),
        slice(290, 310),
        slice(5, 5),
        np.array([999, 3, 7, 400, 400, 8]),
        np.arange(0),
    ):
        assert one[rows].tobytes() == vectors[rows].tobytes()
    assert 2 * 1000 * DIMENSIONS < one.nbytes < 2.3 * 1000 * DIMENSIONS


def test_the_largest_integer_that_has_a_high_byte_is_packed() -> None:
    """A larger one is kept as a float; the rest of a division has a low byte, also where it is half of the divisor."""
    units = int(shipped("memd.store.packed_vectors._MOST_UNITS"))
    most = 127 * units + units // 2 - 1
    vectors = np.zeros((64, DIMENSIONS), np.float32)
    vectors[:, 6] = 30_001
    vectors[:4, 5] = most, most + 1, -most, -most - 1
    vectors[0, 7:11] = units // 2, -(units // 2), units // 2 + 1, units // 2 - 1
    vectors *= np.float32(2.0**-15)
    one = packed(vectors)
    assert one.others.tolist() == [1, 3]
    assert one[:].tobytes() == vectors.tobytes()
    assert one.high[[0, 2], 5].tolist() == [127, -127]
    assert one.low[0, 7:11].tolist() == [-128, -128, -127, 127]


def test_where_many_rows_would_be_floats_nothing_is_packed() -> None:
    """Vectors of an index that was made by a version that did not round them."""
    share = float(shipped("memd.store.packed_vectors._MOST_FLOATS"))
    vectors = stored(2, 1600)
    is_odd = np.zeros(1600, np.bool_)
    is_odd[packed(vectors).others] = True
    usual, most = np.flatnonzero(~is_odd), int(1600 * share) - int(is_odd.sum())
    vectors[usual[:most]] = 1 / 3
    assert len(packed(vectors).others) == 1600 * share
    vectors[usual[most]] = 1 / 3
    assert PackedVectors.of(vectors) is None


def test_what_is_packed_as_it_comes_is_what_is_packed_at_once() -> None:
    """Whatever the pieces; so are the sums of its vectors. Where packing is not worthwhile, the block is of floats."""
    vectors, kinds = stored(9, 700), (np.arange(700) % 2).astype(np.int8)
    vectors[3], vectors[400:402] = 0, 1 / 3
    at_once = Int8Block(vectors)
    at_once.make(kinds)
    for pieces in ([700], [1, 255, 256, 188], [100] * 7):
        packing = BlockPacking(700, DIMENSIONS)
        starts = np.cumsum([0, *pieces])
        for start, end in pairwise(starts.tolist()):
            packing.add(vectors[start:end], kinds[start:end])
            assert packing.floats().tobytes() == vectors[:end].tobytes()
        block, whole = packing.block(kinds), packed(vectors)
        assert isinstance(block.vectors, PackedVectors)
        for name in whole.__struct_fields__:
            assert getattr(block.vectors, name).tobytes() == getattr(whole, name).tobytes()
        for kind, (count, total) in at_once.sums(kinds).items():
            assert block.sums(kinds)[kind][0] == count
            np.testing.assert_allclose(block.sums(kinds)[kind][1], total, atol=1e-12)
    odd = vectors.copy()
    odd[::3] = 1 / 3
    packing = BlockPacking(700, DIMENSIONS)
    packing.add(odd, kinds)
    block = packing.block(kinds)
    assert isinstance(block.vectors, np.ndarray)
    assert block.vectors.tobytes() == odd.tobytes()
    assert len(block) == (0 if int8_vectors.simsimd() is None else 700)


@needs_simsimd
def test_blocks_that_are_not_worth_packing_are_taken_as_floats() -> None:
    """What comes after such a block is packed all the same where it is worthwhile."""
    vectors = stored(10, 4 * 700)
    vectors[:1000] = 1 / 3
    kinds, ids = np.ones(len(vectors), np.int8), np.arange(len(vectors))
    parts = [
        MatrixBlock(vectors[at : at + 500], ids[at : at + 500], kinds[at : at + 500])
        for at in range(0, len(vectors), 500)
    ]
    rows = Matrix.of(DIMENSIONS, parts, len(vectors), block_bytes=700 * 4 * DIMENSIONS)
    taken = rows.snapshot().parts
    assert [isinstance(one.vectors, PackedVectors) for one in taken] == [False, False, True, True]
    assert np.concatenate([one.vectors[:] for one in taken]).tobytes() == vectors.tobytes()
    assert not rows.lacks_bytes


@needs_simsimd
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_margin_holds_for_products_of_packed_vectors(*, is_sparse: bool) -> None:
    """Also where most components are 0, which the high plane must not take for half a step."""
    vectors = stored(3, 500)
    if is_sparse:
        vectors[:, 4:] = 0
    block = Int8Block(vectors)
    block.make(np.zeros(500, np.int8))
    assert isinstance(block.vectors, PackedVectors)
    assert block.resident_bytes == block.vectors.nbytes
    for query in [
        *stored(4, 50),
        np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32),
        np.eye(DIMENSIONS, dtype="<f4")[0],
    ]:
        for count in (100, 500):
            found = block.products(QuantisedQuestion.of(query), count)
            assert found is not None
            assert (np.abs(found.products - vectors[:count] @ query) < found.margins(np.arange(count))).all()
            assert found.margins(np.arange(count)).max() < found.margin + 1e-6 < 0.2


@needs_simsimd
@pytest.mark.parametrize("spread", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("is_taken", [False, True])
def test_packed_blocks_find_what_floats_find(
    monkeypatch: pytest.MonkeyPatch, spread: float, *, is_taken: bool
) -> None:
    """To the last bit, of rows that came one by one or as blocks, also when half of them are gone; in less memory."""
    vectors = stored(5, 4 * ROWS_OF_BLOCK + 100, spread=spread)
    kinds = (Kind.NOTE, Kind.CURATED, Kind.SESSION)
    both = [Matrix(DIMENSIONS, block_bytes=ROWS_OF_BLOCK * 4 * DIMENSIONS) for _ in range(2)]
    floats, rows = both
    for one in both:
        one.add(Row(ChunkId(n), int(kinds[n % 3]), row.tobytes()) for n, row in enumerate(vectors))
    if is_taken:
        parts = floats.snapshot().parts
        rows = Matrix.of(DIMENSIONS, parts, len(floats), block_bytes=ROWS_OF_BLOCK * 4 * DIMENSIONS)
    else:
        assert rows.lacks_bytes
        rows.make_bytes()
    assert not rows.lacks_bytes
    assert [isinstance(one.vectors, PackedVectors) for one in rows.snapshot().parts] == [True] * 4 + [False]
    assert rows.resident_bytes < 0.6 * floats.resident_bytes
    gone = [ChunkId(n) for n in range(len(vectors)) if n % 5 in (1, 3)]
    more = stored(6, 2 * ROWS_OF_BLOCK, spread=spread)
    asked = [*stored(7, 10, spread=spread), vectors[5]]
    for step in range(3):
        for query in asked:
            expected = vector_matrix.scan(floats.snapshot(), query, 50, EVERYTHING)
            with_bytes = vector_matrix.scan(rows.snapshot(), query, 50, EVERYTHING)
            with monkeypatch.context() as without:
                without.setattr(int8_vectors, "simsimd", lambda: None)
                by_floats = vector_matrix.scan(rows.snapshot(), query, 50, EVERYTHING)
            for found in (with_bytes, by_floats):
                assert found.nearest() == expected.nearest()
                assert found.nearest_cosines()[1].tolist() == expected.nearest_cosines()[1].tolist()
                assert found.mean_cosine() == pytest.approx(expected.mean_cosine(), abs=1e-6)
        wanted = [ChunkId(n) for n in range(0, len(vectors), 97)]
        of_floats = vector_matrix.vectors_of(floats.snapshot(), wanted)
        of_packed = vector_matrix.vectors_of(rows.snapshot(), wanted)
        assert {n: one.tobytes() for n, one in of_packed.items()} == {
            n: one.tobytes() for n, one in of_floats.items()
        }
        for one in (floats, rows):
            if step == 0:
                one.remove(gone)
            else:  # blocks that are half gone are put together
                one.remove([ChunkId(n) for n in range(0, len(vectors), 5)])
                one.add(Row(ChunkId(10_000 * step + n), 1, row.tobytes()) for n, row in enumerate(more))
        rows.make_bytes()
