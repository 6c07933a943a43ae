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
        packing = VectorPacking(*vectors.shape)
        for start in range(0, len(vectors), AT_ONCE):
            packing.add(vectors[start : start + AT_ONCE])
            if not packing.is_worthwhile:
                return None
        return packing.packed()

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


class VectorPacking:
    """Packs the vectors of a block as they come, so that they need not be floats all at once."""

    def __init__(self, count: int, dimensions: int) -> None:
        """Make room.

        Args:
            count: The most vectors that come.
            dimensions: Their dimensions.
        """
        self.used = 0
        self._high, self._low = (np.empty((count, dimensions), np.int8) for _ in range(2))
        self._units = np.empty(count, np.int16)
        self._scales, self._steps = np.empty(count, np.float32), np.empty(count, np.float32)
        self._others: list[int] = []
        self._floats: list[Floats] = [np.empty((0, dimensions), np.float32)]
        # Used for each step, so that they stay in the processor's cache, and none is mapped again.
        shape = AT_ONCE, dimensions
        self._scaled, self._divided = np.empty(shape, np.float32), np.empty(shape, np.float32)
        self._integers, self._quotients = np.empty(shape, np.int16), np.empty(shape, np.int16)

    @property
    def is_worthwhile(self) -> bool:
        """Whether few enough of the vectors must be kept as floats."""
        return len(self._others) <= _MOST_FLOATS * len(self._units)

    def add(self, vectors: Floats) -> None:
        """Pack some more vectors, AT_ONCE at most."""
        some = slice(self.used, self.used + len(vectors))
        units, scales = self._scale(vectors)
        quotients = np.divide(
            self._scaled[: len(vectors)], units[:, np.newaxis], out=self._divided[: len(vectors)]
        )
        # Ties are rounded up: the rest of a division by 256 is -128..127.
        quotients += np.float32(0.5)
        np.floor(quotients, out=quotients)
        # By way of 16 bits: numpy takes three times as long to convert floats to bytes.
        whole, integers = self._quotients[: len(vectors)], self._integers[: len(vectors)]
        np.copyto(whole, quotients, casting="unsafe")
        np.copyto(self._high[some], whole, casting="unsafe")
        self._units[some] = units
        whole *= self._units[some, np.newaxis]
        integers -= whole
        np.copyto(self._low[some], integers, casting="unsafe")
        self._scales[some], self._steps[some] = scales, units * scales
        others = np.flatnonzero(scales == 0)
        if len(others):
            floats = vectors[others]
            self._high[some][others], self._steps[some][others] = coded(floats)
            self._others += (others + self.used).tolist()
            self._floats.append(floats)
        self.used += len(vectors)

    def _scale(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Divide vectors by their scales; return their units, and their scales: 0 for a vector that integers do not represent."""
        count = len(vectors)
        floats, integers, back = self._scaled[:count], self._integers[:count], self._divided[:count]
        largest = np.abs(vectors, out=floats).max(axis=1)
        exponents = exponents_of(np.where(largest > 0, largest, 1.0).astype(float))
        # The smallest with which the largest component has a high byte, 127 at most.
        units = np.floor(np.ldexp(largest, -exponents) / np.float32(127.5)) + np.float32(1)
        fits = (exponents >= SMALLEST_EXPONENT) & (units <= _MOST_UNITS)
        # A product with a power of two is exact, and takes a fifth of the time of np.ldexp.
        np.multiply(
            vectors, np.ldexp(np.float32(1), np.where(fits, -exponents, 0))[:, np.newaxis], out=floats
        )
        if not fits.all():
            floats[~fits] = 0
        np.copyto(integers, floats, casting="unsafe")
        np.copyto(back, integers)
        if not np.array_equal(back, floats):
            fits &= (back == floats).all(axis=1)
        if not fits.all():
            floats[~fits], integers[~fits], units[~fits] = 0, 0, 1
        return units, np.where(fits, np.ldexp(np.float32(1), exponents), np.float32(0))

    def packed(self) -> PackedVectors:
        """Return the vectors that have come."""
        n = self.used
        planes = self._high[:n], self._low[:n]
        others = np.array(self._others, np.intp)
        return PackedVectors(
            *planes, self._units[:n], self._scales[:n], self._steps[:n], others, np.concatenate(self._floats)
        )
