"""Ranks chunks by keywords for the searches of one index, by postings in memory or by FTS5."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import apsw
import numpy as np
import structlog
from numpy.typing import NDArray

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

FEWEST = 100  # chunks; with fewer, FTS5 answers within half a millisecond
MOST_AT_ONCE = 5000  # chunks whose postings are built at once, in half a second of the processor at most
PAUSE_S = (
    1.0  # from the first search of more until postings are built: a program that starts memd asks at once
)
MOST_DEAD = 0.25  # the share of deleted chunks above which postings are rebuilt
REFUSED_S = 60.0  # the delay before postings are built again after a failure
_FAILURES = (TransientError, StoreDamaged, MemoryError)  # on these, FTS5 answers instead


class KeywordReader:
    """Ranks chunks by keywords within one transaction."""

    def __init__(self, connection: apsw.Connection, held: Postings | None) -> None:
        """Rank by postings or, without them, by FTS5.

        Args:
            connection: A reader's.
            held: Postings of the same snapshot or of the one before; None: there are none.
        """
        self._connection = connection
        self._held = held
        self._rows: dict[SearchFilter, postings.Rows] = {}
        self.chunks = meta.total(connection, "chunks")

    @cached_property
    def _terms(self) -> TermReader:
        return TermReader(self._connection)

    def search(
        self, match: str, limit: int, kinds: Collection[Kind], wanted: Sequence[SearchFilter]
    ) -> list[tuple[ChunkId, keywords.Match]]:
        """Return the best matches of each filter, best first; see keywords.search."""
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
            held, phrases, self._terms, lambda one: keywords.occurrences(connection, one)
        )
        among = [None if one.is_empty else self._let_through(held, one, kinds) for one in wanted]
        best = held.best(found, limit, kinds, postings.average_length(connection), among)
        shares = keywords.shares(frozenset(best.held), best.frequencies, self.chunks)
        return [
            (chunk_id, keywords.Match(score, which, shares[which]))
            for chunk_id, score, which in zip(best.ids, best.scores, best.held, strict=True)
        ]

    def allowed(self, wanted: Sequence[SearchFilter], kinds: Collection[Kind]) -> list[Ids | None]:
        """Return for each filter the ascending ids of the chunks that it lets through; None: all.

        Args:
            wanted: The filters.
            kinds: The visible kinds of files; the ids may include chunks of other kinds.
        """
        held = self._held
        if held is None:
            return [None if one.is_empty else labels.allowed(self._connection, one, kinds) for one in wanted]
        return [None if one.is_empty else held.ids[self._let_through(held, one, kinds)] for one in wanted]

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> dict[str, Sequence[ChunkId]]:
        """Return the words that occur in any chunk, each with the ids of the first chunks that hold it.

        Args:
            words: Words normalised by fts_text; inflections of a word count as the same word.
            kinds: The kinds of files whose chunks count.
            most: The most chunks per word.
        """
        connection, held = self._connection, self._held
        if held is None:
            found = {word: keywords.holders(connection, word, kinds, most) for word in words}
            return {word: ids for word, ids in found.items() if ids}
        by_number = held.holders(self._terms.keys_of_words(words), kinds, most)
        return {words[number]: ids for number, ids in by_number.items()}

    def holding(self, terms: Sequence[str], chunk_ids: Ids) -> NDArray[np.bool_]:
        """Return whether each term is held by each chunk; see keywords.holding."""
        connection, held = self._connection, self._held
        if held is None:
            return keywords.holding(connection, terms, chunk_ids)
        return held.holding(self._terms.keys_of(terms), chunk_ids)

    def holders_of(self, terms: Sequence[str], kinds: Collection[Kind]) -> list[Ids]:
        """Return for each term the chunks that hold it; see keywords.holders_of."""
        connection, held = self._connection, self._held
        if held is None:
            return keywords.holders_of(connection, terms, kinds)
        return held.holders_of(self._terms.keys_of(terms), kinds)

    def prepare(self, match: str, terms: Sequence[str] = ()) -> None:
        """Do nothing: what is searched for is at hand."""

    def _let_through(self, held: Postings, one: SearchFilter, kinds: Collection[Kind]) -> postings.Rows:
        if one not in self._rows:
            self._rows[one] = held.let_through(one, *labels.files(self._connection, one, kinds))
        return self._rows[one]


class SearchKeywords:
    """The postings of one index. They are changed only while the index holds the change lock.

    They are built in the background once a search has found many chunks, and then follow each change. Until then, or if
    memory is short, FTS5 gives the same results, ten to thirty times slower.
    """

    def __init__(self, database: Database, changing: asyncio.Lock, vectors: SearchVectors) -> None:
        """Start without postings.

        Args:
            database: The database of the index.
            changing: The lock that is held during each change of the index.
            vectors: The vectors of the index: if they are kept on disk, memory is short, and postings are not built.
        """
        self._database = database
        self._changing = changing
        self._vectors = vectors
        self._postings: Postings | None = None
        self.asked_at: float | None = None  # time.monotonic() of the last search
        self.pause_s = PAUSE_S
        self._making: asyncio.Task[None] | None = None
        # While postings are built: changes of chunks that may have been read already.
        self._gone: set[ChunkId] = set()
        self._dated: dict[ChunkId, Seconds] = {}

    @property
    def resident_bytes(self) -> int:
        """The memory of the postings, in bytes."""
        return 0 if self._postings is None else self._postings.resident_bytes

    @property
    def is_ready(self) -> bool:
        """Whether there are postings."""
        return self._postings is not None

    @property
    def is_being_made(self) -> bool:
        """Whether postings are being built."""
        return self._making is not None

    def asked(self) -> Postings | None:
        """Record a search, and return the postings; None: there are none."""
        self.asked_at = time.monotonic()
        return self._postings

    def was_searched(self, chunks: int) -> None:
        """Build postings in the background if there are many chunks."""
        if self._postings is None and chunks >= FEWEST:
            self._begin(self.pause_s if chunks > MOST_AT_ONCE else 0.0)

    # --- changes, made while the lock is held

    async def follow(
        self, gone: Collection[ChunkId], *, came: bool, dated: Mapping[ChunkId, Seconds] | None = None
    ) -> None:
        """Apply a change of the file to the postings.

        Args:
            gone: The ids of deleted chunks.
            came: Whether chunks were added.
            dated: The new times of chunks whose times changed.
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
        """Drop the postings; FTS5 answers until a search has them built again."""
        self._postings = None
        self._forget_changes()
        if self._making is not None:
            self._making.cancel()
            self._making = None

    async def close(self) -> None:
        """Stop building postings."""
        making = self._making
        self.forget()
        if making is not None:
            await asyncio.wait([making])

    # --- in the background

    def _begin(self, pause_s: float = 0.0) -> None:
        if self._making is None and self._vectors.is_to_be_resident:
            self._forget_changes()
            self._making = asyncio.create_task(self._make(pause_s))

    async def _make(self, pause_s: float) -> None:
        me = asyncio.current_task()
        try:
            await asyncio.sleep(pause_s)
            made = await self._made_of_all()
            async with self._changing:
                # Applies deletions made while chunks were read, and adds the chunks written since.
                made = await self._with_new(made.without(self._gone).dated(self._dated))
                if self._making is me and self._vectors.is_to_be_resident:
                    self._postings = made
            # Otherwise the allocator keeps the memory used for building, 140 MB for 100,000 chunks.
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
        """Return the postings with all chunks added that are newer, a batch at a time.

        Args:
            held: The postings to add to.
            reader: Reads all chunks of an index, whose segments are merged later; None: reads a few, which are merged at once.
        """

        def look(connection: apsw.Connection, held: Postings) -> Postings:
            chunks = indexed_texts(connection, held.last_id, postings.BATCH)
            return held.with_chunks(chunks, reader or TermReader(connection), merges=reader is None)

        while (more := await self._database.read(look, held)) is not held:
            held = more
        return held


class IndexMemory:
    """The memory that searches of one index use, for vectors and postings, which are released and restored together."""

    def __init__(self, vectors: SearchVectors, keywords: SearchKeywords) -> None:
        """Combine the vectors and the postings of one index."""
        self._vectors = vectors
        self._keywords = keywords
        self._postings_bytes = 0  # the size of the postings when they were released

    @property
    def asked_at(self) -> float | None:
        """time.monotonic() of the last search that used any of it."""
        return max(filter(None, (self._vectors.asked_at, self._keywords.asked_at)), default=None)

    @property
    def resident_bytes(self) -> int:
        """The memory in use, in bytes."""
        return self._vectors.resident_bytes + self._keywords.resident_bytes

    @property
    def whole_bytes(self) -> int:
        """The memory in use if nothing were released, in bytes."""
        return self._vectors.whole_bytes + (self._keywords.resident_bytes or self._postings_bytes)

    @property
    def is_shelved(self) -> bool:
        """Whether the memory is released."""
        return self._vectors.is_shelved or not self._vectors.is_to_be_resident

    async def shelve(self) -> None:
        """Release the memory; searches give equal results. See SearchVectors.shelve."""
        await self._vectors.shelve()
        self._postings_bytes = self._keywords.resident_bytes or self._postings_bytes
        self._keywords.forget()

    async def unshelve(self) -> None:
        """Restore the vectors now, and the postings with the next search.

        Raises:
            StoreUnavailable, StoreDamaged: the vectors stay on disk.
        """
        await self._vectors.unshelve()

    async def release_pages(self) -> None:
        """Release cached pages of the file; see Database.release_pages."""
        await self._vectors.release_pages()
