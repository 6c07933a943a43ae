"""Knows the tables in which OpenClaw keeps transcripts: its sessions, the living branch of each, the events, and the archives.

The tables change often: what is optional for reading is asked for only where it is there, whatever the version says.
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

# How the events of a session are to be read. branch: those of the living branch, as OpenClaw lists them. all: every one, while
# it rebuilds that list, or has none; the branch of the last one counts. packed: an archive in one piece.
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
    """One session of a database, as it is now.

    The size of its stamp counts events, or the bytes of an archive; the inode is another after a rewrite; ctime_ns tells where the
    branch ends.
    """

    key: str
    reach: Reach
    archive: str = ""  # of a packed one: its table
    generation: str = ""

    @property
    def archived(self) -> bool:
        """Whether it is over."""
        return self.reach == "packed"


class Event(msgspec.Struct, frozen=True):
    """One record of a session, as it is stored."""

    position: int  # on the branch, or its seq
    seq: int
    text: bytes | None  # None: it is packed, or too long
    packed: bytes | None
    size: int  # bytes of what is stored

    def line(self) -> bytes | None:
        """The JSON of the record; None: it is longer than a line may be, or damaged."""
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
    """A session as it is now; None where nothing is there, or what is there is not what OpenClaw writes."""
    window = read.row(_window(tables), identity)
    try:
        return _living(read, tables, identity, window) or _packed(read, tables, identity, window)
    except msgspec.ValidationError:
        return None


def header_of(read: ShortRead, tables: Tables, session: DatabaseSession) -> Event | None:
    """The first event, which says of a session what the branch does not."""
    sql = f"SELECT seq, seq, {_payload(tables)} FROM transcript_events AS e WHERE session_id = ? ORDER BY seq LIMIT 1"
    return next(map(_event, read.rows(sql, session.id)), None)


def events_from(read: ShortRead, tables: Tables, session: DatabaseSession, position: int) -> Iterator[Event]:
    """The events of a session from a position on, in order."""
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
    """The number of the event at a position; None where there is none."""
    if session.reach == "branch":
        sql = "SELECT event_seq FROM session_transcript_active_events WHERE session_id = ? AND active_position = ?"
    else:
        sql = "SELECT seq FROM transcript_events WHERE session_id = ? AND seq = ?"
    row = read.row(sql, session.id, position)
    return None if row is None else row[0]


def came_since(
    read: ShortRead, tables: Tables, session: DatabaseSession, seq: int, most: int
) -> tuple[int, int]:
    """(events, bytes) from a number on; at most so many events are looked at."""
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
    """Some bytes of a packed session."""
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
    """A session whose events were put into an archive that is still in the database."""
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
    """(a group's or a channel's, a subagent's): by what is written down, and by the keys."""
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
