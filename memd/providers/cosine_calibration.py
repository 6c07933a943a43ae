"""Measures a model by its vectors of known texts: the range of its cosines, and the bias of a text's language.

Multilingual models put texts of one language close together, whatever they say: the cosine of unrelated
Chinese texts is higher than that of an English question and its Chinese answer. The bias is a direction of
the vectors, not a number: subtracted from the cosines, it would penalise texts that mix languages.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.providers.provider import Calibration, Vector, Vectors
from memd.text.tokens import cjk_share

CENTRING_VERSION = 1  # raised with any change here: vectors of different versions are not comparable


class BiasLine(msgspec.Struct, frozen=True):
    """A linear prediction of a vector from the share of CJK in its text. Float32, little-endian, shape (dimensions,)."""

    mean: bytes  # prediction for a text without CJK
    slope: bytes  # added for a text of CJK only


class Bias(msgspec.Struct, frozen=True):
    """The language bias of a model."""

    passages: BiasLine
    questions: BiasLine
    # CENTRING_VERSION and PROBE_VERSION of the measurement: only vectors centred with equal lines are
    # comparable.
    measured: tuple[int, int] = (1, 1)


def line(vectors: Vectors, texts: Sequence[str]) -> BiasLine:
    """Fit the line to some vectors by least squares.

    Args:
        vectors: Shape (n, dimensions).
        texts: Their n texts.
    """
    shares = np.array([cjk_share(text) for text in texts])
    design = np.stack([np.ones(len(texts)), shares], axis=1)
    mean, slope = np.linalg.lstsq(design, vectors.astype(np.float64), rcond=None)[0]
    return BiasLine(_stored(mean), _stored(slope))


def _stored(row: NDArray[np.float64]) -> bytes:
    return row.astype("<f4").tobytes()


def centred(vectors: Vectors, texts: Sequence[str], of: BiasLine) -> Vectors:
    """Return vectors without what their language predicts, scaled to length 1.

    Each row depends only on its own text, to the last bit.

    Args:
        vectors: Shape (n, dimensions), each of length 1.
        texts: Their n texts.
        of: The line.
    """
    return centred_at(vectors, [cjk_share(text) for text in texts], of)


def centred_at(vectors: Vectors, shares: Sequence[float], of: BiasLine) -> Vectors:
    """Return the same, given only the CJK share of each text (memd.text.tokens.cjk_share), 0..1."""
    left = vectors - np.frombuffer(of.mean, "<f4")
    left -= np.array(shares, np.float32)[:, None] * np.frombuffer(of.slope, "<f4")
    lengths = np.sqrt(np.vecdot(left, left))[:, None]
    # A vector that equals its prediction has no direction left: it stays as it is, far from all centred ones.
    rows: Vectors = np.where(lengths > 0, left / np.maximum(lengths, np.finfo(np.float32).tiny), vectors)
    return rows.astype(np.float32, copy=False)


# Raised with any change of probe_texts.json, so that models are measured again. The first text must stay: its
# vector identifies a model.
PROBE_VERSION = 1


class _Matter(msgspec.Struct, frozen=True):
    """A note and a question about it, in English and in Chinese, as people and agents write them."""

    answer: str
    question: str
    answer_zh: str
    question_zh: str


# The topics have little to do with each other.
_MATTERS = msgspec.json.decode(Path(__file__).with_name("probe_texts.json").read_bytes(), type=list[_Matter])
ANSWERS = tuple(one.answer for one in _MATTERS) + tuple(one.answer_zh for one in _MATTERS)
QUESTIONS = tuple(one.question for one in _MATTERS) + tuple(one.question_zh for one in _MATTERS)

SAME = 0.99
"""Vectors of one text by one model, weeks apart, have a cosine above this; providers round a little."""

UNRELATED = 0.975  # quantile of the cosines of unrelated pairs from which on a text is worth reading
# Smallest range, so that a model that cannot distinguish texts does not make everything look close.
_LEAST_RANGE = 0.05


def bias(questions: Vectors, answers: Vectors) -> Bias | None:
    """Return the language bias of a model; None if removing it does not improve search.

    It improves search if it moves the answer in the other language up for the questions: with
    multilingual-e5-small to a mean reciprocal rank of 1/1.6 instead of 1/4.1.

    Args:
        questions: Vectors of QUESTIONS, embedded as questions.
        answers: Vectors of ANSWERS, embedded as documents.
    """
    found = Bias(line(answers, ANSWERS), line(questions, QUESTIONS), (CENTRING_VERSION, PROBE_VERSION))
    without = centred(questions, QUESTIONS, found.questions) @ centred(answers, ANSWERS, found.passages).T
    return found if _across(without) > _across(questions @ answers.T) else None


def _across(cosines: NDArray[np.float32]) -> float:
    """Return the mean of 1 / rank of the answer in the other language, among all answers in both languages."""
    wanted = np.diagonal(np.roll(cosines, len(_MATTERS), axis=1))
    return float((1 / (1 + (cosines > wanted[:, None]).sum(axis=1))).mean())


def calibration(questions: Vectors, answers: Vectors) -> Calibration:
    """Return the calibration of a model's cosines; 0 is the usual cosine of unrelated texts.

    Args:
        questions: Vectors of QUESTIONS as in a search, without their bias.
        answers: Vectors of ANSWERS, likewise.
    """
    cosines = questions.astype(np.float64) @ answers.astype(np.float64).T
    own = np.eye(len(QUESTIONS), dtype=bool)
    others = cosines[~(own | np.roll(own, len(_MATTERS), axis=1))]
    low, unrelated = np.quantile(others, [0.5, UNRELATED])
    return Calibration.where(round(float(low), 4), round(max(float(unrelated), float(low) + _LEAST_RANGE), 4))


def same_model(before: Vector, now: Vector) -> bool:
    """Return whether two vectors of the first answer came from one model."""
    return len(before) == len(now) and float(before @ now) >= SAME
