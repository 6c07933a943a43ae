"""The place where a process ends: within a statement, or at the disk, told by counting.

The process does not kill itself. It stops there, so that whoever started it can see from outside whether a transaction
is open, and then kills it.
"""

import signal
import threading
from pathlib import Path
from typing import Literal

import apsw
import msgspec

At = Literal["statement", "log", "file"]

STEPS = 100  # instructions of SQLite's virtual machine between two counts


class Death(msgspec.Struct, frozen=True, tag="death"):
    """The place, counted from the beginning of the process."""

    database: str  # name of the file
    # statement: inside of one, in a transaction that writes. log: at a write or a sync of its log or journal, which is
    # before the end of a transaction. file: at one of the database itself, when it is made or its log is folded in.
    at: At
    count: int  # which of them; from 1
    torn: bool = False  # half of what is being written reaches the disk


class Place(msgspec.Struct, frozen=True):
    """Where a process stopped."""

    file: str  # that was written, or whose statement it is
    database: str


def arm(death: Death, marker: Path) -> object:
    """Let this process stop where it is to end, the place written into the marker.

    Returns:
        What must be kept until then.
    """
    counter = _Counter(death, marker)
    if death.at == "statement":
        apsw.connection_hooks.append(counter.listen)
        return counter
    return _Disk(counter)


class _Counter:
    """Counts down to the end of the process."""

    def __init__(self, death: Death, marker: Path) -> None:
        self.torn = death.torn
        self._death = death
        self._left = death.count
        self._marker = marker
        self._lock = threading.Lock()

    def listen(self, connection: apsw.Connection) -> None:
        """Count the steps of a connection."""
        file = connection.filename
        if _database(file).name == self._death.database:
            connection.set_progress_handler(lambda: self._step(connection, file), STEPS)

    def _step(self, connection: apsw.Connection, file: str) -> bool:
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE and self._is_now():
            self.stop(file)
        return False

    def is_now(self, file: str) -> bool:
        """Count what reaches the disk; whether it has come to that."""
        database = _database(file)
        is_meant = database.name == self._death.database
        is_file = Path(file) == database
        return is_meant and is_file == (self._death.at == "file") and self._is_now()

    def _is_now(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0

    def stop(self, file: str) -> None:
        """End here."""
        place = Place(file, str(_database(file)))
        self._marker.write_bytes(msgspec.json.encode(place))
        # To this thread, which then does not take one step more; the signal stops all others with it.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _database(file: str) -> Path:
    """The database that a log or journal belongs to."""
    return Path(file.removesuffix("-wal").removesuffix("-journal"))


class _Disk(apsw.VFS):
    """The file system of SQLite, with a place where the process ends."""

    def __init__(self, counter: _Counter) -> None:
        self._base = apsw.vfs_names()[0]
        self._counter = counter
        super().__init__("mortal", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _File(self._base, name, flags, self._counter)


class _File(apsw.VFSFile):
    def __init__(
        self, base: str, name: str | apsw.URIFilename | None, flags: list[int], counter: _Counter
    ) -> None:
        super().__init__(base, name, flags)
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._counter = counter

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # A file that is open for reading alone cannot be locked for writing, which SQLite tries when it closes one
            # and then does without. Only the error of being busy is not raised in the face of whoever closes it.
            raise apsw.BusyError from error

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        if self._counter.is_now(self._name):
            if self._counter.torn:
                super().xWrite(data[: len(data) // 2], offset)
            self._counter.stop(self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._counter.is_now(self._name):
            self._counter.stop(self._name)
        super().xSync(flags)
