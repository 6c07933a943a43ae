"""A database of transcripts as opencode 1.18 writes it: the tables that matter for reading, and how they change.

Its writer makes a message first, then its parts, and changes both in place; what is taken back stays until the next prompt.
"""

import json
from pathlib import Path
from typing import Any

import apsw

from memd.domain_types import Role

REAL = Path(__file__).with_name("real") / "opencode-1.18.33.sql"  # as the program itself wrote it
_TABLES = "".join(line for line in REAL.read_text().splitlines(keepends=True) if line.startswith("CREATE"))


class OpenCodeStore:
    """The database, open for writing until it is closed."""

    def __init__(self, file: Path, *, now_ms: int = 1_790_000_000_000) -> None:
        self.file = file
        self.now_ms = now_ms
        file.parent.mkdir(parents=True, exist_ok=True)
        is_new = not file.exists()
        self.connection = apsw.Connection(str(file))
        self.connection.pragma("journal_mode", "wal")
        self.connection.pragma("foreign_keys", 1)
        if is_new:
            self.connection.execute(
                f"CREATE TABLE project (id text PRIMARY KEY); INSERT INTO project VALUES ('global'); {_TABLES}"
            )

    def close(self) -> None:
        """As a program that ends well: the log goes."""
        self.connection.close()

    def start(self, session: str, parent: str | None = None) -> None:
        """Begin a session."""
        self.now_ms += 1000
        self.connection.execute(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated)"
            " VALUES (?, 'global', ?, 'witty-star', '/home/li/shop', 'New session', '1.18.33', ?, ?)",
            (session, parent, self.now_ms, self.now_ms),
        )

    def message(self, session: str, role: Role, **data: Any) -> str:
        """A message without parts; its id."""
        self.now_ms += 1000
        identity = f"msg_{self.now_ms:x}"
        content = {"role": role, "time": {"created": self.now_ms}, **data}
        with self.connection:
            self.connection.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
                (identity, session, self.now_ms, self.now_ms, json.dumps(content)),
            )
            self._touch(session)
        return identity

    def part(self, message: str, kind: str = "text", **data: Any) -> str:
        """A part of a message; its id."""
        self.now_ms += 1
        identity = f"prt_{self.now_ms:x}"
        session = self.connection.execute("SELECT session_id FROM message WHERE id = ?", (message,)).get
        with self.connection:
            self.connection.execute(
                "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                (
                    identity,
                    message,
                    session,
                    self.now_ms,
                    self.now_ms,
                    json.dumps({"type": kind, **data}, ensure_ascii=False),
                ),
            )
            self._touch(session)
        return identity

    def change(self, part: str, **data: Any) -> None:
        """Write a part anew."""
        self.now_ms += 1
        old = json.loads(self.connection.execute("SELECT data FROM part WHERE id = ?", (part,)).get)
        session = self.connection.execute("SELECT session_id FROM part WHERE id = ?", (part,)).get
        with self.connection:
            self.connection.execute(
                "UPDATE part SET data = ?, time_updated = ? WHERE id = ?",
                (json.dumps(old | data), self.now_ms, part),
            )
            self._touch(session)

    def say(self, session: str, text: str, role: Role = "user") -> str:
        """A message that says something, with what stands around an answer; its id."""
        identity = self.message(session, role)
        if role == "assistant":
            self.part(identity, "step-start")
        self.part(identity, text=text)
        if role == "assistant":
            self.part(identity, "step-finish", reason="stop", tokens={})
        return identity

    def take_back(self, session: str, message: str, part: str | None = None) -> None:
        """Undo, from a message or a part of it on: the rows stay."""
        revert = {"messageID": message, "snapshot": "0" * 40, **({"partID": part} if part else {})}
        self._set(session, json.dumps(revert))

    def redo(self, session: str) -> None:
        """Take back what was taken back."""
        self._set(session, None)

    def delete(self, *messages: str) -> None:
        """As the next prompt does with what was taken back."""
        for message in messages:
            self.connection.execute("DELETE FROM message WHERE id = ?", (message,))

    def _set(self, session: str, revert: str | None) -> None:
        self.now_ms += 1
        with self.connection:
            self.connection.execute("UPDATE session SET revert = ? WHERE id = ?", (revert, session))
            self._touch(session)

    def _touch(self, session: str) -> None:
        self.connection.execute("UPDATE session SET time_updated = ? WHERE id = ?", (self.now_ms, session))
        self.connection.execute(
            "INSERT INTO event_sequence VALUES (?, 0, NULL)"
            " ON CONFLICT (aggregate_id) DO UPDATE SET seq = seq + 1",
            (session,),
        )
