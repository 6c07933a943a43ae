"""A disk that stops answering under a running daemon, until it is unmounted.

It is a FUSE mount that no program serves, in the mount namespace of the daemon.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.daemon.namespaced import Namespaced

ROOT = Path(__file__).parents[2]


@contextmanager
def dead(daemon: Namespaced, directory: Path) -> Iterator[None]:
    """Within the context, calls of the daemon on a directory do not return."""
    into = ["nsenter", "--target", str(daemon.process.pid), "--user", "--mount", "--preserve-credentials"]
    command = [*into, sys.executable, "-m", "tests.daemon.deaddisk", str(directory)]
    # Whoever enters another mount namespace is at its root directory, where Python finds no tests.
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            assert keeper.stdout.readline() == b"dead\n"
            yield
        finally:
            keeper.stdin.close()
            keeper.wait(60)


def main() -> None:
    """``deaddisk.py DIRECTORY``: serve it until standard input ends."""
    directory = sys.argv[1]
    system = ctypes.CDLL(None, use_errno=True)
    # As long as the descriptor is open, who asks waits for an answer.
    asked = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={asked},rootmode=40000,user_id=0,group_id=0".encode()
    if system.mount(b"dead", os.fsencode(directory), b"fuse.dead", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "a mount that never answers")
    sys.stdout.write("dead\n")
    sys.stdout.flush()
    sys.stdin.read()
    os.close(asked)  # who waits is told that nobody answers
    if system.umount2(os.fsencode(directory), 2) != 0:
        raise OSError(ctypes.get_errno(), "the mount cannot be taken away")


if __name__ == "__main__":
    main()
