"""A disk that fails at a counted operation: once, for a while, or until somebody mends it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import apsw
import msgspec

from tests.faults.vfs import Act, Delete, Open, Operation, Read, Sync, Truncate, Write

What = Literal["open", "read", "write", "truncate", "sync", "delete"]
Lasting = Literal["once", "while", "until mended", "until the end"]
Place = tuple[What, str]  # an operation, and the name of its file

A_WHILE = 30  # operations of the kind that fail one after the other, at most
# From the first that fails. What waits longer after each attempt would come to 30 operations only after a minute.
A_WHILE_S = 4.0

_WHAT: Mapping[type[Operation], What] = {
    Open: "open",
    Read: "read",
    Write: "write",
    Truncate: "truncate",
    Sync: "sync",
    Delete: "delete",
}
# What a system says of each: no room, or an error of the device. Less than was asked for is told as success.
ERRORS: Mapping[What, tuple[int, ...]] = {
    "open": (apsw.SQLITE_CANTOPEN,),
    "read": (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ),
    "write": (apsw.SQLITE_FULL, apsw.SQLITE_IOERR_WRITE),
    "truncate": (apsw.SQLITE_IOERR_TRUNCATE,),
    "sync": (apsw.SQLITE_IOERR_FSYNC,),
    "delete": (apsw.SQLITE_IOERR_DELETE,),
}


def name_of(error: int) -> str:
    """What SQLite calls an error."""
    names = {**apsw.mapping_result_codes, **apsw.mapping_extended_result_codes}
    return str(names[error])


class Fault(msgspec.Struct, frozen=True):
    """What fails, from when on, and for how long."""

    what: What
    file: str  # its name
    number: int  # of the operation of that kind on that file, from 1
    error: int
    lasting: Lasting
    everywhere: bool = False  # from then on, on all files

    def __str__(self) -> str:
        where = f"{self.file} and every other file" if self.everywhere else self.file
        return f"{name_of(self.error)} at {self.what} {self.number} of {where}, {self.lasting}"


class FailingDisk:
    """A medium with one fault in it, or none."""

    def __init__(self, fault: Fault | None, now: Callable[[], float] = time.monotonic) -> None:
        """Nothing has failed yet.

        Args:
            fault: What is to fail; None: nothing.
            now: A clock, in seconds.
        """
        self.counted: Counter[Place] = Counter()
        self.failed = 0  # operations
        self._fault = fault
        self._now = now
        self._began = 0.0  # when the first failed
        self._is_mended = False
        self._lock = threading.Lock()

    def mend(self) -> None:
        """Nothing fails from here on."""
        with self._lock:
            self._is_mended = True

    def __call__(self, operation: Operation, act: Act) -> bytes:
        """Let an operation happen, or fail; see vfs."""
        with self._lock:
            place = _WHAT[type(operation)], Path(operation.file).name
            self.counted[place] += 1
            error = self._error(place)
        if error is not None:
            raise apsw.exception_for(error)
        return act(operation)

    def _error(self, place: Place) -> int | None:
        fault = self._fault
        if fault is None or self._is_mended or not self._is_met(fault, place):
            return None
        if not self.failed:
            self._began = self._now()
        elif fault.lasting == "while" and self._now() >= self._began + A_WHILE_S:
            self._is_mended = True
            return None
        self.failed += 1
        self._is_mended = fault.lasting == "once" or (fault.lasting == "while" and self.failed >= A_WHILE)
        return fault.error

    def _is_met(self, fault: Fault, place: Place) -> bool:
        what, file = place
        if what != fault.what or (file != fault.file and not (fault.everywhere and self.failed)):
            return False
        return self.failed > 0 or self.counted[place] == fault.number
