"""Asks the kernel whether an open directory is a mount point."""

import ctypes
import os
import struct

# From linux/stat.h and linux/fcntl.h.
_AT_EMPTY_PATH = 0x1000
_ATTR_MOUNT_ROOT = 0x2000
_STATX_BYTES = 256
_ATTRIBUTES = struct.Struct("8xQ40xQ")  # stx_attributes, and stx_attributes_mask: which of them are known

_statx = getattr(ctypes.CDLL(None), "statx", None)


def is_mount_point(directory: int) -> bool:
    """Whether something is mounted there.

    A subvolume of btrfs or bcachefs has a device number of its own, and is no mount point; a bind mount may have none, and is one.
    So the device number decides only if the system has no better answer (Linux before 5.8, macOS).

    Args:
        directory: An open descriptor; O_PATH is enough.
    """
    if _statx is not None:
        answer = ctypes.create_string_buffer(_STATX_BYTES)
        if _statx(directory, b"", _AT_EMPTY_PATH, 0, answer) == 0:
            attributes, known = _ATTRIBUTES.unpack_from(answer)
            if known & _ATTR_MOUNT_ROOT:
                return bool(attributes & _ATTR_MOUNT_ROOT)
    try:
        above = os.stat("..", dir_fd=directory)
    except OSError:
        return False  # it may be listed and not entered: nothing below it is found anyway
    return os.fstat(directory).st_dev != above.st_dev
