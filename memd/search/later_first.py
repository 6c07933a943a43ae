"""Puts a text before an older one that says the same: the latest state stands above what it replaced. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId
from memd.providers.provider import Calibration
from memd.search.fuse_scores import SCORE_DIGITS, Scored

# `later_first` compares the first POOL candidates. Two of them say the same if their scaled cosine exceeds the mean of all
# pairs by _ALIKE; the mean includes _UNRELATED_PAIRS pairs of cosine _UNRELATED, since few candidates may all say the
# same. The later one's score may be lower by _BEHIND at most, or by _BEHIND_IN_PAIR if the two are a pair and the older
# one's scaled cosine to the question is at most _CLOSER_IN_PAIR higher. DECISIONS has the measurements.
POOL = 16
_ALIKE, _ALIKE_NOW = 0.29, 0.22
_BEHIND, _BEHIND_NOW, _BEHIND_IN_PAIR = 0.06, 0.15, 0.2
_CLOSER_IN_PAIR = 0.18
_UNRELATED = 0.44
_UNRELATED_PAIRS = 6


class Dated(msgspec.Struct, frozen=True, gc=False):
    """The vector and the dates of a candidate, for comparison with others."""

    vector: NDArray[np.float32]  # of the closest part, or of the chunk if it has no parts; length 1
    first_s: int | None  # when its content dates from, in seconds; None: unknown
    last_s: int | None


def later_first(
    ordered: Sequence[Scored],
    dated: Mapping[ChunkId, Dated],
    calibration: Calibration,
    *,
    asks_now: bool,
    stated: Collection[tuple[ChunkId, ChunkId]] = (),
) -> list[Scored]:
    """Move a candidate before the older one that it replaces, with the older one's score.

    Two candidates say the same if their cosine exceeds the mean of all pairs by a margin: in a chat all texts are close to
    each other. Unless the question asks for the present, the later one must also be the closest of all to the older one,
    and have nearly its score. The margin in score is largest for a pair: each is the closest to the other, and the older
    one is not much closer to the question, or a text says that the one replaces the other.

    Args:
        ordered: Candidates of one source that are worth reading, the best first.
        dated: The vectors and dates of the first POOL of them, as far as they have vectors.
        calibration: The calibration of the embedding model.
        asks_now: Whether the question asks for the present.
        stated: The pairs (later, older) of which a text says that the later one replaces the older one.
    """
    pool = [one for one in ordered[:POOL] if one.id in dated]
    scores = {one.id: one.score for one in ordered[:POOL]}

    def is_behind(later: Scored, older: Scored, most: float) -> bool:
        return round(scores[older.id] - scores[later.id], SCORE_DIGITS) <= most

    def is_stated(later: Scored, older: Scored) -> bool:
        return (later.id, older.id) in stated and is_behind(later, older, _BEHIND_IN_PAIR)

    if len(pool) < 2:
        return _moved(ordered, is_stated) if stated else list(ordered)
    vectors = np.stack([dated[one.id].vector for one in pool])
    # Rounded because a matrix product rounds differently by row, and equal texts must tie.
    near = ((vectors @ vectors.T - calibration.low) / (calibration.high - calibration.low)).round(4)
    pairs = len(pool) * (len(pool) - 1) // 2
    mean = (np.triu(near, 1).sum() + _UNRELATED_PAIRS * _UNRELATED) / (pairs + _UNRELATED_PAIRS)
    alike = mean + (_ALIKE_NOW if asks_now else _ALIKE)
    np.fill_diagonal(near, -np.inf)
    if not stated and near.max() < alike:
        return list(ordered)  # as for most questions
    closest = near.argmax(axis=1)
    row = {one.id: n for n, one in enumerate(pool)}

    def replaces(later: Scored, older: Scored) -> bool:
        if is_stated(later, older):
            return True
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
        return is_behind(later, older, behind)

    return _moved(ordered, replaces)


def _moved(ordered: Sequence[Scored], replaces: Callable[[Scored, Scored], bool]) -> list[Scored]:
    """Return the candidates with each of the first POOL that replaces an earlier one before that, with its score."""
    placed: list[Scored] = []
    for one in ordered[:POOL]:
        at = next((n for n, before in enumerate(placed) if replaces(one, before)), None)
        if at is None:
            placed.append(one)
        else:
            older = placed[at]
            placed.insert(at, msgspec.structs.replace(one, score=older.score, older=older))
    return placed + list(ordered[POOL:])
