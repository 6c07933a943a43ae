"""The program qmd itself, as its users install it."""

import contextlib
import fcntl
import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

PACKAGE = "@tobilu/qmd@2.8.3"
INSTALL_S = 300


class RealQmd(msgspec.Struct, frozen=True):
    """Where it is, and what it needs around it."""

    program: Path
    path: str  # PATH, with the node that it was built for first

    def environ(self, home: Path) -> dict[str, str]:
        """The environment of a daemon that can run it."""
        return {"PATH": self.path, "HOME": str(home)}


@functools.cache
def installed() -> RealQmd:
    """The qmd below the directory MEMD_TEST_QMD, which is installed by npm if it is not there.

    Without that variable it is kept below ~/.cache/memd-tests for the next time. Several test processes install it once.

    Raises:
        AssertionError: it cannot be installed.
    """
    named = os.environ.get("MEMD_TEST_QMD")
    directory = Path(named) if named else Path.home() / ".cache" / "memd-tests" / PACKAGE.replace("/", "-")
    with _locked(directory.with_name(f"{directory.name}.lock")):
        if not _program(directory).exists():
            _install(directory)
    node = directory / "node_modules" / _node() / "bin"
    return RealQmd(_program(directory), os.pathsep.join((str(node), os.environ.get("PATH", os.defpath))))


def _program(directory: Path) -> Path:
    return directory / "node_modules" / ".bin" / "qmd"


def _node() -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"node-{platform.system().lower()}-{machine}"


def _install(directory: Path) -> None:
    npm = shutil.which("npm")
    assert npm is not None, (
        f"the tests of qmd need {PACKAGE}: install npm (apt-get install npm, or brew install node), "
        "or set MEMD_TEST_QMD to a directory that holds it in node_modules"
    )
    beside = directory.with_name(f"{directory.name}.new")
    packages = (PACKAGE, f"{_node()}@22")
    ended = subprocess.run(
        [
            npm,
            "install",
            "--ignore-scripts",
            "--omit=optional",
            "--no-audit",
            "--no-fund",
            "--prefix",
            beside,
            *packages,
        ],
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert ended.returncode == 0, f"npm could not install {packages}: {ended.stderr[-2000:]}"
    # Whole or not at all: an installation that was interrupted must not be taken for one.
    beside.rename(directory)


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
