"""Several requests under way at one provider."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memd.embedding.health_transitions import Retrying
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.fair_slots import InFlight
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import UNSTORED, EmbeddingQueue
from memd.providers.provider import EmbedUnavailable, ProviderLimits, Vectors
from memd.store.embedding_cache import EmbeddingStore
from tests.clock import Clock
from tests.embedding.passage_queue.queues import healthy, locked, opened, running, write
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of
from tests.wait import until_async


class Lanes(HashingProvider):
    """Takes one text a request, and some requests at once, each answered when the test says so."""

    def __init__(self, concurrency: int) -> None:
        super().__init__()
        self.concurrency = concurrency
        self.answers: dict[str, asyncio.Event] = {}
        self.in_flight: set[str] = set()
        self.most = 0
        self.is_open = False

    @property
    def limits(self) -> ProviderLimits:
        return ProviderLimits(tokens=8000, texts=1, concurrency=self.concurrency)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        [text] = texts
        self.in_flight.add(text)
        self.most = max(self.most, len(self.in_flight))
        try:
            if not self.is_open:
                await self.answers.setdefault(text, asyncio.Event()).wait()
            return await super().embed_passages(texts)
        finally:
            self.in_flight.discard(text)

    def let_all(self) -> None:
        self.is_open = True
        for answer in self.answers.values():
            answer.set()


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    yield store
    await store.close()


@asynccontextmanager
async def serving(
    tmp_path: Path, cache: EmbeddingStore, provider: Lanes, texts: list[str]
) -> AsyncIterator[tuple[EmbeddingQueue, IndexToEmbed]]:
    index = await opened(tmp_path, "main", texts)
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
    source = IndexToEmbed("main", index, use_cache=True)
    async with running(queue, index):
        queue.serve(source)
        yield queue, source


async def test_as_many_requests_are_under_way_as_the_provider_allows(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """No more, and those that the provider allows from now on: it is looked at for each."""
    provider = Lanes(4)
    async with serving(tmp_path, cache, provider, [f"text {n}" for n in range(60)]) as (queue, source):
        await until_async(lambda: len(provider.in_flight) == 4)
        assert queue.waiting_for_slots == 1
        provider.concurrency = 2
        for text in sorted(provider.in_flight)[:2]:
            provider.answers[text].set()
        await until_async(lambda: len(provider.in_flight) == 2)
        provider.let_all()
        assert await queue.wait_for(source.index) == (0, None)
        assert provider.most == 4
        assert sorted(text for [text] in provider.requests) == sorted(f"text {n}" for n in range(60))


async def test_each_vector_is_stored_when_it_is_there(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Whatever became of the requests that were sent before it."""
    provider = Lanes(4)
    async with serving(tmp_path, cache, provider, [f"text {n}" for n in range(4)]) as (queue, source):
        await until_async(lambda: len(provider.in_flight) == 4)
        provider.answers["text 2"].set()
        await until_async(lambda: source.index.has_vectors)
        assert await source.index.embedded() == [chunk_of("text 2").hash]
        provider.let_all()
        assert await queue.wait_for(source.index) == (0, None)


async def test_requests_do_not_wait_for_the_store_and_do_not_run_away_from_it(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """With a store that takes nothing, requests go on until so many answers wait for it, and then stop."""
    provider = Lanes(2)
    provider.let_all()
    texts = [f"text {n}" for n in range(100)]
    index = await opened(tmp_path, "main", texts)
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
    async with running(queue, index):
        async with locked(index, busy_ms=30_000):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            await until_async(lambda: len(provider.requests) == UNSTORED * 2)
            await until_async(lambda: not provider.in_flight)
            requests = queue.backlogs["main"].requests
            assert len(requests) == len(provider.requests) == UNSTORED * 2
        assert await queue.wait_for(index) == (0, None)
        assert len(provider.requests) == 100


async def test_lanes_are_shared_by_agents(tmp_path: Path, cache: EmbeddingStore) -> None:
    """With much waiting of two, both are under way; what is written of a third goes next."""
    provider = Lanes(4)
    indexes = {
        name: await opened(tmp_path, name, [f"{name} {n}" for n in range(60)]) for name in ("one", "two")
    }
    third = await opened(tmp_path, "three", [])
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
    async with running(queue, *indexes.values(), third):
        for name, index in indexes.items():
            queue.serve(IndexToEmbed(name, index, use_cache=True))
        answered: set[str] = set()
        for _ in range(3):
            await until_async(lambda: len(provider.in_flight - answered) == 4)
            answered.update(provider.in_flight)
            for text in answered:
                provider.answers[text].set()
        await until_async(lambda: len(provider.in_flight - answered) == 4)
        assert {text.split()[0] for text in provider.in_flight} == {"one", "two"}
        await write(third, "memory/new.md", "three 0", 5)
        queue.serve(IndexToEmbed("three", third, use_cache=True))
        await until_async(lambda: queue.waiting_for_slots == 3)
        provider.answers[min(provider.in_flight)].set()
        await until_async(lambda: "three 0" in provider.in_flight)
        provider.let_all()
        for index in (*indexes.values(), third):
            assert await queue.wait_for(index) == (0, None)


async def test_requests_end_with_the_agent(tmp_path: Path, cache: EmbeddingStore) -> None:
    """They are cancelled, not abandoned, when it is stopped."""
    provider = Lanes(4)
    async with serving(tmp_path, cache, provider, [f"text {n}" for n in range(8)]) as (queue, _):
        await until_async(lambda: len(provider.in_flight) == 4)
        await queue.leave("main")
        assert not provider.in_flight


class Fours(HashingProvider):
    """Answers four requests of a text each at once, a twentieth of a second after they were sent."""

    limits = ProviderLimits(tokens=8000, texts=1, concurrency=4)

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.four = asyncio.Barrier(4)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if self.four.n_waiting == 3:
            self.clock.run(0.05)
        await self.four.wait()
        return await super().embed_passages(texts)


async def test_the_time_to_go_counts_all_lanes(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Four requests a moment are four times as fast as one; where several agents have as much to do, each takes as much longer."""
    clock = Clock()
    provider = Fours(clock)
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(40)])
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(clock=clock))
    assert queue.eta_s(80) is None
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        assert await queue.wait_for(index) == (0, None)
        assert queue.eta_s(0) is None
        assert queue.eta_s(80) == pytest.approx(80 / 4 * 0.05, rel=0.01)


async def test_what_an_agent_that_goes_has_asked_for_is_left_to_others(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Also where it was one text alone, to see whether a provider answers that did not."""

    class Silent(HashingProvider):
        asked = 0

        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            self.asked += 1
            if self.asked == 1:
                raise EmbedUnavailable("it broke down")
            if self.asked == 2:
                await asyncio.Event().wait()
            return await super().embed_passages(texts)

    provider = Silent()
    one, other = [await opened(tmp_path, name, ["the same text"]) for name in ("one", "other")]
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(0.01))
    async with running(queue, one, other):
        queue.serve(IndexToEmbed("one", one, use_cache=True))
        await until_async(lambda: provider.asked == 2)
        queue.serve(IndexToEmbed("other", other, use_cache=True))
        await queue.leave("one")
        await until_async(lambda: other.has_vectors)
    assert provider.requests == [["the same text"]]


class Backing(Lanes):
    """Does not answer for some texts, and counts how often the queue has looked at what it may send."""

    def __init__(self, *fails: str) -> None:
        super().__init__(2)
        self.fails = fails
        self.looks = 0

    @property
    def limits(self) -> ProviderLimits:
        self.looks += 1
        assert self.looks < 1000, "the queue goes round and round, and does nothing"
        return super().limits

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if set(self.fails).intersection(texts):
            raise EmbedUnavailable("it broke down")
        return await super().embed_passages(texts)


async def test_an_agent_whose_texts_others_have_asked_for_waits_while_the_provider_backs_off(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """It does not go round and round until the answer to the others is there, which the loop then never reads."""
    provider = Backing("broken")
    one = await opened(tmp_path, "one", ["shared"])
    two = await opened(tmp_path, "two", ["shared", "broken"])
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(0.01))
    async with running(queue, one, two):
        queue.serve(IndexToEmbed("one", one, use_cache=True))
        await until_async(lambda: provider.in_flight == {"shared"})
        queue.serve(IndexToEmbed("two", two, use_cache=True))
        await until_async(lambda: isinstance(queue.health.now.passages, Retrying))
        await asyncio.sleep(0.1)  # the time to back off is over
        provider.let_all()
        await until_async(lambda: one.has_vectors and two.has_vectors)


async def test_queues_of_one_space_ask_for_no_text_twice(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Agents whose settings differ in what shapes no vector have queues of their own, and pay for a text once."""
    provider, in_flight = Lanes(2), InFlight()
    texts = [f"shared {n}" for n in range(12)]
    indexes = [await opened(tmp_path, name, texts) for name in ("one", "two")]
    queues = [
        EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(), in_flight=in_flight) for _ in indexes
    ]
    async with running(queues[0], indexes[0]), running(queues[1], indexes[1]):
        for name, queue, index in zip(("one", "two"), queues, indexes, strict=True):
            queue.serve(IndexToEmbed(name, index, use_cache=True))
        await until_async(lambda: len(provider.in_flight) == 4)
        provider.let_all()
        for queue, index in zip(queues, indexes, strict=True):
            assert await queue.wait_for(index) == (0, None)
    assert sorted(text for [text] in provider.requests) == sorted(texts)


class FailsFirst(Lanes):
    """Breaks down at its first requests."""

    failures = 3

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if self.failures:
            self.failures -= 1
            raise EmbedUnavailable("it broke down")
        return await super().embed_passages(texts)


async def test_after_failures_no_more_requests_are_under_way_than_before(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """What was sent to see whether it answers takes no place afterwards, and frees no other one."""
    provider = FailsFirst(2)
    index = await opened(tmp_path, "main", [f"text {n}" for n in range(20)])
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(0.001))
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: provider.in_flight)
        provider.answers[min(provider.in_flight)].set()
        await until_async(lambda: len(provider.in_flight) == 2)
        await until_async(lambda: queue.waiting_for_slots == 1)
        provider.let_all()
        assert await queue.wait_for(index) == (0, None)
    assert provider.most == 2


class Pairs(Lanes):
    """Takes two texts a request, and one request at a time."""

    def __init__(self) -> None:
        super().__init__(1)

    @property
    def limits(self) -> ProviderLimits:
        return ProviderLimits(tokens=8000, texts=2, concurrency=1)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        await super().embed_passages(texts[:1])
        self.requests[-1] = list(texts)
        return self.embed(texts)


async def test_of_a_request_whose_texts_another_had_embedded_the_others_are_still_first(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """They are more important than those that wait behind them."""
    provider = Pairs()
    other = await opened(tmp_path, "other", ["x"])
    index = await opened(tmp_path, "main", ["a", "b", "c", "d"])
    queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
    async with running(queue, other, index):
        queue.serve(IndexToEmbed("other", other, use_cache=True))
        await until_async(lambda: provider.in_flight)
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: queue.waiting_for_slots == 1)
        await queue.known.put({chunk_of("a").hash: provider.embed(["a"])[0].tobytes()})
        provider.let_all()
        assert await queue.wait_for(index) == (0, None)
    assert provider.requests == [["x"], ["b", "c"], ["d"]]
