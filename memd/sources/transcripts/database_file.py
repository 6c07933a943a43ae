"""Reads the SQLite database of another program without leaving a file beside it or blocking its writer.

SQLite creates a WAL and its shared memory when it opens a closed database for reading, and a reader prevents truncation of the WAL.
So a database without a WAL is opened as immutable, with a check of its stamp before and after; one with a WAL is read in short
transactions that only read the shared memory. A VFS of our own creates and deletes no file in any case, and opens each file below
the directory that safe_open has opened.
"""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw
import msgspec

from memd.sources.safe_open import (
    FileHeld,
    FileUnreadable,
    OutsideFence,
    ProcessExhausted,
    directory_inside,
    refusal,
)
from memd.text.memory_paths import Parts

T = TypeVar("T")

READ_S = 0.02  # the time after which no more rows are read in a transaction; the last one may take longer
READ_BYTES = 1 << 20  # likewise
GUARD_S = 2.0  # a longer transaction is interrupted: the tables are not as expected
LOOKS = 5  # attempts, if the database is changed or closed during each
BUSY_MS = 100  # wait for its writer, while that recovers the WAL
_STEPS = 1000  # SQLite instructions between two checks of the clock

_LOG, _MEMORY, _JOURNAL = "-wal", "-shm", "-journal"
_DESCRIPTORS = Path("/proc/self/fd")


class _Changed(Exception):
    """The database was changed, opened or closed meanwhile; a retry may succeed."""


class ShortRead:
    """A short read transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._until = time.monotonic() + READ_S
        self._room = READ_BYTES

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query as they are fetched."""
        return iter(self._connection.execute(sql, values))

    def row(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query."""
        return next(self.rows(sql, *values), None)

    def is_enough(self, size: int = 0) -> bool:
        """Return whether the transaction should end after one more row of this size in bytes."""
        self._room -= size
        return self._room <= 0 or time.monotonic() >= self._until


class OpenDatabase:
    """A database opened for reading."""

    def __init__(self, connection: apsw.Connection, *, is_live: bool) -> None:
        self.is_live = is_live  # whether it has a WAL: its writer has it open, or was killed
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[ShortRead]:
        """Begin a read transaction, in which only rows are to be fetched."""
        until = time.monotonic() + GUARD_S
        self._connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        self._connection.execute("BEGIN")
        try:
            yield ShortRead(self._connection)
        finally:
            # A statement whose rows were not all fetched ends with the transaction; an interrupted one has ended it.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def look_into(root: Path, parts: Parts, look: Callable[[OpenDatabase], T]) -> T:
    """Call a function with an opened database; it is called again if the database was changed meanwhile.

    Args:
        root: The resolved directory of the root.
        parts: The path of the database below it.
        look: Reads in transactions; it must have no other effect.

    Raises:
        FileMissing, OutsideFence, FileUnreadable, ProcessExhausted: see safe_open.open_inside.
        FileHeld: its writer changes it constantly, or has locked it.
    """
    shown = str(root.joinpath(*parts))
    for _ in range(LOOKS):
        try:
            with directory_inside(root, parts[:-1]) as directory:
                return _looked(directory, root.joinpath(*parts[:-1]), parts[-1], shown, look)
        except _Changed:
            continue
    raise FileHeld(shown, "the program that it belongs to changes it all the time")


class _FileState(msgspec.Struct, frozen=True):
    """The state of a database's files, which changes when it is written, opened or closed."""

    file: tuple[int, ...]
    log: int  # size in bytes; 0: missing or empty
    has_memory: bool
    has_journal: bool

    @property
    def is_live(self) -> bool:
        return self.log > 0 or self.has_memory or self.has_journal


def _looked(directory: int, place: Path, name: str, shown: str, look: Callable[[OpenDatabase], T]) -> T:
    before = _state(directory, name, shown)
    if before.log and not before.has_memory:
        raise FileUnreadable(
            shown, f"{name}{_LOG} is beside it without {name}{_MEMORY}: its program has to be started once"
        )
    # SQLite would resolve a path below a descriptor, so the VFS returns names unchanged.
    base = _DESCRIPTORS / str(directory) if _DESCRIPTORS.is_dir() else place
    how = "mode=ro&readonly_shm=1" if before.is_live else "immutable=1"
    trouble: apsw.Error | UnicodeDecodeError | msgspec.DecodeError | None = None
    try:
        connection = apsw.Connection(
            f"file:{quote(str(base / name))}?{how}",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            vfs=_layer(),
        )
        try:
            _prepare(connection)
            result = look(OpenDatabase(connection, is_live=before.is_live))
        finally:
            connection.close()
    except (apsw.Error, UnicodeDecodeError, msgspec.DecodeError) as failure:
        trouble = failure
    if not before.is_live and _state(directory, name, shown) != before:
        raise _Changed
    if trouble is None:
        return result
    if isinstance(trouble, apsw.CantOpenError) and _state(directory, name, shown).is_live != before.is_live:
        raise _Changed from trouble
    raise _refusal_of(trouble, shown) from trouble


def _prepare(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)  # functions in its views are not called


def _state(directory: int, name: str, shown: str) -> _FileState:
    file = _stat(directory, name, shown)
    if file is None:
        raise refusal(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), shown)
    log, memory, journal = (_stat(directory, name + suffix, shown) for suffix in (_LOG, _MEMORY, _JOURNAL))
    return _FileState(
        (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns),
        0 if log is None else log.st_size,
        memory is not None,
        journal is not None and journal.st_size > 0,
    )


def _stat(directory: int, name: str, shown: str) -> os.stat_result | None:
    """Return the status of a regular file without opening it: closing it would drop SQLite's locks on it in this process."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise refusal(failure, shown) from failure
    if not stat.S_ISREG(status.st_mode):
        raise OutsideFence(shown, f"{name} is not a regular file")
    return status


def _refusal_of(trouble: Exception, shown: str) -> FileUnreadable | ProcessExhausted:
    match trouble:
        case apsw.NoMemError():
            return ProcessExhausted("cannot read a database: no memory is left")
        case apsw.BusyError() | apsw.LockedError():
            return FileHeld(shown, "its program keeps it to itself just now")
        case apsw.InterruptError():
            return FileUnreadable(shown, f"a look at it takes longer than {GUARD_S:g} s")
        case UnicodeDecodeError() | msgspec.DecodeError():
            return FileUnreadable(shown, "rows of other types than its program writes")
        case apsw.NotADBError() | apsw.CorruptError():
            return FileUnreadable(shown, "not a sound SQLite database")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return FileUnreadable(shown, "cannot be opened")
        case _:
            # Other messages may quote the content of tables.
            return FileUnreadable(shown, f"SQLite cannot read it ({type(trouble).__name__})")


class _ReadingLayer(apsw.VFS):
    """A VFS that opens existing regular files only."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "unix")

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - as SQLite calls it
        """Return the name unchanged: below a descriptor, it must not be resolved."""
        return name

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - likewise
        """Open an existing file."""
        if flags[0] & (apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL):
            flags[0] &= ~apsw.SQLITE_OPEN_CREATE
            path = name.filename() if isinstance(name, apsw.URIFilename) else name
            # Opening a FIFO would wait for a writer.
            if not _is_regular(path):
                raise apsw.CantOpenError("not there, or not a regular file")
        return apsw.VFSFile("unix", name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802, ARG002 - likewise
        """Delete nothing."""
        raise apsw.ReadOnlyError("nothing is removed here")


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(Path(path).lstat().st_mode)
    except OSError:
        return False


_layers: list[_ReadingLayer] = []
_layers_lock = threading.Lock()


def _layer() -> str:
    """Return the name of the VFS, which is registered once."""
    name = "memd-reading"
    with _layers_lock:
        if not _layers:
            _layers.append(_ReadingLayer(name))
    return name
