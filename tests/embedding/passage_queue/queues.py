"""Embedding queues and indexes with chunks that wait for vectors."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import apsw

from memd.embedding.health_transitions import RequestHealth
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.provider_health import ProviderHealth
from memd.providers.provider import EmbedUnavailable, Provider, ProviderLimits, Vectors
from memd.store.embedding_cache import EmbeddingStore
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file

FINGERPRINT = Fingerprint("c1", "t1", ("memory",), "hashing", "words-and-pairs", "1", 384)
DIMENSIONS = 32  # of vectors that a provider over HTTP makes in these tests


async def opened(tmp_path: Path, name: str, texts: list[str]) -> Index:
    """An index with one file of these chunks."""
    index = Index(tmp_path / f"{name}.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    chunks = [chunk_of(text, line) for line, text in enumerate(texts, 1)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    return index


def healthy(first_wait_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> ProviderHealth:
    """The health of a provider that was never asked."""
    return ProviderHealth("hashing", Random(1), clock, first_wait_s=first_wait_s)


async def changed(queue: EmbeddingQueue, seen: RequestHealth | None = None) -> None:
    """Wait until passages fare otherwise than they did, which by default is how they fare now."""
    before = seen or queue.health.now.passages
    while queue.health.now.passages == before:
        await queue.health.progress.next()


def queue_of(provider: HashingProvider, cache: EmbeddingStore, max_entries: int = 1000) -> EmbeddingQueue:
    return EmbeddingQueue(provider, cache, CacheBound(max_entries), healthy())


class Poisoned(HashingProvider):
    """Breaks down at one text, as some servers do; asked for one text at a time."""

    @property
    def limits(self) -> ProviderLimits:
        return ProviderLimits(tokens=8000, texts=1, concurrency=1)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if "poison" in texts:
            raise EmbedUnavailable("it broke down")
        return await super().embed_passages(texts)


@asynccontextmanager
async def running(queue: EmbeddingQueue, *indexes: Index) -> AsyncIterator[None]:
    """Let a queue work meanwhile; the indexes are closed afterwards."""
    task = asyncio.create_task(queue.run())
    try:
        async with asyncio.timeout(60):
            yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        for index in indexes:
            await index.close()


@asynccontextmanager
async def locked(index: Index, *, busy_ms: int) -> AsyncIterator[None]:
    """Another program writes to an index; memd's own writes wait so long for it, then fail."""
    await index.database.write(lambda connection: connection.set_busy_timeout(busy_ms))
    other = apsw.Connection(str(index.file))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def write(index: Index, name: str, text: str, mtime_ns: int) -> None:
    """A note comes into an index."""
    found = found_file(name, mtime_ns=mtime_ns)
    await index.replace(found, text.encode(), [chunk_of(text)], {}, frozenset())


async def opened_for(tmp_path: Path, provider: Provider, texts: list[str], name: str = "main") -> Index:
    """An index with room for a provider's vectors and one file of these chunks."""
    index = Index(tmp_path / f"{name}.sqlite")
    identity = provider.identity
    await index.open()
    await index.adopt(
        Fingerprint(
            "c1", "t1", ("memory",), identity.provider, identity.model, identity.key, identity.dimensions
        )
    )
    chunks = [chunk_of(text, line) for line, text in enumerate(texts, 1)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    return index
