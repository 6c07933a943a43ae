"""What is kept in the cache, and how much."""

from pathlib import Path

import pytest

from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.results import CacheBound
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from tests.embedding.passage_queue.queues import opened, queue_of, running
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of

SPACE = ("hashing", "m", "1")


def test_the_cache_keeps_twice_what_the_indexes_hold_or_what_anybody_asks_for(tmp_path: Path) -> None:
    """It is that of all agents: a small number of one of them takes nothing from the others."""
    bound = CacheBound(100)
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    one, two = (KnownVectors(store, SPACE) for _ in range(2))
    assert bound.entries(one, 30) == 100
    assert bound.entries(one, 300) == 600
    assert bound.entries(two, 50) == 700
    assert bound.entries(one, 10) == 120
    del two
    assert bound.entries(one, 10) == 100


@pytest.mark.parametrize("use_cache", [False, True])
async def test_vectors_of_an_agent_without_a_cache_are_in_its_index_alone(
    tmp_path: Path, *, use_cache: bool
) -> None:
    """It may have none because nothing of its notes is to be kept elsewhere."""
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    index = await opened(tmp_path, "main", ["some text"])
    queue = queue_of(HashingProvider(), store)
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=use_cache))
        assert await queue.wait_for(index) == (0, None)
    assert bool(await queue.known.held([chunk_of("some text").hash])) is use_cache
    await store.close()
