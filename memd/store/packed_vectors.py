"""Vectors in memory as 16-bit integers in two planes of bytes, in half the space of float32.

The integers are those of int16_vectors, so that what comes out is bitwise what went in. The high plane alone selects near vectors;
see int8_vectors. A row that integers do not represent, or whose high byte does not fit, is kept as floats beside the planes.
"""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.store.int16_vectors import SMALLEST_EXPONENT, exponents_of

Floats = NDArray[np.float32]
Bytes = NDArray[np.int8]
Integers = NDArray[np.int16]

AT_ONCE = 256  # rows that are converted in one step: they stay in the processor's cache
_MOST_UNITS = 256  # of the high plane: the rest of a division by a larger one does not fit into the low plane
_MOST_FLOATS = 1 / 16  # of the rows; with more, packing is not worthwhile


class PackedVectors(msgspec.Struct, frozen=True):
    """The vectors of a block, which do not change any more: (high * units + low) * scale, except for the rows of `others`."""

    high: Bytes  # (n, dimensions)
    low: Bytes  # (n, dimensions)
    units: Integers  # (n,)
    scales: Floats  # (n,): powers of two; 0 for the rows of `others`
    steps: Floats  # (n,): a vector is about its row of the high plane times its step
    others: NDArray[np.intp]  # ascending: the rows that are kept as floats
    floats: Floats  # (others, dimensions)

    @classmethod
    def of(cls, vectors: Floats) -> "PackedVectors | None":
        """Pack vectors, shape (n, dimensions); return None if too many of them must be kept as floats."""
        count = len(vectors)
        high, low = np.empty(vectors.shape, np.int8), np.empty(vectors.shape, np.int8)
        units, scales, steps = (
            np.empty(count, np.int16),
            np.empty(count, np.float32),
            np.empty(count, np.float32),
        )
        for start in range(0, count, AT_ONCE):
            some = slice(start, start + AT_ONCE)
            scaled, units[some], scales[some] = _scaled(vectors[some])
            steps[some] = units[some] * scales[some]
            # Ties are rounded up: the rest of a division by 256 is -128..127.
            high[some] = quotients = np.floor(scaled / units[some, np.newaxis] + np.float32(0.5))
            low[some] = scaled - quotients * units[some, np.newaxis]
            if np.count_nonzero(scales[: start + AT_ONCE] == 0) > _MOST_FLOATS * count:
                return None
        others = np.flatnonzero(scales == 0)
        high[others], steps[others] = coded(vectors[others])
        return cls(high, low, units, scales, steps, others, vectors[others])

    def __len__(self) -> int:
        """The number of vectors."""
        return len(self.steps)

    def __getitem__(self, rows: Any) -> Floats:
        """Return some vectors as floats; `rows` is a slice, or an array of row numbers."""
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        integers, scales = self._integers(numbers)
        found = integers * scales[:, np.newaxis]
        for at in np.flatnonzero(scales == 0).tolist():
            found[at] = self._float(numbers[at])
        return found

    def products(self, rows: NDArray[np.intp], query: Floats) -> Floats:
        """Return the products of some vectors with another, bitwise those of the vectors as floats."""
        integers, scales = self._integers(rows)
        # To scale by a power of two changes no digit, so it may follow the product.
        found: Floats = np.vecdot(integers, query)
        found *= scales
        if not scales.all():
            for at in np.flatnonzero(scales == 0).tolist():
                found[at] = np.vecdot(self._float(rows[at]), query)
        return found

    def _integers(self, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
        # As 16-bit integers: to multiply bytes by floats takes three times as long.
        found = self.high.take(rows, 0).astype(np.int16)
        found *= self.units.take(rows)[:, np.newaxis]
        found += self.low.take(rows, 0)
        return found.astype(np.float32), self.scales.take(rows)

    def _float(self, row: int) -> Floats:
        found: Floats = self.floats[np.searchsorted(self.others, row)]
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of vectors, and their dimensions."""
        return self.high.shape

    @property
    def nbytes(self) -> int:
        """The memory of the arrays, in bytes."""
        arrays = (self.high, self.low, self.units, self.scales, self.steps, self.others, self.floats)
        return sum(array.nbytes for array in arrays)


def coded(vectors: Floats) -> tuple[Bytes, Floats]:
    """Quantise vectors to bytes of any step; return the bytes and the step of each."""
    steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(np.iinfo(np.int8).max)
    steps[steps == 0] = 1.0  # a zero vector
    return np.rint(vectors / steps[:, np.newaxis]).astype(np.int8), steps


def _scaled(vectors: Floats) -> tuple[Floats, Integers, Floats]:
    """Return vectors divided by their scales, their units, and their scales; 0 for a vector that integers do not represent."""
    largest = np.abs(vectors).max(axis=1)
    exponents = exponents_of(np.where(largest > 0, largest, 1.0).astype(float))
    scaled = np.ldexp(vectors, -exponents[:, np.newaxis])
    # The smallest with which the largest component has a high byte, 127 at most.
    units = np.floor(np.ldexp(largest, -exponents) / 127.5) + 1
    fits = (exponents >= SMALLEST_EXPONENT) & (units <= _MOST_UNITS)
    fits &= (np.rint(scaled) == scaled).all(axis=1)
    scaled[~fits], units[~fits] = 0, 1
    return scaled, units.astype(np.int16), np.where(fits, np.ldexp(np.float32(1), exponents), np.float32(0))
