"""What came of texts, into the cache and into the index that they are of."""

from collections.abc import Mapping, Sequence

import structlog

from memd.embedding.queue.agent_backlog import AgentBacklog, EmbedRequest, IndexToEmbed, rows
from memd.embedding.queue.cache import SpaceCache
from memd.embedding.queue.passage_embedder import PartialResult
from memd.model import ChunkId, TextHash
from memd.runtime.changed import ChangeNotifier
from memd.store.chunks import WaitingChunk
from memd.store.embeddings import Space

log = structlog.get_logger()


class ResultWriter:
    """Keeps the vectors of one space, and what is refused there."""

    def __init__(self, space: Space, cached: SpaceCache, moves: ChangeNotifier) -> None:
        """Nothing came yet.

        Args:
            space: That the vectors are of.
            cached: Where they are kept by text.
            moves: Told when something was settled out of the cache.
        """
        self._space = space
        self._cached = cached
        self._moves = moves

    async def from_cache(self, served: AgentBacklog, waiting: Sequence[WaitingChunk]) -> frozenset[TextHash]:
        """Settle what is known of the texts of some chunks; which those are."""
        hashes = [chunk.hash for chunk in waiting]
        refused = await self._cached.refused(hashes)
        for text_hash in refused:
            await served.customer.index.set_aside(text_hash, self._space)
        found = await self._cached.get(hashes)
        if found:
            await self.store(served, rows(waiting, found))
        if found or refused:
            self._moves.notify()
        return refused.union(found)

    async def settle(
        self, served: AgentBacklog, request: EmbedRequest, outcome: dict[TextHash, bytes] | PartialResult
    ) -> None:
        """Have what came of a request in the cache and in the index; the rest waits again."""
        vectors: Mapping[TextHash, bytes] = outcome if isinstance(outcome, dict) else outcome.vectors
        if vectors and request.customer.use_cache:
            await self._cached.put(vectors)
        if vectors:
            await self.keep(served, request, vectors)
        if isinstance(outcome, PartialResult):
            for text_hash, reason in outcome.refused.items():
                await self._refuse(request.customer, text_hash, reason)
            served.put_back(request, {*vectors, *outcome.refused})

    async def keep(
        self, served: AgentBacklog, request: EmbedRequest, vectors: Mapping[TextHash, bytes]
    ) -> None:
        """Have some vectors of a request in the index."""
        done = await self.store(served, rows(request.chunks, vectors))
        served.settled(vectors)
        log.debug("embed.stored", agent=served.agent, chunks=done)

    async def store(self, served: AgentBacklog, wanted: Sequence[tuple[ChunkId, TextHash, bytes]]) -> int:
        """Have vectors in the index; how many chunks still wanted theirs."""
        # Nobody may count what waits between the commit and the moment when searches see the vectors.
        async with served.storing:
            return await served.customer.index.add_vectors(wanted, self._space)

    async def _refuse(self, customer: IndexToEmbed, text_hash: TextHash, reason: str) -> None:
        # Other agents that have the text meet the refusal in the cache.
        log.warning("embed.text_set_aside", reason=reason, hash=text_hash.hex()[:12])
        await self._cached.refuse(text_hash, reason)
        await customer.index.set_aside(text_hash, self._space)
