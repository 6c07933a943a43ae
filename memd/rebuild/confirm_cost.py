"""Asks a person before an index is built anew whose texts are sent to a provider that costs money."""

import contextlib
import sys
from collections.abc import AsyncIterator

from memd.embedding.queue.agent_queues import AgentQueues
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.rebuild.cost import CostEstimate
from memd.store.meta import Fingerprint


class RebuildPermission:
    """Whether a rebuild of one agent's index may begin."""

    def __init__(self, agent: str, queues: AgentQueues, estimate: CostEstimate) -> None:
        """Nobody is asked yet.

        Args:
            agent: Its id.
            queues: Of the agent.
            estimate: Of what a rebuild would have to embed.
        """
        self.asked: EmbeddingQueue | None = None  # through which a person is asked just now
        self._agent = agent
        self._queues = queues
        self._estimate = estimate

    @contextlib.asynccontextmanager
    async def permitted(self, wanted: Fingerprint, force: bool) -> AsyncIterator[None]:
        """Wait until the index may be built; its confirmation lasts for as long as the block takes.

        Args:
            wanted: What it is built for.
            force: Whether every chunk is embedded again, cached or not.
        """
        queue = self._queues.queue(wanted.space)
        if queue is None or not queue.asks_before(sys.maxsize):
            yield
            return
        self.asked = queue
        try:
            price = await self._estimate.of_rebuild(force=force)
            async with queue.permitted(self._agent, price.to_embed, price.tokens):
                self.asked = None
                yield
        finally:
            self.asked = None
