"""The service manager of this machine, and what it has of memd."""

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from memd.config.load import location
from memd.ctl.call import Places
from memd.ctl.daemon.process import command_for
from memd.ctl.failures import Failed
from memd.ctl.service import launchd, systemd
from memd.ctl.service.manager import NoManager, query_manager
from memd.ctl.service.start_command import StartCommand, launch
from memd.ctl.service.supervisor import ManagedService, ServiceUnit, Supervisor
from memd.ctl.service.unit_files import InstalledUnits, look


class ServiceInstallation(msgspec.Struct, frozen=True):
    """What is installed, and what would be."""

    supervisor: Supervisor
    launch: StartCommand
    units: tuple[ServiceUnit, ...]
    installed: tuple[InstalledUnits, ...]
    names_usual_file: bool  # no other configuration was named

    @property
    def main(self) -> InstalledUnits:
        """The file that holds the command."""
        return self.installed[0]

    @property
    def is_installed(self) -> bool:
        """Whether there is a service at all, also one that memd did not write."""
        return self.main.state != "missing"

    @property
    def is_current(self) -> bool:
        """Whether every file is as it would be written."""
        wanted = {unit.path for unit in self.units}
        return all(one.state == ("current" if one.path in wanted else "missing") for one in self.installed)

    @property
    def command(self) -> tuple[str, ...]:
        """What the installed service runs; empty where that is not known."""
        return self.supervisor.command_in(self.main.text)

    @property
    def is_of_these_places(self) -> bool:
        """Whether the installed service runs the daemon of this configuration, state directory and socket."""
        installed, wanted = _places_in(self.command), _places_in(self.launch.command)
        # A unit of an older memd does not name the file at its usual place.
        return installed == wanted or (self.names_usual_file and installed == {**wanted, "--config": None})


def supervisor_of(platform: str, environ: Mapping[str, str], places: Places) -> Supervisor | None:
    """The service manager that the platform has; None where memd knows none.

    Args:
        platform: As in sys.platform.
        environ: The environment of the process.
        places: Configuration, state directory and socket of the daemon.
    """
    match platform:
        case "darwin":
            return launchd.of_user(places.home, os.getuid())
        case "linux":
            return systemd.of_user(environ, places.home)
        case _:
            return None


def find_installation(
    environ: Mapping[str, str], places: Places, *, platform: str = sys.platform, hardened: bool = False
) -> ServiceInstallation | None:
    """What is installed; None where there is nothing to install with.

    Args:
        environ: The environment of the process.
        places: Configuration, state directory and socket of the daemon.
        platform: As in sys.platform.
        hardened: Whether the drop-in is wanted; one that is there stays wanted.

    Raises:
        Failed: a path cannot stand in a unit.
    """
    supervisor = supervisor_of(platform, environ, places)
    if supervisor is None:
        return None
    # The file is named, wherever it is: nobody has to come to the same answer twice.
    file, _ = location(places.config, environ, places.home, platform=platform)
    named = msgspec.structs.replace(places, config=file)
    started = launch((_interpreter(), *command_for(named)[1:]), environ, places)
    plain = supervisor.units(started, hardened=False)
    optional = [path for path in supervisor.unit_paths() if path not in {unit.path for unit in plain}]
    wanted = hardened or any(path.exists() for path in optional)
    units = supervisor.units(started, hardened=True) if wanted else plain
    return ServiceInstallation(
        supervisor, started, units, look(supervisor, units), names_usual_file=places.config is None
    )


def _interpreter() -> str:
    """The Python of this installation, under one name, whichever it was started by: python, python3 or python3.11."""
    usual = Path(sys.prefix) / "bin" / "python3"
    try:
        return str(usual) if usual.samefile(sys.executable) else sys.executable
    except OSError:
        return sys.executable


def find_own_installation(environ: Mapping[str, str], places: Places) -> ServiceInstallation | None:
    """The service that runs the daemon of these places, whatever the manager says; None where there is none.

    It is looked for without asking the manager: most have no service, and nothing is to be waited for.
    """
    try:
        found = find_installation(environ, places)
    except Failed:
        return None
    return found if found is not None and found.is_installed and found.is_of_these_places else None


def managed_state(found: ServiceInstallation | None, environ: Mapping[str, str]) -> ManagedService | None:
    """The state of that service; None where there is none, or no manager to ask."""
    if found is None:
        return None
    try:
        return query_manager(found.supervisor, environ)
    except NoManager:
        return None


def _places_in(command: Sequence[str]) -> dict[str, str | None]:
    named = dict(itertools.pairwise(command))
    return {flag: named.get(flag) for flag in ("--state-dir", "--socket", "--config")}
