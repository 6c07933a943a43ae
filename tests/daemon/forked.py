"""Forks programs from a process that has already imported memd.

A daemon starts in .08 s of the processor instead of .33, `memd-ctl doctor` ends after .1 s instead of .3, other commands after .01
instead of .07.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import NamedTuple

from memd.runtime.startup import prepare_environment

HASHING = "tests.daemon.hashing"


class Files(NamedTuple):
    """The standard streams of a program; output is appended."""

    out: Path
    err: Path
    directory: Path = Path(__file__).parents[2]
    stdin: Path = Path(os.devnull)


class ForkedProcess:
    """The part of subprocess.Popen that tests need."""

    def __init__(
        self, main: Callable[[], int], argv: Sequence[str], environ: Mapping[str, str], files: Files
    ) -> None:
        """Take over a running process.

        Args:
            main: A function of a module, whose return is the exit status.
            argv: Its name and what it is given.
            environ: All of its environment.
            files: What it reads and prints, and where it runs.
        """
        self.args = list(argv)
        sys.audit("tests.daemon.forked")  # heard by tests/mutants/recording.py
        self._process = _fork_server().Process(
            target=_run, args=(main, self.args, dict(environ), files), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it runs on after so many seconds.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


@cache
def _fork_server() -> ForkServerContext:
    """Return the fork server of this process, which imports memd once."""
    context = multiprocessing.get_context("forkserver")
    programs = [HASHING, "memd.ctl.commands.doctor", "memd.ctl.commands.up"]
    # Modules of tests, of which another user calls functions, need the first two.
    context.set_forkserver_preload(["pytest", "hypothesis", *programs, "tests.daemon.prepared"])
    # numpy looks at these while it is imported.
    kept = dict(os.environ)
    whole = dict(os.environ)
    prepare_environment(whole)
    os.environ.update(whole)
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(kept)
    return context


def _run(main: Callable[[], int], argv: list[str], environ: Mapping[str, str], files: Files) -> None:
    """Run the program in the forked process."""
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    tempfile.tempdir = None
    os.chdir(files.directory)
    sys.stdin.close()
    for number, file, mode in ((0, files.stdin, "rb"), (1, files.out, "ab"), (2, files.err, "ab")):
        with file.open(mode, buffering=0) as opened:
            os.dup2(opened.fileno(), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - until the end of the process
    sys.argv = argv
    sys.exit(main())
