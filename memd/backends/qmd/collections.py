"""The collections that an agent's qmd should have, and the changes that lead to them."""

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
# Directories that qmd never searches.
_UNSEEN = frozenset({"node_modules", "vendor", "dist", "build"})
_OTHER = re.compile(r"[^a-z0-9]+")
_SPECIAL = re.compile(r"[^\w .-]", re.ASCII)

NOTES = frozenset({Kind.NOTE, Kind.CURATED})  # a directory of notes may contain a MEMORY.md


class WantedCollection(msgspec.Struct, frozen=True):
    """A collection that the agent should have."""

    name: str
    directory: Path
    pattern: str
    kinds: frozenset[Kind]  # of its files
    exported: bool = False  # its files are copies made by memd
    custom: bool = False  # added by the configuration


class CollectionArguments(msgspec.Struct, frozen=True):
    """The arguments with which a collection was added."""

    path: str
    pattern: str


class CollectionChanges(msgspec.Struct, frozen=True):
    """The changes to make, in this order."""

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
    """Return the collections of an agent; curated notes have one of their own, because groups must not search them.

    Args:
        agent: The agent's id.
        roots: The agent's roots.
        custom: Collections of the configuration, with absolute paths.
        sessions: The directory of exported transcripts; None: transcripts are no source.
        copies: Directories of redacted copies by kind, where qmd must not read the notes themselves; None: it
            may.
        is_directory: Returns whether a directory exists; those that do not are left out for now.
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
    """Return a glob for a name; characters that may be special become `?`."""
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
    """Return the changes that turn the existing collections into the wanted ones.

    A listing may contain names only, so a collection is added again only if it is known to differ.
    Collections that memd did not add and does not want belong to the user.

    Args:
        desired: The wanted collections.
        listed: The existing collections.
        added: Those that memd has added, by name.
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
    # A listing may shorten a path for display; only an absolute one can be compared.
    if (listed.path or "").startswith("/") and PurePosixPath(listed.path or "") != PurePosixPath(
        one.directory
    ):
        return True
    if listed.pattern is not None and listed.pattern != one.pattern:
        return True
    return added is not None and added != as_added(one)


def as_added(one: WantedCollection) -> CollectionArguments:
    """Return what is recorded of an added collection."""
    return CollectionArguments(str(one.directory), one.pattern)


def reaches(one: WantedCollection, file: Path) -> bool:
    """Return whether qmd finds a note in a collection; False if that is not certain.

    Args:
        one: The collection; not one of copies.
        file: The file of an indexed note: a regular file, in no directory that memd skips.
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
