"""Finds the installed service, plans changes of it, and carries them out."""

import itertools
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.config.load import location
from memd.ctl.atomic_write import make_private, write_text
from memd.ctl.daemon_process import command_for, find_answer
from memd.ctl.failures import BAD_CONFIG, BUSY, Failed
from memd.ctl.invocation import Places
from memd.ctl.service import launchd, systemd
from memd.ctl.service.manager import NoManager, query_manager, run_commands
from memd.ctl.service.supervisor import (
    InstalledUnits,
    ManagedService,
    ManagerCommand,
    ServiceUnit,
    StartCommand,
    Supervisor,
    find_units,
    launch,
)
from memd_client.messages import StatusReport


class ServiceInstallation(msgspec.Struct, frozen=True):
    """The installed service, and the one that would be installed."""

    supervisor: Supervisor
    launch: StartCommand
    units: tuple[ServiceUnit, ...]
    installed: tuple[InstalledUnits, ...]
    names_usual_file: bool  # the configuration is at its default path

    @property
    def main(self) -> InstalledUnits:
        """The unit file with the start command."""
        return self.installed[0]

    @property
    def is_installed(self) -> bool:
        """Whether any service is installed, including one that memd did not write."""
        return self.main.state != "missing"

    @property
    def is_current(self) -> bool:
        """Whether every file equals the one that would be written."""
        wanted = {unit.path for unit in self.units}
        return all(one.state == ("current" if one.path in wanted else "missing") for one in self.installed)

    @property
    def command(self) -> tuple[str, ...]:
        """The command of the installed service; () if unknown."""
        return self.supervisor.command_in(self.main.text)

    @property
    def is_of_these_places(self) -> bool:
        """Whether the installed service runs the daemon of this configuration, state directory and socket."""
        installed, wanted = _places_in(self.command), _places_in(self.launch.command)
        # A unit of an older memd has no --config for the default path.
        return installed == wanted or (self.names_usual_file and installed == {**wanted, "--config": None})


def supervisor_of(platform: str, environ: Mapping[str, str], places: Places) -> Supervisor | None:
    """Return the service manager of the platform; None: memd supports none.

    Args:
        platform: See sys.platform.
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
    """Find the installed service; None: the platform has no supported manager.

    Args:
        environ: The environment of the process.
        places: Configuration, state directory and socket of the daemon.
        platform: See sys.platform.
        hardened: Whether to install the hardening drop-in; an installed one is kept in any case.

    Raises:
        Failed: a path cannot be written in a unit.
    """
    supervisor = supervisor_of(platform, environ, places)
    if supervisor is None:
        return None
    # The command always names the configuration, so that the daemon reads the file that was found here.
    file, _ = location(places.config, environ, places.home, platform=platform)
    named = msgspec.structs.replace(places, config=file)
    started = launch((_interpreter(), *command_for(named)[1:]), environ, places)
    plain = supervisor.units(started, hardened=False)
    optional = [path for path in supervisor.unit_paths() if path not in {unit.path for unit in plain}]
    wanted = hardened or any(path.exists() for path in optional)
    units = supervisor.units(started, hardened=True) if wanted else plain
    return ServiceInstallation(
        supervisor, started, units, find_units(supervisor, units), names_usual_file=places.config is None
    )


def _interpreter() -> str:
    """Return the Python of this installation under a fixed name, whether it was started as python, python3 or python3.11."""
    usual = Path(sys.prefix) / "bin" / "python3"
    try:
        return str(usual) if usual.samefile(sys.executable) else sys.executable
    except OSError:
        return sys.executable


def find_own_installation(environ: Mapping[str, str], places: Places) -> ServiceInstallation | None:
    """Return the service of the daemon of these places; None: there is none.

    The manager is not queried: most users have no service, and callers must not wait for it.
    """
    try:
        found = find_installation(environ, places)
    except Failed:
        return None
    return found if found is not None and found.is_installed and found.is_of_these_places else None


def managed_state(found: ServiceInstallation | None, environ: Mapping[str, str]) -> ManagedService | None:
    """Return the state of that service; None without a service or a manager."""
    if found is None:
        return None
    try:
        return query_manager(found.supervisor, environ)
    except NoManager:
        return None


def _places_in(command: Sequence[str]) -> dict[str, str | None]:
    named = dict(itertools.pairwise(command))
    return {flag: named.get(flag) for flag in ("--state-dir", "--socket", "--config")}


_ANSWERS_S = 60.0
_STEP_S = 0.05


class ServicePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of an action, in order."""

    before: tuple[ManagerCommand, ...] = ()
    write: tuple[ServiceUnit, ...] = ()
    remove: tuple[Path, ...] = ()
    after: tuple[ManagerCommand, ...] = ()

    @property
    def commands(self) -> list[list[str]]:
        """The command lines, for --json."""
        return [list(order.words) for order in (*self.before, *self.after)]


def execute_plan(plan: ServicePlan, found: ServiceInstallation, environ: Mapping[str, str]) -> None:
    """Run the commands, and write and remove the files.

    Args:
        plan: The commands to run, and the files to write and remove.
        found: The installed service, with its manager.
        environ: The environment of the process.

    Raises:
        Failed: the manager refuses, or memd ended right after its start.
        NotWritten: a file cannot be written.
    """
    if plan.write:
        # launchd does not create the directory of the log, and a hardened systemd unit requires the directory.
        make_private(found.launch.places.state)
    run_commands(plan.before, environ)
    for unit in plan.write:
        write_text(unit.path, unit.text)
    for path in plan.remove:
        path.unlink(missing_ok=True)
        if path.parent.name.endswith(".d"):
            with suppress(OSError):  # the directory contains other drop-ins
                path.parent.rmdir()
    try:
        run_commands(plan.after, environ)
    except Failed:
        with suppress(NoManager):
            managed = query_manager(found.supervisor, environ)
            if managed.pid is None and managed.exit_code in {BAD_CONFIG, BUSY}:
                raise _ended_at_once(managed.exit_code) from None
        raise


def await_service(found: ServiceInstallation, timeout_s: float | None) -> StatusReport:
    """Wait until the started daemon answers.

    Args:
        found: The installed service, with its manager.
        timeout_s: The timeout; None: the default one.

    Raises:
        Failed: it does not answer.
    """
    limit_s = timeout_s or _ANSWERS_S
    deadline = time.monotonic() + limit_s
    while (report := find_answer(found.launch.places)) is None:
        if time.monotonic() > deadline:
            raise Failed(
                "timed_out",
                f"{found.supervisor.name} has started memd, but it did not answer within {limit_s:g} s.",
                "`memd-ctl service status` shows what became of it, `memd-ctl service logs -n 20` what it said.",
                exit_code=BUSY,
            )
        time.sleep(_STEP_S)
    return report


def _ended_at_once(exit_code: int) -> Failed:
    if exit_code == BAD_CONFIG:
        return Failed(
            "bad_config",
            "memd ended at once: it cannot run with its configuration.",
            "`memd-ctl service logs -n 5` has its words, `memd-ctl config check` looks at the file.",
            exit_code=BAD_CONFIG,
        )
    return Failed(
        "busy",
        "memd ended at once: another one has its state directory or its socket.",
        "`memd-ctl doctor` tells which; `memd-ctl down` stops it.",
        exit_code=BUSY,
    )
