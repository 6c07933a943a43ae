"""How much a chunk holds, and where a text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.chunk.split import LEAST_PART_WIDTH, MOST_PART_WIDTH, ChunkSize, end_of, parts_of, piece_end
from memd.text.tokens import width
from tests.bounds import shipped

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
        ("x " + "y" * 200, "x " + "y" * 58),  # a place in its first half would leave a piece of a few words
        ("x. " + "y" * 200, "x. " + "y" * 57),
        ("x" * 20 + " " + "y" * 200, "x" * 20 + " " + "y" * 39),
        ("x" * 30 + " " + "y" * 200, "x" * 30 + " "),
        ("x" * 30 + ". " + "y" * 9 + " " + "y" * 200, "x" * 30 + "."),  # a sentence before a word
        ("x" * 30 + " y" * 15, "x" * 30 + " y" * 15),  # what fits is not cut
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
    """Latin text is limited by characters, CJK by tokens."""
    room = ChunkSize(quarters=1600, chars=700)
    assert room.cost("a" * 700) == room.capacity
    assert room.cost("字" * 400) == room.capacity


LINES = st.lists(
    st.sampled_from(
        [
            "- a short line",
            "",
            "  ",
            "一行中文，说一件事",
            "A sentence of some length, which goes on and on. Another one! And a third? " * 3,
            "很长的一行，里面有好几句话。第二句在这里！第三句也在这里；第四句结束了。" * 4,
            "x" * 300,
            "## heading",
        ]
    ),
    max_size=12,
).map("\n".join)


@given(LINES)
def test_parts_hold_all_that_is_said_once(text: str) -> None:
    """In order, without overlap, and nothing but space between them; a text that would be one part has none."""
    spans = parts_of(text)
    assert len(spans) != 1
    at = 0
    for begin, end in spans:
        assert at <= begin < end <= len(text)
        assert not text[at:begin].strip()
        assert text[begin:end] == text[begin:end].strip("\n")
        at = end
    if spans:
        assert not text[at:].strip()


@given(LINES)
def test_parts_are_of_a_width(text: str) -> None:
    """None is wider than it may be, but for a sentence that has no end; two that follow each other do not fit in one."""
    spans = parts_of(text)
    widths = [width(text[begin:end]) for begin, end in spans]
    for (begin, end), size in zip(spans, widths, strict=True):
        whole = "\n" not in text[begin:end]
        assert size <= MOST_PART_WIDTH + text[begin:end].count("\n") * 3 or whole
    for size, (_, end), (begin, after) in zip(widths, spans, spans[1:], strict=False):
        first = text[begin:after].split("\n", maxsplit=1)[0]
        assert size >= LEAST_PART_WIDTH - 3 or size + width(first) > MOST_PART_WIDTH - 3, (text[:end], first)


def test_lines_go_together_while_they_are_short() -> None:
    """A list of short lines has a part for a few of them each; Chinese ones for fewer."""
    english = "\n".join(f"- line {n} is some thirty wide" for n in range(8))
    chinese = "\n".join(f"- 第{n}行大约有三十个字符的宽度吧" for n in range(8))
    assert [english[b:e].count("\n") + 1 for b, e in parts_of(english)] == [4, 4]
    assert [chinese[b:e].count("\n") + 1 for b, e in parts_of(chinese)] == [3, 3, 2]


@pytest.mark.parametrize(("short", "count"), [(1, 2), (0, 3)])
def test_a_line_of_so_many_columns_is_a_part_by_itself(short: int, count: int) -> None:
    """A shorter one goes together with the next."""
    least = shipped("memd.chunk.split.LEAST_PART_WIDTH")
    assert len(parts_of("\n".join(["a" * (least - short), "b" * 20, "c" * 150]))) == count


def test_a_long_line_is_divided_between_sentences() -> None:
    """In either language."""
    text = "The first sentence tells one thing at some length, as people do when they write. " * 4
    for begin, end in parts_of(text.strip()):
        assert text[begin:end].startswith("The first")
        assert text[begin:end].endswith("write.")
    chinese = "这一句话说的是一件事情，写得比较长，因为人们就是这样写的。" * 6
    assert all(chinese[begin:end].endswith("。") for begin, end in parts_of(chinese))


def test_one_thing_has_no_parts() -> None:
    """The whole says it already."""
    assert parts_of("- a line\n- and another") == ()
    assert parts_of("") == ()


def test_a_line_of_blanks_takes_no_time() -> None:
    """It is no part, however long it is."""
    assert parts_of(" " * 300_000) == ()
    assert parts_of(f"{'a ' * 90}\n{' ' * 300_000}\n{'b ' * 90}")[-1][1] == 300_362
