"""Daemons forked off a process that has imported memd already: a start takes .1 s of the processor instead of .33."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

from memd.runtime.startup import prepare_environment
from tests.daemon import hashing

HASHING = "tests.daemon.hashing"


class ForkedProcess:
    """What a test needs of subprocess.Popen, for a daemon with the hashing embedder."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        """It runs.

        Args:
            arguments: What the module of the daemon is given.
            environ: All of its environment.
            log: What it prints is appended to this file.
        """
        self.args = [HASHING, *arguments]
        self._process = _fork_server().Process(target=_run, args=(self.args, dict(environ), log), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative where a signal ended it; None: it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended.

        Raises:
            subprocess.TimeoutExpired: it runs on after so many seconds.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()


@cache
def _fork_server() -> ForkServerContext:
    """The process that imports memd once, of this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([HASHING])
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


def _run(argv: list[str], environ: Mapping[str, str], log: Path) -> None:
    """Be the daemon."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(Path(__file__).parents[2])
    with log.open("ab", buffering=0) as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    sys.argv = argv
    hashing.main()
