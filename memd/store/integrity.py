"""Checks the installed SQLite for the features that memd needs, and databases for damage.

The check of a database includes SQLite's own, the expected tables, and invariants between tables. `IndexDamage` keeps the
damage that was found in an index until a new index replaces it.
"""

from functools import cache

import apsw
import numpy as np
import structlog

from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store import keywords, meta, migrations, vector_table
from memd.text.tokens import fts_text

log = structlog.get_logger()

_MOST_FAULTS = 3
_WITH_SESSIONS = 2  # the first schema with transcripts
_WITH_TOTALS = 3  # the first schema with row counters


def faults(connection: apsw.Connection, schema: str) -> tuple[str, ...]:
    """Return the faults of a database, a few at most; () if it is sound.

    Args:
        connection: A new one, in a transaction: an older one checks the keyword index by its cached structure, and
            reports segments as missing that were merged since (FTS5 of 3.54).
        schema: The folder of migrations, below sql/. The schema number of the file must be known to this program.

    Raises:
        apsw.Error: the check failed for a reason outside the file, such as lack of memory or an I/O error.
    """
    number: int = connection.pragma("user_version")
    try:
        return (
            _missing(connection, schema, number)
            or _quick_check(connection)
            or (_gaps(connection, number) if schema == "index" and number else ())
        )
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError) as error:
        # Only these statements ran, and each is valid on a sound file. Their messages quote no text.
        return (str(error),)


def _missing(connection: apsw.Connection, schema: str, number: int) -> tuple[str, ...]:
    there = _names(connection)
    wanted = _names_made_by(schema, number)
    if "vectors" in there:
        wanted |= vector_table.SHADOWS
    return tuple(f"no such table or index: {name}" for name in sorted(wanted - there))[:_MOST_FAULTS]


@cache
def _names_made_by(schema: str, number: int) -> frozenset[str]:
    """Return the tables and indexes that the migrations of a schema create."""
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
    # Since 3.44, quick_check includes virtual tables: FTS5 checks its index. FTS5's own command would be a write.
    rows = connection.execute(f"PRAGMA quick_check({_MOST_FAULTS})")
    found = [line for (row,) in rows for line in str(row).splitlines()]
    return tuple(line for line in found if line != "ok" and not line.startswith("***"))[:_MOST_FAULTS]


def _gaps(connection: apsw.Connection, number: int) -> tuple[str, ...]:
    """Return violations of invariants that SQLite does not check."""
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
    return (*found, *vector_table.gaps(connection))


class IndexDamage:
    """The damage found in an index; the rebuild task waits for reports."""

    def __init__(self, agent: str) -> None:
        """Start without damage.

        Args:
            agent: The agent's id, for the log.
        """
        self.reason: str | None = None  # why the file is quarantined once a new index replaces it
        self.keyword: str | None = None  # why the keyword index is damaged
        self.reported = ChangeNotifier()
        self._agent = agent

    def report(self, reason: str) -> None:
        """Record that the file holds something that memd did not write."""
        if self.reason is None:
            log.error("sync.index_damaged", agent=self._agent, reason=reason)
            self.reason = reason
        self.reported.notify()

    def report_keyword(self, reason: str) -> None:
        """Record that a search found the keyword index damaged."""
        if self.keyword is None:
            self.keyword = reason
            self.reason = self.reason or reason
        self.reported.notify()

    def mended(self) -> bool:
        """Forget the damage, since a new index is in place; return whether there was any."""
        was_damaged = self.reason is not None
        self.reason = self.keyword = None
        return was_damaged


def sqlite_versions() -> tuple[str, str]:
    """Return the versions of SQLite and of apsw."""
    return apsw.sqlite_lib_version(), apsw.apsw_version()


def try_keywords() -> str | None:
    """Create and search a keyword index in memory; return the fault, if there is one."""
    connection = apsw.Connection(":memory:")
    try:
        keywords.prepare(connection)
        keywords.make(connection)
        connection.executemany(
            "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, '')",
            [(1, fts_text("我们选了数据库")), (2, fts_text("据说猫在库里数数"))],
        )
        # A pair of characters is a phrase; the other row contains both characters, but not adjacent.
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


def try_vectors() -> tuple[str | None, str | None]:
    """Create and search a vector table in memory; return the version of sqlite-vec (None: it cannot be loaded), and the fault, if there is one."""
    extension, fault = vector_table.find_extension()
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
        near = vector_table.nearest(connection, np.array([1.0, 0.0, 0.0], np.float32), 2)
        is_right = [number for number, _ in near] == [1, 2] and np.allclose(
            [closeness for _, closeness in near], [1.0, 0.6], atol=1e-5
        )
    except apsw.Error as error:
        return None, f"sqlite-vec does not work: {error}"
    else:
        return version, None if is_right else "sqlite-vec compares vectors wrongly"
    finally:
        connection.close()
