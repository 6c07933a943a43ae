"""Calls functions as another user than root, since root may read files of any mode."""

import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.daemon.forked import Files, ForkedProcess

NOBODY = 65534
TIMEOUT_S = 60.0


def as_other_user(module: str, function: str, *args: str) -> Any:
    """Call a function of a module with string arguments as another user; return its result, decoded from JSON."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        acting = partial(_act_as_nobody, module, function, args)
        code = ForkedProcess(acting, [module], os.environ, Files(out, err)).wait(TIMEOUT_S)
        assert code == 0, err.read_text("utf-8")
        return json.loads(out.read_bytes())


def _act_as_nobody(module: str, function: str, args: tuple[str, ...]) -> int:
    """Print the result of the function as JSON."""
    # Imported before the change of user, who may not be able to read the interpreter's files.
    acting = getattr(importlib.import_module(module), function)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    json.dump(acting(*args), sys.stdout)
    sys.stdout.flush()
    return 0


@contextmanager
def shared_directory() -> Iterator[Path]:
    """Create an empty directory that the other user owns and can reach, unlike pytest's directories."""
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
