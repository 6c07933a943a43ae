"""Stores the turns of transcripts, and the position that each transcript was read to."""

from collections.abc import Iterable, Mapping, Sequence

import apsw
import msgspec

from memd.domain_types import Chunk, FoundFile, Kind, Role, Turn
from memd.store.errors import StoreDamaged

TURNS = (
    "SELECT turns.turn_id, turns.role, turns.at, turns.start_line, turns.end_line, turns.text"
    " FROM files JOIN turns ON turns.file_id = files.id WHERE files.path = ?"
)


class StoredSession(msgspec.Struct, frozen=True):
    """The stored state of a transcript, without its turns."""

    progress: bytes  # opaque state of the reader
    turns: int
    resume: int


class TurnSpan(msgspec.Struct, frozen=True):
    """Turns of a transcript that are on some of its lines."""

    turns: tuple[Turn, ...]
    next_line: int | None  # the line where the next turn begins; None: there is none


class SessionChange(msgspec.Struct, frozen=True, kw_only=True):
    """The new turns and chunks of a transcript."""

    found: FoundFile
    hash: bytes  # 32 bytes that differ for each state of the file
    progress: bytes
    # The stored progress that the change continues from; None: it replaces everything.
    since: bytes | None = None
    turns_from: int = 0  # turns with this seq or a later one are replaced
    turns: Sequence[Turn] = ()
    chunks_from: int = 0  # chunks that begin with this turn or a later one are replaced
    chunks: Sequence[Chunk] = ()  # each with its `turn` set
    resume: int = 0
    tally: Mapping[str, int] = {}  # counters for the whole transcript


def find(connection: apsw.Connection, path: str) -> StoredSession | None:
    """Return the stored state of a transcript; None if it is not indexed.

    Raises:
        StoreDamaged: turns are missing, or a stored value has the wrong type.
    """
    row = connection.execute(
        "SELECT sessions.progress, sessions.resume,"
        " (SELECT count(*) FROM turns WHERE turns.file_id = files.id),"
        " (SELECT coalesce(max(seq), -1) + 1 FROM turns WHERE turns.file_id = files.id)"
        " FROM files JOIN sessions ON sessions.file_id = files.id WHERE files.path = ?",
        (path,),
    ).fetchone()
    if row is None:
        return None
    progress, resume, turns, expected = row
    if turns != expected or not isinstance(progress, bytes) or not isinstance(resume, int):
        raise StoreDamaged("a transcript in the index is not what was written there")
    return StoredSession(progress, turns, resume)


def turns(connection: apsw.Connection, path: str, first_seq: int) -> list[Turn]:
    """Return the turns of a transcript from `first_seq` on, in order.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    return typed_turns(
        connection.execute(f"{TURNS} AND turns.seq >= ? ORDER BY turns.seq", (path, first_seq))
    )


def turns_at(connection: apsw.Connection, path: str, start_line: int, end_line: int) -> list[Turn]:
    """Return the turns of a transcript that overlap some of its lines, in order.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    return typed_turns(
        connection.execute(
            f"{TURNS} AND turns.start_line <= ? AND turns.end_line >= ? ORDER BY turns.seq",
            (path, end_line, start_line),
        )
    )


def stretch(connection: apsw.Connection, path: str, start_line: int, lines: int, most_chars: int) -> TurnSpan:
    """Return the turns of a transcript that begin on some of its lines, in order.

    If none begins on the first line, the previous turn is included if it reaches that line. If no turn is on any of the
    lines, the span starts at the next turn instead.

    Args:
        connection: A reader's.
        path: The path of the transcript.
        start_line: The first line, from 1.
        lines: The number of lines.
        most_chars: The span ends at the end of a line once its texts exceed this many characters.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    begun = "AND turns.start_line >= ? AND turns.start_line < ? ORDER BY turns.start_line, turns.seq"
    found: list[Turn] = []
    begin = _next_line(connection, path, start_line)
    if begin != start_line:
        before = "AND turns.start_line < ? ORDER BY turns.start_line DESC, turns.seq DESC LIMIT 1"
        rows = connection.execute(f"{TURNS} {before}", (path, start_line))
        found = [turn for turn in typed_turns(rows) if turn.end_line >= start_line]
    if begin is None:
        return TurnSpan(tuple(found), None)
    if begin >= start_line + lines:
        if found:
            return TurnSpan(tuple(found), begin)
        start_line = begin
    chars = sum(len(turn.text) for turn in found)
    # Row by row, since a few lines may hold very long turns.
    for row in connection.execute(f"{TURNS} {begun}", (path, start_line, start_line + lines)):
        [turn] = typed_turns([row])
        if chars >= most_chars and turn.start_line != found[-1].start_line:
            return TurnSpan(tuple(found), turn.start_line)
        found.append(turn)
        chars += len(turn.text)
    return TurnSpan(tuple(found), _next_line(connection, path, start_line + lines))


def last_line(connection: apsw.Connection, path: str) -> int:
    """Return the last line of a transcript that has a turn; 0: there is none."""
    row = connection.execute(
        "SELECT max(turns.end_line) FROM files JOIN turns ON turns.file_id = files.id WHERE files.path = ?",
        (path,),
    ).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def _next_line(connection: apsw.Connection, path: str, line: int) -> int | None:
    """Return the first line at or after `line` on which a turn begins."""
    row = connection.execute(
        "SELECT min(turns.start_line) FROM files JOIN turns ON turns.file_id = files.id"
        " WHERE files.path = ? AND turns.start_line >= ?",
        (path, line),
    ).fetchone()
    return None if row is None else row[0]


def typed_turns(rows: Iterable[tuple[object, ...]]) -> list[Turn]:
    """Convert rows of TURNS to turns.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    try:
        return [
            Turn(turn_id, msgspec.convert(role, Role), at, start_line, end_line, text)
            for turn_id, role, at, start_line, end_line, text in msgspec.convert(
                list(rows), list[tuple[str, str, float | None, int, int, str]]
            )
        ]
    except msgspec.ValidationError as error:
        # The error's own message is left out, since it may quote a value.
        raise StoreDamaged("a turn in the index is not what was written there") from error


def counts(connection: apsw.Connection) -> tuple[int, int]:
    """Return the number of transcripts, and of all their turns."""
    # The last turn of each is looked up; counting all turns would read their texts.
    row = connection.execute(
        "SELECT count(*), coalesce(sum((SELECT max(seq) + 1 FROM turns WHERE turns.file_id = files.id)), 0)"
        " FROM files WHERE kind >= ?",
        (int(Kind.SESSION),),
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def put(connection: apsw.Connection, file_id: int, change: SessionChange) -> None:
    """Store the changed turns of a transcript, and its progress."""
    connection.execute(
        "INSERT INTO sessions (file_id, progress, resume) VALUES (?, ?, ?)"
        " ON CONFLICT (file_id) DO UPDATE SET progress = excluded.progress, resume = excluded.resume",
        (file_id, change.progress, change.resume),
    )
    connection.execute("DELETE FROM turns WHERE file_id = ? AND seq >= ?", (file_id, change.turns_from))
    connection.executemany(
        "INSERT INTO turns (file_id, seq, turn_id, role, at, start_line, end_line, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (file_id, seq, turn.id, turn.role, turn.at, turn.start_line, turn.end_line, turn.text)
            for seq, turn in enumerate(change.turns, change.turns_from)
        ),
    )


def is_at(connection: apsw.Connection, path: str, progress: bytes) -> bool:
    """Return whether the stored progress of a transcript equals `progress`."""
    row = connection.execute(
        "SELECT sessions.progress FROM files JOIN sessions ON sessions.file_id = files.id WHERE files.path = ?",
        (path,),
    ).fetchone()
    return row is not None and row[0] == progress


def forget(connection: apsw.Connection, file_id: int) -> None:
    """Delete the turns and progress of a file that is not a transcript any more."""
    connection.execute("DELETE FROM sessions WHERE file_id = ?", (file_id,))
    connection.execute("DELETE FROM turns WHERE file_id = ?", (file_id,))


def put_tally(connection: apsw.Connection, file_id: int, tally: Mapping[str, int]) -> None:
    """Store the counters of a file."""
    connection.execute("DELETE FROM tallies WHERE file_id = ?", (file_id,))
    connection.executemany(
        "INSERT INTO tallies (file_id, name, n) VALUES (?, ?, ?)",
        [(file_id, name, n) for name, n in tally.items() if n],
    )


def counted_in(connection: apsw.Connection, name: str) -> tuple[str, ...]:
    """Return the paths of the files that have this counter, in order."""
    rows = connection.execute(
        "SELECT path FROM files JOIN tallies ON tallies.file_id = files.id WHERE name = ? ORDER BY path",
        (name,),
    )
    return tuple(path for (path,) in rows)


def tallies(connection: apsw.Connection) -> dict[str, int]:
    """Return the counters summed over all files, by name.

    Raises:
        StoreDamaged: a counter has the wrong type.
    """
    rows = connection.execute("SELECT name, sum(n) FROM tallies GROUP BY name ORDER BY name").fetchall()
    try:
        return dict(msgspec.convert(rows, list[tuple[str, int]]))
    except msgspec.ValidationError as error:
        raise StoreDamaged("a count in the index is not what was written there") from error
