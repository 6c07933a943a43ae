"""Lists the sessions in a transcript database of any program, and identifies their states."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from memd.domain_types import Stamp
from memd.sources.safe_open import FileUnreadable
from memd.sources.transcripts.database_file import OpenDatabase, ShortRead, look_into
from memd.sources.transcripts.format import SessionFacts
from memd.sources.transcripts.read_position import ReadMark, ReadProgress
from memd.sources.transcripts.reader import Reading, UnchangedTranscript, WholeTranscript
from memd.text.memory_paths import Parts

_INT63 = (1 << 63) - 1


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session listed by a scan."""

    id: str
    stamp: Stamp  # size: in the program's unit; inode: changes if it has to be read from its beginning
    is_shared: bool = False  # of a group or channel
    is_subagent: bool = False

    @property
    def archived(self) -> bool:
        """Whether the session has ended."""
        return False


class SessionListing(msgspec.Struct, frozen=True):
    """The sessions in a file."""

    sessions: tuple[ListedSession, ...]
    version: int = 0  # version of the tables
    is_live: bool = False  # its program has it open, or was killed


class Tables(msgspec.Struct, frozen=True):
    """The relevant tables of a database, with their columns."""

    columns: Mapping[str, frozenset[str]]
    version: int  # user_version

    def has(self, table: str, *columns: str) -> bool:
        """Return whether a table with some columns exists."""
        return table in self.columns and self.columns[table].issuperset(columns)


class DatabaseKind(msgspec.Struct, frozen=True):
    """How to find the sessions in databases of one program."""

    wanted: Mapping[str, frozenset[str]]  # the columns of required tables
    optional: tuple[str, ...]  # further tables that are used if they exist
    ids_after: Callable[[ShortRead, Tables, str], Iterator[tuple[str]]]  # in order
    session_of: Callable[[ShortRead, Tables, str], ListedSession | None]  # None: it is empty

    def tables_of(self, read: ShortRead, shown: str) -> Tables:
        """Return the relevant tables of a database.

        Raises:
            FileUnreadable: a required table or column is missing.
        """
        row = read.row("PRAGMA user_version")
        names = (*self.wanted, *self.optional)
        columns: dict[str, set[str]] = {}
        for table, column in read.rows(
            "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c"
            f" WHERE m.type = 'table' AND m.name IN ({', '.join('?' * len(names))})",
            *names,
        ):
            columns.setdefault(table, set()).add(column)
        tables = Tables(
            {table: frozenset(those) for table, those in columns.items()}, row[0] if row is not None else 0
        )
        if not all(tables.has(table, *needed) for table, needed in self.wanted.items()):
            raise FileUnreadable(
                shown, f"no transcripts in tables that memd knows (version {tables.version})"
            )
        return tables

    def list_sessions(self, root: Path, parts: Parts) -> SessionListing:
        """Return the sessions of a database that have content.

        Args:
            root: The resolved directory of the root.
            parts: The path of the database below it.

        Raises:
            SourceError: the database cannot be read, or has other tables.
            ProcessExhausted: the process has no free descriptors.
        """
        shown = str(root.joinpath(*parts))

        def look(opened: OpenDatabase) -> SessionListing:
            with opened.transaction() as read:
                tables = self.tables_of(read, shown)
            found: list[ListedSession] = []
            after = ""
            while True:
                with opened.transaction() as read:
                    for (identity,) in self.ids_after(read, tables, after):
                        after = identity
                        if (session := self.session_of(read, tables, identity)) is not None:
                            found.append(session)
                        if read.is_enough():
                            break
                    else:
                        return SessionListing(tuple(found), tables.version, opened.is_live)

        return look_into(root, parts, look)


def hidden_reading(session: ListedSession, progress: ReadProgress | None) -> Reading:
    """Return the reading of a subagent's session, if subagents are not indexed."""
    now = ReadProgress(
        inode=session.stamp.inode,
        mark=ReadMark(0, *mark_sides(session, 0)),
        hidden=True,
        learnt=SessionFacts(session_id=session.id, subagent=True),
        tally={"sessions.subagent": 1},
    )
    if now == progress:
        return UnchangedTranscript(now, session.stamp)
    return WholeTranscript((), now, session.stamp)


def mark_sides(session: ListedSession, position: int) -> tuple[bytes, bytes]:
    """Return the two hashes of a read mark, which identify the session and the position."""
    head = hashlib.sha256(b"%d" % session.stamp.inode).digest()
    return head, hashlib.sha256(b"%d" % position).digest()


def number_of(*of: object) -> int:
    """Hash some values to a number from 1 to 2**63 - 1."""
    digest = hashlib.blake2b(repr(of).encode(errors="backslashreplace"), digest_size=8).digest()
    return (int.from_bytes(digest) & _INT63) | 1


def time_ns(at_ms: int | None) -> int:
    """Convert milliseconds to the nanoseconds of a stamp."""
    return max(0, min((at_ms or 0) * 1_000_000, _INT63))
