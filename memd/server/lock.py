"""One daemon a state directory, and one a socket: flock on a file that names the holder's pid."""

import contextlib
import fcntl
import os
from pathlib import Path

from memd.errors import FatalError


class AlreadyRunning(FatalError):
    """Another daemon holds the lock."""

    def __init__(self, what: Path, pid: str) -> None:
        super().__init__(
            f"memd is already running for {what} (pid {pid}). "
            "Stop it with `memd-ctl down`, or set MEMD_STATE_DIR and MEMD_SOCKET to run a second one beside it.",
            exit_code=75,
        )


class LockUnusable(FatalError):
    """The lock file cannot be made or opened."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"cannot write {file}: {why}. "
            "Set MEMD_STATE_DIR and MEMD_SOCKET to places that this user may write to.",
            exit_code=78,
        )


class Lock:
    """An exclusive lock that goes with the process, however it ends."""

    def __init__(self, file: Path, what: Path) -> None:
        """Take the lock.

        Args:
            file: The lock file; made if missing, and left in place, since deleting it would let two hold it.
            what: What it guards, for the message.

        Raises:
            AlreadyRunning: naming the pid of the holder.
            LockUnusable: the file cannot be opened.
        """
        try:
            self._fd = _opened(file)
        except OSError as error:
            raise LockUnusable(file, error.strerror or str(error)) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise AlreadyRunning(what, pid) from None
        # The pid is for a message: on a disk that is full or read-only, the lock holds without it.
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock up."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)


def _opened(file: Path) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | flags, 0o600)
    except OSError as error:
        # A lock file that is there can be held without being written.
        with contextlib.suppress(OSError):
            return os.open(file, os.O_RDONLY | flags)
        raise error from None
