"""Counts function calls and memory, which are the same on a busy machine."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(action: Callable[[], object]) -> int:
    """Return the number of function calls, including functions written in C."""
    count = 0

    def called(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def peak_bytes(action: Callable[[], object]) -> int:
    """Return by how many bytes the allocated memory grows at most."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        action()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return most - before
