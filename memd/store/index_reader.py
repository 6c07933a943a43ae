"""Reads one snapshot of an index for a search."""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence

import apsw
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind, SearchFilter
from memd.errors import MemdError
from memd.store import chunk_parts, chunks, labels
from memd.store.database import Database
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.postings import ChunkFacts, Postings
from memd.store.search_keywords import KeywordReader
from memd.store.search_vectors import Floats, SearchVectors
from memd.store.vector_matrix import Ids
from memd.text.writing_systems import ScriptShares


class IndexReader:
    """Reads chunks in one read transaction."""

    def __init__(
        self,
        connection: apsw.Connection,
        database: Database,
        vectors: SearchVectors,
        keywords: KeywordReader,
        postings: Postings | None,
    ) -> None:
        """Create the reader of a snapshot.

        Args:
            connection: A reader's, in a transaction.
            database: Its database.
            vectors: The vectors of the index.
            keywords: Ranks chunks by keywords, with postings of this snapshot or of the one before.
            postings: Postings of this snapshot, which replace some queries; None: there are none.
        """
        self._connection = connection
        self._database = database
        self._vectors = vectors
        self._keywords = keywords
        self._postings = postings
        self._places: dict[ChunkId, chunks.ChunkPlace] = {}
        self._texts: dict[ChunkId, chunks.StoredChunk] = {}

    @contextlib.contextmanager
    def isolating_failures(self) -> Iterator[None]:
        """Run a part of a search whose failure does not end the transaction.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: instead of all errors of SQLite and of memory in the block.
        """
        try:
            with self._database.mapping_errors():
                yield
        except MemdError:
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN")
            raise

    @property
    def keywords(self) -> KeywordReader:
        """Ranks chunks by keywords, with postings of this snapshot or of the one before."""
        return self._keywords

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
        return self._vectors.nearest(self._connection, known, query, limit, kinds, also, among)

    def facts(self, chunk_ids: Ids) -> ChunkFacts:
        """Return the kinds and times of chunks."""
        if self._postings is not None:
            return self._postings.facts(chunk_ids)
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        there = (places.get(one) for one in wanted)
        return ChunkFacts.of([None if one is None else (one.kind, one.first_s, one.last_s) for one in there])

    def foreign(self, chunk_ids: Ids, question: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the share of each chunk's text in other scripts than the question; see ScriptShares.foreign_to."""
        if self._postings is not None:
            return self._postings.foreign(chunk_ids, question)
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        stored = [chunks.scripts_read(places[one].scripts) for one in wanted]
        return ScriptShares.of(stored).foreign_to(question)

    def places(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, chunks.ChunkPlace]:
        """Return the positions of chunks, possibly of others too; deleted ones are left out."""
        unread = [one for one in chunk_ids if one not in self._places]
        if unread:
            self._places |= {one.id: one for one in chunks.places(self._connection, unread)}
        return self._places

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, chunks.StoredChunk]:
        """Return chunks with their text; deleted ones are left out."""
        unread = [one for one in chunk_ids if one not in self._texts]
        if unread:
            self._texts |= chunks.texts(self._connection, unread)
        return {one: self._texts[one] for one in chunk_ids if one in self._texts}

    def newest(self, limit: int, wanted: SearchFilter, kinds: Collection[Kind]) -> list[ChunkId]:
        """See labels.newest."""
        return labels.newest(self._connection, limit, wanted, kinds)

    def closest_parts(
        self, chunk_ids: Sequence[ChunkId], query: Floats
    ) -> dict[ChunkId, chunk_parts.ClosestPart]:
        """See chunk_parts.closest."""
        return chunk_parts.closest(self._connection, chunk_ids, query)
