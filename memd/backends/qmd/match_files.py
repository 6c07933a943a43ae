"""Which indexed file a result of qmd is about. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from memd.backends.qmd.collections import WantedCollection
from memd.backends.qmd.manifest import ManifestEntry as Exported
from memd.backends.qmd.parse import QmdEntry
from memd.model import Kind
from memd.store.files import KnownFile
from memd.text.memory_paths import Root, SessionPaths, admits, find_place, name_of, parts_below

_OTHER = re.compile(r"[\W_]+")


def directly(
    entry: QmdEntry,
    collections: Mapping[str, WantedCollection],
    roots: Sequence[Root],
    made_of: Callable[[Path], str | None],
) -> str | None:
    """The name in the index that a file has, by where it is.

    Args:
        entry: As qmd gave it.
        collections: That were searched, by name.
        roots: Of the agent.
        made_of: Tells what an exported file was made of.

    Returns:
        None where no file of that name can be one of the agent's.
    """
    if entry.file is None:
        return None
    collection = collections.get(entry.collection or "")
    below = PurePosixPath(entry.file)
    if ".." in below.parts or (collection is None and not below.is_absolute()):
        return None
    file = Path(below) if collection is None else collection.directory / below.as_posix().lstrip("/")
    if collection is not None and collection.exported:
        return made_of(file)
    for root in roots:
        parts = parts_below(root, file)
        if parts is not None and not isinstance(root, SessionPaths) and admits(root, parts):
            return name_of(root, parts)
    return made_of(file) if collection is None else None


def by_likeness(
    collections: Mapping[str, WantedCollection],
    roots: Sequence[Root],
    known: Iterable[KnownFile],
    exported: Mapping[str, Exported],
    base: Path,
) -> Callable[[QmdEntry], str | None]:
    """What tells the name in the index of the one file that a changed name, or the hash of a content, can mean.

    Older versions of qmd print names in lower case, with hyphens for what they do not like, or no name at all.

    Args:
        collections: That were searched, by name.
        roots: Of the agent.
        known: What is indexed.
        exported: What memd has exported, by the name in the index.
        base: The directory that exported files are below.

    Returns:
        A function that gives None where there is no such file, or several.
    """
    named: dict[tuple[str | None, str], list[str]] = {}
    hashes: dict[str, str] = {}
    for one in known:
        copy = exported.get(one.path)
        hashes[one.path] = copy.sha256 if copy else one.hash.hex()
        file = _file(one, copy, roots, base)
        if file is None:
            continue
        named.setdefault((None, _slug(file.name)), []).append(one.path)
        for name, collection in collections.items():
            if file.is_relative_to(collection.directory):
                below = _slug(file.relative_to(collection.directory).as_posix())
                named.setdefault((name, below), []).append(one.path)

    def find(entry: QmdEntry) -> str | None:
        if entry.file is None:
            alike = list(hashes)
        elif entry.collection in collections:
            alike = named.get((entry.collection, _slug(entry.file)), [])
        else:
            alike = named.get((None, _slug(PurePosixPath(entry.file).name)), [])
        if entry.docid is not None and (entry.file is None or len(alike) > 1):
            alike = [path for path in alike if hashes[path].startswith(entry.docid)]
        return alike[0] if len(alike) == 1 else None

    return find


def _file(one: KnownFile, copy: Exported | None, roots: Sequence[Root], base: Path) -> Path | None:
    """What qmd has read of an indexed file."""
    if copy is not None:
        return base / copy.file
    place = None if one.kind is Kind.SESSION else find_place(one.path, roots)
    return None if place is None else place[0].directory.joinpath(*place[1])


def _slug(name: str) -> str:
    return _OTHER.sub("-", name.casefold()).strip("-")
