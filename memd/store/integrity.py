"""Checks whether a database is sound, and holds what was found to be wrong with an index until a new one is in its place.

The check: SQLite's own, the expected tables, and invariants between them.
"""

from functools import cache

import apsw
import structlog

from memd.runtime.change_notifier import ChangeNotifier
from memd.store import meta, migrations, vectors

log = structlog.get_logger()

_MOST_FAULTS = 3
_WITH_SESSIONS = 2  # the first schema of an index that has transcripts
_WITH_TOTALS = 3  # and that has its rows counted


def faults(connection: apsw.Connection, schema: str) -> tuple[str, ...]:
    """What is wrong with a database, a few faults at most; () where it is sound.

    Args:
        connection: A fresh one, in a transaction: one that has looked into a keyword index before looks through it by what
            it remembers, and finds parts missing that were merged since (FTS5 of 3.54).
        schema: The folder of migrations, below sql/; the file is of a number of it that this program knows.

    Raises:
        apsw.Error: it could not be looked through, which says nothing about the file: no memory, an I/O error.
    """
    number: int = connection.pragma("user_version")
    try:
        return (
            _missing(connection, schema, number)
            or _told_by_sqlite(connection)
            or (_gaps(connection, number) if schema == "index" and number else ())
        )
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError) as error:
        # The statements are these alone, and a sound file takes them: their messages quote no text.
        return (str(error),)


def _missing(connection: apsw.Connection, schema: str, number: int) -> tuple[str, ...]:
    there = _names(connection)
    wanted = _names_made_by(schema, number)
    if "vectors" in there:
        wanted |= vectors.SHADOWS
    return tuple(f"no such table or index: {name}" for name in sorted(wanted - there))[:_MOST_FAULTS]


@cache
def _names_made_by(schema: str, number: int) -> frozenset[str]:
    """The tables and indexes of a schema."""
    connection = apsw.Connection(":memory:")
    try:
        for step, sql in migrations.steps(schema):
            if step <= number:
                connection.execute(sql)
        return _names(connection)
    finally:
        connection.close()


def _names(connection: apsw.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_schema"))


def _told_by_sqlite(connection: apsw.Connection) -> tuple[str, ...]:
    # Since 3.44 this asks virtual tables as well: FTS5 checks its index. Its own command would be a write.
    rows = connection.execute(f"PRAGMA quick_check({_MOST_FAULTS})")
    found = [line for (row,) in rows for line in str(row).splitlines()]
    return tuple(line for line in found if line != "ok" and not line.startswith("***"))[:_MOST_FAULTS]


def _gaps(connection: apsw.Connection, number: int) -> tuple[str, ...]:
    """What is missing in an index that SQLite does not know should be there."""
    lost: int = connection.execute(
        "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM keywords_docsize)"
    ).get
    found = [f"{lost} chunks are missing in the keyword index"] if lost else []
    if number >= _WITH_SESSIONS:
        torn: int = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM turns GROUP BY file_id HAVING count(*) <> max(seq) + 1)"
        ).get
        found += [f"turns are missing in {torn} transcripts"] if torn else []
    if number >= _WITH_TOTALS:
        found += meta.miscounted(connection)
    return (*found, *vectors.gaps(connection))


class IndexDamage:
    """Anybody who meets damage reports it here; the task that builds indexes anew waits for reports."""

    def __init__(self, agent: str) -> None:
        """Nothing is wrong at first.

        Args:
            agent: Its id, for the log.
        """
        self.reason: str | None = None  # why the file is set aside when another one is there
        self.keyword: str | None = None  # what is wrong with the keyword index
        self.reported = ChangeNotifier()
        self._agent = agent

    def report(self, reason: str) -> None:
        """Something in the file is not what memd wrote there."""
        if self.reason is None:
            log.error("sync.index_damaged", agent=self._agent, reason=reason)
            self.reason = reason
        self.reported.notify()

    def report_keyword(self, reason: str) -> None:
        """A search has found the keyword index broken."""
        if self.keyword is None:
            self.keyword = reason
            self.reason = self.reason or reason
        self.reported.notify()

    def mended(self) -> bool:
        """A new index is in place; returns whether the one before was damaged."""
        was_damaged = self.reason is not None
        self.reason = self.keyword = None
        return was_damaged
