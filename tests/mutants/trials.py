"""Runs chosen tests with one fault at a time, in a fork of a process that has loaded and collected them all.

This module is a plugin of pytest: where the environment says so, it takes orders from the process that started it, instead of
running the tests. What a test has started ends with its trial, whatever session it is in.
"""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from enum import StrEnum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import msgspec
import psutil
import pytest

from tests.mutants.swap import CannotSwap, LoadedFunctions

ORDERS = "MEMD_MUTANTS_ORDERS"  # the number of a file descriptor; its other end is the caller's
_SUBREAPER, _END_WITH_PARENT = (
    36,
    1,
)  # of prctl: what lost its parent becomes a child of this process; a signal for then


class Outcome(StrEnum):
    """How a trial ended."""

    NOTICED = "noticed"  # a test failed
    MISSED = "MISSED"
    UNKNOWN = "unknown"  # all in all it took too long, or something killed it
    CANNOT_SWAP = "cannot swap"  # a process has to load the faulty source


_STATUSES = (Outcome.MISSED, Outcome.NOTICED, Outcome.CANNOT_SWAP)  # by the exit status of a trial


class Trial(msgspec.Struct, frozen=True):
    """Some tests, with a fault or without."""

    tests: Sequence[str]  # one after the other, up to the first that fails
    limit_s: float  # of time, and of the processor for the process that runs them
    file: Path | None = None  # whose functions are to be replaced; it lies there with the fault
    old: str = ""
    new: str = ""


class Ended(msgspec.Struct, frozen=True):
    """How a trial ended, and the test that failed, or that ran when something ended the process."""

    outcome: Outcome
    test: str = ""


class _Trials:
    def __init__(self, orders: Connection, root: Path) -> None:
        self._orders = orders
        self._root = root

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Try what is ordered until nobody orders any more."""
        if session.testsfailed:
            return None  # a file of tests could not be imported: pytest tells it
        loaded = LoadedFunctions(self._root)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self._orders.send(None)
        with contextlib.suppress(EOFError):
            while True:
                self._orders.send(self._ended(session, loaded, self._orders.recv()))
        return True

    def _ended(self, session: pytest.Session, loaded: LoadedFunctions, trial: Trial) -> Ended:
        scratch = tempfile.mkdtemp(prefix="m")
        Path(scratch).chmod(0o755)  # some tests run as another user
        running = tempfile.TemporaryFile()  # noqa: SIM115 - the name of the test that runs; closed below
        pid = os.fork()
        if pid == 0:
            self._orders.close()
            os.environ["TMPDIR"] = scratch
            tempfile.tempdir = None  # it has been looked up
            _try(session, loaded, trial, running.fileno())

        def end(*_: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, trial.limit_s)
        _, status = os.waitpid(pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end_children()
        shutil.rmtree(scratch, ignore_errors=True)
        with running:
            exited = os.waitstatus_to_exitcode(status)
            outcome = _STATUSES[exited] if 0 <= exited < len(_STATUSES) else Outcome.UNKNOWN
            running.seek(0)
            test = running.read().decode()
            return Ended(outcome, test if outcome in {Outcome.NOTICED, Outcome.UNKNOWN} else "")


def _try(session: pytest.Session, loaded: LoadedFunctions, trial: Trial, running: int) -> NoReturn:
    """Run the tests in this process, and end it."""
    status = len(_STATUSES)
    try:
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        cpu_s = int(trial.limit_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        status = _status(session, loaded, trial, running)
    finally:
        os._exit(status)


def _status(session: pytest.Session, loaded: LoadedFunctions, trial: Trial, running: int) -> int:
    if trial.file is not None:
        try:
            loaded.swap(trial.file, trial.old, trial.new)
        except CannotSwap:
            return _STATUSES.index(Outcome.CANNOT_SWAP)
    collected = {item.nodeid: item for item in session.items}
    items = [collected[test] for test in trial.tests if test in collected]
    for item, following in zip(items, [*items[1:], None], strict=True):
        os.ftruncate(running, 0)
        os.pwrite(running, item.nodeid.encode(), 0)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return _STATUSES.index(Outcome.NOTICED)
    return _STATUSES.index(Outcome.MISSED)


def _end_children() -> None:
    """Kill all that is left of a trial; what it started in sessions of its own is a child of this process by now."""
    while children := psutil.Process().children(recursive=True):
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(children)


def pytest_configure(config: pytest.Config) -> None:
    """Take orders, if there is somebody who gives them."""
    # Tests that run pytest themselves take none.
    if (number := os.environ.pop(ORDERS, None)) is not None:
        config.pluginmanager.register(_Trials(Connection(int(number)), config.rootpath))
