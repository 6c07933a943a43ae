import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import ChunkId, FoundHit, Kind
from memd.search.adjacent_hits import LOOKED_AT, TIMES, joined
from memd.search.fuse_scores import Scored
from memd.search.query import parse
from memd.search.rank import Verdict, verdicts
from memd.store.chunks import StoredChunk
from memd.text.turn_header import brief
from tests.bounds import shipped

MOST = 60


def chunk(
    number: int, text: str, line: int, path: str = "a.md", numbers: tuple[int, ...] | None = None
) -> StoredChunk:
    kind = Kind.SESSION if numbers else Kind.NOTE
    last = numbers[-1] if numbers else line + text.count("\n")
    return StoredChunk(ChunkId(number), path, kind, line, last, text, "", numbers)


def judged(*chunks: StoredChunk, max_chars: int = MOST) -> list[Verdict]:
    """The best first."""
    found = [
        (Scored(one.id, one.path, one.start_line, score := 0.9 - 0.01 * n, score, 0.0), one)
        for n, one in enumerate(chunks)
    ]
    return list(joined(verdicts([found], parse("cat"), 0.0, max_chars), max_chars))


def shown(*chunks: StoredChunk, max_chars: int = MOST) -> list[tuple[int, int, str]]:
    hits = [one.hit for one in judged(*chunks, max_chars=max_chars) if one.hit]
    return [(one.start_line, one.end_line, one.snippet) for one in hits]


def test_a_hit_that_goes_on_where_another_ends_is_part_of_it() -> None:
    """Whichever is the better one; the text stands in the order of the file, and the score is that of the better one."""
    above, below = chunk(1, "one\ntwo", 1), chunk(2, "three\nfour", 3)
    assert shown(above, below) == shown(below, above) == [(1, 4, "one\ntwo\nthree\nfour")]
    best, other = judged(below, above)
    assert best.hit is not None
    assert (best.hit.score, other.hit, other.cut, other.joined_to) == (0.9, None, "joined", ChunkId(2))


def test_a_hit_that_became_part_of_another_is_owed_to_nobody() -> None:
    """Though it was the turn of its source; one that stays is still."""
    owed = [
        msgspec.structs.replace(one, owed=True)
        for one in verdicts(
            [
                [
                    (Scored(one.id, one.path, one.start_line, 0.9, 0.9, 0.0), one)
                    for one in (chunk(1, "one", 1), chunk(2, "two", 2), chunk(3, "far", 9))
                ]
            ],
            parse("cat"),
            0.0,
            MOST,
        )
    ]
    made = [(one.chunk.id, one.hit is not None, one.owed) for one in joined(owed, MOST)]
    assert made == [(1, True, True), (2, False, False), (3, True, True)]


def test_lines_that_both_chunks_have_are_shown_once() -> None:
    """A chunk begins with the last lines of the one before it."""
    assert shown(chunk(1, "one\ntwo", 1), chunk(2, "two\nthree", 2)) == [(1, 3, "one\ntwo\nthree")]


def test_blank_lines_between_stay_so_that_lines_have_their_numbers() -> None:
    """A window has no blank lines at its ends."""
    assert shown(chunk(1, "one\n", 1), chunk(2, "\nthree", 3)) == [(1, 4, "one\n\n\nthree")]


@pytest.mark.parametrize(
    "other",
    [
        chunk(2, "four", 4),
        chunk(2, "three", 3, "b.md"),
        chunk(2, "three" * 20 + " cat", 3),
    ],
    ids=["a line is between them", "another file", "its line is cut"],
)
def test_what_does_not_follow_is_a_hit_of_its_own(other: StoredChunk) -> None:
    assert len(shown(chunk(1, "one\ntwo", 1), other)) == 2


def test_a_line_that_is_cut_is_not_put_together() -> None:
    """Its halves would stand on two lines."""
    assert len(shown(chunk(1, "long, the first half", 1), chunk(2, "and the second half", 1))) == 2


def test_a_window_that_leaves_lines_out_is_not_followed() -> None:
    """What an agent reads as one has no gap."""
    above = chunk(1, "a cat\n" + "dog\n" * 20 + "end", 1)
    assert len(shown(above, chunk(2, "below", 23))) == 2


def test_three_may_be_one_as_far_as_there_is_room() -> None:
    """Twice the characters of one hit."""
    some = [chunk(n, str(n) * 35, n) for n in (2, 1, 3, 4)]
    assert [(first, last) for first, last, _ in shown(*some)] == [(1, 3), (4, 4)]


def test_hits_of_several_files_are_each_put_together_with_their_own() -> None:
    """Whichever comes between them."""
    first, other, third = chunk(1, "one", 1, "a.md"), chunk(2, "two", 1, "b.md"), chunk(3, "three", 1, "c.md")
    more = [chunk(4, "four", 2, "a.md"), chunk(5, "five", 2, "b.md"), chunk(6, "six", 2, "c.md")]
    hits = [one.hit for one in judged(first, other, third, *more) if one.hit]
    assert [(hit.path, hit.snippet) for hit in hits] == [
        ("a.md", "one\nfour"), ("b.md", "two\nfive"), ("c.md", "three\nsix"),
    ]  # fmt: skip


def test_turns_are_put_together_where_both_chunks_have_a_turn() -> None:
    """Their lines of the file tell nothing: other entries stand between."""
    said = [
        "2026-11-20 10:01 User: a cat?",
        "2026-11-20 10:02 Assistant: two",
        "2026-11-20 10:03 User: which?",
    ]
    above = chunk(1, "\n".join(said[:2]), 3, "sessions/a/1.jsonl", (3, 7))
    below = chunk(2, "\n".join(said[1:]), 7, "sessions/a/1.jsonl", (7, 9))
    apart = chunk(3, said[2], 9, "sessions/a/1.jsonl", (9,))
    assert shown(above, below, max_chars=200) == [(3, 9, brief("\n".join(said)))]
    assert len(shown(above, apart, max_chars=200)) == 2


def test_what_holds_no_more_is_not_put_together_with_what_holds() -> None:
    """A hit says it of all that it shows."""
    struck = msgspec.structs.replace(chunk(2, "three", 3), superseded="b.md")
    assert len(shown(chunk(1, "one\ntwo", 1), struck)) == 2


@pytest.mark.parametrize(
    ("above", "below", "expected"),
    [((1, 5), (3, 9), (1, 9)), ((4, 6), (1, 2), (1, 6)), ((1, 5), None, None), (None, (3, 9), None), (None, None, None)],
)  # fmt: skip
def test_a_joined_hit_is_of_all_the_time_that_its_parts_are_of(
    above: tuple[int, int] | None, below: tuple[int, int] | None, expected: tuple[int, int] | None
) -> None:
    """Nobody knows when, where that is unknown of one of them."""
    timed = [
        msgspec.structs.replace(one, first_s=when and when[0], last_s=when and when[1])
        for one, when in ((chunk(1, "one\ntwo", 1), above), (chunk(2, "three", 3), below))
    ]
    (hit,) = (one.hit for one in judged(*timed) if one.hit)
    assert hit.when == expected


def lines_of(hits: list[FoundHit]) -> list[tuple[int, str]]:
    every = [
        (n, line)
        for hit in hits
        for n, line in enumerate(hit.snippet.split("\n"), hit.start_line)
        if line.strip()
    ]
    return sorted(every)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 24)), max_size=14),
    st.lists(st.sampled_from(["a cat", "the dog", "", "一只猫", "long " * 9]), min_size=28, max_size=28),
)
def test_the_same_lines_are_shown_in_fewer_hits(places: list[tuple[int, int]], texts: list[str]) -> None:
    """Of chunks anywhere in a file: each line at its number, none twice, and no hit beyond its length."""
    lines = [text and f"{n} {text}" for n, text in enumerate(texts)]
    chunks = [chunk(n, "\n".join(lines[at : at + size]), at) for n, (size, at) in enumerate(places)]
    found = [
        (Scored(one.id, one.path, one.start_line, score := 0.9 - 0.01 * n, score, 0.0), one)
        for n, one in enumerate(chunks)
    ]
    apart = [one.hit for one in verdicts([found], parse("cat"), 0.0, MOST) if one.hit]
    hits = [one.hit for one in judged(*chunks) if one.hit]
    assert lines_of(hits) == lines_of(apart)
    assert all(line in lines[n] for n, line in lines_of(hits))
    assert all(len(hit.snippet) <= TIMES * MOST for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[LOOKED_AT:] == apart[len(apart) - len(hits[LOOKED_AT:]) :]


@pytest.mark.parametrize("beyond", [0, 1])
def test_so_many_hits_are_put_together(beyond: int) -> None:
    """Of more, each stays by itself, so that who asks for more gets the same first ones."""
    looked_at = shipped("memd.search.adjacent_hits.LOOKED_AT")
    far = [chunk(n, f"far {n}", 100 * n) for n in range(2, looked_at + beyond)]
    found = shown(chunk(1, "one", 1), *far, chunk(99, "two", 2))
    assert len(found) == looked_at + beyond - 1 + beyond


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_hit_of_several_chunks_has_so_many_times_the_characters_of_one(beyond: int) -> None:
    """Longer ones are not put together."""
    most = shipped("memd.search.adjacent_hits.TIMES") * MOST
    below = chunk(2, "y" * (most - MOST - 1 + beyond), 2)
    assert len(shown(chunk(1, "x" * MOST, 1), below)) == 1 + beyond
