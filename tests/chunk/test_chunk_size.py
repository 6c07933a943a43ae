"""How much a chunk holds, and where a text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.chunk.chunk_size import ChunkSize, end_of, piece_end

ROOM = ChunkSize(quarters=100, chars=60)
TEXTS = st.text(alphabet=st.sampled_from("ab 。.字数é\U00020000\u0301👩\u200d"), min_size=1, max_size=300)


@given(TEXTS, st.integers(0, 300), st.integers(3000, 6000))
def test_a_piece_is_as_long_as_it_may_be(text: str, start: int, most: int) -> None:
    """A piece fits, and ends where no more fits unless it ends with a sentence, a word or a visible character before."""
    start = min(start, len(text) - 1)
    end = piece_end(text, start, most, ROOM)
    assert start < end <= len(text)
    assert ROOM.cost(text[start:end]) <= most
    reach = end
    while reach < len(text) and ROOM.cost(text[start : reach + 1]) <= most:
        reach += 1
    if end < reach:
        is_between = not (text[end - 1].isalnum() and text[end].isalnum()) or "字" in text[end - 1 : end + 1]
        assert is_between or text[end] in "\u0301\u200d" or text[end - 1] == "\u200d"


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("我" * 24 + "PostgreSQL" + "们" * 20, "我" * 24),  # half of a word is found by nobody
        ("我" * 22 + "PostgreSQL" + "们" * 20, "我" * 22 + "PostgreSQL"),
        ("我" * 24 + "cafe\u0301sieren" + "们" * 20, "我" * 24),
        ("x" * 200, "x" * 60),  # one that is longer than a piece is cut all the same
        ("我" * 5 + "x" * 200, "我" * 5 + "x" * 55),
    ],
)
def test_a_word_among_characters_without_spaces_stays_whole(text: str, piece: str) -> None:
    """A piece of Chinese ends before a Latin word that does not fit, where that leaves half of it."""
    assert text[: piece_end(text, 0, ROOM.capacity, ROOM)] == piece


@given(TEXTS, st.integers(-100, 6000))
def test_an_end_fits(text: str, most: int) -> None:
    """The end of a text is its end, and fits."""
    end = end_of(text, most, ROOM)
    assert text.endswith(end)
    assert not end or ROOM.cost(end) <= most


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("One is here. Two is here", "Two is here"),
        ("one two three four five", "two three four five"),
        ("一句话。又一句话", "又一句话"),
        ("x" * 100, ""),
    ],
)
def test_an_end_begins_with_a_sentence_or_a_word(text: str, end: str) -> None:
    """A sentence is repeated whole, else words are; what has neither is not repeated."""
    assert end_of(text, ROOM.cost("x" * 22), ROOM) == end


def test_costs_keep_both_limits() -> None:
    """Latin text is limited by characters, CJK by tokens, and the dearest character is known."""
    room = ChunkSize(quarters=1600, chars=700)
    assert room.cost("a" * 700) == room.capacity
    assert room.cost("字" * 400) == room.capacity
    assert room.cost("\U00020000") == room.dearest
