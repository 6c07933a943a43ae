"""The index of one agent: its database, vectors and postings, which change together."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from memd.domain_types import (
    Chunk,
    ChunkId,
    FoundFile,
    Kind,
    SearchFilter,
    TextHash,
    Turn,
)
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store import (
    browse,
    chunk_parts,
    chunks,
    files,
    keywords,
    labels,
    meta,
    recovery,
    sessions,
    vector_table,
)
from memd.store.change_lock import ChangeLock
from memd.store.database import Database
from memd.store.embedding_cache import Space
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index_reader import IndexReader
from memd.store.integrity import IndexDamage
from memd.store.search_keywords import IndexMemory, KeywordReader, SearchKeywords
from memd.store.search_vectors import Held, SearchVectors

T = TypeVar("T")


class Index:
    """The files, chunks, keywords and vectors of one agent."""

    def __init__(self, file: Path, *, resident: bool = True, like: "Index | None" = None) -> None:
        """Create the object; `open` opens the file.

        Args:
            file: The path of the database.
            resident: Whether vectors are kept in memory; otherwise searches read them from the file.
            like: Another index that decides that for this one too; None: `resident` does.
        """
        self.file = file
        extension, self.extension_trouble = vector_table.find_extension()
        self._extension = extension
        self.database = Database(file, "index", extension=extension)
        self._changing = ChangeLock()
        self.vectors: SearchVectors = SearchVectors(
            self.database, self._changing, resident=resident, like=None if like is None else like.vectors
        )
        self.postings = SearchKeywords(self.database, self._changing, self.vectors)
        self.memory = IndexMemory(self.vectors, self.postings)
        # Adopted, but not stored yet, since the file could not be written.
        self._unwritten: meta.Fingerprint | None = None
        self.begun_anew: str | None = None  # why an empty file has replaced a damaged one
        # Notified after each change of files; versions are not stored.
        self.changed = ChangeNotifier()
        self.damage = IndexDamage(file.stem)

    async def open(self) -> None:
        """Open the file; a damaged one is quarantined and replaced by an empty one.

        Raises:
            StoreUnavailable, StoreNewer.
        """
        try:
            await self.database.open()
        except StoreDamaged as damage:
            await self.start_over(damage)

    async def start_over(self, damage: StoreDamaged) -> None:
        """Quarantine the file, and replace it by an empty one.

        Raises:
            StoreUnavailable.
        """
        await self.database.exchange(lambda: recovery.quarantine(self.file, str(damage)))
        self.vectors.take(None, None, has_parts=False)
        self.postings.forget()
        self.begun_anew = str(damage)
        self.changed.notify()

    async def close(self) -> None:
        """Roll back a running write, and close the file."""
        await self.postings.close()
        await self.vectors.close()
        await self.database.close()
        await self._changing.wait_for_all()

    # --- what it was built for

    async def fingerprint(self) -> meta.Fingerprint | None:
        """Return the settings that the index was built with; None: unknown."""
        return await self.database.read(meta.get_fingerprint)

    async def mounts(self) -> list[tuple[str, str]]:
        """See meta.get_mounts."""
        return await self.database.read(meta.get_mounts)

    async def put_mounts(self, mounts: Sequence[tuple[str, str]]) -> None:
        """See meta.put_mounts."""
        await self.database.write(lambda connection: meta.put_mounts(connection, mounts))

    async def origins(self) -> list[meta.Origin] | None:
        """See meta.get_origins."""
        return await self.database.read(meta.get_origins)

    async def put_origins(self, origins: Sequence[meta.Origin]) -> None:
        """See meta.put_origins."""
        await self.database.write(lambda connection: meta.put_origins(connection, origins))

    async def adopt(self, fingerprint: meta.Fingerprint) -> None:
        """Store the settings that the index is built with, create the vector table, and load the vectors.

        If the file cannot be written now, an index that fits is used as it is; `finish_opening` stores the rest later.

        Raises:
            StoreUnavailable: the file cannot be written, and the index does not fit.
            StoreDamaged.
        """
        await self._changing.carry_through(partial(self._adopt, fingerprint))

    async def _adopt(self, fingerprint: meta.Fingerprint) -> None:
        def prepare(connection: apsw.Connection) -> Held | None:
            stored = meta.get_fingerprint(connection)
            keywords.begin(connection)
            meta.put_fingerprint(connection, _kept(stored, fingerprint))
            meta.forget_unread_text(connection)
            if fingerprint.dimensions is None:
                return None
            if stored is not None and stored.vector_part != fingerprint.vector_part:
                vector_table.clear(connection)  # they belong to another model
            vector_table.prepare(connection, fingerprint.dimensions)
            return self.vectors.load(connection, fingerprint.dimensions)

        def as_it_is(connection: apsw.Connection) -> Held | None:
            stored = meta.get_fingerprint(connection)
            if stored is None or stored.text_part != fingerprint.text_part:
                raise StoreUnavailable(f"{self.file} is not ready to be searched")
            if fingerprint.dimensions is None or stored.vector_part != fingerprint.vector_part:
                return None
            return self.vectors.load(connection, fingerprint.dimensions)

        try:
            loaded = await self.database.write(prepare)
            self._unwritten = None
        except StoreUnavailable as trouble:
            try:
                loaded = await self.database.read(as_it_is)
            except StoreUnavailable:
                raise trouble from None
            self._unwritten = fingerprint
        if loaded is not None:
            self.vectors.take(loaded, fingerprint.space, has_parts=fingerprint.parts)

    async def take_vectors(self, wanted: meta.Fingerprint) -> None:
        """Create a vector table for a model in an index that has none; the text part of the fingerprint stays.

        An index with vectors of another model is not changed.

        Raises:
            StoreUnavailable, StoreDamaged.
        """

        def prepare(connection: apsw.Connection) -> Held | None:
            stored = meta.get_fingerprint(connection)
            if stored is None or stored.space not in {None, wanted.space} or wanted.dimensions is None:
                return None
            meta.put_fingerprint(connection, meta.with_vectors(stored, wanted))
            vector_table.prepare(connection, wanted.dimensions)
            return self.vectors.load(connection, wanted.dimensions)

        async def change() -> None:
            if self.vectors.space is None:
                loaded = await self.database.write(prepare)
                if loaded is not None:
                    self.vectors.take(loaded, wanted.space, has_parts=wanted.parts)

        await self._changing.carry_through(change)

    async def finish_opening(self) -> None:
        """Store what could not be written when the index was opened, if anything.

        Raises:
            StoreUnavailable: it still cannot be written.
            StoreDamaged.
        """
        if self._unwritten is not None:
            await self.adopt(self._unwritten)
        if self._unwritten is not None or self.database.read_only is not None:
            await self.database.write(lambda _: None)

    # --- files, transcripts, chunks and their vectors

    async def known(self, within: Collection[str] | None = None) -> dict[str, files.KnownFile]:
        """Return indexed files by path: at least those at and below some paths; None: all."""
        return await self.database.read(files.known, within)

    async def find(self, path: str) -> files.KnownFile | None:
        """Return one file; None if it is not indexed."""
        return await self.database.read(files.find, path)

    async def restamp(self, found: Sequence[FoundFile]) -> None:
        """Store new stamps of files whose content is unchanged."""

        def restamp_all(connection: apsw.Connection) -> None:
            for one in found:
                files.restamp(connection, one)

        if found:
            await self.database.write(restamp_all)

    async def replace(
        self,
        found: FoundFile,
        content_hash: bytes,
        cut: Sequence[Chunk],
        vector_of: Mapping[TextHash, bytes],
        refused: frozenset[TextHash],
    ) -> files.ReplacedChunks:
        """Replace the chunks of a file in one transaction."""
        [replaced] = await self.replace_all([files.FileChange(found, content_hash, cut)], vector_of, refused)
        return replaced

    async def replace_all(
        self,
        changes: Sequence[files.FileChange],
        vector_of: Mapping[TextHash, bytes],
        refused: frozenset[TextHash],
        space: Space | None = None,
    ) -> list[files.ReplacedChunks]:
        """Replace the chunks of some files in one transaction.

        Args:
            changes: The files with all their chunks.
            vector_of: Known float32 vectors, by text hash.
            refused: The hashes of texts that the provider cannot embed.
            space: The space of the vectors and refusals; None: that of the index.
        """

        async def change() -> list[files.ReplacedChunks]:
            usable, unusable = self._fitting(vector_of, refused, space)
            size = _size(changes, usable)
            done = await self.database.write_more(size, files.replace_all, changes, usable, unusable)
            self.changed.notify()
            await self._follow_all(done)
            return done

        return await self._changing.carry_through(change)

    def _fitting(
        self, vector_of: Mapping[TextHash, bytes], refused: frozenset[TextHash], space: Space | None
    ) -> tuple[Mapping[TextHash, bytes], frozenset[TextHash]]:
        """Return the vectors and refusals if they are of the index's space, otherwise none."""
        is_theirs = space in {None, self.vectors.space}
        return (
            vector_of if self.vectors.held is not None and is_theirs else {},
            refused if is_theirs else frozenset(),
        )

    async def _follow_all(self, done: Sequence[files.ReplacedChunks]) -> None:
        gone = [chunk_id for replaced in done for chunk_id in replaced.removed]
        await self.vectors.follow(gone, [row for replaced in done for row in replaced.embedded])
        dated = {chunk_id: when for replaced in done for chunk_id, when in replaced.dated.items()}
        await self.postings.follow(gone, came=any(replaced.added for replaced in done), dated=dated)

    async def replace_sessions(
        self,
        changes: Sequence[sessions.SessionChange],
        vector_of: Mapping[TextHash, bytes],
        refused: frozenset[TextHash],
        space: Space | None = None,
    ) -> list[files.ReplacedChunks | None]:
        """Apply changes of some transcripts in one transaction.

        Args:
            changes: The new turns and chunks.
            vector_of: Known float32 vectors, by text hash.
            refused: The hashes of texts that the provider cannot embed.
            space: The space of the vectors and refusals; None: that of the index.

        Returns:
            For each change, what was done, or None if the stored progress is not the one that the change continues from: then
            nothing of that transcript was changed, and it must be read again.
        """

        async def change() -> list[files.ReplacedChunks | None]:
            usable, unusable = self._fitting(vector_of, refused, space)
            size = _size(changes, usable)
            done = await self.database.write_more(size, files.replace_sessions, changes, usable, unusable)
            self.changed.notify()
            await self._follow_all([replaced for replaced in done if replaced is not None])
            return done

        return await self._changing.carry_through(change)

    async def stored_sessions(self, paths: Sequence[str]) -> dict[str, sessions.StoredSession]:
        """Return the stored states of transcripts by path; those that are not indexed are left out.

        Raises:
            StoreDamaged: turns are missing.
        """

        def find_all(connection: apsw.Connection) -> dict[str, sessions.StoredSession]:
            found = {path: sessions.find(connection, path) for path in paths}
            return {path: stored for path, stored in found.items() if stored is not None}

        return await self.database.read(find_all)

    async def turns(self, path: str, first_seq: int = 0) -> list[Turn]:
        """Return the turns of a transcript from `first_seq` on, in order."""
        return await self.database.read(sessions.turns, path, first_seq)

    async def turns_at(self, path: str, start_line: int, end_line: int) -> list[Turn]:
        """Return the turns of a transcript that overlap some of its lines, in order."""
        return await self.database.read(sessions.turns_at, path, start_line, end_line)

    async def session_counts(self) -> tuple[int, int]:
        """Return the number of transcripts, and of all their turns."""
        return await self.database.read(sessions.counts)

    async def stretch(self, path: str, start_line: int, lines: int, most_chars: int) -> sessions.TurnSpan:
        """Return the turns of a transcript that begin on some of its lines; see sessions.stretch."""
        return await self.database.read(sessions.stretch, path, start_line, lines, most_chars)

    async def last_turn_line(self, path: str) -> int:
        """Return the last line of a transcript that has a turn; 0: there is none."""
        return await self.database.read(sessions.last_line, path)

    async def tallies(self) -> dict[str, int]:
        """Return the counters of all files, summed by name."""
        return await self.database.read(sessions.tallies)

    async def file_page(
        self, wanted: SearchFilter, kinds: Collection[Kind], order: browse.FileOrder
    ) -> browse.FilePage:
        """See browse.list_files."""
        return await self.database.read(browse.list_files, wanted, kinds, order)

    async def chunk_page(
        self, path: str, kinds: Collection[Kind], *, skip: int, most: int, most_chars: int
    ) -> browse.ChunkPage | None:
        """See browse.list_chunks."""
        return await self.database.read(
            browse.list_chunks, path, kinds, skip=skip, most=most, most_chars=most_chars
        )

    async def turn_page(
        self, path: str, kinds: Collection[Kind], *, skip: int, most: int, most_chars: int
    ) -> browse.TurnPage | None:
        """See browse.list_turns."""
        return await self.database.read(
            browse.list_turns, path, kinds, skip=skip, most=most, most_chars=most_chars
        )

    async def note_texts(self, kinds: Collection[Kind], after: int, most: int) -> list[tuple[ChunkId, str]]:
        """See browse.note_texts."""
        return await self.database.read(browse.note_texts, kinds, after, most)

    async def superseded_notes(self, kinds: Collection[Kind], most: int) -> list[tuple[str, str, str | None]]:
        """See browse.superseded_notes."""
        return await self.database.read(browse.superseded_notes, kinds, most)

    async def stored_chunks(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, chunks.StoredChunk]:
        """See chunks.texts."""
        return await self.database.read(chunks.texts, chunk_ids)

    async def remove(self, paths: Sequence[str]) -> None:
        """Delete files in one transaction."""

        async def change() -> None:
            removed = await self.database.write(files.remove, paths)
            self.changed.notify()
            await self.vectors.follow(removed, ())
            await self.postings.follow(removed, came=False)

        await self._changing.carry_through(change)

    async def tidy_keywords(self, *, begin: bool) -> bool:
        """Merge some segments of the keyword index; return whether more are left to merge.

        A search reads every segment. One step takes some ten milliseconds of the writer.

        Args:
            begin: Whether to begin with all current segments; otherwise a merge that was begun continues.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """
        return await self.database.write(keywords.merge, begin=begin)

    async def waiting(
        self, limit: int, passed_over: frozenset[TextHash] = frozenset()
    ) -> list[chunks.WaitingChunk]:
        """Return chunks without vectors, the most important first; none if the index has no vector table."""
        if self.vectors.held is None:
            return []
        return await self.database.read(chunks.waiting, limit, passed_over, with_parts=self.vectors.has_parts)

    async def waiting_hashes(self) -> list[TextHash]:
        """Return the distinct hashes of texts without vectors; none if the index has no vector table."""
        if self.vectors.held is None:
            return []
        return await self.database.read(chunks.waiting_hashes, with_parts=self.vectors.has_parts)

    async def add_vectors(
        self, rows: Sequence[tuple[ChunkId, TextHash, bytes]], space: Space | None = None
    ) -> int:
        """Store vectors of chunks and of parts that have not changed since; return how many were stored.

        Args:
            rows: Chunks with their vectors.
            space: The space of the vectors, which are dropped if it is not the index's; None: that of the index.
        """

        async def change() -> int:
            if self.vectors.held is None or space not in {None, self.vectors.space}:
                return 0
            size = sum(len(vector) for _, _, vector in rows)
            stored, parts_stored = await self.database.write_more(size, vector_table.add, rows)
            await self.vectors.follow((), stored)
            return len(stored) + parts_stored

        return await self._changing.carry_through(change)

    async def mark_refused(self, text_hash: TextHash, space: Space | None = None) -> None:
        """Mark the chunks of a text as refused by the provider.

        Args:
            text_hash: The hash of the text.
            space: The provider's space; ignored if it is not the index's. None: that of the index.
        """
        async with self._changing:
            if space in {None, self.vectors.space}:
                await self.database.write(chunks.mark_refused, text_hash)

    async def hashes(self) -> list[TextHash]:
        """Return the distinct hashes of all embedded texts, of chunks and of parts."""

        def hashes(connection: apsw.Connection) -> list[TextHash]:
            return list({*chunks.hashes(connection), *chunk_parts.hashes(connection, embedded=False)})

        return await self.database.read(hashes)

    async def embedded(self) -> list[TextHash]:
        """Return the distinct hashes of texts that have a vector."""

        def embedded(connection: apsw.Connection) -> list[TextHash]:
            return list({*vector_table.hashes(connection), *chunk_parts.hashes(connection, embedded=True)})

        return await self.database.read(embedded)

    async def vectors_of(self, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
        """Return the float32 vectors of texts; texts without one are left out."""

        def of_texts(connection: apsw.Connection) -> dict[TextHash, bytes]:
            found = vector_table.of_texts(connection, hashes)
            return found | chunk_parts.of_texts(connection, [one for one in hashes if one not in found])

        return await self.database.read(of_texts)

    async def any_waits(self) -> bool:
        """Return whether any chunk has no vector, even if the index has no vector table."""
        return await self.database.read(chunks.any_waits)

    async def is_complete(self) -> bool:
        """Return whether no chunk waits for a vector; see Counts.waiting."""
        return not await self.database.read(chunks.any_waits, with_parts=self.vectors.has_parts)

    async def counts(self) -> chunks.Counts:
        """Return the numbers of files, chunks and texts."""
        return await self.database.read(chunks.counts, with_parts=self.vectors.has_parts)

    # --- what a search reads

    async def allowed_lines(
        self, wanted: SearchFilter, kinds: Collection[Kind]
    ) -> dict[str, list[tuple[int, int]]]:
        """See labels.allowed_lines."""
        return await self.database.read(labels.allowed_lines, wanted, kinds)

    async def label_counts(self, kinds: frozenset[Kind], most: int) -> labels.LabelCounts:
        """See labels.counts."""
        return await self.database.read(labels.counts, kinds, most)

    async def at_rest(self, most_s: float) -> bool:
        """Wait for a running change to end, after which content and vectors are of one state.

        Args:
            most_s: The timeout in seconds: on a slow disk a change takes long, and others may be queued before.

        Returns:
            Whether no change is running.
        """
        return await self._changing.at_rest(most_s)

    @property
    def space(self) -> Space | None:
        """The space of the vectors; None: the index has no vector table."""
        return self.vectors.space

    @property
    def has_parts(self) -> bool:
        """Whether parts of chunks get vectors too."""
        return self.vectors.has_parts

    @property
    def has_vectors(self) -> bool:
        """Whether the index has any vector."""
        return self.vectors.held is not None and len(self.vectors.held) > 0

    @property
    def state(self) -> int | None:
        """See ChangeLock.state."""
        return self._changing.state

    async def read(self, use: Callable[[IndexReader], T], state: int | None = None) -> T:
        """Run use(reader) on a thread, in one read transaction.

        Args:
            use: A function of the search.
            state: The state of the index when the caller looked up vectors; if it is still the same, postings replace some queries.
        """

        def look(connection: apsw.Connection) -> tuple[T, int]:
            postings = self.postings.asked()
            by_keywords = KeywordReader(connection, postings)
            # Its query has started the snapshot of the connection.
            is_current = state is not None and state == self.state
            reader = IndexReader(
                connection, self.database, self.vectors, by_keywords, postings if is_current else None
            )
            return use(reader), by_keywords.chunks

        used, chunks = await self.database.read(look)
        self.postings.was_searched(chunks)
        self.vectors.was_searched()
        return used

    # --- a rebuild

    async def start_ids_at(self, first: int) -> None:
        """Give new chunks ids of at least `first`."""

        def start(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'chunks'")
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('chunks', ?)", (first - 1,))

        await self.database.write(start)

    async def swap_in(self, other: "Index", *, damage: str | None = None) -> None:
        """Replace the content by that of an index that was built beside this one, and was handed over.

        Args:
            other: The new index; it is closed.
            damage: Why this file is damaged; it is then quarantined. None: the pages of the new file are copied into this one;
                if that reveals damage, this file is quarantined too.

        Raises:
            StoreUnavailable: this index is unchanged.
            StoreDamaged: the new index cannot be used.
        """
        built = await other.hand_over()
        # A vector being added belongs to the old index or to the new one, but not to both.
        async with self._changing:
            if damage is None:
                try:
                    await self.database.replace_from(other.file)
                except StoreDamaged as found:
                    damage = str(found)
            if damage is not None:
                await self._put_in_place(other, damage)
            self.vectors.take(built, other.space, has_parts=other.has_parts)
            self.postings.forget()
            with contextlib.suppress(StoreUnavailable):  # searches then read them from disk
                await self.vectors.move_where_wanted()
        self._unwritten = self.begun_anew = None
        self.changed.notify()
        # Until here, searches use keywords alone, since vectors do not match the content.
        with contextlib.suppress(StoreUnavailable):  # no disk space: the data is safe in the WAL
            await self.database.checkpoint(wait=False)
            # The backups are not needed, and may contain text that newer rules redact.
            await self.database.drop_copies()

    async def _put_in_place(self, other: "Index", damage: str) -> None:
        is_in_place = False

        def put_in_place() -> None:
            nonlocal is_in_place
            recovery.quarantine(self.file, damage)
            other.file.rename(self.file)
            is_in_place = True

        try:
            await self.database.exchange(put_in_place)
        except StoreUnavailable:
            # The content is replaced even if the file cannot be opened now; the next access opens it.
            if not is_in_place:
                raise

    async def hand_over(self) -> Held | None:
        """Checkpoint and close the file; return the vectors in memory or their list.

        Raises:
            StoreUnavailable, StoreDamaged: the index cannot be used.
        """
        await self.database.check()
        await self.database.checkpoint(wait=True)
        await self.close()
        return self.vectors.held

    # --- on disk

    @property
    def store_bytes(self) -> int:
        """The size of the database and its WAL in bytes."""
        total = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                total += Path(f"{self.file}{suffix}").stat().st_size
        return total

    def damaged_files(self) -> list[Path]:
        """Return the quarantined files of this index, the newest first."""
        return recovery.kept_damaged(self.file)


def _size(
    changes: Sequence[files.FileChange | sessions.SessionChange], vector_of: Mapping[TextHash, bytes]
) -> int:
    """Return the approximate size in bytes of some files in an index, without indexes."""
    chunks_of = [chunk for change in changes for chunk in change.chunks]
    texts = sum(len(chunk.text) + len(chunk.context) for chunk in chunks_of)
    return texts + sum(len(vector_of[chunk.hash]) for chunk in chunks_of if chunk.hash in vector_of)


def _kept(stored: meta.Fingerprint | None, wanted: meta.Fingerprint) -> meta.Fingerprint:
    """Return the fingerprint to store."""
    if wanted.provider is not None or stored is None:
        return wanted
    # Without a provider today, the vectors are kept until it is available again.
    return meta.with_vectors(wanted, stored)
