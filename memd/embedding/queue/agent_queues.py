"""The embedding queues within one agent's reach, and which of them serve it."""

from collections.abc import Collection

from memd.embedding.queue.agent_backlog import IndexToEmbed
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.embedding.registry import AgentProviders
from memd.store.embedding_cache import EmbeddingStore, KnownVectors, Space
from memd.store.index import Index


class AgentQueues:
    """Who embeds for an agent, by space."""

    def __init__(self, agent: str, spaces: AgentProviders | None, *, use_cache: bool) -> None:
        """Be served by no queue before `serve`.

        Args:
            agent: Its id.
            spaces: Who could; None: nobody ever does.
            use_cache: Whether vectors are taken from the cache, and kept there.
        """
        self.spaces = spaces
        self.rest = False  # nobody searches by vectors just now
        self._agent = agent
        self._use_cache = use_cache
        self._queues: set[EmbeddingQueue] = set()  # that serve the agent

    @property
    def embeds(self) -> bool:
        """Whether anything is to be embedded, be it known yet by whom or not."""
        return self.spaces is not None and self.spaces.embeds and not self.rest

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """What embeds in a space; None: nobody does just now."""
        return None if self.spaces is None or self.rest else self.spaces.queue(space)

    @property
    def queues(self) -> frozenset[EmbeddingQueue]:
        """Those that serve the agent: two, while an index is built for another model."""
        return frozenset(self._queues)

    @property
    def cache(self) -> EmbeddingStore | None:
        """Where vectors are kept by text; None: the agent has no cache."""
        return None if self.spaces is None else self.spaces.cache

    def known(self, space: Space | None) -> KnownVectors | None:
        """What is cached of a space."""
        cache = self.cache
        return None if cache is None or space is None else KnownVectors(cache, space)

    def serve(self, queue: EmbeddingQueue, index: Index) -> None:
        """Have a queue embed what waits in an index.

        Args:
            queue: One of those within reach.
            index: The agent's, or one that is built beside it.
        """
        queue.serve(IndexToEmbed(self._agent, index, self._use_cache))
        self._queues.add(queue)

    async def leave(self, but: Collection[EmbeddingQueue | None] = ()) -> None:
        """Be served no more, but by some."""
        for queue in self._queues.difference(but):
            self._queues.discard(queue)
            await queue.leave(self._agent)
