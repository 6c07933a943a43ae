"""Ranks chunks by keywords for the searches of one index: by postings in memory where they are there, else by FTS5."""

import asyncio
import time
from collections.abc import Collection

import apsw
import msgspec
import structlog

from memd.domain_types import ChunkId, Kind
from memd.errors import TransientError
from memd.store import keywords, meta, postings
from memd.store.chunks import indexed_texts
from memd.store.database import Database
from memd.store.errors import StoreDamaged
from memd.store.postings import Postings, TermReader
from memd.store.search_vectors import SearchVectors

log = structlog.get_logger()

FEWEST = 2_000  # chunks: of fewer FTS5 answers in a millisecond or two
MOST_DEAD = 0.25  # of the chunks in the postings: with more these are made anew
REFUSED_S = 60.0  # for which postings that could not be made are not tried again
_FAILURES = (TransientError, StoreDamaged, MemoryError)  # after which FTS5 answers


class _Ranked(msgspec.Struct, frozen=True):
    """What a search found, and how many chunks there are."""

    matches: list[tuple[ChunkId, keywords.Match]]
    chunks: int


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
        self._gone: set[ChunkId] = set()  # while postings are made

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

    async def search(
        self, match: str, limit: int, kinds: Collection[Kind]
    ) -> list[tuple[ChunkId, keywords.Match]]:
        """See keywords.search.

        Raises:
            StoreDamaged: the keyword index is broken.
            StoreUnavailable, StoreClosed.
        """
        self.asked_at = time.monotonic()
        held = self._postings

        def look(connection: apsw.Connection) -> _Ranked:
            chunks = meta.total(connection, "chunks")
            phrases = keywords.phrases_of(match)
            if held is None or phrases is None:
                return _Ranked(keywords.search(connection, match, limit, kinds), chunks)
            found = postings.occurrences(
                held, phrases, TermReader(connection), lambda one: keywords.occurrences(connection, one)
            )
            best = held.best(found, limit, kinds, postings.average_length(connection))
            matches = [
                (chunk_id, keywords.Match(score, which))
                for chunk_id, score, which in zip(best.ids, best.scores, best.held, strict=True)
            ]
            return _Ranked(keywords.with_shares(matches, best.frequencies, chunks), chunks)

        ranked = await self._database.read(look)
        if self._postings is None and ranked.chunks >= FEWEST:
            self._begin()
        return ranked.matches

    # --- changes, made while the lock is held

    async def follow(self, gone: Collection[ChunkId], *, came: bool) -> None:
        """Have the postings follow a change of the file.

        Args:
            gone: Chunks that it has taken out.
            came: Whether it has put any in.
        """
        self._gone.update(gone if self._making is not None else ())
        held = self._postings
        if held is None:
            return
        if not self._vectors.is_to_be_resident:
            self.forget()
            return
        held = held.without(gone)
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
        self._gone.clear()
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
            self._gone.clear()
            self._making = asyncio.create_task(self._make())

    async def _make(self) -> None:
        me = asyncio.current_task()
        reader = TermReader(apsw.Connection(":memory:"))
        try:
            made = await self._with_new(Postings.empty(), reader)
            made = await self._database.read(lambda _: made.put_together())
            async with self._changing:
                # What was taken out before it was read is not in it, and what came since is read now.
                made = await self._with_new(made.without(self._gone))
                if self._making is me and self._vectors.is_to_be_resident:
                    self._postings = made
        except _FAILURES as trouble:
            log.info("store.no_postings", file=str(self._database.file), reason=str(trouble))
            await asyncio.sleep(REFUSED_S)
        finally:
            if self._making is me:
                self._making = None
                self._gone.clear()

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
