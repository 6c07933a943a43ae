"""Candidates that a reranker has ordered, in front of those that it was not given."""

from collections.abc import Iterator, Sequence

import pytest

from memd.config.settings import WORTH_READING
from memd.domain_types import ChunkId, Kind
from memd.search.fuse_scores import Scored
from memd.search.make_hits import reranked, worth_reranking
from memd.store.chunks import StoredChunk

Pair = tuple[Scored, StoredChunk]


def pair(number: int, score: float = 0.8) -> Pair:
    path = f"{number}.md"
    return (
        Scored(ChunkId(number), path, 1, score, score, 0.0),
        StoredChunk(ChunkId(number), path, Kind.NOTE, 1, 1, f"text {number}", ""),
    )


def lane(read: list[int], numbers: Sequence[int]) -> Iterator[Pair]:
    for number in numbers:
        read.append(number)
        yield pair(number, 0.9 - number / 100)


def test_no_more_is_read_than_was_ordered_anew() -> None:
    """And one more, which shows that there it ends; the scores stay at their places."""
    read: list[int] = []
    ordered = reranked(lane(read, range(9)), {ChunkId(2): 0, ChunkId(0): 1, ChunkId(1): 2})
    first = [next(ordered) for _ in range(3)]
    assert [chunk.id for _, chunk in first] == [2, 0, 1]
    assert [one.score for one, _ in first] == [0.9, 0.89, 0.88]
    assert read == [0, 1, 2, 3]
    assert [chunk.id for _, chunk in ordered] == [3, 4, 5, 6, 7, 8]


def test_without_an_order_candidates_stay_and_none_is_read_before_it_is_wanted() -> None:
    read: list[int] = []
    ordered = reranked(lane(read, range(3)), {})
    assert next(ordered)[1].id == 0
    assert read == [0]
    assert [chunk.id for _, chunk in ordered] == [1, 2]


@pytest.mark.parametrize(
    ("most", "expected"), [(1, [0, 10]), (4, [0, 1, 10, 11]), (5, [0, 1, 10, 11]), (99, [0, 1, 2, 10, 11])]
)
def test_as_many_of_each_source_are_ordered_as_of_the_other(most: int, expected: list[int]) -> None:
    """One of each at least; what is not worth reading is none of them, though it takes a place."""
    lanes = [
        iter([pair(0), pair(1), pair(2)]),
        iter([pair(10), pair(11, WORTH_READING), pair(12, WORTH_READING - 0.001)]),
    ]
    assert [chunk.id for chunk in worth_reranking(lanes, most)] == expected
    assert worth_reranking([], most) == []
