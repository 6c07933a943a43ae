"""Processes that share what is imported already: they begin in milliseconds, and end where a test wants them to."""

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec

from tests.faults.death import Place
from tests.faults.life import TIMEOUT_S
from tests.wait import until


class Killed(msgspec.Struct, frozen=True):
    """A process was killed."""

    place: Place | None  # None: from outside
    in_transaction: tuple[str, ...]  # the databases that nobody else could write to just then


class Ended(msgspec.Struct, frozen=True):
    """A process ended by itself."""

    status: int


class Process:
    """A process forked from this one, which must have no other threads."""

    def __init__(self, run: Callable[[], int], log: Path, marker: Path) -> None:
        """Begin.

        Args:
            run: What it does; its exit status.
            log: Where it writes to.
            marker: Where it tells where it stopped.
        """
        marker.unlink(missing_ok=True)
        self._marker = marker
        self._ended: Ended | None = None
        self._has_stopped = False
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Later Pythons warn of threads that the new process would miss. It uses nothing of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _be(run, log)

    def wait(self, databases: tuple[Path, ...] = ()) -> Killed | Ended:
        """Wait for its end; where it stops itself, see which of the databases are being written, and kill it."""
        status = until(self.poll, TIMEOUT_S)
        if isinstance(status, Ended):
            return status
        place = msgspec.json.decode(self._marker.read_bytes(), type=Place)
        return self._kill(place, databases)

    def kill_after(self, wait_s: float, databases: tuple[Path, ...]) -> Killed | Ended:
        """Kill it from outside after a while, unless it has ended by then."""
        self.let_be(wait_s)
        if self._ended is None:
            os.kill(self.pid, signal.SIGSTOP)
            until(self.poll, TIMEOUT_S)
        return self._ended or self._kill(None, databases)

    def terminate_after(self, wait_s: float, databases: tuple[Path, ...] = ()) -> Killed | Ended:
        """Ask it to end after a while, unless it has ended, or stopped itself, by then."""
        if not self.let_be(wait_s):
            os.kill(self.pid, signal.SIGTERM)
        return self._ended or self.wait(databases)

    def let_be(self, wait_s: float) -> bool:
        """Wait for so long at most; whether it ended or stopped itself meanwhile."""
        moment = time.monotonic() + wait_s
        until(lambda: time.monotonic() >= moment or self.poll(), TIMEOUT_S)
        return bool(self.poll())

    def discard(self) -> None:
        """See to it that nothing of it is left."""
        if self._ended is None:
            self._kill(None, ())

    def _kill(self, place: Place | None, databases: tuple[Path, ...]) -> Killed:
        busy = tuple(file.name for file in databases if _is_being_written(file))
        os.kill(self.pid, signal.SIGKILL)
        until(lambda: isinstance(self.poll(), Ended), TIMEOUT_S)
        return Killed(place, busy)

    def poll(self) -> Ended | bool:
        """How it ended, or whether it has stopped; False while it runs."""
        if self._ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return self._has_stopped
            if os.WIFSTOPPED(status):
                self._has_stopped = True
                return True
            self._ended = Ended(os.waitstatus_to_exitcode(status))
        return self._ended


def _be(run: Callable[[], int], log: Path) -> None:
    status = 70
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        status = run()
    except BaseException:  # noqa: BLE001 - nothing of this may run on as the process it was forked from
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _is_being_written(database: Path) -> bool:
    """Whether another process has a transaction open that writes: SQLite then refuses one to this process."""
    if not database.exists():
        return False
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    # Where the process has not opened it yet, this is the only connection: it leaves the log to whoever comes next.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        return True
    except apsw.ProtocolError:
        return False  # it is at what another one has left in the log, and has begun nothing of its own
    else:
        connection.execute("ROLLBACK")
        return False
    finally:
        connection.close()
