"""Code that is replaced on the disk, and code that cannot be loaded."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from memd.runtime import installed_code
from memd.runtime.installed_code import InstalledCode
from tests.clock import for_s, hastily
from tests.wait import until_async

LOOK_S = 0.01
TIMEOUT_S = 30.0


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A memd that does nothing but load."""
    package = tmp_path / "memd"
    package.mkdir()
    (package / "daemon.py").write_text("")
    _install(package, "1")
    return package


def _install(package: Path, version: str) -> None:
    """As pip does it: another file in the place of the first."""
    new = package / "new"
    new.write_text(f'VERSION = "{version}"')
    new.rename(package / "__init__.py")


async def test_another_version_is_noticed(package: Path) -> None:
    """Once it is whole; between a removal and an installation nothing is."""
    code = InstalledCode(package, look_s=LOOK_S)
    noticed = asyncio.create_task(code.replaced())
    await asyncio.sleep(10 * LOOK_S)
    assert not noticed.done()
    (package / "__init__.py").unlink()
    await asyncio.sleep(10 * LOOK_S)
    assert not noticed.done()
    _install(package, "2")
    await asyncio.wait_for(noticed, TIMEOUT_S)


async def test_what_cannot_be_loaded_is_not_run(package: Path) -> None:
    """A part of it may still be missing; it is tried again, and the log tells each failure."""
    (package / "daemon.py").write_text("import memd.what_is_not_there_yet")
    code = InstalledCode(package, look_s=LOOK_S)
    _install(package, "2")
    with capture_logs() as logs:
        noticed = asyncio.create_task(code.replaced())
        await until_async(lambda: logs, TIMEOUT_S)
        assert not noticed.done()
        (package / "what_is_not_there_yet.py").write_text("")
        await asyncio.wait_for(noticed, TIMEOUT_S)
    *failures, last = [(one["event"], one.get("status")) for one in logs]
    assert set(failures) == {("daemon.upgrade_unusable", 1)}
    assert last == ("daemon.upgraded", None)


async def test_a_trial_that_hangs_is_ended_and_made_again(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that fails."""
    monkeypatch.setattr(installed_code, "TRIAL_S", 0.1)
    (package / "daemon.py").write_text("import time\ntime.sleep(3600)\n")
    code = InstalledCode(package, look_s=LOOK_S)
    _install(package, "2")
    with capture_logs() as logs:
        noticed = asyncio.create_task(code.replaced())
        await until_async(lambda: logs, TIMEOUT_S)
        monkeypatch.setattr(installed_code, "TRIAL_S", 60.0)
        (package / "daemon.py").write_text("")
        await asyncio.wait_for(noticed, TIMEOUT_S)
    assert logs[0] == {"event": "daemon.upgrade_unusable", "log_level": "warning", "status": -9}


async def test_where_no_trial_can_be_started_it_is_made_again(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no memory for it just now."""
    start, failures = asyncio.create_subprocess_exec, [OSError("no memory")]

    async def fails_once(*command: Any, **how: Any) -> asyncio.subprocess.Process:
        if failures:
            raise failures.pop()
        started.append(await start(*command, **how))
        return started[-1]

    started = list[asyncio.subprocess.Process]()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", fails_once)
    code = InstalledCode(package, look_s=LOOK_S)
    _install(package, "2")
    await asyncio.wait_for(code.replaced(), TIMEOUT_S)
    assert [one.returncode for one in started] == [0]


def test_what_can_never_be_loaded_is_tried_more_and_more_seldom(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trial takes a second of the processor: some in the first minutes, then one in ten."""
    trials = list[InstalledCode]()

    async def fails(code: InstalledCode) -> bool:
        trials.append(code)
        return False

    monkeypatch.setattr(InstalledCode, "_loads", fails)
    code = InstalledCode(package)
    _install(package, "2")
    hastily(for_s(3600, code.replaced()))
    assert 7 < len(trials) < 25


_TWICE = """
import os, sys
from memd.runtime.installed_code import run_anew

print(sys.argv[1:], "SECOND" in os.environ)
if "SECOND" not in os.environ:
    os.environ["SECOND"] = "yes"
    run_anew()
"""


def test_the_program_begins_anew_with_its_arguments() -> None:
    """What it has printed is not lost."""
    ran = subprocess.run(
        [sys.executable, "-c", _TWICE, "run", "--socket"], capture_output=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines() == [b"['run', '--socket'] False", b"['run', '--socket'] True"]
