"""Carrying a plan out, commands, files, commands; and waiting for the daemon that it starts."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.ctl.atomic_write import write_text
from memd.ctl.daemon.process import find_answer, make_private
from memd.ctl.failures import BAD_CONFIG, BUSY, Failed
from memd.ctl.service.installation import ServiceInstallation
from memd.ctl.service.manager import NoManager, query_manager, run_commands
from memd.ctl.service.supervisor import ManagerCommand, ServiceUnit
from memd_client.messages import StatusReport

_ANSWERS_S = 60.0
_STEP_S = 0.05


class ServicePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an action does to the machine, in this order."""

    before: tuple[ManagerCommand, ...] = ()
    write: tuple[ServiceUnit, ...] = ()
    remove: tuple[Path, ...] = ()
    after: tuple[ManagerCommand, ...] = ()

    @property
    def commands(self) -> list[list[str]]:
        """The orders, for programs."""
        return [list(order.words) for order in (*self.before, *self.after)]


def execute(plan: ServicePlan, found: ServiceInstallation, environ: Mapping[str, str]) -> None:
    """Do it.

    Args:
        plan: What to do.
        found: The service.
        environ: The environment of the process.

    Raises:
        Failed: the manager refuses, or memd ended as soon as it was started.
        NotWritten: a file cannot be written.
    """
    if plan.write:
        # launchd makes no directory for the log, and a view of the file system is made of what is there.
        make_private(found.launch.places.state)
    run_commands(plan.before, environ)
    for unit in plan.write:
        write_text(unit.path, unit.text)
    for path in plan.remove:
        path.unlink(missing_ok=True)
        if path.parent.name.endswith(".d"):
            with suppress(OSError):  # other drop-ins are in it
                path.parent.rmdir()
    try:
        run_commands(plan.after, environ)
    except Failed:
        with suppress(NoManager):
            managed = query_manager(found.supervisor, environ)
            if managed.pid is None and managed.exit_code in {BAD_CONFIG, BUSY}:
                raise _ended(managed.exit_code) from None
        raise


def await_service(found: ServiceInstallation, timeout_s: float | None) -> StatusReport:
    """The daemon that was started, once it answers.

    Args:
        found: The service.
        timeout_s: For how long to wait; None: for as long as is usual.

    Raises:
        Failed: it does not.
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


def _ended(exit_code: int) -> Failed:
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
