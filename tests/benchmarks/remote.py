"""How long a first index takes at a provider over HTTP, beside what that provider needs at the allowed concurrency."""

import asyncio
import logging
import multiprocessing
import tempfile
import time
from collections.abc import Awaitable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import structlog

from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.providers.provider import Provider
from memd.store.embedding_cache import EmbeddingStore
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.benchmarks.figures import Figure
from tests.embedding.passage_queue.queues import healthy
from tests.embedding.passage_queue.remote import provider_at
from tests.fakes.embedding_server import EmbeddingServer
from tests.store.conftest import chunk_of, found_file

CHUNKS = 5_000
A_REQUEST = 20  # chunks of the usual size: what 8,000 tokens hold
WORDS = 320
ANSWER_S = 0.05
CONCURRENCY = 4
DIMENSIONS = 1536
ROUNDS = 3


def measure() -> Iterator[Figure]:
    """A first index of 5,000 chunks; the baseline sends the same requests and throws the vectors away."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        url: str = ours.recv()
        plain, memd = asyncio.run(_measured(url))
    finally:
        ours.send(None)
        process.join()
    ideal = CHUNKS / A_REQUEST * ANSWER_S / CONCURRENCY
    yield Figure(
        name=f"first vectors of {CHUNKS:,} chunks, remote provider",
        unit="s",
        memd=memd,
        baseline=plain,
        note=f"{CONCURRENCY} requests at once, answered after {1000 * ANSWER_S:.0f} ms; {ideal:.1f} s if all else took no time",
    )


async def _measured(url: str) -> tuple[float, float]:
    """Seconds that the requests alone take, and seconds that memd takes until all vectors are stored: the best of some."""
    texts = [f"note {number} " + "word " * WORDS for number in range(CHUNKS)]
    plain: list[float] = []
    memd: list[float] = []
    async with provider_at(
        EmbeddingServer(dimensions=DIMENSIONS), url=url, concurrency=CONCURRENCY
    ) as provider:
        await provider.embed_passages(["warm-up"])
        for _ in range(ROUNDS):
            plain.append(await _timed(_asked(provider, texts)))
            with tempfile.TemporaryDirectory(prefix="memd-") as home:
                memd.append(await _indexed(Path(home), provider, texts))
    return min(plain), min(memd)


async def _timed(work: Awaitable[None]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def _asked(provider: Provider, texts: list[str]) -> None:
    requests = iter([texts[start : start + A_REQUEST] for start in range(0, len(texts), A_REQUEST)])

    async def task() -> None:
        for some in requests:
            await provider.embed_passages(some)

    await asyncio.gather(*(task() for _ in range(CONCURRENCY)))


async def _indexed(home: Path, provider: Provider, texts: list[str]) -> float:
    cache = EmbeddingStore(home / "embeddings.sqlite")
    index = Index(home / "main.sqlite")
    await cache.open()
    await index.open()
    identity = provider.identity
    space = (identity.provider, identity.model, identity.key, identity.dimensions)
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space))
    for start in range(0, len(texts), 50):
        chunks = [chunk_of(text, line) for line, text in enumerate(texts[start : start + 50], 1)]
        await index.replace(found_file(f"memory/{start}.md"), str(start).encode(), chunks, {}, frozenset())
    queue = EmbeddingQueue(provider, cache, CacheBound(2 * len(texts)), healthy())
    running = asyncio.create_task(queue.run())

    async def complete() -> None:
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        while (await queue.wait_for(index))[0]:
            pass

    try:
        return await _timed(complete())
    finally:
        running.cancel()
        await asyncio.wait([running])
        await index.close()
        await cache.close()


def _serve(pipe: Connection) -> None:
    """Answer until told to end, in a process of its own: the server's work is not memd's."""
    with EmbeddingServer(dimensions=DIMENSIONS, delay_s=ANSWER_S) as server:
        row = [0.0] * (DIMENSIONS - 1) + [1.0]
        server.vectors_of = lambda texts: [row for _ in texts]  # type: ignore[method-assign]
        pipe.send(server.base_url("openai"))
        pipe.recv()
