"""memd-ctl in processes of its own, with a real daemon, in a house that is cleared afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memd.ctl.__main__ import main
from memd.ctl.daemon_process import find_holder
from memd_client import Client, MemdClientError
from tests.ctl.conftest import Ran
from tests.daemon import hashing
from tests.daemon.forked import HASHING, Files, ForkedProcess
from tests.wait import until

TIMEOUT_S = 120.0


class House:
    """A home directory with nothing of memd in it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        self.tmp = directory / "t"
        self.tmp.mkdir()
        self.state = self.home / ".local" / "state" / "memd"
        self.config = self.home / ".config" / "memd" / "config.toml"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMD_", "XDG_"))}
        self.environ: Mapping[str, str] = {**kept, "HOME": str(self.home), "TMPDIR": str(self.tmp)}

    def write_config(self, text: str) -> None:
        """Put a configuration at the usual place. Without vectors a test is quick."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(f'[defaults]\nprovider = "none"\n{text}', encoding="utf-8")

    def make(self, path: str, text: str = "# A note\n") -> Path:
        """Write a note in the home directory; the directory it lies in."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file.parent

    def start(self, *argv: str) -> "subprocess.Popen[bytes]":
        """Begin a command, as a program of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "memd.ctl", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ,
            cwd=self.home,
        )

    def run(self, *argv: str) -> Ran:
        """Run a command to its end."""
        with TemporaryDirectory(dir=self.tmp) as directory:
            out, err = Path(directory, "out"), Path(directory, "err")
            command = ForkedProcess(main, ["memd-ctl", *argv], self.environ, Files(out, err, self.home))
            code = command.wait(TIMEOUT_S)
            return Ran(code, out.read_text("utf-8"), err.read_text("utf-8"))

    def begin(self) -> int:
        """Start a daemon as `memd-ctl up` does, in a quarter of the time, and wait until it has indexed all; its pid."""
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        log, socket = self.state / "memd.log", self.state / "memd.sock"
        ForkedProcess(
            hashing.main,
            [HASHING, str(self.config), str(self.state), str(socket)],
            self.environ,
            Files(log, log),
        )
        until(lambda: _has_synced(socket), 20)
        pid = self.daemon
        assert pid is not None
        return pid

    def ended(self, command: "subprocess.Popen[bytes]") -> Ran:
        """What a command came to."""
        with command:
            out, err = command.communicate(timeout=TIMEOUT_S)
        return Ran(command.returncode, out.decode(), err.decode())

    def run_on_terminal(
        self, answer: str, *argv: str, meanwhile: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        """Run a command on a terminal where somebody types an answer; its status, and what the terminal got.

        Args:
            answer: What is typed.
            argv: The command.
            meanwhile: What is done when the question stands there, before it is answered.
        """
        ours, theirs = os.openpty()
        command = subprocess.Popen(
            [sys.executable, "-m", "memd.ctl", *argv],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self.environ,
            cwd=self.home,
        )
        os.close(theirs)
        got = b""
        if meanwhile is not None:
            while b"[y/N]" not in got:
                got += os.read(ours, 4096)
            meanwhile()
        os.write(ours, answer.encode())
        # Linux says that the other end is closed with an error.
        with command, suppress(OSError):
            while data := os.read(ours, 4096):
                got += data
        os.close(ours)
        return command.returncode, got.decode().replace("\r\n", "\n")

    def data(self, *argv: str) -> Any:
        """The data of a command that must succeed."""
        ran = self.run(*argv, "--json")
        answer = json.loads(ran.out)
        assert answer["ok"] is True, ran
        return answer["data"]

    @property
    def daemon(self) -> int | None:
        """The pid of the daemon that lives here."""
        return find_holder(self.state / "memd.lock")

    def clear(self) -> None:
        """End the daemon, if a test left it."""
        if (pid := self.daemon) is not None:
            os.kill(pid, signal.SIGTERM)
            until(lambda: self.daemon is None, 10)


def _has_synced(socket: Path) -> bool:
    """Whether a daemon answers, and has indexed all; a command that asks it would take ten times as long."""
    with suppress(MemdClientError), Client(socket=socket, timeout=TIMEOUT_S) as client:
        client.sync()
        return True
    return False


@contextmanager
def house() -> Iterator[House]:
    """A house under a short path, for the sake of the socket."""
    with TemporaryDirectory(prefix="memd") as directory:
        made = House(Path(directory).resolve())
        try:
            yield made
        finally:
            made.clear()
