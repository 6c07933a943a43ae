"""Writes the outcome of requests into the cache and into the index, and bounds the cache."""

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import structlog

from memd.domain_types import ChunkId, TextHash
from memd.embedding.queue.agent_backlog import AgentBacklog, EmbedRequest, IndexToEmbed, rows
from memd.embedding.queue.passage_embedder import PartialResult
from memd.runtime.synchronization import ChangeNotifier
from memd.store.chunks import WaitingChunk
from memd.store.embedding_cache import KnownVectors

log = structlog.get_logger()


class CacheBound:
    """How many vectors the cache of all agents keeps.

    Never fewer than the indexes hold twice: what was paid for is there after an index was deleted, and after another model
    was used for a while and left again.
    """

    def __init__(self, configured: int = 0) -> None:
        """Count no index before `entries` is called.

        Args:
            configured: The largest number that any agent asks for.
        """
        self.configured = configured
        self._held: WeakKeyDictionary[KnownVectors, int] = WeakKeyDictionary()

    def entries(self, known: KnownVectors, held: int) -> int:
        """The number.

        Args:
            known: Of a queue.
            held: How many texts the indexes hold that the queue serves: chunks, and parts where these are embedded.
        """
        self._held[known] = held
        return max(self.configured, 2 * sum(self._held.values()))


class ResultWriter:
    """Writes the vectors of one space, and which texts are refused there."""

    def __init__(self, known: KnownVectors, progress: ChangeNotifier) -> None:
        """Write nothing before a method is called.

        Args:
            known: The cache of the space of the vectors.
            progress: Notified when the cache had a vector or a refusal of a waiting text.
        """
        self._known = known
        self._progress = progress

    async def from_cache(self, backlog: AgentBacklog, waiting: Sequence[WaitingChunk]) -> frozenset[TextHash]:
        """Write into the index what the cache knows of the texts of some chunks; which those are."""
        cached = await self._known.look_up([chunk.hash for chunk in waiting])
        for text_hash in cached.refused:
            await backlog.source.index.set_aside(text_hash, self._known.space)
        if cached.vectors:
            await self.store(backlog, rows(waiting, cached.vectors))
        if cached.vectors or cached.refused:
            self._progress.notify()
        return cached.refused.union(cached.vectors)

    async def from_published(self, backlog: AgentBacklog) -> None:
        """Write into the index what the agent has published of the texts that wait, before anything is embedded.

        Not into the cache, which is that of all agents: other members may write to a published memory.
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
        """Have what came of a request in the cache and in the index; the rest waits again."""
        vectors: Mapping[TextHash, bytes] = outcome if isinstance(outcome, dict) else outcome.vectors
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
        """Have some vectors of a request in the index."""
        done = await self.store(backlog, rows(request.chunks, vectors))
        backlog.forget_failures(vectors)
        log.debug("embed.stored", agent=backlog.agent, chunks=done)

    async def store(self, backlog: AgentBacklog, wanted: Sequence[tuple[ChunkId, TextHash, bytes]]) -> int:
        """Have vectors in the index; how many chunks still wanted theirs."""
        # Nobody may count what waits between the commit and the moment when searches see the vectors.
        async with backlog.storing:
            return await backlog.source.index.add_vectors(wanted, self._known.space)

    async def _refuse(self, source: IndexToEmbed, text_hash: TextHash, reason: str) -> None:
        # Other agents that have the text meet the refusal in the cache.
        log.warning("embed.text_set_aside", reason=reason, hash=text_hash.hex()[:12])
        await self._known.refuse(text_hash, reason)
        await source.index.set_aside(text_hash, self._known.space)
