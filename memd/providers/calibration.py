"""What a model's vectors are like, by its answers to a probe: the range of its cosines, and what the language of a text adds to its vector.

Models of many languages put texts of one language close together, whatever they say: the cosine of unrelated Chinese
texts is higher than that of an English question and its Chinese answer. That is a direction of the vectors and not a
number: taken off the cosines, it punishes texts that mix languages.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.providers.provider import Calibration, Vector, Vectors
from memd.text.tokens import cjk_share

CENTRING_VERSION = 1  # raised with any change here: vectors of different versions do not meet


class BiasLine(msgspec.Struct, frozen=True):
    """What the share of CJK in a text predicts of its vector. Float32, little-endian, shape (dimensions,)."""

    mean: bytes  # where nothing is CJK
    slope: bytes  # what is added where everything is


class Bias(msgspec.Struct, frozen=True):
    """The lines of a model."""

    passages: BiasLine
    questions: BiasLine
    # CENTRING_VERSION and PROBE_VERSION of the measurement: vectors without different lines do not meet.
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


# Raised with any change of probe_texts.json: what was measured with others is measured again. The first one stays: by its vector a
# model is known to be the same.
PROBE_VERSION = 1


class _Matter(msgspec.Struct, frozen=True):
    """A note and a question about it, in English and in Chinese; as people and agents write them."""

    answer: str
    question: str
    answer_zh: str
    question_zh: str


# About matters that have little to do with each other.
_MATTERS = msgspec.json.decode(Path(__file__).with_name("probe_texts.json").read_bytes(), type=list[_Matter])
ANSWERS = tuple(one.answer for one in _MATTERS) + tuple(one.answer_zh for one in _MATTERS)
QUESTIONS = tuple(one.question for one in _MATTERS) + tuple(one.question_zh for one in _MATTERS)

SAME = 0.99
"""Vectors of one text by one model, weeks apart, have a cosine above this; providers round a little."""

UNRELATED = 0.975  # this share of unrelated pairs is not worth reading
_LEAST_RANGE = 0.05  # a model that cannot tell texts apart must not make everything look close


def bias(questions: Vectors, answers: Vectors) -> Bias | None:
    """What the language of a text adds to its vector; None where taking it out finds no more.

    It is worth taking out where questions then have the answer in the other language further in front: with
    multilingual-e5-small at 1/1.6 in the mean, instead of 1/4.1.

    Args:
        questions: Vectors of QUESTIONS, embedded as such.
        answers: Vectors of ANSWERS, embedded as documents.
    """
    found = Bias(line(answers, ANSWERS), line(questions, QUESTIONS), (CENTRING_VERSION, PROBE_VERSION))
    without = centred(questions, QUESTIONS, found.questions) @ centred(answers, ANSWERS, found.passages).T
    return found if _across(without) > _across(questions @ answers.T) else None


def _across(cosines: NDArray[np.float32]) -> float:
    """The mean of 1 / the place of the answer in the other language, among all in whatever language."""
    wanted = np.diagonal(np.roll(cosines, len(_MATTERS), axis=1))
    return float((1 / (1 + (cosines > wanted[:, None]).sum(axis=1))).mean())


def calibration(questions: Vectors, answers: Vectors) -> Calibration:
    """The range of a model's cosines: from what is usual between texts that have nothing to do with each other.

    Args:
        questions: Vectors of QUESTIONS as a search has them, without their bias.
        answers: Vectors of ANSWERS, likewise.
    """
    cosines = questions.astype(np.float64) @ answers.astype(np.float64).T
    own = np.eye(len(QUESTIONS), dtype=bool)
    others = cosines[~(own | np.roll(own, len(_MATTERS), axis=1))]
    low, unrelated = np.quantile(others, [0.5, UNRELATED])
    return Calibration.where(round(float(low), 4), round(max(float(unrelated), float(low) + _LEAST_RANGE), 4))


def same_model(before: Vector, now: Vector) -> bool:
    """Whether two vectors of the first answer came from one model."""
    return len(before) == len(now) and float(before @ now) >= SAME
