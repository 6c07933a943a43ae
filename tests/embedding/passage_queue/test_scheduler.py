import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from memd.chunk.split import parts_of
from memd.domain_types import ChunkId, TextHash
from memd.embedding.health_transitions import Retrying
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import STALLED_S, EmbeddingQueue
from memd.providers.provider import EmbedUnavailable, Vectors
from memd.store import embedding_cache
from memd.store.embedding_cache import CachedTexts, EmbeddingStore, KnownVectors, Space
from memd.store.index import Index
from tests.bounds import shipped
from tests.clock import Clock
from tests.embedding.passage_queue.queues import (
    FINGERPRINT,
    Poisoned,
    changed,
    healthy,
    opened,
    queue_of,
    running,
    write,
)
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    yield store
    await store.close()


async def worked(queue: EmbeddingQueue, *indexes: Index) -> list[tuple[int, str | None]]:
    """Let the queue run until it has settled all these indexes."""
    running = asyncio.create_task(queue.run())
    try:
        async with asyncio.timeout(60):
            return [await queue.wait_for(index) for index in indexes]
    finally:
        running.cancel()


async def test_every_waiting_chunk_gets_its_vector(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Nothing waits when the queue has settled, and equal texts are embedded once."""
    provider = HashingProvider()
    index = await opened(tmp_path, "main", [f"text {n % 30}" for n in range(60)])
    queue = queue_of(provider, cache)
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    assert await worked(queue, index) == [(0, None)]
    assert (await index.counts()).done == 60
    assert sum(map(len, provider.requests)) == 30
    await index.close()


class Published:
    """What an agent has published: a vector of the first text that waits."""

    asked_up_to: int | None = None

    def __init__(self) -> None:
        self.asked = 0

    async def next_found(
        self, index: Index, space: Space
    ) -> Sequence[tuple[ChunkId, TextHash, bytes]] | None:
        assert space == index.space
        self.asked += 1
        if self.asked > 1:
            return None
        first = await index.waiting(1)
        vectors = HashingProvider().embed([one.text for one in first])
        return [(one.id, one.hash, vector.tobytes()) for one, vector in zip(first, vectors, strict=True)]

    def leave_out(self) -> None:
        raise AssertionError


async def test_what_is_published_is_not_embedded(tmp_path: Path, cache: EmbeddingStore) -> None:
    """It is looked up when texts come, before any is sent, and not at each request."""
    provider, published = Poisoned(), Published()  # one text a request
    index = await opened(tmp_path, "main", ["text 0", "text 1", "text 2", "text 3"])
    published_text = (await index.waiting(1))[0].text
    queue = EmbeddingQueue(provider, cache, CacheBound(1000), healthy())
    queue.serve(IndexToEmbed("main", index, use_cache=True, published=published))
    assert await worked(queue, index) == [(0, None)]
    await index.close()
    assert {text for request in provider.requests for text in request} == (
        {"text 0", "text 1", "text 2", "text 3"} - {published_text}
    )
    assert len(provider.requests) == 3
    assert published.asked == 2


class PublishedWhileAsked:
    """All notes but the first are published; one is written when nothing was left to look up."""

    asked_up_to: int | None = None

    def __init__(self, queue: EmbeddingQueue) -> None:
        self.is_written = False
        self._queue = queue

    async def next_found(
        self, index: Index, space: Space
    ) -> Sequence[tuple[ChunkId, TextHash, bytes]] | None:
        waiting = await index.waiting(100)
        if found := [one for one in waiting if "published" in one.text]:
            vectors = HashingProvider().embed([one.text for one in found])
            return [(one.id, one.hash, vector.tobytes()) for one, vector in zip(found, vectors, strict=True)]
        self.asked_up_to = max((one.id for one in waiting), default=self.asked_up_to)
        if not self.is_written:
            self.is_written = True
            note = chunk_of("a published note", 1)
            await index.replace(found_file("memory/b.md"), b"1", [note], {}, frozenset())
            self._queue.serve(IndexToEmbed("main", index, use_cache=True, published=self))
        return None

    def leave_out(self) -> None:
        raise AssertionError


async def test_what_is_written_while_it_is_looked_up_is_looked_up_before_it_is_sent(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Else a vector that is there already would be paid for again."""
    provider = HashingProvider()
    index = await opened(tmp_path, "main", ["own text"])
    queue = queue_of(provider, cache)
    published = PublishedWhileAsked(queue)
    queue.serve(IndexToEmbed("main", index, use_cache=True, published=published))
    assert await worked(queue, index) == [(0, None)]
    assert (await index.counts()).done == 2
    await index.close()
    assert provider.requests == [["own text"]]


async def test_who_waits_for_vectors_hears_of_what_waits_no_more(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Where a pass takes it away, or a rebuild brings its vectors, the queue has no part in it."""
    index = await opened(tmp_path, "main", ["some text"])
    queue = queue_of(HashingProvider(), cache)  # nobody runs it
    waiting = asyncio.create_task(queue.wait_for(index))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await index.remove(["memory/a.md"])
    async with asyncio.timeout(STALLED_S / 2):
        assert await waiting == (0, None)
    await index.close()


async def test_an_index_that_has_the_vectors_of_another_model_by_now_gets_none(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """A rebuild has put it in place of the one that was served; nothing is paid for, and the queue rests."""
    provider = HashingProvider()
    index = await opened(tmp_path, "main", ["some text"])
    queue = queue_of(provider, cache)
    async with running(queue, index):
        await index.adopt(msgspec.structs.replace(FINGERPRINT, model="another"))
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: queue.backlogs["main"].is_idle)
        assert provider.requests == []
        assert (await index.counts()).done == 0
        assert queue.reason_of("main") is None
        # It is embedded, as soon as it is for this model.
        await index.adopt(FINGERPRINT)
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        assert await queue.wait_for(index) == (0, None)
    assert provider.requests == [["some text"]]


async def test_another_index_of_an_agent_takes_the_place_of_the_first(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Nobody works for the first any more; when it is closed, the agent goes on."""
    provider = HashingProvider()
    first, second = [await opened(tmp_path, name, [f"text of the {name}"]) for name in ("first", "second")]
    queue = queue_of(provider, cache)
    async with running(queue, second):
        queue.serve(IndexToEmbed("main", first, use_cache=True))
        assert await queue.wait_for(first) == (0, None)
        work = queue.backlogs["main"].task
        assert work is not None
        queue.serve(IndexToEmbed("main", second, use_cache=True))
        assert await queue.wait_for(second) == (0, None)
        await until_async(work.done)
        await first.close()
        await write(second, "memory/b.md", "more", 2)
        queue.serve(IndexToEmbed("main", second, use_cache=True))
        assert await queue.wait_for(second) == (0, None)


async def test_an_agent_whose_index_was_closed_is_served_no_more(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """It is no trouble of the others: they go on."""
    first, second = [await opened(tmp_path, name, [f"text of {name}"]) for name in ("first", "second")]
    queue = queue_of(HashingProvider(), cache)
    await first.close()
    async with running(queue, second):
        for index in (first, second):
            queue.serve(IndexToEmbed(index.file.stem, index, use_cache=True))
        assert await queue.wait_for(second) == (0, None)
        await until_async(lambda: list(queue.backlogs) == ["second"])
        assert queue.reason_of("first") is None


async def test_what_another_agent_embedded_costs_nothing(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Vectors are shared through the cache, whoever asked first."""
    provider = HashingProvider()
    first = await opened(tmp_path, "one", ["shared text"])
    second = await opened(tmp_path, "two", ["shared text"])
    queue = queue_of(provider, cache)
    queue.serve(IndexToEmbed("one", first, use_cache=True))
    await worked(queue, first)
    queue.serve(IndexToEmbed("two", second, use_cache=True))
    await worked(queue, second)
    assert len(provider.requests) == 1
    assert second.has_vectors
    await first.close()
    await second.close()


async def test_an_agent_without_a_cache_takes_nothing_out_of_that_of_others(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Its settings say that it has none."""
    provider = HashingProvider()
    one, other = [await opened(tmp_path, name, ["the same text"]) for name in ("one", "other")]
    queue = queue_of(provider, cache)
    async with running(queue, one, other):
        for index, use_cache in ((one, True), (other, False)):
            queue.serve(IndexToEmbed(index.file.stem, index, use_cache=use_cache))
            assert await queue.wait_for(index) == (0, None)
    assert provider.requests == [["the same text"]] * 2


async def test_agents_take_turns(tmp_path: Path, cache: EmbeddingStore) -> None:
    """A small agent does not wait for a large one to be done."""
    provider = HashingProvider(delay_s=0.05)
    large = await opened(tmp_path, "large", [f"large {n} " + "word " * 200 for n in range(300)])
    small = await opened(tmp_path, "small", ["small text"])
    queue = queue_of(provider, cache)
    queue.serve(IndexToEmbed("large", large, use_cache=True))
    queue.serve(IndexToEmbed("small", small, use_cache=True))
    await worked(queue, small)
    turn = next(n for n, request in enumerate(provider.requests) if "small text" in request)
    assert turn <= 2  # after one from the quick queue, one from the long one
    await large.close()
    await small.close()


async def test_text_that_cannot_be_embedded_is_set_aside_for_good(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """One refused text keeps no other from its vector, and is never sent again."""
    provider = HashingProvider(rejects=["poison"])
    index = await opened(tmp_path, "main", ["fine one", "a poison text", "fine two"])
    queue = queue_of(provider, cache)
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    assert await worked(queue, index) == [(0, None)]
    counts = await index.counts()
    assert (counts.done, counts.refused) == (2, 1)
    again = await opened(tmp_path, "again", ["a poison text"])
    asked = len(provider.requests)
    queue.serve(IndexToEmbed("again", again, use_cache=True))
    assert await worked(queue, again) == [(0, None)]
    assert len(provider.requests) == asked
    await index.close()
    await again.close()


async def test_a_provider_that_is_down_is_asked_again(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Whoever waits is told why, and the work is done when the provider is back."""
    provider = HashingProvider()
    provider.fail_next(10**9)  # until it is told otherwise
    index = await opened(tmp_path, "main", ["text"])
    queue = EmbeddingQueue(provider, cache, CacheBound(1000), healthy(0.01))
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    running = asyncio.create_task(queue.run())
    async with asyncio.timeout(60):
        waiting, reason = await queue.wait_for(index)
        assert waiting == 1
        assert reason
        provider.fail_next(0)
        while (await queue.wait_for(index))[0]:
            pass
    assert queue.reason is None
    assert (
        queue.eta_s(10) is None
    )  # one text alone, at the end of an outage, is no measure of how fast others come
    running.cancel()
    await index.close()


async def test_the_cache_keeps_what_was_used_last(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Above the limit, the vectors that were not used for longest go."""
    provider = HashingProvider()
    queue = queue_of(provider, cache, max_entries=2)
    old = chunk_of("old")
    await queue.known.put({old.hash: b"\0" * 4})
    await asyncio.sleep(0.01)
    await queue.known.put({chunk_of("newer").hash: b"\0" * 4, chunk_of("newest").hash: b"\0" * 4})
    await asyncio.sleep(0.01)
    assert (await queue.known.look_up([old.hash])).vectors  # a hit makes it young again
    assert await queue.known.prune(2) == 1
    assert (await queue.known.look_up([old.hash])).vectors
    assert len((await queue.known.look_up([chunk_of("newer").hash, chunk_of("newest").hash])).vectors) == 1


async def test_vectors_of_other_models_age_out(tmp_path: Path, cache: EmbeddingStore) -> None:
    """After each pass of work the oldest go beyond what is kept, whosever they are: of a model that nobody uses any more first."""
    gone = KnownVectors(cache, ("openai", "of last year", "key"), clock=lambda: 1.0)
    await gone.put({chunk_of(f"old {n}").hash: b"\0" * 4 for n in range(10)})
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(8)])
    queue = queue_of(HashingProvider(), cache, max_entries=10)
    prune, pruned = cache.prune, asyncio.Event()

    async def told(max_entries: int, now: float) -> int:
        done = await prune(max_entries, now)
        pruned.set()
        return done

    cache.prune = told  # type: ignore[method-assign]
    running = asyncio.create_task(queue.run())
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    hashes = [chunk_of(f"old {n}").hash for n in range(10)]
    async with asyncio.timeout(60):
        assert await queue.wait_for(index) == (0, None)
        await pruned.wait()
    assert len(await gone.held(hashes)) == 8
    assert len(await queue.known.held([chunk_of(f"text {n}").hash for n in range(8)])) == 8
    running.cancel()
    await index.close()


async def test_the_cache_keeps_the_vectors_of_parts_too(tmp_path: Path, cache: EmbeddingStore) -> None:
    """However little is configured, an index that is built anew finds there all that it holds."""
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(msgspec.structs.replace(FINGERPRINT, parts=True))
    text = "\n".join(
        f"- a line about matter number {n}, which is wide enough to be told alone" for n in range(9)
    )
    whole = msgspec.structs.replace(chunk_of(text), parts=parts_of(text))
    await index.replace(found_file("memory/a.md"), b"1", [whole], {}, frozenset())
    queue = queue_of(HashingProvider(), cache, max_entries=1)
    prune, pruned = cache.prune, asyncio.Event()

    async def told(max_entries: int, now: float) -> int:
        done = await prune(max_entries, now)
        pruned.set()
        return done

    cache.prune = told  # type: ignore[method-assign]
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        assert await queue.wait_for(index) == (0, None)
        await pruned.wait()
        hashes = await index.hashes()
        assert len(hashes) > 5
        assert await queue.known.held(hashes) == set(hashes)


async def test_what_is_written_does_not_wait_until_the_cache_is_small_enough(
    tmp_path: Path, cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To drop 50,000 vectors takes seconds: an edit has its own before that is done."""
    monkeypatch.setattr(embedding_cache, "PRUNED_AT_ONCE", 1)
    index = await opened(tmp_path, "main", ["one"])
    queue = queue_of(HashingProvider(), cache, max_entries=4)
    prune, small = cache.prune, asyncio.Event()
    left: list[int] = []  # chunks that wait after each step

    async def told(max_entries: int, now: float) -> int:
        done = await prune(max_entries, now)
        left.append((await index.counts()).waiting)
        if len(left) == 3:
            await write(index, "memory/b.md", "two", 2)
            queue.serve(IndexToEmbed("main", index, use_cache=True))
        if len(left) > 3 and not done:
            small.set()
        return done

    cache.prune = told  # type: ignore[method-assign]
    old = [chunk_of(f"old {n}").hash for n in range(20)]
    await queue.known.put(dict.fromkeys(old, b"\0" * 4))
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await small.wait()
        assert await queue.known.held(old) == set(old[-2:])
        assert left[:3] == [0, 0, 0]
        assert set(left[3:]) == {0}  # the step of that moment is the last before the edit
        assert (await index.counts()).done == 2


async def test_the_cache_is_asked_for_many_texts_at_once(tmp_path: Path, cache: EmbeddingStore) -> None:
    """An index whose texts are all known costs a few look-ups, and no request."""
    provider, most = HashingProvider(), shipped("memd.embedding.passage_queue.scheduler.LOOK_AHEAD")
    texts = [f"text {n}" for n in range(2 * most + 1)]
    index = await opened(tmp_path, "main", texts)
    queue = queue_of(provider, cache, max_entries=2000)
    rows = provider.embed(texts)
    await queue.known.put({chunk_of(text).hash: row.tobytes() for text, row in zip(texts, rows, strict=True)})
    asked: list[int] = []
    look_up = queue.known.look_up

    async def counted(hashes: Sequence[TextHash]) -> CachedTexts:
        asked.append(len(hashes))
        return await look_up(hashes)

    queue.known.look_up = counted  # type: ignore[method-assign]
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    assert await worked(queue, index) == [(0, None)]
    assert asked == [most, most, 1]
    assert not provider.requests
    await index.close()


async def test_what_is_written_while_a_provider_is_down_waits_with_the_rest(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Only where it broke down at a text that is set behind others is it asked for another one at once."""
    provider = HashingProvider()
    provider.fail_next(10**9)
    index = await opened(tmp_path, "main", ["text"])
    source = IndexToEmbed("main", index, use_cache=True)
    queue = EmbeddingQueue(provider, cache, CacheBound(1000), healthy(3600.0))
    async with running(queue, index):
        queue.serve(source)
        await until_async(lambda: isinstance(queue.health.now.passages, Retrying))
        before = queue.health.now.passages
        await write(index, "memory/b.md", "other text", 2)
        queue.serve(source)
        for _ in range(30):
            await index.counts()
        assert queue.health.now.passages == before
        assert len(provider.requests) == 1


@pytest.mark.parametrize("place", [0, 1, 3])
async def test_a_text_that_a_provider_breaks_down_at_is_not_all_it_is_asked_for(
    tmp_path: Path, cache: EmbeddingStore, place: int
) -> None:
    """Wherever it stands: the next attempt is made with another text."""
    texts = ["apples", "pears", "plums"]
    texts.insert(place, "poison")
    index = await opened(tmp_path, "main", texts)
    queue = EmbeddingQueue(Poisoned(), cache, CacheBound(1000), healthy(0.001))
    queue.serve(IndexToEmbed("main", index, use_cache=True))
    running = asyncio.create_task(queue.run())
    async with asyncio.timeout(60):
        while (await index.counts()).done < 3:
            await changed(queue)
    assert [chunk.text for chunk in await index.waiting(10)] == ["poison"]
    running.cancel()
    await asyncio.wait([running])
    await index.close()


async def test_a_text_that_a_provider_breaks_down_at_does_not_come_first_whenever_the_agent_is_served_anew(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Each failure has all agents look again what they embed with, which serves them anew: that must not begin again."""
    index = await opened(tmp_path, "main", ["poison", *(f"fruit {n}" for n in range(20))])
    source = IndexToEmbed("main", index, use_cache=True)

    failures = 0
    failures_at: dict[str, int] = {}  # a text -> how often the other one had failed when it was asked for

    class Told(Poisoned):
        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            nonlocal failures
            failures_at.update(dict.fromkeys(texts, failures))
            try:
                return await super().embed_passages(texts)
            except EmbedUnavailable:
                failures += 1
                asyncio.get_running_loop().call_later(0.005, queue.serve, source)
                raise

    queue = EmbeddingQueue(Told(), cache, CacheBound(1000), healthy(0.05))
    queue.serve(source)
    running = asyncio.create_task(queue.run())
    async with asyncio.timeout(60):
        while (await index.counts()).done < 20:
            await changed(queue)
    assert [chunk.text for chunk in await index.waiting(10)] == ["poison"]
    async with asyncio.timeout(60):
        while not isinstance(queue.health.now.passages, Retrying) or queue.health.now.passages.failures < 4:
            await changed(queue)
    assert queue.health.now.passages.until - queue.health.now.passages.at > 0.025, (
        "the waits grow all the same"
    )
    # What is written now waits for one more attempt at most, which may have been put together before.
    chunks = [chunk_of("new one")]
    await index.replace(found_file("memory/b.md"), b"2", chunks, {}, frozenset())
    before = failures
    queue.serve(source)
    async with asyncio.timeout(60):
        while (await index.counts()).done < 21:
            await changed(queue)
    assert failures_at["new one"] <= before + 2
    running.cancel()
    await asyncio.wait([running])
    await index.close()


async def test_the_next_attempt_after_a_failure_is_told_with_its_time(cache: EmbeddingStore) -> None:
    """It is now where its time is over; without a failure there is none."""
    clock = Clock()
    queue = EmbeddingQueue(HashingProvider(), cache, CacheBound(1000), healthy(clock=clock))
    assert queue.next_try_s("main") is None
    queue.health.passages_failed(EmbedUnavailable("it is down"), clock())
    wait_s = queue.next_try_s("main")
    assert wait_s is not None
    clock.run(wait_s / 2)
    assert queue.next_try_s("main") == pytest.approx(wait_s / 2)
    clock.run(wait_s)
    assert queue.next_try_s("main") == 0
