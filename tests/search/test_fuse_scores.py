import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import ChunkId
from memd.providers.provider import READABLE, Calibration
from memd.search.answer_strength import ANSWERS, Support, strength, support
from memd.search.fuse_scores import (
    ALONE,
    WORDS,
    FusionWeights,
    Scored,
    background,
    in_place_of,
    place_in_order,
    relevance,
    shares_taken,
)
from memd.search.fuse_scores import fuse as fuse_arrays
from memd.search.later_first import POOL, Dated, later_first
from memd.search.terms import Names
from tests.bounds import shipped
from tests.search.rows import Row, candidates, ordered

CALIBRATION = Calibration(0.0, 0.5)


def candidate(
    name: int,
    cosine: float | None,
    share: float | None,
    path: str = "a.md",
    line: int = 1,
    part: float | None = None,
    foreign: float = 0.0,
) -> Row:
    r = None if share is None else share
    return Row(ChunkId(name), path, line, r, cosine, share or 0.0, part, foreign)


def ids(scored: list[Scored]) -> list[int]:
    return [one.id for one in scored]


def fuse(
    rows: Iterable[Row],
    weights: FusionWeights,
    calibration: Calibration,
    usual: float = 0.0,
    least: float = 0.0,
) -> list[Scored]:
    return ordered(rows, weights, calibration, usual).scored(least)


def strength_of(one: Row) -> float:
    return float(strength(candidates([one]), CALIBRATION)[0])


def support_of(rows: list[Row], names: Names, held: Collection[int] | None) -> Support:
    return support(max(map(strength_of, rows), default=0.0), names, held)


@pytest.mark.parametrize(
    ("cosine", "share", "expected"),
    [
        (0.5, None, math.tanh(1)),
        (0.25, 0.5, math.tanh(0.5 + WORDS / 2)),
        (0.0, 1.0, math.tanh(WORDS)),
        (
            -0.4,
            1.0,
            math.tanh(WORDS),
        ),  # what points the other way is as far as what has nothing to do with it
        (0.2, 0.1, math.tanh(0.4 + WORDS / 10)),
    ],
)
def test_meaning_and_words_add_up(cosine: float, share: float | None, expected: float) -> None:
    """By the default weights both count in full."""
    other = candidate(2, 0.1, 0.1)  # so that both sides have evidence
    scored = {
        one.id: one.score for one in fuse([candidate(1, cosine, share), other], FusionWeights(), CALIBRATION)
    }
    assert scored[ChunkId(1)] == pytest.approx(expected, abs=0.0005)


def test_a_relevance_has_its_meaning_in_every_mode() -> None:
    """Reading begins at .35, whichever side finds it; all rare words of a question are near 1."""
    assert relevance(READABLE) == pytest.approx(0.35, abs=0.001)
    alone = fuse([candidate(1, None, 1.0), candidate(2, None, 0.228)], FusionWeights(), CALIBRATION)
    assert alone[0].score > 0.8
    assert alone[1].score == pytest.approx(0.35, abs=0.01)
    [near] = fuse([candidate(1, 0.5 * READABLE, None)], FusionWeights(), CALIBRATION)
    assert near.score == pytest.approx(0.35, abs=0.001)
    both = fuse([candidate(1, 0.0, 1.0), candidate(2, 0.0, None)], FusionWeights(), CALIBRATION)
    assert both[0].score > 0.65


def test_the_best_part_tells_more_than_the_whole() -> None:
    """One thing that a chunk says among many is found by its part."""
    many, one = candidate(1, 0.2, None, part=0.5), candidate(2, 0.35, None)
    assert ids(fuse([many, one], FusionWeights(), CALIBRATION)) == [1, 2]
    assert candidates([many, one]).closeness == pytest.approx([0.38, 0.35])


def test_what_another_script_cannot_hold_is_not_missing() -> None:
    """It is taken to hold as much of the words as the second best of those close by, in proportion to how foreign it is."""
    native = [candidate(n, 0.4 - n / 100, share) for n, share in enumerate([0.1, 0.9, 0.5, 0.2])]
    far = candidate(8, -0.5, 1.0)  # not among the ten that are closest
    close = [candidate(10 + n, 0.3, 0.0) for n in range(8)]
    for foreign, share, taken in (
        (1.0, 0.0, 0.5),
        (0.5, 0.0, 0.25),
        (0.5, 0.1, 0.3),
        (1.0, 0.7, 0.7),
        (0.0, 0.2, 0.2),
    ):
        one = candidate(9, 0.35, share, foreign=foreign)
        scored = {each.id: each for each in fuse([one, *native, far, *close], FusionWeights(), CALIBRATION)}
        assert scored[ChunkId(9)].words == pytest.approx(WORDS * taken)
        assert scored[ChunkId(1)].words == pytest.approx(WORDS * 0.9)


def test_where_nothing_is_in_the_script_of_the_question_nothing_is_taken() -> None:
    """There is nobody to compare with: words tell what they tell."""
    scored = fuse([candidate(1, 0.3, 0.2, foreign=1.0), candidate(2, 0.3, 0.9)], FusionWeights(), CALIBRATION)
    assert [one.words for one in scored] == [pytest.approx(WORDS * 0.9), pytest.approx(WORDS * 0.2)]


def test_what_is_close_to_everything_is_close_to_nothing() -> None:
    """Three quarters of what a question is as close to as it is to the index are taken off; fewer in a small one."""
    many = background(0.2, 980, CALIBRATION)
    assert many == pytest.approx(0.75 * 0.2 * 0.98)
    assert background(0.2, 20, CALIBRATION) == pytest.approx(0.75 * 0.1)
    assert background(0.7, 10**6, Calibration(0.7, 0.9)) == 0.0
    assert background(0.0, 0, CALIBRATION) == 0.0
    [one] = fuse([candidate(1, 0.4, None)], FusionWeights(), CALIBRATION, many)
    assert one.meaning == pytest.approx((0.4 - many) / 0.5)


@pytest.mark.parametrize(
    ("weights", "vector", "text"),
    [
        (FusionWeights(0.7, 0.3), 1, 1),
        (FusionWeights(0.35, 0.15), 1, 1),
        (FusionWeights(0.5, 0.5), 3 / 7, 1),
        (FusionWeights(1.0, 0.0), 1, 0),
        (FusionWeights(0.0, 1.0), 0, 1),
        (FusionWeights(0.0, 0.0), 1, 1),
    ],
)
def test_a_side_that_is_given_less_counts_less(weights: FusionWeights, vector: float, text: float) -> None:
    """Only the proportion of the weights matters, and no side counts more than in full."""
    [scored] = fuse([candidate(1, 0.25, 0.5)], weights, CALIBRATION)
    assert scored.meaning == pytest.approx(vector * 0.5)
    assert scored.words == pytest.approx(text * WORDS / 2)


@pytest.mark.parametrize(
    "weights", [FusionWeights(), FusionWeights(1.0, 0.0), FusionWeights(0.0, 1.0), FusionWeights(0.0, 0.0)]
)
def test_a_side_that_is_alone_counts_in_full(weights: FusionWeights) -> None:
    """Where the other one is missing, its weight is not lost."""
    by_words = fuse([candidate(1, None, 0.5), candidate(2, None, 0.8)], weights, CALIBRATION)
    assert ids(by_words) == [2, 1]
    assert by_words[0].words == pytest.approx(ALONE * WORDS * 0.8)
    by_meaning = fuse([candidate(1, 0.2, None), candidate(2, 0.4, None)], weights, CALIBRATION)
    assert ids(by_meaning) == [2, 1]
    assert by_meaning[0].meaning == pytest.approx(0.8)


def test_a_chunk_that_waits_for_its_vector_is_not_lost() -> None:
    """It is taken to be as near as the middle one of the other keyword hits: its keywords decide."""
    waiting = candidate(1, None, 0.9)
    known = [candidate(2, 0.4, 0.5), candidate(3, 0.3, 0.6), candidate(4, 0.5, 0.1), candidate(5, 0.45, None)]
    scored = fuse([waiting, *known], FusionWeights(), CALIBRATION)
    assert scored[0].id == 1
    assert scored[0].evidence == pytest.approx(0.8 + WORDS * 0.9)
    assert scored[0].cosine is None


def test_ties_are_broken_by_bm25_and_place() -> None:
    """Equal ones are in the order of bm25, then path, line and id."""
    same = [
        candidate(4, 0.25, 0.5, "b.md", 1),
        candidate(3, 0.25, 0.5, "a.md", 9),
        candidate(2, 0.25, 0.5, "a.md", 2),
        candidate(1, 0.25, 0.5, "a.md", 9),
        Row(ChunkId(5), "z.md", 1, 7.0, 0.25, 0.5),
    ]
    assert ids(fuse(same, FusionWeights(), CALIBRATION)) == [5, 2, 1, 3, 4]
    # What keywords did not find comes after what they found, however little that tells.
    found, not_found = (
        Row(ChunkId(1), "b.md", 1, 0.5, 0.25, 0.0),
        candidate(2, 0.25, None, "a.md"),
    )
    assert ids(fuse([not_found, found], FusionWeights(), CALIBRATION)) == [1, 2]


@pytest.mark.parametrize(
    ("groups", "is_asked"),
    [((3, 2, 3), False), ((1, 2, 1, 1, 3), False), ((2, 2, 4), True), ((3, 3, 2), True), ((8,), True), ((3, 2), False), ((4,), True)],
)  # fmt: skip
def test_where_only_sets_are_wanted_positions_are_asked_for_at_their_ends_alone(
    groups: Sequence[int], *, is_asked: bool
) -> None:
    """In groups of equal candidates: which are the first three and the first five is as in their whole order."""
    shares = [1 - n / 10 for n, count in enumerate(groups) for _ in range(count)]
    all_of_them = ordered(
        [candidate(n + 1, 0.25, share, f"{n * 3 % 8}.md") for n, share in enumerate(shares)],
        FusionWeights(),
        CALIBRATION,
    )
    asked: list[Sequence[ChunkId]] = []

    def places(chunks: Sequence[ChunkId]) -> Mapping[ChunkId, Row]:
        asked.append(chunks)
        return all_of_them.places

    found = all_of_them.fused.order(places, 5, sets=(3, 5))
    assert bool(asked) is is_asked
    found_ids = all_of_them.fused.candidates.ids[found].tolist()
    for size in (3, 5):
        assert set(found_ids[:size]) == set(all_of_them.ids(5)[:size])


@pytest.mark.parametrize(
    ("own", "expected"), [((0.3, 0.1), (0.6, 0.2)), ((0.0, 0.4), (0.0, 0.8)), ((0.0, 0.0), (0.8, 0.0))]
)
def test_what_takes_the_place_of_another_has_its_score(
    own: tuple[float, float], expected: tuple[float, float]
) -> None:
    """Of which its own vectors and words have the shares that they have of its own; all is meaning where it has none."""
    at = Scored(ChunkId(1), "a.md", 1, 0.7, 0.5, 0.3, within=1.0)
    one = Scored(ChunkId(2), "b.md", 3, 0.1, *own, older=at)
    moved = in_place_of(one, at)
    assert (moved.id, moved.path, moved.score, moved.older) == (2, "b.md", 0.7, None)
    assert (moved.meaning, moved.words) == pytest.approx(expected)
    assert moved.evidence == pytest.approx(at.evidence)


def test_nothing_gives_nothing() -> None:
    """No candidate, no order."""
    assert fuse([], FusionWeights(), CALIBRATION) == []


CANDIDATES = st.lists(
    st.builds(
        candidate,
        st.integers(0, 10_000),
        st.none() | st.floats(-1, 1),
        st.none() | st.floats(0, 1),
        st.sampled_from(["a.md", "b.md"]),
        st.integers(1, 9),
        st.none() | st.floats(-1, 1),
        st.floats(0, 1),
    ),
    unique_by=lambda one: one.id,
)


@given(CANDIDATES, st.floats(0, 1), st.randoms())
def test_the_order_depends_on_the_candidates_alone(found: list[Row], weight: float, chance: object) -> None:
    """However they come, all are there, scored 0 to 1, in one order."""
    weights = FusionWeights(weight, 1 - weight)
    scored = fuse(found, weights, CALIBRATION)
    assert fuse(reversed(found), weights, CALIBRATION) == scored
    assert {one.id for one in scored} == {one.id for one in found}
    assert all(0 <= one.score <= 1 for one in scored)
    assert [one.score for one in scored] == sorted((one.score for one in scored), reverse=True)
    assert all(one.score == round(one.score, 3) for one in scored)


@given(CANDIDATES, st.floats(0, 1), st.integers(0, 10))
def test_the_first_of_all_are_told_without_their_scores(found: list[Row], least: float, most: int) -> None:
    """What is left out for its score, or is not among the first, changes nothing about the others."""
    scored = fuse(found, FusionWeights(), CALIBRATION)
    assert ordered(found, FusionWeights(), CALIBRATION).ids(most) == ids(scored[:most])
    assert fuse(found, FusionWeights(), CALIBRATION, least=least) == [
        one for one in scored if one.score >= least
    ]


@given(CANDIDATES, st.floats(0, 1), st.floats(-0.5, 0.5), st.integers(0, 3))
def test_who_asks_of_a_time_alone_gets_what_is_of_it_first(
    found: list[Row], weight: float, usual: float, each: int
) -> None:
    """In the order that it had, with the rest behind it as before, whatever the weights are."""
    rows = [msgspec.structs.replace(one, within=float(one.id % 4 < each)) for one in found]
    weights = FusionWeights(weight, 1 - weight)
    before = ordered(rows, weights, CALIBRATION, usual).fused
    after = fuse_arrays(candidates(rows), weights, CALIBRATION, usual, asks_of_time_alone=True)
    evidence, own = after.meaning + after.words, before.meaning + before.words
    of_time = before.candidates.within > 0
    assert evidence[of_time].min(initial=np.inf) >= evidence[~of_time].max(initial=0.0)
    assert evidence[~of_time].tolist() == own[~of_time].tolist()
    raised = evidence[of_time] - own[of_time]
    assert raised == pytest.approx(raised.max(initial=0.0), abs=1e-9)


def test_what_is_of_the_asked_time_alone_stands_before_what_is_of_a_long_time() -> None:
    """A note of a whole month, or with headings of far-apart days, is of each day between; it may hold more words."""
    month, day, other = (
        msgspec.structs.replace(candidate(number, cosine, share), within=within)
        for number, cosine, share, within in (
            (1, 0.5, 1.0, 0.03),
            (2, 0.1, 0.0, 1.0),
            (3, 0.55, 1.0, 0.0),
        )
    )
    rows = candidates([month, day, other])
    alone = fuse_arrays(rows, FusionWeights(), CALIBRATION, asks_of_time_alone=True)
    evidence = (alone.meaning + alone.words).tolist()
    assert evidence[1] > evidence[0] > evidence[2]
    # Asked for more than the time, it is only a little worse than what is of that day.
    whole, long = (
        msgspec.structs.replace(day, id=ChunkId(number), within=part)
        for number, part in ((4, 1.0), (5, 0.03))
    )
    fused = fuse_arrays(candidates([whole, long]), FusionWeights(), CALIBRATION)
    of_whole, of_long = (fused.meaning + fused.words).tolist()
    assert of_long < of_whole < 1.25 * of_long


def test_a_closeness_that_is_missing_is_the_middle_one_and_not_the_mean() -> None:
    """One text that is very close to a question moves none that waits for its vector."""
    for cosines, middle in (((0.1, 0.2, 0.9), 0.2), ((0.1, 0.2, 0.4, 0.9), 0.3)):
        found = [candidate(number, cosine, 1.0) for number, cosine in enumerate(cosines)]
        fused = ordered([*found, candidate(9, None, 1.0)], FusionWeights(), CALIBRATION).fused
        assert fused.assumed == pytest.approx(middle)


def test_a_strong_text_is_close_or_holds_the_words() -> None:
    """Both add up; a text without a vector is judged by its words alone."""
    near, far = candidate(1, 0.2, None), candidate(2, -0.2, None)
    assert strength_of(near) == pytest.approx(0.4)
    assert strength_of(far) == 0
    assert strength_of(candidate(1, 0.2, 0.4)) == pytest.approx(0.5)
    assert strength_of(candidate(2, -0.2, 1.0)) >= ANSWERS
    assert strength_of(candidate(3, None, 0.34)) >= ANSWERS > strength_of(candidate(3, None, 0.3))


def test_the_strength_of_a_text_does_not_depend_on_the_index() -> None:
    """Unlike the score, from which is taken what the question is as close to as to all."""
    one = candidate(1, 0.3, 0.2, part=0.4)
    assert strength_of(one) == pytest.approx((0.4 * 0.3 + 0.6 * 0.4) / 0.5 + 0.05)


@pytest.mark.parametrize(
    ("names", "held", "taken"),
    [
        (Names(), {0}, 0.0),
        (Names(proper=(1,)), {0, 1}, 0.0),
        (Names(proper=(1,)), {0}, 0.35),
        (Names(proper=(1, 2)), {2}, 0.105),
        (Names(codes=(1,)), {0}, 0.45),
        (Names(codes=(1, 2)), {1}, 0.0),
        (Names(proper=(1,), codes=(2,)), {2}, 0.105),
        (Names(proper=(1,), codes=(2,)), (), 0.8),
        (Names(proper=(1,)), None, 0.0),
    ],
)
def test_missing_names_take_off(names: Names, held: set[int] | None, taken: float) -> None:
    """Less where another name is held, and nothing where it cannot be told."""
    whole = support_of([candidate(1, 0.4, None)], Names(), ())
    judged = support_of([candidate(1, 0.4, None), candidate(2, 0.1, None)], names, held)
    assert whole.strength - judged.strength == pytest.approx(taken)
    assert judged.is_weak == (judged.strength < ANSWERS)


def test_nothing_found_is_weak() -> None:
    """There is no hit to be marked."""
    assert support_of([], Names(), ()).is_weak


DAY_S = 86_400
TEXTS = Calibration(0.0, 0.7)


def said(degrees: float, day: int | None, axis: int = 0) -> Dated:
    """What is said on a day, in a direction of a plane that is at right angles to those of other axes."""
    vector = np.zeros(40, np.float32)
    vector[2 * axis : 2 * axis + 2] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return Dated(vector, None if day is None else day * DAY_S, None if day is None else (day + 1) * DAY_S - 1)


def scores(*values: float) -> list[Scored]:
    """Candidates 1, 2, 3... with these scores, made by words alone."""
    return [
        Scored(ChunkId(number), f"{number}.md", 1, score, 0.0, math.atanh(score))
        for number, score in enumerate(values, 1)
    ]


def placed(ordered: list[Scored], said_by: dict[int, Dated], *, asks_now: bool = False) -> list[int]:
    dated = {ChunkId(number): one for number, one in said_by.items()}
    return ids(later_first(ordered, dated, TEXTS, asks_now=asks_now))


def test_what_says_the_same_later_takes_the_place_of_what_it_replaces() -> None:
    """With its score, so that scores never rise; what stands between them stays behind."""
    ordered = scores(0.70, 0.68, 0.66, 0.5)
    about = {1: said(0, 1), 2: said(0, 5, axis=1), 3: said(20, 9), 4: said(0, 3, axis=2)}
    found = later_first(
        ordered, {ChunkId(number): one for number, one in about.items()}, TEXTS, asks_now=False
    )
    assert ids(found) == [3, 1, 2, 4]
    assert [one.score for one in found] == [0.70, 0.70, 0.68, 0.5]
    assert [one.older and one.older.id for one in found] == [1, None, None, None]
    assert found[0].evidence == ordered[0].evidence


@pytest.mark.parametrize(
    ("later", "asks_now", "first"),
    [
        (said(20, 9), False, 3),
        (said(20, 1), False, 1),  # of the same day
        (said(20, 0), False, 1),  # of an earlier one
        (said(20, None), False, 1),  # of no day
        (said(68, 9), False, 1),  # about something else
        (said(65, 9), False, 3),
        (said(68, 9), True, 3),  # near enough where the question asks for what is so now
    ],
)
def test_only_what_is_later_and_about_the_same_is_put_first(later: Dated, asks_now: bool, first: int) -> None:
    about = {1: said(0, 1), 2: said(0, 5, axis=1), 3: later, 4: said(0, 3, axis=2)}
    assert placed(scores(0.70, 0.68, 0.66, 0.5), about, asks_now=asks_now)[0] == first


def test_of_candidates_that_are_all_alike_none_is_put_first() -> None:
    """In a chat all is close: what stands out is what counts."""
    about = {number: said(number, number) for number in range(1, 13)}
    ordered = scores(*(round(0.7 - n / 100, 3) for n in range(12)))
    assert placed(ordered, about, asks_now=True) == list(range(1, 13))


def test_a_question_for_what_is_so_now_bridges_more() -> None:
    """Otherwise the later one has nearly the score of the older, and is what is closest to it."""
    about = {1: said(0, 1), 2: said(0, 5, axis=1), 3: said(20, 9), 4: said(30, 0)}
    for behind, weak, strong in ((0.06, 3, 3), (0.07, 1, 3), (0.15, 1, 3), (0.16, 1, 1)):
        ordered = scores(0.80, 0.79, round(0.80 - behind, 3), 0.5)
        assert placed(ordered, about)[0] == weak
        assert placed(ordered, about, asks_now=True)[0] == strong
    about[2] = said(10, 0)  # closer, and no later
    assert placed(scores(0.70, 0.68, 0.66, 0.5), about)[:2] == [1, 2]
    assert placed(scores(0.70, 0.68, 0.66, 0.5), about, asks_now=True)[0] == 3


@pytest.mark.parametrize(
    ("behind", "cosines", "first"),
    [
        (0.2, (0.6, 0.6), 3),
        (0.21, (0.6, 0.6), 1),
        (0.2, (0.6, 0.48), 3),
        (0.2, (0.6, 0.47), 1),  # the older one is closer to the question
        (0.06, (0.6, 0.3), 3),  # nearly the same score is enough
    ],
)
def test_of_two_that_are_closest_to_each_other_the_later_one_bridges_most(
    behind: float, cosines: tuple[float, float], first: int
) -> None:
    """If it is about as close to the question."""
    about = {1: said(0, 1), 2: said(0, 5, axis=1), 3: said(20, 9), 4: said(0, 3, axis=2)}
    older, between, later, last = scores(0.80, 0.79, round(0.80 - behind, 3), 0.5)
    for part in (True, False):  # a chunk without parts is as close as its own vector is
        older, later = (
            msgspec.structs.replace(one, cosine=0.1 if part else cosine, part=cosine if part else None)
            for one, cosine in zip((older, later), cosines, strict=True)
        )
        assert placed([older, between, later, last], about)[0] == first


@pytest.mark.parametrize("with_vectors", [True, False])
def test_what_a_text_says_replaces_another_takes_its_place(with_vectors: bool) -> None:
    """However far apart their vectors are, and without any; like a pair, it bridges a difference of .2."""
    about = {n: said(0, None, axis=n) for n in range(1, 5)} if with_vectors else {}
    dated = {ChunkId(number): one for number, one in about.items()}
    pairs = {(ChunkId(3), ChunkId(1))}
    for behind, first in ((0.2, 3), (0.201, 1)):
        ordered = scores(0.80, 0.79, round(0.80 - behind, 3), 0.5)
        found = later_first(ordered, dated, TEXTS, asks_now=False, stated=pairs)
        assert found[0].id == first
        assert ids(later_first(ordered, dated, TEXTS, asks_now=False)) == [1, 2, 3, 4]


def test_so_many_candidates_are_put_in_order_by_time() -> None:
    """The last of them may take the place of the first, and the next one stays where it is."""
    pool = shipped("memd.search.later_first.POOL")
    ordered = scores(*(round(0.70 - n / 1000, 3) for n in range(pool + 1)))
    others = {n: said(0, n, axis=n) for n in range(2, pool + 2)}
    for number, first in ((pool, pool), (pool + 1, 1)):
        assert placed(ordered, {1: said(0, 1), **others, number: said(20, 99)})[0] == first


def test_of_several_later_ones_the_latest_is_first() -> None:
    about = {1: said(0, 1), 2: said(5, 5), 3: said(10, 9), **{n: said(0, n, axis=n) for n in range(4, 12)}}
    ordered = scores(0.70, 0.69, 0.68, *(0.6 - n / 100 for n in range(8)))
    assert placed(ordered, about, asks_now=True)[:3] == [3, 2, 1]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.none() | st.integers(0, 9), st.integers(0, 3)), max_size=30),
    st.booleans(),
)
def test_what_is_put_in_order_by_time_is_all_there(
    drawn: list[tuple[int, int | None, int]], asks_now: bool
) -> None:
    """Scores never rise, what has no vector and what comes after the first stays, and nobody's own evidence is changed."""
    ordered = scores(*(round(0.9 - n / 100, 3) for n in range(len(drawn))))
    about = {
        ChunkId(n): said(degrees, day, axis)
        for n, (degrees, day, axis) in enumerate(drawn, 1)
        if degrees % 7 and n <= POOL
    }
    found = later_first(ordered, about, TEXTS, asks_now=asks_now)
    assert sorted(ids(found)) == ids(ordered)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert [one.evidence for one in found] == sorted((one.evidence for one in found), reverse=True)
    assert found[POOL:] == ordered[POOL:]
    assert {(one.id, one.words) for one in found} == {(one.id, one.words) for one in ordered}
    still = [one.id for one in found if one.id not in about]
    assert still == [one.id for one in ordered if one.id not in about]


def test_of_what_only_its_time_has_found_neither_side_counts() -> None:
    """There is no evidence of words or of meaning; a side that has some counts alone."""

    def shares(*rows: Row) -> tuple[float, float]:
        fused = ordered(rows, FusionWeights(), CALIBRATION).fused
        return fused.vector_share, fused.text_share

    of_time = msgspec.structs.replace(candidate(1, None, None), within=1.0)
    assert shares(of_time) == (0.0, 0.0)
    assert shares(of_time, candidate(2, 0.4, None)) == (1.0, 0.0)
    assert shares(of_time, candidate(3, None, 0.4)) == (0.0, ALONE)


@pytest.mark.parametrize(
    ("part", "cosine", "expected"), [(0.4, 0.9, 0.4), (0.0, 0.9, 0.0), (None, 0.9, 0.9), (None, None, 0.0)]
)
def test_the_nearest_of_a_candidate_is_its_best_part(
    part: float | None, cosine: float | None, expected: float
) -> None:
    """Where it has no parts, it is itself; without a vector it is near nothing."""
    assert Scored(ChunkId(1), "a.md", 1, 0.5, 0.5, 0.0, cosine=cosine, part=part).nearest == expected


def test_of_a_candidate_that_neither_side_found_nothing_is_known() -> None:
    """Such as one of the newest: what has words goes before it, where there is equal evidence."""
    newest = Scored(ChunkId(1), "a.md", 1, 0.0, 0.0, 0.0)
    assert (newest.r, newest.cosine, newest.part, newest.share, newest.foreign) == (0, None, None, 0, 0)
    assert (newest.closest, newest.within, newest.older) == (None, 0.0, None)
    assert place_in_order(msgspec.structs.replace(newest, r=0.5, path="b.md")) < place_in_order(newest)


def test_what_another_script_may_hold_is_told_by_the_closest() -> None:
    """By the second best share among so many of them."""
    compared = shipped("memd.search.fuse_scores._COMPARED")
    count = 3 * compared
    meaning = np.array([*np.linspace(0.9, 0.1, count), 0.9])
    foreign = np.array([0.0] * count + [1.0])
    for place, taken in ((compared - 1, 0.6), (compared, 0.1)):
        share = np.full(count + 1, 0.1)
        share[[0, place]] = 0.8, 0.6
        assert shares_taken(meaning, share, foreign)[-1] == taken


def test_what_is_much_less_close_holds_nothing_of_it() -> None:
    """Two notes have the word; what is as close as they are may say the same in another script, and what is far does not."""
    meaning = np.array([0.5, 0.5, 0.5, 0.45, 0.375, 0.3, 0.1, 0.0])
    share = np.array([1.0, 1.0, *[0.0] * 6])
    foreign = np.array([0.0, 0.0, *[1.0] * 6])
    assert shares_taken(meaning, share, foreign) == pytest.approx([0, 0, 1, 1, 0.5, 0, 0, 0])
    assert not shares_taken(np.zeros(8), share, foreign).any()


def test_synonyms_and_translations_count_half() -> None:
    """Beside a text's own share, or what is assumed of another script; no text counts as holding more than all words."""
    own = candidate(1, 0.5, 0.4)
    rows = [
        msgspec.structs.replace(own, alternatives=0.2, expanded=0.6),
        candidate(2, 0.5, 0.6),
        msgspec.structs.replace(candidate(3, 0.5, None, foreign=1.0), expanded=0.5, alternatives=0.5),
        msgspec.structs.replace(candidate(4, 0.5, None, foreign=1.0), expanded=1.0, alternatives=1.0),
        candidate(5, 0.5, None, foreign=1.0),
        msgspec.structs.replace(candidate(6, 0.5, None, foreign=0.5), expanded=1.0, alternatives=1.0),
    ]
    found = {one.id: one.words for one in fuse(rows, FusionWeights(), CALIBRATION)}
    taken = 0.4  # the second best share of the question's script
    expected = [0.5, 0.6, taken + 0.25, taken + 0.5, taken, 0.25 + 0.5 * (taken + 0.5)]
    assert [found[ChunkId(n)] for n in range(1, 7)] == pytest.approx([WORDS * one for one in expected])
    sure = [candidate(1, 0.5, 1.0), candidate(2, 0.5, 1.0), msgspec.structs.replace(rows[3], id=ChunkId(3))]
    assert {one.id: one.words for one in fuse(sure, FusionWeights(), CALIBRATION)}[ChunkId(3)] == WORDS


def test_where_no_text_has_a_word_translations_count_all_the_same() -> None:
    """A question to a memory in the other language."""
    rows = [
        msgspec.structs.replace(candidate(1, 0.2, None, foreign=1.0), expanded=1.0, alternatives=1.0),
        candidate(2, 0.2, None, foreign=1.0),
    ]
    first, second = fuse(rows, FusionWeights(), CALIBRATION)
    assert [first.words, second.words] == pytest.approx([WORDS / 2, 0.0])
    assert first.id == ChunkId(1)
