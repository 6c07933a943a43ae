"""Installs the real programs by npm, each in a directory of its own, in the versions of versions.json."""

import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

VERSIONS = Path(__file__).with_name("versions.json")
CACHE = Path.home() / ".cache" / "memd-tests" / "clients"
_INSTALL_S = 150  # OpenClaw, the largest one, takes 40 on two busy processors
_MACHINES: Mapping[str, str] = {"x86_64": "x64", "aarch64": "arm64"}


class NotInstalled(Exception):
    """npm could not install a program."""


def system() -> str:
    """How npm packages call the kind of this machine, such as linux-x64."""
    machine = platform.machine()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def versions() -> dict[str, str]:
    """The version of each program, by its name."""
    return msgspec.json.decode(VERSIONS.read_bytes(), type=dict[str, str])


def write_versions(found: Mapping[str, str]) -> None:
    """Keep these versions for the next time."""
    VERSIONS.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def latest(package: str) -> str:
    """The newest version of a package.

    Raises:
        NotInstalled: the registry does not answer.
    """
    return _npm("view", package, "version").strip()


def registry() -> str:
    """The host of the registry that npm asks.

    Raises:
        NotInstalled: there is no npm.
    """
    return urlsplit(_npm("config", "get", "registry").strip()).hostname or ""


def installed(package: str, version: str, cache: Path) -> Path:
    """The directory node_modules with a package; it is installed if it is not there. Its scripts are not run.

    Raises:
        NotInstalled: it cannot be installed.
    """
    directory = cache / f"{package.replace('/', '-')}@{version}"
    if not directory.exists():
        beside = directory.with_name(f"{directory.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        arguments = (
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--fetch-retries=1",
            "--fetch-timeout=60000",
            "--prefix",
            str(beside),
        )
        _npm("install", *arguments, f"{package}@{version}")
        # Whole or not at all: an installation that was interrupted must not be taken for one.
        beside.rename(directory)
    return directory / "node_modules"


def _npm(*arguments: str) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("there is no npm: install it (apt-get install npm, or brew install node)")
    try:
        ended = subprocess.run(
            [npm, *arguments], capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired as failure:
        raise NotInstalled(f"npm {' '.join(arguments)}: no end after {_INSTALL_S} s") from failure
    if ended.returncode != 0:
        raise NotInstalled(f"npm {' '.join(arguments)}: {ended.stderr[-1000:]}")
    return ended.stdout
