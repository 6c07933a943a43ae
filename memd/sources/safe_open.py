"""Opens source files below their root, one component after the other, and follows no symlink. All source files are opened here.

A swap of files between a check and an open can defeat the check. So nothing is checked by path: each directory is opened
relative to the one before, and the open file is the requested one, or the open fails.
"""

import ctypes
import errno
import os
import stat
import struct
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.errors import MemdError, TransientError
from memd.text.memory_paths import Parts, nfc

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


class FileMissing(SourceError):
    """The file does not exist, or no longer."""


class NoRoot(FileMissing):
    """The directory of the root does not exist, or is a symlink now, or is behind one: the file may still exist elsewhere."""


class OutsideFence(SourceError):
    """The path leaves the root, or the file is not a regular one. Clients get the same answer as for FileMissing."""


class FileUnreadable(SourceError):
    """The file exists, and cannot be read: permissions, or a failing disk."""


class FileHeld(FileUnreadable):
    """Another program holds a lease on the file, which ends within a minute."""


class UnexpectedFailure(FileUnreadable):
    """An unforeseen error of memd at this file: a defect, which must not affect other files."""


class ProcessExhausted(TransientError):
    """The process has no free descriptor or memory to open a file."""


def refusal(failure: OSError, path: str) -> MemdError:
    """Return the SourceError, or ProcessExhausted, for a failed system call on a source file."""
    reason = os.strerror(failure.errno) if failure.errno else str(failure)
    if failure.errno in _EXHAUSTED:
        return ProcessExhausted(f"cannot open source files: {reason}")
    if failure.errno in _ABSENT:
        return FileMissing(path, reason)
    if failure.errno in _REFUSED:
        return OutsideFence(path, reason)
    return FileUnreadable(path, reason)


@contextmanager
def root_opened(directory: Path, passing: Callable[[Path, int], None] | None = None) -> Iterator[int]:
    """Open a root, so that files below it can be opened; the descriptor is closed at the end of the block.

    The root was resolved when it was configured. A symlink on its path was put there later, and is not followed; otherwise a
    program that may write above the root could move the root.

    Args:
        directory: Absolute, as it was resolved.
        passing: Called with each directory on the path, including the root, and its descriptor, which is closed after the call.

    Raises:
        NoRoot: there is no such directory, or a symlink is on the path.
        FileUnreadable: it cannot be entered.
        ProcessExhausted: no more descriptors.
    """
    try:
        descriptor = _descend(directory, passing)
    except OSError as failure:
        error = refusal(failure, str(directory))
        if isinstance(error, FileMissing | OutsideFence):
            raise NoRoot(error.path, error.reason) from failure
        raise error from failure
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
        FileMissing: there is no such file.
        NoRoot: the root is not where it was configured.
        OutsideFence: a symlink on the path below the root, a name that leads elsewhere, or not a regular file.
        FileUnreadable: no permission, or a failing disk.
        ProcessExhausted: no more descriptors.
    """
    shown = str(root.joinpath(*parts)) if parts else str(root)
    if not parts or not all(map(_is_plain, parts)):
        raise OutsideFence(shown, "not a path below the root")
    with root_opened(root) as base:
        return _open_below(base, parts, shown)


@contextmanager
def directory_inside(root: Path, parts: Parts) -> Iterator[int]:
    """Open a directory below a root without following symlinks; the descriptor is closed at the end of the block.

    Args:
        root: The resolved directory of the root.
        parts: The path below the root, as the disk spells it; empty: the root itself.

    Raises:
        FileMissing, NoRoot, OutsideFence, FileUnreadable, ProcessExhausted: as open_inside has them.
    """
    shown = str(root.joinpath(*parts))
    if not all(map(_is_plain, parts)):
        raise OutsideFence(shown, "not a path below the root")
    with root_opened(root) as base:
        at = os.dup(base)
        try:
            for part in parts:
                above, at = at, -1
                try:
                    at = os.open(part, _PASS, dir_fd=above)
                except OSError as failure:
                    raise refusal(failure, shown) from failure
                finally:
                    os.close(above)
            yield at
        finally:
            if at >= 0:
                os.close(at)


def _open_below(above: int, parts: Parts, shown: str) -> int:
    """Open a file below an open directory. If two directories differ only in their Unicode form, the file may be in either."""
    first: SourceError | None = None
    try:
        for name in spellings(above, parts[0]):
            try:
                if len(parts) == 1:
                    return _open_file(above, name, shown)
                inner = os.open(name, _PASS, dir_fd=above)
                try:
                    return _open_below(inner, parts[1:], shown)
                finally:
                    os.close(inner)
            except OSError as failure:
                error = refusal(failure, shown)
                if not isinstance(error, SourceError):
                    raise error from failure
                first = first or error
            except SourceError as error:
                first = first or error
    except OSError as failure:
        raise refusal(failure, shown) from failure
    raise first or FileMissing(shown, os.strerror(errno.ENOENT))


def open_directory(above: int, name: str) -> int:
    """Open a directory for listing, by its name in an open one.

    Raises:
        OSError: it is not a directory any more, or cannot be listed.
    """
    return os.open(name, _LIST, dir_fd=above)


def on_disk(directory: int, name: str) -> str:
    """Return the spelling of a name on the disk: some file systems keep the decomposed Unicode form.

    Args:
        directory: A descriptor of the directory.
        name: In any form. The NFC spelling wins where both exist.

    Returns:
        The name itself if the directory has no spelling of it.

    Raises:
        OSError: the directory cannot be searched.
    """
    return next(spellings(directory, name), name)


def is_spelled_so(directory: int, name: str) -> bool:
    """Return whether a file has exactly this name: if the file system ignores case, other spellings lead to it as well.

    The directory is listed only if another spelling leads to the same file.

    Args:
        directory: A descriptor of the directory.
        name: As on_disk gives it.

    Raises:
        OSError: nothing is there, or the directory cannot be searched.
    """
    other = "".join(swapped if len(swapped := letter.swapcase()) == 1 else letter for letter in name)
    if other == name:
        return True
    try:
        same = os.stat(other, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return True
    if not os.path.samestat(same, os.stat(name, dir_fd=directory, follow_symlinks=False)):
        return True
    listed = open_directory(directory, ".")
    try:
        with os.scandir(listed) as entries:
            return any(nfc(entry.name) == nfc(name) for entry in entries)
    finally:
        os.close(listed)


def spellings(directory: int, name: str) -> Iterator[str]:
    """Return all spellings of a name in a directory: NFC, then NFD, then any other Unicode form.

    The directory is listed only if those two do not suffice.

    Raises:
        OSError: the directory cannot be searched.
    """
    if name.isascii():
        yield name
        return
    wanted = nfc(name)
    usual = dict.fromkeys((wanted, unicodedata.normalize("NFD", name)))
    is_there = False
    for spelling in usual:
        try:
            os.stat(spelling, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            continue
        is_there = True
        yield spelling
    try:
        listed = open_directory(directory, ".")
    except PermissionError:
        if is_there:
            return
        raise
    try:
        with os.scandir(listed) as entries:
            others = [
                entry.name for entry in entries if entry.name not in usual and nfc(entry.name) == wanted
            ]
    finally:
        os.close(listed)
    yield from sorted(others)


def _descend(directory: Path, passing: Callable[[Path, int], None] | None) -> int:
    """Open a directory, component by component from "/", and return the descriptor."""
    at = os.open(directory.parts[0], _PASS)
    try:
        for depth, part in enumerate(directory.parts[1:], start=2):
            above = at
            at = os.open(part, _PASS, dir_fd=above)
            os.close(above)
            if passing is not None:
                passing(Path(*directory.parts[:depth]), at)
    except BaseException:
        os.close(at)
        raise
    return at


def _open_file(directory: int, name: str, shown: str) -> int:
    # Its type is checked before it is opened: to open a device, or a FIFO that a program waits on, has effects.
    _require_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), shown)
    try:
        descriptor = os.open(name, _READ, dir_fd=directory)
    except BlockingIOError as failure:
        raise FileHeld(shown, "another program holds it") from failure
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


# From linux/stat.h and linux/fcntl.h.
_AT_EMPTY_PATH = 0x1000
_ATTR_MOUNT_ROOT = 0x2000
_STATX_BYTES = 256
_ATTRIBUTES = struct.Struct("8xQ40xQ")  # stx_attributes, and stx_attributes_mask: which of them are known

statx = getattr(ctypes.CDLL(None), "statx", None)


def is_mount_point(directory: int) -> bool:
    """Return whether a directory is a mount point.

    A subvolume of btrfs or bcachefs has its own device number, but is no mount point; a bind mount may have none, but is one.
    So the device number decides only if the system has no better answer (Linux before 5.8, macOS).

    Args:
        directory: An open descriptor; O_PATH is enough.
    """
    if statx is not None:
        answer = ctypes.create_string_buffer(_STATX_BYTES)
        if statx(directory, b"", _AT_EMPTY_PATH, 0, answer) == 0:
            attributes, known = _ATTRIBUTES.unpack_from(answer)
            if known & _ATTR_MOUNT_ROOT:
                return bool(attributes & _ATTR_MOUNT_ROOT)
    try:
        above = os.stat("..", dir_fd=directory)
    except OSError:
        return False  # it may be listed and not entered: nothing below it is found anyway
    return os.fstat(directory).st_dev != above.st_dev
