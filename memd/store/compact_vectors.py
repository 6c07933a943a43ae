"""Quantises vectors to 16-bit integers with a scale, in half the space of float32.

The scale of a vector is the power of two with which its largest component takes 15 bits, so no component changes by more than
a 32,767th of the largest. Since the scale is a power of two, products are exact: an unpacked vector packs to the same bytes.
"""

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

Key = TypeVar("Key")

_LARGEST = 32_767
_SMALLEST_EXPONENT = -120  # of a scale; products with a smaller one could be subnormal in float32
_FLOAT, _INTEGER = np.dtype("<f4"), np.dtype("<i2")


def pack(vector: bytes) -> tuple[bytes, int | None]:
    """Quantise a vector.

    Args:
        vector: float32, little-endian.

    Returns:
        The integers (int16, little-endian) and the exponent of their scale. The vector itself and None if it is not float32,
        not finite, zero, or has a smaller scale than float32 can represent exactly.
    """
    if not vector or len(vector) % _FLOAT.itemsize:
        return vector, None
    values = np.frombuffer(vector, _FLOAT)
    largest = float(np.abs(values).max())
    if not 0.0 < largest < math.inf:  # NaN is neither
        return vector, None
    mantissa, exponent = math.frexp(largest / _LARGEST)
    if mantissa == 0.5:  # a power of two itself
        exponent -= 1
    if exponent < _SMALLEST_EXPONENT:
        return vector, None
    return np.rint(np.ldexp(values, -exponent)).astype(_INTEGER).tobytes(), exponent


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
    return {key: unpack(*pack(vector)) for key, vector in vectors.items()}
