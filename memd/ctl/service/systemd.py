"""Runs memd as a service of systemd's user manager."""

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.ctl.service.supervisor import (
    ManagedService,
    ManagerCommand,
    ServiceUnit,
    StartCommand,
    config_home,
    marked,
    template,
)

SERVICE, SOCKET = "memd.service", "memd.socket"
_HARDENING = "memd.service.d/hardening.conf"
_UNITS = (SOCKET, SERVICE)
_PLAIN = re.compile(r"[A-Za-z0-9_@:,./+=-]+")
_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "MainPID",
    "FragmentPath",
    "Result",
    "ExecMainStatus",
    "NeedDaemonReload",
    "NRestarts",
)


class Systemd(msgspec.Struct, frozen=True):
    """The user manager.

    Args:
        directory: The directory of the user's units.
    """

    directory: Path
    name: str = "systemd"
    tool: str = "systemctl"

    def units(self, launch: StartCommand, *, hardened: bool) -> tuple[ServiceUnit, ...]:
        """Return the service, the socket and, if wanted, the hardening drop-in."""
        command, *arguments = launch.command
        # systemd expands variables in all words but the first.
        line = " ".join([_quoted(command), *(_quoted(word).replace("$", "$$") for word in arguments)])
        environ = [
            f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(launch.environ.items())
        ]
        socket = launch.places.socket
        writable = " ".join(
            _quoted(str(path)) for path in dict.fromkeys((launch.places.state, socket.parent))
        )
        texts = {
            SERVICE: _with_settings(
                template(f"systemd/{SERVICE}"),
                {
                    "ExecStart": [f"ExecStart={line}"],
                    "EnvironmentFile": [*environ, "EnvironmentFile=-%E/memd/env"],
                },
            ),
            SOCKET: _with_settings(
                template(f"systemd/{SOCKET}"), {"ListenStream": [f"ListenStream={_escaped(str(socket))}"]}
            ),
        }
        if hardened:
            texts[_HARDENING] = _with_settings(
                template(f"systemd/{_HARDENING}"), {"ReadWritePaths": [f"ReadWritePaths={writable}"]}
            )
        return tuple(ServiceUnit(self.directory / name, marked(text)) for name, text in texts.items())

    def unit_paths(self) -> tuple[Path, ...]:
        """Return the paths of the service and its socket, the service first."""
        return tuple(self.directory / name for name in (SERVICE, SOCKET, _HARDENING))

    def command_in(self, text: str) -> tuple[str, ...]:
        """Split the value of ExecStart= into words."""
        for line in text.splitlines():
            name, is_setting, value = line.partition("=")
            if is_setting and name == "ExecStart":
                with suppress(ValueError):
                    return tuple(word.replace("%%", "%").replace("$$", "$") for word in shlex.split(value))
        return ()

    def differing(self, installed: str, wanted: str) -> tuple[str, ...]:
        """Compare settings by name, ignoring comments."""
        one, other = _settings(installed), _settings(wanted)
        return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))

    def reach(self) -> ManagerCommand:
        """Return a command that prints the version, which succeeds if the manager runs."""
        return _systemctl("show", "--property=Version")

    def ask(self) -> ManagerCommand:
        """Return the command that prints the state of both units."""
        return _systemctl("show", SERVICE, SOCKET, f"--property={','.join(_PROPERTIES)}")

    def parse_state(self, code: int, printed: str) -> ManagedService:
        """Parse blocks of ``Name=value``, one per unit."""
        blocks = [
            dict(line.partition("=")[::2] for line in block.splitlines()) for block in printed.split("\n\n")
        ]
        units = {block["Id"]: block for block in blocks if "Id" in block}
        service, socket = units.get(SERVICE, {}), units.get(SOCKET, {})
        if code or service.get("LoadState", "not-found") == "not-found":
            return ManagedService(loaded=False)
        pid = _number(service.get("MainPID"))
        waits = socket.get("ActiveState") == "active" and not pid
        return ManagedService(
            loaded=True,
            enabled=service.get("UnitFileState") in {"enabled", "enabled-runtime"},
            state="waiting for a client"
            if waits and service.get("ActiveState") == "inactive"
            else _state(service),
            pid=pid or None,
            waits=waits,
            path=service.get("FragmentPath") or None,
            result="" if service.get("Result") in {"success", None} else str(service["Result"]),
            exit_code=_number(service.get("ExecMainStatus")),
            stale="yes" in {service.get("NeedDaemonReload"), socket.get("NeedDaemonReload")},
            restarts=_number(service.get("NRestarts")) or 0,
        )

    def install(self, *, changed: bool, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Stop changed units first: a socket at another path cannot start while its service runs."""
        before = (_systemctl("stop", *_UNITS, may_fail=True),) if changed and managed.loaded else ()
        return (
            *before,
            _systemctl("daemon-reload"),
            _systemctl("enable", *_UNITS),
            *self.start(managed),
        )

    def start(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Reset failures first: systemd does not start a unit that failed too often."""
        return (*_reset_failed(managed), _systemctl("start", *_UNITS))

    def stop(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Stop the socket too: otherwise a connecting client would start the service again."""
        return (_systemctl("stop", *_UNITS),) if managed.loaded else ()

    def restart(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Keep the socket open, so that clients that connect meanwhile wait."""
        return (
            _systemctl("daemon-reload"),
            *_reset_failed(managed),
            _systemctl("start", SOCKET),
            _systemctl("restart", SERVICE),
        )

    def before_removal(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Stop and disable both units."""
        return (_systemctl("disable", "--now", *_UNITS, may_fail=not managed.loaded),)

    def after_removal(self) -> tuple[ManagerCommand, ...]:
        """Let systemd forget the units and their failures."""
        return (_systemctl("daemon-reload"), _systemctl("reset-failed", *_UNITS, may_fail=True))


def of_user(environ: Mapping[str, str], home: Path) -> Systemd:
    """Return the user manager of this user."""
    return Systemd(config_home(environ, home) / "systemd" / "user")


def _reset_failed(managed: ManagedService) -> tuple[ManagerCommand, ...]:
    return (_systemctl("reset-failed", *_UNITS, may_fail=True),) if managed.loaded else ()


def _systemctl(*words: str, may_fail: bool = False) -> ManagerCommand:
    return ManagerCommand(("systemctl", "--user", *words), may_fail)


def _with_settings(text: str, changed: Mapping[str, list[str]]) -> str:
    """Replace the lines of some settings in a unit; each setting must occur once."""
    lines: list[str] = []
    left = set(changed)
    for line in text.splitlines():
        name = line.partition("=")[0]
        lines += changed.get(name, [line])
        left.discard(name)
    assert not left, f"the template has no {left}"
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    """Quote a word by systemd.syntax(7); a percent sign would begin a specifier."""
    if _PLAIN.fullmatch(word):
        return word
    inside = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escaped(inside)}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _settings(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, is_setting, value = line.partition("=")
        if is_setting and not line.startswith(("#", ";")):
            found.setdefault(name.strip(), []).append(value.strip())
    return found


def _state(service: Mapping[str, str]) -> str:
    state, more = service.get("ActiveState", ""), service.get("SubState", "")
    return state if more in {"", state, "dead"} else f"{state} ({more})"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
