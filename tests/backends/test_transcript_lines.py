from collections.abc import Sequence
from importlib import resources
from itertools import cycle

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.backends.backend import Excerpt
from memd.backends.transcript_lines import PARTS_FROM, excerpt, line_of
from memd.model import Kind, Turn
from memd.store import sessions
from memd.store.sessions import SessionChange
from memd.text.turn_header import spoken
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
    return excerpt(found, start_line, most, None)


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
    assert read(told, 500_000 * PARTS_FROM + 4) == Excerpt("", 4, 0, 8)
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
    whole = "".join(spoken(one.role, one.at, one.text, None) for one in turns)
    assert "".join("".join(found).split()) == "".join(whole.split())
    assert part.next_line is None
