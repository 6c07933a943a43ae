"""Writes the outcomes of requests into the cache and the index, and bounds the cache."""

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import structlog

from memd.domain_types import ChunkId, TextHash
from memd.embedding.passage_queue.agent_backlog import AgentBacklog, EmbedRequest, IndexToEmbed, rows
from memd.embedding.passage_queue.passage_embedder import PartialResult
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.chunks import WaitingChunk
from memd.store.embedding_cache import KnownVectors
from memd.store.int16_vectors import rounded

log = structlog.get_logger()


class CacheBound:
    """The number of vectors that the shared cache keeps.

    At least twice as many as all indexes hold: paid vectors outlast the deletion of an index, and the temporary use of another
    model.
    """

    def __init__(self, configured: int) -> None:
        """Start without indexes.

        Args:
            configured: The largest number that any agent configures.
        """
        self.configured = configured
        self._held: WeakKeyDictionary[KnownVectors, int] = WeakKeyDictionary()

    def entries(self, known: KnownVectors, held: int) -> int:
        """Return the number, after updating the count of one queue.

        Args:
            known: The cache of the queue's space.
            held: The number of texts in all indexes that the queue serves: chunks, and parts if these are embedded.
        """
        self._held[known] = held
        return max(self.configured, 2 * sum(self._held.values()))


class ResultWriter:
    """Writes the vectors and refusals of one space."""

    def __init__(self, known: KnownVectors, progress: ChangeNotifier) -> None:
        """Create the writer.

        Args:
            known: The cache of the space.
            progress: Notified when the cache held a vector or a refusal of a waiting text.
        """
        self._known = known
        self._progress = progress

    async def from_cache(self, backlog: AgentBacklog, waiting: Sequence[WaitingChunk]) -> frozenset[TextHash]:
        """Write cached vectors and refusals of waiting chunks into the index; return the hashes that were found."""
        cached = await self._known.look_up([chunk.hash for chunk in waiting])
        for text_hash in cached.refused:
            await backlog.source.index.mark_refused(text_hash, self._known.space)
        if cached.vectors:
            await self.store(backlog, rows(waiting, cached.vectors))
        if cached.vectors or cached.refused:
            self._progress.notify()
        return cached.refused.union(cached.vectors)

    async def from_published(self, backlog: AgentBacklog) -> None:
        """Write vectors that the agent has published into the index, before anything is embedded.

        They are not cached, since the cache is shared by all agents, and other members may write to a published memory.
        """
        published = backlog.source.published
        if published is None:
            return
        while (found := await published.next_found(backlog.source.index, self._known.space)) is not None:
            if found and await self.store(backlog, found):
                self._progress.notify()

    async def write_outcome(
        self, backlog: AgentBacklog, request: EmbedRequest, outcome: dict[TextHash, bytes] | PartialResult
    ) -> None:
        """Write the outcome of a request into the cache and the index; other texts wait again."""
        # Rounded as the cache returns them, so that an index built from the cache holds the same vectors.
        vectors = rounded(outcome if isinstance(outcome, dict) else outcome.vectors)
        if vectors and request.source.use_cache:
            await self._known.put(vectors)
        if vectors:
            await self.keep(backlog, request, vectors)
        if isinstance(outcome, PartialResult):
            for text_hash, reason in outcome.refused.items():
                await self._refuse(request.source, text_hash, reason)
            backlog.put_back(request, {*vectors, *outcome.refused})

    async def keep(
        self, backlog: AgentBacklog, request: EmbedRequest, vectors: Mapping[TextHash, bytes]
    ) -> None:
        """Write some vectors of a request into the index."""
        done = await self.store(backlog, rows(request.chunks, vectors))
        backlog.forget_failures(vectors)
        log.debug("embed.stored", agent=backlog.agent, chunks=done)

    async def store(self, backlog: AgentBacklog, wanted: Sequence[tuple[ChunkId, TextHash, bytes]]) -> int:
        """Write vectors into the index; return for how many chunks they were still needed."""
        # Prevents `wait_for` from counting between the commit and the moment when searches see the vectors.
        async with backlog.storing:
            return await backlog.source.index.add_vectors(wanted, self._known.space)

    async def _refuse(self, source: IndexToEmbed, text_hash: TextHash, reason: str) -> None:
        # Other agents that have the text find the refusal in the cache.
        log.warning("embed.text_set_aside", reason=reason, hash=text_hash.hex()[:12])
        await self._known.refuse(text_hash, reason)
        await source.index.mark_refused(text_hash, self._known.space)
