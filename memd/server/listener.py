"""The socket that clients connect to."""

import os
import select
import socket
import stat
import struct
import sys
from pathlib import Path

from memd.errors import FatalError

BACKLOG = 512


class SocketUnusable(FatalError):
    """The socket cannot be put where it should be."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"cannot listen on {path}: {why}. Set MEMD_SOCKET to another path.", exit_code=78)


def bind(path: Path) -> socket.socket:
    """A listening socket at a path, mode 0600, taking over a stale one.

    The socket is bound and listening under another name before it is renamed: whoever sees the path can connect.
    Call it with the lock of the path held.

    Raises:
        SocketUnusable: something that is not a socket is there, or the directory cannot be written.
    """
    try:
        is_free = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        is_free = True
    except OSError as error:
        raise SocketUnusable(path, error.strerror or str(error)) from error
    if not is_free:
        raise SocketUnusable(path, "something that is not a socket is there")
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
