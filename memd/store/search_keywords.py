"""Ranks chunks by keywords for the searches of one index: by postings in memory where they are there, else by FTS5."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence

import apsw
import structlog

from memd.domain_types import ChunkId, Kind, SearchFilter
from memd.errors import TransientError
from memd.runtime.malloc import give_back_beside
from memd.store import keywords, labels, meta, postings
from memd.store.chunks import indexed_texts
from memd.store.database import Database
from memd.store.errors import StoreDamaged
from memd.store.files import Seconds
from memd.store.postings import Postings, TermReader
from memd.store.search_vectors import SearchVectors
from memd.store.vector_matrix import Ids

log = structlog.get_logger()

FEWEST = 100  # chunks: of fewer FTS5 answers in half a millisecond
MOST_DEAD = 0.25  # of the chunks in the postings: with more these are made anew
REFUSED_S = 60.0  # for which postings that could not be made are not tried again
_FAILURES = (TransientError, StoreDamaged, MemoryError)  # after which FTS5 answers


class KeywordReader:
    """Ranks chunks by keywords within one transaction."""

    def __init__(self, connection: apsw.Connection, held: Postings | None) -> None:
        """Rank by postings, or without them by FTS5.

        Args:
            connection: Of a reader.
            held: Postings of this moment, or of the one before; None: there are none.
        """
        self._connection = connection
        self._held = held
        self._rows: dict[SearchFilter, postings.Rows] = {}
        self.chunks = meta.total(connection, "chunks")

    def search(
        self, match: str, limit: int, kinds: Collection[Kind], wanted: Sequence[SearchFilter]
    ) -> list[tuple[ChunkId, keywords.Match]]:
        """See keywords.search: the best of what each filter lets through, best first."""
        connection, held = self._connection, self._held
        phrases = keywords.phrases_of(match)
        if held is None or phrases is None:
            some = {
                chunk_id: one
                for each in wanted
                for chunk_id, one in keywords.search(connection, match, limit, kinds, each)
            }
            return sorted(some.items(), key=lambda one: (-one[1].r, one[0]))
        found = postings.occurrences(
            held, phrases, TermReader(connection), lambda one: keywords.occurrences(connection, one)
        )
        among = [None if one.is_empty else self._let_through(held, one, kinds) for one in wanted]
        best = held.best(found, limit, kinds, postings.average_length(connection), among)
        shares = keywords.shares(frozenset(best.held), best.frequencies, self.chunks)
        return [
            (chunk_id, keywords.Match(score, which, shares[which]))
            for chunk_id, score, which in zip(best.ids, best.scores, best.held, strict=True)
        ]

    def allowed(self, wanted: Sequence[SearchFilter], kinds: Collection[Kind]) -> list[Ids | None]:
        """Of each filter the ids of the chunks that it lets through, ascending; None: all.

        Args:
            wanted: The filters.
            kinds: Of files that may be seen at all; ids of others may be among those that are given.
        """
        held = self._held
        if held is None:
            return [None if one.is_empty else labels.allowed(self._connection, one, kinds) for one in wanted]
        return [None if one.is_empty else held.ids[self._let_through(held, one, kinds)] for one in wanted]

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> dict[str, Sequence[ChunkId]]:
        """The words that any chunk holds, each with the first of these chunks.

        Args:
            words: As fts_text has them; in other forms they are the same.
            kinds: Of files; no other chunks count.
            most: How many chunks of a word at most.
        """
        connection, held = self._connection, self._held
        found = (
            [keywords.holders(connection, word, kinds, most) for word in words]
            if held is None
            else held.holders(TermReader(connection).keys_of_words(words), kinds, most)
        )
        return {word: ids for word, ids in zip(words, found, strict=True) if ids}

    def _let_through(self, held: Postings, one: SearchFilter, kinds: Collection[Kind]) -> postings.Rows:
        if one not in self._rows:
            self._rows[one] = held.let_through(one, *labels.files(self._connection, one, kinds))
        return self._rows[one]


class SearchKeywords:
    """The keywords of one index. Every change of the postings is made while the index holds the lock.

    They are made of the chunks in the background once a search has found that there are many, and follow each change
    from then on. Until then, and where there is no memory for them, FTS5 answers the same, ten to thirty times slower.
    """

    def __init__(self, database: Database, changing: asyncio.Lock, vectors: SearchVectors) -> None:
        """There are no postings yet.

        Args:
            database: Of the index.
            changing: Held during each change of the index.
            vectors: Of the index: where these are to be on disk, there is no memory for postings either.
        """
        self._database = database
        self._changing = changing
        self._vectors = vectors
        self._postings: Postings | None = None
        self.asked_at: float | None = None  # of the monotonic clock: when a search last came
        self._making: asyncio.Task[None] | None = None
        # While postings are made: what has changed of what may be in them already.
        self._gone: set[ChunkId] = set()
        self._dated: dict[ChunkId, Seconds] = {}

    @property
    def resident_bytes(self) -> int:
        """Memory that the postings take."""
        return 0 if self._postings is None else self._postings.resident_bytes

    @property
    def is_ready(self) -> bool:
        """Whether postings answer."""
        return self._postings is not None

    @property
    def is_being_made(self) -> bool:
        """Whether postings are made in the background."""
        return self._making is not None

    def asked(self) -> Postings | None:
        """The postings for a search that comes; None: there are none."""
        self.asked_at = time.monotonic()
        return self._postings

    def was_searched(self, chunks: int) -> None:
        """Have postings made in the background, if a search has found that there are many chunks."""
        if self._postings is None and chunks >= FEWEST:
            self._begin()

    # --- changes, made while the lock is held

    async def follow(
        self, gone: Collection[ChunkId], *, came: bool, dated: Mapping[ChunkId, Seconds] | None = None
    ) -> None:
        """Have the postings follow a change of the file.

        Args:
            gone: Chunks that it has taken out.
            came: Whether it has put any in.
            dated: The times of chunks that are of another one now.
        """
        if self._making is not None:
            self._gone.update(gone)
            self._dated.update(dated or {})
        held = self._postings
        if held is None:
            return
        if not self._vectors.is_to_be_resident:
            self.forget()
            return
        held = held.without(gone).dated(dated or {})
        try:
            self._postings = await self._with_new(held) if came else held
        except _FAILURES:
            self.forget()
            return
        if held.dead > MOST_DEAD * len(held):
            self._begin()

    def forget(self) -> None:
        """Do without postings: FTS5 answers, until a search has them made anew."""
        self._postings = None
        self._forget_changes()
        if self._making is not None:
            self._making.cancel()
            self._making = None

    async def close(self) -> None:
        """Stop making postings."""
        making = self._making
        self.forget()
        if making is not None:
            await asyncio.wait([making])

    # --- in the background

    def _begin(self) -> None:
        if self._making is None and self._vectors.is_to_be_resident:
            self._forget_changes()
            self._making = asyncio.create_task(self._make())

    async def _make(self) -> None:
        me = asyncio.current_task()
        try:
            made = await self._made_of_all()
            async with self._changing:
                # What was taken out before it was read is not in it, and what came since is read now.
                made = await self._with_new(made.without(self._gone).dated(self._dated))
                if self._making is me and self._vectors.is_to_be_resident:
                    self._postings = made
            # What they were made of and with, 140 MB for 100,000 chunks, would stay with the allocator.
            await give_back_beside()
        except _FAILURES as trouble:
            log.info("store.no_postings", file=str(self._database.file), reason=str(trouble))
            await asyncio.sleep(REFUSED_S)
        finally:
            if self._making is me:
                self._making = None
                self._forget_changes()

    async def _made_of_all(self) -> Postings:
        reader = TermReader(apsw.Connection(":memory:"))
        parts = await self._with_new(Postings.empty(), reader)
        return await self._database.read(lambda _: parts.put_together())

    def _forget_changes(self) -> None:
        self._gone.clear()
        self._dated.clear()

    async def _with_new(self, held: Postings, reader: TermReader | None = None) -> Postings:
        """With the chunks that are newer than all in it, read a few at a time.

        Args:
            held: What is added to.
            reader: Of all chunks of an index, whose segments are put together later; None: of a few, which are at once.
        """

        def look(connection: apsw.Connection, held: Postings) -> Postings:
            chunks = indexed_texts(connection, held.last_id, postings.BATCH)
            return held.with_chunks(chunks, reader or TermReader(connection), merges=reader is None)

        while (more := await self._database.read(look, held)) is not held:
            held = more
        return held


class IndexMemory:
    """What searches of one index hold in memory, its vectors and postings: they go and come back together."""

    def __init__(self, vectors: SearchVectors, keywords: SearchKeywords) -> None:
        """Both of the same index."""
        self._vectors = vectors
        self._keywords = keywords
        self._postings_bytes = 0  # when they went

    @property
    def asked_at(self) -> float | None:
        """When a search last wanted any of it, of the monotonic clock."""
        return max(filter(None, (self._vectors.asked_at, self._keywords.asked_at)), default=None)

    @property
    def resident_bytes(self) -> int:
        """Memory that it takes."""
        return self._vectors.resident_bytes + self._keywords.resident_bytes

    @property
    def whole_bytes(self) -> int:
        """Memory that it takes, or would take if all of it were there."""
        return self._vectors.whole_bytes + (self._keywords.resident_bytes or self._postings_bytes)

    @property
    def is_shelved(self) -> bool:
        """Whether searches do without it."""
        return self._vectors.is_shelved or not self._vectors.is_to_be_resident

    async def shelve(self) -> None:
        """Give its memory up, with the same answers: see SearchVectors.shelve."""
        await self._vectors.shelve()
        self._postings_bytes = self._keywords.resident_bytes or self._postings_bytes
        self._keywords.forget()

    async def unshelve(self) -> None:
        """Have it in memory again: the vectors now, postings when a search comes.

        Raises:
            StoreUnavailable, StoreDamaged: it stays as it is until it is wanted again.
        """
        await self._vectors.unshelve()

    async def release_pages(self) -> None:
        """Give up what is kept of the file in memory; see Database.release_pages."""
        await self._vectors.release_pages()
