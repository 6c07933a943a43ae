"""memd-ctl service: installs memd as a service that the system's service manager starts at login, and controls it."""

import os
import shlex
import sys
from collections.abc import Iterable

from memd.config.load import load
from memd.ctl.commands import logs
from memd.ctl.daemon_log import readable
from memd.ctl.daemon_process import find_holder, is_held, require_usable_socket
from memd.ctl.failures import ERROR, NOT_FOUND, NOT_RUNNING, Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import listed, shown, visible
from memd.ctl.output.terminal import Outcome
from memd.ctl.service import installation
from memd.ctl.service.manager import ENABLE_LINGER, NoManager, journal_lines, lingers, query_manager
from memd.ctl.service.supervisor import InstalledUnits, ManagedService


def run_service(invocation: Invocation, platform: str = sys.platform) -> Outcome:
    """Run the action of the command line.

    Args:
        invocation: What was typed, and where things are.
        platform: As in sys.platform.
    """
    hardened = invocation.options.action == "install" and invocation.options.hardened
    found = installation.find_installation(
        invocation.environ, invocation.places, platform=platform, hardened=hardened
    )
    if found is None:
        raise Failed(
            "no_service_manager",
            f"memd knows no service manager on {platform}.",
            "Have whatever starts programs here run `memd run`.",
        )
    match invocation.options.action:
        case "install":
            return _install(invocation, found, platform)
        case "uninstall":
            return _uninstall(invocation, found)
        case "status":
            return _status(invocation, found)
        case "logs":
            return _logs(invocation, found)
        case action:
            return _start_or_stop(invocation, found, action)


# --- install


def _install(invocation: Invocation, found: installation.ServiceInstallation, platform: str) -> Outcome:
    _check(invocation, platform)
    if invocation.options.print:
        managed = ManagedService(loaded=found.is_installed)
        orders = found.supervisor.install(changed=not found.is_current, managed=managed)
        return _dry_run(invocation, installation.ServicePlan(write=found.units, after=orders))
    managed = query_manager(found.supervisor, invocation.environ)
    _refuse_edited_files(invocation, found.installed)
    _refuse_other_installation(invocation, found)
    _refuse_unmanaged_daemon(invocation, found, managed)
    changed = not found.is_current or managed.stale
    plan = installation.ServicePlan(
        write=() if found.is_current else found.units,
        after=found.supervisor.install(changed=changed, managed=managed),
    )
    installation.execute_plan(plan, found, invocation.environ)
    pid = installation.await_service(found, invocation.options.timeout).pid
    where = visible(shown(found.main.path, invocation.places.home))
    text = (
        f"{found.supervisor.name} runs memd (pid {pid}), and starts it at each login; {where} says so."
        if changed
        else f"{found.supervisor.name} runs memd already (pid {pid}); {where} needed no change."
    )
    files = [str(unit.path) for unit in found.units]
    return Outcome(
        {"changed": changed, "files": files, "pid": pid}, text, _login_remarks(_lingers(invocation, found))
    )


def _check(invocation: Invocation, platform: str) -> None:
    """Check that the daemon can start with this configuration and this socket path.

    Raises:
        ConfigError: the configuration is wrong.
        Failed: the path of the socket is too long.
    """
    load(invocation.places.config, invocation.environ, invocation.places.home)
    require_usable_socket(invocation.places.socket, platform)


_PROBLEMS = {"edited": "was changed since memd wrote it", "foreign": "was not written by memd"}


def _refuse_edited_files(invocation: Invocation, files: Iterable[InstalledUnits]) -> None:
    """Raise Failed if a file is unreadable, or differs from what memd wrote and --force is not given."""
    for one in files:
        name = visible(shown(one.path, invocation.places.home))
        if one.state == "unreadable":
            raise Failed("not_changed", f"{name} cannot be read: {one.reason}.")
        if one.state in {"edited", "foreign"} and not invocation.options.force:
            hint = "--force does it all the same."
            if one.state == "edited" and one.path.suffix != ".plist":
                hint = f"What you changed belongs into a drop-in (systemctl --user edit memd.service). {hint}"
            raise Failed("not_changed", f"{name} {_PROBLEMS[one.state]}; it was left alone.", hint)


def _refuse_other_installation(invocation: Invocation, found: installation.ServiceInstallation) -> None:
    """Raise Failed if the service of another installation is there, unless --force is given."""
    theirs, ours = found.command[:1], found.launch.command[:1]
    if found.main.state != "outdated" or not theirs or theirs == ours or invocation.options.force:
        return
    raise Failed(
        "exists",
        f"{visible(shown(found.main.path, invocation.places.home))} runs memd from another installation: {visible(theirs[0])}.",
        f"--force puts this one in its place ({ours[0]}). Or uninstall it with the memd-ctl beside that one.",
    )


def _refuse_unmanaged_daemon(
    invocation: Invocation, found: installation.ServiceInstallation, managed: ManagedService
) -> None:
    """Raise Failed if a daemon runs that the service manager did not start."""
    # Not by connecting: that would have systemd start one.
    for lock in (invocation.places.lock, invocation.places.socket_lock):
        pid = find_holder(lock)
        if is_held(lock) and (pid is None or pid != managed.pid):
            raise Failed(
                "exists",
                f"memd runs already{f' (pid {pid})' if pid else ''}, and {found.supervisor.name} has not started it.",
                "Stop it first: memd-ctl down. It indexes nothing twice when it starts again.",
            )


def _lingers(invocation: Invocation, found: installation.ServiceInstallation) -> bool | None:
    """Return whether the service runs without a login; None: unknown."""
    return lingers(os.getuid(), invocation.environ) if found.supervisor.name == "systemd" else None


def _login_remarks(lingering: bool | None) -> tuple[str, ...]:
    remark = f"It runs while you are logged in. To have it run always: {ENABLE_LINGER}"
    return (remark,) if lingering is False else ()


# --- uninstall, start, stop, restart


def _uninstall(invocation: Invocation, found: installation.ServiceInstallation) -> Outcome:
    name = found.supervisor.name
    there = [one for one in found.installed if one.state != "missing"]
    if not there:
        return Outcome(
            {"changed": False, "files": []}, f"{name} has no service of memd; there is nothing to remove."
        )
    if not invocation.options.print:
        _refuse_edited_files(invocation, there)
    managed = (
        ManagedService(loaded=True)
        if invocation.options.print
        else query_manager(found.supervisor, invocation.environ)
    )
    plan = installation.ServicePlan(
        before=found.supervisor.before_removal(managed),
        remove=tuple(one.path for one in there),
        after=found.supervisor.after_removal(),
    )
    if invocation.options.print:
        return _dry_run(invocation, plan)
    installation.execute_plan(plan, found, invocation.environ)
    files = listed([visible(shown(one.path, invocation.places.home)) for one in there])
    text = f"{name} no longer starts memd; removed {files}. Your notes and the index are as they were."
    return Outcome({"changed": True, "files": [str(one.path) for one in there]}, text)


def _start_or_stop(invocation: Invocation, found: installation.ServiceInstallation, action: str) -> Outcome:
    """Start, stop or restart the service."""
    if not found.is_installed:
        raise _not_installed(found)
    supervisor = found.supervisor
    orders = {"start": supervisor.start, "stop": supervisor.stop, "restart": supervisor.restart}[action]
    if invocation.options.print:
        return _dry_run(invocation, installation.ServicePlan(after=orders(ManagedService(loaded=True))))
    managed = query_manager(supervisor, invocation.environ)
    if action != "stop":
        _refuse_unmanaged_daemon(invocation, found, managed)
    installation.execute_plan(installation.ServicePlan(after=orders(managed)), found, invocation.environ)
    if action == "stop":
        text = f"{supervisor.name} has stopped memd. It starts it again at the next login."
        return Outcome({"pid": None}, text, tuple(_drift(invocation, found)))
    is_ours = found.is_of_these_places
    pid = (
        installation.await_service(found, invocation.options.timeout).pid
        if is_ours
        else query_manager(supervisor, invocation.environ).pid
    )
    return Outcome(
        {"pid": pid}, f"{supervisor.name} runs memd (pid {pid}).", tuple(_drift(invocation, found))
    )


def _dry_run(invocation: Invocation, plan: installation.ServicePlan) -> Outcome:
    """Return the text of what would be done: the files as `systemctl cat` prints them, or the commands if there are none."""
    files = [{"path": str(unit.path), "text": unit.text} for unit in plan.write]
    data = {"files": files, "removed": [str(path) for path in plan.remove], "commands": plan.commands}
    before, after = ([shlex.join(order.words) for order in orders] for orders in (plan.before, plan.after))
    if not plan.write:
        removing = [shlex.join(("rm", str(path))) for path in plan.remove]
        return Outcome(data, "\n".join((*before, *removing, *after)))
    if len(plan.write) == 1:
        (unit,) = plan.write
        place = visible(shown(unit.path, invocation.places.home))
        return Outcome(data, unit.text, (f"This belongs into {place}. Then:", *after))
    text = "\n".join(f"# {unit.path}\n{unit.text}" for unit in plan.write)
    return Outcome(data, text, ("These belong into the files named above them. Then:", *after))


# --- status


def _status(invocation: Invocation, found: installation.ServiceInstallation) -> Outcome:
    managed, reason = ManagedService(loaded=False), None
    try:
        managed = query_manager(found.supervisor, invocation.environ)
    except NoManager as missing:
        reason = missing.message
    lingering = _lingers(invocation, found) if found.is_installed else None
    field_names = ("loaded", "enabled", "state", "pid", "restarts", "exit_code")
    status = {
        "supervisor": found.supervisor.name,
        "installed": found.is_installed,
        "current": found.is_current,
        "files": [
            {"path": str(one.path), "state": one.state, "differing": list(one.differing)}
            for one in found.installed
            if one.state != "missing"
        ],
        "reason": reason,
        **{name: getattr(managed, name) for name in field_names},
        "lingers": lingering,
    }
    if not found.is_installed:
        elsewhere = (
            f" {found.supervisor.name} knows one all the same, from {managed.path}." if managed.path else ""
        )
        text = (
            f"memd is not installed as a service.{elsewhere} `memd-ctl service install` has "
            f"{found.supervisor.name} start it at login."
        )
        return Outcome(status, text, () if reason is None else (reason,), NOT_FOUND)
    remarks = [*_drift(invocation, found), *_troubles(found, managed, reason), *_login_remarks(lingering)]
    is_wrong = not found.is_current or reason is not None or managed.stale
    exit_code = ERROR if is_wrong else 0 if managed.pid is not None else NOT_RUNNING
    return Outcome(status, _status_text(invocation, found, managed, reason), tuple(remarks), exit_code)


_STATES = {
    "current": "as it should be",
    "outdated": "written for something else",
    "edited": "changed since memd wrote it",
    "foreign": "not written by memd",
    "unreadable": "cannot be read",
}


def _status_text(
    invocation: Invocation,
    found: installation.ServiceInstallation,
    managed: ManagedService,
    reason: str | None,
) -> str:
    name = found.supervisor.name
    if reason is not None:
        head = f"memd is installed with {name}, which cannot be asked how it is."
    elif managed.pid is not None:
        again = f", after {managed.restarts} restarts" if managed.restarts else ""
        head = f"{name} runs memd (pid {managed.pid}){again}{', and starts it at login' * managed.enabled}."
    else:
        why = f": {managed.result}" if managed.result else ""
        head = f"{name} does not run memd{f' ({managed.state}{why})' if managed.state else ''}."
    lines = [
        f"  {visible(shown(one.path, invocation.places.home))}  {_STATES[one.state]}"
        for one in found.installed
        if one.state != "missing"
    ]
    return "\n".join([head, *lines])


def _drift(invocation: Invocation, found: installation.ServiceInstallation) -> Iterable[str]:
    """Return how the installed service differs from the one that would be installed, with advice."""
    wanted = {unit.path for unit in found.units}
    for one in found.installed:
        name = visible(shown(one.path, invocation.places.home))
        match one.state:
            case "missing" if one.path in wanted:
                yield f"{name} is missing. `memd-ctl service install` writes it."
            case "outdated" | "edited":
                differs = f" in {listed(one.differing)}" if one.differing else ""
                flag = " --force" if one.state == "edited" else ""
                yield (
                    f"{name} differs{differs} from what this installation writes for these places. "
                    f"`memd-ctl service install{flag}` brings it up to date."
                )
            case _:
                pass


def _troubles(
    found: installation.ServiceInstallation, managed: ManagedService, reason: str | None
) -> Iterable[str]:
    if reason is not None:
        yield reason
        return
    if not managed.loaded:
        yield f"{found.supervisor.name} has not read the file. `memd-ctl service install` has it read."
    elif not managed.enabled:
        yield "It is not started at login. `memd-ctl service install` has it started."
    if managed.stale:
        yield f"{found.supervisor.name} goes by the files as they were. `memd-ctl service restart` has them read again."
    if managed.path is not None and managed.path != str(found.main.path):
        yield f"{found.supervisor.name} goes by another file: {managed.path}"
    if managed.result:
        yield f"It ended with: {managed.result}. `memd-ctl service logs -n 20` may tell why."


# --- logs


def _logs(invocation: Invocation, found: installation.ServiceInstallation) -> Outcome:
    if found.supervisor.name == "launchd":
        return logs.run_logs(invocation)
    lines = journal_lines(
        invocation.environ, lines=logs.wanted_lines(invocation), follow=invocation.options.follow
    )
    if invocation.screen.json:
        return Outcome({"lines": [_text(line) for line in lines]})
    is_empty = True
    for line in lines:
        is_empty = False
        if invocation.screen.is_terminal:
            invocation.screen.say(readable(_text(line), invocation.screen.paint))
        else:
            invocation.screen.copy(line)
    return Outcome(None, notes=("The journal has no line of memd.service.",) if is_empty else ())


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\n")


def _not_installed(found: installation.ServiceInstallation) -> Failed:
    return Failed(
        "not_found",
        f"{found.supervisor.name} has no service of memd.",
        "`memd-ctl service install` makes one.",
        exit_code=NOT_FOUND,
    )
