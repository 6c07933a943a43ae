"""Giving orders to the service manager."""

import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping

import msgspec

from memd.ctl.failures import BUSY, Failed
from memd.ctl.output.humanize import one_line, visible
from memd.ctl.service.supervisor import ManagedService, ManagerCommand, Supervisor

_ASK_S = 10.0
_OBEYS_S = 330.0  # a little more than the unit gives the daemon to start
_STEP_S = 0.25
_TOLD_CHARS = 500
_ELSE = "Start memd with `memd-ctl up`, or have whatever starts programs here run `memd run`."
_HINTS: Mapping[str, str] = {
    "systemd": "It runs for those who log in. After su or sudo, log in as the user instead: ssh, or machinectl shell "
    f"USER@. In a container, or WSL without systemd, there is none. {_ELSE}",
    "launchd": f"It has agents for those who are logged in on the screen. {_ELSE}",
}


class CommandResult(msgspec.Struct, frozen=True):
    """What a command of the manager came to."""

    code: int
    out: str
    err: str


class NoManager(Failed):
    """There is no service manager that could be given orders."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__("no_service_manager", why, hint)


def reached(supervisor: Supervisor, environ: Mapping[str, str]) -> ManagedService:
    """How the service is, from a manager that can be given orders.

    Raises:
        NoManager: it cannot.
    """
    if shutil.which(supervisor.tool, path=environ.get("PATH")) is None:
        raise NoManager(
            f"There is no {supervisor.tool} on the PATH, so memd cannot be installed as a service of "
            f"{supervisor.name} here.",
            _ELSE,
        )
    greeting = run(supervisor.reach(), environ, _ASK_S)
    if greeting.code:
        raise NoManager(
            f"{supervisor.name} takes no orders from this session: {_complaint(greeting)}",
            _HINTS[supervisor.name],
        )
    answer = run(supervisor.ask(), environ, _ASK_S)
    return supervisor.understand(answer.code, answer.out)


def obey(orders: Iterable[ManagerCommand], environ: Mapping[str, str]) -> None:
    """Give orders one after the other.

    Raises:
        Failed: one was refused; those after it were not given.
    """
    for order in orders:
        deadline = time.monotonic() + order.patience_s
        done = run(order, environ, _OBEYS_S)
        while done.code and time.monotonic() < deadline:
            time.sleep(_STEP_S)
            done = run(order, environ, _OBEYS_S)
        if done.code and not order.may_fail:
            raise Failed(
                "refused",
                f"`{' '.join(order.words)}` failed: {_complaint(done)}",
                "`memd-ctl service logs -n 20` may tell why, `memd-ctl doctor` looks for what is wrong.",
            )


def run(order: ManagerCommand, environ: Mapping[str, str], patience_s: float) -> CommandResult:
    """Run one command to its end.

    Raises:
        Failed: it has none, or is not there.
    """
    tool = shutil.which(order.words[0], path=environ.get("PATH"))
    if tool is None:
        return CommandResult(127, "", f"{order.words[0]} is not on the PATH")
    try:
        done = subprocess.run(  # noqa: S603  the words are our own
            [tool, *order.words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            # What it says is read, and must neither be paged nor coloured.
            env={**environ, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"},
            timeout=patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(
            "timed_out",
            f"`{' '.join(order.words)}` did not end within {patience_s:g} s.",
            "Try it by hand: what it waits for is not memd.",
            exit_code=BUSY,
        ) from None
    return CommandResult(done.returncode, done.stdout, done.stderr)


def _complaint(done: CommandResult) -> str:
    told = visible(one_line(done.err or done.out)) or f"exit status {done.code}"
    return told if len(told) <= _TOLD_CHARS else f"{told[:_TOLD_CHARS]}..."
