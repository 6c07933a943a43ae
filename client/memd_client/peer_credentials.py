"""Who is at the other end of a Unix socket, as the system tells it: nobody can pretend to be another user."""

import socket
import struct
import sys


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
