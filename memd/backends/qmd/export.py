"""What qmd is to search and must not read as it is on the disk: transcripts, and notes where all is redacted."""

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
from memd.text.turn_header import spoken

_UNSAFE = re.compile(r"[^\w.-]+")
_MOST_CHARS = 80  # of a part of a name; some file systems take 255 bytes
_MANIFEST_VERSION = 1


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
    version: int = _MANIFEST_VERSION


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


def read_manifest(data: bytes) -> Manifest:
    """A manifest as it was written; an empty one where it cannot be read: its files are left alone then, for good."""
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


PAGE_VERSION = 1  # of how a page is made: with another one, pages are made anew


class IndexedPage(msgspec.Struct, frozen=True):
    """Text with the line of its source that each of its lines stands for."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...] | None = None  # None: lines are those of the source

    def number(self, line: int) -> int:
        """The line of the source that a line of the page stands for."""
        return line if self.numbers is None else self.numbers[line - 1]

    def text(self) -> str:
        """What is written to the disk."""
        return "\n".join(self.lines) + "\n"


def transcript_page(session: str, turns: Sequence[Turn], zone: tzinfo | None) -> IndexedPage:
    """The page of a session.

    Args:
        session: Its name.
        turns: All of them, redacted.
        zone: That times are told in; None: UTC.
    """
    first = turns[0].start_line if turns else 1
    lines, numbers = [f"# Session {session}", ""], [first, first]
    for turn in turns:
        turn_lines = spoken(turn.role, turn.at, turn.text, zone).split("\n")
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
        """All lines of a file: of a note as it is on the disk now, of a transcript as it was read last.

        Args:
            path: Its name in the index.
            kind: What it is there.

        Returns:
            None where it cannot be read any more.

        Raises:
            FilesBlocked: the disk does not answer.
            StoreUnavailable, StoreDamaged.
        """
        if kind.is_session:
            turns = await self._index.turns(path)
            # Much text: the loop has others to answer.
            return await self._threads.run(transcript_page, PurePosixPath(path).stem, turns, self._rules.zone)
        try:
            return IndexedPage(tuple(await read_note(path, self._rules, self._threads)))
        except SourceError:
            return None


CURATED = "curated"
NOTES = "notes"
SAVED_AFTER = 100  # files that are written without the manifest saying so: at worst they are written again
_DAY_S = 86_400


class Export:
    """The exported files of one agent, and the manifest that tells them from others' files."""

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
        """Make an export; its directories and files come with prepare and bring.

        Args:
            places: Of the agent's qmd.
            reading: Gives the text of files.
            threads: For what is on the disk.
            rules: What decides how texts are redacted.
            notes: Whether notes are exported, too.
            session_days: Older transcripts are not; 0: all are.
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
        self.left_alone = 0  # files in the way of the export that memd did not write

    @property
    def files(self) -> Mapping[str, ManifestEntry]:
        """What is exported, by the name in the index."""
        return {} if self._manifest is None else self._manifest.files

    def made_of(self, file: Path) -> str | None:
        """The name in the index of what an exported file was made of; None: memd did not make it."""
        try:
            return self._made_of.get(file.relative_to(self._base).as_posix())
        except ValueError:
            return None

    def concerns(self, known: KnownFile) -> bool:
        """Whether qmd knows such a file by a copy alone."""
        return known.kind.is_session or self._notes

    def is_over(self, known: KnownFile, now: float) -> bool:
        """Whether a transcript is too old to be exported."""
        changed = known.stamp.mtime_ns / 1e9  # negative: a moment ago
        return (
            known.kind.is_session
            and self._session_days > 0
            and 0 <= changed < now - self._session_days * _DAY_S
        )

    async def prepare(self) -> None:
        """Make the directories, and read what was exported by another life of the daemon.

        Raises:
            QmdFailed.
        """
        if self._manifest is None:
            found = read_manifest(await self._threads.run(own_files.get, self._base, self._manifest_file))
            self._take(found)
        for top in self._tops:
            await self._threads.run(own_files.make, self._base / top)

    async def bring(self, known: Mapping[str, KnownFile]) -> bool:
        """Make the export that of these files: written are those that have changed, deleted those that are gone.

        Returns:
            Whether what was exported before was made by other rules: it may hold what is secret by those of now.

        Raises:
            QmdFailed: it cannot be written.
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
        # Before the files: what the daemon wrote when it was killed is its own at the next start.
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
    """Where a file is exported to."""
    name = PurePosixPath(known.path)
    state = known.hash.hex()
    if known.kind.is_session:
        label = safe_name(name.parts[1]) if len(name.parts) > 2 else "other"
        return ExportSource(f"{SESSIONS}/{label}", "-".join(name.with_suffix("").parts[2:]), state)
    top = CURATED if known.kind is Kind.CURATED else NOTES
    return ExportSource(top, "-".join(part for part in name.with_suffix("").parts if part != "/"), state)
