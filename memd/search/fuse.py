"""Two evidences of relevance, words and meaning, as one score."""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.chunk.split import Span
from memd.domain_types import ChunkId
from memd.providers.provider import Calibration
from memd.search.terms import Names

# The words of a question, all of them held, are worth somewhat more than the meaning of a close text.
WORDS = 0.8

# Where nothing can be told of meaning, words are all there is: a third of what a question tells is then worth reading.
ALONE = 1.4

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

# What is later may stand before what it replaces: so many first candidates are compared. Two of them say the same where what
# their cosine means is so much above the mean of all; in it are as many pairs more that are unrelated, since of a few
# candidates all may say the same. The score of the later one is at most so much lower. Measured, see DECISIONS.
POOL = 16
_ALIKE, _ALIKE_NOW = 0.29, 0.22
_BEHIND, _BEHIND_NOW = 0.06, 0.15
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


class ScoredCandidate(msgspec.Struct, frozen=True, gc=False):
    """A chunk that one of the two sides proposed."""

    id: ChunkId
    path: str
    start_line: int
    r: float | None  # -bm25, larger is better; None: keywords did not propose it
    cosine: float | None  # to the question; None: the chunk has no vector, or there is none of the question
    share: float = 0.0  # 0..1, of what the words of the question tell, that it holds
    part: float | None = None  # the cosine of its best part; None: it has no parts, or none with a vector
    foreign: float = 0.0  # 0..1, how much of it is in other scripts than the question
    closest: Span | None = None  # where in its text that part is
    is_of_time: bool = False  # that the question names


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
    def evidence(self) -> float:
        """What the score is made of; unlike it, never rounded."""
        return self.meaning + self.words if self.older is None else self.older.evidence


def relevance(evidence: float) -> float:
    """Evidence as 0..1: .365 gives .35, where reading begins to be worth it; all rare words of a question give .935."""
    return round(math.tanh(evidence), _DIGITS)


def closeness(cosine: float, part: float | None) -> float:
    """The cosine of a chunk with that of its best part."""
    return cosine if part is None else (1 - PART) * cosine + PART * part


def background(mean: float, count: int, calibration: Calibration) -> float:
    """The cosine that is taken off for how close a question is to an index as a whole.

    Small talk is as close to most notes as to the best of them.

    Args:
        mean: The mean cosine of all vectors that may be seen to the question.
        count: How many these are.
        calibration: Of the model.
    """
    return _USUAL * (mean - calibration.low) * count / (count + _FEW)


def strength(one: ScoredCandidate, calibration: Calibration) -> float:
    """How much a text is one that answers; unlike the score, the same in whatever index it stands."""
    if one.cosine is None:
        return _WORDS_ALONE * one.share
    close = calibration(closeness(one.cosine, one.part))
    return max(close + _WORDS_OF_CLOSE * one.share, _WORDS_OF_FAR * one.share)


class Support(msgspec.Struct, frozen=True):
    """How likely it is that what was found answers."""

    strength: float  # of the strongest candidate, less what the missing names take off
    missing: tuple[int, ...] = ()  # the names, as terms of the question, that no text holds

    @property
    def is_weak(self) -> bool:
        """Whether the hits are shown for want of better."""
        return self.strength < ANSWERS


def support(
    candidates: Iterable[ScoredCandidate],
    calibration: Calibration,
    names: Names,
    held: Collection[int] | None,
) -> Support:
    """Judge what was found as a whole.

    Args:
        candidates: The best of all.
        calibration: Of the model.
        names: Those that are asked for.
        held: The terms that any text holds that may be seen; None: that cannot be told.
    """
    best = max((strength(one, calibration) for one in candidates), default=0.0)
    if held is None:
        return Support(best)
    missing = names.missing(held)
    is_any_held = len(missing) < len(names.proper) + len(names.codes)
    if not set(missing).isdisjoint(names.proper):
        best -= _NAME_BESIDE * _NAME if is_any_held else _NAME
    if names.codes and set(missing).issuperset(names.codes):
        best -= _CODE
    return Support(best, missing)


def fuse(
    candidates: Iterable[ScoredCandidate],
    weights: FusionWeights,
    calibration: Calibration,
    usual: float = 0.0,
    least: float = 0.0,
) -> list[Scored]:
    """Order candidates by vector_share x meaning + text_share x WORDS x share.

    A side with no evidence for any candidate is left out. A chunk that waits for its vector is taken to be as close to
    the question as the middle one of the chunks that keywords found too, so that what was written a moment ago is
    neither favoured nor lost. One in another script than the question's holds its words as others of its rank do.

    Args:
        candidates: In any order.
        weights: Of the two sides.
        calibration: Of the model.
        usual: See background.
        least: The least score of a candidate that is given.

    Returns:
        The best first; equal ones by bm25, path, line and id.
    """
    found = list(candidates)
    scored = []
    for one, (meaning, words) in zip(found, _evidence(found, weights, calibration, usual), strict=True):
        score = relevance(meaning + words)
        if score < least:
            continue
        scored.append(
            Scored(
                one.id,
                one.path,
                one.start_line,
                score,
                meaning,
                words,
                one.r or 0.0,
                one.cosine,
                one.part,
                one.share,
                one.foreign,
                one.closest,
                one.is_of_time,
            )
        )
    scored.sort(key=place_in_order)
    return scored


def best(
    candidates: Iterable[ScoredCandidate],
    weights: FusionWeights,
    calibration: Calibration,
    usual: float,
    most: int,
) -> list[ChunkId]:
    """The first candidates in the order of fuse, at most so many: in half the time, since none is scored."""
    found = list(candidates)
    places = [
        (-(meaning + words), -(one.r or 0.0), one.path, one.start_line, one.id)
        for one, (meaning, words) in zip(found, _evidence(found, weights, calibration, usual), strict=True)
    ]
    return [place[-1] for place in sorted(places)[:most]]


def _evidence(
    found: list[ScoredCandidate], weights: FusionWeights, calibration: Calibration, usual: float
) -> list[tuple[float, float]]:
    """What the vectors of each candidate give, and what its words do."""
    vector, text, assumed = shares(found, weights)
    closes = [assumed if one.cosine is None else closeness(one.cosine, one.part) for one in found]
    meanings = [0.0 if close is None else vector * calibration(close - usual) for close in closes]
    taken = 0.0
    if any(one.foreign for one in found):
        taken = share_taken(
            (meaning, one.share, one.foreign) for meaning, one in zip(meanings, found, strict=True)
        )
    return [
        (
            time_factor(one) * meaning,
            time_factor(one) * text * WORDS * (one.share + one.foreign * max(0.0, taken - one.share)),
        )
        for meaning, one in zip(meanings, found, strict=True)
    ]


def time_factor(one: "ScoredCandidate | Scored") -> float:
    """What both evidences of a candidate are multiplied with."""
    return 1 + OF_TIME if one.is_of_time else 1.0


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
    closest of all to the older one, and have nearly its score.

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
    alike, behind = (_ALIKE_NOW, _BEHIND_NOW) if asks_now else (_ALIKE, _BEHIND)
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
        return bool(
            near[n, m] >= mean + alike
            and round(scores[older.id] - scores[later.id], _DIGITS) <= behind
            and (asks_now or closest[n] == m)
        )

    placed: list[Scored] = []
    for one in ordered[:POOL]:
        at = next((n for n, before in enumerate(placed) if replaces(one, before)), None)
        if at is None:
            placed.append(one)
        else:
            older = placed[at]
            placed.insert(at, msgspec.structs.replace(one, score=older.score, older=older))
    return placed + list(ordered[POOL:])


def share_taken(found: Iterable[tuple[float, float, float]]) -> float:
    """The share of a question's words that a text in another script is taken to hold.

    Args:
        found: Of each candidate what it means, the share that it holds, and how foreign it is.
    """
    native = nlargest(
        _COMPARED, ((meaning, share) for meaning, share, is_foreign in found if is_foreign < 0.5)
    )
    best = nlargest(_AS_GOOD_AS, (share for _, share in native))
    return best[-1] if len(best) == _AS_GOOD_AS else 0.0


def place_in_order(one: Scored) -> tuple[float, float, str, int, int]:
    """What candidates are sorted by: the best first, equal ones by bm25, path, line and id."""
    return (-one.evidence, -one.r, one.path, one.start_line, one.id)


def shares(candidates: list[ScoredCandidate], weights: FusionWeights) -> tuple[float, float, float | None]:
    """How much each side counts, and what a missing closeness is taken to be.

    By the default weights both count in full. A side that is given less counts less. A side with no evidence for any
    candidate does not count, and the other does in full: words without meaning ALONE times as much.
    """
    assumed = _assumed(candidates)
    by_text = any(one.r is not None for one in candidates)
    if not by_text or assumed is None:
        return float(assumed is not None), ALONE * by_text * (assumed is None), assumed
    usual = FusionWeights()
    whole = max(weights.vector / usual.vector, weights.text / usual.text)
    if whole == 0:
        return 1.0, 1.0, assumed
    return weights.vector / usual.vector / whole, weights.text / usual.text / whole, assumed


def _assumed(candidates: list[ScoredCandidate]) -> float | None:
    """What a missing closeness is taken to be; None where no candidate has any."""
    known = [one for one in candidates if one.cosine is not None]
    alike = [one for one in known if one.r is not None] or known
    close = [closeness(one.cosine, one.part) for one in alike if one.cosine is not None]
    return statistics.median(close) if close else None
