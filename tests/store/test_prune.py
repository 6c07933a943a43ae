"""What is dropped from the cache, how much at once, and with how much counting."""

import contextlib
from pathlib import Path
from random import Random

import pytest

from memd.domain_types import TextHash
from memd.store import embedding_cache
from memd.store.embedding_cache import PRUNE_SLACK, EmbeddingStore, KnownVectors

SPACE = ("hashing", "m", "1")


def hash_of(number: int) -> TextHash:
    return TextHash(number.to_bytes(32, "big"))


async def test_however_vectors_come_there_are_no_more_than_wanted_and_a_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some come again, some are forgotten, some are young again: what stays is what was used last."""
    monkeypatch.setattr(embedding_cache, "PRUNED_AT_ONCE", 7)
    assert PRUNE_SLACK == 64  # so much more than wanted may stay: a sixty-fourth
    rng, now, most = Random(5), 0.0, 2 * PRUNE_SLACK
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    known = KnownVectors(store, SPACE, clock=lambda: now)
    used: dict[TextHash, float] = {}
    for _ in range(60):
        now += 1
        some = [hash_of(rng.randrange(1000)) for _ in range(rng.randrange(40))]
        await known.put(dict.fromkeys(some, b"v"))
        used |= dict.fromkeys(some, now)
        lost = [one for one in used if not rng.randrange(30)]
        await known.forget(lost)
        for one in lost:
            del used[one]
        while dropped := await known.prune(most):
            assert dropped <= 7
        held = await known.held([hash_of(number) for number in range(1000)])
        assert len(held) <= most + most // PRUNE_SLACK
        assert held <= used.keys()
        if held and len(held) < len(used):
            assert min(used[one] for one in held) >= max(used[one] for one in used.keys() - held)
        used = {one: at for one, at in used.items() if one in held}
    await store.close()


@pytest.mark.parametrize("most", [1000, 5000], ids=["full", "with room"])
async def test_an_edit_has_the_vectors_of_a_cache_counted_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Each brings a vector or two. To count a cache of 500,000 takes 10 ms of its writer's time, and more from the disk."""
    counted = 0
    count = embedding_cache.count_kept

    def told(connection: object) -> int:
        nonlocal counted
        counted += 1
        return count(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(embedding_cache, "count_kept", told)
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    known = KnownVectors(store, SPACE)
    await known.put({hash_of(number): b"v" for number in range(1000)})
    edits = 60
    for number in range(edits):
        await known.put({hash_of(1000 + number): b"v"})
        while await known.prune(most):
            pass
    assert counted <= 1 + edits * PRUNE_SLACK // most
    await store.close()


async def test_the_vectors_of_another_file_are_counted_anew(tmp_path: Path) -> None:
    """The one that takes the place of a damaged file is empty."""
    file = tmp_path / "embeddings.sqlite"
    store = EmbeddingStore(file)
    await store.open()
    known = KnownVectors(store, SPACE)
    await known.put({hash_of(number): b"v" for number in range(10)})
    assert await known.prune(8) == 2
    await store.close()
    file.write_bytes(b"no database")
    store = EmbeddingStore(file)
    await store.open()
    known = KnownVectors(store, SPACE)
    await known.put({hash_of(number): b"v" for number in range(3)})
    assert await known.prune(2) == 1
    assert await known.prune(2) == 0
    await store.close()


async def test_so_many_are_dropped_in_one_step(tmp_path: Path) -> None:
    """An edit that waits for the writer waits no longer than that."""
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    step = embedding_cache.PRUNED_AT_ONCE
    await store.put(SPACE, {hash_of(number): b"v" for number in range(2 * step + 10)}, 1.0)
    assert [await store.prune(10, 2.0) for _ in range(3)] == [step, step, 0]
    await store.close()


async def test_nothing_is_pruned_while_an_index_takes_its_vectors(tmp_path: Path) -> None:
    """Of however many at once; when the last has ended, and if it failed, the cache becomes as small as it should be."""
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    await store.put(SPACE, {hash_of(number): b"v" for number in range(10)}, 0.0)
    with store.needed():
        with contextlib.suppress(ValueError), store.needed():
            assert await store.prune(4, 1.0) == 0
            raise ValueError
        assert await store.prune(4, 1.0) == 0
    assert await store.prune(4, 1.0) == 6
    await store.close()
