"""Ctrl-C at a moment at which nobody is ready for it, and the environment of numeric libraries."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memd.runtime import startup
from memd.runtime.startup import prepare_environment
from tests.modules import existing

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
        ("memd.daemon", "memd run", 130),
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


def test_a_thread_changes_no_handler() -> None:
    """Python lets only the main one."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    did = list[bool]()

    def on_a_thread() -> None:
        did.append(startup.end_quietly())
        with startup.quiet():
            did.append(True)

    try:
        thread = threading.Thread(target=on_a_thread)
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert did == [False, True]


def test_threads_are_bounded_and_idle_ones_sleep() -> None:
    """All variables are set, whatever was there before."""
    environ = {"OMP_NUM_THREADS": "64", "OMP_WAIT_POLICY": "ACTIVE", "HOME": "/home/someone"}
    prepare_environment(environ, threads=3)
    assert environ == {
        "OMP_NUM_THREADS": "3",
        "OMP_WAIT_POLICY": "PASSIVE",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "HOME": "/home/someone",
    }
    prepare_environment(environ)
    assert environ["OMP_NUM_THREADS"] == "1", "a daemon embeds short questions"


def test_onnxruntime_writes_no_ids(tmp_path: Path) -> None:
    """Neither of the device nor of the session: its telemetry is off."""
    environ = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    prepare_environment(environ)
    subprocess.run([sys.executable, "-c", "import onnxruntime"], check=True, env=environ)
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_called_before_numpy_loads() -> None:
    """Importing the function imports no numeric library, which would read the variables too early."""
    (numpy,) = existing("numpy")
    code = f"import sys, memd.runtime.startup; sys.exit({numpy!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


_CLOSED = """
import os, sys
from memd.runtime.startup import open_streams

open_streams()
with open(sys.argv[1], "w") as file:
    print("lost")
    print("lost", file=sys.stderr)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    print([one.fileno() for one in streams], repr(sys.stdin.read()), file.fileno(), file=file)
    for one in streams:
        one.close()
    print(len([os.fstat(number) for number in range(3)]), file=file)
"""


def test_streams_that_were_closed_are_open_and_lead_nowhere(tmp_path: Path) -> None:
    """A file that is opened afterwards has the next number, and nothing that is printed is in it; they are never closed again."""
    told = tmp_path / "told"
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", _CLOSED, str(told)]
    subprocess.run(closed, check=True, timeout=60)
    assert told.read_text("utf-8") == "[0, 1, 2] '' 3\n3\n"


def test_rich_is_not_imported_with_the_log_and_can_be_imported_later() -> None:
    """It is only hidden meanwhile; one that is there already stays."""
    for before, after in (("", b"None"), ("sys.modules['rich'] = 'there'; ", b"there")):
        code = (
            f"import sys; {before}from memd.runtime.startup import import_structlog; import_structlog(); "
            "import structlog; print(sys.modules.get('rich'))"
        )
        ran = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, stdout=subprocess.PIPE)
        assert ran.stdout.strip() == after
