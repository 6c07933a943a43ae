"""What the operating system says of a process."""

import os
import subprocess
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that ended, and is only waited for by its parent, does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return not Path("/proc/self/stat").exists()  # gone just now, or a system without /proc


def has_ended(pid: int) -> bool:
    """Whether a process runs no more."""
    return not is_alive(pid)


def children() -> frozenset[int]:
    """The processes that this one has started, and that still run."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat=,comm="], capture_output=True, text=True, check=True
    )
    rows = (line.split(None, 3) for line in listing.stdout.splitlines())
    return frozenset(
        int(pid)
        for pid, parent, state, name in rows
        if int(parent) == os.getpid() and state[0] != "Z" and name != "ps"
    )
