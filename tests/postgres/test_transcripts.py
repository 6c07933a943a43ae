"""Transcripts as they stand on a server."""

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import Role, Turn
from memd.postgres.connection import SharedUnavailable
from memd.postgres.transcripts import stretch_of, turn_lines, turns_in
from memd.store import sessions

ROLES: tuple[Role, ...] = ("user", "assistant")


@st.composite
def transcripts(draw: st.DrawFn) -> list[Turn]:
    """Turns in the order of their lines; some stand on several lines, several may stand on one."""
    turns, line = [], 1
    for number in range(draw(st.integers(0, 8))):
        line += draw(st.integers(0, 4))
        end = line + draw(st.integers(0, 3))
        text = draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6))
        at = draw(st.none() | st.integers(0, 2_000_000_000).map(float))
        turns.append(Turn(str(number), draw(st.sampled_from(ROLES)), at, line, end, text))
    return turns


@given(turns=transcripts())
def test_what_is_published_is_read_as_it_was(turns: list[Turn]) -> None:
    """Whatever was said, with line ends or without."""
    lines = turn_lines(turns)
    assert not any("\n" in line for line in lines)
    assert turns_in("\n".join(lines)) == turns


@pytest.mark.parametrize("content", ["# A note", '["1","user"]', '["1","system",null,1,1,"x"]'])
def test_what_is_no_transcript_is_not_quoted(content: str) -> None:
    """One line for a person."""
    with pytest.raises(SharedUnavailable, match=r"^a transcript on the server is not what a memd publishes$"):
        turns_in(content)


@given(
    turns=transcripts(),
    start_line=st.integers(1, 30),
    lines=st.integers(1, 12),
    most_chars=st.integers(1, 20),
)
def test_some_lines_are_those_that_an_index_gives(
    turns: list[Turn], start_line: int, lines: int, most_chars: int
) -> None:
    """The same turns, and the same line to read on from."""
    index = apsw.Connection(":memory:")
    index.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT)")
    index.execute("CREATE TABLE turns (file_id, seq, turn_id, role, at, start_line, end_line, text)")
    index.execute("INSERT INTO files VALUES (1, 'sessions/a.jsonl')")
    index.executemany(
        "INSERT INTO turns VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
        [
            (seq, one.id, one.role, one.at, one.start_line, one.end_line, one.text)
            for seq, one in enumerate(turns)
        ],
    )
    expected = sessions.stretch(index, "sessions/a.jsonl", start_line, lines, most_chars)
    assert stretch_of(turns, start_line, lines, most_chars) == expected
