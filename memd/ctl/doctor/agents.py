"""Checks each agent: its notes, its health, its overlap with others, its qmd. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from memd.config.settings import AgentSettings, SharedMemory
from memd.ctl.doctor.finding import DoctorContext, Finding, failed, name_of, passed, quoted, unchecked
from memd.ctl.output.humanize import counted, one_line, visible
from memd.inspection.probe import InspectedDatabase, InspectedRoot, Program, RootsScan
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    ExtraDirectory,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    admits,
    exclude_of,
    parts_below,
)
from memd_client.messages import AgentStatus, Health, StatusReport

_SAMPLES = ("MEMORY.md", "USER.md", f"{MEMORY_DIRECTORY}/note.md")


def check_health(agent: str, status: AgentStatus | None, context: DoctorContext) -> Finding:
    """Check what the daemon reports of an agent: which parts are degraded, and why."""
    name = name_of(agent, "health")
    if status is None:
        return unchecked(name, "no daemon runs that could report it")
    found = degraded(status)
    if status.last_pass is not None and status.last_pass.failed is not None:
        found.append(("last pass", one_line(status.last_pass.failed)))
    if not found:
        building = ", an index is being rebuilt" if status.rebuild is not None else ""
        return passed(name, f"everything works{building}")
    fixes = {
        "keyword": f"Rebuild it: {context.ctl('reindex', '--agent', agent)}",
        "vector": "See installation.vectors and installation.model above.",
        "watcher": "See the notes below and limits.watches above; until then changes are looked for every few seconds. "
        f"Files whose directory is gone for good are forgotten by {context.ctl('sync', '--force')}.",
        "provider": _provider_fix(status, context),
        "included": f"It is asked again by itself; its own notes are searched meanwhile: {context.ctl('shared', 'status')}.",
        "publishing": f"It goes on by itself once that is mended: {context.ctl('shared', 'status')}.",
    }
    problems = "; ".join(f"{part}: {problem}" for part, problem in found)
    return failed(
        name, problems, fixes.get(found[0][0], f"The log has more: {context.ctl('logs', '-n', '50')}")
    )


def _provider_fix(status: AgentStatus, context: DoctorContext) -> str:
    """Return what to do about a provider that does not embed."""
    if status.provider == "local":
        return "See installation.model above; search goes on by keywords meanwhile."
    if status.provider == "none":
        return f"Do what is said for one of them, then {context.ctl('down')} and {context.ctl('up')}; keywords answer meanwhile."
    return (
        "What was embedded stays, and it is asked again by itself unless it has refused: see [remote] in the"
        " configuration, and whether the server answers; keywords answer meanwhile."
    )


def degraded(status: AgentStatus | StatusReport) -> list[tuple[str, str]]:
    """Return the parts of an agent, or of the daemon, that do not work, with reasons."""
    parts = ((name, getattr(status, name)) for name in status.__struct_fields__)
    return (
        [
            (name.removesuffix("_health"), one_line(part.reason or "no reason given"))
            for name, part in parts
            if isinstance(part, Health) and not part.ok
        ]
        + [
            ("publishing", one_line(one.reason))
            for one in (getattr(status, "publish", None),)
            if one and one.reason
        ]
        + [
            ("included", one_line(f"{one.memory}: {one.reason}"))
            for one in getattr(status, "included", ())
            if one.reason is not None
        ]
    )


def check_notes(
    scan: RootsScan, context: DoctorContext, *, searched: SharedMemory | None = None
) -> list[Finding]:
    """Check the files below the roots of an agent, and their modification times.

    Args:
        scan: What was found there.
        context: Paths, platform and user.
        searched: The published memory that the agent searches; None: it has local notes.
    """
    faults = [root.fault for root in (*scan.roots, *scan.transcript_roots)]
    if searched is not None and faults == ["does not exist"]:
        where = f"it searches {searched.memory} on {searched.server}, and has no notes here"
        return [passed(name_of(scan.agent, "notes"), where), _clock(scan)]
    return [_notes(scan, context), _clock(scan)]


def report_hanging(agent: str, path: Path, context: DoctorContext, reason: str) -> list[Finding]:
    """Report that accessing a path of an agent did not return."""
    finding = failed(
        name_of(agent, "notes"),
        f"{context.shown(path)} {reason}",
        f"Mount its file system again (`df {quoted(path)}` hangs as well), or take it out of agents.{agent}.",
    )
    return [finding, unchecked(name_of(agent, "clock"), "the notes cannot be looked at")]


def _notes(scan: RootsScan, context: DoctorContext) -> Finding:
    name = name_of(scan.agent, "notes")
    # An agent that was never used has no transcripts yet, which is no fault.
    closed = [root for root in scan.roots if root.fault is not None]
    closed += [root for root in scan.transcript_roots if root.fault not in {None, "does not exist"}]
    if closed:
        faults = "; ".join(f"{context.shown(root.path)} {root.fault}" for root in closed)
        fixes = dict.fromkeys(_root_fix(root, scan, context) for root in closed)
        return failed(name, faults, "\n".join(fixes))
    faulty = [one for one in scan.databases if one.fault is not None]
    if faulty:
        faults = "; ".join(f"{context.shown(one.file)}: {one.fault}" for one in faulty)
        return failed(
            name,
            f"{_notes_text(scan, context)}; transcripts in a database are not read: {faults}",
            "Start the program once, so that it repairs its database. If memd does not know its tables, update memd.",
        )
    if scan.unreadable_count:
        names = _some_of(scan.unreadable, scan.unreadable_count)
        first = _place_of(scan.unreadable[0], scan)
        return failed(
            name,
            f"{counted(scan.unreadable_count, 'file')} cannot be read by this user: {names}",
            f"Let the owner read: chmod u+r {quoted(first)} (a directory: chmod u+rx), or exclude what is not meant.",
        )
    return passed(name, _notes_text(scan, context))


def _database_text(database: InspectedDatabase, context: DoctorContext) -> str:
    kinds = [
        f"{number} of {whose}"
        for number, whose in (
            (database.shared, "groups and channels"),
            (database.subagents, "subagents"),
        )
        if number
    ]
    state = ["open" if database.is_open else "closed", f"version {database.version}", *kinds]
    return f"{counted(database.sessions, 'session')} in {context.shown(database.file)} ({', '.join(state)})"


def _notes_text(scan: RootsScan, context: DoctorContext) -> str:
    where = [
        context.shown(root.path)
        + (f" (leads to {context.shown(root.resolved)})" if root.resolved != root.path else "")
        for root in scan.roots
    ]
    sentences = [f"{counted(scan.notes, 'Markdown file')} in {', '.join(where)}"]
    if scan.transcript_roots:
        there = [context.shown(root.path) for root in scan.transcript_roots if root.fault is None]
        sentences.append(
            counted(scan.transcripts, "transcript") + (f" in {', '.join(there)}" if there else "")
        )
        sentences += [
            f"{context.shown(root.path)} {root.fault}"
            for root in scan.transcript_roots
            if root.fault == "does not exist"
        ]
    sentences += [_database_text(one, context) for one in scan.databases if one.fault is None]
    skipped = sorted(scan.skipped.items(), key=lambda item: (-item[1], item[0]))
    if skipped:
        sentences.append(
            "left out: " + ", ".join(f"{counted(number, 'file')} ({reason})" for reason, number in skipped)
        )
    sentences += [
        f"{context.shown(root.path)} is on {root.remote}: what other machines write there is found by looking again "
        "and again"
        for root in scan.roots
        if root.remote is not None
    ]
    return visible("; ".join(sentences))


def _root_fix(root: InspectedRoot, scan: RootsScan, context: DoctorContext) -> str:
    place = quoted(root.path)
    if root.fault == "does not exist" and root.is_workspace:
        return (
            f"Make it (mkdir -p {place}/{MEMORY_DIRECTORY}), or name the directory of your notes: "
            f"{context.ctl('up', 'DIR')}"
        )
    if root.fault == "cannot be read by this user":
        return f"Let this user read it: chmod u+rx {place}"
    key = "workspace" if root.is_workspace else "sessions" if root in scan.transcript_roots else "extra_paths"
    return f"Put it right, or change agents.{scan.agent}.{key} in the configuration."


def _some_of(names: Sequence[str], count: int) -> str:
    """Return the known names of so many files."""
    more = count - len(names)
    return ", ".join(map(visible, names)) + (f" and {more} more" if more else "")


def _place_of(name: str, scan: RootsScan) -> str:
    """Return the absolute path of a name in the index."""
    if name.startswith("/") or not scan.roots:
        return name
    return f"{scan.roots[0].resolved}/{name}"


def _clock(scan: RootsScan) -> Finding:
    name = name_of(scan.agent, "clock")
    if not scan.future_count:
        return passed(name, "no file says that it was written later than now")
    names = _some_of(scan.future, scan.future_count)
    first = _place_of(scan.future[0], scan)
    return failed(
        name,
        f"{counted(scan.future_count, 'file')} written later than now: {names}; "
        "they count as the newest for ever",
        f"Set the clock right if it is wrong (date), then give them a time: touch {quoted(first)}",
    )


def check_overlap(
    scans: Sequence[RootsScan], agents: Mapping[str, AgentSettings], context: DoctorContext
) -> list[Finding]:
    """Report agents that read the memory of another, which is no fault.

    A path that both were given besides their workspaces is shared on purpose.
    """
    roots = {scan.agent: _roots(scan, agents[scan.agent]) for scan in scans if scan.roots}
    findings = []
    for agent, mine in sorted(roots.items()):
        name = name_of(agent, "apart")
        found = [
            (other, root)
            for other, theirs in sorted(roots.items())
            if other != agent
            for root in mine
            if _reads(root, theirs[0])
        ]
        if not found:
            findings.append(passed(name, "reads the memory of no other agent"))
            continue
        others = ", ".join(sorted({other for other, _ in found}))
        root = found[0][1]
        # Possibly intended; reported because nothing else shows it.
        findings.append(
            passed(
                name,
                f"reads the memory of {others} too, as configured, by way of {context.shown(root.directory)}",
            )
        )
    return findings


def _roots(scan: RootsScan, settings: AgentSettings) -> list[Root]:
    """Return the roots of a scan, with resolved paths; the workspace first."""
    exclude = exclude_of(settings.exclude)
    roots: list[Root] = []
    for fact in scan.roots:
        path = Path(fact.resolved)
        if fact.is_workspace:
            roots.append(Workspace(path, exclude))
        elif path.suffix.lower() == ".md":
            roots.append(SingleFile(path.parent, path.name, exclude))
        else:
            roots.append(ExtraDirectory(path, exclude))
    for notes in scan.presets:
        directory = Path(notes.directory)
        if notes.file is None:
            roots.append(ExtraDirectory(directory, exclude, notes.way))
        else:
            roots.append(SingleFile(directory, notes.file, exclude))
    return roots


def _reads(root: Root, workspace: Root) -> bool:
    """Return whether a root contains files of another agent's workspace."""
    inside = [workspace.directory / sample for sample in _SAMPLES]
    match root:
        case SingleFile():
            mine = [root.directory / root.file]
        case ExtraDirectory():
            mine = [root.directory / "note.md"]
        case Workspace() | SessionPaths():  # an agent's own memory, wherever it is
            mine = []
    return any(_holds(root, file) for file in inside) or any(_holds(workspace, file) for file in mine)


def _holds(root: Root, file: Path) -> bool:
    parts = parts_below(root, file)
    return parts is not None and admits(root, parts)


def check_qmd(
    agent: str,
    settings: AgentSettings,
    status: AgentStatus | None,
    program: Program | None,
    context: DoctorContext,
) -> list[Finding]:
    """Check an agent's qmd by the daemon's report, or without a daemon by the program found; empty without qmd.

    Args:
        agent: The agent's id.
        settings: The agent's settings.
        status: The daemon's report of it; None: there is no daemon, or it does not say.
        program: The program found by this command; None: it could not be examined.
        context: Paths, platform and user.
    """
    if settings.backend != "qmd":
        return []
    name = name_of(agent, "qmd")
    if status is not None:
        return [_qmd_status(agent, status, program, context)]
    if program is None:
        return [unchecked(name, "qmd could not be looked at")]
    if program.fault is not None:
        return [failed(name, _fallback_text(program.fault), _install_fix(agent))]
    return [passed(name, f"{program.version} at {context.shown(program.file)}; no daemon reports its state")]


def _qmd_status(agent: str, status: AgentStatus, program: Program | None, context: DoctorContext) -> Finding:
    name = name_of(agent, "qmd")
    fallback, qmd = status.backend_fallback, status.qmd
    if fallback is not None:
        if program is not None and program.fault is None:
            fix = _reachable_fix(agent, context.shown(program.file))
        else:
            fix = _install_fix(agent)
        return failed(name, _fallback_text(fallback.reason), fix)
    if qmd is None:
        return unchecked(name, "qmd is not ready yet")
    version = qmd.version or (program.version if program is not None else "") or "qmd of an unknown version"
    trouble = [*qmd.warnings, *([f"update: {qmd.update_failure}"] if qmd.update_failure else [])]
    if not status.vector.ok:
        trouble.append(f"vectors: {status.vector.reason or 'not available'}")
    if trouble:
        without = "" if status.vector.ok else f'; search_mode = "search" in [{name}] does without vectors'
        return failed(
            name,
            f"{version} answers, but {one_line('; '.join(trouble))}",
            f"See {name} in the configuration, and {context.ctl('logs', '-n', '50')}{without}",
        )
    return passed(
        name,
        f"{version} at {context.shown(qmd.command)} answers from {counted(len(qmd.collections), 'collection')}",
    )


def _fallback_text(reason: str) -> str:
    return f"the built-in engine answers in its place: {one_line(reason)}"


def _install_fix(agent: str) -> str:
    return (
        "Install it (npm install -g @tobilu/qmd), or say where it is: command in"
        f' [agents.{agent}.qmd]; backend = "builtin" does without.'
    )


def _reachable_fix(agent: str, file: str) -> str:
    """Return what may keep a program that runs from here from answering the daemon."""
    return (
        f"From here {file} runs: does a search with it answer? Are it and node on the daemon's PATH? If it needs"
        f' longer, raise timeout_ms in [agents.{agent}.qmd]; backend = "builtin" does without.'
    )
