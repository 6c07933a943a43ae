"""Ctrl-C at a moment at which nobody is ready for it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memd.runtime import startup

_INTERRUPTED = """
import os, runpy, signal, sys
from importlib.abc import MetaPathFinder

class Interrupting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
module, program = sys.argv[1:3]
sys.argv[1:] = sys.argv[3:]
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("module", "words", "status"),
    [
        ("memd.ctl.program", "memd.ctl search x", 130),
        ("memd.ctl.arguments", "memd.ctl --version", 130),
        ("memd_client.errors", "memd.ctl search x", 130),
        ("memd.ctl.commands.search", "memd.ctl search x", 130),
        ("memd.ctl.arguments", "memd.ctl hook user-prompt", 0),
        ("memd.providers.local.thread_environment", "memd run", 130),
        ("numpy", "memd run", 130),
        ("memd.watch.watcher", "memd run", 130),
        ("memd_client.mcp.server", "memd_client.mcp", -signal.SIGINT),
    ],
)
def test_an_interruption_while_modules_load_is_quiet(
    tmp_path: Path, module: str, words: str, status: int
) -> None:
    """As if it had come later: no traceback, and the status that a shell knows."""
    environ = {**os.environ, "HOME": str(tmp_path), "MEMD_CONFIG": str(tmp_path / "c.toml")}
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, module, *words.split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
        env=environ,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, b"", b"")


def test_an_ignored_signal_stays_ignored_and_a_handler_stays_in_its_place() -> None:
    """Behind `&` in a script a shell has it ignored; a program that calls main has handlers of its own."""
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, signal.SIG_DFL, lambda *_: None):
            signal.signal(signal.SIGINT, handler)
            assert not startup.end_quietly()
            assert signal.getsignal(signal.SIGINT) is handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with startup.quiet():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
