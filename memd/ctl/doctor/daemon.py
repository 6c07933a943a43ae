"""Checks whether the right daemon runs and answers."""

import importlib.metadata
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

import memd
from memd import VERSION
from memd.config.reload import digest
from memd.config.settings import Config
from memd.ctl.daemon_process import find_holder, is_held
from memd.ctl.doctor import system
from memd.ctl.doctor.agents import degraded
from memd.ctl.doctor.finding import DoctorContext, Finding, failed, passed, unchecked
from memd.ctl.doctor.socket import SocketAnswer
from memd.ctl.output.humanize import counted, duration
from memd.text.memory_paths import as_text
from memd_client.errors import DaemonNotRunning, ProtocolMismatch, TimedOut
from memd_client.messages import PROTOCOL, StatusReport

_START_TOLERANCE_S = 2.0  # the daemon's start time is that after loading its code
_NAMES = ("daemon.version", "daemon.config", "daemon.health")
_SOLE = "daemon.sole"


class DaemonProcesses(msgspec.Struct, frozen=True, kw_only=True):
    """What the system knows about daemons."""

    state_holder: int | None = None  # the pid of the process that locks the state directory, if visible
    socket_holder: int | None = None  # likewise, the socket
    is_state_held: bool = False  # also by a process in another pid namespace
    others: tuple[int, ...] | None = None  # pids of all daemons of this user; None: unknown
    interpreters: Mapping[int, str] = {}  # by pid
    code_at: float = 0.0  # Unix time of the newest file of this installation


def look(context: DoctorContext) -> DaemonProcesses:
    """Find the daemons of this user, and the holders of the locks of these places."""
    places = context.places
    running = system.find_daemons(context.uid)
    return DaemonProcesses(
        state_holder=find_holder(places.lock),
        is_state_held=is_held(places.lock),
        socket_holder=find_holder(places.socket_lock),
        others=tuple(running) if system.PROC.is_dir() else None,
        interpreters={pid: program for pid in running if (program := system.interpreter_of(pid))},
        code_at=newest_code(),
    )


def newest_code() -> float:
    """Return when the code of this installation was last changed or installed, in Unix time."""
    code = max((file.stat().st_mtime for file in Path(memd.__path__[0]).rglob("*.py")), default=0.0)
    with suppress(importlib.metadata.PackageNotFoundError, OSError):
        # An installer may preserve file times, but it creates this directory.
        for file in importlib.metadata.distribution("memd-daemon").files or ():
            if file.name == "METADATA":
                code = max(code, Path(str(file.locate())).parent.stat().st_mtime)
    return code


def check(
    answer: SocketAnswer | None,
    process: DaemonProcesses | None,
    config: Config | None,
    context: DoctorContext,
    *,
    now: float,
    executable: str,
) -> list[Finding]:
    """Check process, version, configuration and health of the daemon, and that there is only one. Pure.

    Args:
        answer: The answer from the socket; None: the request did not return.
        process: What the system knows; None: that could not be found out.
        config: The configuration on disk; None: it is invalid.
        context: Paths, platform and user.
        now: Unix time.
        executable: The interpreter of this process.
    """
    report = None if answer is None else answer.report
    sole = (
        unchecked(_SOLE, "it could not be found out which processes run")
        if process is None
        else _only_daemon(report, process, context)
    )
    process = process or DaemonProcesses()
    runs = _process(answer, process, context)
    if report is None:
        mismatch = answer is not None and isinstance(answer.error, ProtocolMismatch)
        version = _mismatch(answer, context) if mismatch else unchecked(_NAMES[0], "it does not answer")
        return [runs, version, *(unchecked(name, "it does not answer") for name in _NAMES[1:]), sole]
    return [
        runs,
        _version(report, process, context, now=now, executable=executable),
        _config(report, config, context),
        _health(report, context),
        sole,
    ]


def _process(answer: SocketAnswer | None, process: DaemonProcesses, context: DoctorContext) -> Finding:
    name = "daemon.process"
    if answer is not None and answer.report is not None:
        report = answer.report
        return passed(name, f"pid {report.pid}, running for {duration(report.uptime_s)}, answers")
    holder = process.state_holder
    error = None if answer is None else answer.error
    if holder is None and isinstance(error, DaemonNotRunning):
        return failed(name, "does not run", f"Start it: {context.ctl('up')}")
    if isinstance(error, ProtocolMismatch):
        return passed(name, f"runs{f' (pid {holder})' if holder else ''}")
    if holder is None:
        return failed(name, "no daemon answers at the socket", f"Start one: {context.ctl('up')}")
    if isinstance(error, DaemonNotRunning):
        return failed(
            name,
            f"runs (pid {holder}), but not at this socket: {error.reason}",
            f"Name its socket with --socket or MEMD_SOCKET, or start it again here: {context.restart()}",
        )
    silent = f"within {error.timeout_s:g} s" if isinstance(error, TimedOut) else "as it should"
    return failed(
        name,
        f"runs (pid {holder}), but does not answer {silent}",
        f"Restart it: {context.restart()} (if that does not end it: kill -9 {holder})",
    )


def _mismatch(answer: SocketAnswer | None, context: DoctorContext) -> Finding:
    error = None if answer is None else answer.error
    assert isinstance(error, ProtocolMismatch)
    return failed(
        _NAMES[0],
        f"the daemon speaks protocol {error.theirs}, this memd-ctl {error.ours}: they are of different versions",
        f"Restart it with this installation: {context.restart()}"
        if error.theirs < error.ours
        else "Use the memd-ctl of the installation that the daemon runs from, or upgrade this one.",
    )


def _version(
    report: StatusReport, process: DaemonProcesses, context: DoctorContext, *, now: float, executable: str
) -> Finding:
    name, restart = _NAMES[0], f"Restart it: {context.restart()}"
    if (report.version, report.protocol) != (VERSION, PROTOCOL):
        return failed(
            name,
            f"the daemon is memd {report.version} (protocol {report.protocol}), this is {VERSION} ({PROTOCOL})",
            restart,
        )
    started = now - report.uptime_s
    if started + _START_TOLERANCE_S < process.code_at <= now:
        return failed(
            name,
            f"memd was reinstalled {duration(process.code_at - started)} after the daemon started: "
            "it runs the old code",
            restart,
        )
    interpreter = process.interpreters.get(process.socket_holder or report.pid, executable)
    where = "" if _are_of_one(interpreter, executable) else f", from another installation ({interpreter})"
    return passed(name, f"{report.version}, protocol {report.protocol}, as this memd-ctl{where}")


def _are_of_one(interpreter: str, other: str) -> bool:
    """Return whether two interpreters belong to one installation: python, python3 and python3.11 are in one directory."""
    return os.path.dirname(interpreter) == os.path.dirname(other)  # noqa: PTH120  they are compared as text


def _config(report: StatusReport, config: Config | None, context: DoctorContext) -> Finding:
    name = _NAMES[1]
    if report.config_error is not None:
        return failed(
            name,
            f"the daemon refused the configuration and keeps the one before:\n{report.config_error}",
            f"Fix the file, then: {context.ctl('reload')}",
        )
    if config is None:
        return passed(name, "the daemon goes on with the configuration it has")
    mine = None if config.file is None else as_text(config.file)
    if report.config != mine:
        theirs = "built-in defaults" if report.config is None else context.shown(report.config)
        ours = "built-in defaults" if mine is None else context.shown(mine)
        return failed(
            name,
            f"the daemon follows {theirs}, this memd-ctl {ours}",
            f"Name the same file with --config or MEMD_CONFIG; or restart the daemon: {context.restart()}",
        )
    if report.config_waiting:
        return failed(
            name,
            f"the file has changed, and this waits for a person's word: {', '.join(report.config_waiting)}",
            f"If you changed it, have the daemon follow: {context.ctl('reload')}",
        )
    if report.config_digest not in {"", digest(config)}:
        return failed(
            name,
            "the file has changed and the daemon has not read it since",
            f"Have it read the file: {context.ctl('reload')}",
        )
    return passed(
        name, "the daemon follows the file as it is now" if mine else "the daemon follows the defaults"
    )


def _health(report: StatusReport, context: DoctorContext) -> Finding:
    found = degraded(report)
    if not found and report.memory is not None and report.memory.trouble is not None:
        fix = "Raise memory_limit_mb below [daemon] in the configuration, or set it to 0."
        return failed(_NAMES[2], report.memory.trouble, fix)
    if not found:
        return passed(_NAMES[2], "what all agents share works")
    problems = "; ".join(f"{part}: {problem}" for part, problem in found)
    return failed(_NAMES[2], problems, f"The log has more: {context.ctl('logs', '-n', '50')}")


def _only_daemon(report: StatusReport | None, process: DaemonProcesses, context: DoctorContext) -> Finding:
    name = _SOLE
    # The pid that the daemon reports is different if it runs in another pid namespace.
    answers = None if report is None else process.socket_holder or report.pid
    if answers is not None and process.state_holder not in {None, answers}:
        return failed(
            name,
            f"pid {answers} answers at the socket, but pid {process.state_holder} keeps the state directory",
            f"Stop one of them (kill {process.state_holder}), "
            "and give both programs the same MEMD_SOCKET and MEMD_STATE_DIR.",
        )
    if (
        process.socket_holder is not None
        and process.state_holder is not None
        and process.socket_holder != process.state_holder
    ):
        return failed(
            name,
            f"pid {process.socket_holder} keeps the socket, and pid {process.state_holder} the state directory",
            f"Stop one of them (kill {process.socket_holder}), then: {context.ctl('up')}",
        )
    if process.is_state_held and process.state_holder is None:
        return unchecked(
            name, "the daemon runs in another container or pid namespace, and cannot be seen from here"
        )
    if report is not None and process.state_holder is None and context.places.state.exists():
        return failed(
            name,
            f"the daemon at the socket (pid {report.pid}) keeps another state directory than "
            f"{context.shown(context.places.state)}",
            "Set MEMD_STATE_DIR to the directory of that daemon, or MEMD_SOCKET to the socket of yours.",
        )
    if process.others is None:
        return unchecked(name, "this system does not report which processes run")
    mine = answers or process.state_holder
    others = [pid for pid in process.others if pid != mine]
    if not others:
        return passed(name, "no other memd of this user runs")
    pids = ", ".join(map(str, others[:5])) + (", ..." if len(others) > 5 else "")
    return passed(name, f"{counted(len(others), 'other memd daemon')} of this user, elsewhere (pid {pids})")
