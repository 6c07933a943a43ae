"""Runs a real daemon in its own process, for tests and benchmarks."""

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from memd.runtime.startup import prepare_environment
from memd_client import Client, MemdClientError
from tests.daemon.forked import HASHING, Files, ForkedProcess
from tests.wait import until

ROOT = Path(__file__).parents[2]
_FORKED = {HASHING, "tests.daemon.counted"}  # they have a main


class Daemon:
    """A daemon whose workspace, configuration, state and socket are below one scratch directory."""

    def __init__(
        self,
        home: Path,
        *,
        settings: str = "",
        real_model: bool = False,
        entry: str = HASHING,
        forked: bool = True,
    ) -> None:
        """Create the object without starting the daemon.

        Args:
            home: The scratch directory; short enough for a socket.
            settings: TOML of [agents.main], below the workspace.
            real_model: Run `memd run` itself; else with the hashing embedder.
            entry: The module that is run for the latter.
            forked: Whether it may be forked off a process that has imported memd; else it is a program of its own, whose
                processor time counts among that of the children of this process.
        """
        self.home = home
        self.workspace = home / "workspace"
        self.config = home / "config.toml"
        self.state = home / "state"
        self.socket = home / "s"
        self.log = home / "log"
        self._real_model = real_model
        self._entry = entry
        self._forked = forked
        (self.workspace / "memory").mkdir(parents=True, exist_ok=True)
        self.configure(settings)
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None

    def configure(self, settings: str) -> None:
        """Write the configuration of agent main."""
        self.config.write_text(
            f'[agents.main]\nworkspace = "{self.workspace}"\n{settings}\n', encoding="utf-8"
        )

    @property
    def command(self) -> list[str]:
        """The command line of the daemon."""
        if self._real_model:
            places = ["--config", self.config, "--state-dir", self.state, "--socket", self.socket]
            return [sys.executable, "-m", "memd", "run", *map(str, places)]
        return [sys.executable, "-m", self._entry, *map(str, (self.config, self.state, self.socket))]

    @property
    def forked(self) -> Callable[[], int] | None:
        """What a forked process runs; None: `command` is started as a program."""
        is_usual = type(self).command is Daemon.command and not self._real_model
        return partial(_enter, self._entry) if is_usual and self._entry in _FORKED else None

    @property
    def process(self) -> subprocess.Popen[bytes] | ForkedProcess:
        """The running process."""
        assert self._process is not None
        return self._process

    def start(self, *, wait: bool = True, environ: dict[str, str] | None = None) -> Self:
        """Start the daemon, and wait until it accepts connections."""
        # As `memd run` has it, before numpy loads: else OpenBLAS has threads that spin, for half of all time spent.
        whole = os.environ | (environ or {})
        prepare_environment(whole)
        command = self.command
        # Where modules are looked for is read once, when Python starts.
        forked = self.forked if self._forked and "PYTHONPATH" not in (environ or {}) else None
        if forked is not None:
            self._process = ForkedProcess(
                forked, command[command.index("-m") + 1 :], whole, Files(self.log, self.log)
            )
        else:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    command, cwd=ROOT, env=whole, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
        if wait:
            try:
                until(self._is_up, 20)
            except BaseException:  # left behind, it would be a failure of the tests that come after
                self.kill()
                raise
        return self

    def _is_up(self) -> bool:
        assert self.process.poll() is None, f"the daemon ended:\n{self.printed()}"
        return self.socket.exists() and self._answers()

    def _answers(self) -> bool:
        # The socket of a daemon that was killed is there until the next one takes it over.
        try:
            with self.client() as client:
                return client.status().pid == self.process.pid
        except MemdClientError:
            return False

    def client(self, timeout: float | None = 60.0) -> Client:
        """Create a client."""
        return Client(socket=self.socket, timeout=timeout)

    def printed(self) -> str:
        """Return everything it has logged."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def write(self, path: str, text: str) -> Path:
        """Write a file of the workspace."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.wait(60)

    def stop(self) -> int:
        """Send SIGTERM, and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(60)


def _enter(entry: str) -> int:
    """Run a module as the program of this process."""
    status: int = importlib.import_module(entry).main()
    return status
