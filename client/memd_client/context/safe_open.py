"""Opens files of a workspace component by component, so that no symlink leads out of it.

The path of the workspace may contain symlinks, since its owner named it. Below it, a symlink could lead
anywhere: a note that is one would be written outside, and AGENTS.md could be another name of MEMORY.md. One
kind is followed for reading, since it is common: AGENTS.md as a symlink to CLAUDE.md beside it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from memd_client.copied_names import original_name

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for a writer.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegular(OSError):
    """The file is a directory, a device or a FIFO, which contains no text."""


class SymlinkRefused(OSError):
    """A symlink that is not followed: out of the workspace, to another symlink, or to a file that is not Markdown."""


class Private(OSError):
    """The file is private to the owner, whatever its name."""


Identity = tuple[int, int]
"""Device and inode."""


@contextmanager
def opened_workspace(workspace: str | os.PathLike[str]) -> Iterator[int]:
    """Open the workspace; yield its descriptor.

    Raises:
        OSError: it does not exist, or cannot be opened.
    """
    descriptor = os.open(Path(workspace).expanduser(), _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_directory(above: int, name: str) -> Iterator[int]:
    """Open a directory in an open one; yield its descriptor.

    Raises:
        OSError: it does not exist, or is a symlink.
    """
    descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(directory: int, name: str, flags: int, mode: int = 0o600) -> Iterator[int]:
    """Open a regular file in an open directory; yield its descriptor.

    Raises:
        OSError: it does not exist, cannot be opened with these flags, or is a symlink.
        NotRegular: it is not a regular file.
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
    """Open a regular file in an open directory, or the Markdown file below it that a symlink leads to; yield its descriptor.

    The target of a symlink is opened component by component, following no other symlink: the file is below
    the directory even if something changes meanwhile.

    Args:
        base: The directory.
        name: The file's name.
        private: Files and directories that are not read under any name.
        private_names: Case-folded names to or through which no symlink is followed, wherever they are, nor to a copy of such a file.

    Raises:
        OSError: the file does not exist, or cannot be opened.
        SymlinkRefused: it is a symlink that is not followed.
        NotRegular: it is not a regular file.
        Private: it is private, or is in a private directory.
    """
    *directories, last = way = _way(base, name)
    if way != (name,) and any(original_name(each).casefold() in private_names for each in way):
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
                raise _symlink_refused() from failure
            raise
        _check(file, private)
        yield file


def _way(base: int, name: str) -> tuple[str, ...]:
    """Return the components to open from a directory: the file's name, or those of a symlink's target."""
    try:
        target = os.readlink(name, dir_fd=base)
    except OSError:  # not a symlink; opening it reports other errors
        return (name,)
    way = PurePosixPath(target)
    if way.is_absolute() or ".." in way.parts or way.suffix.lower() != ".md":
        raise _symlink_refused()
    return way.parts


def _check(descriptor: int, private: frozenset[Identity]) -> None:
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in private:
        raise _private()


def _private() -> Private:
    return Private("it is private, under another name")


def _symlink_refused() -> SymlinkRefused:
    return SymlinkRefused("it is a symlink, and does not lead straight to a Markdown file of the workspace")
