"""The cache, for whoever can do without it."""

from pathlib import Path

from structlog.testing import capture_logs

from memd.embedding.queue.cache import CacheBound, SpaceCache
from memd.model import TextHash
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreClosed, StoreDamaged, StoreNewer, StoreUnavailable

SPACE = ("hashing", "m", "1")
ONE, TWO, THREE = (TextHash(bytes([number]) * 32) for number in (1, 2, 3))


async def test_what_is_known_need_not_be_asked_for(tmp_path: Path) -> None:
    """Vectors, and refusals, of this space."""
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    cached = SpaceCache(KnownVectors(store, SPACE), CacheBound(1))
    await cached.put({ONE: b"\0" * 16})
    await cached.refuse(TWO, "too long")
    assert await cached.get([ONE, TWO, THREE]) == {ONE: b"\0" * 16}
    assert await cached.refused([ONE, TWO, THREE]) == {TWO}
    assert await cached.unknown({ONE, TWO, THREE}) == {THREE}
    other = SpaceCache(KnownVectors(store, ("other", "m", "1")), CacheBound(1))
    assert await other.unknown({ONE, TWO, THREE}) == {ONE, TWO, THREE}
    await store.close()


async def test_a_cache_that_fails_is_as_good_as_an_empty_one(tmp_path: Path) -> None:
    """It is told once, until it has worked again."""
    cached = SpaceCache(KnownVectors(EmbeddingStore(tmp_path / "embeddings.sqlite"), SPACE), CacheBound(1))

    async def broken(failure: Exception | None) -> int:
        if failure is not None:
            raise failure
        return 3

    newer = StoreNewer(tmp_path / "embeddings.sqlite", 9, 2)
    failures = [StoreUnavailable("full"), StoreDamaged("torn"), newer, None, StoreClosed("closed")]
    with capture_logs() as logs:
        assert [await cached.unless_broken(broken(one), 0) for one in failures] == [0, 0, 0, 3, 0]
    assert [(one["event"], one["reason"]) for one in logs] == [
        ("embed.cache_failed", "full"),
        ("embed.cache_failed", "closed"),
    ]


def test_the_cache_keeps_twice_what_the_indexes_hold_or_what_anybody_asks_for(tmp_path: Path) -> None:
    """It is that of all agents: a small number of one of them takes nothing from the others."""
    bound = CacheBound(100)
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    one, two = (SpaceCache(KnownVectors(store, SPACE), bound) for _ in range(2))
    assert bound.entries(one, 30) == 100
    assert bound.entries(one, 300) == 600
    assert bound.entries(two, 50) == 700
    assert bound.entries(one, 10) == 120
    del two
    assert bound.entries(one, 10) == 100
