"""An index that is built anew, with attempts that fail."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from random import Random

import pytest

from memd.model import TextHash
from memd.store.embeddings import EmbeddingStore, KnownVectors
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.store.trouble import StoreFull, StoreUnavailable
from memd.sync import renewal as renewals
from memd.sync.renewal import Renewal
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, vector_of
from tests.wait import until_async

CHUNKS = [chunk_of(f"note {n}", n + 1) for n in range(10)]
HASHES = [chunk.hash for chunk in CHUNKS]
assert FINGERPRINT.space is not None
SPACE = FINGERPRINT.space


class Bench:
    """An index with vectors, its renewal, and a provider that counts what it embeds."""

    def __init__(self, directory: Path) -> None:
        self.index = Index(directory / "main.sqlite")
        self.cache = EmbeddingStore(directory / "embeddings.sqlite")
        self.known = KnownVectors(self.cache, SPACE)
        self.embedded: list[TextHash] = []
        self.failing: type[StoreUnavailable] = StoreUnavailable
        self.failures = 0  # of attempts that are to fail before any is embedded
        self.meanwhile: Callable[[], object] = lambda: None  # called when the new index has its text
        self.reasons: list[str | None] = []  # why it is built again, at the end of each building
        self.renewal = Renewal(
            "main",
            self.index,
            FINGERPRINT,
            fill=self.fill,
            embed=self.embed,
            permit=lambda _, __: nullcontext(),
            lock=asyncio.Lock(),
            cache=self.cache,
            rng=Random(1),
            done=lambda: self.reasons.append(self.renewal.reason),
        )

    async def fill(self, index: Index) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failing("something is in the way")
        if await index.find("memory/a.md") is None:
            known = await self.known.get(HASHES)
            await index.replace(found_file("memory/a.md"), b"1", CHUNKS, known, frozenset())

    async def embed(self, index: Index) -> None:
        self.meanwhile()
        waiting = await index.waiting(100)
        self.embedded += [chunk.hash for chunk in waiting]
        vectors = {chunk.hash: vector_of(99) for chunk in waiting}
        await self.known.put(vectors)
        await index.add_vectors([(chunk.id, chunk.hash, vectors[chunk.hash]) for chunk in waiting], SPACE)

    async def rebuilt(self, *, force: bool = False) -> list[TextHash]:
        """What is embedded for an index that is built anew."""
        before = len(self.embedded)
        self.renewal.want("a person wishes it", force=force)
        await until_async(lambda: self.renewal.reason is None, 20)
        return self.embedded[before:]


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Bench]:
    bench = Bench(directory)
    await bench.cache.open()
    await bench.index.open()
    await bench.index.adopt(FINGERPRINT)
    vectors = {text_hash: vector_of(n) for n, text_hash in enumerate(HASHES)}
    await bench.index.replace(found_file("memory/a.md"), b"1", CHUNKS, vectors, frozenset())
    task = asyncio.create_task(bench.renewal.run())
    yield bench
    task.cancel()
    await asyncio.wait([task])
    await bench.index.close()
    await bench.cache.close()


@pytest.mark.parametrize("failures", [0, 1, 3])
async def test_force_embeds_everything_once_however_many_attempts_fail(tmp_path: Path, failures: int) -> None:
    """The wish holds until an index is in place, what was embedded since is not embedded again, and it is then over."""
    async with running(tmp_path) as bench:
        bench.failures = failures
        assert sorted(await bench.rebuilt(force=True)) == sorted(HASHES)
        assert await bench.index.vectors_of(HASHES) == dict.fromkeys(HASHES, vector_of(99))
        assert await bench.rebuilt() == []


async def test_force_that_is_wished_again_meanwhile_holds_for_the_next_one(tmp_path: Path) -> None:
    """It counts from when it was wished."""
    async with running(tmp_path) as bench:

        def wish() -> None:
            bench.meanwhile = lambda: None
            bench.renewal.want("again", force=True)

        bench.meanwhile = wish
        assert len(await bench.rebuilt(force=True)) == 2 * len(HASHES)
        assert bench.reasons == ["again", None]


async def test_nothing_is_pruned_that_a_rebuild_is_about_to_take(tmp_path: Path) -> None:
    """However small the cache is to be, and whoever prunes it: the vectors of the old index come back from it."""
    async with running(tmp_path) as bench:
        pruned: list[int] = []
        fill = bench.renewal._fill

        async def after_another_agent_has_pruned(index: Index) -> None:
            pruned.append(await bench.known.prune(1))
            await fill(index)

        bench.renewal._fill = after_another_agent_has_pruned
        assert await bench.rebuilt() == []
        assert pruned == [0, 0]
        assert await bench.known.prune(1) == len(HASHES) - 1


async def test_after_a_clock_that_was_ahead_the_newest_stay(tmp_path: Path) -> None:
    """What was used in a time that has not come yet is as young as now, and grows old from there."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    now = 2.0e9
    known = KnownVectors(cache, SPACE, clock=lambda: now)
    await known.put({TextHash(b"old%d" % n): b"v" for n in range(100)})
    now = 1.8e9
    for day in range(3):
        await known.put({TextHash(b"new%d-%d" % (day, n)): b"v" for n in range(10)})
        assert await known.prune(100) == 10
        now += 86400
    assert (
        len(await known.held([TextHash(b"new%d-%d" % (day, n)) for day in (1, 2) for n in range(10)])) == 20
    )
    await cache.close()


async def test_an_index_for_another_model_is_built_for_that(tmp_path: Path) -> None:
    """And is what it was built for."""
    other = Fingerprint("c1", "t1", ("memory",))
    async with running(tmp_path) as bench:
        bench.renewal.want_space("another model", other)
        assert bench.renewal.changes_space
        await until_async(lambda: bench.renewal.reason is None, 20)
        assert await bench.index.fingerprint() == other
        assert not bench.renewal.changes_space


async def test_after_an_attempt_that_failed_there_is_a_pause_unless_somebody_hurries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads and cuts every file; the pauses grow."""
    pauses: list[int] = []

    def pause_s(failures: int, *_: object, **__: object) -> float:
        pauses.append(failures)
        return 3600.0

    monkeypatch.setattr(renewals, "delay_s", pause_s)
    async with running(tmp_path) as bench:
        bench.failures = 2
        bench.renewal.want("a person wishes it")
        for failures in (1, 2):
            await until_async(lambda failures=failures: len(pauses) == failures)  # type: ignore[misc]
            assert bench.failures == 2 - failures
            bench.renewal.hurry()
        await until_async(lambda: bench.renewal.reason is None, 20)
        assert pauses == [1, 2]


@pytest.mark.parametrize("free", [0, 1 << 40])
async def test_only_a_full_disk_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    """What failed for another reason, or where there is room enough by now, is tried again after one pause."""
    monkeypatch.setattr(renewals, "delay_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(Renewal, "_free_bytes", lambda _: free)
    async with running(tmp_path) as bench:
        bench.failures = 3
        bench.failing = StoreFull if free else StoreUnavailable
        assert await bench.rebuilt() == []


async def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pauses that takes: each attempt would fill it again."""
    free = 0
    monkeypatch.setattr(renewals, "delay_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(Renewal, "_free_bytes", lambda _: free)
    async with running(tmp_path) as bench:
        bench.failures, bench.failing = 2, StoreFull
        bench.renewal.want("a person wishes it")
        await until_async(lambda: bench.renewal.trouble)
        for _ in range(20):
            await asyncio.to_thread(int)
        assert bench.failures == 1
        free = 1 << 40
        await until_async(lambda: bench.renewal.reason is None, 20)
