"""What a service manager is, for those that install memd with it."""

from pathlib import Path
from typing import Protocol

import msgspec

from memd.ctl.service.start_command import StartCommand


class ServiceUnit(msgspec.Struct, frozen=True):
    """A file that a service manager reads."""

    path: Path
    text: str


class ManagerCommand(msgspec.Struct, frozen=True):
    """A command of the service manager's own tool."""

    words: tuple[str, ...]
    may_fail: bool = False  # it only says what may be so already
    timeout_s: float = 0.0  # for which it is tried again


class ManagedService(msgspec.Struct, frozen=True, kw_only=True):
    """What the manager knows of the service."""

    loaded: bool  # whether it knows it at all
    enabled: bool = False  # whether it starts it at login
    state: str = ""  # in the manager's word
    pid: int | None = None  # of the daemon that it runs
    waits: bool = False  # it starts one for the next client
    path: str | None = None  # of the file that it goes by
    result: str = ""  # why it runs no more, if not on purpose
    exit_code: int | None = None  # of its last end
    stale: bool = False  # it has not read the file since that changed
    restarts: int = 0


class Supervisor(Protocol):
    """Renders units and phrases orders; it touches nothing."""

    @property
    def name(self) -> str:
        """The name of the manager: systemd or launchd."""

    @property
    def tool(self) -> str:
        """The program that takes orders."""

    def units(self, launch: StartCommand, *, hardened: bool) -> tuple[ServiceUnit, ...]:
        """The files that make it run a daemon, the one that holds its command first."""

    def unit_paths(self) -> tuple[Path, ...]:
        """Where all files are that an installation may consist of, the one that holds the command first."""

    def command_in(self, text: str) -> tuple[str, ...]:
        """The command that the first of the units runs; empty where that cannot be made out."""

    def differing(self, installed: str, wanted: str) -> tuple[str, ...]:
        """The names of the settings in which two texts of a unit differ. Values may be secret and are left out."""

    def reach(self) -> ManagerCommand:
        """What succeeds if, and only if, the manager can be given orders here."""

    def ask(self) -> ManagerCommand:
        """What prints how the service is; it may fail where the manager does not know it."""

    def parse_state(self, code: int, printed: str) -> ManagedService:
        """The state in what `ask` printed."""

    def install(self, *, changed: bool, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """After the files were written: start it now, and at each login."""

    def start(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The orders that start it."""

    def stop(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Stop it until the next login, also where a client connects."""

    def restart(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """The orders that restart it."""

    def before_removal(self, managed: ManagedService) -> tuple[ManagerCommand, ...]:
        """Before the files are removed: stop it, and start it no more."""

    def after_removal(self) -> tuple[ManagerCommand, ...]:
        """After the files were removed."""
