"""Moves damaged databases aside, and copies rows that were paid for from the copy of a database into a new one."""

import contextlib
import re
from pathlib import Path

import apsw
import structlog

from memd.store import database_files, migrations

log = structlog.get_logger()

KEPT = 2  # of the damaged files of one database, the newest; each may be as large as the database
_LOGS = ("-wal", "-shm", "-journal")  # the last of one that was killed while it was made


def set_aside(file: Path, reason: str) -> None:
    """Move a damaged database out of the way, its log with it; the oldest of those that are kept goes.

    The names are on the disk itself when this returns: else a power cut could leave the old log beside a new file.

    Args:
        file: Of the database, if there still is one. Nothing has it open.
        reason: What is wrong with it, for the log.

    Raises:
        OSError: it cannot be moved.
    """
    before = _numbered(file)
    aside = Path(f"{file}.damaged-{max(before, default=0) + 1}")
    for number in sorted(before, reverse=True)[KEPT - 1 :]:
        _drop(before[number])
    try:
        file.rename(aside)
    except FileNotFoundError:
        remove_database(file)
        log.warning("store.lost", file=str(file), reason=reason)
        return
    # The log belongs to that file, and would be applied to whatever comes in its place.
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{file}{suffix}").rename(f"{aside}{suffix}")
    database_files.sync_directory(file.parent)
    log.warning("store.set_aside", file=str(file), kept_as=str(aside), reason=reason)


def kept_damaged(file: Path) -> list[Path]:
    """What of a database was damaged and is kept, the newest first."""
    found = _numbered(file)
    return [found[number] for number in sorted(found, reverse=True)]


def remove_database(file: Path) -> None:
    """Delete a database that nothing has open, with its log, so that neither is back after a power cut.

    Raises:
        OSError: they may be there.
    """
    is_changed = False
    for path in (file, *(Path(f"{file}{suffix}") for suffix in _LOGS)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            is_changed = True
    if is_changed:
        database_files.sync_directory(file.parent)


def _numbered(file: Path) -> dict[int, Path]:
    name = re.compile(re.escape(file.name) + r"\.damaged-([0-9]{1,9})")
    found: dict[int, Path] = {}
    with contextlib.suppress(OSError):
        for path in file.parent.iterdir():
            if match := name.fullmatch(path.name):
                found[int(match[1])] = path
    return found


def _drop(damaged: Path) -> None:
    # What stood in the place of a file may be a directory with files of the user in it: those are not memd's to delete.
    for path in (damaged, *(Path(f"{damaged}{suffix}") for suffix in _LOGS)):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


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
    for copy in migrations.kept_copies(file):
        if 0 < copy.schema <= known and _is_sound(copy.path):
            break
    else:
        return
    partial = migrations.partial_copy(file)
    partial.unlink(missing_ok=True)
    with (
        migrations.unjournaled(partial, apsw.SQLITE_OPEN_CREATE) as new,
        migrations.immutable(copy.path) as old,
    ):
        migrations.migrate(new, schema)
        new.execute("BEGIN")
        rows = sum(_take(table, old, new) for table in _tables(old) & _tables(new))
        new.execute("COMMIT")
    remove_database(file)  # of it a log may be left, which would be applied to this one
    partial.rename(file)
    database_files.sync_directory(file.parent)
    log.warning("store.brought_back", file=str(file), copy=str(copy.path), rows=rows)


def _is_sound(file: Path) -> bool:
    try:
        with migrations.immutable(file) as copy:
            found: str = copy.execute("PRAGMA quick_check(1)").get
    except (apsw.CorruptError, apsw.NotADBError) as error:
        found = str(error)
    if found != "ok":
        log.warning("store.copy_damaged", file=str(file), reason=found)
    return found == "ok"


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
