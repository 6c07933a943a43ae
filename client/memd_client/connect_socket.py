"""Connects to the socket of a daemon, and asks the system who is at its other end."""

import errno
import os
import socket
import struct
import sys
from pathlib import Path

from memd_client import paths
from memd_client.errors import ConnectionLost, DaemonNotRunning

QUEUE_FULL_S = 0.01  # until another try, when more clients wait to be accepted than the system keeps waiting

_OWN_DAEMON = (
    "memd serves only the user who runs it: start one of your own with `memd run`. "
    "If this process runs in a sandbox, allow it to connect to the socket."
)
_OWN_PLACE = (
    "Set MEMD_SOCKET to a path in a directory that only you may write to, for the daemon and its clients."
)


def default_address() -> str:
    """Where the socket is for this process, by its environment and platform."""
    home = os.path.expanduser("~")  # noqa: PTH111  Path.home raises where there is none
    return str(paths.socket_file(os.environ, sys.platform, Path(home)))


def dial(address: str) -> socket.socket | None:
    """A connected, non-blocking socket; None where the queue of clients is full: try again in a moment.

    Raises:
        DaemonNotRunning: nothing listens at the address, this process may not connect to it, or it is another user who
            listens.
        ConnectionLost: the operating system refuses a connection for another reason.
    """
    if "\0" in address:  # the system would read no further than there, and look elsewhere
        raise DaemonNotRunning(address, "no path holds a NUL")
    try:
        paths.checked_socket(Path(address), sys.platform)
    except paths.SocketPathTooLong as error:
        reason = f"its path has {error.length} bytes, {error.limit} are possible"
        raise DaemonNotRunning(address, reason, error.hint) from error
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise _unreachable(address, error) from error
    try:
        connection.setblocking(False)
        connection.connect(address)
        _check_listener(connection, address)
    except BlockingIOError:
        connection.close()
        return None
    except BaseException as error:
        connection.close()
        # It does not wait, so a TimeoutError is a signal handler's: the program has a time limit of its own.
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise _unreachable(address, error) from error
        raise
    return connection


def _check_listener(connection: socket.socket, address: str) -> None:
    """See to it that nobody else listens where the daemon should: they would be told every question, and believed.

    Root may: a service manager of the system listens for its users. Nothing has been said yet.

    Raises:
        DaemonNotRunning: it is another user.
        OSError: the connection has ended.
    """
    uid = peer_uid(connection)
    if uid not in {None, 0, os.geteuid()}:
        raise DaemonNotRunning(address, f"another user (uid {uid}) listens there", _OWN_PLACE)


def _unreachable(address: str, error: OSError) -> DaemonNotRunning | ConnectionLost:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return DaemonNotRunning(address, "there is no such socket")
        case ConnectionRefusedError():
            return DaemonNotRunning(address)
        case PermissionError():
            return DaemonNotRunning(address, "this process may not connect to it", _OWN_DAEMON)
        case OSError(errno=errno.ENOTSOCK | errno.EPROTOTYPE):
            return DaemonNotRunning(address, "it is not a socket of memd")
        case _:
            return ConnectionLost(f"No connection to {address}: {error.strerror or error}.")


def peer_uid(connection: socket.socket) -> int | None:
    """The user id of the process at the other end; None where the system does not tell.

    For the end that connected it is the user who began to listen, which is root for a socket of the system's service
    manager.

    Raises:
        OSError: the connection has ended.
    """
    uid: int | None
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("iIi", credentials)
    elif sys.platform == "darwin":
        # LOCAL_PEERCRED at level SOL_LOCAL gives a struct xucred, which begins with its version and the user id.
        sol_local, local_peercred = 0, 1
        _, uid = struct.unpack_from("2I", connection.getsockopt(sol_local, local_peercred, 76))
    else:
        uid = None
    return uid
