"""Two evidences of relevance, words and meaning, as one score."""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.chunk.split import Span
from memd.config.settings import WORTH_READING
from memd.domain_types import ChunkId
from memd.providers.provider import Calibration
from memd.search.terms import Names

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

# The words of a question, all of them held, are worth somewhat more than the meaning of a close text.
WORDS = 0.8

# Where nothing can be told of meaning, words are all there is: a quarter of what a question tells is then worth reading.
ALONE = 2.0

# A chunk with parts is as close as the best of them and the whole, in this proportion.
PART = 0.65

# How little the words of a question stand in a text of another script tells nothing. It is taken to hold as much of
# them as the second best of the ten closest candidates in the script of the question.
_COMPARED = 10
_AS_GOOD_AS = 2

# What a question is usually as close to as it is to this index tells little: three quarters of it are left out. In an
# index of a few chunks those that answer would be the usual ones: it is as if there were twenty more, of no meaning.
_USUAL = 0.75
_FEW = 20

# What is of a time that the question names is worth so much more: it goes before the like of other times, and what does not
# answer stays behind what does.
OF_TIME = 0.5
_WORTH_READING = math.atanh(WORTH_READING)
_IN_ORDER = 0.01  # of the evidence of what is lifted to be worth reading, so that it keeps its order

# What is later may stand before what it replaces: so many first candidates are compared. Two of them say the same where what
# their cosine means is so much above the mean of all; in it are as many pairs more that are unrelated, since of a few
# candidates all may say the same. The score of the later one is at most so much lower: most where the two are a pair, and what
# the cosine of the older one means is at most so much more. Measured, see DECISIONS.
POOL = 16
_ALIKE, _ALIKE_NOW = 0.29, 0.22
_BEHIND, _BEHIND_NOW, _BEHIND_IN_PAIR = 0.06, 0.15, 0.2
_CLOSER_IN_PAIR = 0.18
_UNRELATED = 0.44
_UNRELATED_PAIRS = 6

_DIGITS = 3  # of a score, which so is the same wherever it is printed, passed and compared


# Hits are weak where the strongest candidate has less than this: DECISIONS.md has the share of questions on either side.
ANSWERS = 0.48
_WORDS_OF_CLOSE = 0.25  # what all words of the question add to closeness
_WORDS_OF_FAR = 0.55  # the strength of a text that holds all words, however far it is
_WORDS_ALONE = 1.45  # the same of a text without a vector: a third of what the words tell is enough
_NAME = 0.35  # what a name that no text holds takes off
_CODE = 0.45
_NAME_BESIDE = 0.3  # times _NAME, where another name that is asked for is held


class FusionWeights(msgspec.Struct, frozen=True):
    """How much each side counts; only their proportion matters."""

    vector: float = 0.7
    text: float = 0.3


class Candidates(msgspec.Struct, frozen=True):
    """The chunks that one of the two sides proposed: each array has a row for each."""

    ids: Ints
    kinds: NDArray[np.int8]  # of their files
    times: Ints  # (n, 2): of when they are, see ChunkFacts
    r: Doubles  # -bm25, larger is better; NaN: keywords did not propose it
    cosine: Doubles  # to the question; NaN: the chunk has no vector, or there is none of the question
    share: Doubles  # 0..1, of what the words of the question tell, that it holds
    is_of_time: NDArray[np.bool_]  # that the question names
    part: Doubles  # the cosine of its best part; NaN: it has no parts, or none with a vector
    foreign: Doubles  # 0..1, how much of it is in other scripts than the question
    closest: Mapping[int, Span] = {}  # by row, where in its text that part is

    def __len__(self) -> int:
        return len(self.ids)

    def some(self, rows: Ints) -> "Candidates":
        """Some of them, without where their closest parts are."""
        return Candidates(
            self.ids[rows],
            self.kinds[rows],
            self.times[rows],
            self.r[rows],
            self.cosine[rows],
            self.share[rows],
            self.is_of_time[rows],
            self.part[rows],
            self.foreign[rows],
        )

    @property
    def closeness(self) -> Doubles:
        """See closeness; NaN: the chunk has no vector."""
        return np.where(np.isnan(self.part), self.cosine, (1 - PART) * self.cosine + PART * self.part)


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A candidate with its place in the order."""

    id: ChunkId
    path: str
    start_line: int
    score: float  # 0..1: the relevance, what is printed and what min_score is compared with
    meaning: float  # what its vectors give, from 0; see Calibration
    words: float  # what its words give, from 0
    r: float = 0.0
    cosine: float | None = None
    part: float | None = None
    share: float = 0.0
    foreign: float = 0.0
    closest: Span | None = None
    is_of_time: bool = False
    older: "Scored | None" = None  # the one in whose place it is, with its evidence, see later_first

    @property
    def nearest(self) -> float:
        """The cosine of its best part to the question, or its own where it has no parts; 0 where it has no vector."""
        return self.part if self.part is not None else self.cosine or 0.0

    @property
    def evidence(self) -> float:
        """What the score is made of; unlike it, never rounded."""
        return self.meaning + self.words if self.older is None else self.older.evidence


def in_place_of(one: Scored, at: Scored) -> Scored:
    """A candidate with the score of another one, and with what its own vectors and words give in proportion to that."""
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
    """Evidence as 0..1: .365 gives .35, where reading begins to be worth it; all rare words of a question give .935."""
    return round(math.tanh(evidence), _DIGITS)


def background(mean: float, count: int, calibration: Calibration) -> float:
    """The cosine that is taken off for how close a question is to an index as a whole.

    Small talk is as close to most notes as to the best of them.

    Args:
        mean: The mean cosine of all vectors that may be seen to the question.
        count: How many these are.
        calibration: Of the model.
    """
    return _USUAL * (mean - calibration.low) * count / (count + _FEW)


def strength(found: Candidates, calibration: Calibration) -> Doubles:
    """How much texts are such that answer; unlike the score, the same in whatever index they stand."""
    close = calibration.of_all(found.closeness)
    with_vector = np.maximum(close + _WORDS_OF_CLOSE * found.share, _WORDS_OF_FAR * found.share)
    return np.where(np.isnan(found.cosine), _WORDS_ALONE * found.share, with_vector)


class Support(msgspec.Struct, frozen=True):
    """How likely it is that what was found answers."""

    strength: float  # of the strongest candidate, less what the missing names take off
    missing: tuple[int, ...] = ()  # the names, as terms of the question, that no text holds

    @property
    def is_weak(self) -> bool:
        """Whether the hits are shown for want of better."""
        return self.strength < ANSWERS


def support(best: float, names: Names, held: Collection[int] | None) -> Support:
    """Judge what was found as a whole.

    Args:
        best: The strength of the strongest candidate.
        names: Those that are asked for.
        held: The terms that any text holds that may be seen; None: that cannot be told.
    """
    if held is None:
        return Support(best)
    missing = names.missing(held)
    is_any_held = len(missing) < len(names.proper) + len(names.codes)
    if not set(missing).isdisjoint(names.proper):
        best -= _NAME_BESIDE * _NAME if is_any_held else _NAME
    if names.codes and set(missing).issuperset(names.codes):
        best -= _CODE
    return Support(best, missing)


class Place(Protocol):
    """Where a chunk stands."""

    @property
    def path(self) -> str:
        """Of its file."""
        ...

    @property
    def start_line(self) -> int:
        """Its first line."""
        ...


PlacesOf = Callable[[Sequence[ChunkId]], Mapping[ChunkId, Place]]


class Fused(msgspec.Struct, frozen=True):
    """Candidates with what each side gives to their scores.

    The evidence is vector_share x meaning + text_share x WORDS x share, and half as much again for what is of a time that the
    question names. A side with no evidence for any candidate is left out. A chunk that waits for its vector is taken to be
    as close to the question as the middle one of the chunks that keywords found too, so that what was written a moment ago
    is neither favoured nor lost. One in another script than the question's holds its words as others of its rank do.
    """

    candidates: Candidates
    meaning: Doubles
    words: Doubles
    vector_share: float  # how much each side counts
    text_share: float
    assumed: float | None  # what a missing closeness is taken to be
    share_taken: float  # see share_taken

    def order(self, places_of: PlacesOf, most: int | None = None, least: float = 0.0) -> Ints:
        """The rows of candidates, the best first; equal ones by bm25, path, line and id.

        Args:
            places_of: Where chunks stand; asked only of equal ones.
            most: How many at most; None: all.
            least: Only those with this score.
        """
        evidence, found_r = self.meaning + self.words, self.candidates.r
        r = np.where(np.isnan(found_r), 0.0, found_r)
        rows = np.argsort(-evidence, kind="stable")
        if (evidence[rows[1:]] == evidence[rows[:-1]]).any():
            rows = np.lexsort((-r, -evidence))
        if least > 0:
            rows = rows[: self.count_from(rows, least)]
        if most is not None and 0 < most < len(rows):
            last = rows[most - 1]
            # With all that equal the last one: which of them is the first, their places tell.
            end = most + int(
                np.count_nonzero((evidence[rows[most:]] == evidence[last]) & (r[rows[most:]] == r[last]))
            )
            rows = rows[:end]
        evidence, r = evidence[rows], r[rows]
        is_equal = (evidence[1:] == evidence[:-1]) & (r[1:] == r[:-1])
        if is_equal.any():
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
        """How many of some rows, the best first, have at least a score."""
        evidence = self.meaning[rows] + self.words[rows]
        return bisect_right(evidence, -least, key=lambda one: -relevance(float(one)))

    def scored(self, rows: Ints, places_of: PlacesOf) -> list[Scored]:
        """Some rows as values."""
        found = self.candidates
        ids = found.ids[rows].tolist()
        places = places_of(ids)
        columns = (self.meaning, self.words, found.r, found.share, found.foreign)
        each = zip(
            rows.tolist(),
            ids,
            _or_none(found.cosine[rows]),
            _or_none(found.part[rows]),
            found.is_of_time[rows].tolist(),
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
                found.closest.get(row),
                is_of_time,
            )
            for row, one, cosine, part, is_of_time, meaning, words, r, share, foreign in each
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
    """Weigh the evidence of both sides.

    Args:
        found: In any order.
        weights: Of the two sides.
        calibration: Of the model.
        usual: See background.
        asks_of_time_alone: Whether all that is asked is what was at a time: what is of it is then worth reading.
    """
    closeness = found.closeness
    has_vector, has_words = ~np.isnan(closeness), ~np.isnan(found.r)
    vector, text, assumed = 0.0, 0.0, None
    if has_vector.any():
        alike = has_vector & has_words
        known = np.sort(closeness[alike if alike.any() else has_vector])
        assumed = float((known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2)  # their median
        vector, text = _shares(weights) if has_words.any() else (1.0, 0.0)
    elif has_words.any():
        text = ALONE
    meaning = np.zeros(len(found))
    if assumed is not None:
        meaning = vector * calibration.of_all(np.where(has_vector, closeness, assumed) - usual)
    taken = share_taken(meaning, found.share, found.foreign) if found.foreign.any() else 0.0
    factor = np.where(found.is_of_time, 1 + OF_TIME, 1.0)
    share = found.share + found.foreign * np.maximum(0.0, taken - found.share)
    meaning, words = factor * meaning, factor * text * WORDS * share
    if asks_of_time_alone:
        evidence = meaning + words
        is_lifted = found.is_of_time & (evidence < _WORTH_READING)
        meaning = np.where(is_lifted, _WORTH_READING + _IN_ORDER * evidence - words, meaning)
    return Fused(found, meaning, words, vector, text, assumed, taken)


class Dated(msgspec.Struct, frozen=True, gc=False):
    """What a candidate is compared by with older ones."""

    vector: NDArray[np.float32]  # of its closest part, or of the chunk where it has none; of length 1
    first_s: int | None  # of when it is; None: nothing says
    last_s: int | None


def later_first(
    ordered: Sequence[Scored],
    dated: Mapping[ChunkId, Dated],
    calibration: Calibration,
    *,
    asks_now: bool,
) -> list[Scored]:
    """Put what says the same later before what it replaces, in its place and with its score.

    Two candidates say the same where they are closer to each other than the first candidates are on average: in a chat
    all are close. Where the question does not say that it asks for what is so now, the later one must also be the
    closest of all to the older one, and have nearly its score. Its score may be lowest where they are a pair: each the
    closest of all to the other, and the older one not much closer to the question.

    Args:
        ordered: Candidates of one source that are worth reading, the best first.
        dated: Of the first POOL of them, as far as they have vectors.
        calibration: Of the model.
        asks_now: Whether the question says so.
    """
    pool = [one for one in ordered[:POOL] if one.id in dated]
    if len(pool) < 2:
        return list(ordered)
    vectors = np.stack([dated[one.id].vector for one in pool])
    # Rounded, since a product of matrices rounds by the place of a row: equal texts must tie.
    near = ((vectors @ vectors.T - calibration.low) / (calibration.high - calibration.low)).round(4)
    pairs = len(pool) * (len(pool) - 1) // 2
    mean = (np.triu(near, 1).sum() + _UNRELATED_PAIRS * _UNRELATED) / (pairs + _UNRELATED_PAIRS)
    alike = mean + (_ALIKE_NOW if asks_now else _ALIKE)
    np.fill_diagonal(near, -np.inf)
    closest = near.argmax(axis=1)
    row = {one.id: n for n, one in enumerate(pool)}
    scores = {one.id: one.score for one in pool}

    def replaces(later: Scored, older: Scored) -> bool:
        if later.id not in row or older.id not in row:
            return False
        begin, end = dated[later.id].first_s, dated[older.id].last_s
        if begin is None or end is None or begin <= end:
            return False
        n, m = row[older.id], row[later.id]
        if near[n, m] < alike or not (asks_now or closest[n] == m):
            return False
        is_pair = (
            closest[m] == n and calibration(older.nearest) - calibration(later.nearest) <= _CLOSER_IN_PAIR
        )
        behind = _BEHIND_IN_PAIR if is_pair else _BEHIND_NOW if asks_now else _BEHIND
        return round(scores[older.id] - scores[later.id], _DIGITS) <= behind

    placed: list[Scored] = []
    for one in ordered[:POOL]:
        at = next((n for n, before in enumerate(placed) if replaces(one, before)), None)
        if at is None:
            placed.append(one)
        else:
            older = placed[at]
            placed.insert(at, msgspec.structs.replace(one, score=older.score, older=older))
    return placed + list(ordered[POOL:])


def share_taken(meaning: Doubles, share: Doubles, foreign: Doubles) -> float:
    """The share of a question's words that a text in another script is taken to hold.

    Args:
        meaning: Of each candidate what it means.
        share: The share that it holds.
        foreign: How foreign it is.
    """
    native = np.flatnonzero(foreign < 0.5)
    closest = native[np.lexsort((share[native], meaning[native]))[-_COMPARED:]]
    return float(np.sort(share[closest])[-_AS_GOOD_AS]) if len(closest) >= _AS_GOOD_AS else 0.0


def place_in_order(one: Scored) -> tuple[float, float, str, int, int]:
    """What candidates are sorted by: the best first, equal ones by bm25, path, line and id."""
    return (-one.evidence, -one.r, one.path, one.start_line, one.id)


def _shares(weights: FusionWeights) -> tuple[float, float]:
    """How much each side counts where both have evidence: by the default weights in full, and one that is given less, less."""
    usual = FusionWeights()
    whole = max(weights.vector / usual.vector, weights.text / usual.text)
    if whole == 0:
        return 1.0, 1.0
    return weights.vector / usual.vector / whole, weights.text / usual.text / whole
