"""Brings a database up to its schema by numbered SQL files, and leaves alone what a newer memd wrote.

The database is copied before; the copy is kept until the migrated database has proved sound.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

import apsw
import msgspec
import structlog

from memd.store import database_files
from memd.store.errors import StoreDamaged, StoreFull, StoreNewer, StoreUnavailable

log = structlog.get_logger()

KEPT_S = 24 * 3600.0  # in which a user who misses something can go back to the older program

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class BackupCopy(msgspec.Struct, frozen=True):
    """A database as it was."""

    path: Path
    before: int  # the schema that the database was brought up to afterwards
    schema: int  # that the copy has
    bytes: int
    made_at: float  # unix time


def is_old(age_s: float) -> bool:
    """Whether a copy has been kept for long enough, its database being sound and one that whole passes succeed with. Pure.

    Args:
        age_s: Since it was made, in seconds; below 0 where the clock was put back, by hours or by years.
    """
    return abs(age_s) >= KEPT_S


def make_copy(connection: apsw.Connection, file: Path, before: int) -> Path:
    """Copy a whole database, what is in its log included; the copy is on the disk itself when this returns.

    What a killed attempt left is written over. A copy for the same schema is replaced: the database has not been brought
    up to date since, or a user has put that copy in its place.

    Args:
        connection: Of the database, in no transaction.
        file: Of the database.
        before: The schema that it is to be brought up to.

    Raises:
        StoreUnavailable: there is no copy; nothing was touched.
        apsw.Error: likewise.
    """
    kept_as = Path(f"{file}.before-schema-{before}")
    with _mapped(file):
        _require_room(connection, file)
        _copy(file, connection, kept_as)
    log.info("store.copied", file=str(file), kept_as=str(kept_as), bytes=database_files.size(kept_as))
    return kept_as


def _copy(file: Path, connection: apsw.Connection, to: Path) -> None:
    unfinished = partial_copy(file)
    # Made here and not by SQLite: no other user may read it, and what stands there already is not written through.
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
    """A connection that writes a file which is never used if that is cut short."""
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
    """A connection that reads a file that no process changes; it makes no files beside it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{database_files.uri(file)}?immutable=1", flags=flags)
    try:
        yield connection
    finally:
        connection.close()


def rewrite(file: Path) -> None:
    """Put a copy of a database in its place, all of it on the disk itself when this returns. Nothing has it open.

    Raises:
        StoreUnavailable: it cannot be copied; nothing was touched.
        StoreDamaged: there is damage in it.
        apsw.Error: either.
    """
    connection = apsw.Connection(
        database_files.uri(file), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    )
    try:
        _require_sound(connection, file)
        # What is in the log goes into the file before, and there is no log any more; else it would say what the copy says.
        connection.pragma("journal_mode", "delete")
        try:
            _copy(file, connection, file)
        except OSError as error:
            raise StoreUnavailable(f"{file} cannot be written anew: {error.strerror}") from error
    finally:
        connection.close()
    log.warning("store.renewed", file=str(file), bytes=database_files.size(file))


def copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Make a database equal to another, in one transaction; raises errors of SQLite's."""
    backup = target.backup("main", source, "main")
    try:
        backup.step(-1)
    finally:
        # By name, and not at the end of a with: there, an error of the disk in the middle of ending it would be lost.
        backup.finish()


def _require_room(connection: apsw.Connection, file: Path) -> None:
    """Require room for the copy: a full disk harms all programs.

    Raises:
        StoreFull: there is none.
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
    """Delete partial backups left by a crash.

    Raises:
        StoreUnavailable: it is still there.
    """
    with _mapped(file):
        partial_copy(file).unlink(missing_ok=True)


def kept_copies(file: Path) -> tuple[BackupCopy, ...]:
    """The copies of a database, the one of the newest schema first."""
    name = re.compile(re.escape(file.name) + r"\.before-schema-([0-9]{1,9})")
    found: list[BackupCopy] = []
    with contextlib.suppress(OSError):
        for path in file.parent.iterdir():
            if match := name.fullmatch(path.name):
                with contextlib.suppress(OSError):  # gone meanwhile
                    status = path.lstat()
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    schema = database_files.schema_of(path) or 0
                    found.append(BackupCopy(path, int(match[1]), schema, status.st_size, status.st_mtime))
    return tuple(sorted(found, key=lambda copy: copy.before, reverse=True))


def remove_copies(copies: Iterable[BackupCopy]) -> None:
    """Delete copies.

    Raises:
        StoreUnavailable: some are still there.
    """
    for copy in copies:
        try:
            copy.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{copy.path} cannot be deleted: {error.strerror}") from error
        log.info("store.copy_removed", file=str(copy.path), bytes=copy.bytes)


def partial_copy(file: Path) -> Path:
    """What is not finished yet. One name whatever the schema: whichever program comes next finds what another one left."""
    return Path(f"{file}.before-schema.partial")


def steps(schema: str) -> list[tuple[int, str]]:
    """(number, SQL) of every migration of a schema, in order."""
    folder = resources.files("memd.store") / "sql" / schema
    found = [
        (int(item.name[:3]), item.read_text("utf-8"))
        for item in folder.iterdir()
        if item.name.endswith(".sql")
    ]
    return sorted(found)


def newest(schema: str) -> int:
    """The newest number of a schema that this program knows."""
    return steps(schema)[-1][0]


def migrate(connection: apsw.Connection, schema: str) -> None:
    """Run what has not run yet, all of it in one transaction: the file is of its old schema, or of the newest.

    Raises:
        StoreDamaged: a step does not go with what is in the file, or what came of it is not sound. The file is as it was.
        apsw.Error: likewise, for what lies outside it.
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
                # The same at each attempt: its tables are not those that memd made.
                file = connection.db_filename("main")
                raise StoreDamaged(f"{file} cannot be brought up to schema {number}: {error}") from error
        if found:
            _require_sound(connection, connection.db_filename("main"))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _require_sound(connection: apsw.Connection, file: Path | str) -> None:
    found: str = connection.execute("PRAGMA quick_check(1)").get
    if found != "ok":
        raise StoreDamaged(f"{file}: {found}")


def require_known(file: Path, schema: str) -> None:
    """Look at the schema number of a file without opening it as a database, which would already touch it.

    Only before this process has the file open: closing it gives up every lock that the process holds on it.

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
    """The copy that a newer memd made of a database that a program can read, if one is kept; the newest of them."""
    return next((copy.path for copy in kept_copies(file) if 0 < copy.schema <= known), None)
