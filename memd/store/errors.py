"""The errors of a store; SQLite's own errors are converted into them where they arise."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import apsw

from memd.errors import MemdError, TransientError

# Of the many kinds of I/O error, those that say that what was written cannot be read again.
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
    """The disk does not take or give: busy, full, read-only, I/O error."""


class StoreFull(StoreUnavailable):
    """There is no room left on the disk."""


class StoreUnsynced(StoreUnavailable):
    """The disk did not keep what it was given: that may be lost now, whatever it says next time."""


class StoreRefused(StoreUnavailable):
    """SQLite fails at a statement that it takes on a sound file, and does not say that the file is damaged.

    That is for a look through the file to tell: it may as well be a limit of SQLite's, or a name that it does not take.
    """


class StoreDamaged(MemdError):
    """What is in the file is not what memd wrote there."""


class StoreNewer(MemdError):
    """The file was written by a newer memd; it is left as it is."""

    def __init__(self, file: Path, found: int, known: int, copy: Path | None = None) -> None:
        """Say how to go on.

        Args:
            file: That was written.
            found: Its schema.
            known: The newest schema that this memd knows.
            copy: Of the file as it was before the newer memd brought it up to date, if there is one.
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
def mapped_errors(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into memd's, where they arise."""
    try:
        yield
    except UnicodeDecodeError as error:
        # Whatever memd writes is valid text. The error itself would quote the bytes.
        raise StoreDamaged(f"{file}: a text in it is not UTF-8") from error
    except MemoryError as error:
        raise StoreUnavailable(f"{file}: out of memory") from error
    except apsw.Error as error:
        found = _meaning(file, error)
        if found is None:
            raise
        raise found from error


def _meaning(file: Path, error: apsw.Error) -> MemdError | None:
    """The error of memd's; None for what can only be a mistake in its own code."""
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
        # It is not made here: what it was on may be a disk that is not mounted just now.
        return f"{file.parent} is gone; put it back, or start memd again to have it made anew"
    return "its disk is read-only" if _is_on_read_only_disk(file) else str(error)


def full(file: Path) -> StoreFull:
    """The disk of a database has no room."""
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
    """What SQLite says of its tables; of SQL it may quote a question, and no question may reach a log."""
    said = str(error)
    is_quoting = isinstance(error, apsw.SQLError) and not said.startswith("no such table: ")
    return "SQLite does not take a statement" if is_quoting else said
