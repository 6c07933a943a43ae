"""Exports what qmd must not read from the original files: transcripts, and notes if they are redacted."""

import hashlib
import re
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import tzinfo
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec

from memd.backends.indexed_text import read_note
from memd.backends.qmd import own_files
from memd.backends.qmd.installation import QmdPlaces
from memd.domain_types import Kind, Turn
from memd.indexing.rules import IndexingRules
from memd.runtime.threads import Threads
from memd.sources.safe_open import SourceError
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.text.memory_paths import SESSIONS
from memd.text.turn_header import with_header

_UNSAFE = re.compile(r"[^\w.-]+")
_MOST_CHARS = 80  # longest part of a file name; some file systems allow 255 bytes
_MANIFEST_VERSION = 1


class ManifestEntry(msgspec.Struct, frozen=True):
    """An exported file."""

    file: str  # path below the directory of the agent's qmd, POSIX
    state: str = ""  # state of its source; empty: not written yet
    bytes: int = 0
    sha256: str = ""  # of its content, hexadecimal


class Manifest(msgspec.Struct, frozen=True):
    """All files that memd has exported, by the path of their source in the index."""

    files: Mapping[str, ManifestEntry] = {}
    rules: str = ""  # identifies the rules by which they were made
    version: int = _MANIFEST_VERSION


class ExportSource(msgspec.Struct, frozen=True):
    """A file to export."""

    directory: str  # target directory, below the directory of the agent's qmd
    name: str  # wanted file name
    state: str


class ExportPlan(msgspec.Struct, frozen=True):
    """The changes that bring an export up to date."""

    write: Mapping[str, ManifestEntry]  # by path in the index
    delete: Mapping[str, ManifestEntry]
    keep: Mapping[str, ManifestEntry]


def read_manifest(data: bytes) -> Manifest:
    """Decode a manifest; an invalid one gives an empty manifest, and its files are never touched again."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError:
        return Manifest()
    safe = {path: entry for path, entry in found.files.items() if _is_safe(entry.file)}
    return Manifest(safe, found.rules) if found.version == _MANIFEST_VERSION else Manifest()


def _is_safe(file: str) -> bool:
    parts = file.split("/")
    return len(parts) >= 2 and all(part and not part.startswith(".") and "\0" not in part for part in parts)


def plan_export(
    manifest: Manifest,
    sources: Mapping[str, ExportSource],
    *,
    rules: str,
    sizes: Mapping[str, int],
) -> ExportPlan:
    """Return the changes that bring an export up to date.

    Args:
        manifest: What was exported before.
        sources: What is to be exported, by path in the index.
        rules: Identifies the rules of redaction; if they have changed, all files are written again.
        sizes: Bytes of every existing file, including files not made by memd, by its path below the agent's
            directory.
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
    """Return a name that is valid in every file system and every glob."""
    return _UNSAFE.sub("-", name).strip("-.")[:_MOST_CHARS] or "unnamed"


def _free(source: ExportSource, path: str, taken: Collection[str]) -> str:
    """Return an unused file name; the same source always gets the same one."""
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


PAGE_VERSION = 1  # format of a page; if it changes, all pages are written again


class IndexedPage(msgspec.Struct, frozen=True):
    """Text, with the source line of each of its lines."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...] | None = None  # None: the same as the lines of the source

    def number(self, line: int) -> int:
        """Return the source line of a line of the page."""
        return line if self.numbers is None else self.numbers[line - 1]

    def text(self) -> str:
        """Return the content of the file."""
        return "\n".join(self.lines) + "\n"


def transcript_page(session: str, turns: Sequence[Turn], zone: tzinfo | None) -> IndexedPage:
    """Return the page of a session.

    Args:
        session: The session's name.
        turns: All its turns, redacted.
        zone: The time zone of turn headers; None: UTC.
    """
    first = turns[0].start_line if turns else 1
    lines, numbers = [f"# Session {session}", ""], [first, first]
    for turn in turns:
        turn_lines = with_header(turn.role, turn.at, turn.text, zone).split("\n")
        lines += [*turn_lines, ""]
        numbers += [turn.start_line] * (len(turn_lines) + 1)
    if not turns:
        lines, numbers = [*lines, "(empty)"], [*numbers, first]
    return IndexedPage(tuple(lines), tuple(numbers))


class PageReader:
    """Reads pages of one agent's files."""

    def __init__(self, index: Index, rules: IndexingRules, threads: Threads) -> None:
        self._index = index
        self._rules = rules
        self._threads = threads

    async def page(self, path: str, kind: Kind) -> IndexedPage | None:
        """Return all lines of a file: a note as it is on disk now, a transcript as it was last indexed.

        Args:
            path: The file's path in the index.
            kind: Its kind in the index.

        Returns:
            None if it can no longer be read.

        Raises:
            FilesBlocked: the disk does not answer.
            StoreUnavailable, StoreDamaged.
        """
        if kind.is_session:
            turns = await self._index.turns(path)
            # On a thread, as the text may be long.
            return await self._threads.run(transcript_page, PurePosixPath(path).stem, turns, self._rules.zone)
        try:
            return IndexedPage(tuple(await read_note(path, self._rules, self._threads)))
        except SourceError:
            return None


CURATED = "curated"
NOTES = "notes"
SAVED_AFTER = 100  # files written between two saves of the manifest: after a crash they are written again
_DAY_S = 86_400


class Export:
    """The exported files of one agent, and the manifest that distinguishes them from files of others."""

    def __init__(
        self,
        places: QmdPlaces,
        reading: PageReader,
        threads: Threads,
        *,
        rules: str,
        notes: bool,
        session_days: int,
    ) -> None:
        """Create an export; `prepare` and `bring` create its directories and files.

        Args:
            places: Paths of the agent's qmd.
            reading: Reads the text of files.
            threads: Where files are written.
            rules: Identifies the rules of redaction.
            notes: Whether notes are exported, too.
            session_days: Older transcripts are not exported; 0: all are.
        """
        self._base = places.base
        self._manifest_file = places.manifest.name
        self._reading = reading
        self._threads = threads
        self._rules = f"{PAGE_VERSION} {rules}"
        self._notes = notes
        self._session_days = session_days
        self._tops = (SESSIONS, *((CURATED, NOTES) if notes else ()))
        self._manifest: Manifest | None = None
        self._made_of: Mapping[str, str] = {}
        self.left_alone = 0  # files in the export's directories that memd did not write

    @property
    def files(self) -> Mapping[str, ManifestEntry]:
        """The exported files, by path in the index."""
        return {} if self._manifest is None else self._manifest.files

    def made_of(self, file: Path) -> str | None:
        """Return the path in the index of an exported file's source; None if memd did not export it."""
        try:
            return self._made_of.get(file.relative_to(self._base).as_posix())
        except ValueError:
            return None

    def concerns(self, known: KnownFile) -> bool:
        """Return whether qmd knows such a file only as a copy."""
        return known.kind.is_session or self._notes

    def is_over(self, known: KnownFile, now: float) -> bool:
        """Return whether a transcript is too old to be exported."""
        changed = known.stamp.mtime_ns / 1e9  # negative: modified a moment ago
        return (
            known.kind.is_session
            and self._session_days > 0
            and 0 <= changed < now - self._session_days * _DAY_S
        )

    async def prepare(self) -> None:
        """Create the directories, and read the manifest of an earlier run of the daemon.

        Raises:
            QmdFailed.
        """
        if self._manifest is None:
            found = read_manifest(await self._threads.run(own_files.get, self._base, self._manifest_file))
            self._take(found)
        for top in self._tops:
            await self._threads.run(own_files.make, self._base / top)

    async def bring(self, known: Mapping[str, KnownFile]) -> bool:
        """Bring the export up to date with these files: write those that have changed, delete those that are gone.

        Returns:
            Whether earlier files were made by other rules, so that they may contain what is secret by the
            current ones.

        Raises:
            QmdFailed: a file cannot be written.
            StoreUnavailable, StoreDamaged.
        """
        await self.prepare()
        assert self._manifest is not None
        sizes = await self._threads.run(self._sizes)
        now = time.time()
        sources = {
            path: _source(one)
            for path, one in known.items()
            if self.concerns(one) and not self.is_over(one, now)
        }
        work = plan_export(self._manifest, sources, rules=self._rules, sizes=sizes)
        ours = {entry.file for entry in self._manifest.files.values()}
        self.left_alone = len(sizes.keys() - ours)
        for entry in work.delete.values():
            await self._threads.run(own_files.remove, self._base, entry.file)
        files = dict(work.keep) | {
            path: msgspec.structs.replace(entry, state="") for path, entry in work.write.items()
        }
        if not work.write and not work.delete and self._manifest.rules == self._rules:
            return False
        was_otherwise = bool(self._manifest.files) and self._manifest.rules != self._rules
        # Saved before the files are written, so that files of a killed daemon are recognised at the next
        # start.
        await self._save(files)
        for count, (path, entry) in enumerate(work.write.items(), start=1):
            text = await self._reading.page(path, known[path].kind)
            if text is None:
                await self._threads.run(own_files.remove, self._base, entry.file)
                del files[path]
                continue
            data = text.text().encode(errors="replace")
            await self._threads.run(own_files.put, self._base, entry.file, data)
            files[path] = ManifestEntry(entry.file, sources[path].state, len(data), sha256(data).hexdigest())
            if count % SAVED_AFTER == 0:
                await self._save(files)
        await self._save(files)
        return was_otherwise

    def _sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for top in self._tops:
            found |= own_files.markdown(self._base, top)
        return found

    async def _save(self, files: Mapping[str, ManifestEntry]) -> None:
        saved = Manifest(dict(files), self._rules)
        await self._threads.run(own_files.put, self._base, self._manifest_file, msgspec.json.encode(saved))
        self._take(saved)

    def _take(self, found: Manifest) -> None:
        self._manifest = found
        self._made_of = {entry.file: path for path, entry in found.files.items()}


def _source(known: KnownFile) -> ExportSource:
    """Return where a file is exported to."""
    name = PurePosixPath(known.path)
    state = known.hash.hex()
    if known.kind.is_session:
        label = safe_name(name.parts[1]) if len(name.parts) > 2 else "other"
        return ExportSource(f"{SESSIONS}/{label}", "-".join(name.with_suffix("").parts[2:]), state)
    top = CURATED if known.kind is Kind.CURATED else NOTES
    return ExportSource(top, "-".join(part for part in name.with_suffix("").parts if part != "/"), state)
