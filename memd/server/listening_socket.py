"""The Unix socket that clients connect to."""

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
_NAMES = 8  # attempts to find a free name, of 16 million
_FIRST_GIVEN = 3  # SD_LISTEN_FDS_START


class SocketUnusable(FatalError):
    """The socket cannot be created at its path."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"cannot listen on {path}: {why}. Set MEMD_SOCKET to another path.", exit_code=78)


class GivenSocketUnusable(FatalError):
    """The socket passed by the service manager is not this daemon's."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"the service manager was to listen on {path} for memd, but {what}. `memd-ctl service install` writes units "
            "that fit; in units of your own, ListenStream= must be the path that memd is given with --socket or MEMD_SOCKET.",
            exit_code=78,
        )


def given(environ: MutableMapping[str, str], path: Path) -> socket.socket | None:
    """Return the socket that a service manager has opened for this process, or None if there is none.

    The protocol is that of sd_listen_fds(3). The path belongs to the service manager: it must be neither
    removed nor replaced.

    Args:
        environ: The process's environment; the variables are removed, so that no child process uses them.
        path: The path at which clients connect.

    Raises:
        GivenSocketUnusable: the socket has another path, or does not listen.
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
    # An abstract address begins with a NUL. The directory may be given through a symbolic link.
    is_same = there.is_absolute() and there.name == path.name
    if not is_same or os.path.realpath(there.parent) != os.path.realpath(path.parent):
        raise GivenSocketUnusable(path, f"it listens on {address}".replace("\0", "@"))


_ADDRESS_BYTES = 108  # size of sun_path on Linux, with the NUL at its end


def bind(path: Path) -> socket.socket:
    """Create a listening socket at a path, mode 0600, replacing a stale one.

    The socket is bound and listening under another name before it is renamed, so that any client that sees
    the path can connect. The caller must hold the path's lock.

    Raises:
        SocketUnusable: the path is not a socket, another process listens there, the directory cannot be
            written, or the process has no descriptors left.
    """
    try:
        is_free = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        is_free = True
    except OSError as error:
        raise SocketUnusable(path, error.strerror or str(error)) from error
    if not is_free:
        raise SocketUnusable(path, "something that is not a socket is there")
    # The lock is held, so a listener is no daemon. A test connection would show that, too, but would make a
    # service manager start one.
    if sock_diag.is_listened_on(path):
        raise SocketUnusable(
            path,
            "another process listens there. If that is a service manager, have it start memd (memd-ctl service start), "
            "or stop listening (memd-ctl service stop)",
        )
    _clear_up(path)
    try:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:  # no descriptors are left
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
    """Bind to an unguessable name beside the path.

    In a directory that others may write to, a name that can be guessed would let them put a link or a
    directory there first. bind(2) creates the file or fails; nothing is removed, and the file is not accessed
    by name afterwards.

    Raises:
        OSError: the file cannot be created.
    """
    # Nobody may connect between bind and chmod, so there is no chmod: on Linux the file gets the mode of the
    # socket, elsewhere the umask makes it private. The umask affects other threads that create directories,
    # so it is only set where needed.
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
        raise AssertionError  # not reached: the last attempt has returned or raised
    finally:
        if mask is not None:
            os.umask(mask)
        if directory is not None:
            os.close(directory)


def _address(temporary: Path, directory: int | None) -> str:
    """Return the address to bind; a path that is too long, as the temporary one may be, goes through /proc."""
    if directory is None or len(os.fsencode(temporary)) < _ADDRESS_BYTES:
        return str(temporary)
    return f"/proc/self/fd/{directory}/{temporary.name}"


def prefix_of(path: Path) -> str:
    """Return the prefix of a socket's temporary names, which are as long as the usual name."""
    return f".{zlib.crc32(os.fsencode(path.name)) & 0xFF:02x}"


def _clear_up(path: Path) -> None:
    """Delete sockets of a daemon that was killed before it could rename its own.

    The caller holds the path's lock, so no other daemon is about to rename one.
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
        """Start to listen.

        Args:
            path: The path at which clients connect.
            given: The service manager's socket, whose file is never touched; None: a socket is created.

        Raises:
            SocketUnusable: see bind.
        """
        self._path = path
        self._is_own = given is None
        self.socket = bind(path) if given is None else given
        self._identity = _identity(path)

    def is_gone(self) -> bool:
        """Return whether the file of memd's own socket is missing; False if another file has taken its place."""
        return self._is_own and _identity(self._path) is None

    def bind_again(self) -> socket.socket:
        """Listen on a new socket at the path; the caller closes the previous one.

        Raises:
            SocketUnusable: see bind.
        """
        with contextlib.suppress(OSError):  # bind reports what is wrong with it
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket = bind(self._path)
        self._identity = _identity(self._path)
        return self.socket

    def remove(self) -> None:
        """Delete the file of memd's own socket, unless it was replaced meanwhile."""
        if self._is_own and self._identity is not None and _identity(self._path) == self._identity:
            with contextlib.suppress(OSError):
                self._path.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at a path; None if there is none, or it cannot be examined."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return status.st_dev, status.st_ino
    return None
