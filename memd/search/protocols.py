"""What a search needs: an index to read, a provider that embeds questions, and possibly a reranker."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, DegradedPart, Kind, SearchFilter
from memd.providers.provider import Calibration, Vector
from memd.store.chunk_parts import ClosestPart
from memd.store.chunks import ChunkPlace, StoredChunk
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.keywords import Match
from memd.store.postings import ChunkFacts
from memd.store.vector_matrix import Doubles, Floats, Ids, Rows

T = TypeVar("T")


class QueryEmbedder(Protocol):
    """Embeds questions into the vector space of an agent's index."""

    @property
    def provider_name(self) -> str:
        """The name of the provider that embeds new text."""
        ...

    @property
    def model_name(self) -> str:
        """The name of that provider's model."""
        ...

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """Embed a question within a bounded time.

        Args:
            text: The question.
            space: The vector space of the index.

        Returns:
            The vector and the calibration of the model, or the reason why there is none.
        """
        ...

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """Return why no provider can embed questions for a space; None: one can, or none is configured.

        Args:
            space: The vector space of the index; None: it has no vectors.
        """
        ...


class Reranker(Protocol):
    """Orders texts by how well they answer a question."""

    candidates: int  # how many candidates of a question it is given

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:
        """Order texts within a bounded time.

        Returns:
            The indexes of the texts, best first, or the reason why there is no order.
        """
        ...

    async def close(self) -> None:
        """Cancel running requests."""
        ...


class ChunkFinder(Protocol):
    """Looks up chunks by keywords; see store.search_keywords.KeywordReader."""

    def search(
        self, match: str, limit: int, kinds: Collection[Kind], wanted: Sequence[SearchFilter]
    ) -> list[tuple[ChunkId, Match]]:
        """Return the best matches of each filter, best first."""
        ...

    def allowed(self, wanted: Sequence[SearchFilter], kinds: Collection[Kind]) -> list[Ids | None]:
        """Return for each filter the ascending ids of the chunks that it lets through; None: all."""
        ...

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> Mapping[str, Sequence[ChunkId]]:
        """Return the words that occur in any chunk, each with the ids of the first chunks that hold it."""
        ...

    def holding(self, terms: Sequence[str], chunk_ids: Ids) -> NDArray[np.bool_]:
        """Return whether each term, a word or a pair of CJK characters, is held by each chunk; shape (terms, chunks)."""
        ...

    @property
    def chunks(self) -> int:
        """The number of chunks in the index."""
        ...

    def holders_of(self, terms: Sequence[str], kinds: Collection[Kind]) -> list[Ids]:
        """Return for each term, as `holding` takes it, the ascending ids of the chunks of files of some kinds that hold it."""
        ...

    def prepare(self, match: str, terms: Sequence[str] = ()) -> None:
        """Say what will be searched for, so that it may be read together with what is read before.

        Args:
            match: The expression of a search.
            terms: What `holding` or `holders_of` will be asked for.
        """
        ...


class ChunkReader(Protocol):
    """Reads one snapshot of an index; see store.index_reader.IndexReader."""

    @property
    def keywords(self) -> ChunkFinder:
        """The keyword index."""
        ...

    def isolating_failures(self) -> AbstractContextManager[None]:
        """Return a context in which a failure does not fail the whole search."""
        ...

    def nearest(
        self,
        known: ListedVector,
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        also: Collection[ChunkId],
        among: Sequence[Ids | None],
    ) -> NearVectors | None:
        """Return the nearest of the vectors on disk; None: they belong to another index by now."""
        ...

    def facts(self, chunk_ids: Ids) -> ChunkFacts:
        """Return the kinds and times of chunks."""
        ...

    def foreign(self, chunk_ids: Ids, question: Mapping[str, float]) -> Doubles:
        """Return for each chunk the part of its text, 0..1, in other scripts than the question."""
        ...

    def places(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, ChunkPlace]:
        """Return the positions of chunks, possibly of others too; deleted ones are left out."""
        ...

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
        """Return chunks with their text; deleted ones are left out."""
        ...

    def newest(self, limit: int, wanted: SearchFilter, kinds: Collection[Kind]) -> list[ChunkId]:
        """Return the ids of the newest chunks, approximately in order."""
        ...

    def closest_parts(self, chunk_ids: Sequence[ChunkId], query: Floats) -> dict[ChunkId, ClosestPart]:
        """Return for each chunk that has parts the one closest to the question."""
        ...


class SearchedVectors(Protocol):
    """The vectors of an index; see store.search_vectors.SearchVectors."""

    def current(self) -> tuple[Space, Rows | ListedVector] | None:
        """Return the current vectors in memory, or a description of those on disk; None: there are none."""
        ...


class SearchedIndex(Protocol):
    """What is searched: a local index, or a memory on a server."""

    @property
    def vectors(self) -> SearchedVectors:
        """The vectors of the index."""
        ...

    @property
    def space(self) -> Space | None:
        """The vector space; None: the index has none."""
        ...

    @property
    def has_parts(self) -> bool:
        """Whether parts of chunks have vectors too."""
        ...

    @property
    def has_vectors(self) -> bool:
        """Whether the index has any vector."""
        ...

    @property
    def state(self) -> int | None:
        """A value that differs whenever the index may have changed; None: unknown."""
        ...

    async def read(self, use: Callable[[ChunkReader], T], state: int | None = None) -> T:
        """Run `use` on a thread over one snapshot, and return its result."""
        ...

    async def any_waits(self) -> bool:
        """Return whether any chunk has no vector yet."""
        ...

    async def at_rest(self, most_s: float) -> bool:
        """Wait at most `most_s` seconds for a running change to end; return whether none is running."""
        ...
