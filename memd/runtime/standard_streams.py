"""The three standard streams of a process."""

import os
import sys


def open_streams() -> None:
    """Have each lead somewhere, also where whoever started the process has closed it.

    A socket or the event loop's own descriptor in the place of a closed one would get what is printed, and libuv ends a
    process that has it close a descriptor up to 2.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  a descriptor
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  likewise
