"""Writing a file at once or not at all, also one that belongs to another program."""

import contextlib
import ctypes
import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from memd.ctl.failures import BUSY, Failed
from memd.ctl.integrations.json_edit import NotEditable
from memd.errors import MemdError

_ACL = "system.posix_acl_access"
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2), and RENAME_SWAP of renamex_np(2)
_WORKING_DIRECTORY = -100  # AT_FDCWD
_libc = ctypes.CDLL(None)


class NotWritten(MemdError):
    """A file could not be written; what stood there before still does."""


class Overtaken(MemdError):
    """Somebody else has written the file meanwhile; it is as they wrote it."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} was written by another program at the same time; it was left alone")


def write_text(file: Path, text: str, *, over: bytes | None = None) -> None:
    """Put a text, in UTF-8 and with its line ends as they are, in place of a file; it is on the disk when this returns.

    A file that is there keeps its mode, owner and access control list; a new one is for its owner alone (0600), as is a directory made
    for it (0700). A symbolic link stays, and what it leads to is replaced.

    Args:
        file: Where.
        text: What.
        over: What must stand there until the last moment, or nothing must (b"" means either); None: whatever does.

    Raises:
        NotWritten: it cannot be done.
        Overtaken: something else stands there.
    """
    # Text first: what cannot be encoded must not leave a temporary file.
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise NotWritten(f"{file} was left alone: {text[error.start : error.end]!a} is no UTF-8") from error
    target = Path(os.path.realpath(file))
    try:
        make_private(target.parent)
        old = _find_status(target)
        if old is not None and not stat.S_ISREG(old.st_mode):
            raise NotWritten(f"{file} is not a regular file; it was left alone")
        with alone(target.parent):
            _replace(target, data, old, over)
    except OSError as error:
        raise NotWritten(f"{file} cannot be written: {error.strerror}") from error


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for the owner alone."""
    if not directory.exists():
        # One by one: mkdir with parents gives its mode to the last alone.
        make_private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        _sync_directory(directory.parent)


def _find_status(target: Path) -> os.stat_result | None:
    try:
        return target.lstat()
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes, old: os.stat_result | None, over: bytes | None) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # 0600
    try:
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor has no Path
            if old is not None:
                # Only root may give a file away; anybody else becomes the owner of what he replaces.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
                _give_rights(descriptor, target, stat.S_IMODE(old.st_mode))
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        _put_in_place(Path(name), target, over)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _put_in_place(made: Path, target: Path, over: bytes | None) -> None:
    if over is None:
        made.replace(target)
        return
    require(target, over)
    own = made.stat().st_ino
    if exchange(made, target):
        # What stood there until now is looked at once more: another program may have written it since.
        if made.read_bytes() == over:
            made.unlink()
            return
        exchange(made, target)
        if made.stat().st_ino != own:  # that program has written again in between: its newest text stays
            exchange(made, target)
        raise Overtaken(target)
    try:
        os.link(made, target)
    except FileExistsError:  # this system cannot exchange files
        if not over and target.stat().st_size:
            raise Overtaken(target) from None
        made.replace(target)
    except OSError:  # a file system without hard links
        made.replace(target)
    else:
        made.unlink()


def exchange(one: Path, other: Path) -> bool:
    """Give each of two files the name of the other in one step; False where one is missing, or the system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        swap = getattr(_libc, "renamex_np", None)
        return swap is not None and swap(*names, _EXCHANGE) == 0
    swap = getattr(_libc, "renameat2", None)
    return (
        swap is not None and swap(_WORKING_DIRECTORY, names[0], _WORKING_DIRECTORY, names[1], _EXCHANGE) == 0
    )


_held: set[tuple[int, int]] = set()  # directories that this process is alone in


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Let no other memd-ctl replace a file of the directory meanwhile, where its file system knows locks. May be nested."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(descriptor)
        own = {(status.st_dev, status.st_ino)} - _held
        if own:  # else it would wait for itself
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        _held.update(own)
        try:
            yield
        finally:
            _held.difference_update(own)
    finally:
        os.close(descriptor)


def require(target: Path, over: bytes) -> None:
    """Check that the file still holds these bytes; what is written after this check is found by the exchange.

    Raises:
        Overtaken: it holds something else.
    """
    try:
        before = target.lstat()
        found = target.read_bytes()
        after = target.lstat()
    except FileNotFoundError:
        if over:
            raise Overtaken(target) from None
        return
    stamps = [(one.st_ino, one.st_mtime_ns, one.st_ctime_ns) for one in (before, after)]
    if found != over or stamps[0] != stamps[1]:
        raise Overtaken(target)


def _give_rights(descriptor: int, target: Path, mode: int) -> None:
    """Let a file have the mode and the access control list of another.

    With a list the group's part of a mode is what anybody named in the list may have at most, and not what the group may:
    without its list the file would be open to its group.
    """
    acl = _acl(target)
    if acl is None:
        if _acl(descriptor) is not None:  # of the directory, for each file that is made there
            os.removexattr(descriptor, _ACL)
        os.fchmod(descriptor, mode)
        return
    os.fchmod(descriptor, mode & ~stat.S_IRWXG)
    with contextlib.suppress(OSError):
        os.setxattr(descriptor, _ACL, acl)


def _acl(file: Path | int) -> bytes | None:
    if sys.platform != "linux":
        return None
    try:
        return os.getxattr(file, _ACL)
    except OSError:
        return None


def _sync_directory(directory: Path) -> None:
    """Make a new name in it last, where the file system can, and the directory may be read."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_MOST_BYTES = 256 << 20
_TIMES = 5


def change_file(file: Path, edit: Callable[[str], str], *, name: str, by_hand: str) -> bool:
    """Put the edited text in place of a file; whether anything changed. A missing file is an empty text.

    Args:
        file: What to change. A symbolic link stays, and so does the mode.
        edit: The new text of an old one; the same text where nothing has to change.
        name: What the file is called in messages.
        by_hand: What to do where it cannot be done here, for a hint.

    Raises:
        Failed: the file cannot be read, understood or written; it is as it was.
    """
    for _ in range(_TIMES):
        old = _read(file, name, by_hand)
        try:
            text = old.decode()
            new = edit(text)
        except (NotEditable, UnicodeDecodeError) as error:
            raise Failed("not_changed", f"{name} was left alone: {error}.", by_hand) from error
        if new == text:
            return False
        # Its owner may be running, and writes it as well.
        with suppress(Overtaken):
            _write(file, new, old, by_hand)
            return True
    raise Failed(
        "busy", f"{name} is being written all the time; it was left alone.", "Try again.", exit_code=BUSY
    )


def _read(file: Path, name: str, by_hand: str) -> bytes:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Failed("not_changed", f"{name} is not a regular file; it was left alone.", by_hand)
        if status.st_size > _MOST_BYTES:
            raise Failed(
                "not_changed", f"{name} is too large to be a configuration; it was left alone.", by_hand
            )
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise Failed("not_changed", f"{name} cannot be read: {error.strerror}.", by_hand) from error


def _write(file: Path, text: str, over: bytes, by_hand: str) -> None:
    try:
        write_text(file, text, over=over)
    except NotWritten as error:
        raise Failed("not_changed", f"{error}.", by_hand) from error
