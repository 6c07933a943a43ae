"""Which files memd has exported: what is to be written, kept and deleted. Pure."""

import hashlib
import re
from collections.abc import Collection, Mapping

import msgspec

_UNSAFE = re.compile(r"[^\w.-]+")
_MOST_CHARS = 80  # of a part of a name; some file systems take 255 bytes
_VERSION = 1


class ManifestEntry(msgspec.Struct, frozen=True):
    """One exported file."""

    file: str  # below the directory of the agent's qmd, POSIX
    state: str = ""  # of what it was made from; empty: it is not written yet
    bytes: int = 0
    sha256: str = ""  # of its content, in hex


class Manifest(msgspec.Struct, frozen=True):
    """Every file that memd has exported, by the name in the index of what it was made from."""

    files: Mapping[str, ManifestEntry] = {}
    rules: str = ""  # what decides how they are made
    version: int = _VERSION


class ExportSource(msgspec.Struct, frozen=True):
    """Something that is to be exported."""

    directory: str  # where to, below the directory of the agent's qmd
    name: str  # of the file, as far as it can be
    state: str


class ExportPlan(msgspec.Struct, frozen=True):
    """What makes the export what it is to be."""

    write: Mapping[str, ManifestEntry]  # by the name in the index
    delete: Mapping[str, ManifestEntry]
    keep: Mapping[str, ManifestEntry]


def read(data: bytes) -> Manifest:
    """A manifest as it was written; an empty one where it cannot be read: its files are left alone then, for good."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError:
        return Manifest()
    safe = {path: entry for path, entry in found.files.items() if _is_safe(entry.file)}
    return Manifest(safe, found.rules) if found.version == _VERSION else Manifest()


def _is_safe(file: str) -> bool:
    parts = file.split("/")
    return len(parts) >= 2 and all(part and not part.startswith(".") and "\0" not in part for part in parts)


def plan(
    manifest: Manifest,
    sources: Mapping[str, ExportSource],
    *,
    rules: str,
    sizes: Mapping[str, int],
) -> ExportPlan:
    """What is to be done with the files of an export.

    Args:
        manifest: What was exported before.
        sources: What is to be there, by the name in the index.
        rules: What decides how files are made; with others, all are made anew.
        sizes: The bytes of every file that is there, be it memd's or not, by its name below the agent's directory.
    """
    write: dict[str, ManifestEntry] = {}
    keep: dict[str, ManifestEntry] = {}
    ours = {entry.file: path for path, entry in manifest.files.items()}
    taken = {file.casefold() for file in sizes if file not in ours}
    taken |= {entry.file.casefold() for path, entry in manifest.files.items() if path in sources}
    for path, source in sorted(sources.items()):
        entry = manifest.files.get(path)
        if entry is None or entry.file.rpartition("/")[0] != source.directory:
            file = _free(source, path, taken)
            taken.add(file.casefold())
            write[path] = ManifestEntry(file)
        elif entry.state != source.state or manifest.rules != rules or sizes.get(entry.file) != entry.bytes:
            write[path] = entry
        else:
            keep[path] = entry
    delete = {
        path: entry
        for path, entry in manifest.files.items()
        if path not in sources or (path in write and write[path].file != entry.file)
    }
    return ExportPlan(write, delete, keep)


def safe_name(name: str) -> str:
    """A name as part of a path that every file system takes, and every glob."""
    return _UNSAFE.sub("-", name).strip("-.")[:_MOST_CHARS] or "unnamed"


def _free(source: ExportSource, path: str, taken: Collection[str]) -> str:
    """A name that is no other file's; the same for the same source, whenever it is asked for first."""
    stem = safe_name(source.name)
    file = f"{source.directory}/{stem}.md"
    if stem == source.name and file.casefold() not in taken:
        return file
    digest = hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()
    length = 8
    while (file := f"{source.directory}/{stem}-{digest[:length]}.md").casefold() in taken and length < len(
        digest
    ):
        length += 8
    return file
