"""The socket that clients connect to."""

import os
import select
import socket
import stat
import struct
import sys
from collections.abc import MutableMapping
from pathlib import Path

from memd.errors import FatalError
from memd.server import sockets

BACKLOG = 512
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


def bind(path: Path) -> socket.socket:
    """A listening socket at a path, mode 0600, taking over a stale one.

    The socket is bound and listening under another name before it is renamed: whoever sees the path can connect.
    Call it with the lock of the path held.

    Raises:
        SocketUnusable: something that is not a socket is there, another process listens there, or the directory
            cannot be written.
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
    if sockets.is_listened_on(path):
        raise SocketUnusable(
            path,
            "another process listens there. If that is a service manager, have it start memd (memd-ctl service start), "
            "or stop listening (memd-ctl service stop)",
        )
    temporary = path.with_name(f".{os.getpid()}")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        temporary.unlink(missing_ok=True)
        # Nobody may connect between bind and chmod: the umask makes the file private from its first moment.
        mask = os.umask(0o177)
        try:
            listening.bind(str(temporary))
        finally:
            os.umask(mask)
        temporary.chmod(0o600)
        listening.listen(BACKLOG)
        listening.setblocking(False)
        temporary.rename(path)
    except OSError as error:
        listening.close()
        temporary.unlink(missing_ok=True)
        raise SocketUnusable(path, error.strerror or str(error)) from error
    return listening


def remove(path: Path) -> None:
    """Take the socket away; with the lock of the path still held it can only be ours."""
    path.unlink(missing_ok=True)


def peer_uid(connection: socket.socket) -> int | None:
    """The user id of the process at the other end; None where the system does not tell."""
    uid: int | None
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("3i", credentials)
    elif sys.platform == "darwin":
        # LOCAL_PEERCRED at level SOL_LOCAL gives a struct xucred, which begins with its version and the user id.
        sol_local, local_peercred = 0, 1
        _, uid = struct.unpack_from("2I", connection.getsockopt(sol_local, local_peercred, 76))
    else:
        uid = None
    return uid


def has_hung_up(connection: socket.socket) -> bool:
    """Whether the peer has closed its end; False where it only says no more, or the system tells no difference."""
    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(connection.fileno(), 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
