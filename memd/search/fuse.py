"""Two evidences of relevance, keywords and vectors, as one score."""

import statistics
from collections.abc import Iterable

import msgspec

from memd.model import ChunkId


class Weights(msgspec.Struct, frozen=True):
    """How much each side counts; only their proportion matters."""

    vector: float = 0.7
    text: float = 0.3


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A chunk that one of the two sides proposed."""

    id: ChunkId
    path: str
    start_line: int
    r: (
        float | None
    )  # -bm25, larger is better; None: holds none of the words, or was not among the best by keywords
    cosine: float | None  # to the question; None: the chunk has no vector, or there is none of the question
    held: bytes = b""  # the terms of the question that keywords found in it: their indexes, ascending


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A candidate with its place in the order."""

    id: ChunkId
    path: str
    start_line: int
    score: float  # 0..1, what is printed
    text_score: float  # 0..1; 0 where keywords did not find it
    cosine: float | None
    held: bytes = b""  # the terms of the question that keywords found in it: their indexes, ascending


def text_score(r: float) -> float:
    """bm25 as 0..1: r/(1+r), where r = -bm25 as SQLite gives it."""
    return r / (1 + r) if r > 0 else 0.0


def fuse(candidates: Iterable[Candidate], weights: Weights) -> list[Scored]:
    """Order candidates by vector_weight x cosine + text_weight x r/(1+r).

    A cosine below 0 counts as 0. A side with no evidence for any candidate is left out, and the other counts in full.
    A chunk that waits for its vector is taken to be as close to the question as the middle one of the chunks that
    keywords found too, so that what was written a moment ago is neither favoured nor lost.

    Returns:
        All of them, the best first; equal ones by path, line and id.
    """
    found = list(candidates)
    vector, text, assumed = shares(found, weights)
    scored = []
    for candidate in found:
        cosine = assumed if candidate.cosine is None else candidate.cosine
        keyword = text_score(candidate.r or 0.0)
        score = vector * max(0.0, cosine or 0.0) + text * keyword
        scored.append(
            Scored(
                candidate.id,
                candidate.path,
                candidate.start_line,
                score,
                keyword,
                candidate.cosine,
                candidate.held,
            )
        )
    scored.sort(key=place_in_order)
    return scored


def place_in_order(one: Scored) -> tuple[float, str, int, int]:
    """What candidates are sorted by: the best first, equal ones by path, line and id."""
    return (-one.score, one.path, one.start_line, one.id)


def shares(candidates: list[Candidate], weights: Weights) -> tuple[float, float, float | None]:
    """How much of a score is the cosine, how much the text score, and what a missing cosine is taken to be.

    The two sum to 1. A side with no evidence for any candidate has no share.
    """
    assumed = _assumed_cosine(candidates)
    by_text = any(candidate.r is not None for candidate in candidates)
    text, vector = (weights.text if by_text else 0.0), (weights.vector if assumed is not None else 0.0)
    if text + vector == 0:  # the only side there is has no weight: it still orders
        return (0.0, 1.0, assumed) if by_text else (1.0, 0.0, assumed)
    return vector / (text + vector), text / (text + vector), assumed


def _assumed_cosine(candidates: list[Candidate]) -> float | None:
    """What a missing cosine is taken to be; None where no candidate has one."""
    known = [one for one in candidates if one.cosine is not None]
    alike = [one.cosine for one in known if one.r is not None] or [one.cosine for one in known]
    return statistics.median(cosine for cosine in alike if cosine is not None) if alike else None
