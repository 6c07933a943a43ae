"""What is allowed about the sources of an agent, and yet perhaps not meant."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from memd.config.settings import AgentSettings, Config
from memd.ctl.config.installed_agents import NAMES
from memd.ctl.output.humanize import shown
from memd.ctl.places import Places
from memd.sources.roots import databases_of, notes_of, transcripts_of
from memd.text.memory_paths import MEMORY_DIRECTORY
from memd.text.transcript_files import transcript


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
