"""What answers at the socket, if anything does."""

import socket
import struct
import sys
from pathlib import Path

import msgspec

from memd_client.blocking import Client
from memd_client.dial import dial
from memd_client.errors import MemdClientError
from memd_client.messages import StatusReport


class Peer(msgspec.Struct, frozen=True):
    """The process that listens, as the system knows it."""

    pid: int
    uid: int


class SocketAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: a report, or why there is none."""

    report: StatusReport | None = None
    error: MemdClientError | None = None
    peer: Peer | None = None  # None: nobody listens, or the system does not tell


def ask(path: Path, patience_s: float) -> SocketAnswer:
    """Ask the daemon for its status, however it fails to give it."""
    peer = _find_peer(path)
    try:
        with Client(path, patience_s) as memd:
            return SocketAnswer(report=memd.status(), peer=peer)
    except MemdClientError as error:
        return SocketAnswer(error=error, peer=peer)


def _find_peer(path: Path) -> Peer | None:
    if sys.platform != "linux":
        return None
    try:
        connection = dial(str(path))
    except MemdClientError:
        return None
    if connection is None:
        return None
    with connection:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(pid, uid)
