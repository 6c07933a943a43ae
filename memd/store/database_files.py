"""Checks the files of a database without opening it."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from urllib.parse import quote

from memd.store.errors import StoreDamaged

_NO_SUCH_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})  # some network file systems have none of directories
VERSION = slice(60, 64)  # of a database file: user_version, big-endian (sqlite.org/fileformat2.html)


def uri(file: Path) -> str:
    """The name of a database as SQLite takes it with parameters."""
    # Two slashes at its beginning, which name the same directory as one, would be followed by the name of a host.
    return (
        f"file:///{quote(os.fsencode(file)).lstrip('/')}"
        if file.is_absolute()
        else f"file:{quote(os.fsencode(file))}"
    )


def size(file: Path) -> int:
    """In bytes; 0 where there is none."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def identity(file: Path) -> tuple[int, int] | None:
    """Device and inode of the file that a name leads to."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def require_files(file: Path) -> None:
    """Where a directory or a pipe stands in the place of a file, SQLite would always fail, or wait without end.

    Raises:
        StoreDamaged: there is one.
    """
    for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(path.stat().st_mode):
                raise StoreDamaged(f"{path} is not a file")


def schema_of(file: Path) -> int | None:
    """The schema number in the first page of a file; None where it has none that can be read. The log may have another.

    Not of a file that this process has open as a database: closing it gives up every lock that the process holds on it.
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
    """Have the names in a directory be on the disk itself, where the file system can.

    Raises:
        OSError: they may not be.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_SYNC:
            raise
    finally:
        os.close(descriptor)
