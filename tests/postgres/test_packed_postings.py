"""Postings are unpacked as they were packed, in few bytes, and merged when there are eight of a size."""

import numpy as np
import pytest

from memd.postgres.packed_postings import TermPostings, due, term_id
from tests.bounds import shipped

CHUNKS = {
    number: (
        {f"word{word}": list(range(word % 7 + 1)) for word in range(number % 50, number % 50 + 120)},
        300,
    )
    for number in range(5, 305)
}


def _rows(postings: TermPostings) -> list[tuple[int, ...]]:
    columns = (postings.terms, postings.chunk_ids, postings.counts, postings.tokens)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_what_was_packed_is_unpacked() -> None:
    """In buckets of some hundred bytes, a few bytes for each posting with its places."""
    made = TermPostings.of(CHUNKS)
    buckets = list(made.packed(5))
    parts = [bucket.unpacked(5) for bucket in buckets]
    whole = TermPostings.concatenated(parts)
    assert _rows(whole) == _rows(made)
    assert whole.places.tolist() == made.places.tolist()
    assert [bucket.bucket for bucket in buckets] == sorted(
        {term >> (63 - made.bits) for term in made.terms.tolist()}
    )
    assert sum(len(bucket.rows) + len(bucket.places) for bucket in buckets) < 12 * len(made)


def test_one_term_is_unpacked_alone() -> None:
    """With its places or without; of a term that is not there, nothing."""
    made = TermPostings.of(CHUNKS)
    term = term_id("word60")
    [bucket] = [one for one in made.packed(5) if one.bucket == term >> (63 - made.bits)]
    found = bucket.unpacked(5, term)
    assert found.chunk_ids.tolist() == [number for number, (terms, _) in CHUNKS.items() if "word60" in terms]
    assert set(found.counts.tolist()) == {60 % 7 + 1}
    assert found.places.tolist() == list(range(60 % 7 + 1)) * len(found)
    assert len(bucket.unpacked(5, term + 1)) == 0


def test_numbers_of_any_size() -> None:
    """A chunk far from the first one, a place beyond 65,535, and a term that is there three hundred times."""
    made = TermPostings.of({7: ({"a": [70_000], "b": list(range(300))}, 70_001), 2**40: ({"a": [1]}, 1)})
    [bucket] = made.packed(7)
    again = bucket.unpacked(7)
    assert (_rows(again), again.places.tolist()) == (_rows(made), made.places.tolist())


def test_chunks_are_left_out_where_segments_are_put_together() -> None:
    """With their places."""
    one = TermPostings.of({1: ({"a": [3], "b": [4, 5]}, 9), 2: ({"a": [6]}, 9)})
    other = TermPostings.of({3: ({"a": [7, 8]}, 9)})
    both = TermPostings.together([one, other], np.array([2]))
    expected = TermPostings.of({1: ({"a": [3], "b": [4, 5]}, 9), 3: ({"a": [7, 8]}, 9)})
    assert (_rows(both), both.places.tolist()) == (_rows(expected), expected.places.tolist())


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([1], 1),
        ([3] * 7, 1),
        ([3] * 8, 8),
        ([3] * 8 + [20, 20], 8),
        ([3] * 8 + [20] * 7, 15),
        ([100, 2, 3], 3),
        ([100, 2, 3, 700, 5], 3),
        ([2, 100], 1),
        ([5000, 2, 3], 1),
        ([1, 5000], 1),
        ([600] * 8 + [5000] * 8, 8),
    ],
)
def test_when_segments_are_merged(sizes: list[int], merged: int) -> None:
    """Eight of about the same size, and smaller ones before a larger one; those of thousands of chunks stay as they are."""
    assert due(sizes) == merged


def test_buckets_are_of_about_a_size() -> None:
    """Neither so small that the rows of the table count, nor so large that a search reads what it does not need."""
    usual, most = (
        shipped("memd.postgres.packed_postings._BUCKET_BYTES"),
        shipped("memd.postgres.packed_postings._MOST_BITS"),
    )
    words = {
        number: [f"word{(37 * number + 41 * word) % 5000}" for word in range(120)] for number in range(5, 305)
    }
    made = TermPostings.of({number: ({word: [1, 2] for word in some}, 240) for number, some in words.items()})
    sizes = [len(bucket.rows) + len(bucket.places) for bucket in made.packed(5)]
    assert usual / 3 < sum(sizes) / len(sizes) < 0.75 * usual
    none = np.broadcast_to(np.int64(0), usual * 2**most)  # takes no memory
    assert TermPostings(none, none, none, none, none).bits == most


def test_the_largest_segments_are_left_as_they_are() -> None:
    """One more chunk, and nothing is merged with it."""
    largest = 8 ** shipped("memd.postgres.packed_postings._LARGEST_TIER")
    assert (due([largest - 1, 2, 3]), due([largest, 2, 3])) == (3, 1)
