"""Reads the SQLite database of another program through the fence, and neither leaves a file beside it nor holds its writer up.

SQLite makes a log and its shared memory when it opens a closed database for reading, and a reader keeps a log from being cut. So
a database without a log is read as one that nobody changes, with a look at its stamp before and after; one with a log is read in
short transactions that only look at the shared memory. Whatever happens in between, a file system layer of our own makes no
file, removes none, and opens each below the directory that the fence has opened.
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

READ_S = 0.02  # for which rows are taken in one transaction; the last of them may take a little longer
READ_BYTES = 1 << 20  # likewise
GUARD_S = 2.0  # a transaction that is not over by then is ended: the tables are not what they should be
LOOKS = 5  # at a database that is changed or closed during each
BUSY_MS = 100  # for its writer, where that recovers the log
_STEPS = 1000  # instructions of SQLite between two looks at the clock

_LOG, _MEMORY, _JOURNAL = "-wal", "-shm", "-journal"
_DESCRIPTORS = Path("/proc/self/fd")


class _Changed(Exception):
    """The database was changed, opened or closed meanwhile; another look may succeed."""


class ShortRead:
    """One read transaction, to be ended soon."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._until = time.monotonic() + READ_S
        self._room = READ_BYTES

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, as they are fetched."""
        return iter(self._connection.execute(sql, values))

    def row(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query."""
        return next(self.rows(sql, *values), None)

    def is_enough(self, size: int = 0) -> bool:
        """Whether the transaction is to be ended after one more row of this size in bytes."""
        self._room -= size
        return self._room <= 0 or time.monotonic() >= self._until


class OpenDatabase:
    """A database that is open for reading."""

    def __init__(self, connection: apsw.Connection, *, is_live: bool) -> None:
        self.is_live = is_live  # whether a log is beside it: its writer has it open, or was killed
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[ShortRead]:
        """A read transaction. Only rows are to be fetched in it."""
        until = time.monotonic() + GUARD_S
        self._connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        self._connection.execute("BEGIN")
        try:
            yield ShortRead(self._connection)
        finally:
            # A statement whose rows were not all fetched ends with it. One that was interrupted has ended it.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def look_into(root: Path, parts: Parts, look: Callable[[OpenDatabase], T]) -> T:
    """What a function finds in a database; it is called again if the database was changed under it.

    Args:
        root: The resolved directory of the root.
        parts: The path of the database below it.
        look: Reads in transactions; it has no other effect.

    Raises:
        FileMissing, OutsideFence, FileUnreadable, ProcessExhausted: as safe_open.open_inside has them.
        FileHeld: its writer changes it all the time, or keeps it to itself.
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
    """What changes when a database is written, opened or closed."""

    file: tuple[int, ...]
    log: int  # bytes; 0: none, or an empty one
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
    # SQLite would resolve the path of a descriptor, so the layer below is told to leave names as they are.
    base = _DESCRIPTORS / str(directory) if _DESCRIPTORS.is_dir() else place
    how = "mode=ro&readonly_shm=1" if before.is_live else "immutable=1"
    trouble: apsw.Error | UnicodeDecodeError | msgspec.ValidationError | None = None
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
    except (apsw.Error, UnicodeDecodeError, msgspec.ValidationError) as failure:
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
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)  # functions of its views are not called


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
    """Of a regular file; a file is never opened here: closing it would drop the locks that SQLite has on it in this process."""
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
        case UnicodeDecodeError() | msgspec.ValidationError():
            return FileUnreadable(shown, "rows of other types than its program writes")
        case apsw.NotADBError() | apsw.CorruptError():
            return FileUnreadable(shown, "not a sound SQLite database")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return FileUnreadable(shown, "cannot be opened")
        case _:
            # The text of other errors may quote what is in the tables.
            return FileUnreadable(shown, f"SQLite cannot read it ({type(trouble).__name__})")


class _ReadingLayer(apsw.VFS):
    """The file system of SQLite, with files that are there and regular, and with no others."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "unix")

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - as SQLite calls it
        """The name as it is: below a descriptor, it must not be resolved."""
        return name

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - likewise
        """A file that is there."""
        if flags[0] & (apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL):
            flags[0] &= ~apsw.SQLITE_OPEN_CREATE
            path = name.filename() if isinstance(name, apsw.URIFilename) else name
            # Opening a FIFO would wait for whoever writes into it.
            if not _is_regular(path):
                raise apsw.CantOpenError("not there, or not a regular file")
        return apsw.VFSFile("unix", name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802, ARG002 - likewise
        """Nothing is removed."""
        raise apsw.ReadOnlyError("nothing is removed here")


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(Path(path).lstat().st_mode)
    except OSError:
        return False


_layers: list[_ReadingLayer] = []
_layers_lock = threading.Lock()


def _layer() -> str:
    """The name of the layer, which is made once."""
    name = "memd-reading"
    with _layers_lock:
        if not _layers:
            _layers.append(_ReadingLayer(name))
    return name
