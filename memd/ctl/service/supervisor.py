"""Common parts of systemd and launchd: the start command, unit files, and the interface of a manager."""

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal, Protocol

import msgspec

import memd
from memd.ctl.failures import BAD_CONFIG, Failed
from memd.ctl.invocation import Places
from memd.sources.agent_homes import VARIABLES
from memd_client.paths import absolute

# Variables that name the user's directories, which a service does not inherit. Variables with keys are left out.
_PLACES = ("XDG_CONFIG_HOME", *VARIABLES)


class StartCommand(msgspec.Struct, frozen=True):
    """The command that a service manager runs, and its environment; all paths are absolute."""

    command: tuple[str, ...]
    environ: Mapping[str, str]  # in addition to the manager's variables
    places: Places


def launch(command: tuple[str, ...], environ: Mapping[str, str], places: Places) -> StartCommand:
    """Return the start command of this installation's daemon at these places.

    Args:
        command: The program that runs it.
        environ: The environment of this process.
        places: Configuration, state directory and socket of the daemon.

    Raises:
        Failed: a path contains characters that a unit cannot.
    """
    passed = {
        name: os.path.normpath(path)
        for name in _PLACES
        if (path := absolute(environ, name, places.home)) is not None
    }
    usual = str(places.home / ".config")
    if passed.get("XDG_CONFIG_HOME") == usual:
        del passed["XDG_CONFIG_HOME"]
    for text in (*command, *passed.values(), str(places.home)):
        if not text.isprintable() or text != text.strip() or text.endswith("\\"):
            raise Failed(
                "bad_config",
                f"A service manager cannot be told of the path {text!r}.",
                "Choose one without control characters, and without a blank or a backslash at its end.",
                exit_code=BAD_CONFIG,
            )
    return StartCommand(command, passed, places)


def config_home(environ: Mapping[str, str], home: Path) -> Path:
    """Return the user's configuration directory by the XDG Base Directory specification."""
    return absolute(environ, "XDG_CONFIG_HOME", home) or home / ".config"


class ServiceUnit(msgspec.Struct, frozen=True):
    """A file of a service manager."""

    path: Path
    text: str


class ManagerCommand(msgspec.Struct, frozen=True):
    """A command of the service manager's tool."""

    words: tuple[str, ...]
    may_fail: bool = False  # its failure is ignored, since what it should achieve may be true already
    timeout_s: float = 0.0  # seconds for which a failing command is retried


class ManagedService(msgspec.Struct, frozen=True, kw_only=True):
    """The manager's state of the service."""

    loaded: bool  # whether the manager knows it
    enabled: bool = False  # whether it starts at login
    state: str = ""  # the manager's own word
    pid: int | None = None  # of the running daemon
    waits: bool = False  # socket activation: it starts a daemon for the next client
    path: str | None = None  # of the loaded unit file
    result: str = ""  # why it ended, unless it was stopped
    exit_code: int | None = None  # of its last end
    stale: bool = False  # the unit file has changed since it was loaded
    restarts: int = 0


class Supervisor(Protocol):
    """Creates the unit files and commands of a service manager, without side effects."""

    @property
    def name(self) -> str:
        """The name of the manager: systemd or launchd."""

    @property
    def tool(self) -> str:
        """The program that controls the manager."""

    def units(self, launch: StartCommand, *, hardened: bool) -> tuple[ServiceUnit, ...]:
        """Return the unit files of a daemon, the one with its command first."""

    def unit_paths(self) -> tuple[Path, ...]:
        """Return the paths of all files that may belong to an installation, the one with the command first."""

    def command_in(self, text: str) -> tuple[str, ...]:
        """Return the command in the text of the first unit; () if it cannot be parsed."""

    def differing(self, installed: str, wanted: str) -> tuple[str, ...]:
        """Return the names of settings that differ between two texts of a unit. Values are left out, since they may be secret."""

    def reach(self) -> ManagerCommand:
        """Return a command that succeeds if and only if the manager can be controlled from here."""

    def ask(self) -> ManagerCommand:
        """Return the command that prints the state of the service; it may fail if the manager does not know it."""

    def parse_state(self, code: int, printed: str) -> ManagedService:
        """Parse the output of `ask`."""

    def install(self, *, changed: bool, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Return the commands to run after the files were written: start now, and at each login."""

    def start(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Return the commands that start the service."""

    def stop(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Return the commands that stop the service until the next login, even if a client connects."""

    def restart(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Return the commands that restart the service."""

    def before_removal(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Return the commands to run before the files are removed: stop, and never start again."""

    def after_removal(self) -> tuple[ManagerCommand, ...]:
        """Return the commands to run after the files were removed."""


def template(name: str) -> str:
    """Return the text of a unit by its path in the project: ``systemd/memd.service``.

    A wheel contains the units beside the code; in a clone they are at their original paths.

    Raises:
        Failed: it is at neither place.
    """
    packaged = resources.files("memd") / "units" / name
    if packaged.is_file():
        return packaged.read_text("utf-8")
    cloned = Path(memd.__path__[0]).parent / name
    try:
        return cloned.read_text("utf-8")
    except OSError as error:
        raise Failed(
            "broken_installation",
            f"This installation of memd lacks {name}: it is neither in {packaged} nor at {cloned}.",
            "Reinstall it: pip install --force-reinstall memd-daemon",
        ) from error


Author = Literal["memd", "edited", "other"]
"""Of a file: as memd wrote it, changed since, or never written by memd."""

_WORDS = "Written by memd-ctl service install; sha256 of the other lines:"
_MARK = re.compile(rf"^.*{re.escape(_WORDS)} ([0-9a-f]{{64}}).*\n", re.MULTILINE)


def marked(text: str, *, opening: str = "# ", closing: str = "", line: int = 0) -> str:
    """Insert memd's mark into a text.

    Args:
        text: Lines with line ends.
        opening: The beginning of a comment.
        closing: The end of a comment.
        line: The number of lines before the mark.
    """
    lines = text.splitlines(keepends=True)
    lines.insert(line, f"{opening}{_WORDS} {_digest(text)}{closing}\n")
    return "".join(lines)


def author(text: str) -> Author:
    """Return (memd wrote the text, it is unchanged since)."""
    found = _MARK.search(text)
    if found is None:
        return "other"
    rest = text[: found.start()] + text[found.end() :]
    return "memd" if _digest(rest) == found.group(1) else "edited"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


State = Literal["missing", "current", "outdated", "edited", "foreign", "unreadable"]
"""Of a file: not there; as it would be written; as memd wrote it, for something else; changed since; not memd's; unknown."""

_MOST_BYTES = 1 << 20


class InstalledUnits(msgspec.Struct, frozen=True, kw_only=True):
    """An installed file of the service."""

    path: Path
    state: State
    differing: tuple[str, ...] = ()  # names of differing settings
    reason: str = ""  # why it cannot be read
    text: str = ""


def find_units(supervisor: Supervisor, wanted: Sequence[ServiceUnit]) -> tuple[InstalledUnits, ...]:
    """Return all files that may belong to an installation, the one with the command first.

    Args:
        supervisor: The service manager.
        wanted: The files that would be written; an installed one that is not among them is outdated.
    """
    texts = {unit.path: unit.text for unit in wanted}
    return tuple(_find_unit(supervisor, path, texts.get(path)) for path in supervisor.unit_paths())


def _find_unit(supervisor: Supervisor, path: Path, wanted: str | None) -> InstalledUnits:
    try:
        # systemd masks a unit by a link to /dev/null.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return InstalledUnits(path=path, state="foreign")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        dangling = path.is_symlink()
        return InstalledUnits(path=path, state="foreign" if dangling else "missing")
    except UnicodeDecodeError:
        return InstalledUnits(path=path, state="foreign")
    except OSError as error:
        return InstalledUnits(path=path, state="unreadable", reason=error.strerror or str(error))
    if text == wanted:
        return InstalledUnits(path=path, state="current", text=text)
    differing = supervisor.differing(text, wanted or "")
    states: dict[str, State] = {"memd": "outdated", "edited": "edited", "other": "foreign"}
    return InstalledUnits(path=path, state=states[author(text)], differing=differing, text=text)
