"""Gives an index that is built beside another one its vectors, before it takes the place of that."""

import asyncio
import contextlib

from memd.embedding.queue.agent_queues import AgentQueues
from memd.indexing.run_pass import PassRunner
from memd.store.embedding_cache import EmbeddingStore
from memd.store.index import Index

LOOK_S = 2.0  # between two looks at how far it is
CATCHING_UP = 3  # rounds of what changed while it was embedded


class NewIndexEmbedding:
    """How far an index is that is embedded for another model while the old one answers by meaning."""

    def __init__(self, old: Index, queues: AgentQueues, runner: PassRunner) -> None:
        """None is built yet.

        Args:
            old: The index that serves.
            queues: Of its agent.
            runner: Brings an index up to date with the disk.
        """
        self.progress: tuple[int, int] | None = None  # chunks with a vector, and all
        self._old = old
        self._queues = queues
        self._runner = runner

    @property
    def cache(self) -> EmbeddingStore | None:
        """Where vectors are kept by text; None: the agent has no cache."""
        return self._queues.cache

    async def embed(self, new: Index) -> None:
        """Embed a new index, as far as it is worth waiting for: as long as the old one answers by meaning.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        spaces, old = self._queues.spaces, self._old
        if spaces is None or self._queues.rest or new.space is None or new.space == old.space:
            return
        try:
            for _ in range(CATCHING_UP):
                while (waiting := await self._left(new)) and old.has_vectors:
                    if not spaces.is_answering(old.space):
                        return
                    queue = spaces.queue(new.space)
                    if queue is not None:
                        self._queues.serve(queue, new)
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(LOOK_S):
                                waiting, _ = await queue.wait_for(new)
                    if waiting:
                        await asyncio.sleep(LOOK_S / 4)
                await self._runner.fill(new)
                if not await self._left(new):
                    return
        finally:
            self.progress = None

    async def _left(self, new: Index) -> int:
        counts = await new.counts()
        self.progress = counts.done, counts.chunks
        return counts.waiting
