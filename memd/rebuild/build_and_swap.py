"""An index built anew beside the one that serves, embedded there, then put in its place."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from memd.embedding.registry import AgentQueues
from memd.indexing.run_pass import PassRunner
from memd.store import recovery
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint

_NAME = ".next"


def beside(file: Path) -> Path:
    """Where the new index is built."""
    return file.with_name(f"{file.name}{_NAME}")


def discard(index: Index) -> None:
    """Delete what is built beside an index, half or whole: its vectors are in the cache, the rest is quick to do again.

    Raises:
        StoreUnavailable: it is still there.
    """
    file = beside(index.file)
    try:
        recovery.remove_database(file)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be deleted: {error.strerror}") from error


def discard_all(directory: Path) -> None:
    """Delete whatever daemons that were killed have built beside indexes, also of agents that are configured no more.

    Args:
        directory: Of the indexes. Nothing has any of them open.
    """
    with contextlib.suppress(OSError):  # what can be read alone is left as it is
        for file in list(directory.glob(f"*.sqlite{_NAME}*")):
            file.unlink(missing_ok=True)


async def rebuild(
    index: Index,
    fingerprint: Fingerprint,
    runner: PassRunner,
    *,
    embed: Callable[[Index], Awaitable[None]],
    swap: Callable[[], str | None],
) -> None:
    """Build and swap; the old index serves searches and edits until then.

    What a killed attempt left behind is deleted first.

    Args:
        index: The index that serves.
        fingerprint: What the new one is built for.
        runner: Brings an index up to date with the disk: once at leisure, and once more while nobody writes to the index that
            serves, for what changed meanwhile.
        embed: Has the new index embedded as far as it is worth waiting for.
        swap: Called when the new index is about to take its place, which nothing must interrupt: what is wrong with the
            file of the index that serves, which is then set aside.

    Raises:
        StoreUnavailable, StoreDamaged: the old index goes on serving.
    """
    discard(index)
    file = beside(index.file)
    new = Index(file, like=index)
    try:
        await new.open()
        await new.adopt(fingerprint)
        # Microseconds since 1970: above any id that the old index gave or gives, so that no late vector or search
        # takes one chunk for another.
        await new.start_ids_at(time.time_ns() // 1000)
        await runner.fill(new)
        await embed(new)
        async with runner.writing:
            await runner.fill(new)
            await index.swap_in(new, damage=swap())
    finally:
        await new.close()
        with contextlib.suppress(StoreUnavailable):  # the next attempt, and the next start, begin with it
            discard(index)


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
        return self._queues.providers.cache

    async def embed(self, new: Index) -> None:
        """Embed a new index, as far as it is worth waiting for: as long as the old one answers by meaning.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        providers, old = self._queues.providers, self._old
        if self._queues.rest or new.space is None or new.space == old.space:
            return
        try:
            for _ in range(CATCHING_UP):
                while (waiting := await self._left(new)) and old.has_vectors:
                    if not providers.is_answering(old.space):
                        return
                    queue = providers.queue(new.space)
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
