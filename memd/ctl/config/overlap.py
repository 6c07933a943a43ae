"""Agents that search the notes of another, or the same transcripts. Pure but for resolving symlinks."""

from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path

import msgspec

from memd.config.settings import AgentSettings
from memd.sources.roots import roots_of
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
