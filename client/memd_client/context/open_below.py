"""Opening what lies in a workspace: one component after the other, so that no symlink leads out of it.

The workspace itself may be reached by symlinks, since its owner named it. Below it, a symlink could lead anywhere: a
note that is one would be written outside, and AGENTS.md could be another name of MEMORY.md. One kind is read all the
same, since many people have it: AGENTS.md that is another name of CLAUDE.md beside it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for whoever is at its other end.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegular(OSError):
    """What is there is a directory, a device, a FIFO: nothing that holds text."""


class LeadsAway(OSError):
    """A symlink that is not followed: out of the workspace, to another symlink, or to what is not Markdown."""


class Private(OSError):
    """What is there is for the owner's eyes, whatever its name."""


Identity = tuple[int, int]
"""Device and inode."""


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


@contextmanager
def opened_to_read(
    base: int, name: str, private: frozenset[Identity], private_names: frozenset[str] = frozenset()
) -> Iterator[int]:
    """A descriptor of a regular file in an open directory, or of the Markdown file below it that a symlink there names.

    The way of a symlink is walked anew, a component at a time and following no other symlink: what is opened lies below
    the directory, whoever changes something meanwhile.

    Args:
        base: The directory.
        name: Of the file.
        private: Files and directories that are not read, by whatever name.
        private_names: Case-folded, that a symlink is not followed to or through, wherever they lie.

    Raises:
        OSError: it is not there, or cannot be opened.
        LeadsAway: it is a symlink, and none of that kind.
        NotRegular: it is something else than a file.
        Private: it is private, or lies in a directory that is.
    """
    *directories, last = way = _way(base, name)
    if way != (name,) and any(each.casefold() in private_names for each in way):
        raise _private()
    with ExitStack() as above:
        directory = base
        try:
            for each in directories:
                directory = above.enter_context(opened_directory(directory, each))
                _check(directory, private)
            file = above.enter_context(opened_file(directory, last, os.O_RDONLY))
        except OSError as failure:
            if failure.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
                raise _leads_away() from failure
            raise
        _check(file, private)
        yield file


def _way(base: int, name: str) -> tuple[str, ...]:
    """The names to walk by from an open directory: that of a file, or those of a symlink's target."""
    try:
        target = os.readlink(name, dir_fd=base)
    except OSError:  # no symlink; opening it tells what else is wrong
        return (name,)
    way = PurePosixPath(target)
    if way.is_absolute() or ".." in way.parts or way.suffix.lower() != ".md":
        raise _leads_away()
    return way.parts


def _check(descriptor: int, private: frozenset[Identity]) -> None:
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in private:
        raise _private()


def _private() -> Private:
    return Private("it is private, under another name")


def _leads_away() -> LeadsAway:
    return LeadsAway("it is a symlink, and does not lead straight to a Markdown file of the workspace")
