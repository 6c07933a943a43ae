"""A database of transcripts as OpenClaw 2026.9 writes it (schema 23): the tables that matter for reading, and how they change.

Its writer keeps a log, appends an event and its place on the living branch in one transaction, lists the branch anew after a
rewind, gives a session another generation when it is rewritten, and packs large events.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec
import zstandard

SCHEMA = 23
PACKED_FROM = 1024  # bytes of an event

_TABLES = """
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES session_nodes (session_key) ON DELETE CASCADE,
  previous_session_id TEXT, reason TEXT, session_scope TEXT NOT NULL DEFAULT 'conversation',
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, transcript_updated_at INTEGER,
  chat_type TEXT CHECK (chat_type IS NULL OR chat_type IN ('direct', 'group', 'channel')),
  channel TEXT, parent_session_key TEXT, spawned_by TEXT
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL REFERENCES session_windows (session_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, event_zstd BLOB,
  event_utf8_bytes INTEGER, navigation_json TEXT,
  PRIMARY KEY (session_id, seq), CHECK ((event_json IS NULL) <> (event_zstd IS NULL))
) STRICT;
CREATE TABLE transcript_event_identities (
  session_id TEXT NOT NULL, event_id TEXT NOT NULL, seq INTEGER NOT NULL, event_type TEXT, parent_id TEXT,
  created_at INTEGER NOT NULL, PRIMARY KEY (session_id, event_id),
  FOREIGN KEY (session_id, seq) REFERENCES transcript_events (session_id, seq) ON DELETE CASCADE
) STRICT;
CREATE TABLE transcript_rewrite_watermarks (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES session_windows (session_id) ON DELETE CASCADE,
  generation TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL, active_position INTEGER NOT NULL, event_seq INTEGER NOT NULL,
  message_position INTEGER, context_eligible INTEGER, PRIMARY KEY (session_id, active_position),
  FOREIGN KEY (session_id, event_seq) REFERENCES transcript_events (session_id, seq) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_transcript_index_state (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES session_windows (session_id) ON DELETE CASCADE,
  indexed_seq INTEGER NOT NULL, leaf_event_id TEXT, needs_rebuild INTEGER NOT NULL DEFAULT 0,
  active_event_count INTEGER NOT NULL DEFAULT 0, active_message_count INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_transcript_archives (
  session_id TEXT NOT NULL, generation TEXT NOT NULL, session_key TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('deleted', 'reset')),
  encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')), archive_blob BLOB NOT NULL,
  archive_sha256 TEXT NOT NULL, archive_name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL,
  published_at INTEGER, PRIMARY KEY (session_id, generation)
) STRICT;
CREATE TABLE session_transcript_cold_archives (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES session_windows (session_id) ON DELETE CASCADE,
  generation TEXT NOT NULL, archive_name TEXT NOT NULL UNIQUE, archive_sha256 TEXT NOT NULL,
  event_count INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, archive_bytes INTEGER NOT NULL,
  last_seq INTEGER NOT NULL, archived_at INTEGER NOT NULL,
  storage TEXT NOT NULL CHECK (storage IN ('file', 'sqlite')), archive_blob BLOB,
  CHECK ((storage = 'file') = (archive_blob IS NULL))
) STRICT;
"""

Record = dict[str, Any]


class OpenClawStore:
    """The database of one agent, open for writing until it is closed."""

    def __init__(self, file: Path, *, version: int = SCHEMA, now_ms: int = 1_790_000_000_000) -> None:
        self.file = file
        self.now_ms = now_ms
        file.parent.mkdir(parents=True, exist_ok=True)
        is_new = not file.exists()
        self.connection = apsw.Connection(str(file))
        self.connection.pragma("journal_mode", "wal")
        self.connection.pragma("foreign_keys", 1)
        if is_new:
            self.connection.execute(_TABLES)
            self.connection.pragma("user_version", version)

    def close(self) -> None:
        """As the program ends: the log goes."""
        self.connection.close()

    def start(self, session: str, key: str = "agent:main:main", **columns: str) -> None:
        """Begin a session with its header."""
        with self.connection:
            self._tick()
            self._put(
                "session_nodes",
                {
                    "session_key": key,
                    "current_session_id": session,
                    "entry_json": "{}",
                    "updated_at": self.now_ms,
                },
            )
            self._put(
                "session_windows",
                {
                    "session_id": session,
                    "session_key": key,
                    "created_at": self.now_ms,
                    "updated_at": self.now_ms,
                    **columns,
                },
            )
            self._new_generation(session)
            self._put(
                "session_transcript_index_state",
                {"session_id": session, "indexed_seq": -1, "updated_at": self.now_ms},
            )
            self._append(session, {"type": "session", "version": 4, "id": session, "cwd": "/home/li/app"})

    def say(self, session: str, text: str, role: str = "user", *, after: str | None = "") -> str:
        """Add what somebody says; its id.

        Args:
            session: Where.
            text: What.
            role: Who.
            after: The id of its parent; empty: the last one. Another one is a rewind, which leaves the branch unlisted.
        """
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return self.append(session, {"type": "message", "message": message}, after=after)

    def append(self, session: str, record: Record, *, after: str | None = "") -> str:
        """Add any record; its id."""
        with self.connection:
            self._tick()
            identity = f"e{self.now_ms}"
            parent = self.leaf(session) if after == "" else after
            self._append(session, {"id": identity, "parentId": parent, **record})
        return identity

    def rewind(self, session: str, text: str, after: str | None) -> str:
        """Say something after an earlier record, and list the new branch."""
        identity = self.say(session, text, after=after)
        self.list_branch(session)
        return identity

    def rewrite(self, session: str, records: Iterable[Record]) -> None:
        """Put other records in place of all, under another generation."""
        with self.connection:
            self._tick()
            self.connection.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))
            self.connection.execute(
                "UPDATE session_transcript_index_state SET indexed_seq = -1, leaf_event_id = NULL,"
                " active_event_count = 0, needs_rebuild = 0 WHERE session_id = ?",
                (session,),
            )
            self._new_generation(session)
            for record in records:
                self._append(session, record)

    def records(self, session: str) -> list[Record]:
        """All records, in order."""
        return [
            msgspec.json.decode(zstandard.ZstdDecompressor().decompress(packed) if text is None else text)
            for text, packed in self.connection.execute(
                "SELECT event_json, event_zstd FROM transcript_events WHERE session_id = ? ORDER BY seq",
                (session,),
            )
        ]

    def delete(self, session: str) -> None:
        """Remove a session."""
        self.connection.execute("DELETE FROM session_windows WHERE session_id = ?", (session,))

    def archive(self, session: str, *, reason: str = "reset", pack: bool = True) -> None:
        """Take a session's events out into an archive, and forget the session."""
        text = self._as_file(session)
        blob = zstandard.compress(text) if pack else text
        with self.connection:
            self._tick()
            (key,) = self.connection.execute(
                "SELECT session_key FROM session_windows WHERE session_id = ?", (session,)
            ).fetchall()[0]
            self._put(
                "session_transcript_archives",
                {
                    "session_id": session,
                    "generation": f"g{self.now_ms}",
                    "session_key": key,
                    "reason": reason,
                    "encoding": "zstd" if pack else "identity",
                    "archive_blob": blob,
                    "archive_sha256": hashlib.sha256(blob).hexdigest(),
                    "archive_name": f"{session}.jsonl.{reason}.{self.now_ms}.zst",
                    "created_at": self.now_ms,
                },
            )
            self.delete(session)

    def cool(self, session: str) -> None:
        """Move the events of an old session into one blob; the session stays."""
        text = self._as_file(session)
        blob = zstandard.compress(text)
        with self.connection:
            self._tick()
            records = self.records(session)
            self._put(
                "session_transcript_cold_archives",
                {
                    "session_id": session,
                    "generation": f"g{self.now_ms}",
                    "archive_name": f"{session}.jsonl.zst",
                    "archive_sha256": hashlib.sha256(blob).hexdigest(),
                    "event_count": len(records),
                    "raw_bytes": len(text),
                    "archive_bytes": len(blob),
                    "last_seq": len(records) - 1,
                    "archived_at": self.now_ms,
                    "storage": "sqlite",
                    "archive_blob": blob,
                },
            )
            self.connection.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))

    def leaf(self, session: str) -> str | None:
        """The id of the last record that has one."""
        row = self.connection.execute(
            "SELECT event_id FROM transcript_event_identities WHERE session_id = ? ORDER BY seq DESC LIMIT 1",
            (session,),
        ).fetchone()
        return None if row is None else str(row[0])

    def list_branch(self, session: str) -> None:
        """List the branch of the last record anew."""
        with self.connection:
            parents: dict[str, tuple[int, str | None]] = {
                str(identity): (int(seq), None if parent is None else str(parent))
                for identity, seq, parent in self.connection.execute(
                    "SELECT event_id, seq, parent_id FROM transcript_event_identities WHERE session_id = ?",
                    (session,),
                )
            }
            branch: list[int] = []
            at = self.leaf(session)
            while at is not None and at in parents:
                seq, at = parents[at]
                branch.append(seq)
            self.connection.execute(
                "DELETE FROM session_transcript_active_events WHERE session_id = ?", (session,)
            )
            for position, seq in enumerate(reversed(branch)):
                self._activate(session, position, seq)
            self.connection.execute(
                "UPDATE session_transcript_index_state SET needs_rebuild = 0, active_event_count = ?1,"
                " indexed_seq = (SELECT max(seq) FROM transcript_events WHERE session_id = ?2), leaf_event_id = ?3"
                " WHERE session_id = ?2",
                (len(branch), session, self.leaf(session)),
            )

    def _append(self, session: str, record: Record) -> None:
        text = msgspec.json.encode(record)
        is_packed = len(text) >= PACKED_FROM
        seq: int = self.connection.execute(
            "SELECT coalesce(max(seq) + 1, 0) FROM transcript_events WHERE session_id = ?", (session,)
        ).get
        self._put(
            "transcript_events",
            {
                "session_id": session,
                "seq": seq,
                "event_json": None if is_packed else text.decode(),
                "event_zstd": zstandard.compress(text) if is_packed else None,
                "event_utf8_bytes": len(text),
                "navigation_json": '{"version":1}' if is_packed else None,
                "created_at": self.now_ms,
            },
        )
        row = self.connection.execute(
            "SELECT indexed_seq, leaf_event_id, active_event_count, needs_rebuild"
            " FROM session_transcript_index_state WHERE session_id = ?",
            (session,),
        ).fetchone()
        assert row is not None
        indexed, leaf, count, is_dirty = row
        has_place = record["type"] != "session"
        if has_place:
            self._put(
                "transcript_event_identities",
                {
                    "session_id": session,
                    "event_id": record["id"],
                    "seq": seq,
                    "event_type": record["type"],
                    "parent_id": record.get("parentId"),
                    "created_at": self.now_ms,
                },
            )
        if is_dirty or indexed != seq - 1 or (has_place and record.get("parentId") != leaf):
            self.connection.execute(
                "UPDATE session_transcript_index_state SET needs_rebuild = 1 WHERE session_id = ?", (session,)
            )
            return
        if has_place:
            self._activate(session, int(count), seq)
        self.connection.execute(
            "UPDATE session_transcript_index_state SET indexed_seq = ?, leaf_event_id = ?, active_event_count = ?"
            " WHERE session_id = ?",
            (seq, record["id"] if has_place else None, int(count) + has_place, session),
        )

    def _activate(self, session: str, position: int, seq: int) -> None:
        values = {
            "session_id": session,
            "active_position": position,
            "event_seq": seq,
            "context_eligible": 1,
        }
        self._put("session_transcript_active_events", values)

    def _new_generation(self, session: str) -> None:
        values = {"session_id": session, "generation": f"g{self.now_ms}", "updated_at": self.now_ms}
        self._put("transcript_rewrite_watermarks", values)

    def _put(self, table: str, values: Mapping[str, Any]) -> None:
        is_new = "ON CONFLICT (session_key) DO NOTHING" if table == "session_nodes" else ""
        if table == "transcript_rewrite_watermarks":
            is_new = "ON CONFLICT (session_id) DO UPDATE SET generation = excluded.generation"
        marks = ", ".join("?" * len(values))
        self.connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks}) {is_new}", tuple(values.values())
        )

    def _as_file(self, session: str) -> bytes:
        return b"".join(msgspec.json.encode(record) + b"\n" for record in self.records(session))

    def _tick(self) -> None:
        self.now_ms += 1000
