"""Finds out which Unix sockets are listened on, from the kernel: sock_diag(7)."""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_LISTENING = 1 << 10  # TCP_LISTEN, used for every socket type
_SHOW_VFS = 2
_VFS = 1  # UNIX_DIAG_VFS: inode and device of the file

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBHIIIII")  # unix_diag_req: family, protocol, -, states, inode, show, cookie
_ATTRIBUTE = struct.Struct("=HH")  # nlattr: length, type
_FILE = struct.Struct("=II")  # unix_diag_vfs
_MESSAGE_BYTES = 16  # of a unix_diag_msg
_BUFFER_BYTES = 1 << 16
_TIMEOUT_S = 1.0


def is_listened_on(path: Path) -> bool:
    """Return whether a process listens on the socket at a path, without connecting; False if the kernel does not answer.

    The path that the kernel reports is not enough: a socket keeps its file when the file is renamed, and in
    another mount namespace another file may have the same path.
    """
    if sys.platform != "linux":
        return False
    with suppress(OSError):
        status = path.lstat()
        # The kernel's format: 32 bits of the inode, and a device number of 12 and 20 bits.
        wanted = (status.st_ino & 0xFFFFFFFF, os.major(status.st_dev) << 20 | os.minor(status.st_dev))
        return wanted in set(_files())
    return False


def _files() -> Iterator[tuple[int, int]]:
    """Yield inode and device of the file of each listening socket."""
    request = _REQUEST.pack(socket.AF_UNIX, 0, 0, _LISTENING, 0, _SHOW_VFS, 0xFFFFFFFF, 0xFFFFFFFF)
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_TIMEOUT_S)
        kernel.sendto(header + request, (0, 0))
        while True:
            data = kernel.recv(_BUFFER_BYTES)
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, *_ = _HEADER.unpack_from(data, at)
                if kind in {_NLMSG_ERROR, _NLMSG_DONE} or length < _HEADER.size:
                    return
                yield from _files_in(data[at + _HEADER.size + _MESSAGE_BYTES : at + length])
                at += _aligned(length)


def _files_in(attributes: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(attributes):
        length, kind = _ATTRIBUTE.unpack_from(attributes, at)
        if length < _ATTRIBUTE.size:
            return
        if kind == _VFS and length >= _ATTRIBUTE.size + _FILE.size:
            inode, device = _FILE.unpack_from(attributes, at + _ATTRIBUTE.size)
            yield inode, device
        at += _aligned(length)


def _aligned(length: int) -> int:
    """Round up to a multiple of four, at which messages and attributes begin."""
    return (length + 3) & ~3
