"""What can be wrong with a store, as types; SQLite's own errors turn into them where they arise."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

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


class StoreUnavailable(TransientError):
    """The disk does not take or give: busy, full, read-only, I/O error."""


class StoreFull(StoreUnavailable):
    """There is no room left on the disk."""


class StoreDamaged(MemdError):
    """What is in the file is not what memd wrote there."""


class StoreNewer(MemdError):
    """The file was written by a newer memd; it is left as it is."""

    def __init__(self, file: Path, found: int, known: int) -> None:
        super().__init__(
            f"{file} was written by a newer memd (schema {found}, this one knows {known}). "
            "Update memd, or move the file away: it is made anew from your notes."
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
    except apsw.Error as error:
        found = _meaning(file, error)
        if found is None:
            raise
        raise found from error


def _meaning(file: Path, error: apsw.Error) -> MemdError | None:
    """The error of memd's; None for what can only be a mistake in its own code."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError() | apsw.TooBigError():
            return StoreDamaged(f"{file}: {error}")
        case apsw.SQLError() | apsw.ConstraintError() | apsw.MismatchError() | apsw.InternalError():
            # Our own SQL does not fail on a sound file: a table is missing or is not what it was.
            return StoreDamaged(f"{file}: {error}")
        case apsw.IOError() if getattr(error, "extendedresult", None) in _UNREADABLE:
            return StoreDamaged(f"{file}: it cannot be read any more ({error})")
        case apsw.InterruptError():
            return StoreClosed("the store is closing")
        case apsw.FullError():
            return StoreFull(f"no room is left on the disk of {file}; make some, and memd goes on by itself")
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(f"another program has {file} locked; memd tries again by itself")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreUnavailable(
                f"{file} cannot be written: it, its directory or its disk is read-only ({error})"
            )
        case apsw.CantOpenError():
            return StoreUnavailable(f"{file} cannot be opened or made: {error}")
        case apsw.IOError() | apsw.ProtocolError() | apsw.NoMemError() | apsw.ExtensionLoadingError():
            return StoreUnavailable(f"{file}: {error}")
        case _:
            return None
