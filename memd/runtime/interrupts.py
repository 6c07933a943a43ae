"""Ends a process quietly at Ctrl-C while it is still starting: without a traceback."""

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial

STATUS = 130  # as shells have it: 128 + SIGINT


def end_quietly(status: int = STATUS) -> bool:
    """Have SIGINT end the process at once from now on; call it while there is nothing to lose.

    Returns:
        Whether the handler was set. It is not if the signal is ignored, as in the background of a shell, if another handler
        is set, or on a thread other than the main one.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    try:
        signal.signal(signal.SIGINT, partial(_end, status))
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def quiet(status: int = STATUS) -> Iterator[None]:
    """Apply end_quietly within the block; afterwards Python raises KeyboardInterrupt as usual."""
    is_changed = end_quietly(status)
    try:
        yield
    finally:
        if is_changed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(status: int, *_: object) -> None:
    os._exit(status)
