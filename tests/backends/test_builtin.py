import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.backends.backend import MAX_CHARS, Excerpt
from memd.backends.builtin import excerpt
from memd.backends.transcript_lines import PARTS_FROM
from memd_client.messages import PLACES_FROM

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


@given(
    st.lists(st.text(st.sampled_from("a \u0301é👍🏽数"), max_size=60), max_size=8),
    st.integers(5, 40),
    st.integers(1, 4),
)
def test_reading_on_gives_every_line_once_however_long_it_is(text: list[str], most: int, lines: int) -> None:
    """In pieces of any size: within a long line without a line end between them, and each piece within its bound."""
    read, following, pieces = "", 1 if text else None, 0
    while following is not None:
        found = excerpt(text, following, lines, most)
        assert len(found.text) <= most
        assert 1 <= found.start_line <= found.end_line <= len(text)
        is_inside = found.next_line is not None and found.next_line > PLACES_FROM
        read += found.text + ("" if is_inside or found.next_line is None else "\n")
        following, pieces = found.next_line, pieces + 1
        assert pieces < 1000
    assert read == "\n".join(text)


def test_a_place_that_is_there_no_more_leads_on() -> None:
    """The line was made shorter, or is gone, since it was read."""
    assert excerpt(["short", "z"], 100 * PARTS_FROM + 1, 120) == Excerpt("", 1, 0, 2)
    assert excerpt(["short"], 100 * PARTS_FROM + 1, 120) == Excerpt("", 1, 0, None)
    assert excerpt(["short"], 100 * PARTS_FROM + 2, 120) == Excerpt("", 100 * PARTS_FROM + 2, 0, None)


def test_daemon_and_clients_take_the_same_numbers_for_places() -> None:
    """The client knows nothing of the daemon, so each has the constant."""
    assert PARTS_FROM == PLACES_FROM


def test_an_empty_file_has_no_lines() -> None:
    """Nothing to read is no error."""
    assert excerpt([], 1, 120) == Excerpt("", 1, 0, None)
