"""Remarks on a valid configuration that is probably not what the user meant, and the configuration in force as text."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from memd.config.check import dotted
from memd.config.settings import AgentSettings, Config
from memd.config.toml_lines import Key
from memd.ctl.config.starter import NAMES
from memd.ctl.invocation import Places
from memd.ctl.output.humanize import shown, width
from memd.ctl.output.terminal import Paint
from memd.sources.roots import notes_of, roots_of, transcripts_of
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    descends,
    is_markdown,
    only_file,
    parts_below,
)
from memd.text.transcript_files import transcript


def exposed_key_files(config: Config) -> Iterator[tuple[Path, int]]:
    """Yield the files with keys that group or others may read, with their modes."""
    agents = config.agents.values()
    in_file = any(agent.remote.api_key or agent.remote.headers or agent.rerank.api_key for agent in agents)
    files = [config.file] if in_file and config.file is not None else []
    key_files = [file for agent in agents for file in (agent.remote.api_key_file, agent.rerank.api_key_file)]
    named = dict.fromkeys(Path(file) for file in key_files if file)
    for file in (*files, *named):
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:  # `config check` reports unreadable files by itself
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield file, mode


class Overlap(msgspec.Struct, frozen=True):
    """An agent searches a directory of another one. That may be intended, but the other agent's scope rules do not apply to it."""

    reader: str
    owner: str
    directory: Path
    is_mutual: bool  # the owner searches the reader's just so
    is_of_notes: bool = True  # else of transcripts


def overlaps(agents: Mapping[str, AgentSettings]) -> Iterator[Overlap]:
    """Yield each pair of agents of which one searches a directory of the other; once if both search the same directory."""
    roots = {name: roots_of(settings) for name, settings in sorted(agents.items())}
    for are_notes in (True, False):
        chosen = {
            name: tuple(root for root in own if isinstance(root, SessionPaths) != are_notes)
            for name, own in roots.items()
        }
        yield from _overlaps(chosen, are_notes=are_notes)


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
    """Return the first of the owner's directories that the reader searches too; None: there is none."""
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
    """Yield remarks on sources that are missing, unused, or overlap with memd's own files.

    Args:
        config: A valid configuration.
        environ: The environment, which may name the homes of other agents.
        places: The paths of the daemon.
    """
    for name, agent in sorted(config.agents.items()):
        yield from _on_choice(name, agent)
        if "memory" in agent.sources:
            yield from _on_notes(name, agent, environ, places.home)
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


def _on_notes(name: str, agent: AgentSettings, environ: Mapping[str, str], home: Path) -> Iterator[str]:
    for path in agent.extra_paths:
        try:
            mode = path.stat().st_mode
        except OSError:  # it may come later; `doctor` says why it cannot be read
            continue
        if not stat.S_ISDIR(mode) and not (stat.S_ISREG(mode) and is_markdown(_real(path).name)):
            yield f"{name}: {shown(path, home)} is no directory and no Markdown: name its directory, or a file that ends in .md"
    for preset in agent.memory_presets:
        if not any(root.directory.is_dir() for root in notes_of(preset, environ)):
            yield f"{name}: there are no notes of {NAMES[preset]} here (yet)"


def _on_transcripts(name: str, agent: AgentSettings, environ: Mapping[str, str], home: Path) -> Iterator[str]:
    for preset in agent.sessions.presets:
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


def origin(key: Key, known: Mapping[Key, int]) -> str:
    """Return where a setting is set, in words: ``line 4``, ``line 2, [defaults]``, or ``default``.

    Args:
        key: The path of the setting in the whole configuration: ("agents", "main", "query", "max_results").
        known: The lines of the keys of the file; see statements.lines.
    """
    own = known.get(key)
    shared = known.get(("defaults", *key[2:])) if key[:1] == ("agents",) else None
    if own is not None and shared is not None and key[2:] == ("extra_paths",):
        return f"lines {own} and {shared}, [defaults]"  # both lists are in force
    if own is not None:
        return f"line {own}"
    return "default" if shared is None else f"line {shared}, [defaults]"


_MASKED = "********"
_SECRET = frozenset({"api_key", "headers"})  # headers may contain keys, and few of their names say so
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_FURTHEST = 60  # columns that remarks are aligned within


class ValuePlace(msgspec.Struct, frozen=True):
    """A file or directory, and what determines it."""

    path: str
    origin: str  # --socket, MEMD_SOCKET, XDG_RUNTIME_DIR, usual place


def effective(config: Config) -> dict[str, Any]:
    """Return the configuration in force as tables, with secrets masked."""
    tables: dict[str, Any] = masked(
        msgspec.to_builtins(
            {"daemon": config.daemon, "agents": config.agents, "shared": config.shared}, enc_hook=str
        )
    )
    return tables


def origins(tables: Mapping[str, Any], known: Mapping[Key, int]) -> dict[str, str]:
    """Return where each value is set, by its dotted key."""
    return {dotted(key): origin(key, known) for key, _ in _values(tables, ())}


def in_force_text(
    tables: Mapping[str, Any], known: Mapping[Key, int], places: Mapping[str, ValuePlace], paint: Paint
) -> str:
    """Format the configuration in force as a configuration file with the origin of each value as a comment.

    Args:
        tables: The result of `effective`.
        known: The lines of the keys in the configuration file.
        places: The paths in use, by name.
        paint: Colours the comments.
    """
    longest = max(map(len, places), default=0)
    lines = [
        paint(f"# {name.ljust(longest)}  {place.path}  ({place.origin})", "dim")
        for name, place in places.items()
    ]
    for key, table in _tables(tables, ()):
        values = [(name, value) for name, value in table.items() if not isinstance(value, dict)]
        if not values:
            continue
        lines += ["", paint(f"[{dotted(key)}]", "bold")]
        said = [
            (f"{dotted((name,))} = {_written(value)}", origin((*key, name), known)) for name, value in values
        ]
        column = max((width(setting) for setting, _ in said if width(setting) <= _FURTHEST), default=0)
        for setting, remark in said:
            lines.append(f"{setting}{' ' * (column - width(setting))}  {paint(f'# {remark}', 'dim')}")
    return "\n".join(lines)


def masked(value: Any) -> Any:
    """Return a value without its secrets, and without None, which TOML cannot express."""
    match value:
        case dict():
            return {
                name: _hidden(member) if name in _SECRET else masked(member)
                for name, member in value.items()
                if member is not None
            }
        case list() | tuple():
            return [masked(member) for member in value]
        case str():
            return _USER_OF_URL.sub(_MASKED, value)
        case _:
            return value


def _hidden(value: Any) -> Any:
    """Mask a secret, or each value of a table; an empty one is returned unchanged."""
    if isinstance(value, dict):
        return {name: _hidden(member) for name, member in value.items()}
    return _MASKED if value else value


def _tables(table: Mapping[str, Any], key: Key) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Yield a table's subtables with their keys, each before its own subtables."""
    for name, member in table.items():
        if isinstance(member, dict):
            yield (*key, name), member
            yield from _tables(member, (*key, name))


def _values(table: Mapping[str, Any], key: Key) -> Iterator[tuple[Key, Any]]:
    for name, member in table.items():
        if isinstance(member, dict) and member:
            yield from _values(member, (*key, name))
        else:
            yield (*key, name), member


def _written(value: Any) -> str:
    """Format a value as TOML on one line."""
    match value:
        case dict():
            return f"{{ {', '.join(f'{dotted((name,))} = {_written(member)}' for name, member in value.items())} }}"
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case float():
            # A weight that was made a share: 0.375, not 0.37499999999999994.
            return str(float(f"{value:.12g}"))
        case _:
            return str(tomlkit.item(value).as_string())
