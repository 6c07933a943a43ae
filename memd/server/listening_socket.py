"""The socket that clients connect to."""

import contextlib
import errno
import os
import re
import secrets
import socket
import stat
import sys
import zlib
from collections.abc import MutableMapping
from pathlib import Path

from memd.errors import FatalError
from memd.server import sock_diag

BACKLOG = 512
_NAMES = 8  # to try, of 16 million
_FIRST_GIVEN = 3  # SD_LISTEN_FDS_START


class SocketUnusable(FatalError):
    """The socket cannot be put where it should be."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"cannot listen on {path}: {why}. Set MEMD_SOCKET to another path.", exit_code=78)


class GivenSocketUnusable(FatalError):
    """What the service manager has opened is not the socket of this daemon."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"the service manager was to listen on {path} for memd, but {what}. `memd-ctl service install` writes units "
            "that fit; in units of your own, ListenStream= must be the path that memd is given with --socket or MEMD_SOCKET.",
            exit_code=78,
        )


def given(environ: MutableMapping[str, str], path: Path) -> socket.socket | None:
    """The socket that a service manager has opened for this process; None where it has opened none.

    The protocol is that of sd_listen_fds(3). The path belongs to the manager: it must be neither removed nor replaced.

    Args:
        environ: Of the process; the variables are taken out, so that no child process takes them for its own.
        path: Where clients look for the daemon.

    Raises:
        GivenSocketUnusable: it is another socket than the one at the path, or not one that listens.
    """
    meant_for, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if meant_for != str(os.getpid()) or count in {"", "0"}:
        return None
    if count != "1":
        raise GivenSocketUnusable(path, f"it has passed {count} sockets instead of one")
    try:
        passed = socket.socket(fileno=_FIRST_GIVEN)
    except OSError as error:
        raise GivenSocketUnusable(path, f"what it has passed is no socket ({error.strerror})") from error
    try:
        _check_given(passed, path)
    except BaseException:
        passed.close()
        raise
    passed.set_inheritable(False)
    passed.setblocking(False)
    return passed


def _check_given(passed: socket.socket, path: Path) -> None:
    if passed.family != socket.AF_UNIX or passed.type != socket.SOCK_STREAM:
        raise GivenSocketUnusable(path, "it listens on something that is no Unix stream socket")
    if not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise GivenSocketUnusable(
            path, "it has passed a socket that does not listen (Accept=yes is of no use here)"
        )
    address = os.fsdecode(passed.getsockname())
    there = Path(address)
    # An abstract address begins with a NUL. The directory may be named by way of a link.
    is_same = there.is_absolute() and there.name == path.name
    if not is_same or os.path.realpath(there.parent) != os.path.realpath(path.parent):
        raise GivenSocketUnusable(path, f"it listens on {address}".replace("\0", "@"))


_ADDRESS_BYTES = 108  # of an address of Linux, with the NUL at its end


def bind(path: Path) -> socket.socket:
    """A listening socket at a path, mode 0600, taking over a stale one.

    The socket is bound and listening under another name before it is renamed: whoever sees the path can connect.
    Call it with the lock of the path held.

    Raises:
        SocketUnusable: something that is not a socket is there, another process listens there, the directory
            cannot be written, or the process may open no more files just now.
    """
    try:
        is_free = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        is_free = True
    except OSError as error:
        raise SocketUnusable(path, error.strerror or str(error)) from error
    if not is_free:
        raise SocketUnusable(path, "something that is not a socket is there")
    # The lock is held, so it is no daemon. To connect would tell, too, but it would have a manager start one.
    if sock_diag.is_listened_on(path):
        raise SocketUnusable(
            path,
            "another process listens there. If that is a service manager, have it start memd (memd-ctl service start), "
            "or stop listening (memd-ctl service stop)",
        )
    _clear_up(path)
    try:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:  # there are no descriptors left
        raise SocketUnusable(path, error.strerror or str(error)) from error
    temporary: Path | None = None
    try:
        temporary = _bound(listening, path)
        listening.listen(BACKLOG)
        listening.setblocking(False)
        temporary.rename(path)
    except OSError as error:
        listening.close()
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise SocketUnusable(path, error.strerror or str(error)) from error
    return listening


def _bound(listening: socket.socket, path: Path) -> Path:
    """Bind to a name beside the path that nobody can have taken on purpose, and that is nobody's but ours.

    In a directory that others may write to, a name that can be guessed would let them put a link or a directory there
    first. bind(2) makes the file, or fails; nothing is removed, and nothing is done to it by its name afterwards.

    Raises:
        OSError: it cannot be made there.
    """
    # Nobody may connect between bind and chmod, so there is no chmod: on Linux the file takes the mode of the socket,
    # elsewhere the umask makes it private. Other threads may be making directories, so it is not touched without need.
    if sys.platform == "linux":
        os.fchmod(listening.fileno(), 0o600)
    mask = None if sys.platform == "linux" else os.umask(0o177)
    directory = None if sys.platform != "linux" else os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        for attempt in range(1, _NAMES + 1):
            temporary = path.with_name(f"{prefix_of(path)}{secrets.token_hex(3)}")
            try:
                listening.bind(_address(temporary, directory))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or attempt == _NAMES:
                    raise
            else:
                return temporary
        raise AssertionError  # the last attempt has returned or raised
    finally:
        if mask is not None:
            os.umask(mask)
        if directory is not None:
            os.close(directory)


def _address(temporary: Path, directory: int | None) -> str:
    """What to bind to: a path that has room in an address, though its name is longer than the one that the socket gets."""
    if directory is None or len(os.fsencode(temporary)) < _ADDRESS_BYTES:
        return str(temporary)
    return f"/proc/self/fd/{directory}/{temporary.name}"


def prefix_of(path: Path) -> str:
    """What the other names of a socket begin with; as long as a usual name, with what comes after it."""
    return f".{zlib.crc32(os.fsencode(path.name)) & 0xFF:02x}"


def _clear_up(path: Path) -> None:
    """Take away what a daemon of the same path has left that was killed before it could rename its socket.

    With the lock of the path held, nobody is about to rename one.
    """
    left = re.compile(re.escape(prefix_of(path)) + "[0-9a-f]{6}")
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if left.fullmatch(entry.name):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid():
                    path.with_name(entry.name).unlink()


class ListeningSocket:
    """The socket that the daemon listens on: its own at a path, or one that a service manager has opened."""

    def __init__(self, path: Path, given: socket.socket | None) -> None:
        """Begin to listen.

        Args:
            path: Where clients look for the daemon.
            given: The manager's, whose path is left alone; None: there is none.

        Raises:
            SocketUnusable: as bind does.
        """
        self._path = path
        self._is_own = given is None
        self.socket = bind(path) if given is None else given
        self._identity = _identity(path)

    def is_gone(self) -> bool:
        """Whether the file of our own socket is gone, so that nobody finds it; not where another is in its place."""
        return self._is_own and _identity(self._path) is None

    def bind_again(self) -> socket.socket:
        """Listen on a new socket at the path; the old one is the caller's to close.

        Raises:
            SocketUnusable: as bind does.
        """
        with contextlib.suppress(OSError):  # what is wrong with it is told by bind
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket = bind(self._path)
        self._identity = _identity(self._path)
        return self.socket

    def remove(self) -> None:
        """Take the file of our own socket away. What another has put there meanwhile stays."""
        if self._is_own and self._identity is not None and _identity(self._path) == self._identity:
            with contextlib.suppress(OSError):
                self._path.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of what is at a path; None: nothing is, or nobody tells."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return status.st_dev, status.st_ino
    return None
