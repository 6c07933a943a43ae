"""The one way to open a source file: below its root, one component after the other, following no symlink.

A check followed by an open can be cheated by a swap in between. Here nothing is checked by path: each directory is
opened relative to the one before, so what is open is what was asked for, or the open fails.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.errors import MemdError, TransientError
from memd.paths import Parts, nfc

# Enough to pass through a directory. Where the system has O_PATH, that needs no permission to list it.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO that took the place of the file would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_REFUSED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO, errno.EINVAL})
_ABSENT = frozenset({errno.ENOENT, errno.ENAMETOOLONG, errno.EILSEQ})


class SourceError(MemdError):
    """One source file cannot be read; the others can.

    Args:
        path: The file, as the caller named it.
        reason: Why, in a few words.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Missing(SourceError):
    """There is no such file, or no longer."""


class OutsideFence(SourceError):
    """The way to it leaves the root, or it is no regular file. Whoever asks is told what Missing says."""


class Unreadable(SourceError):
    """It is there, and the system will not give it: permissions, or a failing disk."""


class Unexpected(Unreadable):
    """memd fails at it as nobody foresaw: a defect of memd, which must not be the trouble of any other file."""


class Exhausted(TransientError):
    """The process has no more files or memory to open anything with."""


def refusal(failure: OSError, path: str) -> MemdError:
    """The error of ours that a failed system call on a source file amounts to."""
    reason = os.strerror(failure.errno) if failure.errno else str(failure)
    if failure.errno in _EXHAUSTED:
        return Exhausted(f"cannot open source files: {reason}")
    if failure.errno in _ABSENT:
        return Missing(path, reason)
    if failure.errno in _REFUSED:
        return OutsideFence(path, reason)
    return Unreadable(path, reason)


@contextmanager
def root_opened(directory: Path) -> Iterator[int]:
    """A descriptor of a root, good for opening what lies below.

    The root was resolved when it was configured. A symlink met on the way now was put there later: it is not
    followed either, or whoever may write above a root could move it.

    Raises:
        SourceError: there is no such directory, or it cannot be entered.
        Exhausted: no more descriptors.
    """
    descriptor = _descend(None, directory.parts, str(directory))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_inside(root: Path, parts: Parts) -> int:
    """Open a regular file below a root for reading.

    Args:
        root: The resolved directory of the root.
        parts: The path below it. A part that is not on the disk as given may be there in another Unicode form.

    Returns:
        A descriptor the caller closes.

    Raises:
        Missing: nothing is there.
        OutsideFence: a symlink on the way, a name that leads elsewhere, or no regular file.
        Unreadable: no permission, or a failing disk.
        Exhausted: no more descriptors.
    """
    shown = str(root.joinpath(*parts)) if parts else str(root)
    if not parts or not all(map(_is_plain, parts)):
        raise OutsideFence(shown, "not a path below the root")
    with root_opened(root) as base:
        above = _descend(base, parts[:-1], shown)
        try:
            return _open_file(above, on_disk(above, parts[-1]), shown)
        except OSError as failure:
            raise refusal(failure, shown) from failure
        finally:
            os.close(above)


def open_directory(above: int, name: str) -> int:
    """Open a directory for listing, by its name in an open one.

    Raises:
        OSError: it is no directory any longer, or cannot be listed.
    """
    return os.open(name, _LIST, dir_fd=above)


def on_disk(directory: int, name: str) -> str:
    """How the disk spells a name: some file systems keep the decomposed Unicode form.

    Args:
        directory: A descriptor of the directory.
        name: In any form. The NFC spelling wins where both exist.

    Returns:
        The name itself where no spelling of it is there.

    Raises:
        OSError: the directory cannot be searched.
    """
    if name.isascii():
        return name
    wanted = nfc(name)
    try:
        os.stat(wanted, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        pass
    else:
        return wanted
    listed = open_directory(directory, ".")
    try:
        with os.scandir(listed) as entries:
            return min((entry.name for entry in entries if nfc(entry.name) == wanted), default=name)
    finally:
        os.close(listed)


def _descend(base: int | None, parts: Parts, shown: str) -> int:
    """A new descriptor of the directory at parts below base; with no base, parts begin with the root of the disk."""
    try:
        if base is None:
            at, parts = os.open(parts[0], _PASS), parts[1:]
        else:
            at = os.open(".", _PASS, dir_fd=base)
        for part in parts:
            above = at
            try:
                at = os.open(part if base is None else on_disk(above, part), _PASS, dir_fd=above)
            finally:
                os.close(above)
    except OSError as failure:
        raise refusal(failure, shown) from failure
    return at


def _open_file(directory: int, name: str, shown: str) -> int:
    # Looked at before it is opened: opening a device, or a FIFO somebody waits on, is an act in itself.
    _require_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), shown)
    descriptor = os.open(name, _READ, dir_fd=directory)
    try:
        _require_regular(os.fstat(descriptor), shown)
    except MemdError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OutsideFence(shown, "not a regular file")


def _is_plain(part: str) -> bool:
    if part in {"", ".", ".."} or "/" in part or "\0" in part:
        return False
    try:
        os.fsencode(part)
    except UnicodeEncodeError:
        return False
    return True
