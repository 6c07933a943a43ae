"""What lies where a database should be, looked at without opening it."""

import contextlib
import stat
from pathlib import Path
from urllib.parse import quote

from memd.store import migrations
from memd.store.trouble import StoreDamaged, StoreNewer

VERSION = slice(60, 64)  # of a database file: user_version, big-endian (sqlite.org/fileformat2.html)


def uri(file: Path) -> str:
    """The name of a database as SQLite takes it with parameters."""
    return f"file:{quote(str(file))}"


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
    """Where a directory or a pipe stands in the place of a file, SQLite would fail for ever, or wait for ever.

    Raises:
        StoreDamaged: there is one.
    """
    for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(path.stat().st_mode):
                raise StoreDamaged(f"{path} is not a file")


def require_known(file: Path, schema: str) -> None:
    """Look at the schema number of a file without opening it as a database, which would already touch it.

    Only before this process has the file open: closing it gives up every lock that the process holds on it.

    Raises:
        StoreNewer: a newer memd wrote it.
    """
    try:
        with file.open("rb") as opened:
            header = opened.read(VERSION.stop)
    except OSError:
        return
    if header.startswith(b"SQLite format 3\0") and len(header) == VERSION.stop:
        require_version(file, int.from_bytes(header[VERSION], "big", signed=True), schema)


def require_version(file: Path, found: int, schema: str) -> None:
    """Compare the schema number of a file with the newest that this program knows.

    Raises:
        StoreNewer: it is larger.
    """
    known = migrations.newest(schema)
    if found > known:
        raise StoreNewer(file, found, known)
