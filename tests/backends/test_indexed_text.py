from collections.abc import Sequence
from importlib import resources
from itertools import cycle

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.backends.backend import MAX_CHARS, Excerpt
from memd.backends.indexed_text import PARTS_FROM, line_of, note_excerpt, part_end, turns_excerpt
from memd.domain_types import Kind, Turn
from memd.store import sessions
from memd.store.sessions import SessionChange
from memd.text.turn_header import with_header
from memd_client.messages import PLACES_FROM
from tests.store.conftest import found_file

PATH = "sessions/plain/a.jsonl"


def turn(text: str, line: int, end: int | None = None) -> Turn:
    return Turn("", "user", None, line, end or line, text)


def stored(turns: Sequence[Turn]) -> apsw.Connection:
    """The turns of one transcript in an index."""
    connection = apsw.Connection(":memory:")
    for script in sorted(resources.files("memd.store").joinpath("sql/index").iterdir(), key=str):
        connection.execute(script.read_text())
    connection.execute(
        "INSERT INTO files (id, path, kind, size, mtime_ns, inode, hash) VALUES (1, ?, 2, 0, 0, 0, x'00')",
        (PATH,),
    )
    found = found_file(PATH, kind=Kind.SESSION)
    sessions.put(connection, 1, SessionChange(found=found, hash=b"1", progress=b"p", turns=turns))
    return connection


def read(connection: apsw.Connection, start_line: int = 1, lines: int = 120, most: int = 12_000) -> Excerpt:
    found = sessions.stretch(connection, PATH, line_of(start_line), lines, most)
    return turns_excerpt(found, start_line, most, None)


TALK = [turn("one", 2), turn("two\nmore", 3, 5), turn("three", 9), turn("four", 20)]


@pytest.mark.parametrize(
    ("start_line", "lines", "expected"),
    [
        (2, 2, Excerpt("User: one\n\nUser: two\nmore", 2, 5, 9)),
        (1, 120, Excerpt("User: one\n\nUser: two\nmore\n\nUser: three\n\nUser: four", 2, 20, None)),
        (4, 2, Excerpt("User: two\nmore", 3, 5, 9)),  # inside a turn
        (6, 3, Excerpt("User: three", 9, 9, 20)),  # a tool's records, and nothing said on so many lines
        (6, 4, Excerpt("User: three", 9, 9, 20)),
        (20, 1, Excerpt("User: four", 20, 20, None)),
        (21, 5, Excerpt("", 21, 0, None)),
        (10**15, 5, Excerpt("", 10**15, 0, None)),
    ],
)
def test_turns_are_given_by_the_lines_of_the_transcript(
    start_line: int, lines: int, expected: Excerpt
) -> None:
    """Each whole, with where the next one begins; between turns the next ones."""
    told = stored(TALK)
    assert read(told, start_line, lines) == expected


def test_a_transcript_without_turns_has_none() -> None:
    """Nothing to read is no error."""
    told = stored([])
    assert read(told) == Excerpt("", 1, 0, None)


def test_an_excerpt_ends_before_it_grows_too_long() -> None:
    """With a whole turn; the next one begins where next_line says."""
    told = stored([turn("x" * 5000, line) for line in (1, 5, 9)])
    first = read(told)
    assert len(first.text) <= 12_000
    assert (first.end_line, first.next_line) == (5, 9)


def test_what_is_too_long_for_one_excerpt_is_read_in_parts() -> None:
    """Of one line of a transcript, too; a part that there is not is empty."""
    long = "".join(f"word{number} " for number in range(5000))
    told = stored([turn("before", 1), turn(long, 4), turn("after", 8)])
    first = read(told, 4)
    assert (first.start_line, first.end_line) == (4, 4)
    assert first.next_line == len(first.text) * PARTS_FROM + 4
    second = read(told, first.next_line)
    assert second.text.split()[0] == f"word{int(first.text.split()[-1].removeprefix('word')) + 1}"
    whole = len(with_header("user", None, long, None))
    for begin in (whole, 500_000):
        assert read(told, begin * PARTS_FROM + 4) == Excerpt("", 4, 0, 8)
    assert read(told, (whole - 1) * PARTS_FROM + 4) == Excerpt("9", 4, 4, 8)
    assert read(told, 100 * PARTS_FROM + 1) == Excerpt("", 1, 0, 4)


TURNS = st.lists(
    st.tuples(
        st.text("ab \n字👩\u200d", min_size=1, max_size=90).filter(str.strip),
        st.integers(0, 4),
        st.integers(0, 3),
    ),
    max_size=12,
)


@given(TURNS, st.integers(1, 10), st.lists(st.integers(30, 80), min_size=1, max_size=5))
def test_reading_on_gives_everything_once(
    described: list[tuple[str, int, int]], lines: int, limits: list[int]
) -> None:
    """However few lines and characters each excerpt has; several turns may stand on one line."""
    at, turns = 1, []
    for text, gap, more in described:
        at += gap
        turns.append(turn(text, at, at + more))
    connection = stored(turns)
    found, start = [], 1
    for _, most in zip(range(1000), cycle(limits), strict=False):
        part = read(connection, start, lines, most)
        assert len(part.text) <= most
        found.append(part.text)
        if part.next_line is None:
            break
        start = part.next_line
    whole = "".join(with_header(one.role, one.at, one.text, None) for one in turns)
    assert "".join("".join(found).split()) == "".join(whole.split())
    assert part.next_line is None


# --- notes

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
    assert note_excerpt(LINES, start_line, lines) == expected


def test_an_excerpt_of_a_note_ends_before_it_grows_too_long() -> None:
    """Whole lines up to the limit of characters; the next one begins where this one ends."""
    text = ["x" * 5000] * 4
    first = note_excerpt(text, 1, 120)
    assert len(first.text) <= MAX_CHARS
    assert (first.end_line, first.next_line) == (2, 3)
    assert note_excerpt(text, 3, 120).next_line is None


@given(
    st.lists(st.text(st.sampled_from("a \u0301é👍🏽数"), max_size=60), max_size=8),
    st.integers(5, 40),
    st.integers(1, 4),
)
def test_reading_on_gives_every_line_once_however_long_it_is(text: list[str], most: int, lines: int) -> None:
    """In pieces of any size: within a long line without a line end between them, and each piece within its bound."""
    read, following, pieces = "", 1 if text else None, 0
    while following is not None:
        found = note_excerpt(text, following, lines, most)
        assert len(found.text) <= most
        assert 1 <= found.start_line <= found.end_line <= len(text)
        is_inside = found.next_line is not None and found.next_line > PLACES_FROM
        read += found.text + ("" if is_inside or found.next_line is None else "\n")
        following, pieces = found.next_line, pieces + 1
        assert pieces < 1000
    assert read == "\n".join(text)


def test_lines_are_returned_as_long_as_they_fit() -> None:
    """With the line end between them, and none after the last."""
    assert note_excerpt(["abc", "de"], 1, 9, 6) == Excerpt("abc\nde", 1, 2, None)
    assert note_excerpt(["abc", "de"], 1, 9, 5) == Excerpt("abc", 1, 1, 2)


def test_a_place_that_is_there_no_more_leads_on() -> None:
    """The line was made shorter, or is gone, since it was read."""
    assert note_excerpt(["short", "z"], 100 * PARTS_FROM + 1, 120) == Excerpt("", 1, 0, 2)
    assert note_excerpt(["short"], 100 * PARTS_FROM + 1, 120) == Excerpt("", 1, 0, None)
    assert note_excerpt(["short"], 100 * PARTS_FROM + 2, 120) == Excerpt("", 100 * PARTS_FROM + 2, 0, None)


def test_daemon_and_clients_take_the_same_numbers_for_places() -> None:
    """The client knows nothing of the daemon, so each has the constant."""
    assert PARTS_FROM == PLACES_FROM


def test_an_empty_file_has_no_lines() -> None:
    """Nothing to read is no error."""
    assert note_excerpt([], 1, 120) == Excerpt("", 1, 0, None)


@pytest.mark.parametrize(
    ("text", "begin", "most", "end"),
    [
        ("one two three", 0, 20, 13),  # all of it
        ("one two three", 0, 9, 8),  # at the last space
        ("one\ntwo three", 0, 7, 4),  # the end of a line goes before a space
        ("one two three", 8, 4, 12),  # there is no space
        ("a b c", 0, 3, 2),
        ("one twothree", 0, 10, 10),  # a space in its first half is too far away
        ("😀" * 4, 0, 3, 3),
        ("e\u0301" * 3, 0, 3, 2),  # no letter is divided from its accent
        ("e\u0301", 0, 1, 1),  # but where there is no other place
    ],
)
def test_a_text_that_is_too_long_is_cut_where_it_is_best(text: str, begin: int, most: int, end: int) -> None:
    """Within its second half, and never at once."""
    assert part_end(text, begin, most) == end
