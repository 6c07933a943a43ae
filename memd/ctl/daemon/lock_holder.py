"""Who holds the lock of a daemon, by the kernel's word: what stands in the file may be of another time or pid namespace."""

import fcntl
import os
import time
from pathlib import Path

_LOCKS = Path("/proc/locks")
_PID_APPEARS_S = 1.0  # where only the file tells: a daemon takes the lock, then writes its pid


def find_holder(lock: Path) -> int | None:
    """The pid of the living process that holds a lock file; None where nobody does, or one that cannot be seen from here."""
    if _LOCKS.exists():
        return _holder_of(lock)
    deadline = time.monotonic() + _PID_APPEARS_S
    while is_held(lock):
        text = _read(lock)
        if text.isdigit() and int(text) > 1:
            return int(text)
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return None


def is_held(lock: Path) -> bool:
    """Whether somebody holds a lock file, be it a process of another pid namespace."""
    if _LOCKS.exists() and _holder_of(lock) is not None:
        return True
    try:
        stream = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # A shared lock is refused as long as the daemon has its own, and ends with the descriptor.
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(stream)


def _holder_of(lock: Path) -> int | None:
    """Who holds it, as /proc/locks tells: ``7: FLOCK ADVISORY WRITE 4711 fe:00:5310732 0 EOF``, of the reader's namespace."""
    try:
        status = lock.lstat()
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for words in map(str.split, lines):
        if words[1:2] != ["FLOCK"] or words[3:4] != ["WRITE"] or len(words) < 6 or not words[4].isdigit():
            continue
        on, _, inode = words[5].rpartition(":")
        # Some file systems give their files another device than their locks; then the file has to say the same.
        if inode == str(status.st_ino) and (on == device or words[4] == _read(lock)):
            return int(words[4])
    return None


def _read(lock: Path) -> str:
    try:
        stream = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.pread(stream, 32, 0).decode("ascii", "replace").strip()
    finally:
        os.close(stream)
