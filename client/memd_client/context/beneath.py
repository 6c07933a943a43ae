"""Opening what lies in a workspace: one component after the other, following no symlink.

The workspace itself may be reached by symlinks, since its owner named it. Below it, a symlink could lead anywhere: a
note that is one would be written outside, and AGENTS.md could be another name of MEMORY.md.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for whoever is at its other end.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegular(OSError):
    """What is there is a directory, a device, a FIFO: nothing that holds text."""


@contextmanager
def opened_workspace(workspace: str | os.PathLike[str]) -> Iterator[int]:
    """A descriptor of the workspace.

    Raises:
        OSError: there is none, or it cannot be entered.
    """
    descriptor = os.open(Path(workspace).expanduser(), _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_directory(above: int, name: str) -> Iterator[int]:
    """A descriptor of a directory in an open one.

    Raises:
        OSError: there is none, or it is a symlink.
    """
    descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(directory: int, name: str, flags: int, mode: int = 0o600) -> Iterator[int]:
    """A descriptor of a regular file in an open directory.

    Raises:
        OSError: it is not there, cannot be opened so, or is a symlink.
        NotRegular: it is something else.
    """
    descriptor = os.open(name, flags | _FILE, mode, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular("not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)
