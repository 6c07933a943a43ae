"""Copies of the checkout, in each of which one fault at a time is tried."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import cache_from_source
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from tests.mutants.faults import Fault
from tests.mutants.recording import RECORD, Recording, is_recorded
from tests.mutants.trials import ORDERS, Ended, Outcome, Trial

ROOT = Path(__file__).parents[2]
_RECORDING_S = 1800
_LOADING_S = 120  # to load and collect tests
# A test that takes longer fails, as it would after two minutes in the suite; where that does not end it, its process ends.
_TEST_S, _TEST_PROCESS_S = 60, 120
_PATIENCE_S = 180  # a trial may take twice as long as its tests took without a fault, and so much more


class Mutant(msgspec.Struct, frozen=True):
    """A fault of a file."""

    file: str  # from the root of the checkout
    source: str  # of it
    fault: Fault

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it: the file, the line as it is, and as it would be."""
        return (self.file, *self.fault.shown(self.source))


class Children:
    """Programs that run just now, with all that they start: none outlives this one."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._has_ended = False

    def start(self, command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """Start a program that says nothing and is told nothing."""
        if self._has_ended:
            raise SystemExit("ended")
        none = subprocess.DEVNULL
        started = subprocess.Popen(
            command, stdin=none, stdout=none, stderr=none, start_new_session=True, **how
        )
        self._running.add(started)
        return started

    def run(self, command: Sequence[str], limit_s: float, **how: Any) -> int | None:
        """How a program ended, negative by a signal; None: not within its time, and it was killed."""
        started = self.start(command, **how)
        try:
            return started.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill(started)

    def kill(self, started: subprocess.Popen[bytes]) -> int:
        """Kill a program and what it started; how it ended."""
        _kill(started)
        self._running.discard(started)
        return started.wait()

    @property
    def count(self) -> int:
        """How many run."""
        return len(self._running)

    def end(self) -> None:
        """Kill all that run, and start no more."""
        self._has_ended = True
        for one in list(self._running):
            _kill(one)


def _kill(started: subprocess.Popen[bytes]) -> None:
    of_it = []
    with contextlib.suppress(psutil.Error):  # it has ended, and what it started may go on
        of_it = psutil.Process(started.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, 9)
    for one in of_it:
        with contextlib.suppress(psutil.Error):
            one.kill()


class _Trying:
    """A process that has loaded some tests, and runs them with a fault in forks of its own."""

    def __init__(self, started: subprocess.Popen[bytes], orders: Connection, children: Children) -> None:
        self._started = started
        self._orders = orders
        self._children = children

    def is_ready(self) -> bool:
        """Wait until it has collected the tests; false if it cannot.

        Raises:
            TimeoutError: nor has it said so in its time.
        """
        if not self._orders.poll(_LOADING_S):
            raise TimeoutError
        try:
            self._orders.recv()
        except (EOFError, ConnectionResetError):
            return False
        return True

    def ended(self, trial: Trial) -> Ended:
        try:
            self._orders.send(trial)
            ended: Ended = self._orders.recv()
        except (EOFError, OSError):
            return Ended(Outcome.UNKNOWN)
        return ended

    def end(self) -> int:
        self._orders.close()
        return self._children.kill(self._started)


class Copy:
    """A copy of the checkout."""

    def __init__(
        self,
        directory: Path,
        children: Children,
        patience_s: float = _PATIENCE_S,
        test_s: float = _TEST_S,
        process_s: float = _TEST_PROCESS_S,
    ) -> None:
        self._directory = directory
        self._children = children
        self._patience_s = patience_s
        self._limits = ("--timeout", str(test_s), "-o", f"faulthandler_timeout={process_s}")
        self._places: Sequence[str] = ()
        self._loaded: _Trying | None = None

    def ended(self, mutant: Mutant, places: Sequence[str], recording: Recording) -> Ended:
        """How the tests end with this fault: those that execute its line, or all where it is not known which do.

        A test that fails without the fault as well, when it is run once more, tells nothing, be it that it takes too long.
        """
        executing = recording.executing(mutant.file, mutant.source, mutant.fault.line)
        tests = list(executing.tests)
        if not executing.are_all:
            tests += recording.others(tests)
        limit_s = self._patience_s + 2 * sum(recording.seconds[test] for test in tests)
        file = self._directory / mutant.file
        faulty = mutant.fault.applied(mutant.source)
        trial = Trial(tests, limit_s, file, mutant.source, faulty)
        loaded = self._with_loaded(places)  # before the fault is there
        self._write(file, faulty)
        try:
            ended = Ended(Outcome.CANNOT_SWAP) if executing.at_import else loaded.ended(trial)
            if ended.outcome is Outcome.CANNOT_SWAP:
                ended = self._ended_anew(trial)
        finally:
            self._write(file, mutant.source)
        if ended.outcome is Outcome.NOTICED and ended.test:
            again = loaded.ended(Trial([ended.test], limit_s))
            if again.outcome is not Outcome.MISSED:
                return Ended(Outcome.UNKNOWN, ended.test)
        return ended

    def _ended_anew(self, trial: Trial) -> Ended:
        """How the tests end in a process that loads the faulty source; one in which it cannot load them notices it."""
        started = self._start(list(dict.fromkeys(test.partition("::")[0] for test in trial.tests)))
        try:
            if not started.is_ready():
                return Ended(Outcome.NOTICED)
            return started.ended(msgspec.structs.replace(trial, file=None))
        except TimeoutError:
            return Ended(Outcome.UNKNOWN)
        finally:
            started.end()

    def _with_loaded(self, places: Sequence[str]) -> _Trying:
        if self._loaded is None or self._places != places:
            self.end()
            self._loaded, self._places = self._start(places), places
            if not self._loaded.is_ready():
                raise SystemExit(f"without a fault these tests cannot be loaded: pytest {' '.join(places)}")
        return self._loaded

    def end(self) -> None:
        """End the process that has loaded the tests."""
        if self._loaded is not None:
            self._loaded.end()
            self._loaded = None

    def record(self, places: Sequence[str], file: Path) -> None:
        """Run the tests without a fault; those that fail already are left out, else each fault would seem to be noticed."""
        command = [*_pytest("tests.mutants.recording"), "--timeout", "120", *places]
        environ = self._environ({RECORD: str(file)})
        status = self._children.run(command, _RECORDING_S, cwd=self._directory, env=environ)
        # Where a test hangs, or pytest itself fails at its end, the status is that of tests that failed, and nothing is written.
        is_whole = status in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED} and is_recorded(file)
        if not is_whole:
            raise SystemExit(f"without a fault these tests do not end ({status}): pytest {' '.join(places)}")

    def _start(self, places: Sequence[str]) -> _Trying:
        mine, its = Pipe()
        command = [*_pytest("tests.mutants.trials"), *self._limits, *places]
        number = its.fileno()
        environ = self._environ({ORDERS: str(number)})
        started = self._children.start(command, cwd=self._directory, env=environ, pass_fds=(number,))
        its.close()
        return _Trying(started, mine, self._children)

    def _environ(self, more: Mapping[str, str]) -> Mapping[str, str]:
        paths = os.pathsep.join((str(self._directory), str(self._directory / "client")))
        return os.environ | {"PYTHONPATH": paths, **more}

    def _write(self, file: Path, source: str) -> None:
        file.write_text(source, "utf-8")
        # Bytecode of one fault would pass for that of the next one, of the same second and size.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)


def copy_checkout(directory: Path) -> None:
    """Copy what git has or would have, as it lies here."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)


def _pytest(plugin: str) -> list[str]:
    options = ("-n", "0", "-p", "no:cacheprovider", "-p", plugin, "-m", "not long")
    return [sys.executable, "-m", "pytest", *options]
