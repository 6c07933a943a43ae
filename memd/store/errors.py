"""The errors of a store; SQLite's own errors are converted into them where they arise."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import apsw

from memd.errors import MemdError, TransientError

# The I/O errors that mean that written data cannot be read back.
_UNREADABLE = frozenset(
    {
        apsw.SQLITE_IOERR_READ,
        apsw.SQLITE_IOERR_SHORT_READ,
        apsw.SQLITE_IOERR_CORRUPTFS,
        apsw.SQLITE_IOERR_DATA,
    }
)


_UNSYNCED = frozenset({apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC})


class StoreUnavailable(TransientError):
    """The disk cannot be read or written now: busy, full, read-only, or an I/O error."""


class StoreFull(StoreUnavailable):
    """The disk is full, or a quota or a limit on the size of files is reached."""

    needs_person = True


class StoreUnsynced(StoreUnavailable):
    """A sync failed: written data may be lost, even if a later sync succeeds."""


class StoreRefused(StoreUnavailable):
    """A statement failed that succeeds on a sound file, with an error that does not mean damage.

    Only a check of the file shows whether it is damaged: the cause may also be a limit of SQLite, or a rejected name.
    """


class StoreDamaged(MemdError):
    """The file holds something that memd did not write."""


class StoreNewer(MemdError):
    """A newer memd wrote the file; it is not changed."""

    def __init__(self, file: Path, found: int, known: int, copy: Path | None = None) -> None:
        """Create the message with the ways to go on.

        Args:
            file: The database.
            found: Its schema number.
            known: The newest schema number that this memd knows.
            copy: The backup made before the newer memd migrated the file, if there is one.
        """
        back = (
            "move the file away: it is made anew from your notes."
            if copy is None
            else f"go back to the copy that was made before: stop memd, rm -f {quote(f'{file}-wal')} "
            f"{quote(f'{file}-shm')}, mv {quote(str(copy))} {quote(str(file))}, and start it."
        )
        super().__init__(
            f"{file} was written by a newer memd (schema {found}, this one knows {known}). Update memd, or {back}"
        )


class StoreClosed(TransientError):
    """The daemon is stopping."""


@contextlib.contextmanager
def mapped_errors(file: Path, connection: apsw.Connection | None = None) -> Iterator[None]:
    """Convert errors of SQLite, of memory and of decoding to the errors of this module.

    Args:
        file: The database.
        connection: The open connection that is used, which knows the system's error; None: it is not asked.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        # memd writes valid UTF-8 only. The error's own message would quote the bytes.
        raise StoreDamaged(f"{file}: a text in it is not UTF-8") from error
    except MemoryError as error:
        raise StoreUnavailable(f"{file}: out of memory") from error
    except apsw.Error as error:
        found = _reached_limit(file, error, connection) or _meaning(file, error)
        if found is None:
            raise
        raise found from error


def _reached_limit(file: Path, error: apsw.Error, connection: apsw.Connection | None) -> StoreFull | None:
    """Return the error to raise if a write reached a limit of the system, for which SQLite has no error of its own."""
    if connection is None or getattr(error, "extendedresult", None) != apsw.SQLITE_IOERR_WRITE:
        return None
    match connection.system_errno:
        case errno.EFBIG:
            return StoreFull(
                f"{file} may not grow: the limit on the size of a file that memd was started with is reached (ulimit -f, LimitFSIZE);"
                " raise it, and start memd again"
            )
        case errno.EDQUOT:
            return StoreFull(
                f"no room is left for this user on the disk of {file}: the quota is used up; make some, and memd goes on by itself"
            )
        case _:
            return None


def _meaning(file: Path, error: apsw.Error) -> MemdError | None:
    """Return the error to raise instead; None if only a defect of memd's code can cause it."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StoreDamaged(f"{file}: {error}")
        case (
            apsw.SQLError()
            | apsw.ConstraintError()
            | apsw.MismatchError()
            | apsw.InternalError()
            | apsw.TooBigError()
            | apsw.SchemaChangeError()
            | apsw.AbortError()
        ):
            return StoreRefused(f"{file}: {_said(error)}")
        case apsw.IOError() if getattr(error, "extendedresult", None) in _UNREADABLE:
            return StoreDamaged(f"{file}: it cannot be read any more ({error})")
        case apsw.InterruptError():
            return StoreClosed("the store is closing")
        case apsw.FullError():
            return full(file)
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(f"another program has {file} locked; memd tries again by itself")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreUnavailable(
                f"{file} cannot be written: it, its directory or its disk is read-only ({error})"
            )
        case apsw.CantOpenError():
            return StoreUnavailable(f"{file} cannot be opened or made: {_why_not_opened(file, error)}")
        case apsw.IOError() | apsw.ProtocolError() | apsw.NoMemError() | apsw.ExtensionLoadingError():
            return _refused(file, error)
        case _:
            return None


def _why_not_opened(file: Path, error: apsw.CantOpenError) -> str:
    if not file.parent.exists():
        # The directory is not created: it may be on a disk that is not mounted now.
        return f"{file.parent} is gone; put it back, or start memd again to have it made anew"
    return "its disk is read-only" if _is_on_read_only_disk(file) else str(error)


def full(file: Path) -> StoreFull:
    """Return the error for a full disk."""
    return StoreFull(f"no room is left on the disk of {file}; make some, and memd goes on by itself")


def _is_on_read_only_disk(file: Path) -> bool:
    try:
        return bool(os.statvfs(file.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _refused(file: Path, error: apsw.Error) -> StoreUnavailable:
    if getattr(error, "extendedresult", None) in _UNSYNCED:
        return StoreUnsynced(f"{file}: the disk did not keep what was written ({error})")
    return StoreUnavailable(f"{file}: {error}")


def _said(error: apsw.Error) -> str:
    """Return SQLite's message unless it may quote SQL: that may contain a question, which must not reach a log."""
    said = str(error)
    is_quoting = isinstance(error, apsw.SQLError) and not said.startswith("no such table: ")
    return "SQLite does not take a statement" if is_quoting else said
