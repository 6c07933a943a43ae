"""A home directory with notes, memd and one program, in which nothing of the person who runs the tests is seen."""

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import memd
import memd_client
from memd.ctl.daemon_process import find_holder
from tests.clients.programs import Program
from tests.wait import until

_MEMD_S = 60.0  # for a command of memd, also when the time is over: it ends the daemon
_PATH = "/usr/local/bin:/usr/bin:/bin"


class Ended(msgspec.Struct, frozen=True):
    """What a process came to."""

    status: int
    out: str
    err: str
    seconds: float

    def __str__(self) -> str:
        return f"status {self.status} after {self.seconds:.1f} s: {self.out[-600:]} {self.err[-600:]}"


class House:
    """The home of one program and of memd."""

    def __init__(
        self,
        directory: Path,
        program: Program,
        command: list[str],
        node: Path,
        url: str,
        until: float = math.inf,
    ) -> None:
        self.home = directory / "home"
        self.work = self.home / "project"
        self.state = self.home / ".local" / "state" / "memd"
        self._command = command
        self._directory = directory
        self._timeout_s = program.timeout_s
        self._until = until  # by the monotonic clock; no program runs longer
        scratch = directory / "t"
        for made in (self.work, scratch):
            made.mkdir(parents=True)
        self.environ = {
            "HOME": str(self.home),
            "TMPDIR": str(scratch),
            "PATH": f"{node}:{_PATH}",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            # What is meant for other hosts goes to the stand-in, which refuses it.
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1"),
            **program.configure(self.home, url),
        }

    def write(self, path: str, text: str) -> None:
        """Write a file of the home directory."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def memd(self, *arguments: str) -> Ended:
        """Run memd-ctl to its end."""
        return self._run([sys.executable, "-P", "-m", "memd.ctl", *arguments], _MEMD_S)

    def upgrade(self, version: str) -> None:
        """Put a daemon of another version in the place of the one that runs, as an installation and a restart do."""
        newer = self._directory / "newer"
        for package in (memd, memd_client):
            source = Path(package.__path__[0])
            shutil.copytree(source, newer / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        init = newer / "memd" / "__init__.py"
        init.write_text(init.read_text().replace(f'"{memd.VERSION}"', f'"{version}"'))
        self.environ["PYTHONPATH"] = str(newer)
        self.memd("down")
        self.memd("up")

    def program(self, *arguments: str) -> Ended:
        """Run the program to its end."""
        timeout_s = min(self._timeout_s, self._until - time.monotonic())
        return self._run([*self._command, *arguments], max(1.0, timeout_s))

    def kill_daemon(self) -> None:
        """Kill the daemon as a crash does."""
        pid = self._daemon()
        assert pid is not None, "no daemon runs"
        os.kill(pid, signal.SIGKILL)
        until(lambda: self._daemon() is None, 10)

    def _daemon(self) -> int | None:
        locks = list(self.state.rglob("*.lock"))
        return next((pid for lock in locks if (pid := find_holder(lock)) is not None), None)

    def _run(self, command: list[str], timeout_s: float) -> Ended:
        began = time.monotonic()
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ,
            cwd=self.work,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        seconds = time.monotonic() - began
        return Ended(
            process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), seconds
        )


@contextmanager
def house_of(
    program: Program, command: list[str], node: Path, url: str, keep: Path | None, until: float = math.inf
) -> Iterator[House]:
    """A house in a temporary directory, or in one that stays; its daemon ends with the block."""
    with TemporaryDirectory(prefix="mc", ignore_cleanup_errors=True) as made:
        directory = Path(made)
        if keep is not None:
            directory = keep / program.name
            shutil.rmtree(directory, ignore_errors=True)
        house = House(directory, program, command, node, url, until)
        try:
            yield house
        finally:
            house.memd("down")
