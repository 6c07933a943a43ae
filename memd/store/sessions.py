"""Transcripts of an index: the position that each was read to, and its turns."""

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
    """What the index holds of a transcript beside its turns."""

    progress: bytes  # as it was given
    turns: int
    resume: int


class TurnSpan(msgspec.Struct, frozen=True):
    """Turns of a transcript as they stand on its lines."""

    turns: tuple[Turn, ...]
    next_line: int | None  # where the next turn begins; None: these were the last


class SessionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript as it is now, by what is new of it."""

    found: FoundFile
    hash: bytes  # 32 bytes, different for each state of the file
    progress: bytes
    since: bytes | None = None  # the progress in the store that this goes on from; None: this is all there is
    turns_from: int = 0  # turns with this seq and later ones are replaced
    turns: Sequence[Turn] = ()
    chunks_from: int = 0  # chunks that begin with this turn or a later one are replaced
    chunks: Sequence[Chunk] = ()  # each with its turn
    resume: int = 0
    tally: Mapping[str, int] = {}  # of the whole transcript


def find(connection: apsw.Connection, path: str) -> StoredSession | None:
    """What is kept of a transcript, if it is indexed.

    Raises:
        StoreDamaged: there are turns missing, or it is no such thing.
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
    """The turns of a transcript from one on, in order.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
    """
    return typed_turns(
        connection.execute(f"{TURNS} AND turns.seq >= ? ORDER BY turns.seq", (path, first_seq))
    )


def turns_at(connection: apsw.Connection, path: str, start_line: int, end_line: int) -> list[Turn]:
    """The turns of a transcript that stand on some of these lines of it, in order.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
    """
    return typed_turns(
        connection.execute(
            f"{TURNS} AND turns.start_line <= ? AND turns.end_line >= ? ORDER BY turns.seq",
            (path, end_line, start_line),
        )
    )


def stretch(connection: apsw.Connection, path: str, start_line: int, lines: int, most_chars: int) -> TurnSpan:
    """The turns of a transcript that begin on some lines of it, in the order of the lines.

    Where none begins on the first line, the last one before it is among them if it goes on there. Where nothing is said
    on all these lines, it is as many lines from the next turn on.

    Args:
        connection: Of a reader.
        path: Of the transcript.
        start_line: The first of the lines, from 1.
        lines: How many.
        most_chars: Once their texts have so many, no turn is added of a line that none of them begins on.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
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
    # One after the other: a few lines of a transcript may hold very much.
    for row in connection.execute(f"{TURNS} {begun}", (path, start_line, start_line + lines)):
        [turn] = typed_turns([row])
        if chars >= most_chars and turn.start_line != found[-1].start_line:
            return TurnSpan(tuple(found), turn.start_line)
        found.append(turn)
        chars += len(turn.text)
    return TurnSpan(tuple(found), _next_line(connection, path, start_line + lines))


def last_line(connection: apsw.Connection, path: str) -> int:
    """The last line of a transcript that a turn stands on; 0: there is none."""
    row = connection.execute(
        "SELECT max(turns.end_line) FROM files JOIN turns ON turns.file_id = files.id WHERE files.path = ?",
        (path,),
    ).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def _next_line(connection: apsw.Connection, path: str, line: int) -> int | None:
    """The line from a line on that the next turn begins on."""
    row = connection.execute(
        "SELECT min(turns.start_line) FROM files JOIN turns ON turns.file_id = files.id"
        " WHERE files.path = ? AND turns.start_line >= ?",
        (path, line),
    ).fetchone()
    return None if row is None else row[0]


def typed_turns(rows: Iterable[tuple[object, ...]]) -> list[Turn]:
    """Rows of TURNS as turns.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
    """
    try:
        return [
            Turn(turn_id, msgspec.convert(role, Role), at, start_line, end_line, text)
            for turn_id, role, at, start_line, end_line, text in msgspec.convert(
                list(rows), list[tuple[str, str, float | None, int, int, str]]
            )
        ]
    except msgspec.ValidationError as error:
        # Without the error's own text, which may quote a value.
        raise StoreDamaged("a turn in the index is not what was written there") from error


def counts(connection: apsw.Connection) -> tuple[int, int]:
    """How many transcripts there are, and how many turns in all of them."""
    # The last turn of each is looked up: to count them would read all their texts.
    row = connection.execute(
        "SELECT count(*), coalesce(sum((SELECT max(seq) + 1 FROM turns WHERE turns.file_id = files.id)), 0)"
        " FROM files WHERE kind >= ?",
        (int(Kind.SESSION),),
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def put(connection: apsw.Connection, file_id: int, change: SessionChange) -> None:
    """Make the turns of a transcript what a change says, and remember how far it was read."""
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
    """Whether a transcript has been read exactly so far."""
    row = connection.execute(
        "SELECT sessions.progress FROM files JOIN sessions ON sessions.file_id = files.id WHERE files.path = ?",
        (path,),
    ).fetchone()
    return row is not None and row[0] == progress


def forget(connection: apsw.Connection, file_id: int) -> None:
    """Take out what makes a file a transcript: it is none any more."""
    connection.execute("DELETE FROM sessions WHERE file_id = ?", (file_id,))
    connection.execute("DELETE FROM turns WHERE file_id = ?", (file_id,))


def put_tally(connection: apsw.Connection, file_id: int, tally: Mapping[str, int]) -> None:
    """Remember what was counted while a file was read."""
    connection.execute("DELETE FROM tallies WHERE file_id = ?", (file_id,))
    connection.executemany(
        "INSERT INTO tallies (file_id, name, n) VALUES (?, ?, ?)",
        [(file_id, name, n) for name, n in tally.items() if n],
    )


def tallies(connection: apsw.Connection) -> dict[str, int]:
    """What was counted, of all files together.

    Raises:
        StoreDamaged: a count is none.
    """
    rows = connection.execute("SELECT name, sum(n) FROM tallies GROUP BY name ORDER BY name").fetchall()
    try:
        return dict(msgspec.convert(rows, list[tuple[str, int]]))
    except msgspec.ValidationError as error:
        raise StoreDamaged("a count in the index is not what was written there") from error
