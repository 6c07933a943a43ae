"""Quarantines damaged databases, and restores paid-for rows from a backup of a database."""

import contextlib
import re
from pathlib import Path

import apsw
import structlog

from memd.store import database_files, migrations

log = structlog.get_logger()

KEPT = 2  # the newest damaged files that are kept per database; each may be as large as the database
# The last one remains if the process was killed while a file was created.
_LOGS = ("-wal", "-shm", "-journal")


def quarantine(file: Path, reason: str) -> None:
    """Rename a damaged database and its log, and delete the oldest quarantined ones.

    The new names are synced to disk on return: otherwise a power failure could leave the old log beside a new file.

    Args:
        file: The database, which may be missing. Nothing has it open.
        reason: What is wrong with it, for the log.

    Raises:
        OSError: it cannot be renamed.
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
    # The log belongs to that file; beside a new file, SQLite would apply it to the new one.
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{file}{suffix}").rename(f"{aside}{suffix}")
    database_files.sync_directory(file.parent)
    log.warning("store.set_aside", file=str(file), kept_as=str(aside), reason=reason)


def kept_damaged(file: Path) -> list[Path]:
    """Return the quarantined files of a database, the newest first."""
    found = _numbered(file)
    return [found[number] for number in sorted(found, reverse=True)]


def remove_database(file: Path) -> None:
    """Delete a database that nothing has open, and its log, durably.

    Raises:
        OSError: it may still exist.
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
    # A directory that stood in the place of the file may contain the user's files, so it is not deleted.
    for path in (damaged, *(Path(f"{damaged}{suffix}") for suffix in _LOGS)):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def bring_back(file: Path, schema: str) -> None:
    """Create a missing database from the backup made before its last migration.

    The backup is not migrated, since that may be what failed. Instead, the rows of each table are copied into the new table
    of the same name, with the columns that both have. Without a sound backup, nothing is created.

    Args:
        file: The path of the database.
        schema: The folder of migrations, below sql/; it must define ordinary tables only.

    Raises:
        apsw.Error, OSError: the database was not created; it can be tried again.
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
    remove_database(file)  # its log may be left, and would be applied to the new file
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
    """Copy the rows of a table; return their number."""
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
