import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from memd.ctl.__main__ import main


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory with a path that leaves room for a socket, which that of tmp_path does not on every machine."""
    with TemporaryDirectory(prefix="memd") as directory:
        yield Path(directory).resolve()


@pytest.fixture
def address(short: Path) -> Path:
    """Where a scripted daemon may listen."""
    return short / "s"


@pytest.fixture
def home(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without memd's variables around it."""
    for name in [name for name in os.environ if name.startswith(("MEMD_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    directory = short / "home"
    directory.mkdir()
    monkeypatch.setenv("HOME", str(directory))
    return directory


@pytest.fixture
def run(home: Path, address: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs memd-ctl in this process, in a home of its own, against the daemon at the address."""

    def running(*argv: str) -> Ran:
        code = main([*argv, "--socket", str(address)])
        return Ran(code, *capfd.readouterr())

    return running
