"""Passing sockets to a program as a service manager does."""

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# What a manager does between fork and exec: the sockets from descriptor 3 on, and who they are meant for.
_BETWEEN = """
import json, os, sys
passed, variables, *command = sys.argv[1:]
passed = json.loads(passed)
for at, one in enumerate([os.dup(one) for one in passed]):
    os.dup2(one, 3 + at)
    os.set_inheritable(3 + at, True)
os.environ.update({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(passed)), **json.loads(variables)})
os.execv(command[0], command)
"""


def as_manager(
    passed: Sequence[socket.socket], variables: Mapping[str, str], command: Sequence[str]
) -> list[str]:
    """A command that becomes another one with these sockets.

    Args:
        passed: The sockets; the command has to be started with their descriptors.
        variables: Of the environment, where they are not to tell the truth.
        command: The other one, by its path.
    """
    numbers = json.dumps([one.fileno() for one in passed])
    return [sys.executable, "-c", _BETWEEN, numbers, json.dumps(dict(variables)), *command]


def listening(path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """A socket that a manager has opened at a path."""
    manager = socket.socket(socket.AF_UNIX, kind)
    manager.bind(str(path))
    if kind == socket.SOCK_STREAM:
        manager.listen(8)
    return manager
