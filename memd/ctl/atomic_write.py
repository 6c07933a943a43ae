"""Replaces files atomically, including files of other programs."""

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
    """A file could not be written; its previous content is unchanged."""


class Overtaken(MemdError):
    """Another program has written the file meanwhile; its content was kept."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} was written by another program at the same time; it was left alone")


def write_text(file: Path, text: str, *, over: bytes | None = None) -> None:
    """Replace the content of a file atomically, in UTF-8 with unchanged line ends; it is on disk when this returns.

    An existing file keeps its mode, owner and access control list; a new one is private to its owner (0600),
    as are directories created for it (0700). A symbolic link stays, and its target is replaced.

    Args:
        file: The path; it may be a symbolic link, or not exist yet.
        text: The new content.
        over: The content that the file must have until the last moment (b"": empty or missing); None: any.

    Raises:
        NotWritten: the file cannot be written.
        Overtaken: its content is not `over`.
    """
    # Encoded first, so that text that cannot be encoded leaves no temporary file.
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
    """Create a directory, and its missing parents, for the owner only."""
    if not directory.exists():
        # One by one: mkdir with parents applies the mode to the last directory only.
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
                # Only root may change the owner of a file; other users become the owner of what they replace.
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
        # The previous content is compared once more: another program may have written it since.
        if made.read_bytes() == over:
            made.unlink()
            return
        exchange(made, target)
        if made.stat().st_ino != own:  # that program has written again in between: its latest text stays
            exchange(made, target)
        raise Overtaken(target)
    try:
        os.link(made, target)
    except FileExistsError:  # the system cannot exchange files
        if not over and target.stat().st_size:
            raise Overtaken(target) from None
        made.replace(target)
    except OSError:  # the file system has no hard links
        made.replace(target)
    else:
        made.unlink()


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files in one step; False if one is missing, or the system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        swap = getattr(_libc, "renamex_np", None)
        return swap is not None and swap(*names, _EXCHANGE) == 0
    swap = getattr(_libc, "renameat2", None)
    return (
        swap is not None and swap(_WORKING_DIRECTORY, names[0], _WORKING_DIRECTORY, names[1], _EXCHANGE) == 0
    )


_held: set[tuple[int, int]] = set()  # directories that this process has locked


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Lock a directory against other memd-ctl processes, if its file system supports locks. May be nested."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(descriptor)
        own = {(status.st_dev, status.st_ino)} - _held
        if own:  # else the process would wait for itself
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
    """Check that the file still has this content; a write after this check is detected by the exchange.

    Raises:
        Overtaken: it has other content.
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
    """Copy mode and access control list from one file to another.

    With a list, the group bits of the mode are the most that any entry of the list may have, and not the
    group's rights: without its list the file would be open to its group.
    """
    acl = _acl(target)
    if acl is None:
        if _acl(descriptor) is not None:  # inherited from the directory by every new file
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
    """Sync a directory, so that a new name in it lasts, if the file system can and the directory is readable."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_MOST_BYTES = 256 << 20
_TIMES = 5


def change_file(file: Path, edit: Callable[[str], str], *, name: str, by_hand: str) -> bool:
    """Replace a file's text by an edited one; return whether it has changed. A missing file counts as empty.

    Args:
        file: The file to change. A symbolic link stays, and so does the mode.
        edit: Returns the new text for an old one, which may be the same.
        name: The file's name in messages.
        by_hand: What the user can do if the edit fails, for the hint.

    Raises:
        Failed: the file cannot be read, understood or written; it is unchanged.
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
        # The program that owns it may be running, and write it, too.
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
