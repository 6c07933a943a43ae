import pytest

from memd.backends.backend import MAX_CHARS, Excerpt
from memd.backends.builtin import excerpt

LINES = [f"line {number}" for number in range(1, 11)]


@pytest.mark.parametrize(
    ("start_line", "lines", "expected"),
    [
        (1, 2, Excerpt("line 1\nline 2", 1, 2, 3)),
        (9, 2, Excerpt("line 9\nline 10", 9, 10, None)),
        (10, 120, Excerpt("line 10", 10, 10, None)),
        (11, 5, Excerpt("", 11, 0, None)),
        (10**12, 5, Excerpt("", 10**12, 0, None)),
    ],
)
def test_lines_are_given_as_asked(start_line: int, lines: int, expected: Excerpt) -> None:
    """An excerpt has the lines asked for, as far as there are any, and says where to read on."""
    assert excerpt(LINES, start_line, lines) == expected


def test_an_excerpt_ends_before_it_grows_too_long() -> None:
    """Whole lines up to the limit of characters; the next one begins where this one ends."""
    text = ["x" * 5000] * 4
    first = excerpt(text, 1, 120)
    assert len(first.text) <= MAX_CHARS
    assert (first.end_line, first.next_line) == (2, 3)
    assert excerpt(text, 3, 120).next_line is None


def test_a_line_that_is_too_long_by_itself_is_cut_and_passed() -> None:
    """Reading on always comes further, whatever a line holds."""
    found = excerpt(["y" * 50_000, "z"], 1, 120)
    assert found.text == "y" * MAX_CHARS
    assert found.next_line == 2


def test_an_empty_file_has_no_lines() -> None:
    """Nothing to read is no error."""
    assert excerpt([], 1, 120) == Excerpt("", 1, 0, None)
