"""Locks that allow one daemon per state directory and socket, and end with the process."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from memd.errors import FatalError
from memd.store.database_files import sync_directory

_PID_BYTES = 32  # largest size of a lock file, which holds a pid
_LOOK_S = 0.05  # memd-ctl tests whether the lock is free by holding it for a few microseconds


class AlreadyRunning(FatalError):
    """Another daemon holds the lock."""

    def __init__(self, what: Path, pid: str) -> None:
        super().__init__(
            f"memd is already running for {what} (pid {pid}). "
            "Stop it with `memd-ctl down`, or set MEMD_STATE_DIR and MEMD_SOCKET to run a second one beside it.",
            exit_code=75,
        )


class LockUnusable(FatalError):
    """The lock file cannot be created, opened or locked."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"cannot write {file}: {why}. "
            "Set MEMD_STATE_DIR and MEMD_SOCKET to places that this user may write to.",
            exit_code=78,
        )


class Lock:
    """An exclusive lock that the kernel releases when the process ends, however it ends."""

    def __init__(self, file: Path, what: Path) -> None:
        """Take the lock.

        Args:
            file: The lock file; created if missing, and never deleted, since then two processes could hold
                it.
            what: What the lock protects, for the message.

        Raises:
            AlreadyRunning: another process holds it; the message names its pid.
            LockUnusable: the file cannot be opened or locked.
        """
        try:
            self._fd = _opened(file)
        except OSError as error:
            raise LockUnusable(file, error.strerror or str(error)) from error
        try:
            _locked(self._fd)
        except BlockingIOError:
            pid = os.pread(self._fd, _PID_BYTES, 0).strip()
            os.close(self._fd)
            raise AlreadyRunning(what, pid.decode() if pid.isdigit() else "unknown") from None
        except OSError as error:  # some network file systems have no locks
            os.close(self._fd)
            raise LockUnusable(file, f"it cannot be locked ({error.strerror})") from error
        # The pid is only for messages: on a full or read-only disk the lock works without it.
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)


def _locked(descriptor: int) -> None:
    """Take the lock, and wait up to `_LOOK_S` for a process that only tests it.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file cannot be locked.
    """
    deadline = time.monotonic() + _LOOK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_S / 20)
        else:
            return


def _opened(file: Path) -> int:
    """Open a lock file, and check that it is safe to use.

    Raises:
        OSError: the file cannot be opened.
        LockUnusable: it is not a lock file, or belongs to another user, who could hold the lock forever.
    """
    # Without O_NONBLOCK, opening a FIFO that somebody has put there would wait for a writer.
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | flags, 0o600)
    except OSError as error:
        # An existing lock file can be locked without write access.
        try:
            descriptor = os.open(file, os.O_RDONLY | flags)
        except OSError:
            raise error from None
    wrong = _why_not_ours(os.fstat(descriptor))
    if wrong is not None:
        os.close(descriptor)
        raise LockUnusable(file, wrong)
    return descriptor


def _why_not_ours(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "something that is not a file is there"
    if os.geteuid() != 0 and status.st_uid not in {os.geteuid(), 0}:
        return f"it belongs to another user (uid {status.st_uid})"
    if status.st_size > _PID_BYTES:
        # Taking the lock overwrites the file with the pid.
        return "another file is there"
    return None


@contextlib.contextmanager
def sole_daemon(state: Path, socket: Path) -> Iterator[None]:
    """Hold the locks of the state directory and of the socket within the block; missing directories are created.

    Args:
        state: The state directory.
        socket: The path at which clients connect.

    Raises:
        FatalError: another daemon holds a lock, or a directory cannot be created or belongs to another user.
    """
    for directory, variable in (
        (state / "agents", "MEMD_STATE_DIR"),
        (socket.parent, "MEMD_SOCKET"),
    ):
        try:
            new = [one for one in (directory, *directory.parents) if not one.is_dir()]
            if new:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for one in new:
                # The new entry must survive a power cut, with everything synced below it. A directory without
                # read permission cannot be synced.
                with contextlib.suppress(PermissionError):
                    sync_directory(one.parent)
        except OSError as error:
            raise FatalError(
                f"cannot make {error.filename}: {error.strerror}. Set {variable} to another path.",
                exit_code=78,
            ) from error
    for directory in (state, state / "agents"):
        _require_ours(directory)
    with contextlib.ExitStack() as stack:
        for file, what in (
            (state / "memd.lock", state),
            (socket.with_name(f"{socket.name}.lock"), socket),
        ):
            stack.callback(Lock(file, what).release)
        yield


def _require_ours(directory: Path) -> None:
    """Check that no other user can create or replace files in the state directory.

    A directory of root is accepted; root itself may use directories of other users, as it is given in
    containers. Write permission of a group is accepted, too.

    Raises:
        FatalError: the directory belongs to another user, or any user may write to it.
    """
    try:
        status = directory.stat()
    except OSError as error:
        raise FatalError(
            f"cannot use {directory}: {error.strerror}. Set MEMD_STATE_DIR to another path.", exit_code=78
        ) from error
    user = os.geteuid()
    if status.st_mode & stat.S_IWOTH:
        why = "any user may write there. Give it mode 0700"
    elif user not in {0, status.st_uid} and status.st_uid != 0:
        why = f"it belongs to another user (uid {status.st_uid})"
    else:
        return
    raise FatalError(
        f"memory cannot be kept in {directory}: {why}, or set MEMD_STATE_DIR to a directory of your own, "
        "such as a new one in it.",
        exit_code=78,
    )
