"""How much memory processes hold."""

import os
import sys
from pathlib import Path


def resident_bytes(pid: int, *, platform: str = sys.platform) -> int | None:
    """Memory that a process holds, as `top` has it: what it shares with others counts whole. None: it is gone.

    Args:
        pid: Of a process of this user.
        platform: As sys.platform has it.
    """
    if platform == "linux":
        try:
            return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return None
    # Only here: Linux needs no library for it, and this one takes 3 MB itself.
    import psutil  # noqa: PLC0415

    try:
        held: int = psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None
    return held
