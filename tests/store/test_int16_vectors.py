"""Quantised vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.store.int16_vectors import AT_ONCE, pack, rounded, unpack
from tests.bounds import shipped

NUMBERS = st.lists(st.floats(-8.0, 8.0, width=32), min_size=1, max_size=40)


@given(NUMBERS)
def test_what_was_packed_is_nearly_what_it_was_and_packs_to_the_same(numbers: list[float]) -> None:
    """No number is wrong by more than half a step; a second time nothing is lost any more."""
    vector = np.array(numbers, "<f4")
    [(packed, exponent)] = pack([vector.tobytes()])
    unpacked = unpack(packed, exponent)
    error = np.abs(np.frombuffer(unpacked, "<f4").astype(float) - vector).max()
    assert error <= np.abs(vector).max() / 32_767
    assert pack([unpacked]) == [(packed, exponent)]
    if exponent is not None:
        assert len(packed) == 2 * len(numbers)


@pytest.mark.parametrize(
    "vector",
    [
        b"",
        b"odd",
        np.zeros(4, "<f4").tobytes(),
        np.array([1.0, np.nan], "<f4").tobytes(),
        np.array([1.0, -np.inf], "<f4").tobytes(),
        np.array([1e-40, 0.0], "<f4").tobytes(),
    ],
    ids=["empty", "no floats", "zeros", "NaN", "infinite", "tiny"],
)
def test_what_cannot_be_packed_is_kept_as_it_is(vector: bytes) -> None:
    """Nothing is lost of it."""
    assert pack([vector]) == [(vector, None)]
    assert rounded({1: vector}) == {1: vector}
    assert unpack(vector, None) == vector


@pytest.mark.parametrize("largest", [2.0**-15 * 32_767, 1.0, 0.999, 3.0e38])
def test_the_largest_number_has_room(largest: float) -> None:
    """Whatever it is, its integer fits into 16 bits, and uses 15 of them."""
    most = int(shipped("memd.store.int16_vectors.LARGEST"))
    [(packed, _)] = pack([np.array([largest, -largest], "<f4").tobytes()])
    integers = np.frombuffer(packed, "<i2").astype(int)
    assert most // 2 < integers[0] <= most
    assert integers[1] == -integers[0]


def test_many_at_once() -> None:
    """Each for itself, in their order, whatever lengths they have and whichever of them cannot be packed."""
    rng = np.random.default_rng(1)
    vectors = [rng.normal(size=3 + number % 3).astype("<f4").tobytes() for number in range(4 * AT_ONCE)]
    vectors[7:10] = [b"", b"odd", np.zeros(4, "<f4").tobytes()]
    packed = pack(vectors)
    assert packed == [alone for vector in vectors for alone in pack([vector])]
    assert rounded(dict(enumerate(vectors))) == {number: unpack(*one) for number, one in enumerate(packed)}
