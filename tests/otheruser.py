"""Running a function as a user who is not root: root may read whatever the modes say."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NOBODY = 65534

# The function's module is imported before the change of user, who may not be able to read the interpreter's files.
_CHILD = """
import importlib, json, os, sys
function = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
print(json.dumps(function(*sys.argv[3:])))
"""


def as_other_user(module: str, function: str, *args: str) -> Any:
    """What the function of a module returns, as JSON has it, when another user calls it with strings."""
    command = [sys.executable, "-c", _CHILD.format(nobody=NOBODY), module, function, *args]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def shared_directory() -> Iterator[Path]:
    """An empty directory the other user owns and can reach, which pytest's own are not."""
    directory = Path(os.path.realpath(tempfile.mkdtemp()))
    try:
        directory.chmod(0o755)
        if os.getuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
        yield directory
    finally:
        for path in directory.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(directory)
