"""Who holds the lock of a daemon."""

import fcntl
import os
import time
from pathlib import Path

_PID_APPEARS_S = 1.0  # a daemon takes the lock, then writes its pid


def find_holder(lock: Path) -> int | None:
    """The pid of the living process that holds a lock file; None where nobody does."""
    deadline = time.monotonic() + _PID_APPEARS_S
    while True:
        try:
            stream = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            # A shared lock is refused as long as the daemon has its own, and ends with the descriptor.
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(stream, 32, 0)
        else:
            return None
        finally:
            os.close(stream)
        if text.strip().isdigit() and int(text) > 1:
            return int(text)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)
