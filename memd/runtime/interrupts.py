"""Ctrl-C while a program is not ready for it yet: a person wants it to end, and no traceback."""

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial

STATUS = 130  # as shells have it: 128 + SIGINT


def end_quietly(status: int = STATUS) -> bool:
    """Have SIGINT end the process at once from here on; call it while there is nothing to lose.

    Returns:
        Whether that is so: nothing changes where the signal is ignored, as in the background of a shell, where another
        handler is set, and on a thread that is not the main one.
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
    """Meanwhile end_quietly; then Python raises KeyboardInterrupt as usual."""
    is_changed = end_quietly(status)
    try:
        yield
    finally:
        if is_changed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(status: int, *_: object) -> None:
    os._exit(status)
