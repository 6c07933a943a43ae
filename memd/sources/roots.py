"""Makes the roots of an agent from its settings, and resolves symlinks in configured paths."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import get_args

import msgspec

from memd.config.settings import AgentSettings, PresetName
from memd.sources import agent_homes
from memd.sources.agent_homes import AgentHome, HomePlaces
from memd.sources.origins import RootOrigin
from memd.text.memory_paths import (
    ExcludeGlobs,
    ExtraDirectory,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    as_text,
    describes_owner,
    exclude_of,
    has_control,
    is_markdown,
    is_utf8,
    nfc,
    prefix_of,
)
from memd.text.transcript_files import is_database, transcript


class ConfiguredRoots(msgspec.Struct, frozen=True):
    """The roots of an agent, and the configured paths that may lead elsewhere later."""

    roots: tuple[Root, ...]
    # Of the workspace and extra paths: configured path -> where it led; see root_links.
    links: Mapping[Path, Path]
    origins: tuple[RootOrigin, ...]  # where the files of each root come from
    is_resolved: bool = True  # False: no path was looked at


class _Disk(msgspec.Struct, frozen=True):
    """The functions that look at the disk when roots are made."""

    place: Callable[[Path], Path]  # where a path leads
    is_file: Callable[[Path, bool], bool]  # whether it is a file; the flag: whether its name says so
    exists: Callable[[Path], bool]
    names: Callable[[Path], Iterable[str]]  # in a directory


def roots_of(
    settings: AgentSettings, environ: Mapping[str, str] | None = None, *, state: Path | None = None
) -> tuple[Root, ...]:
    """Return the roots of an agent: the workspace, then the extra paths, notes of presets and transcripts, each once.

    A configured path may be a symlink, or be behind one; symlinks are resolved here. A directory that does not exist yet
    is a root too, since it may be mounted or written later. If an extra path does not exist or cannot be examined, its name
    decides whether it is a file or a directory.

    Args:
        settings: The agent's settings.
        environ: The environment, which says where other agents have their homes; None: that of this process.
        state: The state directory of memd, which contains copies for qmd. No file in it is a source.
    """
    return configured_roots(settings, environ, state=state).roots


def configured_roots(
    settings: AgentSettings, environ: Mapping[str, str] | None = None, *, state: Path | None = None
) -> ConfiguredRoots:
    """Return the roots as roots_of does, and the paths to follow: those behind a symlink, and those that do not exist."""
    disk = _Disk(_resolved, _is_file, os.path.lexists, _names)
    made = _roots(settings, _resolved_glob, disk, environ, state)
    links = {path: place for path, place in made.links.items() if path != place or not os.path.lexists(path)}
    return msgspec.structs.replace(made, links=links)


def roots_as_written(
    settings: AgentSettings, environ: Mapping[str, str] | None = None, *, state: Path | None = None
) -> ConfiguredRoots:
    """Make the roots without the disk, if it does not answer: symlinks are not resolved, and names decide what is a file.

    All paths are followed, since each may turn out to be a symlink.
    """
    disk = _Disk(_normal, lambda _, says_so: says_so, lambda _: False, lambda _: ())
    made = _roots(settings, str, disk, environ, state)
    return msgspec.structs.replace(made, is_resolved=False)


def notes_of(preset: PresetName, environ: Mapping[str, str] | None = None) -> tuple[Root, ...]:
    """Return the roots of the notes of a program, such as Claude Code."""
    disk = _Disk(_resolved, _is_file, os.path.lexists, _names)
    return tuple(root for root, _ in _notes([preset], _homes(environ, disk), (), disk))


def transcripts_of(preset: PresetName, environ: Mapping[str, str] | None = None) -> tuple[SessionPaths, ...]:
    """Return the roots of the transcripts of a program, such as Claude Code."""
    disk = _Disk(_resolved, _is_file, os.path.lexists, _names)
    return tuple(
        root for root, _ in _shelved([preset], _homes(environ, disk), ExcludeGlobs(), disk, subagents=False)
    )


def _roots(
    settings: AgentSettings,
    glob: Callable[[str], str],
    disk: _Disk,
    environ: Mapping[str, str] | None,
    state: Path | None,
) -> ConfiguredRoots:
    own = () if state is None else (_literal_glob(disk.place(state)),)
    globs = (*map(glob, settings.exclude), *own)
    exclude = exclude_of(globs)
    homes = _homes(environ, disk)
    roots: list[tuple[Root, Path]] = []  # each with its configured path
    places: dict[Path, Path] = {}
    if "memory" in settings.sources:
        places = {path: disk.place(path) for path in (settings.workspace, *settings.extra_paths)}
        roots.append((Workspace(places[settings.workspace], exclude), settings.workspace))
        for written in settings.extra_paths:
            path = places[written]
            if disk.is_file(path, is_markdown(path.name)):
                is_owners = describes_owner(written.name) and not describes_owner(path.name)
                file = SingleFile(path.parent, path.name, exclude, is_owners)
                # It precedes a directory that contains it as well, since the first root of a file determines its kind.
                roots.insert(1 if is_owners else len(roots), (file, written))
            else:
                roots.append((ExtraDirectory(path, exclude), written))
        roots += _notes(settings.memory_presets, homes, globs, disk)
    if "sessions" in settings.sources:
        subagents = settings.sessions.subagents
        roots += _shelved(settings.sessions.presets, homes, exclude, disk, subagents=subagents)
        roots += _sessions_at(settings.sessions.paths, exclude, disk, subagents=subagents)
    # Absolute, but with `..`, which behind a symlink is the parent of what it leads to.
    links = {path.expanduser().absolute(): place for path, place in places.items()}
    origins = dict.fromkeys(_origin(root, path, disk) for root, path in roots)
    return ConfiguredRoots(tuple(dict.fromkeys(root for root, _ in roots)), links, tuple(origins))


def _origin(root: Root, path: Path, disk: _Disk) -> RootOrigin:
    return RootOrigin(
        as_text(prefix_of(root)), as_text(path.expanduser().absolute()), as_text(disk.place(path))
    )


def _homes(environ: Mapping[str, str] | None, disk: _Disk) -> HomePlaces:
    home = Path("~").expanduser()
    return HomePlaces(
        os.environ if environ is None else environ, home, agent_homes.profiles(disk.names(home))
    )


def _notes(
    names: Iterable[PresetName], homes: HomePlaces, globs: tuple[str, ...], disk: _Disk
) -> Iterator[tuple[SingleFile | ExtraDirectory, Path]]:
    """Yield the roots of notes of presets, each with the path that leads to it."""
    for name in names:
        for notes in agent_homes.notes(name, homes, disk.names):
            directory, exclude = disk.place(notes.directory), exclude_of((*globs, *notes.exclude))
            if notes.file is None:
                yield ExtraDirectory(directory, exclude, notes.way), notes.directory
            else:
                yield SingleFile(directory, notes.file, exclude), notes.directory


def _shelved(
    names: Iterable[PresetName], homes: HomePlaces, exclude: ExcludeGlobs, disk: _Disk, *, subagents: bool
) -> Iterator[tuple[SessionPaths, Path]]:
    """Yield the roots of transcripts of presets, each with the home of its preset.

    The environment alone determines that home; the others also depend on which exist.
    """
    for name in dict.fromkeys(names):
        shelves: dict[Path, AgentHome] = {}
        each = agent_homes.shelves(name, homes)
        for shelf in each:
            # A home may have been renamed, with a symlink left in its old place.
            shelves.setdefault(disk.place(shelf.directory), shelf)
        expected = next(filter(disk.exists, shelves), next(iter(shelves)))
        for place, shelf in shelves.items():
            root = SessionPaths(
                place,
                name,
                shelf.layout,
                subagents,
                exclude,
                archived=shelf.archived,
                expected=place == expected,
            )
            yield root, each[0].directory


def _sessions_at(
    paths: Iterable[Path], exclude: ExcludeGlobs, disk: _Disk, *, subagents: bool
) -> Iterator[tuple[SessionPaths, Path]]:
    """Yield the roots of configured transcripts, each with its configured path."""
    labels: dict[Path, str] = {}
    for written in paths:
        path = disk.place(written)
        says_so = transcript("plain", (path.name,)) is not None or is_database("plain", (path.name,))
        is_file = disk.is_file(path, says_so)
        directory = path.parent if is_file else path
        if directory not in labels:
            labels[directory] = _label(directory.name, labels.values())
        file = path.name if is_file else None
        yield SessionPaths(directory, labels[directory], "plain", subagents, exclude, file), written


def _label(name: str, taken: Iterable[str]) -> str:
    """Return a label for the transcripts in a directory that differs from those of presets and of other directories."""
    sound = nfc(name) if name and is_utf8(name) and not has_control(name) else "transcripts"
    others = {*get_args(PresetName), *taken}
    numbered = (f"{sound}-{number}" for number in range(2, len(others) + 3))
    return next(label for label in (sound, *numbered) if label not in others)


def _is_file(path: Path, says_so: bool) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # missing, in a directory without permission, or on a failing disk
        return says_so
    return stat.S_ISREG(mode) or (says_so and not stat.S_ISDIR(mode))


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are wanted, not paths
    except OSError:
        return []


def _normal(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - Path.absolute keeps `..`


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))


def _literal_glob(directory: Path) -> str:
    """Return a glob that matches a directory and everything in it, whatever characters its path has."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(directory))


def _resolved_glob(glob: str) -> str:
    """Resolve the literal part of a glob for absolute paths, since these paths are resolved."""
    expanded = os.path.expanduser(glob) if glob.startswith("~") else glob  # noqa: PTH111 - a glob is no path
    if not expanded.startswith("/"):
        return expanded
    parts = expanded.split("/")
    literal = next((at for at, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    head = os.path.realpath("/".join(parts[:literal]) or "/").rstrip("/")
    tail = "/".join(parts[literal:])
    if tail:
        return f"{head}/{tail}"
    return f"{head}/" if expanded.endswith("/") else head
