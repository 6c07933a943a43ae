"""What a configuration may say although it is perhaps not meant: open key files, shared notes, sources without files."""

import os
import stat
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path

import msgspec

from memd.config.settings import AgentSettings, Config
from memd.ctl.call import Places
from memd.ctl.config.starter import NAMES
from memd.ctl.output.humanize import shown
from memd.sources.roots import databases_of, notes_of, roots_of, transcripts_of
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    descends,
    only_file,
    parts_below,
)
from memd.text.transcript_files import transcript


def exposed_key_files(config: Config) -> Iterator[tuple[Path, int]]:
    """Files with a key in them that not only their owner may read, and their modes."""
    agents = config.agents.values()
    in_file = any(agent.remote.api_key or agent.remote.headers for agent in agents)
    files = [config.file] if in_file and config.file is not None else []
    named = dict.fromkeys(Path(agent.remote.api_key_file) for agent in agents if agent.remote.api_key_file)
    for file in (*files, *named):
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:  # `config check` reports unreadable files by itself
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield file, mode


class Overlap(msgspec.Struct, frozen=True):
    """What one agent searches that is another's. It may be wanted: a scope rule of the other does not see to it."""

    reader: str
    owner: str
    directory: Path
    is_mutual: bool  # the owner searches the reader's just so
    is_of_notes: bool = True  # else of transcripts


def overlaps(agents: Mapping[str, AgentSettings]) -> Iterator[Overlap]:
    """The directories that an agent searches although they are another's, two agents with the same ones named once."""
    roots = {name: roots_of(settings) for name, settings in sorted(agents.items())}
    notes = {
        name: tuple(root for root in own if not isinstance(root, SessionPaths)) for name, own in roots.items()
    }
    yield from _overlaps(notes, are_notes=True)
    transcripts = {
        name: tuple(root for root in own if isinstance(root, SessionPaths)) for name, own in roots.items()
    }
    yield from _overlaps(transcripts, are_notes=False)


def _overlaps(roots: Mapping[str, tuple[Root, ...]], *, are_notes: bool) -> Iterator[Overlap]:
    found = {
        (reader, owner): directory
        for reader, owner in permutations(roots, 2)
        if (directory := _shared(roots[reader], roots[owner])) is not None
    }
    for (reader, owner), directory in found.items():
        is_mutual = found.get((owner, reader)) == directory
        if not is_mutual or reader < owner:
            yield Overlap(reader, owner, directory, is_mutual, are_notes)


def _shared(reader: tuple[Root, ...], owner: tuple[Root, ...]) -> Path | None:
    """The first of the owner's directories that the reader searches too."""
    for theirs in owner:
        for directory in _directories(theirs):
            if any(_searches(ours, directory, theirs) for ours in reader):
                return directory
    return None


def _searches(ours: Root, directory: Path, theirs: Root) -> bool:
    parts = None if only_file(ours) is not None else parts_below(ours, directory)
    if parts is None:
        return False
    if isinstance(ours, Workspace) and not parts:
        return isinstance(theirs, Workspace) and theirs.directory == directory
    return descends(ours, parts)


def _directories(root: Root) -> tuple[Path, ...]:
    match root:
        case Workspace():
            return root.directory, root.directory / MEMORY_DIRECTORY
        case SingleFile() | SessionPaths(file=str()):
            return ()
        case _:
            return (root.directory,)


def remarks_on_sources(config: Config, environ: Mapping[str, str], places: Places) -> Iterator[str]:
    """A sentence for each thing.

    Args:
        config: Is right.
        environ: May say where other agents have their homes.
        places: Of this invocation.
    """
    for name, agent in sorted(config.agents.items()):
        yield from _on_choice(name, agent)
        if "memory" in agent.sources:
            yield from _on_notes(name, agent, environ)
            yield from _on_own(name, agent, places)
        if "sessions" in agent.sources:
            yield from _on_transcripts(name, agent, environ, places.home)
            yield from _on_paths(name, agent, places)


def _on_choice(name: str, agent: AgentSettings) -> Iterator[str]:
    wanted = bool(agent.sessions.presets or agent.sessions.paths)
    if wanted and "sessions" not in agent.sources:
        yield f'{name}: sessions.presets and sessions.paths do nothing: sources has no "sessions"'
    if not wanted and "sessions" in agent.sources:
        yield f'{name}: sources has "sessions", but neither sessions.presets nor sessions.paths names any'
    if agent.memory_presets and "memory" not in agent.sources:
        yield f'{name}: memory_presets does nothing: sources has no "memory"'
    if "sessions" in agent.sources and wanted and agent.redact.mode == "off":
        yield f'{name}: redact.mode = "off" leaves keys and passwords in what is indexed of transcripts'


def _on_notes(name: str, agent: AgentSettings, environ: Mapping[str, str]) -> Iterator[str]:
    for preset in agent.memory_presets:
        if not any(root.directory.is_dir() for root in notes_of(preset, environ)):
            yield f"{name}: there are no notes of {NAMES[preset]} here (yet)"


def _on_transcripts(name: str, agent: AgentSettings, environ: Mapping[str, str], home: Path) -> Iterator[str]:
    for preset in agent.sessions.presets:
        if preset == "openclaw" and (files := databases_of(environ)):
            told = ", ".join(shown(file, home) for file in files[:3])
            yield f"{name}: newer versions of OpenClaw keep transcripts in a database, which memd does not read: {told}"
        directories = [root.directory for root in transcripts_of(preset, environ) if root.expected]
        for directory in directories:
            if not directory.is_dir():
                yield f"{name}: there are no transcripts of {NAMES[preset]} yet: {shown(directory, home)} does not exist"


def _on_own(name: str, agent: AgentSettings, places: Places) -> Iterator[str]:
    state = _real(places.state)
    for path in (agent.workspace, *agent.extra_paths):
        real = _real(path)
        said = shown(path, places.home)
        if real == state or real.is_relative_to(state):
            yield f"{name}: nothing of {said} is indexed, since it is memd's own"
        elif state.is_relative_to(real) and not any(
            part[:1] == "." for part in state.relative_to(real).parts
        ):
            yield f"{name}: memd's own files, {shown(places.state, places.home)}, lie in {said}: they are left out"


def _on_paths(name: str, agent: AgentSettings, places: Places) -> Iterator[str]:
    state, memory = _real(places.state), _real(agent.workspace / MEMORY_DIRECTORY)
    for path in agent.sessions.paths:
        said, real = shown(path, places.home), _real(path)
        if not os.path.lexists(path):
            yield f"{name}: there is nothing at {said} yet, which sessions.paths names"
        elif path.is_file() and transcript("plain", (path.name,)) is None:
            yield f"{name}: {said} is no transcript: the names of those end in .jsonl or .jsonl.zst"
        if real == state or real.is_relative_to(state):
            yield f"{name}: sessions.paths names {said}, which is memd's own: there are no transcripts in it"
        elif state.is_relative_to(real):
            yield f"{name}: sessions.paths names {said}, which holds much more than transcripts"
        if real == memory or real.is_relative_to(memory):
            yield f"{name}: sessions.paths names {said}, where the notes of its workspace are"


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
