import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.search.query import parse
from memd.search.snippet import window

LINES = [f"line {n} is about nothing at all" for n in range(40)]


def test_a_chunk_that_fits_is_shown_whole() -> None:
    """Without the blank lines at its ends, whose lines it does not claim."""
    shown = window("\n\n  indented\nmore\n\n", 10, ["more"], 700)
    assert (shown.start_line, shown.end_line, shown.text) == (12, 13, "  indented\nmore")


def test_the_window_holds_the_answer() -> None:
    """Whole lines around the terms, with their true numbers."""
    lines = [*LINES]
    lines[30] = "we picked PostgreSQL as the database"
    shown = window("\n".join(lines), 101, ["database", "picked"], 200)
    assert shown.start_line <= 131 <= shown.end_line
    assert shown.text.split("\n") == lines[shown.start_line - 101 : shown.end_line - 100]
    assert len(shown.text) <= 200


def test_a_rare_term_weighs_more_than_a_common_one() -> None:
    """A word that is in every line tells nothing about where the answer is."""
    lines = [*LINES]
    lines[33] = "the cat is called Dumpling"
    assert "Dumpling" in window("\n".join(lines), 1, ["nothing", "line", "called"], 150).text


def test_without_a_term_the_beginning_is_shown() -> None:
    """A chunk that was found by its meaning alone is shown from its head."""
    shown = window("\n".join(LINES), 5, ["absent"], 100)
    assert shown.start_line == 5
    assert shown.text.startswith("line 0")
    assert window("\n".join(LINES), 5, [], 100) == shown


def test_the_closest_part_counts_as_a_rare_term() -> None:
    """Where no term stands it is shown; a term that stands once in lines far from it is as good, two are better."""
    lines = [*LINES]
    text = "\n".join(["", *lines])  # what is blank at the beginning is not shown
    begin = text.index(lines[25])
    part = (begin, begin + 2 * len(lines[25]) + 1)
    alone = window(text, 4, ["absent"], 100, part)
    assert {30, 31} <= set(range(alone.start_line, alone.end_line + 1))
    lines[5] = "we picked PostgreSQL"
    text = "\n".join(["", *lines])
    begin = text.index(lines[25])
    part = (begin, begin + 2 * len(lines[25]) + 1)
    assert window(text, 4, ["postgresql", "picked"], 100, part).start_line <= 10
    with_word = window(text, 4, ["26", "picked"], 100, part)
    assert {30, 31} <= set(range(with_word.start_line, with_word.end_line + 1))


def test_the_closest_part_of_a_long_line_is_shown() -> None:
    """The stretch around it, where no term stands."""
    line = "word " * 300 + "the spare key is under the mat. " + "word " * 300
    begin = line.index("the spare")
    shown = window(f"first\n{line}\nlast", 7, [], 120, (6 + begin, 6 + begin + 30))
    assert (shown.start_line, shown.end_line) == (8, 8)
    assert "the spare key is under the mat" in shown.text


def test_the_answer_has_text_before_and_after() -> None:
    """The terms stand in the middle of the window rather than at its edge."""
    lines = [*LINES]
    lines[20] = "the key is under the mat"
    shown = window("\n".join(lines), 0, ["key"], 200)
    assert abs((20 - shown.start_line) - (shown.end_line - 20)) <= 1


@pytest.mark.parametrize("filler", ["word ", "字", "🙂"])
def test_inside_a_long_line_the_stretch_with_the_terms_is_shown(filler: str) -> None:
    """A line longer than the window is cut, with its own number."""
    line = filler * 300 + " needle " + filler * 300
    shown = window("first\n" + line + "\nlast", 7, ["needle"], 120)
    assert (shown.start_line, shown.end_line) == (8, 8)
    assert "needle" in shown.text
    assert len(shown.text) <= 120
    assert shown.text in line


def test_a_visible_character_is_not_cut() -> None:
    """A long line of joined emoji ends with a whole one."""
    family = "👨\u200d👩\u200d👧"
    shown = window(family * 100, 1, [], 52)
    assert shown.text == family * 10


@given(
    st.lists(st.text(alphabet="ab 数据.\t🙂\u0301", max_size=80), min_size=1, max_size=20),
    st.lists(st.sampled_from(["a", "ab", "数据", "据", "b a"]), max_size=4),
    st.integers(1, 120),
    st.integers(1, 1000),
    st.tuples(st.integers(0, 400), st.integers(0, 160)),
)
def test_a_window_is_a_true_part_of_its_lines(
    lines: list[str], terms: list[str], most: int, start: int, place: tuple[int, int]
) -> None:
    """Never longer than told, always the text of the lines it claims, and the same each time."""
    text = "\n".join(lines)
    begin = min(place[0], len(text))
    part = (begin, min(begin + place[1], len(text))) if place[1] else None
    shown = window(text, start, terms, most, part)
    assert len(shown.text) <= most
    assert start <= shown.start_line <= shown.end_line < start + len(lines)
    parts = shown.text.split("\n")
    assert len(parts) == shown.end_line - shown.start_line + 1
    claimed = lines[shown.start_line - start : shown.end_line - start + 1]
    if len(parts) > 1:
        assert parts == claimed
    else:
        assert parts[0] in claimed[0]
    assert window(text, start, terms, most, part) == shown


@given(st.text(max_size=400), st.text(max_size=60), st.integers(1, 120))
def test_a_window_of_any_text_for_any_question_is_a_part_of_it(text: str, question: str, most: int) -> None:
    """Whatever characters stand in either, what is shown is bounded, true, and not blank where the text is not."""
    shown = window(text, 7, parse(question).terms, most)
    assert len(shown.text) <= most
    lines = text.split("\n")[shown.start_line - 7 : shown.end_line - 6]
    parts = shown.text.split("\n")
    assert len(parts) == len(lines) == shown.end_line - shown.start_line + 1
    assert all(part in line for part, line in zip(parts, lines, strict=True))
    assert len(parts) == 1 or parts == lines


def test_a_stretch_begins_at_a_word_only_where_one_begins_near() -> None:
    """What stands before the term is not given up for a word that begins far behind it."""
    line = "x" * 400 + "/needle/" + "y" * 20 + " " + "word " * 100
    shown = window(line, 1, ["needle"], 120).text
    assert shown.startswith("xxx")
    assert "needle" in shown
