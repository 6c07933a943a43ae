"""Runs commands of systemd or launchd, and reads the state and log of the service."""

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from subprocess import DEVNULL, PIPE

import msgspec

from memd.ctl.failures import BUSY, Failed
from memd.ctl.output.humanize import one_line, visible
from memd.ctl.service.supervisor import ManagedService, ManagerCommand, Supervisor
from memd.ctl.service.systemd import SERVICE

_QUERY_TIMEOUT_S = 10.0
_COMMAND_TIMEOUT_S = 330.0  # a little more than the unit's timeout for starting
_RETRY_S = 0.25
_MESSAGE_CHARS = 500
_WITHOUT_MANAGER = "Start memd with `memd-ctl up`, or have whatever starts programs here run `memd run`."
_HINTS: Mapping[str, str] = {
    "systemd": "It runs for those who log in. After su or sudo, log in as the user instead: ssh, or machinectl shell "
    f"USER@. In a container, or WSL without systemd, there is none. {_WITHOUT_MANAGER}",
    "launchd": f"It has agents for those who are logged in on the screen. {_WITHOUT_MANAGER}",
}


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a manager's command."""

    code: int
    out: str
    err: str


class NoManager(Failed):
    """No service manager can be controlled from this process."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__("no_service_manager", why, hint)


def query_manager(supervisor: Supervisor, environ: Mapping[str, str]) -> ManagedService:
    """Query the state of the service.

    Raises:
        NoManager: there is no manager, or it cannot be controlled from here.
    """
    if shutil.which(supervisor.tool, path=environ.get("PATH")) is None:
        raise NoManager(
            f"There is no {supervisor.tool} on the PATH, so memd cannot be installed as a service of "
            f"{supervisor.name} here.",
            _WITHOUT_MANAGER,
        )
    greeting = run(supervisor.reach(), environ, _QUERY_TIMEOUT_S)
    if greeting.code:
        raise NoManager(
            f"{supervisor.name} takes no orders from this session: {_error_text(greeting)}",
            _HINTS[supervisor.name],
        )
    answer = run(supervisor.ask(), environ, _QUERY_TIMEOUT_S)
    return supervisor.parse_state(answer.code, answer.out)


def run_commands(orders: Iterable[ManagerCommand], environ: Mapping[str, str]) -> None:
    """Run commands in order.

    Raises:
        Failed: a command failed; later ones were not run.
    """
    for order in orders:
        deadline = time.monotonic() + order.timeout_s
        done = run(order, environ, _COMMAND_TIMEOUT_S)
        while done.code and time.monotonic() < deadline:
            time.sleep(_RETRY_S)
            done = run(order, environ, _COMMAND_TIMEOUT_S)
        if done.code and not order.may_fail:
            raise Failed(
                "refused",
                f"`{' '.join(order.words)}` failed: {_error_text(done)}",
                "`memd-ctl service logs -n 20` may tell why, `memd-ctl doctor` looks for what is wrong.",
            )


def run(order: ManagerCommand, environ: Mapping[str, str], timeout_s: float) -> CommandResult:
    """Run one command.

    Raises:
        Failed: it timed out.
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
            # The output is parsed, so it must not be paged or coloured.
            env={**environ, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"},
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(
            "timed_out",
            f"`{' '.join(order.words)}` did not end within {timeout_s:g} s.",
            "Run it by hand to see what it waits for: it does not wait for memd.",
            exit_code=BUSY,
        ) from None
    return CommandResult(done.returncode, done.stdout, done.stderr)


def _error_text(done: CommandResult) -> str:
    message = visible(one_line(done.err or done.out)) or f"exit status {done.code}"
    return message if len(message) <= _MESSAGE_CHARS else f"{message[:_MESSAGE_CHARS]}..."


ENABLE_LINGER = "loginctl enable-linger"
_LINGER_TIMEOUT_S = 5.0


def lingers(uid: int, environ: Mapping[str, str]) -> bool | None:
    """Return whether systemd runs the user's services without a login; None: unknown."""
    order = ManagerCommand(("loginctl", "show-user", str(uid), "--property=Linger"))
    try:
        done = run(order, environ, _LINGER_TIMEOUT_S)
    except Failed:
        return None
    return {"Linger=yes": True, "Linger=no": False}.get(done.out.strip()) if not done.code else None


def journal_lines(environ: Mapping[str, str], *, lines: int | None, follow: bool) -> Iterator[bytes]:
    """Yield log lines of the service, including systemd's messages about it.

    Args:
        environ: The environment of the process.
        lines: The number of last lines; None: all.
        follow: Whether to wait for new lines, without end.

    Raises:
        Failed: the journal cannot be read.
    """
    tool = shutil.which("journalctl", path=environ.get("PATH"))
    if tool is None:
        raise Failed(
            "failed", "There is no journalctl on the PATH.", "See where the log of the system is kept here."
        )
    # Without --user: if the journal is not stored on disk, users have no journal of their own.
    words = [
        tool,
        f"--user-unit={SERVICE}",
        "--output=cat",
        "--quiet",
        "--no-pager",
    ]
    words += [f"--lines={lines}"] if lines is not None else []
    words += ["--follow"] if follow else []
    with subprocess.Popen(words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=dict(environ)) as journal:  # noqa: S603  the words are our own
        assert journal.stdout is not None
        assert journal.stderr is not None
        try:
            yield from journal.stdout
            message = journal.stderr.read().decode("utf-8", "replace")
        finally:
            # The caller may stop iterating early.
            journal.terminate()
    if journal.returncode > 0:
        raise Failed("failed", f"journalctl failed: {visible(one_line(message)) or journal.returncode}")
