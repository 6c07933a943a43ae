"""Migrates a database by numbered SQL files, and refuses one that a newer memd wrote.

A backup is made before; it is kept until the migrated database has proved sound.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import apsw
import msgspec
import structlog

from memd.store import database_files, int16_vectors
from memd.store.errors import StoreDamaged, StoreFull, StoreNewer, StoreUnavailable

log = structlog.get_logger()

_SQL = Path(__file__).with_name("sql")

KEPT_S = 24 * 3600.0  # the time in which a user can go back to the older program

_ROWS = 500  # converted at once by a migration

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class BackupCopy(msgspec.Struct, frozen=True):
    """A backup of a database, made before a migration."""

    path: Path
    before: int  # the schema number that the database was migrated to
    schema: int  # the schema number of the backup
    bytes: int
    made_at: float  # unix time


def is_old(age_s: float) -> bool:
    """Return whether a backup has been kept for long enough. Pure.

    Args:
        age_s: Seconds since it was made; negative if the clock was set back.
    """
    return abs(age_s) >= KEPT_S


def make_copy(connection: apsw.Connection, file: Path, before: int) -> Path:
    """Copy a whole database, its WAL included; the copy is synced to disk on return.

    A partial copy of a killed process is overwritten. A copy for the same schema is replaced: the database was not migrated
    since, or the user has restored that copy.

    Args:
        connection: A connection to the database, outside of a transaction.
        file: The database.
        before: The schema number that it is to be migrated to.

    Raises:
        StoreUnavailable, apsw.Error: there is no copy; the database was not changed.
    """
    kept_as = Path(f"{file}.before-schema-{before}")
    with _mapped(file):
        _require_room(connection, file)
        _copy(file, connection, kept_as)
    log.info("store.copied", file=str(file), kept_as=str(kept_as), bytes=database_files.size(kept_as))
    return kept_as


def _copy(file: Path, connection: apsw.Connection, to: Path) -> None:
    unfinished = partial_copy(file)
    # Created here and not by SQLite, so that no other user may read it, and no existing link is followed.
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    try:
        with unjournaled(unfinished) as copy:
            copy_pages(connection, copy)
        unfinished.rename(to)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    database_files.sync_directory(file.parent)


@contextlib.contextmanager
def unjournaled(file: Path, more_flags: int = 0) -> Iterator[apsw.Connection]:
    """Open a database for writing without a journal; the file must be discarded if the work is interrupted."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI | more_flags
    connection = apsw.Connection(database_files.uri(file), flags=flags)
    try:
        connection.pragma("journal_mode", "off")
        connection.pragma("synchronous", "full")
        yield connection
    finally:
        connection.close()


@contextlib.contextmanager
def immutable(file: Path) -> Iterator[apsw.Connection]:
    """Open a database that no process changes, for reading; SQLite creates no files beside it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{database_files.uri(file)}?immutable=1", flags=flags)
    try:
        yield connection
    finally:
        connection.close()


def rewrite(file: Path) -> None:
    """Replace a database that nothing has open by a copy of itself, synced to disk on return.

    Raises:
        StoreUnavailable: it cannot be copied; it was not changed.
        StoreDamaged: it is damaged.
        apsw.Error: either of these.
    """
    connection = apsw.Connection(
        database_files.uri(file), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    )
    try:
        _require_sound(connection, file)
        # Checkpoints and removes the WAL; beside the copy, SQLite would apply it to the copy.
        connection.pragma("journal_mode", "delete")
        try:
            _copy(file, connection, file)
        except OSError as error:
            raise StoreUnavailable(f"{file} cannot be written anew: {error.strerror}") from error
    finally:
        connection.close()
    log.warning("store.renewed", file=str(file), bytes=database_files.size(file))


def copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy all pages of a database to another in one transaction; raises apsw.Error."""
    backup = target.backup("main", source, "main")
    try:
        backup.step(-1)
    finally:
        # Called explicitly: at the end of a `with` block, an error of the disk would be lost.
        backup.finish()


def _require_room(connection: apsw.Connection, file: Path) -> None:
    """Raise if the disk has no room for the backup: a full disk harms all programs.

    Raises:
        StoreFull: there is not enough room.
    """
    pages: int = connection.pragma("page_count")
    page_bytes: int = connection.pragma("page_size")
    if shutil.disk_usage(file.parent).free < pages * page_bytes:
        raise _full(file)


def _full(file: Path) -> StoreFull:
    return StoreFull(
        f"{file} is to be brought up to date, and a copy of it is made before, for which no room is left on its disk:"
        f" make {database_files.size(file) / 1e6:,.0f} MB, and memd goes on by itself"
    )


@contextlib.contextmanager
def _mapped(file: Path) -> Iterator[None]:
    try:
        yield
    except apsw.FullError as error:
        raise _full(file) from error
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise _full(file) from error
        raise StoreUnavailable(
            f"{file} is to be brought up to date, and cannot be copied before: {error.strerror}"
        ) from error


def remove_partial_copy(file: Path) -> None:
    """Delete a partial backup left by a crash.

    Raises:
        StoreUnavailable: it still exists.
    """
    with _mapped(file):
        partial_copy(file).unlink(missing_ok=True)


def kept_copies(file: Path) -> tuple[BackupCopy, ...]:
    """Return the backups of a database, the newest schema first."""
    name = re.compile(re.escape(file.name) + r"\.before-schema-([0-9]{1,9})")
    found: list[BackupCopy] = []
    with contextlib.suppress(OSError):
        for path in file.parent.iterdir():
            if match := name.fullmatch(path.name):
                with contextlib.suppress(OSError):  # deleted meanwhile
                    status = path.lstat()
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    schema = database_files.schema_of(path) or 0
                    found.append(BackupCopy(path, int(match[1]), schema, status.st_size, status.st_mtime))
    return tuple(sorted(found, key=lambda copy: copy.before, reverse=True))


def remove_copies(copies: Iterable[BackupCopy]) -> None:
    """Delete backups.

    Raises:
        StoreUnavailable: some still exist.
    """
    for copy in copies:
        try:
            copy.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{copy.path} cannot be deleted: {error.strerror}") from error
        log.info("store.copy_removed", file=str(copy.path), bytes=copy.bytes)


def partial_copy(file: Path) -> Path:
    """Return the name of a partial backup; it is the same for all schemas, so that any version of memd finds it."""
    return Path(f"{file}.before-schema.partial")


def steps(schema: str) -> list[tuple[int, str]]:
    """Return (number, SQL) of each migration of a schema, in order."""
    return sorted((int(file.name[:3]), file.read_text("utf-8")) for file in (_SQL / schema).glob("*.sql"))


def newest(schema: str) -> int:
    """Return the newest number of a schema that this program knows."""
    return steps(schema)[-1][0]


def migrate(connection: apsw.Connection, schema: str) -> None:
    """Run all missing migrations in one transaction: afterwards the file has its old schema or the newest.

    Raises:
        StoreDamaged: a migration does not fit the file, or its result is damaged. The file is unchanged.
        apsw.Error: a failure outside the file. The file is unchanged.
    """
    found: int = connection.pragma("user_version")
    missing = [(number, sql) for number, sql in steps(schema) if number > found]
    if not missing:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in missing:
            try:
                connection.execute(f"{sql}\n;PRAGMA user_version = {number};")
            except (apsw.SQLError, apsw.ConstraintError) as error:
                # Repeating it would not help: the tables are not those that memd created.
                file = connection.db_filename("main")
                raise StoreDamaged(f"{file} cannot be brought up to schema {number}: {error}") from error
            if found and (convert := _CONVERSIONS.get((schema, number))) is not None:
                convert(connection)
        if found:
            _require_sound(connection, connection.db_filename("main"))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pack_vectors(connection: apsw.Connection) -> None:
    """Pack all vectors in the cache. A value of another type is left as it is: reading it reports the damage."""
    last = -1
    while rows := _vectors_after(last, connection):
        connection.executemany(
            "UPDATE cache SET vector = ?, exponent = ? WHERE rowid = ?",
            [
                (*packed, rowid)
                for (rowid, _), packed in zip(
                    rows, int16_vectors.pack([vector for _, vector in rows]), strict=True
                )
            ],
        )
        last, _ = rows[-1]


def _vectors_after(rowid: int, connection: apsw.Connection) -> list[tuple[int, bytes]]:
    return connection.execute(  # type: ignore[return-value]  # apsw types a row as any tuple
        "SELECT rowid, vector FROM cache WHERE rowid > ? AND typeof(vector) = 'blob' ORDER BY rowid LIMIT ?",
        (rowid, _ROWS),
    ).fetchall()


# (schema, number) of a migration -> function that converts the rows of an older file, called after its SQL.
_CONVERSIONS: Mapping[tuple[str, int], Callable[[apsw.Connection], None]] = {("embeddings", 4): _pack_vectors}


def give_back_pages(connection: apsw.Connection, file: Path, schema: str) -> None:
    """Shrink a file whose rows a migration made smaller, if it is not smaller than its backup yet.

    Called at each start, so a process that was killed before is no loss. While there is no disk space for it, the file stays as
    large as it is; later rows fill the room.

    Args:
        connection: Of the database, outside of a transaction.
        file: The database.
        schema: The name of the schema.
    """
    converted = [number for of, number in _CONVERSIONS if of == schema]
    copies = [copy for copy in kept_copies(file) if copy.schema < max(converted)] if converted else []
    if copies and connection.pragma("page_count") * connection.pragma("page_size") >= copies[0].bytes:
        with contextlib.suppress(apsw.FullError, apsw.IOError, apsw.BusyError, apsw.CantOpenError):
            connection.execute("VACUUM")


def _require_sound(connection: apsw.Connection, file: Path | str) -> None:
    found: str = connection.execute("PRAGMA quick_check(1)").get
    if found != "ok":
        raise StoreDamaged(f"{file}: {found}")


def require_known(file: Path, schema: str) -> None:
    """Check the schema number of a file without opening it in SQLite, which would already change it.

    Must be called before this process has the file open: closing it drops all POSIX locks of the process on it.

    Raises:
        StoreNewer: a newer memd wrote it.
    """
    found = database_files.schema_of(file)
    if found is not None:
        require_version(file, found, schema)


def require_version(file: Path, found: int, schema: str) -> None:
    """Compare the schema number of a file with the newest that this program knows.

    Raises:
        StoreNewer: it is larger.
    """
    known = newest(schema)
    if found > known:
        raise StoreNewer(file, found, known, find_copy(file, known))


def find_copy(file: Path, known: int) -> Path | None:
    """Return the newest backup made by a newer memd whose schema this program knows; None: there is none."""
    return next((copy.path for copy in kept_copies(file) if 0 < copy.schema <= known), None)
