"""Detects that another version of memd was installed over the running one, and starts that version.

A daemon loads some modules late, and starts its helper processes from the disk: those of another version
would not match the code that it has in memory.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from random import Random
from typing import NoReturn

import structlog

import memd
from memd.runtime.timers import Backoff, until_next_tick_s

log = structlog.get_logger()

LOOK_S = 6.0  # between two checks of the installed files: an installation takes a second or two
TRIAL_S = 60.0  # timeout of a trial import of the new version
LONGEST_WAIT_S = 600.0  # longest wait until a version that cannot be imported is tried again
MANAGED_STATUS = 69  # sysexits: EX_UNAVAILABLE; the service manager starts memd again


class InstalledCode:
    """The code on the disk that this process was loaded from."""

    def __init__(self, directory: Path = Path(memd.__path__[0]), *, look_s: float = LOOK_S) -> None:
        """Remember the state of the installed code.

        Args:
            directory: The package's directory; each installation rewrites its __init__.py, which contains the
                version.
            look_s: Seconds between two checks.
        """
        self._directory = directory
        self._look_s = look_s
        self._began = self._stamp()

    async def replaced(self) -> None:
        """Return when other code is installed completely and can be imported."""
        backoff = Backoff(Random(), first_s=self._look_s, cap_s=LONGEST_WAIT_S)
        seen = self._began
        while True:
            await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), self._look_s))
            now = self._stamp()
            if now not in {None, self._began} and now == seen:
                if await self._loads():
                    log.info("daemon.upgraded")
                    return
                await asyncio.sleep(backoff.failed())
            seen = now

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = (self._directory / "__init__.py").stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    async def _loads(self) -> bool:
        """Return whether a new process can import the installed code."""
        environ = os.environ | {"PYTHONPATH": str(self._directory.parent)}
        try:
            trial = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", "import memd.daemon"),
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError:
            return False
        try:
            status = await asyncio.wait_for(trial.wait(), TRIAL_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                trial.kill()
            status = await trial.wait()
        if status != 0:
            log.warning("daemon.upgrade_unusable", status=status)
        return status == 0


def run_anew() -> NoReturn:
    """Replace the process by a new run of the program, with the same arguments."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - no shell, as wanted
