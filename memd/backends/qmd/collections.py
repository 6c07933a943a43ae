"""Which collections an agent's qmd has, and what is to be done so that it has them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import assert_never

import msgspec

from memd.backends.qmd.parse import QmdListing
from memd.config.settings import Collection
from memd.domain_types import Kind
from memd.text.memory_paths import MEMORY_DIRECTORY, ExtraDirectory, Root, SessionPaths, SingleFile, Workspace

MARKDOWN = "**/*.md"
CURATED = "{MEMORY,USER}.md"
_CURATED_NAMES = frozenset({"MEMORY.md", "USER.md"})
# Directories that qmd never looks into.
_UNSEEN = frozenset({"node_modules", "vendor", "dist", "build"})
_OTHER = re.compile(r"[^a-z0-9]+")
_SPECIAL = re.compile(r"[^\w .-]", re.ASCII)

NOTES = frozenset({Kind.NOTE, Kind.CURATED})  # a directory of notes may hold somebody's MEMORY.md


class WantedCollection(msgspec.Struct, frozen=True):
    """A collection that the agent is to have."""

    name: str
    directory: Path
    pattern: str
    kinds: frozenset[Kind]  # of the files in it
    exported: bool = False  # its files are copies that memd has made
    custom: bool = False  # the configuration adds it to what the agent has


class CollectionArguments(msgspec.Struct, frozen=True):
    """What a collection was added with."""

    path: str
    pattern: str


class CollectionChanges(msgspec.Struct, frozen=True):
    """What is to be done, in this order."""

    remove: tuple[str, ...]
    add: tuple[WantedCollection, ...]


def wanted(
    agent: str,
    roots: Iterable[Root],
    custom: Sequence[Collection],
    *,
    sessions: Path | None,
    copies: Mapping[Kind, Path] | None,
    is_directory: Callable[[Path], bool],
) -> tuple[WantedCollection, ...]:
    """The collections of an agent; curated notes have one of their own, for whom they are not meant for must not search it.

    Args:
        agent: Its id.
        roots: Of the agent.
        custom: What the configuration adds; paths are absolute.
        sessions: Where transcripts are exported to; None: they are no source.
        copies: Where notes are copied to, by kind, whose text must not reach qmd as it is on the disk; None: it may.
        is_directory: Whether there is a directory. Those that are not there are no collections yet.
    """
    bases: list[WantedCollection] = []
    if copies is None:
        bases += _of_roots(roots)
        bases += _of_configuration(custom)
    else:
        bases += [
            WantedCollection(
                "memory-root" if kind is Kind.CURATED else "memory-dir",
                at,
                MARKDOWN,
                frozenset({kind}),
                exported=True,
            )
            for kind, at in copies.items()
        ]
    if sessions is not None:
        bases.append(
            WantedCollection(
                "sessions", sessions, MARKDOWN, frozenset({Kind.SESSION, Kind.SHARED_SESSION}), exported=True
            )
        )
    found: list[WantedCollection] = []
    names: set[str] = set()
    places: set[tuple[Path, str]] = set()
    for one in bases:
        if (one.directory, one.pattern) in places or not is_directory(one.directory):
            continue
        places.add((one.directory, one.pattern))
        name = _unique(_sanitised(f"{one.name}-{agent}"), names)
        names.add(name)
        found.append(msgspec.structs.replace(one, name=name))
    return tuple(found)


def _of_roots(roots: Iterable[Root]) -> list[WantedCollection]:
    found: list[WantedCollection] = []
    for root in roots:
        match root:
            case Workspace():
                found.append(
                    WantedCollection("memory-root", root.directory, CURATED, frozenset({Kind.CURATED}))
                )
                found.append(
                    WantedCollection("memory-dir", root.directory / MEMORY_DIRECTORY, MARKDOWN, NOTES)
                )
            case ExtraDirectory():
                way = "/".join(part if part == "*" else _literally(part) for part in root.way)
                pattern = f"{way}/{MARKDOWN}" if way else MARKDOWN
                found.append(WantedCollection(root.directory.name, root.directory, pattern, NOTES))
            case SingleFile():
                name = PurePosixPath(root.file).stem
                found.append(WantedCollection(name, root.directory, _literally(root.file), NOTES))
            case SessionPaths():
                pass
            case _:
                assert_never(root)
    return found


def _of_configuration(custom: Sequence[Collection]) -> list[WantedCollection]:
    return [
        WantedCollection(one.name or f"custom-{number}", one.path, one.pattern, NOTES, custom=True)
        for number, one in enumerate(custom, start=1)
    ]


def _literally(name: str) -> str:
    """A pattern that matches a name: what may be special in one stands as any character."""
    return _SPECIAL.sub("?", name)


def _sanitised(name: str) -> str:
    return _OTHER.sub("-", name.lower()).strip("-") or "collection"


def _unique(name: str, taken: set[str]) -> str:
    numbered, number = name, 1
    while numbered in taken:
        number += 1
        numbered = f"{name}-{number}"
    return numbered


def steps(
    desired: Sequence[WantedCollection],
    listed: Sequence[QmdListing],
    added: Mapping[str, CollectionArguments],
) -> CollectionChanges:
    """What makes the collections that are there those that are wanted.

    A list may tell names alone: a collection is made anew only where it is known to differ. One that memd has not added
    and does not want is somebody else's.

    Args:
        desired: What is wanted.
        listed: What is there.
        added: What memd has added, by name.
    """
    there = {one.name: one for one in listed}
    remove = [name for name in there if name in added and name not in {one.name for one in desired}]
    add: list[WantedCollection] = []
    for one in desired:
        if one.name not in there:
            add.append(one)
        elif _differs(one, there[one.name], added.get(one.name)):
            remove.append(one.name)
            add.append(one)
    return CollectionChanges(tuple(remove), tuple(add))


def _differs(one: WantedCollection, listed: QmdListing, added: CollectionArguments | None) -> bool:
    # A list may shorten a path, for people; only a whole one tells anything.
    if (listed.path or "").startswith("/") and PurePosixPath(listed.path or "") != PurePosixPath(
        one.directory
    ):
        return True
    if listed.pattern is not None and listed.pattern != one.pattern:
        return True
    return added is not None and added != as_added(one)


def as_added(one: WantedCollection) -> CollectionArguments:
    """What is remembered of a collection that was added."""
    return CollectionArguments(str(one.directory), one.pattern)


def reaches(one: WantedCollection, file: Path) -> bool:
    """Whether qmd finds a file of memory in a collection; False where that is not certain.

    Args:
        one: The collection; not one of copies.
        file: Of an indexed note: a regular file, in no directory that memd passes over.
    """
    try:
        below = file.relative_to(one.directory).parts
    except ValueError:
        return False
    if not file.name.endswith(".md") or not _UNSEEN.isdisjoint(below[:-1]):
        return False
    if one.pattern == CURATED:
        return len(below) == 1 and file.name in _CURATED_NAMES
    way, _, rest = one.pattern.rpartition(MARKDOWN)
    if rest or not one.pattern.endswith(MARKDOWN):
        return len(below) == 1 and one.pattern == below[0]
    parts = way.strip("/").split("/") if way else []
    return len(below) > len(parts) and all(
        part in {"*", given} for part, given in zip(parts, below, strict=False)
    )
