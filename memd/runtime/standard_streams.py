"""The three standard streams of a process."""

import os
import sys


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
