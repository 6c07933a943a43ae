"""What qmd is to search and must not read as it is on the disk: transcripts, and notes where all is redacted."""

import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec

from memd.backends.qmd import manifest, own_files, page
from memd.backends.qmd.installation import QmdPlaces
from memd.backends.qmd.manifest import ExportSource, Manifest, ManifestEntry
from memd.backends.qmd.page import PageReader
from memd.model import Kind
from memd.runtime.threads import Threads
from memd.store.files import KnownFile
from memd.text.memory_paths import SESSIONS

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
        self._rules = f"{page.VERSION} {rules}"
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
        return known.kind is Kind.SESSION or self._notes

    def is_over(self, known: KnownFile, now: float) -> bool:
        """Whether a transcript is too old to be exported."""
        changed = known.stamp.mtime_ns / 1e9  # negative: a moment ago
        return (
            known.kind is Kind.SESSION
            and self._session_days > 0
            and 0 <= changed < now - self._session_days * _DAY_S
        )

    async def prepare(self) -> None:
        """Make the directories, and read what was exported by another life of the daemon.

        Raises:
            QmdFailed.
        """
        if self._manifest is None:
            found = manifest.read(await self._threads.run(own_files.get, self._base, self._manifest_file))
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
        work = manifest.plan(self._manifest, sources, rules=self._rules, sizes=sizes)
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
    if known.kind is Kind.SESSION:
        label = manifest.safe_name(name.parts[1]) if len(name.parts) > 2 else "other"
        return ExportSource(f"{SESSIONS}/{label}", "-".join(name.with_suffix("").parts[2:]), state)
    top = CURATED if known.kind is Kind.CURATED else NOTES
    return ExportSource(top, "-".join(part for part in name.with_suffix("").parts if part != "/"), state)
