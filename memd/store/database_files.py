"""Inspects the files of a database without opening it in SQLite."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from urllib.parse import quote

from memd.store.errors import StoreDamaged

_NO_SUCH_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})  # some network file systems cannot sync directories
VERSION = slice(60, 64)  # of a database file: user_version, big-endian (sqlite.org/fileformat2.html)


def uri(file: Path) -> str:
    """Return the URI of a database for SQLite."""
    # Two leading slashes, which name the same directory as one, would be read as the start of a host name.
    return (
        f"file:///{quote(os.fsencode(file)).lstrip('/')}"
        if file.is_absolute()
        else f"file:{quote(os.fsencode(file))}"
    )


def size(file: Path) -> int:
    """Return the size in bytes; 0 if the file does not exist."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def identity(file: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def require_files(file: Path) -> None:
    """Raise if a directory or a pipe is in the place of a file: SQLite would always fail, or block.

    Raises:
        StoreDamaged: one of the paths is not a regular file.
    """
    for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(path.stat().st_mode):
                raise StoreDamaged(f"{path} is not a file")


def schema_of(file: Path) -> int | None:
    """Return the schema number in the file's header; None if there is no valid header. A WAL may hold a newer number.

    Must not be called for a file that this process has open in SQLite: closing it drops all POSIX locks of the process on it.
    """
    try:
        with file.open("rb") as opened:
            header = opened.read(VERSION.stop)
    except OSError:
        return None
    if not header.startswith(b"SQLite format 3\0") or len(header) < VERSION.stop:
        return None
    return int.from_bytes(header[VERSION], "big", signed=True)


def sync_directory(directory: Path) -> None:
    """Sync the entries of a directory to disk, if the file system supports that.

    Raises:
        OSError: they may not be on disk.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_SYNC:
            raise
    finally:
        os.close(descriptor)
