"""memd-ctl down: stop the daemon."""

import time

from memd.ctl.call import Call
from memd.ctl.failures import BUSY, ERROR, Failed
from memd.ctl.lock import find_holder
from memd.ctl.process import stop
from memd.ctl.screen import Outcome
from memd.ctl.service.act import Plan, carry_out
from memd.ctl.service.here import Here, installed_here, managed_here
from memd.ctl.service.supervisor import Managed
from memd.ctl.words import duration
from memd_client.errors import DaemonNotRunning, MemdClientError

_PATIENCE_S = 10.0
_ASK_S = 2.0


def run(call: Call) -> Outcome:
    """Ask it to end, and wait until it has."""
    service = installed_here(call.environ, call.places)
    managed = managed_here(service, call.environ)
    # First, and without connecting: that would have systemd start what is to be stopped.
    if service is not None and managed is not None and _is_the_managers(call, managed):
        return _have_stopped(call, service, managed)
    pid = _find_pid(call)
    if pid is None:
        return Outcome({"was_running": False, "pid": None}, "memd is not running.")
    began = time.monotonic()
    patience_s = call.options.timeout or _PATIENCE_S
    try:
        ended = stop(pid, patience_s)
    except PermissionError:
        raise Failed("failed", f"memd (pid {pid}) belongs to another user.", exit_code=ERROR) from None
    if not ended:
        raise Failed(
            "timed_out",
            f"memd (pid {pid}) was asked to stop, but still runs after {patience_s:g} s.",
            f"`memd-ctl logs` may tell why. `kill -9 {pid}` ends it; no note is lost by that.",
            exit_code=BUSY,
        )
    took_s = time.monotonic() - began
    data = {"was_running": True, "pid": pid, "took_s": round(took_s, 3)}
    notes = (
        ()
        if service is None
        else (f"{service.supervisor.name} may start it again: it is installed as a service.",)
    )
    return Outcome(data, f"Stopped memd (pid {pid}) in {duration(took_s)}.", notes)


def _is_the_managers(call: Call, managed: Managed) -> bool:
    """Whether the service manager runs the daemon of these places, or would as soon as a client connects."""
    holder = find_holder(call.places.lock)
    return (managed.pid is not None or managed.waits) and holder in {None, managed.pid}


def _have_stopped(call: Call, service: Here, managed: Managed) -> Outcome:
    """Left to itself, the manager would start it again."""
    began = time.monotonic()
    carry_out(Plan(after=service.supervisor.stop(managed)), service, call.environ)
    took_s = time.monotonic() - began
    name, pid = service.supervisor.name, managed.pid
    data = {"was_running": pid is not None, "pid": pid, "took_s": round(took_s, 3), "service": name}
    again = "It starts it again at the next login; `memd-ctl service uninstall` ends that."
    if pid is None:
        return Outcome(data, f"memd was not running, and {name} waits for its clients no more. {again}")
    return Outcome(data, f"{name} stopped memd (pid {pid}) in {duration(took_s)}. {again}")


def _find_pid(call: Call) -> int | None:
    """The daemon that answers at the socket, else the one that holds the state directory."""
    try:
        with call.client(_ASK_S) as memd:
            return memd.status().pid
    except DaemonNotRunning:
        return find_holder(call.places.lock)
    except MemdClientError:
        # It hangs, or speaks another protocol: it can be stopped all the same.
        if (pid := find_holder(call.places.lock)) is None:
            raise
        return pid
