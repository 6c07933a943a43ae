"""memd is upgraded under a running daemon: the new version runs in its place, with no module of the old one."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memd
import memd_client
from memd.runtime.installed_code import MANAGED_STATUS
from memd_client import Client, MemdClientError
from memd_client.messages import StatusReport
from tests.wait import until

TIMEOUT_S = 60.0
SECRET = "ghp_" + "9fK2" * 9

pytestmark = pytest.mark.long


@pytest.fixture
def site(home: Path) -> Path:
    """Where memd is installed, as a copy."""
    for package in (memd, memd_client):
        source = Path(package.__path__[0])
        shutil.copytree(source, home / "site" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return home / "site"


@pytest.fixture
def daemon(home: Path, site: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """Of that memd, with a transcript of which nothing is read yet; perhaps with a service manager."""
    (home / "notes").mkdir()
    (home / "config.toml").write_text(
        f'[agents.main]\nworkspace = "{home}/notes"\nprovider = "none"\nsources = ["memory", "sessions"]\n'
        f'sessions = {{ paths = ["{home}/talks"], idle_seconds = 0 }}\n'
    )
    (home / "talks").mkdir()
    environ = os.environ | {"PYTHONPATH": str(site), **getattr(request, "param", {})}
    places = ("--config", home / "config.toml", "--state-dir", home / "state", "--socket", home / "s")
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "memd", "run", *map(str, places)],
            env=environ,
            stderr=log,
            stdout=log,
        )
    try:
        until(lambda: _status(home) is not None, TIMEOUT_S)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_S)


def _status(home: Path) -> StatusReport | None:
    try:
        with Client(home / "s", timeout=60) as client:
            return client.status()
    except MemdClientError:
        return None


def _install(site: Path) -> None:
    """A newer version, whose redactor needs something new of a module that each daemon has in memory."""
    with (site / "memd/runtime/profiling.py").open("a") as file:
        file.write("\nNEWER = 1\n")
    redactor = site / "memd/redact/redactor.py"
    redactor.write_text(
        redactor.read_text().replace(
            "\nimport ", "\nfrom memd.runtime.profiling import NEWER  # noqa\nimport ", 1
        )
    )
    init = site / "memd/__init__.py"
    new = init.with_name("new")
    new.write_text(init.read_text().replace(f'"{memd.VERSION}"', '"99.1.0"'))
    new.rename(init)


def test_the_new_version_runs_in_the_place_of_the_old_one(
    home: Path, site: Path, daemon: subprocess.Popen[bytes]
) -> None:
    """As the same process, by itself; what it reads first afterwards is redacted by the new code."""
    before = _status(home)
    assert before is not None
    assert before.version == memd.VERSION
    _install(site)
    until(lambda: (now := _status(home)) is not None and now.version == "99.1.0", TIMEOUT_S)
    assert daemon.poll() is None
    (home / "talks/a.jsonl").write_text(
        f'{{"role": "user", "content": "the walrus is called Wanda, her token is {SECRET}"}}\n'
    )
    with Client(home / "s", timeout=60) as client:
        client.sync()
        [hit] = client.search("walrus", min_score=0).results
    assert "Wanda" in hit.snippet
    assert SECRET not in hit.snippet
    assert "sync.file_failed" not in (home / "log").read_text()


@pytest.mark.parametrize("daemon", [{"NOTIFY_SOCKET": "@memd-test-that-nobody-hears"}], indirect=True)
def test_a_service_manager_starts_the_new_version(
    home: Path, site: Path, daemon: subprocess.Popen[bytes]
) -> None:
    """What it has given to the old process goes to the new one."""
    _install(site)
    assert daemon.wait(TIMEOUT_S) == MANAGED_STATUS
    assert not (home / "s").exists()
