"""Checks SQLite and databases: whether the installed SQLite has what memd needs, and whether a database is sound.

The check of a database: SQLite's own, the expected tables, and invariants between them. What was found to be wrong with an
index is held here until a new one is in its place.
"""

from functools import cache

import apsw
import msgspec
import numpy as np
import structlog

from memd.runtime.synchronization import ChangeNotifier
from memd.store import keywords, meta, migrations, vectors
from memd.text.tokens import fts_text

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
            or _quick_check(connection)
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


def _quick_check(connection: apsw.Connection) -> tuple[str, ...]:
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


class SqliteSelftest(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried; a fault is None where it went well."""

    sqlite: str  # version
    apsw: str  # version
    keywords: str | None
    vectors: str | None
    vec: str | None  # version of sqlite-vec; None: it does not load


def try_engine() -> SqliteSelftest:
    """Make a keyword index and a table of vectors, and ask both."""
    vec, fault = _try_vectors()
    return SqliteSelftest(
        sqlite=apsw.sqlite_lib_version(),
        apsw=apsw.apsw_version(),
        keywords=_try_keywords(),
        vectors=fault,
        vec=vec,
    )


def _try_keywords() -> str | None:
    connection = apsw.Connection(":memory:")
    try:
        keywords.prepare(connection)
        keywords.make(connection)
        connection.executemany(
            "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, '')",
            [(1, fts_text("我们选了数据库")), (2, fts_text("据说猫在库里数数"))],
        )
        # A pair of characters is a phrase; the other row has both, apart.
        pair = fts_text("数据").strip()
        found = [
            row
            for (row,) in connection.execute("SELECT rowid FROM keywords(?) ORDER BY rank", (f'"{pair}"',))
        ]
    except apsw.Error as error:
        return f"a keyword index cannot be made: {error}"
    else:
        return None if found == [1] else "a Chinese word of two characters is not found"
    finally:
        connection.close()


def _try_vectors() -> tuple[str | None, str | None]:
    """(version of sqlite-vec, fault)."""
    extension, fault = vectors.find_extension()
    if extension is None:
        return None, fault
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        version = str(connection.execute("SELECT vec_version()").get)
        connection.execute(
            "CREATE VIRTUAL TABLE vectors USING vec0(chunk_id INTEGER PRIMARY KEY, embedding FLOAT[3] distance_metric=cosine)"
        )
        rows = {1: [1.0, 0.0, 0.0], 2: [0.6, 0.8, 0.0], 3: [0.0, 0.0, 1.0]}
        connection.executemany(
            "INSERT INTO vectors (chunk_id, embedding) VALUES (?, ?)",
            [(number, np.array(row, np.float32).tobytes()) for number, row in rows.items()],
        )
        near = vectors.nearest(connection, np.array([1.0, 0.0, 0.0], np.float32), 2)
        is_right = [number for number, _ in near] == [1, 2] and np.allclose(
            [closeness for _, closeness in near], [1.0, 0.6], atol=1e-5
        )
    except apsw.Error as error:
        return None, f"sqlite-vec does not work: {error}"
    else:
        return version, None if is_right else "sqlite-vec compares vectors wrongly"
    finally:
        connection.close()
