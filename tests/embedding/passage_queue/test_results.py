"""The bound of the cache."""

from pathlib import Path

from memd.embedding.passage_queue.results import CacheBound
from memd.store.embedding_cache import EmbeddingStore, KnownVectors

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
