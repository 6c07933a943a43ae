"""Runs a command where one directory never answers, as on a network mount whose server is gone.

It is a FUSE mount that no program serves, in a mount namespace of its own: nothing is left behind.
"""

import ctypes
import os
import subprocess
import sys

_CLONE_NEWNS = 0x20000


def main() -> int:
    """``deadmount.py DIRECTORY COMMAND...``: the exit status of the command."""
    directory, *command = sys.argv[1:]
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "a mount namespace of its own")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    # The descriptor stays with this process alone: as long as it is open, who asks waits for an answer.
    asked = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={asked},rootmode=40000,user_id=0,group_id=0".encode()
    if system.mount(b"dead", os.fsencode(directory), b"fuse.dead", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "a mount that never answers")
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
