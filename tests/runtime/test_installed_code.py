"""Code that is replaced on the disk, and code that cannot be loaded."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memd.runtime.installed_code import InstalledCode
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
