"""memd-ctl down: stop the daemon."""

import time
from pathlib import Path

from memd.ctl.daemon_process import find_holder, is_gone, is_held, kill, terminate
from memd.ctl.failures import BUSY, ERROR, Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import duration, shown
from memd.ctl.output.terminal import Outcome
from memd.ctl.service import installation
from memd.ctl.service.supervisor import ManagedService
from memd_client.errors import DaemonNotRunning, MemdClientError

_TIMEOUT_S = 10.0
_ASK_S = 2.0
_DIES_S = 5.0
_STEP_S = 0.02


def run_down(invocation: Invocation) -> Outcome:
    """Stop the daemon, and wait until it has ended."""
    service = installation.find_own_installation(invocation.environ, invocation.places)
    managed = installation.managed_state(service, invocation.environ)
    # Before connecting: a connection would make systemd start the service.
    if service is not None and managed is not None and _is_managed(invocation, managed):
        return _stop_service(invocation, service, managed)
    began = time.monotonic()
    stopped = _request_stop(invocation)
    if stopped is None:
        return Outcome({"was_running": False, "pid": None}, "memd is not running.")
    pid, lock, seen = stopped
    timeout_s = invocation.options.timeout or _TIMEOUT_S
    # A daemon that hangs has already taken the client's timeout before it is signalled.
    was_killed = not _await_end(lock, seen, timeout_s)
    if was_killed:
        _kill(pid, seen, (lock, invocation.places.lock), timeout_s)
    took_s = time.monotonic() - began
    data = {"was_running": True, "pid": pid, "took_s": round(took_s, 3), "killed": was_killed}
    notes = (
        ()
        if service is None
        else (f"{service.supervisor.name} may start it again: it is installed as a service.",)
    )
    if was_killed:
        said = (
            f"memd (pid {pid}) did not end within {timeout_s:g} s, and was killed. No note is lost by that."
        )
        return Outcome(data, f"{said} `memd-ctl logs` may tell why.", notes)
    return Outcome(data, f"Stopped memd (pid {pid}) in {duration(took_s)}.", notes)


def _await_end(lock: Path, pid: int | None, timeout_s: float) -> bool:
    """Return whether a lock is free, and a process has ended, within that many seconds."""
    deadline = time.monotonic() + timeout_s
    while is_held(lock) or (pid is not None and not is_gone(pid)):
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP_S)
    return True


def _kill(pid: int, seen: int | None, locks: tuple[Path, ...], timeout_s: float) -> None:
    """Kill a daemon that was asked to stop and did not.

    Args:
        pid: Its pid, as it is named to the user.
        seen: Its pid in this pid namespace; None: it is not visible here.
        locks: What it may hold; the first is free once it has ended.
        timeout_s: How long it was waited for, in seconds.

    Raises:
        Failed: it still runs.
    """
    still = f"memd (pid {pid}) was asked to stop, but still runs after {timeout_s:g} s"
    if seen is None or not kill(locks, seen):
        raise Failed(
            "timed_out",
            f"{still}. It was not killed: it cannot be seen from here that it holds {locks[0]}.",
            f"`memd-ctl logs` may tell why. `kill -9 {pid}` where it runs ends it; no note is lost by that.",
            exit_code=BUSY,
        )
    if not _await_end(locks[0], seen, _DIES_S):
        raise Failed(
            "timed_out",
            f"{still}. It was killed, and has not ended {_DIES_S:g} s later: the system keeps it, as while a disk does not answer.",
            f"It ends when the disk answers: `ps -o stat,wchan -p {pid}`.",
            exit_code=BUSY,
        )


def _request_stop(invocation: Invocation) -> tuple[int, Path, int | None] | None:
    """Ask the daemon at the socket to stop, or else signal the one that holds the state directory.

    Returns:
        Its pid; the lock that is free once it has ended; and its pid again, if the process is visible in this pid namespace.
        None: no daemon runs.

    Raises:
        Failed: the daemon can be neither asked nor signalled.
        MemdClientError: the socket does not answer properly, and the process to stop is unknown.
    """
    lock = invocation.places.socket_lock
    seen = find_holder(lock)
    try:
        with invocation.client(_ASK_S) as memd:
            stopping_pid = memd.stop().pid
            return seen or stopping_pid, lock, seen
    except DaemonNotRunning:
        failure = None
    except MemdClientError as error:
        failure = error  # it hangs, or speaks another protocol; it can be stopped by a signal
    try:
        pid = terminate(invocation.places.lock)
    except PermissionError:
        raise Failed("failed", "memd belongs to another user.", exit_code=ERROR) from None
    if pid is not None:
        return pid, invocation.places.lock, pid
    if is_held(invocation.places.lock):
        raise Failed(
            "failed",
            f"A memd daemon keeps {shown(invocation.places.state, invocation.places.home)}, but it cannot be seen from here: it runs in "
            "another container or pid namespace.",
            "Stop it there, or name its socket with --socket.",
            exit_code=ERROR,
        )
    if failure is not None:
        raise failure
    return None


def _is_managed(invocation: Invocation, managed: ManagedService) -> bool:
    """Return whether the service manager runs the daemon of these places, or would start it when a client connects."""
    holder = find_holder(invocation.places.lock)
    return (managed.pid is not None or managed.waits) and holder in {None, managed.pid}


def _stop_service(
    invocation: Invocation, service: installation.ServiceInstallation, managed: ManagedService
) -> Outcome:
    """Stop the daemon through the service manager, which would start it again otherwise."""
    began = time.monotonic()
    installation.execute_plan(
        installation.ServicePlan(after=service.supervisor.stop(managed)), service, invocation.environ
    )
    took_s = time.monotonic() - began
    name, pid = service.supervisor.name, managed.pid
    data = {"was_running": pid is not None, "pid": pid, "took_s": round(took_s, 3), "service": name}
    again = "It starts it again at the next login; `memd-ctl service uninstall` ends that."
    if pid is None:
        return Outcome(data, f"memd was not running, and {name} no longer waits for its clients. {again}")
    return Outcome(data, f"{name} stopped memd (pid {pid}) in {duration(took_s)}. {again}")
