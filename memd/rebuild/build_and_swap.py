"""Builds a new index beside the current one, has it embedded there, and swaps them."""

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
    """Return the path at which the new index is built."""
    return file.with_name(f"{file.name}{_NAME}")


def discard(index: Index) -> None:
    """Delete an index built beside the current one; its vectors are in the cache, and the rest is quickly redone.

    Raises:
        StoreUnavailable: it could not be deleted.
    """
    file = beside(index.file)
    try:
        recovery.remove_database(file)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be deleted: {error.strerror}") from error


def discard_all(directory: Path) -> None:
    """Delete all indexes that killed daemons have built beside others, including those of agents no longer configured.

    Args:
        directory: The directory of the indexes, none of which is open.
    """
    with contextlib.suppress(OSError):  # a directory that is read-only is left as it is
        for file in list(directory.glob(f"*.sqlite{_NAME}*")):
            file.unlink()


async def rebuild(
    index: Index,
    fingerprint: Fingerprint,
    runner: PassRunner,
    *,
    embed: Callable[[Index], Awaitable[None]],
    swap: Callable[[], str | None],
) -> None:
    """Build a new index and swap it in; the old one serves searches and edits until then.

    Remains of a killed attempt are deleted first.

    Args:
        index: The current index.
        fingerprint: The settings and model that the new index is for.
        runner: Fills an index from the disk: once at leisure, and again for later changes while nothing
            writes to the current index.
        embed: Embeds the new index as far as that is worth waiting for.
        swap: Called just before the swap, which must not be interrupted; returns the damage of the current
            index's file, which is then set aside, or None.

    Raises:
        StoreUnavailable, StoreDamaged: the old index remains in use.
    """
    discard(index)
    file = beside(index.file)
    new = Index(file, like=index)
    try:
        await new.open()
        await new.adopt(fingerprint)
        # Microseconds since 1970: larger than any id that the old index has assigned or will assign, so that
        # no late vector or search confuses their chunks.
        await new.start_ids_at(time.time_ns() // 1000)
        await runner.fill(new)
        await embed(new)
        async with runner.writing:
            await runner.fill(new)
            await index.swap_in(new, damage=swap())
    finally:
        await new.close()
        with contextlib.suppress(StoreUnavailable):  # the next attempt or start deletes it
            discard(index)


LOOK_S = 2.0  # between two checks of the progress
CATCHING_UP = 3  # passes for files that change while the index is embedded


class NewIndexEmbedding:
    """Embeds a new index for another model while the old index still answers vector searches."""

    def __init__(self, old: Index, queues: AgentQueues, runner: PassRunner) -> None:
        """Create it; no index is being built.

        Args:
            old: The current index.
            queues: The agent's embedding queues.
            runner: Fills an index from the disk.
        """
        self.progress: tuple[int, int] | None = None  # (chunks with a vector, all chunks)
        self._old = old
        self._queues = queues
        self._runner = runner

    @property
    def cache(self) -> EmbeddingStore | None:
        """The cache of vectors; None: the agent has none."""
        return self._queues.providers.cache

    def leave_out_published(self) -> None:
        """Take no vectors from where they are published."""
        if self._queues.published is not None:
            self._queues.published.leave_out()

    async def embed(self, new: Index) -> None:
        """Embed a new index, as long as the old one answers vector searches.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        providers, old = self._queues.providers, self._old
        if self._queues.suspended or new.space is None or new.space == old.space:
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
