"""Quantises vectors to 16-bit integers with a scale, in half the space of float32.

The scale of a vector is the power of two with which its largest component takes 15 bits, so no component changes by more than
a 32,767th of the largest. Since the scale is a power of two, products are exact: an unpacked vector packs to the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key")

AT_ONCE = 128  # vectors: of 3,072 dimensions some 6 MB

LARGEST = 32_767
SMALLEST_EXPONENT = -120  # of a scale; products with a smaller one could be subnormal in float32
_FLOAT, _INTEGER = np.dtype("<f4"), np.dtype("<i2")


def pack(vectors: Sequence[bytes]) -> list[tuple[bytes, int | None]]:
    """Quantise vectors.

    Args:
        vectors: float32, little-endian; of any lengths.

    Returns:
        For each vector the integers (int16, little-endian) and the exponent of their scale. The vector itself and None if it is
        not float32, not finite, zero, or has a smaller scale than float32 can represent exactly.
    """
    packed: list[tuple[bytes, int | None]] = [(vector, None) for vector in vectors]
    for numbers, integers, exponents in _quantised(vectors):
        for number, row, exponent in zip(numbers, integers, exponents.tolist(), strict=True):
            packed[number] = row.tobytes(), exponent
    return packed


def unpack(packed: bytes, exponent: int | None) -> bytes:
    """Return the vector of a result of `pack`, in float32, little-endian.

    Raises:
        TypeError, ValueError: the arguments are not a result of `pack`.
    """
    if exponent is None:
        return bytes(packed)
    return np.ldexp(np.frombuffer(packed, _INTEGER).astype(_FLOAT), exponent).tobytes()


def rounded(vectors: Mapping[Key, bytes]) -> dict[Key, bytes]:
    """Return vectors (float32, little-endian) as they are after packing and unpacking."""
    values = list(vectors.values())
    for numbers, integers, exponents in _quantised(values):
        restored = np.ldexp(integers.astype(_FLOAT), exponents[:, np.newaxis])
        for number, row in zip(numbers, restored, strict=True):
            values[number] = row.tobytes()
    return dict(zip(vectors, values, strict=True))


def exponents_of(largest: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the exponents of the scales of vectors, given the largest size of a component of each."""
    mantissa, exponents = np.frexp(largest / LARGEST)
    exponents -= mantissa == 0.5  # a power of two itself
    return exponents


def _quantised(vectors: Sequence[bytes]) -> Iterator[tuple[list[int], NDArray[Any], NDArray[Any]]]:
    """Yield vectors of one length at a time, without those that cannot be packed.

    Yields:
        Their positions, their integers (n, dimensions), and the exponents of their scales (n).
    """
    by_length: dict[int, list[int]] = {}
    for number, vector in enumerate(vectors):
        by_length.setdefault(len(vector), []).append(number)
    for length, numbers in by_length.items():
        if not length or length % _FLOAT.itemsize:
            continue
        for start in range(0, len(numbers), AT_ONCE):
            some = np.array(numbers[start : start + AT_ONCE])
            values = np.frombuffer(b"".join([vectors[number] for number in some.tolist()]), _FLOAT)
            values = values.reshape(len(some), -1)
            largest = np.abs(values).max(axis=1).astype(float)
            exponents = exponents_of(largest)
            # NaN is neither above 0 nor below infinity.
            fits = (largest > 0) & (largest < np.inf) & (exponents >= SMALLEST_EXPONENT)
            exponents = exponents[fits]
            scaled = np.ldexp(values[fits], -exponents[:, np.newaxis])
            yield some[fits].tolist(), np.rint(scaled).astype(_INTEGER), exponents
