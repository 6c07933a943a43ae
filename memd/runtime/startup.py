"""The first steps of a program: opens its standard streams, and ends quietly at Ctrl-C until there is something to lose."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial


def open_streams() -> None:
    """Open each stream that the parent process has closed, on /dev/null.

    Otherwise a socket, or a descriptor of the event loop, would get the number of a closed stream and receive what is printed.
    libuv aborts a process that closes a descriptor up to 2.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  a descriptor
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  likewise


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
