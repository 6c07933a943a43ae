import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.model import ChunkId
from memd.search.fuse import Candidate, Scored, Weights, fuse, text_score


def r_of(score: float) -> float:
    """The r whose text score this is."""
    return score / (1 - score)


def candidate(
    name: int, cosine: float | None, text: float | None, path: str = "a.md", line: int = 1
) -> Candidate:
    return Candidate(ChunkId(name), path, line, None if text is None else r_of(text), cosine)


def ids(scored: list[Scored]) -> list[int]:
    return [one.id for one in scored]


@pytest.mark.parametrize(
    ("cosine", "text", "expected"),
    [(0.85, 0.40, 0.715), (0.75, 0.0, 0.525), (0.0, 0.95, 0.285), (0.60, 0.60, 0.600), (0.9, 0.6, 0.81)],
)
def test_the_score_is_the_weighted_sum(cosine: float, text: float, expected: float) -> None:
    """0.7 x cosine + 0.3 x text score."""
    other = candidate(2, 0.1, 0.1)  # so that both sides have evidence
    scored = {one.id: one.score for one in fuse([candidate(1, cosine, text), other], Weights(0.7, 0.3))}
    assert scored[ChunkId(1)] == pytest.approx(expected)


def test_the_order_follows_the_score() -> None:
    """Of four chunks the one that both sides like is first, the one that keywords alone like last."""
    four = [
        candidate(203, 0.0, 0.95),
        candidate(202, 0.75, 0.0),
        candidate(204, 0.60, 0.60),
        candidate(201, 0.85, 0.40),
    ]
    scored = fuse(four, Weights(0.7, 0.3))
    assert ids(scored) == [201, 204, 202, 203]
    assert [one.id for one in scored if one.score >= 0.45] == [201, 204, 202]


@pytest.mark.parametrize(("r", "expected"), [(0.0, 0.0), (-1.0, 0.0), (1.0, 0.5), (9.0, 0.9), (1e-6, 1e-6)])
def test_the_text_score_is_bounded(r: float, expected: float) -> None:
    """r/(1+r): better matches score more, none reaches 1."""
    assert text_score(r) == pytest.approx(expected)


def test_a_cosine_below_0_counts_as_0() -> None:
    """Text that points the other way is as far as text that has nothing to do with the question."""
    scored = fuse([candidate(1, -0.5, 0.5), candidate(2, 0.9, None)], Weights())
    assert scored[1].score == pytest.approx(0.15)


def test_without_vectors_keywords_count_in_full() -> None:
    """The weight of a side that has nothing to say is not lost."""
    scored = fuse([candidate(1, None, 0.5), candidate(2, None, 0.8)], Weights())
    assert ids(scored) == [2, 1]
    assert [one.score for one in scored] == pytest.approx([0.8, 0.5])


def test_without_keywords_vectors_count_in_full() -> None:
    """Hits by meaning alone keep their cosine as their score."""
    scored = fuse([candidate(1, 0.5, None), candidate(2, 0.8, None)], Weights())
    assert ids(scored) == [2, 1]
    assert [one.score for one in scored] == pytest.approx([0.8, 0.5])


@pytest.mark.parametrize("weights", [Weights(1.0, 0.0), Weights(0.0, 1.0), Weights(0.0, 0.0)])
def test_a_side_without_weight_still_orders_when_it_is_alone(weights: Weights) -> None:
    """Where the weighted side is missing, the other one answers."""
    assert ids(fuse([candidate(1, None, 0.5), candidate(2, None, 0.8)], weights)) == [2, 1]
    assert ids(fuse([candidate(1, 0.5, None), candidate(2, 0.8, None)], weights)) == [2, 1]


def test_a_chunk_that_waits_for_its_vector_is_not_lost() -> None:
    """It is taken to be as near as the middle one of the other keyword hits: its keywords decide."""
    waiting = candidate(1, None, 0.9)
    known = [candidate(2, 0.8, 0.5), candidate(3, 0.7, 0.6), candidate(4, 0.9, 0.1), candidate(5, 0.85, None)]
    scored = fuse([waiting, *known], Weights())
    assert scored[0].id == 1
    assert scored[0].score == pytest.approx(0.7 * 0.8 + 0.3 * 0.9)
    assert scored[0].cosine is None


def test_ties_are_broken_by_place() -> None:
    """Equal scores are in the order of path, then line, then id."""
    same = [
        candidate(4, 0.5, 0.5, "b.md", 1),
        candidate(3, 0.5, 0.5, "a.md", 9),
        candidate(2, 0.5, 0.5, "a.md", 2),
        candidate(1, 0.5, 0.5, "a.md", 9),
    ]
    assert ids(fuse(same, Weights())) == [2, 1, 3, 4]


def test_nothing_gives_nothing() -> None:
    """No candidate, no order."""
    assert fuse([], Weights()) == []


CANDIDATES = st.lists(
    st.builds(
        candidate,
        st.integers(0, 10_000),
        st.none() | st.floats(-1, 1),
        st.none() | st.floats(0, 0.99),
        st.sampled_from(["a.md", "b.md"]),
        st.integers(1, 9),
    ),
    unique_by=lambda one: one.id,
)


@given(CANDIDATES, st.floats(0, 1), st.randoms())
def test_the_order_depends_on_the_candidates_alone(
    candidates: list[Candidate], weight: float, chance: object
) -> None:
    """However they come, all are there, scored 0 to 1, in one order."""
    weights = Weights(weight, 1 - weight)
    scored = fuse(candidates, weights)
    assert fuse(reversed(candidates), weights) == scored
    assert {one.id for one in scored} == {one.id for one in candidates}
    assert all(0 <= one.score <= 1 for one in scored)
    assert [one.score for one in scored] == sorted((one.score for one in scored), reverse=True)
