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

from tests.faults.vfs import Act, Disk, Open, Operation, Sync, Write

At = Literal["statement", "log", "file", "swap"]

STEPS = 100  # instructions of SQLite's virtual machine between two counts


class Death(msgspec.Struct, frozen=True, tag="death"):
    """The place, counted from the beginning of the process."""

    database: str  # name of the file
    # statement: inside of one, in a transaction that writes. log: at a write or a sync of its log or journal, which is
    # before the end of a transaction. file: at one of the database itself, when it is made or its log is folded in.
    # swap: like log, but only what comes once an index built beside is being copied into it.
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
    return Disk(counter.meet)


class _Counter:
    """Counts down to the end of the process."""

    def __init__(self, death: Death, marker: Path) -> None:
        self._death = death
        self._left = death.count
        self._marker = marker
        self._lock = threading.Lock()
        self._counts = death.at != "swap"

    def listen(self, connection: apsw.Connection) -> None:
        """Count the steps of a connection."""
        file = connection.filename
        if _database(file).name == self._death.database:
            connection.set_progress_handler(lambda: self._step(connection, file), STEPS)

    def _step(self, connection: apsw.Connection, file: str) -> bool:
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE and self._is_now():
            self._stop(file)
        return False

    def meet(self, operation: Operation, act: Act) -> bytes:
        """Count what reaches the disk, and end where it has come to that."""
        if isinstance(operation, Open) and self._is_copied(operation):
            self._counts = True
        if isinstance(operation, Write | Sync) and self._is_meant(operation.file) and self._is_now():
            if self._death.torn and isinstance(operation, Write):
                act(Write(operation.file, operation.offset, operation.data[: len(operation.data) // 2]))
            self._stop(operation.file)
        return act(operation)

    def _is_meant(self, file: str) -> bool:
        database = _database(file)
        is_file = Path(file) == database
        is_meant = database.name == self._death.database and is_file == (self._death.at == "file")
        return self._counts and is_meant

    def _is_copied(self, operation: Open) -> bool:
        """Whether what is opened is an index built beside, which is only read when it takes the place of another."""
        is_read = bool(operation.flags & apsw.SQLITE_OPEN_READONLY)
        return is_read and Path(operation.file).name == f"{self._death.database}.next"

    def _is_now(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0

    def _stop(self, file: str) -> None:
        """End here."""
        place = Place(file, str(_database(file)))
        self._marker.write_bytes(msgspec.json.encode(place))
        # To this thread, which then does not take one step more; the signal stops all others with it.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _database(file: str) -> Path:
    """The database that a log or journal belongs to."""
    return Path(file.removesuffix("-wal").removesuffix("-journal"))
