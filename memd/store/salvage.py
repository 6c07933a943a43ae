"""Copies rows that were paid for from the backup of a database into a new one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import structlog

from memd.store import backups, database_files, migrations, quarantine

log = structlog.get_logger()

_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_MADE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


def bring_back(file: Path, schema: str) -> None:
    """Make a database that is not there any more out of the copy that was made before it was brought up to date.

    Not by bringing the copy up to date: that may be what failed. The rows of each table go into the table of that name, as
    far as their columns are the same. Nothing is made where there is no copy, or none that is sound.

    Args:
        file: Where the database is to be.
        schema: The folder of migrations, below sql/; one of plain tables.

    Raises:
        apsw.Error, OSError: it is not there; the next attempt begins anew.
    """
    known = migrations.newest(schema)
    for copy in backups.kept(file):
        if 0 < copy.schema <= known and _is_sound(copy.path):
            break
    else:
        return
    partial = backups.partial(file)
    partial.unlink(missing_ok=True)
    with _made(partial) as new, _opened(copy.path) as old:
        migrations.migrate(new, schema)
        new.execute("BEGIN")
        rows = sum(_take(table, old, new) for table in _tables(old) & _tables(new))
        new.execute("COMMIT")
    quarantine.remove(file)  # of it a log may be left, which would be applied to this one
    partial.rename(file)
    database_files.sync_directory(file.parent)
    log.warning("store.brought_back", file=str(file), copy=str(copy.path), rows=rows)


def _is_sound(file: Path) -> bool:
    try:
        with _opened(file) as copy:
            found: str = copy.execute("PRAGMA quick_check(1)").get
    except (apsw.CorruptError, apsw.NotADBError) as error:
        found = str(error)
    if found != "ok":
        log.warning("store.copy_damaged", file=str(file), reason=found)
    return found == "ok"


@contextmanager
def _opened(file: Path) -> Iterator[apsw.Connection]:
    """A connection to a file that no process changes; it makes no files beside it."""
    connection = apsw.Connection(f"{database_files.uri(file)}?immutable=1", flags=_READ_ONLY)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _made(file: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(database_files.uri(file), flags=_MADE)
    try:
        connection.pragma("journal_mode", "off")  # one that is cut short is never used
        connection.pragma("synchronous", "full")
        yield connection
    finally:
        connection.close()


def _tables(connection: apsw.Connection) -> set[str]:
    return {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    }


def _take(table: str, old: apsw.Connection, new: apsw.Connection) -> int:
    """Copy the rows of a table; how many."""
    shared = sorted(_columns(old, table) & _columns(new, table))
    if not shared:
        return 0
    columns, marks = ", ".join(shared), ", ".join("?" for _ in shared)
    before = new.total_changes()
    new.executemany(
        f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})",
        old.execute(f"SELECT {columns} FROM {table}"),
    )
    return new.total_changes() - before


def _columns(connection: apsw.Connection, table: str) -> set[str]:
    return {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
