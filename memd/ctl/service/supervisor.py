"""What systemd and launchd have in common: the command to start, the files that say so, and the interface of a manager."""

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

# Variables with directories of this user. A service gets none from a shell. Variables with keys are left out.
_PLACES = ("XDG_CONFIG_HOME", *VARIABLES)


class StartCommand(msgspec.Struct, frozen=True):
    """The command that a service manager runs, and its environment; all paths are absolute."""

    command: tuple[str, ...]
    environ: Mapping[str, str]  # beside what the manager gives
    places: Places


def launch(command: tuple[str, ...], environ: Mapping[str, str], places: Places) -> StartCommand:
    """The daemon of this installation at these places.

    Args:
        command: What runs it.
        environ: Of this process.
        places: Configuration, state directory and socket of the daemon.

    Raises:
        Failed: a path holds what cannot stand in a unit.
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
    """Where the user's configuration is, as the XDG Base Directory specification has it."""
    return absolute(environ, "XDG_CONFIG_HOME", home) or home / ".config"


class ServiceUnit(msgspec.Struct, frozen=True):
    """A file that a service manager reads."""

    path: Path
    text: str


class ManagerCommand(msgspec.Struct, frozen=True):
    """A command of the service manager's own tool."""

    words: tuple[str, ...]
    may_fail: bool = False  # its failure is no error: what it asks for may hold already
    timeout_s: float = 0.0  # seconds for which a failing command is tried again


class ManagedService(msgspec.Struct, frozen=True, kw_only=True):
    """What the manager knows of the service."""

    loaded: bool  # whether it knows it at all
    enabled: bool = False  # whether it starts it at login
    state: str = ""  # in the manager's own terms
    pid: int | None = None  # of the daemon that it runs
    waits: bool = False  # it starts one for the next client
    path: str | None = None  # of the file that it has loaded
    result: str = ""  # why it ended, unless it was stopped
    exit_code: int | None = None  # of its last end
    stale: bool = False  # it has not read the file since that changed
    restarts: int = 0


class Supervisor(Protocol):
    """Makes the unit files and the commands of a manager; without side effects."""

    @property
    def name(self) -> str:
        """The name of the manager: systemd or launchd."""

    @property
    def tool(self) -> str:
        """The program that controls the manager."""

    def units(self, launch: StartCommand, *, hardened: bool) -> tuple[ServiceUnit, ...]:
        """The files that make it run a daemon, the one that holds its command first."""

    def unit_paths(self) -> tuple[Path, ...]:
        """Where all files are that an installation may consist of, the one that holds the command first."""

    def command_in(self, text: str) -> tuple[str, ...]:
        """The command that the first of the units runs; empty where that cannot be made out."""

    def differing(self, installed: str, wanted: str) -> tuple[str, ...]:
        """The names of the settings in which two texts of a unit differ. Values may be secret and are left out."""

    def reach(self) -> ManagerCommand:
        """The command that succeeds if, and only if, the manager can be controlled from here."""

    def ask(self) -> ManagerCommand:
        """The command that prints the state of the service; it may fail where the manager does not know it."""

    def parse_state(self, code: int, printed: str) -> ManagedService:
        """The state in what `ask` printed."""

    def install(self, *, changed: bool, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The commands after the files were written: start it now, and at each login."""

    def start(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The commands that start it."""

    def stop(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The commands that stop it until the next login, even if a client connects."""

    def restart(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The commands that restart it."""

    def before_removal(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The commands before the files are removed: stop it, and do not start it again."""

    def after_removal(self) -> tuple[ManagerCommand, ...]:
        """The commands after the files were removed."""


def template(name: str) -> str:
    """The text of a unit, by its path below the project: ``systemd/memd.service``.

    A wheel has them beside the code. An installation that runs from a clone has them where they are in the clone.

    Raises:
        Failed: it is in neither place.
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
            "Install it anew: pip install --force-reinstall memd-daemon",
        ) from error


Author = Literal["memd", "edited", "other"]
"""Of a file: as memd wrote it, changed since, or never written by memd."""

_WORDS = "Written by memd-ctl service install; sha256 of the other lines:"
_MARK = re.compile(rf"^.*{re.escape(_WORDS)} ([0-9a-f]{{64}}).*\n", re.MULTILINE)


def marked(text: str, *, opening: str = "# ", closing: str = "", line: int = 0) -> str:
    """A text with the mark in it.

    Args:
        text: Lines, each with its end.
        opening: What begins a comment.
        closing: What ends one.
        line: How many lines stay before it.
    """
    lines = text.splitlines(keepends=True)
    lines.insert(line, f"{opening}{_WORDS} {_digest(text)}{closing}\n")
    return "".join(lines)


def author(text: str) -> Author:
    """Whether memd wrote a text, and whether it is unchanged since."""
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
    """A file of the service, as it is on the disk."""

    path: Path
    state: State
    differing: tuple[str, ...] = ()  # the names of settings
    reason: str = ""  # why it cannot be read
    text: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether memd may replace and remove it."""
        return self.state in {"current", "outdated"}


def find_units(supervisor: Supervisor, wanted: Sequence[ServiceUnit]) -> tuple[InstalledUnits, ...]:
    """All files that an installation may consist of, the one that holds the command first.

    Args:
        supervisor: Whose files.
        wanted: What would be written. One that would not be, and is there, is out of date.
    """
    texts = {unit.path: unit.text for unit in wanted}
    return tuple(_find_unit(supervisor, path, texts.get(path)) for path in supervisor.unit_paths())


def _find_unit(supervisor: Supervisor, path: Path, wanted: str | None) -> InstalledUnits:
    try:
        # A link to /dev/null is how systemd masks a unit.
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
