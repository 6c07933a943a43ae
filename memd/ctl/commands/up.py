"""memd-ctl up: starts the daemon, or makes a directory searchable."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.config.load import DEFAULT_WORKSPACE, ConfigError, load, location, parse, read
from memd.config.reload import digest
from memd.ctl.atomic_write import Overtaken, write_text
from memd.ctl.commands import indexing
from memd.ctl.commands.config import reloaded
from memd.ctl.config import edit
from memd.ctl.daemon_process import (
    Started,
    await_answer,
    command_for,
    find_answer,
    require_usable_socket,
    start,
)
from memd.ctl.failures import BUSY, Failed, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, one_line, shown, visible
from memd.ctl.output.reply_text import total_vectors, vectors_in_words
from memd.ctl.output.terminal import Outcome
from memd.ctl.service import installation
from memd.text.memory_paths import as_text
from memd_client.messages import StatusReport, SyncReport

_ANSWERS_S = 60.0  # timeout of a started daemon's first answer
_TIMES = 9  # attempts to edit a configuration that other programs write


class WantedAgent(msgspec.Struct, frozen=True):
    """A directory that an agent should search."""

    directory: edit.Directory
    agent: str
    change: edit.DirectoryChange
    file: Path  # the configuration file

    @property
    def path(self) -> Path:
        """The directory."""
        return self.directory.path


class UpActions(msgspec.Struct):
    """What `up` did."""

    started: bool = False
    reloaded: bool = False
    changed: Sequence[str] = ()  # settings that a reload applied
    by: str | None = None  # the service manager that runs the daemon


def run_up(invocation: Invocation) -> Outcome:
    """Start the daemon if needed, change the configuration if needed, and wait until all text can be searched."""
    require_usable_socket(invocation.places.socket, sys.platform)
    service = installation.find_own_installation(invocation.environ, invocation.places)
    # One that is busy is waited for: it would be taken for none, and a file be changed that it does not read.
    running = find_answer(invocation.places, invocation.options.timeout or _ANSWERS_S)
    wanted = None if invocation.options.directory is None else _write_configuration(invocation, running)
    done = UpActions(by=None if service is None else service.supervisor.name)
    managed = installation.managed_state(service, invocation.environ) if running is None else None
    if running is None and service is not None and managed is not None:
        installation.execute_plan(
            installation.ServicePlan(after=service.supervisor.start(managed)), service, invocation.environ
        )
        running = installation.await_service(service, invocation.options.timeout)
        done.started = True
    elif running is None:
        done.by = None
        process = start(command_for(invocation.places), invocation.places.log, invocation.environ)
        running = await_answer(process, invocation.places, invocation.options.timeout or _ANSWERS_S)
        done.started = running.pid == process.process.pid
        _detach(process)
    if wanted is not None and not _is_in_force(wanted, running):
        done.changed = reloaded(invocation).changed
        done.reloaded = True
    elif wanted is None and not done.started:
        _file(invocation, running)  # another one than was given would be taken for the one in force
        return _nothing_to_do(invocation, running)
    agent = wanted.agent if wanted is not None else invocation.options.agent
    text = indexing.sync_text(
        invocation.client, invocation.screen, agent=agent, timeout_s=invocation.options.timeout
    )
    with invocation.client() as memd:
        report = memd.status(agent)
    return _outcome(invocation, report, text, wanted, done)


# --- the configuration


def _write_configuration(invocation: Invocation, running: StatusReport | None) -> WantedAgent:
    """Change the configuration as requested.

    Raises:
        Failed: the user does not agree, or cannot be asked.
        ConfigError: the configuration cannot be changed that way.
    """
    here = invocation.places
    directory = edit.checked_directory(invocation.options.directory, here.home, here.state)
    file = _file(invocation, running)
    default = invocation.places.home.joinpath(*Path(DEFAULT_WORKSPACE).parts[1:])
    agreed: edit.DirectoryChange | None = None
    for _ in range(_TIMES):
        over = file.read_bytes() if file.is_file() else b""
        text = _text(file, invocation.places.home)
        agents = parse(text, file, invocation.places.home).agents
        agent = edit.agent_of(invocation.options.agent, agents)
        wanted = WantedAgent(directory, agent, edit.change_for(directory, agent, agents, default), file)
        changed = _changed_text(text, wanted)
        if changed is None:
            return wanted
        # Never write what the daemon would refuse.
        parse(changed, file, invocation.places.home)
        question = _question(wanted, invocation.places.home) if os.path.lexists(file) else None
        if question is not None and agreed != wanted.change:
            _confirm(invocation, question)
            agreed = wanted.change
            # The file may have been edited while the question was shown.
            continue
        with suppress(Overtaken):
            write_text(file, changed, over=over)
            return wanted
    raise Failed(
        "busy", f"{file} is being written all the time; it was left alone.", "Try again.", exit_code=BUSY
    )


def _file(invocation: Invocation, running: StatusReport | None) -> Path:
    """Return the configuration file in use: the running daemon's, if there is one.

    Raises:
        UsageError: another file was given.
    """
    file, is_named = location(invocation.places.config, invocation.environ, invocation.places.home)
    if running is None or (running.config is None and not is_named):
        return file
    if running.config == as_text(file):
        return file
    if running.config is not None and (
        not is_named or os.path.realpath(running.config) == os.path.realpath(file)
    ):
        return Path(running.config)
    reads = (
        "no configuration file" if running.config is None else shown(running.config, invocation.places.home)
    )
    raise UsageError(
        f"The daemon that runs (pid {running.pid}) reads {reads}, not {shown(file, invocation.places.home)}.",
        "Stop it first with `memd-ctl down`, or leave --config and MEMD_CONFIG out.",
    )


def _text(file: Path, home: Path) -> str:
    """Return the text of the configuration; for a missing file that of the example."""
    return read(file, home) if os.path.lexists(file) else edit.example()


def _changed_text(text: str, wanted: WantedAgent) -> str | None:
    """Return the changed text of the configuration; None if no change is needed."""
    match wanted.change:
        case edit.AlreadySearched():
            return None
        case edit.NewWorkspace():
            return edit.with_workspace(text, wanted.agent, wanted.path)
        case edit.NewExtraPath(is_workspace_too=is_workspace_too):
            changed = edit.with_extra_path(text, wanted.agent, wanted.path)
            return edit.with_workspace(changed, wanted.agent, wanted.path) if is_workspace_too else changed


def _question(wanted: WantedAgent, home: Path) -> str | None:
    """Return the question to ask before an agent is changed; None if it is new."""
    new = shown(wanted.path, home)
    match wanted.change:
        case edit.NewWorkspace(old=Path() as old):
            return f"The workspace of {wanted.agent} is {shown(old, home)}. Make it {new}?"
        case edit.NewExtraPath():
            return f"Let {wanted.agent} search {new} as well?"
        case _:
            return None


def _confirm(invocation: Invocation, question: str) -> None:
    if invocation.options.yes:
        return
    if invocation.screen.json or not (sys.stdin.isatty() and invocation.screen.err.isatty()):
        raise UsageError(f"{visible(question)} There is no terminal to ask at.", "--yes answers with yes.")
    invocation.screen.err.write(f"{visible(question)} [y/N] ")
    invocation.screen.err.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Failed("declined", "Nothing was changed.")


# --- the daemon


def _detach(process: Started) -> None:
    # The daemon outlives this process; setting a return code keeps Popen from waiting for it.
    process.process.returncode = process.process.returncode or 0


def _is_in_force(wanted: WantedAgent, report: StatusReport) -> bool:
    """Return whether the daemon searches the directory as the configuration says."""
    agent = report.agents.get(wanted.agent)
    if agent is None:
        return False
    match wanted.change:
        case edit.AlreadySearched(where=place):
            in_force = [agent.workspace, *agent.extra_paths]
            return as_text(os.path.realpath(place)) in {os.path.realpath(path) for path in in_force}
        case edit.NewWorkspace():
            return agent.workspace == str(wanted.path)
        case edit.NewExtraPath():
            return str(wanted.path) in agent.extra_paths


# --- the outcome


def _nothing_to_do(invocation: Invocation, running: StatusReport) -> Outcome:
    text = SyncReport(
        files=sum(agent.files for agent in running.agents.values()),
        chunks=sum(agent.chunks for agent in running.agents.values()),
    )
    result = _result(invocation, running, text, None, UpActions())
    here = f"memd is running already (pid {running.pid})"
    if running.config_error is not None:
        return Outcome(
            result,
            f"{here}, with its old configuration, since the new one is wrong:\n{visible(running.config_error)}",
        )
    if (waiting := _waiting(invocation, running)) is not None:
        return Outcome(result, f"{here}. Its configuration has changed since{waiting}: `memd-ctl reload`")
    return Outcome(result, f"{here}; there is nothing to change.")


def _waiting(invocation: Invocation, running: StatusReport) -> str | None:
    """Return which settings are not applied yet; None if all are, or the file cannot be read."""
    if running.config_waiting:
        return f" ({visible(', '.join(running.config_waiting))})"
    try:
        config = load(invocation.places.config, invocation.environ, invocation.places.home)
    except ConfigError:
        return None
    is_its_own = running.config == (None if config.file is None else as_text(config.file))
    return "" if is_its_own and running.config_digest not in {"", digest(config)} else None


def _outcome(
    invocation: Invocation,
    report: StatusReport,
    text: SyncReport,
    wanted: WantedAgent | None,
    done: UpActions,
) -> Outcome:
    home = invocation.places.home
    lines = []
    if done.started and done.by is not None:
        lines.append(f"{done.by} started memd (pid {report.pid}), as it does at login.")
    elif done.started:
        lines.append(f"Started memd (pid {report.pid}); its log is {shown(invocation.places.log, home)}.")
    elif done.reloaded:
        what = f": {visible(', '.join(done.changed))}" if done.changed else ""
        lines.append(f"memd (pid {report.pid}) follows the new configuration{what}.")
    else:
        lines.append(f"memd is running already (pid {report.pid}).")
    if wanted is not None:
        lines.append(_change_text(wanted, home))
    lines.append(f"{counted(text.files, 'file')}, {counted(text.chunks, 'chunk')} searchable now.")
    elsewhere = [name for name, agent in sorted(report.agents.items()) if agent.backend == "postgres"]
    if elsewhere:
        lines.append(f"{visible(', '.join(elsewhere))}: what is published on the server is searched there.")
    vectors = total_vectors(report)
    if vectors.waiting:
        lines.append(
            f"Vectors: {vectors_in_words(vectors)}. Until then some answers are found by their words alone."
        )
    elif vectors.done:
        lines.append(f"Vectors: {vectors_in_words(vectors)}.")
    elif text.reason:
        lines.append(f"Vectors: none, {visible(one_line(text.reason))}.")
    lines.append(_next_step(invocation, has_notes=bool(text.files or elsewhere)))
    notes = indexing.left_out_notes(text)
    return Outcome(_result(invocation, report, text, wanted, done), "\n".join(lines), notes)


def _change_text(wanted: WantedAgent, home: Path) -> str:
    new, file = visible(shown(wanted.path, home)), shown(wanted.file, home)
    match wanted.change:
        case edit.AlreadySearched():
            return f"{wanted.agent} searches {new} already."
        case edit.NewWorkspace():
            return f"{new} is the workspace of {wanted.agent} now; {file} says so."
        case edit.NewExtraPath():
            also = "" if wanted.change.is_workspace_too else " as well"
            return f"{wanted.agent} searches {new}{also} now; {file} says so."


def _next_step(invocation: Invocation, *, has_notes: bool) -> str:
    """Return the command to try next, with the flags that this one needed."""
    flags = "".join(
        f" {name} {value}"
        for name, value in (
            ("--socket", invocation.options.socket),
            ("--state-dir", invocation.options.state_dir),
        )
        if value
    )
    if has_notes:
        return f'Ask it something: memd-ctl{flags} search "what did we decide about ..."'
    return (
        f"There are no notes there yet: what is written is searchable a moment later. memd-ctl{flags} status"
    )


def _result(
    invocation: Invocation,
    report: StatusReport,
    text: SyncReport,
    wanted: WantedAgent | None,
    done: UpActions,
) -> dict[str, object]:
    """Return the data that --json prints."""
    vectors = total_vectors(report)
    changed = None
    if wanted is not None:
        changed = {edit.NewWorkspace: "workspace", edit.NewExtraPath: "extra_path"}.get(type(wanted.change))
    return {
        "pid": report.pid,
        "started": done.started,
        "reloaded": done.reloaded,
        "changed": changed,
        "config": report.config,
        "socket": report.socket,
        "log": str(invocation.places.log) if done.started and done.by is None else None,
        "agents": sorted(report.agents),
        "files": text.files,
        "chunks": text.chunks,
        "vectors": {"done": vectors.done, "waiting": vectors.waiting, "eta_s": vectors.eta_s},
    }
