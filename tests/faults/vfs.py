"""The file system as SQLite uses it, with a medium of a test's own in between.

Shape: a medium is a function `medium(operation, act) -> bytes`. SQLite's calls come to it as values:

    Open(file, flags)   Read(file, offset, size)   Write(file, offset, data)   Truncate(file, size)
    Sync(file, flags)   Delete(file, is_lasting)

`act` does what an operation says on the real file and returns what was read (b"" for all but Read). A medium lets
things happen with `return act(operation)`. It may do something else instead, by acting on another operation (half of a
write, fewer bytes of a read, which SQLite takes for a short read) or by not acting at all. It may fail with
`raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)`, or SQLITE_FULL and so on. An Open must be acted on or raised from.

    with between(medium):
        ...  # every connection that is opened here, and closed again, is asked through the medium

It is called on the thread that SQLite runs on, on several at once; it must not use SQLite itself. `file` is the path,
absolute, "" for a temporary file; a log's ends with "-wal". What does not come to it: locks, sizes, looks whether a
file is there, and the shared memory beside a log (-shm), which SQLite maps by itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw
import msgspec

Name = str | apsw.URIFilename | None

_NAME = "between"


class Open(msgspec.Struct, frozen=True):
    """A file is opened, or made."""

    file: str
    flags: int  # SQLITE_OPEN_*, as they are asked for


class Read(msgspec.Struct, frozen=True):
    """Bytes are wanted; fewer may come where the file ends."""

    file: str
    offset: int
    size: int


class Write(msgspec.Struct, frozen=True):
    """Bytes go into the file, or behind its end."""

    file: str
    offset: int
    data: bytes


class Truncate(msgspec.Struct, frozen=True):
    """The file ends there."""

    file: str
    size: int


class Sync(msgspec.Struct, frozen=True):
    """What was written to the file is to be there whatever comes."""

    file: str
    flags: int  # SQLITE_SYNC_*


class Delete(msgspec.Struct, frozen=True):
    """The file goes."""

    file: str
    is_lasting: bool  # the directory is synced, too


Operation = Open | Read | Write | Truncate | Sync | Delete
Act = Callable[[Operation], bytes]
Medium = Callable[[Operation, Act], bytes]


@contextmanager
def between(medium: Medium) -> Iterator[None]:
    """Have a medium between SQLite and its files; for what is opened and closed within."""
    disk = Disk(medium)
    try:
        yield
    finally:
        disk.unregister()


class Disk(apsw.VFS):
    """The default file system of SQLite, with a medium in between for as long as this object is kept."""

    def __init__(self, medium: Medium) -> None:
        self._base = apsw.vfs_names()[0]
        self._medium = medium
        super().__init__(_NAME, self._base, makedefault=True)

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        opened: list[_File] = []

        def act(_: Operation) -> bytes:
            opened.append(_File(self._base, name, flags, path, self._medium))
            return b""

        self._medium(Open(path, flags[0]), act)
        return opened[0]

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's name and order
        def act(_: Operation) -> bytes:
            super(Disk, self).xDelete(filename, syncdir)
            return b""

        self._medium(Delete(filename, syncdir), act)


class _File(apsw.VFSFile):
    def __init__(self, base: str, name: Name, flags: list[int], path: str, medium: Medium) -> None:
        super().__init__(base, name, flags)
        self._path = path
        self._medium = medium

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # A file that is open for reading alone cannot be locked for writing, which SQLite tries when it closes one
            # and then does without. Only the error of being busy is not raised in the face of whoever closes it.
            raise apsw.BusyError from error

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        return self._medium(Read(self._path, offset, amount), self._act)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._medium(Write(self._path, offset, data), self._act)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        self._medium(Truncate(self._path, newsize), self._act)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._medium(Sync(self._path, flags), self._act)

    def _act(self, operation: Operation) -> bytes:
        match operation:
            case Read():
                return super().xRead(operation.size, operation.offset)
            case Write():
                super().xWrite(operation.data, operation.offset)
            case Truncate():
                super().xTruncate(operation.size)
            case Sync():
                super().xSync(operation.flags)
            case Open() | Delete():
                raise TypeError(f"{operation} is nothing that is done to an open file")
        return b""
