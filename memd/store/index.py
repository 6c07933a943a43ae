"""The index of one agent: its database together with its vectors, which are in memory or stay on disk."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import (
    Chunk,
    ChunkId,
    FoundFile,
    Kind,
    SearchFilter,
    TextHash,
    Turn,
)
from memd.errors import MemdError
from memd.runtime.synchronization import ChangeNotifier
from memd.store import browse, chunk_parts, chunks, files, keywords, labels, meta, recovery, sessions, vectors
from memd.store.database import Database
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.integrity import IndexDamage
from memd.store.postings import ChunkFacts
from memd.store.search_keywords import IndexMemory, KeywordReader, SearchKeywords
from memd.store.search_vectors import Floats, Held, SearchVectors, at_rest
from memd.store.vector_matrix import Ids
from memd.text.writing_systems import ScriptShares

T = TypeVar("T")


class ChangeLock(asyncio.Lock):
    """Held during each change of an index, of its file and of what is in memory."""

    def __init__(self) -> None:
        """Nothing has changed yet."""
        super().__init__()
        self._changes = 0

    async def acquire(self) -> Literal[True]:
        """Begin a change when no other one is under way."""
        await super().acquire()
        self._changes += 1
        return True

    @property
    def state(self) -> int | None:
        """Differs whenever anything may have changed in between; None: a change is under way."""
        return None if self.locked() else self._changes


class Reader:
    """Reads chunks of one state of an index."""

    def __init__(self, connection: apsw.Connection, index: "Index", state: int | None) -> None:
        """Read by a connection that sees one state.

        Args:
            connection: In a transaction.
            index: What is read.
            state: As of Index.read.
        """
        self._connection = connection
        self._index = index
        self._postings = index.postings.asked()
        self._by_keywords = KeywordReader(connection, self._postings)
        # From here on the connection sees one state.
        self._held = self._postings if state is not None and state == index.state else None
        self._places: dict[ChunkId, chunks.ChunkPlace] = {}

    @contextlib.contextmanager
    def side(self) -> Iterator[None]:
        """Read what a search can do without: what comes after it can be read whatever happens.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: for whatever goes wrong in the block, a lack of memory, too.
        """
        try:
            with self._index.database.judged():
                yield
        except MemdError:
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN")
            raise

    @property
    def keywords(self) -> KeywordReader:
        """Ranks chunks by keywords, by postings of this state or of the one before."""
        return self._by_keywords

    def nearest(
        self,
        known: ListedVector,
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        also: Collection[ChunkId],
        among: Sequence[Ids | None],
    ) -> NearVectors | None:
        """See SearchVectors.nearest."""
        return self._index.vectors.nearest(self._connection, known, query, limit, kinds, also, among)

    def facts(self, chunk_ids: Ids) -> ChunkFacts:
        """The kinds and times of chunks."""
        if self._held is not None:
            return self._held.facts(chunk_ids)
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        there = (places.get(one) for one in wanted)
        return ChunkFacts.of([None if one is None else (one.kind, one.first_s, one.last_s) for one in there])

    def foreign(self, chunk_ids: Ids, question: Mapping[str, float]) -> NDArray[np.float64]:
        """How foreign chunks are to the scripts of a question; see ScriptShares.foreign_to."""
        if self._held is not None:
            return self._held.foreign(chunk_ids, question)
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        stored = [chunks.scripts_read(places[one].scripts) for one in wanted]
        return ScriptShares.of(stored).foreign_to(question)

    def places(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, chunks.ChunkPlace]:
        """Where chunks stand, and maybe others; those that are gone are left out."""
        unread = [one for one in chunk_ids if one not in self._places]
        if unread:
            self._places |= {one.id: one for one in chunks.places(self._connection, unread)}
        return self._places

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, chunks.StoredChunk]:
        """Chunks with their text; those that are gone are left out."""
        return chunks.texts(self._connection, chunk_ids)

    def newest(self, limit: int, wanted: SearchFilter, kinds: Collection[Kind]) -> list[ChunkId]:
        """See labels.newest."""
        return labels.newest(self._connection, limit, wanted, kinds)

    def closest_parts(
        self, chunk_ids: Sequence[ChunkId], query: Floats
    ) -> dict[ChunkId, chunk_parts.ClosestPart]:
        """See chunk_parts.closest."""
        return chunk_parts.closest(self._connection, chunk_ids, query)


class Index:
    """Files, chunks, keywords and vectors of one agent."""

    def __init__(self, file: Path, *, resident: bool = True, like: "Index | None" = None) -> None:
        """Does not open the file.

        Args:
            file: Where it is, or is to be.
            resident: Whether its vectors are to be in memory; else a search reads them from the file.
            like: An index that decides that for this one, too; None: none does.
        """
        self.file = file
        extension, self.extension_trouble = vectors.find_extension()
        self._extension = extension
        self.database = Database(file, "index", extension=extension)
        self._changing = ChangeLock()
        self.vectors: SearchVectors = SearchVectors(
            self.database, self._changing, resident=resident, like=None if like is None else like.vectors
        )
        self.postings = SearchKeywords(self.database, self._changing, self.vectors)
        self.memory = IndexMemory(self.vectors, self.postings)
        self._under_way: set[asyncio.Task[Any]] = set()  # changes of the file and of what is in memory
        self._unwritten: meta.Fingerprint | None = None  # what was adopted while nothing could be written
        self.begun_anew: str | None = None  # why there is an empty file in the place of a damaged one
        # Whenever its files have changed; the versions are of this object alone.
        self.changed = ChangeNotifier()
        self.damage = IndexDamage(file.stem)

    async def open(self) -> None:
        """Open the file; one that is damaged is set aside under another name, and a new one made.

        Raises:
            StoreUnavailable, StoreNewer.
        """
        try:
            await self.database.open()
        except StoreDamaged as damage:
            await self.start_over(damage)

    async def start_over(self, damage: StoreDamaged) -> None:
        """Set the file aside under another name, and begin with an empty one.

        Raises:
            StoreUnavailable.
        """
        await self.database.exchange(lambda: recovery.set_aside(self.file, str(damage)))
        self.vectors.take(None, None, has_parts=False)
        self.postings.forget()
        self.begun_anew = str(damage)
        self.changed.notify()

    async def close(self) -> None:
        """Close the file, rolling back a write that is under way."""
        await self.postings.close()
        await self.vectors.close()
        await self.database.close()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _carried_through(self, change: Callable[[], Awaitable[T]]) -> T:
        """What a change of the file and of what is in memory returns, when no other one is under way.

        Its transaction is committed even if the caller is cancelled, as that of a removed agent is: so what is in memory
        must follow all the same, or searches would see another state than the file's.
        """

        async def alone() -> T:
            async with self._changing:
                return await change()

        changing = asyncio.create_task(alone())
        self._under_way.add(changing)
        changing.add_done_callback(self._have_changed)
        await asyncio.wait([changing])
        return changing.result()

    def _have_changed(self, changing: asyncio.Task[Any]) -> None:
        self._under_way.discard(changing)
        if not changing.cancelled():
            changing.exception()  # the exception counts as seen where no caller waits any more

    # --- what it was built for

    async def fingerprint(self) -> meta.Fingerprint | None:
        """What the index was built for."""
        return await self.database.read(meta.get_fingerprint)

    async def mounts(self) -> list[tuple[str, str]]:
        """See meta.get_mounts."""
        return await self.database.read(meta.get_mounts)

    async def put_mounts(self, mounts: Sequence[tuple[str, str]]) -> None:
        """See meta.put_mounts."""
        await self.database.write(lambda connection: meta.put_mounts(connection, mounts))

    async def adopt(self, fingerprint: meta.Fingerprint) -> None:
        """Remember what the index is built for, make room for vectors of that size, and load those there are.

        Where nothing can be written just now, an index that fits serves as it is; finish_opening catches up on the rest.

        Raises:
            StoreUnavailable: nothing can be written, and what there is does not fit.
            StoreDamaged.
        """
        await self._carried_through(partial(self._adopt, fingerprint))

    async def _adopt(self, fingerprint: meta.Fingerprint) -> None:
        def prepare(connection: apsw.Connection) -> Held | None:
            stored = meta.get_fingerprint(connection)
            keywords.begin(connection)
            meta.put_fingerprint(connection, _kept(stored, fingerprint))
            if fingerprint.dimensions is None:
                return None
            if stored is not None and stored.vector_part != fingerprint.vector_part:
                vectors.clear(connection)  # what there was room for has another size, or another meaning
            vectors.prepare(connection, fingerprint.dimensions)
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
        """Have room for vectors of a model in an index that lacks them; what its text is for stays as it is.

        Nothing is done in one that has a place for those of another.

        Raises:
            StoreUnavailable, StoreDamaged.
        """

        def prepare(connection: apsw.Connection) -> Held | None:
            stored = meta.get_fingerprint(connection)
            if stored is None or stored.space not in {None, wanted.space} or wanted.dimensions is None:
                return None
            meta.put_fingerprint(connection, meta.with_vectors(stored, wanted))
            vectors.prepare(connection, wanted.dimensions)
            return self.vectors.load(connection, wanted.dimensions)

        async def change() -> None:
            if self.vectors.space is None:
                loaded = await self.database.write(prepare)
                if loaded is not None:
                    self.vectors.take(loaded, wanted.space, has_parts=wanted.parts)

        await self._carried_through(change)

    async def finish_opening(self) -> None:
        """Catch up on what could not be written when the index was opened; nothing to do for most.

        Raises:
            StoreUnavailable: it still cannot.
            StoreDamaged.
        """
        if self._unwritten is not None:
            await self.adopt(self._unwritten)
        if self._unwritten is not None or self.database.read_only is not None:
            await self.database.write(lambda _: None)

    # --- what sync does

    async def known(self, within: Collection[str] | None = None) -> dict[str, files.KnownFile]:
        """Indexed files by path: those of some paths, those below them, and maybe others; None: all."""
        return await self.database.read(files.known, within)

    async def find(self, path: str) -> files.KnownFile | None:
        """One indexed file."""
        return await self.database.read(files.find, path)

    async def restamp(self, found: Sequence[FoundFile]) -> None:
        """Remember the new stamps of files whose content is the same."""

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
        """Make the index hold exactly these chunks for a file, in one transaction."""
        [replaced] = await self.replace_all([files.FileChange(found, content_hash, cut)], vector_of, refused)
        return replaced

    async def replace_all(
        self,
        changes: Sequence[files.FileChange],
        vector_of: Mapping[TextHash, bytes],
        refused: frozenset[TextHash],
        space: Space | None = None,
    ) -> list[files.ReplacedChunks]:
        """Make the index hold some files as they are now, all of them in one transaction.

        Args:
            changes: The files, with all their chunks.
            vector_of: Float32 vectors that are known already, by text hash.
            refused: Hashes of texts that are set aside.
            space: That the vectors and refusals belong to; None: that of the index.
        """

        async def change() -> list[files.ReplacedChunks]:
            usable, unusable = self._fitting(vector_of, refused, space)

            def replace_each(connection: apsw.Connection) -> list[files.ReplacedChunks]:
                return [files.replace(connection, one, usable, unusable) for one in changes]

            done = await self.database.write_more(_size(changes, usable), replace_each)
            self.changed.notify()
            await self._follow_all(done)
            return done

        return await self._carried_through(change)

    def _fitting(
        self, vector_of: Mapping[TextHash, bytes], refused: frozenset[TextHash], space: Space | None
    ) -> tuple[Mapping[TextHash, bytes], frozenset[TextHash]]:
        """The vectors and refusals that have a meaning here."""
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
        """Make the index hold some transcripts as they are now, all of them in one transaction.

        Args:
            changes: What is new of them.
            vector_of: Float32 vectors that are known already, by text hash.
            refused: Hashes of texts that are set aside.
            space: That the vectors and refusals belong to; None: that of the index.

        Returns:
            For each what was done, or None: the index does not hold what the change goes on from, any more. Nothing
            of that one was changed; it is to be read again.
        """

        async def change() -> list[files.ReplacedChunks | None]:
            usable, unusable = self._fitting(vector_of, refused, space)

            def replace_each(connection: apsw.Connection) -> list[files.ReplacedChunks | None]:
                return [files.replace_session(connection, one, usable, unusable) for one in changes]

            done = await self.database.write_more(_size(changes, usable), replace_each)
            self.changed.notify()
            await self._follow_all([replaced for replaced in done if replaced is not None])
            return done

        return await self._carried_through(change)

    async def stored_sessions(self, paths: Sequence[str]) -> dict[str, sessions.StoredSession]:
        """What is kept of transcripts beside their turns, by path, of those that are indexed.

        Raises:
            StoreDamaged: turns are missing.
        """

        def find_all(connection: apsw.Connection) -> dict[str, sessions.StoredSession]:
            found = {path: sessions.find(connection, path) for path in paths}
            return {path: stored for path, stored in found.items() if stored is not None}

        return await self.database.read(find_all)

    async def turns(self, path: str, first_seq: int = 0) -> list[Turn]:
        """The turns of a transcript from one on, in order."""
        return await self.database.read(sessions.turns, path, first_seq)

    async def turns_at(self, path: str, start_line: int, end_line: int) -> list[Turn]:
        """The turns of a transcript that stand on some of these lines of it, in order."""
        return await self.database.read(sessions.turns_at, path, start_line, end_line)

    async def session_counts(self) -> tuple[int, int]:
        """How many transcripts it holds, and how many turns in all of them."""
        return await self.database.read(sessions.counts)

    async def stretch(self, path: str, start_line: int, lines: int, most_chars: int) -> sessions.TurnSpan:
        """The turns of a transcript that begin on some lines of it, and where the next one does."""
        return await self.database.read(sessions.stretch, path, start_line, lines, most_chars)

    async def last_turn_line(self, path: str) -> int:
        """The last line of a transcript on which something is said; 0: there is none."""
        return await self.database.read(sessions.last_line, path)

    async def tallies(self) -> dict[str, int]:
        """What was counted while files were read, of all of them together, by name."""
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
        """Take files out, in one transaction."""

        async def change() -> None:
            removed = await self.database.write(files.remove, paths)
            self.changed.notify()
            await self.vectors.follow(removed, ())
            await self.postings.follow(removed, came=False)

        await self._carried_through(change)

    async def tidy_keywords(self, *, begin: bool) -> bool:
        """Do a part of putting the keyword index in order; whether there is more to do.

        A search looks into every part that the index was written in. A step takes some ten milliseconds of the writer.

        Args:
            begin: With all that has been written until now; else go on with what was begun.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """
        return await self.database.write(keywords.merge, begin=begin)

    async def waiting(
        self, limit: int, passed_over: frozenset[TextHash] = frozenset()
    ) -> list[chunks.WaitingChunk]:
        """Chunks that wait for a vector, the most wanted first; none where vectors have no place."""
        if self.vectors.held is None:
            return []
        return await self.database.read(chunks.waiting, limit, passed_over, with_parts=self.vectors.has_parts)

    async def waiting_hashes(self) -> list[TextHash]:
        """The hash of every text that waits for a vector, each once; none where vectors have no place."""
        if self.vectors.held is None:
            return []
        return await self.database.read(chunks.waiting_hashes, with_parts=self.vectors.has_parts)

    async def add_vectors(
        self, rows: Sequence[tuple[ChunkId, TextHash, bytes]], space: Space | None = None
    ) -> int:
        """Store vectors of chunks, and of parts, that still are what was embedded; how many were.

        Args:
            rows: Chunks with their vectors.
            space: That the vectors belong to: none is stored beside those of another one. None: that of the index.
        """

        async def change() -> int:
            if self.vectors.held is None or space not in {None, self.vectors.space}:
                return 0
            size = sum(len(vector) for _, _, vector in rows)
            stored, parts_stored = await self.database.write_more(size, vectors.add, rows)
            await self.vectors.follow((), stored)
            return len(stored) + parts_stored

        return await self._carried_through(change)

    async def set_aside(self, text_hash: TextHash, space: Space | None = None) -> None:
        """Mark the chunks of a text that its provider will never embed.

        Args:
            text_hash: Of the text.
            space: Of the provider; one that is not the index's has nothing to say. None: that of the index.
        """
        async with self._changing:
            if space in {None, self.vectors.space}:
                await self.database.write(chunks.set_aside, text_hash)

    async def hashes(self) -> list[TextHash]:
        """The hash of every text that is embedded, of chunks and of their parts."""

        def hashes(connection: apsw.Connection) -> list[TextHash]:
            return list({*chunks.hashes(connection), *chunk_parts.hashes(connection, embedded=False)})

        return await self.database.read(hashes)

    async def embedded(self) -> list[TextHash]:
        """The hash of every text that has a vector, each once."""

        def embedded(connection: apsw.Connection) -> list[TextHash]:
            return list({*vectors.hashes(connection), *chunk_parts.hashes(connection, embedded=True)})

        return await self.database.read(embedded)

    async def vectors_of(self, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
        """The float32 vectors of texts, where there are any."""

        def of_texts(connection: apsw.Connection) -> dict[TextHash, bytes]:
            found = vectors.of_texts(connection, hashes)
            return found | chunk_parts.of_texts(connection, [one for one in hashes if one not in found])

        return await self.database.read(of_texts)

    async def any_waits(self) -> bool:
        """Whether any chunk waits for a vector, be there a place for it or not."""
        return await self.database.read(chunks.any_waits)

    async def counts(self) -> chunks.Counts:
        """How much the index holds."""
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
        """Wait for the end of the change that is under way, if one is: content and vectors are of one state then.

        Args:
            most_s: How long, at most: on a slow disk a change takes its time, and others may wait before.

        Returns:
            Whether none is under way any more.
        """
        return await at_rest(self._changing, most_s)

    @property
    def space(self) -> Space | None:
        """The embedding space that its vectors belong to; None: it has no place for any."""
        return self.vectors.space

    @property
    def has_parts(self) -> bool:
        """Whether parts of chunks have vectors, too, or are to have them."""
        return self.vectors.has_parts

    @property
    def has_vectors(self) -> bool:
        """Whether there is any vector to compare with."""
        return self.vectors.held is not None and len(self.vectors.held) > 0

    @property
    def state(self) -> int | None:
        """See ChangeLock.state."""
        return self._changing.state

    async def read(self, use: Callable[["Reader"], T], state: int | None = None) -> T:
        """Run use(reader) on a thread, over one state of the index.

        Args:
            use: What a search reads.
            state: Of the index when what it looks for was found: where it is the same still, less is read.
        """

        def look(connection: apsw.Connection) -> tuple[T, int]:
            reader = Reader(connection, self, state)
            return use(reader), reader.keywords.chunks

        used, chunks = await self.database.read(look)
        self.postings.was_searched(chunks)
        self.vectors.was_searched()
        return used

    # --- a rebuild

    async def start_ids_at(self, first: int) -> None:
        """Give chunk ids from here on."""

        def start(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'chunks'")
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('chunks', ?)", (first - 1,))

        await self.database.write(start)

    async def swap_in(self, other: "Index", *, damage: str | None = None) -> None:
        """Take over the content of an index that was built beside this one, and has been handed over.

        Args:
            other: Is closed by this.
            damage: What is wrong with the file of this index, which is then set aside; None: the pages of the other are
                copied into it. Where that meets damage, the file is set aside, too.

        Raises:
            StoreUnavailable: this index is as it was.
            StoreDamaged: what was built cannot be used.
        """
        built = await other.hand_over()
        # A vector that is about to be added belongs to what was here, or to what comes: never to both.
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
            with contextlib.suppress(StoreUnavailable):  # they are searched on disk
                await self.vectors.move_where_wanted()
        self._unwritten = self.begun_anew = None
        self.changed.notify()
        # Only now: until the vectors fit the content, searches find by keywords alone.
        with contextlib.suppress(StoreUnavailable):  # no room: the log is as good
            await self.database.checkpoint(wait=False)
            # Nothing here comes from it, and it may say what better rules have taken out.
            await self.database.drop_copies()

    async def _put_in_place(self, other: "Index", damage: str) -> None:
        is_in_place = False

        def put_in_place() -> None:
            nonlocal is_in_place
            recovery.set_aside(self.file, damage)
            other.file.rename(self.file)
            is_in_place = True

        try:
            await self.database.exchange(put_in_place)
        except StoreUnavailable:
            # That it cannot be opened just now does not undo it: who reads or writes next opens it.
            if not is_in_place:
                raise

    async def hand_over(self) -> Held | None:
        """Put everything into the file itself and close it; returns what is held of the vectors.

        Raises:
            StoreUnavailable, StoreDamaged: it cannot be used.
        """
        await self.database.check()
        await self.database.checkpoint(wait=True)
        await self.close()
        return self.vectors.held

    # --- on disk

    @property
    def store_bytes(self) -> int:
        """Size of the database on disk, its log included."""
        total = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                total += Path(f"{self.file}{suffix}").stat().st_size
        return total

    def damaged_files(self) -> list[Path]:
        """Damaged files of this index that are kept for inspection, the newest first."""
        return recovery.kept_damaged(self.file)


def _size(
    changes: Sequence[files.FileChange | sessions.SessionChange], vector_of: Mapping[TextHash, bytes]
) -> int:
    """About how many bytes some files are in an index, without what finds them."""
    chunks_of = [chunk for change in changes for chunk in change.chunks]
    texts = sum(len(chunk.text) + len(chunk.context) for chunk in chunks_of)
    return texts + sum(len(vector_of[chunk.hash]) for chunk in chunks_of if chunk.hash in vector_of)


def _kept(stored: meta.Fingerprint | None, wanted: meta.Fingerprint) -> meta.Fingerprint:
    """What an index says of itself from now on."""
    if wanted.provider is not None or stored is None:
        return wanted
    # No provider today: the vectors stay as they are, for the day it is back.
    return meta.with_vectors(wanted, stored)
