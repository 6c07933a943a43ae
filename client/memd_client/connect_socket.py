"""Connects to the socket of a daemon, and checks which user listens there."""

import errno
import os
import socket
import struct
import sys
from pathlib import Path

from memd_client import paths
from memd_client.errors import ConnectionLost, DaemonNotRunning

QUEUE_FULL_S = 0.01  # wait before a retry while the listener's queue is full

_OWN_DAEMON = (
    "memd serves only the user who runs it: start one of your own with `memd run`. "
    "If this process runs in a sandbox, allow it to connect to the socket."
)
_OWN_PLACE = (
    "Set MEMD_SOCKET to a path in a directory that only you may write to, for the daemon and its clients."
)


def default_address() -> str:
    """Return the path of this user's socket, by environment and platform."""
    home = os.path.expanduser("~")  # noqa: PTH111  Path.home raises where there is none
    return str(paths.socket_file(os.environ, sys.platform, Path(home)))


def dial(address: str) -> socket.socket | None:
    """Return a connected, non-blocking socket; None if the listener's queue is full, so that the caller should retry.

    Raises:
        DaemonNotRunning: nothing listens at the address, this process may not connect to it, or another user
            listens there.
        ConnectionLost: the operating system refuses the connection for another reason.
    """
    if "\0" in address:  # the system would cut the path there, and connect elsewhere
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
        # connect() does not wait here, so a TimeoutError was raised by a signal handler: the program has a
        # time limit of its own.
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise _unreachable(address, error) from error
        raise
    return connection


def _check_listener(connection: socket.socket, address: str) -> None:
    """Check that no other user listens: they would receive every question, and their replies would be trusted.

    Root is accepted, as a system's service manager listens for its users. Nothing has been sent yet.

    Raises:
        DaemonNotRunning: another user listens.
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
    """Return the user id of the process at the other end; None if the system does not say.

    For the end that connected, it is the user who started to listen: root for a socket of the system's
    service manager.

    Raises:
        OSError: the connection has ended.
    """
    uid: int | None
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("iIi", credentials)
    elif sys.platform == "darwin":
        # LOCAL_PEERCRED at level SOL_LOCAL returns a struct xucred, which begins with its version and the
        # user id.
        sol_local, local_peercred = 0, 1
        _, uid = struct.unpack_from("2I", connection.getsockopt(sol_local, local_peercred, 76))
    else:
        uid = None
    return uid
