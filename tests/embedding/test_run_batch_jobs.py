"""The batch jobs of providers that embed in one space."""

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest

from memd.config.settings import Remote
from memd.embedding import run_batch_jobs
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.run_batch_jobs import CachedBatchJobs, SharedBatchJobs
from memd.providers.api_keys import Account
from memd.providers.provider import Identity
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.spec import provider_spec
from memd.store.embedding_cache import EmbeddingStore
from tests.embedding.passage_queue.queues import healthy
from tests.fakes import HashingProvider
from tests.fakes.embedding_server import KEY, EmbeddingServer
from tests.store.conftest import chunk_of
from tests.wait import until_async


class Named(HashingProvider):
    """Its vectors are those of the server's model."""

    @property
    def identity(self) -> Identity:
        return Identity("openai", "m", "k", 384)


async def test_one_provider_of_a_space_carries_out_the_jobs_of_all(tmp_path: Path) -> None:
    """The other's queue knows what is in them, none strikes another's job off, and when the one goes, the other goes on."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    texts = {chunk_of(text).hash: text for text in (f"text {n}" for n in range(20))}
    with EmbeddingServer() as server:
        server.batch_outcome = "never"
        remote = msgspec.convert(
            {
                "base_url": server.base_url("openai"),
                "api_key": KEY,
                "batch": {"enabled": True, "min_chunks": 1, "poll_interval_ms": 100},
            },
            Remote,
        )
        shared, running, queues = SharedBatchJobs(), [], []
        for _ in range(2):
            provider = Named()
            queue = EmbeddingQueue(provider, cache, CacheBound(1000), healthy())
            made = provider_spec("openai", "m", remote, {}, lambda _: KEY)
            jobs = CachedBatchJobs(
                made, provider.identity, cache, remote.batch, queue, Random(1), shared, None
            )
            queues.append(queue)
            running.append(asyncio.create_task(jobs.run()))
            batches = queue.batch_submitter.batches
            assert batches is not None
            if len(queues) == 1:
                await until_async(lambda: queues[0].batch_submitter.is_wanted(20))
                await batches.submit(texts)
                await until_async(lambda: len(server.jobs) == 1)
        assert queues[0].batch_submitter.batches is queues[1].batch_submitter.batches
        assert batches is not None
        assert all(map(batches.holds, texts))
        running[0].cancel()
        await asyncio.wait(running[:1])
        await until_async(lambda: shared.batches is not batches)
        server.batch_outcome = "completed"
        await until_async(
            lambda: shared.batches is not None and shared.batches.is_open and not shared.batches.jobs, 10
        )
        assert await queues[1].known.held(list(texts)) == texts.keys()
        assert len(server.jobs) == 1
        running[1].cancel()
        await asyncio.wait(running)
        assert shared.batches is None
    await cache.close()


async def test_the_connections_of_jobs_are_closed_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that carry files, as many as requests may be under way, and those that ask how far the jobs are."""
    made: dict[object, int] = {}

    class Recorded(HttpConnections):
        def __init__(self, provider: str, account: Account, key_header: str | None, connections: int) -> None:
            super().__init__(provider, account, key_header, connections)
            made[self] = connections

        async def close(self) -> None:
            await super().close()
            del made[self]

    monkeypatch.setattr(run_batch_jobs, "HttpConnections", Recorded)
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    remote = msgspec.convert({"api_key": KEY, "batch": {"enabled": True, "concurrency": 3}}, Remote)
    queue = EmbeddingQueue(Named(), cache, CacheBound(1000), healthy())
    spec = provider_spec("openai", "m", remote, {}, lambda _: KEY)
    shared = SharedBatchJobs()
    jobs = CachedBatchJobs(spec, Named().identity, cache, remote.batch, queue, Random(1), shared, None)
    assert list(made.values()) == [3 + run_batch_jobs.POLLERS]
    running = asyncio.create_task(jobs.run())
    await until_async(lambda: shared.batches is not None and shared.batches.is_open)
    running.cancel()
    await asyncio.wait([running])
    assert not made
    await cache.close()
