"""Runs memd as an agent of launchd on macOS."""

import plistlib
import re
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import msgspec

from memd.ctl.failures import UsageError
from memd.ctl.service.supervisor import (
    ManagedService,
    ManagerCommand,
    ServiceUnit,
    StartCommand,
    marked,
    template,
)

LABEL = "local.memd"
_FILE = f"{LABEL}.plist"
_AGAIN_S = 10.0  # a job that is ending stays loaded for this long at most
_PRINTED = re.compile(r"^\t(state|pid|path|last exit code) = (.*)$", re.MULTILINE)


class Launchd(msgspec.Struct, frozen=True):
    """The agents of one user.

    Args:
        directory: The directory of property lists.
        uid: The user id.
    """

    directory: Path
    uid: int
    name: str = "launchd"
    tool: str = "launchctl"

    @property
    def _domain(self) -> str:
        return f"gui/{self.uid}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def units(self, launch: StartCommand, *, hardened: bool) -> tuple[ServiceUnit, ...]:
        """Return the property list.

        Raises:
            UsageError: hardening was requested, which launchd does not support.
        """
        if hardened:
            raise UsageError("launchd has no sandbox for an agent: leave --hardened out.")
        log = str(launch.places.log)
        job = plistlib.loads(template(f"launchd/{_FILE}").encode())
        job |= {"ProgramArguments": list(launch.command), "StandardOutPath": log, "StandardErrorPath": log}
        if launch.environ:
            job["EnvironmentVariables"] = dict(sorted(launch.environ.items()))
        text = plistlib.dumps(job, sort_keys=False).decode()
        # The mark follows the two lines of the XML header.
        return (ServiceUnit(self.directory / _FILE, marked(text, opening="<!-- ", closing=" -->", line=2)),)

    def unit_paths(self) -> tuple[Path, ...]:
        """Return the path of the property list."""
        return (self.directory / _FILE,)

    def command_in(self, text: str) -> tuple[str, ...]:
        """Return the ProgramArguments of a property list."""
        words = _job(text).get("ProgramArguments")
        return tuple(map(str, words)) if isinstance(words, list) else ()

    def differing(self, installed: str, wanted: str) -> tuple[str, ...]:
        """Compare two property lists by key."""
        one, other = _job(installed), _job(wanted)
        return tuple(sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)))

    def reach(self) -> ManagerCommand:
        """Return a command that fails without a graphical session, in which case the user has no such domain."""
        return ManagerCommand(("launchctl", "print", self._domain))

    def ask(self) -> ManagerCommand:
        """Return the command that prints the job; it fails if the job is not loaded."""
        return ManagerCommand(("launchctl", "print", self._target))

    def parse_state(self, code: int, printed: str) -> ManagedService:
        """Parse the lines of the job itself, which are indented by one tab."""
        if code:
            return ManagedService(loaded=False)
        fields = dict(_PRINTED.findall(printed))
        pid, last = fields.get("pid", ""), fields.get("last exit code", "").partition(":")[0]
        exit_code = int(last) if last.isascii() and last.isdecimal() else None
        return ManagedService(
            loaded=True,
            enabled=True,
            state=fields.get("state", ""),
            pid=int(pid) if pid.isascii() and pid.isdecimal() else None,
            path=fields.get("path"),
            result=f"exit status {exit_code}" if exit_code else "",
            exit_code=exit_code,
        )

    def install(self, *, changed: bool, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Reload a changed job: launchd reads its file only when it loads it."""
        if managed.loaded and not changed:
            return self.start(managed)
        before = (
            (ManagerCommand(("launchctl", "bootout", self._target), may_fail=True),) if managed.loaded else ()
        )
        return (*before, ManagerCommand(("launchctl", "enable", self._target)), self._load())

    def start(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Load the job, which starts it."""
        return (
            (ManagerCommand(("launchctl", "kickstart", self._target)),) if managed.loaded else (self._load(),)
        )

    def stop(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Unload the job; launchd loads it again at the next login."""
        return (ManagerCommand(("launchctl", "bootout", self._target)),) if managed.loaded else ()

    def restart(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Restart the running job, or load it."""
        return (
            (ManagerCommand(("launchctl", "kickstart", "-k", self._target)),)
            if managed.loaded
            else (self._load(),)
        )

    def before_removal(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Unload the job; without its file, launchd does not load it again."""
        return self.stop(managed)

    def after_removal(self) -> tuple[ManagerCommand, ...]:
        """Return no commands: launchd stores nothing about a job that is not loaded."""
        return ()

    def _load(self) -> ManagerCommand:
        words = ("launchctl", "bootstrap", self._domain, str(self.directory / _FILE))
        return ManagerCommand(words, timeout_s=_AGAIN_S)


def of_user(home: Path, uid: int) -> Launchd:
    """Return the agents of this user."""
    return Launchd(home / "Library" / "LaunchAgents", uid)


def _job(text: str) -> dict[str, Any]:
    try:
        job = plistlib.loads(text.encode())
    except (plistlib.InvalidFileException, ExpatError, ValueError, TypeError, KeyError):
        return {}
    return job if isinstance(job, dict) else {}
