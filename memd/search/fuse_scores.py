"""Fuses the two kinds of evidence, BM25 keywords and cosine similarity, into one relevance score."""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.chunk.split import Span
from memd.domain_types import ChunkId
from memd.providers.provider import Calibration

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

# The weight of keywords: a text with all words of the question outranks one whose meaning is only close.
WORDS = 0.8

# The weight of keywords if no candidate has a vector: a quarter of the question's information is then worth reading.
ALONE = 2.0

# The weight of the best part's cosine; the rest of the weight is on the cosine of the whole chunk.
PART = 0.6

# A text in another script than the question's cannot hold its words. Its share of words is raised to the second
# best share among the ten closest candidates in the question's own script, as far as it is about as close to the question as
# they are: to none of the share of one that is much closer, to all of it from nearly the same closeness on.
_COMPARED = 10
_AS_GOOD_AS = 2
_MUCH_LESS_CLOSE, _NEARLY_AS_CLOSE = 0.6, 0.9

# The weight of the words that a text in the question's script holds as synonyms, and of all that a text in another script
# holds in any form, beside those that it is assumed to hold.
SYNONYMS = 0.5
TRANSLATIONS = 0.5

# The second weight if no candidate has a vector: nothing else tells then that a text in another script answers.
TRANSLATIONS_ALONE = 0.8

# The share of a question's mean cosine to the index that is subtracted from each cosine. The mean is computed as if
# there were 20 more chunks at cosine `low`: in an index of a few chunks, the answers themselves would raise it.
_USUAL = 0.75
_FEW = 20

# Evidence of a candidate that dates from a time named in the question is multiplied by 1 + OF_TIME. The factor puts it
# before similar candidates of other times, but not before candidates that answer better. A candidate that is of many other
# days, too, gets nearly half of it.
OF_TIME = 0.5

SCORE_DIGITS = 3
"""Decimals of a score; it is rounded once, so that each place prints and compares the same number."""


class FusionWeights(msgspec.Struct, frozen=True):
    """The weights of the two kinds of evidence; only their ratio matters."""

    vector: float = 0.7
    text: float = 0.3


class Candidates(msgspec.Struct, frozen=True):
    """Chunks proposed by keywords or by vectors, as parallel arrays with one row per chunk."""

    ids: Ints
    kinds: NDArray[np.int8]  # of the chunk's file
    times: Ints  # (n, 2): first and last second, see ChunkFacts
    r: Doubles  # -bm25, larger is better; NaN: not proposed by keywords
    cosine: Doubles  # to the question; NaN: the chunk or the question has no vector
    share: Doubles  # 0..1: the part of the question's information that the chunk's words hold
    within: Doubles  # 0..1: the part of the chunk's time that the question names; 0: it is of another time
    part: Doubles  # the cosine of the best part; NaN: the chunk has no part with a vector
    foreign: Doubles  # 0..1: the part of the text in other scripts than the question
    # 0..1: the part of the question's words that it holds as they are, as synonyms or translated; 0: unknown.
    expanded: Doubles
    alternatives: Doubles  # 0..expanded: what of it the synonyms and translations add
    closest: Mapping[int, Span] = {}  # by row: where in the chunk's text the best part is

    def __len__(self) -> int:
        return len(self.ids)

    def some(self, rows: Ints) -> "Candidates":
        """Return the candidates of some rows, without `closest`."""
        return Candidates(
            self.ids[rows],
            self.kinds[rows],
            self.times[rows],
            self.r[rows],
            self.cosine[rows],
            self.share[rows],
            self.within[rows],
            self.part[rows],
            self.foreign[rows],
            self.expanded[rows],
            self.alternatives[rows],
        )

    @property
    def closeness(self) -> Doubles:
        """The weighted cosine of chunk and best part, one per row; NaN: the chunk has no vector."""
        return np.where(np.isnan(self.part), self.cosine, (1 - PART) * self.cosine + PART * self.part)


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A candidate with its score and the evidence for it."""

    id: ChunkId
    path: str
    start_line: int
    score: float  # 0..1: the relevance that is printed and compared with min_score
    meaning: float  # evidence from vectors, at least 0; see Calibration
    words: float  # evidence from keywords, at least 0
    r: float = 0.0
    cosine: float | None = None
    part: float | None = None
    share: float = 0.0
    foreign: float = 0.0
    expanded: float = 0.0
    alternatives: float = 0.0
    taken: float = 0.0  # see shares_taken
    closest: Span | None = None
    within: float = 0.0  # see Candidates
    older: "Scored | None" = None  # the candidate whose place and evidence this one took, see later_first

    @property
    def nearest(self) -> float:
        """The cosine of the best part to the question, or of the chunk if it has no parts; 0 without a vector."""
        return self.part if self.part is not None else self.cosine or 0.0

    @property
    def time_factor(self) -> float:
        """The factor on the evidence because of the candidate's time; 1: it is of no time that the question names."""
        return float(_time_factors(np.array([self.within]))[0])

    @property
    def evidence(self) -> float:
        """The unrounded evidence that the score is computed from."""
        return self.meaning + self.words if self.older is None else self.older.evidence


def in_place_of(one: Scored, at: Scored) -> Scored:
    """Return a candidate with another one's score; its own evidence is scaled to that score."""
    own = one.meaning + one.words
    factor = at.evidence / own if own else 0.0
    return msgspec.structs.replace(
        one,
        score=at.score,
        meaning=factor * one.meaning if own else at.evidence,
        words=factor * one.words,
        older=None,
    )


def relevance(evidence: float) -> float:
    """Map evidence to a score of 0..1.

    An evidence of .365 gives .35, the least score worth reading; all rare words of a question give .935.
    """
    return round(math.tanh(evidence), SCORE_DIGITS)


def background(mean: float, count: int, calibration: Calibration) -> float:
    """Return the cosine to subtract because the question is close to the index as a whole.

    Small talk is about as close to every note as to the best one.

    Args:
        mean: The mean cosine of the question to all visible vectors.
        count: The number of these vectors.
        calibration: The calibration of the embedding model.
    """
    return _USUAL * (mean - calibration.low) * count / (count + _FEW)


class Place(Protocol):
    """The position of a chunk."""

    @property
    def path(self) -> str:
        """The path of its file."""
        ...

    @property
    def start_line(self) -> int:
        """The number of its first line, from 1."""
        ...


PlacesOf = Callable[[Sequence[ChunkId]], Mapping[ChunkId, Place]]


class Fused(msgspec.Struct, frozen=True):
    """Candidates with the evidence that each side contributes.

    The evidence is vector_share x meaning + text_share x WORDS x share, times up to 1.5 for a candidate that dates from a
    time named in the question. A side without evidence for any candidate is left out. A chunk that has no vector yet gets the
    median closeness of the chunks that keywords found as well, so that a new text is neither favoured nor lost. To the
    share, SYNONYMS x what synonyms hold is added in the question's script; in another script, it is raised to that of candidates
    in the question's script that are about as close and TRANSLATIONS x what is held in any form, at most to 1. If no candidate has a vector,
    none is similar, and it is raised to TRANSLATIONS_ALONE x what is held.
    """

    candidates: Candidates
    meaning: Doubles
    words: Doubles
    vector_share: float  # 0..1: the weight of each side
    text_share: float
    assumed: float | None  # the closeness given to candidates without a vector
    taken: Doubles  # see shares_taken

    @property
    def translations_weight(self) -> float:
        """The weight of what a text in another script holds in any form."""
        return _translations_weight(self.assumed)

    def order(
        self,
        places_of: PlacesOf,
        most: int | None = None,
        least: float = 0.0,
        sets: Sequence[int] | None = None,
    ) -> Ints:
        """Return the rows of candidates, the best first; ties are broken by bm25, path, line and id.

        Args:
            places_of: Returns the positions of chunks; called only for ties.
            most: The most rows; None: all.
            least: The least score.
            sets: The caller needs only to know which rows are the first so many, for each of these numbers: other ties stay
                in any order. None: the caller needs the order.
        """
        evidence, found_r = self.meaning + self.words, self.candidates.r
        rows = np.argsort(-evidence, kind="stable")
        if least > 0:
            rows = rows[: self.count_from(rows, least)]
        ordered = evidence[rows]
        is_alike = ordered[1:] == ordered[:-1]
        is_told = is_alike if sets is None else is_alike[[end - 1 for end in sets if end <= len(is_alike)]]
        if not is_told.any():
            return rows if most is None else rows[:most]
        r = np.where(np.isnan(found_r), 0.0, found_r)
        rows = rows[np.lexsort((-r[rows], -ordered))]
        if most is not None and 0 < most < len(rows):
            last = rows[most - 1]
            # Candidates equal to the last one stay in until their positions have decided which of them comes first.
            end = most + int(
                np.count_nonzero((evidence[rows[most:]] == evidence[last]) & (r[rows[most:]] == r[last]))
            )
            rows = rows[:end]
        evidence, r = evidence[rows], r[rows]
        is_equal = (evidence[1:] == evidence[:-1]) & (r[1:] == r[:-1])
        is_told = is_equal if sets is None else is_equal[[end - 1 for end in sets if end <= len(is_equal)]]
        if is_told.any():
            is_tied = np.zeros(len(rows), np.bool_)
            is_tied[:-1] |= is_equal
            is_tied[1:] |= is_equal
            tied = np.flatnonzero(is_tied)
            ids = self.candidates.ids[rows[tied]].tolist()
            places = places_of(ids)
            by_place = sorted(
                range(len(ids)), key=lambda n: (places[ids[n]].path, places[ids[n]].start_line, ids[n])
            )
            rank = np.zeros(len(rows), np.int64)
            rank[tied[by_place]] = np.arange(len(tied))
            rows = rows[np.lexsort((rank, -r, -evidence))]
        return rows if most is None else rows[:most]

    def count_from(self, rows: Ints, least: float) -> int:
        """Return how many of some rows, sorted best first, have at least the score `least`."""
        evidence = self.meaning[rows] + self.words[rows]
        return bisect_right(evidence, -least, key=lambda one: -relevance(float(one)))

    def scored(self, rows: Ints, places_of: PlacesOf) -> list[Scored]:
        """Return some rows as `Scored` values, in the same order."""
        found = self.candidates
        ids = found.ids[rows].tolist()
        places = places_of(ids)
        columns = (self.meaning, self.words, found.r, found.share, found.foreign, self.taken)
        each = zip(
            rows.tolist(),
            ids,
            _or_none(found.cosine[rows]),
            _or_none(found.part[rows]),
            found.within[rows].tolist(),
            found.expanded[rows].tolist(),
            found.alternatives[rows].tolist(),
            *(column[rows].tolist() for column in columns),
            strict=True,
        )
        return [
            Scored(
                one,
                places[one].path,
                places[one].start_line,
                relevance(meaning + words),
                meaning,
                words,
                0.0 if r != r else r,  # noqa: PLR0124 - as in _or_none
                cosine,
                part,
                share,
                foreign,
                expanded,
                alternatives,
                taken,
                found.closest.get(row),
                within,
            )
            for row, one, cosine, part, within, expanded, alternatives, meaning, words, r, share, foreign, taken in each
        ]


def _or_none(values: Doubles) -> list[float | None]:
    return [None if one != one else one for one in values.tolist()]  # noqa: PLR0124 - NaN alone differs from itself


def fuse(
    found: Candidates,
    weights: FusionWeights,
    calibration: Calibration,
    usual: float = 0.0,
    *,
    asks_of_time_alone: bool = False,
) -> Fused:
    """Compute the evidence of each candidate.

    Args:
        found: The candidates, in any order.
        weights: The weights of the two sides.
        calibration: The calibration of the embedding model.
        usual: The cosine to subtract from each one, see `background`.
        asks_of_time_alone: Whether the question asks only what happened at a time: any candidate that dates from it is
            then put before all others, and what is of that time only before the rest of these.
    """
    closeness = found.closeness
    has_vector, has_words = ~np.isnan(closeness), ~np.isnan(found.r)
    vector, text, assumed = 0.0, 0.0, None
    if has_vector.any():
        alike = has_vector & has_words
        known = np.sort(closeness[alike if alike.any() else has_vector])
        assumed = float((known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2)  # the median
        vector, text = _shares(weights) if has_words.any() or found.expanded.any() else (1.0, 0.0)
    elif has_words.any() or found.expanded.any():
        text = ALONE
    meaning = np.zeros(len(found))
    if assumed is not None:
        meaning = vector * calibration.of_all(np.where(has_vector, closeness, assumed) - usual)
    taken = np.zeros(len(found))
    if assumed is not None and found.foreign.any():
        taken = shares_taken(meaning, found.share, found.foreign)
    factor = _time_factors(found.within)
    share = share_in_any_form(found, _translations_weight(assumed), taken)
    meaning, words = factor * meaning, factor * text * WORDS * share
    if asks_of_time_alone:
        # As much as any other candidate can have, whatever else the index holds and the filter lets through; twice as
        # much for what is of no other time, such as a note of the day before one of the whole month.
        meaning += np.where(found.within > 0, (1 + found.within) * (calibration(1.0 - usual) + WORDS), 0.0)
    return Fused(found, meaning, words, vector, text, assumed, taken)


def share_in_any_form(found: Candidates, translations: float, taken: Doubles | float = 0.0) -> Doubles:
    """Return the share of the question's words that each candidate holds, with what counts of synonyms and translations.

    Args:
        found: The candidates.
        translations: The weight of what a text in another script holds in any form.
        taken: See the function shares_taken.
    """
    share = found.share + (1 - found.foreign) * SYNONYMS * found.alternatives
    towards = np.minimum(1.0, taken + translations * found.expanded)
    return share + found.foreign * np.maximum(0.0, towards - found.share)


def shares_taken(meaning: Doubles, share: Doubles, foreign: Doubles) -> Doubles:
    """Return the share of the question's words that each candidate in another script is assumed to hold; 0 for all others.

    Args:
        meaning: The evidence from vectors, one value per candidate.
        share: The share of the question's words that each candidate holds.
        foreign: 0..1, the part of each candidate in other scripts than the question.
    """
    taken = np.zeros(len(meaning))
    native, others = np.flatnonzero(foreign < 0.5), np.flatnonzero(foreign)
    closest = native[np.lexsort((share[native], meaning[native]))[-_COMPARED:]]
    if len(closest) >= _AS_GOOD_AS:
        ratio = meaning[others, None] / np.maximum(meaning[closest], _SMALLEST)
        counted = np.clip((ratio - _MUCH_LESS_CLOSE) / (_NEARLY_AS_CLOSE - _MUCH_LESS_CLOSE), 0.0, 1.0)
        taken[others] = np.sort(share[closest] * counted, axis=1)[:, -_AS_GOOD_AS]
    return taken


_SMALLEST = 1e-9  # instead of no evidence, by which nothing can be divided


def _translations_weight(assumed: float | None) -> float:
    """Return the weight of what a text in another script holds in any form.

    Args:
        assumed: The closeness given to candidates without a vector; None: no candidate has a vector.
    """
    return TRANSLATIONS_ALONE if assumed is None else TRANSLATIONS


def _time_factors(within: Doubles) -> Doubles:
    """Return the factor on the evidence of each candidate because of its time, see OF_TIME.

    Args:
        within: 0..1, the part of each candidate's time that the question names.
    """
    return np.where(within > 0, 1 + OF_TIME * (1 + within) / 2, 1.0)


def place_in_order(one: Scored) -> tuple[float, float, str, int, int]:
    """Return the sort key of a candidate: the best first; ties are broken by bm25, path, line and id."""
    return (-one.evidence, -one.r, one.path, one.start_line, one.id)


def _shares(weights: FusionWeights) -> tuple[float, float]:
    """Return the weights of both sides, scaled so that the side favoured over the defaults has 1."""
    usual = FusionWeights()
    whole = max(weights.vector / usual.vector, weights.text / usual.text)
    if whole == 0:
        return 1.0, 1.0
    return weights.vector / usual.vector / whole, weights.text / usual.text / whole
