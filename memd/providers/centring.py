"""Vectors without what their language adds to them.

Models of many languages put texts of one language close together, whatever they say: the cosine of unrelated Chinese
texts is higher than that of an English question and its Chinese answer. That is a direction of the vectors and not a
number: taken off the cosines, it punishes texts that mix languages.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.providers.provider import Vectors
from memd.text.tokens import cjk_share

VERSION = 1  # raised with any change here: vectors of different versions do not meet


class BiasLine(msgspec.Struct, frozen=True):
    """What the share of CJK in a text predicts of its vector. Float32, little-endian, shape (dimensions,)."""

    mean: bytes  # where nothing is CJK
    slope: bytes  # what is added where everything is


class Bias(msgspec.Struct, frozen=True):
    """The lines of a model."""

    passages: BiasLine
    questions: BiasLine
    # VERSION and that of the texts of memd.providers.calibration, as it was measured: vectors without different lines do not meet.
    measured: tuple[int, int] = (1, 1)


def line(vectors: Vectors, texts: Sequence[str]) -> BiasLine:
    """The line that is nearest to some vectors, by least squares.

    Args:
        vectors: Shape (n, dimensions).
        texts: What they are of, n.
    """
    shares = np.array([cjk_share(text) for text in texts])
    design = np.stack([np.ones(len(texts)), shares], axis=1)
    mean, slope = np.linalg.lstsq(design, vectors.astype(np.float64), rcond=None)[0]
    return BiasLine(_stored(mean), _stored(slope))


def _stored(row: NDArray[np.float64]) -> bytes:
    return row.astype("<f4").tobytes()


def centred(vectors: Vectors, texts: Sequence[str], of: BiasLine) -> Vectors:
    """Vectors with what their language predicts taken out, at length 1.

    Each row depends on its own text alone, to the last bit.

    Args:
        vectors: Shape (n, dimensions), each of length 1.
        texts: What they are of, n.
        of: The line.
    """
    return centred_at(vectors, [cjk_share(text) for text in texts], of)


def centred_at(vectors: Vectors, shares: Sequence[float], of: BiasLine) -> Vectors:
    """The same, where of each text no more is known than its share of CJK (memd.text.tokens.cjk_share), 0..1."""
    left = vectors - np.frombuffer(of.mean, "<f4")
    left -= np.array(shares, np.float32)[:, None] * np.frombuffer(of.slope, "<f4")
    lengths = np.sqrt(np.vecdot(left, left))[:, None]
    # A vector that is all language says nothing: it stays as it is, far from all that were centred.
    rows: Vectors = np.where(lengths > 0, left / np.maximum(lengths, np.finfo(np.float32).tiny), vectors)
    return rows.astype(np.float32, copy=False)
