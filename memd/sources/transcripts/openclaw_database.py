"""Reads the tables in which OpenClaw stores transcripts: sessions, the current branch of each, events, and archives.

The tables change often: optional tables and columns are used if they exist, whatever the version says.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import zstandard

from memd.domain_types import Stamp
from memd.sources.transcripts.database_file import ShortRead
from memd.sources.transcripts.database_sessions import (
    DatabaseKind,
    ListedSession,
    Tables,
    number_of,
    time_ns,
)
from memd.sources.transcripts.open_transcript import MAX_WINDOW_BYTES
from memd.sources.transcripts.read_position import MAX_LINE_BYTES
from memd_client import session_key

# How the events of a session are read. branch: the events of the current branch, as OpenClaw lists them. all: every event, if
# that list is missing or being rebuilt; the branch of the last event is used. packed: the events are in one archive.
Reach = Literal["branch", "all", "packed"]

_SHARED = frozenset({"group", "channel"})

_WANTED = {
    "transcript_events": frozenset({"session_id", "seq", "event_json"}),
    "session_windows": frozenset({"session_id", "session_key"}),
}
_OPTIONAL = (
    "transcript_rewrite_watermarks",
    "session_transcript_index_state",
    "session_transcript_active_events",
    "session_transcript_archives",
    "session_transcript_cold_archives",
)


class DatabaseSession(ListedSession, frozen=True, kw_only=True):
    """The state of one session in a database.

    The size of its stamp is the number of events, or the bytes of an archive; the inode changes with a rewrite, and ctime_ns with the
    end of the branch.
    """

    key: str
    reach: Reach
    archive: str = ""  # the table of a packed session
    generation: str = ""

    @property
    def archived(self) -> bool:
        """Whether the session has ended."""
        return self.reach == "packed"


class Event(msgspec.Struct, frozen=True):
    """A record of a session, as it is stored."""

    position: int  # on the branch, or its seq
    seq: int
    text: bytes | None  # None: it is compressed, or too long
    packed: bytes | None
    size: int  # stored bytes

    def line(self) -> bytes | None:
        """Return the JSON of the record; None: it is damaged or longer than MAX_LINE_BYTES."""
        if self.packed is None:
            return self.text
        try:
            frame = zstandard.get_frame_parameters(self.packed)
            if frame.content_size > MAX_LINE_BYTES or frame.window_size > MAX_WINDOW_BYTES:
                return None
            unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
            return unpacker.decompress(self.packed, max_output_size=MAX_LINE_BYTES)
        except zstandard.ZstdError:
            return None


def session_of(read: ShortRead, tables: Tables, identity: str) -> DatabaseSession | None:
    """Return the current state of a session; None: it does not exist, or its rows are invalid."""
    window = read.row(_window(tables), identity)
    try:
        return _living(read, tables, identity, window) or _packed(read, tables, identity, window)
    except msgspec.ValidationError:
        return None


def header_of(read: ShortRead, tables: Tables, session: DatabaseSession) -> Event | None:
    """Return the first event, which has facts about the session and is on no branch."""
    sql = f"SELECT seq, seq, {_payload(tables)} FROM transcript_events AS e WHERE session_id = ? ORDER BY seq LIMIT 1"
    return next(map(_event, read.rows(sql, session.id)), None)


def events_from(read: ShortRead, tables: Tables, session: DatabaseSession, position: int) -> Iterator[Event]:
    """Return the events of a session from a position on, in order."""
    if session.reach == "branch":
        rows = read.rows(
            f"SELECT a.active_position, a.event_seq, {_payload(tables)} FROM session_transcript_active_events AS a"
            " CROSS JOIN transcript_events AS e ON e.session_id = a.session_id AND e.seq = a.event_seq"
            " WHERE a.session_id = ? AND a.active_position >= ? ORDER BY a.active_position",
            session.id,
            position,
        )
    else:
        rows = read.rows(
            f"SELECT seq, seq, {_payload(tables)} FROM transcript_events AS e"
            " WHERE session_id = ? AND seq >= ? ORDER BY seq",
            session.id,
            position,
        )
    return map(_event, rows)


def seq_at(read: ShortRead, session: DatabaseSession, position: int) -> int | None:
    """Return the sequence number of the event at a position; None: there is no event."""
    if session.reach == "branch":
        sql = "SELECT event_seq FROM session_transcript_active_events WHERE session_id = ? AND active_position = ?"
    else:
        sql = "SELECT seq FROM transcript_events WHERE session_id = ? AND seq = ?"
    row = read.row(sql, session.id, position)
    return None if row is None else row[0]


def came_since(
    read: ShortRead, tables: Tables, session: DatabaseSession, seq: int, most: int
) -> tuple[int, int]:
    """Return the number and the bytes of the events from a sequence number on, counting at most `most` events."""
    size = "octet_length(event_json)"
    if tables.has("transcript_events", "event_utf8_bytes"):
        size = f"coalesce(event_utf8_bytes, {size})"
    row = read.row(
        f"SELECT count(*), coalesce(sum(size), 0) FROM (SELECT {size} AS size FROM transcript_events"
        " WHERE session_id = ? AND seq >= ? ORDER BY seq LIMIT ?)",
        session.id,
        seq,
        most,
    )
    return (0, 0) if row is None else (row[0], row[1])


def archive_piece(read: ShortRead, session: DatabaseSession, begin: int, length: int) -> bytes:
    """Return some bytes of a packed session."""
    row = read.row(
        f"SELECT substr(archive_blob, ?, ?) FROM {session.archive} WHERE session_id = ? AND generation = ?",
        begin + 1,
        length,
        session.id,
        session.generation,
    )
    return row[0] if row is not None and isinstance(row[0], bytes) else b""


def _ids_after(read: ShortRead, tables: Tables, after: str) -> Iterator[tuple[str]]:
    sql = "SELECT session_id FROM session_windows WHERE session_id > ?1 AND typeof(session_id) = 'text'"
    if tables.has("session_transcript_archives", "reason"):
        sql += (
            " UNION SELECT session_id FROM session_transcript_archives"
            " WHERE session_id > ?1 AND typeof(session_id) = 'text' AND reason = 'reset'"
        )
    return read.rows(f"{sql} ORDER BY session_id", after)


class _Window(msgspec.Struct, array_like=True):
    key: str
    chat_type: str | None
    scope: str | None
    spawned_by: str | None
    generation: str | None
    indexed_seq: int | None
    needs_rebuild: int | None
    last_seq: int | None
    last_at: int | None


def _window(tables: Tables) -> str:
    def column(name: str) -> str:
        return f"w.{name}" if tables.has("session_windows", name) else "NULL"

    def of(table: str, name: str) -> str:
        if not tables.has(table, "session_id", name):
            return "NULL"
        return f"(SELECT {name} FROM {table} AS t WHERE t.session_id = w.session_id)"

    def last(name: str) -> str:
        if not tables.has("transcript_events", name):
            return "NULL"
        return f"(SELECT {name} FROM transcript_events AS e WHERE e.session_id = w.session_id ORDER BY seq DESC LIMIT 1)"

    return (
        f"SELECT w.session_key, {column('chat_type')}, {column('session_scope')}, {column('spawned_by')},"
        f" {of('transcript_rewrite_watermarks', 'generation')},"
        f" {of('session_transcript_index_state', 'indexed_seq')},"
        f" {of('session_transcript_index_state', 'needs_rebuild')}, {last('seq')}, {last('created_at')}"
        " FROM session_windows AS w WHERE w.session_id = ?"
    )


def _living(
    read: ShortRead, tables: Tables, identity: str, row: tuple[Any, ...] | None
) -> DatabaseSession | None:
    if row is None:
        return None
    window = msgspec.convert(row, _Window)
    if window.last_seq is None:
        return None
    end: tuple[object, ...] = ()
    reach: Reach = "all"
    is_listed = tables.has("session_transcript_active_events", "active_position", "event_seq")
    if is_listed and window.indexed_seq == window.last_seq and window.needs_rebuild == 0:
        reach = "branch"
        end = (
            read.row(
                "SELECT active_position, event_seq FROM session_transcript_active_events"
                " WHERE session_id = ? ORDER BY active_position DESC LIMIT 1",
                identity,
            )
            or ()
        )
    is_shared, is_subagent = _whose(window)
    generation = window.generation or ""
    return DatabaseSession(
        id=identity,
        key=window.key,
        is_shared=is_shared,
        is_subagent=is_subagent,
        reach=reach,
        stamp=Stamp(
            size=window.last_seq + 1,
            mtime_ns=time_ns(window.last_at),
            inode=number_of(identity, window.key, generation, reach, is_shared, is_subagent),
            ctime_ns=number_of(*end),
        ),
        generation=generation,
    )


def _packed(
    read: ShortRead, tables: Tables, identity: str, row: tuple[Any, ...] | None
) -> DatabaseSession | None:
    """Return the state of a session whose events were moved to an archive in the database."""
    found = None
    table = "session_transcript_cold_archives"
    if row is not None and tables.has(table, "generation", "archive_blob", "archived_at"):
        found = read.row(
            f"SELECT generation, octet_length(archive_blob), archived_at FROM {table}"
            " WHERE session_id = ? AND archive_blob IS NOT NULL",
            identity,
        )
    if found is None and tables.has(
        "session_transcript_archives", "generation", "session_key", "reason", "archive_blob", "created_at"
    ):
        table = "session_transcript_archives"
        found = read.row(
            f"SELECT generation, octet_length(archive_blob), created_at, session_key FROM {table}"
            " WHERE session_id = ? AND reason = 'reset' ORDER BY created_at DESC, generation LIMIT 1",
            identity,
        )
    if found is None:
        return None
    generation, size, at = msgspec.convert(found[:3], tuple[str, int, int])
    key = msgspec.convert(found[3] if row is None else row[0], str)
    window = _Window(key, *(row[1:4] if row is not None else (None, None, None)), *([None] * 5))
    is_shared, is_subagent = _whose(window)
    return DatabaseSession(
        id=identity,
        key=key,
        is_shared=is_shared,
        is_subagent=is_subagent,
        reach="packed",
        stamp=Stamp(
            size=size,
            mtime_ns=time_ns(at),
            inode=number_of(identity, key, generation, table, is_shared, is_subagent),
        ),
        archive=table,
        generation=generation,
    )


def _whose(window: _Window) -> tuple[bool, bool]:
    """Return whether a session belongs to a group or channel, and whether to a subagent, by its columns and keys."""
    keys = [session_key.parse(key) for key in (window.key, window.spawned_by) if key]
    is_shared = (
        window.chat_type in _SHARED
        or window.scope in _SHARED
        or any(key.chat_type in _SHARED for key in keys)
    )
    is_subagent = bool(window.spawned_by) or any("subagent" in key.rest.split(":") for key in keys)
    return is_shared, is_subagent


def _payload(tables: Tables) -> str:
    def bounded(column: str) -> str:
        return f"CASE WHEN octet_length(e.{column}) <= {MAX_LINE_BYTES} THEN CAST(e.{column} AS BLOB) END"

    packed = "event_zstd" if tables.has("transcript_events", "event_zstd") else None
    if packed is None:
        return f"{bounded('event_json')}, NULL, octet_length(e.event_json)"
    return (
        f"{bounded('event_json')}, {bounded(packed)},"
        f" coalesce(octet_length(e.event_json), octet_length(e.{packed}))"
    )


def _event(row: tuple[Any, ...]) -> Event:
    position, seq, text, packed, size = msgspec.convert(
        row, tuple[int, int, bytes | None, bytes | None, int | None]
    )
    return Event(position, seq, text, packed, size or 0)


KIND = DatabaseKind(_WANTED, _OPTIONAL, _ids_after, session_of)
