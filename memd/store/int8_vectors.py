"""Vectors quantised to bytes, which select near vectors up to a margin, in a third of the time that floats take.

The margin of a vector is three times the root of the sum of both squared quantisation steps. The error of a dot product is a sum of
independent errors of at most half a step each, so by Hoeffding's inequality it exceeds the margin at most once in 60
million times. Among nine million products of 9,051 chunks and 1,000 questions of the bundled model the largest error was
a third of the margin, and 228 rows on average had to be compared exactly to find the 200 nearest.
"""

import math
from functools import cache
from types import ModuleType

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.store.packed_vectors import AT_ONCE, PackedVectors, VectorPacking, coded

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Kinds = NDArray[np.int8]

_MARGIN = 3.0


@cache
def simsimd() -> ModuleType | None:
    """Return the module that multiplies bytes; None if it is missing or wrong here. numpy is slower for bytes than for floats."""
    try:
        import simsimd as found  # noqa: PLC0415 - it has no wheel for some platforms, where memd works without it

        some = np.array([[127, -127, 5], [-128, 3, 1]], np.int8)
        is_right = np.asarray(found.cdist(some, some[:1], "dot")).ravel().tolist() == [32283, -16632]
    except (ImportError, OSError, ValueError, TypeError, AttributeError):
        return None
    return found if is_right else None


KindSums = dict[int, tuple[int, Doubles]]
"""For each kind, the number of rows and the sum of their vectors."""


class _Sums(msgspec.Struct, frozen=True):
    kinds: bytes  # of the rows, at the time of the sum: compared in a tenth of the time of arrays
    of_kind: KindSums


class _Bytes(msgspec.Struct, frozen=True):
    codes: NDArray[np.int8]  # (n, dimensions)
    steps: Floats  # (n,): a vector is its codes times its step
    widest: float  # the largest step


class QuantisedQuestion(msgspec.Struct, frozen=True):
    """A vector of length 1 that others are multiplied with, and its bytes."""

    vector: Floats  # (dimensions,)
    codes: NDArray[np.int8]  # (1, dimensions)
    step: float

    @classmethod
    def of(cls, vector: Floats) -> "QuantisedQuestion":
        """Quantise a vector, shape (dimensions,)."""
        codes, [step] = coded(vector[np.newaxis])
        return cls(vector, codes, float(step))


class RoughProducts(msgspec.Struct, frozen=True):
    """Approximate products of the first rows of a block with a vector of length 1."""

    products: Floats  # (n,)
    steps: Floats  # (m,): of the rows that have bytes; other products are those of floats
    step: float  # of the other vector
    margin: float  # the largest error of all

    def margins(self, rows: NDArray[np.intp]) -> Floats:
        """Return the largest errors of some products, of which most are smaller than the largest of all."""
        found: Floats = self.steps.take(rows, mode="clip")
        found *= found
        found += np.float32(self.step**2)
        np.sqrt(found, out=found)  # np.hypot takes eight times as long
        found *= np.float32(_MARGIN)
        return found


class Int8Block:
    """The first vectors of a block as bytes, and the sums of its vectors by kind.

    `make` computes the bytes outside of searches. Until then, a float product selects near vectors, in three times the time. It packs
    the vectors of a full block, whose high plane then takes the place of bytes.
    """

    def __init__(self, vectors: Floats) -> None:
        """Start without bytes.

        Args:
            vectors: Shape (capacity, dimensions), filled from the first row on. A row must not change after it was quantised or
                compared.
        """
        self.vectors: Floats | PackedVectors = vectors
        self.is_settled = False  # whether the block is full, and everything that can be made of it is made
        # The arrays that the bytes are the first rows of.
        self._room: tuple[NDArray[np.int8], Floats] | None = None
        self._bytes: _Bytes | None = None
        self._sums: _Sums | None = None

    @classmethod
    def of_packed(cls, packed: PackedVectors, kinds: Kinds, sums: KindSums) -> "Int8Block":
        """Create a full block of packed vectors.

        Args:
            packed: All its vectors.
            kinds: Their kinds.
            sums: See `sums`.
        """
        block = cls(np.empty((0, packed.shape[1]), np.float32))
        block.vectors, block.is_settled = packed, True
        block._hold(packed)
        block._sums = _Sums(kinds.tobytes(), sums)
        return block

    def __len__(self) -> int:
        """The number of rows that have bytes."""
        return 0 if self._bytes is None else len(self._bytes.codes)

    @property
    def resident_bytes(self) -> int:
        """The memory of the bytes, and of packed vectors; float vectors are not included."""
        if isinstance(self.vectors, PackedVectors):
            return self.vectors.nbytes
        return 0 if self._bytes is None else self._bytes.codes.nbytes + self._bytes.steps.nbytes

    def make(self, kinds: Kinds) -> None:
        """Quantise the rows that have no bytes yet, and add up their sums; without simsimd, do nothing.

        Must be called by one thread at a time; readers may go on.

        Args:
            kinds: The current kinds of the rows to have bytes.
        """
        start, end, vectors = len(self), len(kinds), self.vectors
        if simsimd() is None or isinstance(vectors, PackedVectors):
            return
        if end == len(vectors) and not self.is_settled:
            self._pack(vectors, kinds)
            self.is_settled = True
        if end <= start or isinstance(self.vectors, PackedVectors):
            return
        if self._room is None:
            self._room = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
        codes, steps = self._room
        # In small steps that fit into the processor's cache: a third of the time of one step for all.
        for first in range(start, end, AT_ONCE):
            last = min(first + AT_ONCE, end)
            codes[first:last], steps[first:last] = coded(vectors[first:last])
            self._sum_up(kinds[:last])
        self._bytes = _Bytes(codes[:end], steps[:end], float(steps[:end].max()))

    def _pack(self, vectors: Floats, kinds: Kinds) -> None:
        packed = PackedVectors.of(vectors)
        if packed is not None:
            for first in range(0, len(vectors), AT_ONCE):
                self._sum_up(kinds[: first + AT_ONCE])
            self._hold(packed)
            self.vectors, self._room = packed, None

    def _hold(self, packed: PackedVectors) -> None:
        self._bytes = _Bytes(packed.high, packed.steps, float(packed.steps.max()))

    def _sum_up(self, kinds: Kinds) -> None:
        if self._sums is None or len(self._sums.kinds) < len(kinds):
            self.sums(kinds)

    def products(self, question: QuantisedQuestion, count: int) -> RoughProducts | None:
        """Return the approximate products of the first rows with a vector of length 1.

        Returns:
            None if no row has bytes, or simsimd is missing.
        """
        held = self._bytes
        # The module was imported by `make`: a search may have no free file descriptor.
        module = None if held is None else simsimd()
        if held is None or module is None:
            return None
        known = min(len(held.codes), count)
        products = np.empty(count, np.float32)
        by_bytes = products[:known]
        # In float32 throughout: with float64 in between, scaling takes four times as long.
        whole = module.cdist(held.codes[:known], question.codes, "dot", out_dtype="float32")
        np.multiply(np.asarray(whole)[:, 0], held.steps[:known], out=by_bytes)
        by_bytes *= np.float32(question.step)
        if known < count:
            np.dot(self.vectors[known:count], question.vector, out=products[known:])
        margin = _MARGIN * math.hypot(held.widest, question.step)
        return RoughProducts(products, held.steps, question.step, margin)

    def sums(self, kinds: Kinds) -> KindSums:
        """Return for each kind the number of rows and the sum of their vectors.

        Args:
            kinds: The current kinds of the first rows.
        """
        before, current = self._sums, kinds.tobytes()
        if before is not None and before.kinds == current:
            return before.of_kind
        # A search may have an older snapshot with fewer rows than the last one.
        if before is None or len(before.kinds) > len(current):
            before = _Sums(b"", {})
        known, of_kind = len(before.kinds), dict(before.of_kind)
        earlier, now = np.frombuffer(before.kinds, np.int8), np.frombuffer(current, np.int8)
        others = np.flatnonzero(earlier != now[:known])
        if len(others):
            _add(of_kind, earlier[others], self.vectors[others], -1)
        changed = np.concatenate((others, np.arange(known, len(now))))
        if len(changed):
            _add(of_kind, now[changed], self.vectors[changed if len(others) else slice(known, len(now))], 1)
            self._sums = _Sums(current, of_kind)
        return of_kind


class BlockPacking:
    """Packs the vectors of a block as they come, and adds them up by kind."""

    def __init__(self, count: int, dimensions: int) -> None:
        """Make room for as many vectors."""
        self._packing = VectorPacking(count, dimensions)
        self._sums: KindSums = {}

    def add(self, vectors: Floats, kinds: Kinds) -> None:
        """Pack some more vectors of these kinds."""
        for first in range(0, len(kinds), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            self._packing.add(vectors[some])
            _add(self._sums, kinds[some], vectors[some], 1)

    @property
    def is_worthwhile(self) -> bool:
        """Whether the block is to be packed."""
        return self._packing.is_worthwhile

    def block(self, kinds: Kinds) -> Int8Block:
        """Return the full block, which is of floats if packing is not worthwhile; `kinds` are those of all vectors."""
        packed = self._packing.packed()
        if self.is_worthwhile:
            return Int8Block.of_packed(packed, kinds, self._sums)
        of_floats = Int8Block(packed[:])
        of_floats.make(kinds)
        return of_floats

    def floats(self) -> Floats:
        """Return the vectors that have come, bitwise as they came."""
        return self._packing.packed()[:]


def _add(of_kind: KindSums, kinds: Kinds, vectors: Floats, sign: int) -> None:
    found = set(kinds.tolist())
    for kind in found:
        some = vectors if len(found) == 1 else vectors[kinds == kind]
        count, total = of_kind.get(kind, (0, np.zeros(vectors.shape[1])))
        of_kind[kind] = count + sign * len(some), total + sign * some.sum(axis=0, dtype=np.float64)
