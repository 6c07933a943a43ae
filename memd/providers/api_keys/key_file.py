"""Reads a small file without ever waiting for one."""

import errno
import os
import stat
from pathlib import Path

LONGEST = 65_536  # bytes; a key has less than a thousandth


def read_small(file: Path) -> str:
    """The text of a regular file.

    Raises:
        OSError: it cannot be read, is something else than a file, or is too large for a key.
        UnicodeDecodeError: it is no text.
        ValueError: there is a NUL in its path.
    """
    # A pipe would be waited for.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise OSError(errno.EFBIG, "it is too large for a key", str(file))
    return data.decode()
