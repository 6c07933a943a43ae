"""Whether each agent's notes can be read, its index is sound, and what it does works. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from memd.config.settings import AgentSettings
from memd.ctl.doctor.finding import Finding, right, unchecked, wrong
from memd.ctl.doctor.scene import Scene, quoted
from memd.ctl.output.humanize import counted, one_line, size, visible
from memd.inspection.facts import Cache, RootsScan, Store
from memd.inspection.facts import Root as Place
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
_NEVER_LOST = "no note is lost by that"


def judged_health(agent: str, status: AgentStatus | None, scene: Scene) -> Finding:
    """What the daemon says of an agent: what is degraded, and why."""
    name = _name(agent, "health")
    if status is None:
        return unchecked(name, "no daemon tells")
    found = degraded(status)
    if status.last_pass is not None and status.last_pass.failed is not None:
        found.append(("last pass", one_line(status.last_pass.failed)))
    if not found:
        building = ", an index is being built anew" if status.rebuild is not None else ""
        return right(name, f"everything works{building}")
    fixes = {
        "keyword": f"Build it anew: {scene.ctl('reindex', '--agent', agent)}",
        "vector": "See installation.vectors and installation.model above.",
        "watcher": "See the notes below and limits.watches above; until then changes are looked for every few seconds. "
        f"Files whose directory is gone for good are forgotten by {scene.ctl('sync', '--force')}.",
        "provider": _provider_fix(status, scene),
    }
    told = "; ".join(f"{part}: {problem}" for part, problem in found)
    return wrong(name, told, fixes.get(found[0][0], f"The log tells more: {scene.ctl('logs', '-n', '50')}"))


def _provider_fix(status: AgentStatus, scene: Scene) -> str:
    """What to do about a provider that does not embed."""
    if status.provider == "local":
        return "See installation.model above; search goes on by keywords meanwhile."
    if status.provider == "none":
        return f"Do what is said for one of them, then {scene.ctl('down')} and {scene.ctl('up')}; keywords answer meanwhile."
    return (
        "What was embedded stays, and it is asked again by itself unless it has refused: see [remote] in the"
        " configuration, and whether the server answers; keywords answer meanwhile."
    )


def degraded(status: AgentStatus | StatusReport) -> list[tuple[str, str]]:
    """What does not work of an agent, or of what all agents share: the part, and why."""
    parts = ((name, getattr(status, name)) for name in status.__struct_fields__)
    return [
        (name.removesuffix("_health"), one_line(part.reason or "no reason given"))
        for name, part in parts
        if isinstance(part, Health) and not part.ok
    ]


def judged_notes(ground: RootsScan, scene: Scene, patience_s: float) -> list[Finding]:
    """What lies below the roots of an agent, and when it was written."""
    name, clock = _name(ground.agent, "notes"), _name(ground.agent, "clock")
    if ground.hangs_at is not None:
        told = wrong(
            name,
            f"{scene.shown(ground.hangs_at)} gave no answer within {patience_s:g} s",
            f"Mount its file system again (`df {quoted(ground.hangs_at)}` hangs as well), "
            f"or take it out of agents.{ground.agent}.",
        )
        return [told, unchecked(clock, "the notes cannot be looked at")]
    return [_notes(ground, scene), _clock(ground)]


def _notes(ground: RootsScan, scene: Scene) -> Finding:
    name = _name(ground.agent, "notes")
    # An agent that was never used has no transcripts yet: nothing to mend.
    closed = [root for root in ground.roots if root.fault is not None]
    closed += [root for root in ground.shelves if root.fault not in {None, "does not exist"}]
    if closed:
        told = "; ".join(f"{scene.shown(root.path)} {root.fault}" for root in closed)
        fixes = dict.fromkeys(_root_fix(root, ground, scene) for root in closed)
        return wrong(name, told, "\n".join(fixes))
    if ground.unreadable_count:
        more = ground.unreadable_count - len(ground.unreadable)
        names = ", ".join(map(visible, ground.unreadable)) + (f" and {more} more" if more else "")
        first = _place_of(ground.unreadable[0], ground)
        return wrong(
            name,
            f"{counted(ground.unreadable_count, 'file')} cannot be read by this user: {names}",
            f"Let the owner read: chmod u+r {quoted(first)} (a directory: chmod u+rx), or exclude what is not meant.",
        )
    if ground.unread:
        files = ", ".join(scene.shown(file) for file in ground.unread[:3])
        return wrong(
            name,
            f"{_told(ground, scene)}; newer versions of OpenClaw keep transcripts in a database, which memd does not read: {files}",
            f"What was said there is not found. If that is known, take openclaw out of agents.{ground.agent}.sessions.presets.",
        )
    return right(name, _told(ground, scene))


def _told(ground: RootsScan, scene: Scene) -> str:
    where = [
        scene.shown(root.path)
        + (f" (leads to {scene.shown(root.resolved)})" if root.resolved != root.path else "")
        for root in ground.roots
    ]
    told = [f"{counted(ground.notes, 'Markdown file')} in {', '.join(where)}"]
    if ground.shelves:
        there = [scene.shown(root.path) for root in ground.shelves if root.fault is None]
        told.append(counted(ground.transcripts, "transcript") + (f" in {', '.join(there)}" if there else ""))
        told += [
            f"{scene.shown(root.path)} {root.fault}"
            for root in ground.shelves
            if root.fault == "does not exist"
        ]
    skipped = sorted(ground.skipped.items(), key=lambda item: (-item[1], item[0]))
    if skipped:
        told.append(
            "left out: " + ", ".join(f"{counted(number, 'file')} ({reason})" for reason, number in skipped)
        )
    told += [
        f"{scene.shown(root.path)} is on {root.remote}: what other machines write there is found by looking again "
        "and again"
        for root in ground.roots
        if root.remote is not None
    ]
    return visible("; ".join(told))


def _root_fix(root: Place, ground: RootsScan, scene: Scene) -> str:
    place = quoted(root.path)
    if root.fault == "does not exist" and root.is_workspace:
        return (
            f"Make it (mkdir -p {place}/{MEMORY_DIRECTORY}), or name the directory of your notes: "
            f"{scene.ctl('up', 'DIR')}"
        )
    if root.fault == "cannot be read by this user":
        return f"Let this user read it: chmod u+rx {place}"
    key = "workspace" if root.is_workspace else "sessions" if root in ground.shelves else "extra_paths"
    return f"Put it right, or change agents.{ground.agent}.{key} in the configuration."


def _place_of(name: str, ground: RootsScan) -> str:
    """The absolute path of a name in the index."""
    if name.startswith("/") or not ground.roots:
        return name
    return f"{ground.roots[0].resolved}/{name}"


def _clock(ground: RootsScan) -> Finding:
    name = _name(ground.agent, "clock")
    if not ground.future_count:
        return right(name, "no file says that it was written later than now")
    more = ground.future_count - len(ground.future)
    names = ", ".join(map(visible, ground.future)) + (f" and {more} more" if more else "")
    first = _place_of(ground.future[0], ground)
    return wrong(
        name,
        f"{counted(ground.future_count, 'file')} written later than now: {names}; "
        "they count as the newest for ever",
        f"Set the clock right if it is wrong (date), then give them a time: touch {quoted(first)}",
    )


def judged_overlap(
    grounds: Sequence[RootsScan], agents: Mapping[str, AgentSettings], scene: Scene
) -> list[Finding]:
    """Whether an agent reads the memory of another, which is told and is no fault.

    A path that both were given besides their workspaces is shared on purpose.
    """
    roots = {ground.agent: _roots(ground, agents[ground.agent]) for ground in grounds if ground.roots}
    findings = []
    for agent, mine in sorted(roots.items()):
        name = _name(agent, "apart")
        found = [
            (other, root)
            for other, theirs in sorted(roots.items())
            if other != agent
            for root in mine
            if _reads(root, theirs[0])
        ]
        if not found:
            findings.append(right(name, "reads the memory of no other agent"))
            continue
        others = ", ".join(sorted({other for other, _ in found}))
        root = found[0][1]
        # The owner may want that. It is told, since nothing else would show it.
        findings.append(
            right(
                name,
                f"reads the memory of {others} too, as configured, by way of {scene.shown(root.directory)}",
            )
        )
    return findings


def _roots(ground: RootsScan, settings: AgentSettings) -> list[Root]:
    """The roots as a scan has them, of paths that are resolved already; the workspace first."""
    exclude = exclude_of(settings.exclude)
    roots: list[Root] = []
    for fact in ground.roots:
        path = Path(fact.resolved)
        if fact.is_workspace:
            roots.append(Workspace(path, exclude))
        elif path.suffix.lower() == ".md":
            roots.append(SingleFile(path.parent, path.name, exclude))
        else:
            roots.append(ExtraDirectory(path, exclude))
    for notes in ground.presets:
        directory = Path(notes.directory)
        if notes.file is None:
            roots.append(ExtraDirectory(directory, exclude, notes.way))
        else:
            roots.append(SingleFile(directory, notes.file, exclude))
    return roots


def _reads(root: Root, workspace: Root) -> bool:
    """Whether a root holds files that belong to the workspace of another agent."""
    inside = [workspace.directory / sample for sample in _SAMPLES]
    match root:
        case SingleFile():
            mine = [root.directory / root.file]
        case ExtraDirectory():
            mine = [root.directory / "note.md"]
        case Workspace() | SessionPaths():  # its own memory is its own, wherever it lies
            mine = []
    return any(_holds(root, file) for file in inside) or any(_holds(workspace, file) for file in mine)


def _holds(root: Root, file: Path) -> bool:
    parts = parts_below(root, file)
    return parts is not None and admits(root, parts)


def judged_store(store: Store, scene: Scene, *, is_ours: bool, knows_config: bool) -> list[Finding]:
    """Whether an index is sound, and fits the configuration.

    Args:
        store: As it was found.
        scene: Of the checkup.
        is_ours: Whether the state directory is this user's.
        knows_config: Whether the configuration could be read.
    """
    name, fit = _name(store.agent, "index"), _name(store.agent, "fit")
    findings = [_index(store, name, scene, is_ours=is_ours, knows_config=knows_config)]
    if not knows_config:
        findings.append(unchecked(fit, "the configuration is wrong"))
    elif store.configured:
        findings.append(_fit(store, fit))
    return [
        *findings,
        *_copies(store, _name(store.agent, "copy"), scene),
        *_damaged(store, _name(store.agent, "damaged"), scene),
    ]


def _index(store: Store, name: str, scene: Scene, *, is_ours: bool, knows_config: bool) -> Finding:
    told = _trouble(store, name, scene, is_ours=is_ours)
    if told is not None:
        return told
    if not store.exists:
        return right(name, "none yet: the daemon makes it")
    detail = f"sound: {counted(store.files, 'file')}, {counted(store.chunks, 'chunk')}, {size(store.bytes)}"
    if knows_config and not store.configured:
        detail += (
            f"; left over, no agent of this name is configured (rm {quoted(store.file)} if it is not needed)"
        )
    return right(name, detail)


def _fit(store: Store, name: str) -> Finding:
    if not store.exists or store.unchecked or store.closed or store.faults or not store.known_schema:
        return unchecked(name, "there is no index to compare with" if not store.exists else "see the index")
    if store.schema > store.known_schema:
        return unchecked(name, "a newer memd wrote the index")
    if store.rebuild is None:
        return right(name, "the index was built for the configuration as it is")
    return right(name, f"the index is built anew when the daemon reads the configuration: {store.rebuild}")


def judged_cache(cache: Cache, scene: Scene, *, is_ours: bool) -> list[Finding]:
    """Whether what was paid for is sound: the vectors by text hash."""
    name = "state.embeddings"
    told = _trouble(cache, name, scene, is_ours=is_ours)
    if told is None and not cache.exists:
        told = right(name, "none yet: the daemon makes it")
    if told is None:
        told = right(name, f"sound: {counted(cache.rows, 'vector')}, {size(cache.bytes)}")
    left = [_files_left(cache)] if cache.files else []
    return [told, *left, *_copies(cache, "state.copy", scene), *_damaged(cache, "state.damaged", scene)]


def _files_left(cache: Cache) -> Finding:
    return wrong(
        "state.batch_files",
        "batch jobs that have ended left files at their provider, with text of notes and transcripts: "
        + ", ".join(map(one_line, cache.files)),
        "The daemon tries to delete them again and again, for a month; delete them at the provider's yourself "
        "where its key is not configured any more.",
    )


def _trouble(store: Store | Cache, name: str, scene: Scene, *, is_ours: bool) -> Finding | None:
    """What keeps a database from being of use; None: nothing."""
    if store.unchecked is not None:
        return unchecked(name, store.unchecked)
    if store.closed is not None:
        if not is_ours:
            return unchecked(name, f"the state directory is another user's ({store.closed})")
        return wrong(
            name,
            f"{scene.shown(store.file)} cannot be opened: {store.closed}",
            f"Give its owner the right: chmod 600 {quoted(store.file)}",
        )
    file = quoted(store.file)
    if store.faults:
        lost = (
            _NEVER_LOST if isinstance(store, Store) else "vectors are computed anew where an index lacks them"
        )
        remove = f"rm -f {file} {file}-wal {file}-shm"
        return wrong(
            name,
            f"{scene.shown(store.file)} is damaged: {one_line('; '.join(store.faults))}",
            f"Have it made anew, {lost}: {scene.ctl('down')}; {remove}; {scene.ctl('up')}",
        )
    if store.schema > store.known_schema:
        return wrong(
            name,
            f"{scene.shown(store.file)} was written by a newer memd (schema {store.schema}, "
            f"this one knows {store.known_schema})",
            f"Upgrade this one ({scene.pip('install', '--upgrade', 'memd-daemon')}), or {_way_back(store, scene)}",
        )
    return None


def _way_back(store: Store | Cache, scene: Scene) -> str:
    """What else to do about a file of a newer memd."""
    file = quoted(store.file)
    for copy in store.copies:
        if 0 < copy.schema <= store.known_schema:
            kept = quoted(Path(store.file).with_name(copy.name))
            return (
                "go back to the copy that the newer one made before: "
                f"{scene.ctl('down')}; rm -f {file}-wal {file}-shm; mv {kept} {file}; {scene.ctl('up')}"
            )
    return f"move the file away: mv {file} {file}.newer"


def _copies(store: Store | Cache, name: str, scene: Scene) -> list[Finding]:
    """What is kept of a store as an earlier memd left it, which is no fault."""
    if not store.copies:
        return []
    told = ", ".join(f"{copy.name} ({size(copy.bytes)})" for copy in store.copies)
    folder = Path(store.file).parent
    remove = " ".join(quoted(folder / copy.name) for copy in store.copies)
    until = (
        "The daemon deletes it once the new one is a day old, sound, and a whole pass has succeeded with it"
        if isinstance(store, Cache) or store.configured
        else f"No agent of this name is configured: rm {remove} if it is not needed"
    )
    return [
        right(
            name,
            f"kept in {scene.shown(folder)}: {told}, as it was before it was brought up to date. {until}",
        )
    ]


def _damaged(store: Store | Cache, name: str, scene: Scene) -> list[Finding]:
    if not store.damaged:
        return []
    folder = Path(store.file).parent
    return [
        wrong(
            name,
            f"{counted(len(store.damaged), 'file')} set aside as damaged in {scene.shown(folder)}: "
            f"{', '.join(store.damaged)}",
            "They are of no use any more, and hold what notes held: rm -f "
            + " ".join(f"{quoted(folder / file)}*" for file in store.damaged),
        )
    ]


def _name(agent: str, check: str) -> str:
    return f"agents.{agent}.{check}"
