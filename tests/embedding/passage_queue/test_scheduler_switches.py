"""What a person says to the scheduler: pause, resume, confirm."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from memd.embedding.health_transitions import Healthy
from memd.embedding.passage_queue import scheduler
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed, Paused, WaitingForConfirmation
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.providers.provider import Vectors
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreUnavailable
from memd.store.provider_records import ProviderStore
from tests.bounds import shipped
from tests.clock import Clock
from tests.embedding.passage_queue.queues import Poisoned, changed, healthy, opened, running
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    yield store
    await store.close()


def queue_of(
    provider: HashingProvider,
    cache: EmbeddingStore,
    confirm_above: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> EmbeddingQueue:
    """A queue as it is after each start of the daemon."""
    return EmbeddingQueue(
        provider,
        cache,
        CacheBound(10_000),
        healthy(clock=clock),
        confirm_above=confirm_above,
    )


class Silent(HashingProvider):
    """Gives no answer."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = False

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.is_asked = True
        await asyncio.Event().wait()
        raise AssertionError


def asked(provider: HashingProvider) -> int:
    """How many texts were sent."""
    return sum(map(len, provider.requests))


async def test_a_paused_agent_sends_nothing_and_others_do(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Over a restart, too; what is cached costs nothing and is taken all the same."""
    provider = HashingProvider()
    paused = await opened(tmp_path, "paused", ["one", "two"])
    other = await opened(tmp_path, "other", ["three"])
    queue = queue_of(provider, cache)
    await queue.pause("paused")
    again = queue_of(provider, cache)
    async with running(again):
        again.serve(IndexToEmbed("paused", paused, use_cache=True))
        again.serve(IndexToEmbed("other", other, use_cache=True))
        assert await again.wait_for(other) == (0, None)
        await until_async(lambda: again.state_of("paused") == Paused())
        waiting, reason = await again.wait_for(paused)
        assert waiting == 2
        assert reason is not None
        assert "memd-ctl embed resume --agent paused" in reason
        assert provider.requests == [["three"]]
        await again.known.put({chunk_of("one").hash: provider.embed(["one"])[0].tobytes()})
        again.serve(IndexToEmbed("paused", paused, use_cache=True))
        await until_async(lambda: paused.has_vectors)
        assert provider.requests == [["three"]]
        await again.resume("paused")
        assert await again.wait_for(paused) == (0, None)
        assert provider.requests == [["three"], ["two"]]
    await paused.close()
    await other.close()


async def test_what_is_under_way_at_a_pause_is_stored(tmp_path: Path, cache: EmbeddingStore) -> None:
    """It is paid for."""
    provider = HashingProvider(delay_s=0.05)
    index = await opened(tmp_path, "main", [f"{n} " + "word " * 400 for n in range(100)])
    queue = queue_of(provider, cache)
    async with running(queue):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: provider.requests)
        await queue.pause("main")
        await until_async(lambda: queue.backlogs["main"].is_idle)
        assert (await index.counts()).done == asked(provider) < 100
    await index.close()


async def test_a_confirmation_that_is_used_up_is_gone_after_a_restart_though_the_disk_was_full(
    tmp_path: Path, cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written again until it is kept, without anything else to do; else the next burst would be paid for unasked.

    That it fails is logged once, and once more after it was kept.
    """
    monkeypatch.setattr(scheduler, "AGAIN_S", 0.0)
    put, failures, is_kept = ProviderStore.put_document, 0, asyncio.Event()

    async def put_or_fail(self: ProviderStore, name: str, content: bytes) -> None:
        nonlocal failures
        if content == b"false" and failures:
            failures -= 1
            raise StoreUnavailable("the disk is full")
        await put(self, name, content)
        if content == b"false":
            is_kept.set()

    monkeypatch.setattr(ProviderStore, "put_document", put_or_fail)
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(50)])
    queue = queue_of(HashingProvider(), cache, confirm_above=20)
    with capture_logs() as logs:
        async with running(queue, index):
            for times in (1, 2):
                failures = 3
                is_kept.clear()
                await queue.confirm("main")
                queue.serve(IndexToEmbed("main", index, use_cache=True))
                assert await queue.wait_for(index) == (0, None)
                async with asyncio.timeout(60):
                    await is_kept.wait()
                assert [one["event"] for one in logs].count("embed.cache_failed") == times
        assert await ProviderStore(cache, queue.known.space).document("confirmed:main") == b"false"


async def test_much_work_waits_until_it_is_confirmed(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Nothing is sent before, also after a restart; a confirmation lasts until the work is done, and no longer."""
    provider = HashingProvider()
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(50)])
    queue = queue_of(provider, cache, confirm_above=20)
    async with running(queue):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        waiting, reason = await queue.wait_for(index)
        state = queue.state_of("main")
        assert isinstance(state, WaitingForConfirmation)
        assert state.chunks == waiting == 50
        assert 50 <= state.tokens <= 200
        assert reason is not None
        assert "50 chunks" in reason
        assert "memd-ctl embed confirm --agent main" in reason
        assert not provider.requests
        await queue.confirm("main")
    again = queue_of(provider, cache, confirm_above=20)
    async with running(again):
        again.serve(IndexToEmbed("main", index, use_cache=True))
        assert await again.wait_for(index) == (0, None)
        assert asked(provider) == 50
        await until_async(lambda: again.backlogs["main"].is_idle and not again.switches.of("main").confirmed)
        more = [chunk_of(f"more {n}", n + 1) for n in range(30)]
        await index.replace(found_file("memory/b.md"), b"1", more, {}, frozenset())
        again.serve(IndexToEmbed("main", index, use_cache=True))
        assert (await again.wait_for(index))[0] == 30
        assert asked(provider) == 50
    await index.close()


async def test_work_that_is_no_longer_there_is_not_asked_about(tmp_path: Path, cache: EmbeddingStore) -> None:
    """A person whose notes are gone has nothing to confirm."""
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(50)])
    queue = queue_of(HashingProvider(), cache, confirm_above=20)
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        assert (await queue.wait_for(index))[0] == 50
        await index.replace(found_file("memory/a.md"), b"2", [], {}, frozenset())
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: queue.state_of("main") == Healthy())


async def test_little_work_and_cached_work_are_not_asked_about(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Only what would be sent counts, and work that costs nothing is never asked about."""
    provider = HashingProvider()
    texts = [f"text {n}" for n in range(50)]
    index = await opened(tmp_path, "main", texts)
    queue = queue_of(provider, cache, confirm_above=20)
    rows = provider.embed(texts[:30])
    await queue.known.put(
        {chunk_of(text).hash: row.tobytes() for text, row in zip(texts[:30], rows, strict=True)}
    )
    free = await opened(tmp_path, "free", [f"free {n}" for n in range(50)])
    unasked = queue_of(provider, cache)
    async with running(queue), running(unasked):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        unasked.serve(IndexToEmbed("free", free, use_cache=True))
        assert await queue.wait_for(index) == (0, None)
        assert await unasked.wait_for(free) == (0, None)
    await index.close()
    await free.close()


async def test_work_that_comes_bit_by_bit_is_asked_about_in_all(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """A first index that is embedded while it grows sends no more unasked than one that was there at once."""
    provider = HashingProvider()
    index = await opened(tmp_path, "main", ["the first"])
    queue = queue_of(provider, cache, confirm_above=20)
    hold = asyncio.Event()

    async def slowly(*_: object) -> int:
        await hold.wait()
        return 0

    async with running(queue):
        index.add_vectors = slowly  # type: ignore[method-assign, assignment]  # so that it is never done
        for part in range(5):
            chunks = [chunk_of(f"{part} {n}", n + 1) for n in range(8)]
            await index.replace(found_file(f"memory/{part}.md"), b"1", chunks, {}, frozenset())
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            await until_async(lambda: not queue.backlogs["main"].anew.is_set())
            await until_async(
                lambda: queue.backlogs["main"].ahead == [] or queue.state_of("main") != Healthy()
            )
        assert isinstance(queue.state_of("main"), WaitingForConfirmation)
        assert asked(provider) <= 20
        hold.set()
    await index.close()


async def test_what_is_asked_about_for_a_burst_is_looked_at_again_when_that_is_over(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Twenty texts after fifteen are more than twenty, and a while later they are not; thirty are at any time."""
    provider, clock, seconds = (
        HashingProvider(),
        Clock(),
        shipped("memd.embedding.passage_queue.agent_backlog.BURST_S"),
    )
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(15)])
    queue = queue_of(provider, cache, 20, clock)

    async def write(name: str, texts: int) -> None:
        chunks = [chunk_of(f"{name} {n}", n + 1) for n in range(texts)]
        await index.replace(found_file(f"memory/{name}.md"), b"1", chunks, {}, frozenset())
        queue.serve(IndexToEmbed("main", index, use_cache=True))

    store, hold = index.add_vectors, asyncio.Event()

    async def slowly(*given: Any) -> Any:
        await hold.wait()
        return await store(*given)

    async with running(queue):
        index.add_vectors = slowly  # type: ignore[method-assign, assignment]
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: asked(provider) == 15)
        await write("later", 20)
        await until_async(lambda: isinstance(queue.state_of("main"), WaitingForConfirmation))
        hold.set()
        await until_async(lambda: not queue.backlogs["main"].out)
        waiting, reason = await queue.wait_for(index)
        assert (waiting, asked(provider)) == (20, 15)
        assert reason is not None
        assert f"for {seconds / 60:g} minutes, or until" in reason
        clock.run(seconds - 60)
        queue.backlogs["main"].wake()
        waiting, reason = await queue.wait_for(index)
        assert (waiting, asked(provider)) == (20, 15)
        clock.run(60)
        queue.backlogs["main"].wake()
        await until_async(lambda: queue.state_of("main") == Healthy())
        assert await queue.wait_for(index) == (0, None)
        assert asked(provider) == 35
        await write("many", 30)
        waiting, reason = await queue.wait_for(index)
        assert (waiting, asked(provider)) == (30, 35)
        assert "minutes" not in str(reason)
    await index.close()


async def test_an_index_that_nobody_serves_and_that_wants_nothing_is_not_waited_for(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Its agent may have been stopped."""
    index = await opened(tmp_path, "main", [])
    assert await queue_of(HashingProvider(), cache).wait_for(index) == (0, None)
    await index.close()


async def test_who_waits_for_vectors_that_do_not_come_is_told(
    tmp_path: Path, cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so long without one."""
    provider, seconds = Silent(), shipped("memd.embedding.passage_queue.scheduler.STALLED_S")
    index = await opened(tmp_path, "main", ["one", "two"])
    queue, loop = queue_of(provider, cache), asyncio.get_running_loop()
    working = asyncio.create_task(queue.run())
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    await until_async(lambda: provider.is_asked)
    waiting = asyncio.create_task(queue.wait_for(index))
    await asyncio.sleep(0.05)
    time_now = loop.time
    monkeypatch.setattr(loop, "time", lambda: time_now() + seconds / 2)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    monkeypatch.setattr(loop, "time", lambda: time_now() + seconds)
    assert await waiting == (2, f"no chunk was embedded in the last {seconds:.0f} s")
    working.cancel()
    await asyncio.wait([working])
    await index.close()


async def test_a_rebuild_waits_until_it_is_confirmed(cache: EmbeddingStore) -> None:
    """One that sends much is not begun; one that sends little is begun at once."""
    queue = queue_of(HashingProvider(), cache, confirm_above=20)
    begun: list[int] = []

    async def rebuild(texts: int) -> None:
        async with queue.confirmations.permitted("main", texts, 400 * texts):
            begun.append(texts)
            assert queue.confirmations.is_in_use("main")
        assert not queue.confirmations.is_in_use("main")

    await rebuild(20)
    told = asyncio.create_task(queue.health.progress.next())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(rebuild(21))
    await until_async(lambda: queue.state_of("main") == WaitingForConfirmation(21, 8400, sent=0))
    async with asyncio.timeout(60):
        await told  # who waits for vectors looks why there are none
    assert begun == [20]
    assert queue.confirmations.is_in_use("main")
    await queue.confirm("main")
    async with asyncio.timeout(60):
        await waiting
    assert begun == [20, 21]
    assert queue.state_of("main") == Healthy()


async def test_a_wish_that_cannot_be_kept_is_told_and_holds(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Until the daemon ends."""
    queue = queue_of(HashingProvider(), cache)
    await queue.pause("main")
    await queue.resume("main")
    await cache.close()
    with pytest.raises(Exception, match="closed"):
        await queue.pause("main")
    assert queue.state_of("main") == Paused()


async def test_a_pause_is_known_before_an_agent_is_served_again(cache: EmbeddingStore) -> None:
    """Whoever asks how it stands just after a start is not told that it works."""
    await queue_of(HashingProvider(), cache).pause("main")
    restarted = queue_of(HashingProvider(), cache)
    await restarted.load("main")
    assert restarted.state_of("main") == Paused()
    await restarted.load("other")
    assert restarted.state_of("other") == Healthy()


async def test_what_a_person_wished_elsewhere_is_known_when_an_agent_comes_back(
    cache: EmbeddingStore,
) -> None:
    """Another queue may have served it meanwhile."""
    queue = queue_of(HashingProvider(), cache)
    await queue.pause("main")
    await queue.leave("main")
    await queue_of(HashingProvider(), cache).resume("main")
    await queue.load("main")
    assert queue.state_of("main") == Healthy()


@pytest.mark.parametrize("store_s", [0.0, 0.05])
async def test_what_never_gets_its_vector_makes_no_burst_of_a_life(
    tmp_path: Path, cache: EmbeddingStore, store_s: float
) -> None:
    """Ten texts now and ten later are not more than twelve at once, though one that the provider fails at waits all the time.

    Nor are they if it is asked for all the time while the others are stored.
    """
    index = await opened(tmp_path, "main", ["poison"])
    store = index.add_vectors

    async def slowly(*given: Any) -> Any:
        await asyncio.sleep(store_s)
        return await store(*given)

    index.add_vectors = slowly  # type: ignore[method-assign, assignment]
    queue = EmbeddingQueue(Poisoned(), cache, CacheBound(1000), healthy(0.001), confirm_above=12)
    async with running(queue):
        for burst in range(4):
            texts = [f"text {burst} {n}" for n in range(10)]
            file, chunks = found_file(f"memory/{burst}.md"), [chunk_of(text) for text in texts]
            await index.replace(file, b"1", chunks, {}, frozenset())
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            async with asyncio.timeout(60):
                while (await index.counts()).done < 10 * (burst + 1):
                    await changed(queue)
            await until_async(lambda: not queue.backlogs["main"].answered, 10)
            assert not isinstance(queue.state_of("main"), WaitingForConfirmation)
    await index.close()
