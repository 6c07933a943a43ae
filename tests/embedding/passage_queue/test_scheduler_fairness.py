"""Several agents at one embedding queue: whose turn it is, and whose trouble it is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from memd.embedding.passage_queue import scheduler
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.providers.provider import Vectors
from memd.store.chunks import Counts
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreUnavailable
from tests.embedding.passage_queue.queues import locked, opened, queue_of, running, write
from tests.fakes import HashingProvider
from tests.wait import until_async

BULK = [f"bulk {n} " + "word " * 400 for n in range(400)]  # some thirty batches


class Stepped(HashingProvider):
    """Answers each request for passages when the test says so."""

    def __init__(self, *, rejects: Sequence[str] = ()) -> None:
        super().__init__(rejects=rejects)
        self.allowed = asyncio.Semaphore(0)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        asked = len(self.requests)
        answering = asyncio.create_task(super().embed_passages(texts))
        await until_async(lambda: len(self.requests) > asked)
        await self.allowed.acquire()
        return await answering

    async def asked(self, count: int) -> list[str]:
        """The texts of a request, once there were so many."""
        await until_async(lambda: len(self.requests) >= count, 20)
        return self.requests[count - 1]

    def let_all(self) -> None:
        for _ in range(10_000):
            self.allowed.release()


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    yield store
    await store.close()


def waits(queue: EmbeddingQueue) -> int:
    """How many agents wait for their turn."""
    return queue.waiting_for_slots


async def test_one_note_goes_before_what_is_left_of_large_agents(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """With hundreds of chunks of several agents waiting, a note of another one is in the very next request."""
    provider = Stepped()
    bulky = [await opened(tmp_path, f"bulky{n}", [f"{n} {text}" for text in BULK[:100]]) for n in range(4)]
    small = await opened(tmp_path, "small", ["one note"])
    queue = queue_of(provider, cache)
    async with running(queue, *bulky, small):
        for number, index in enumerate(bulky):
            queue.serve(IndexToEmbed(f"bulky{number}", index, use_cache=True))
        for count in range(1, 10):  # by then each had the turn that it was in a hurry for
            await provider.asked(count)
            provider.allowed.release()
        await provider.asked(10)
        await until_async(lambda: waits(queue) == 4)
        queue.serve(IndexToEmbed("small", small, use_cache=True))
        await until_async(lambda: waits(queue) == 5)
        provider.allowed.release()
        assert await provider.asked(11) == ["one note"]


async def test_a_note_of_a_large_agent_goes_before_what_is_left_of_all(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Whoever is served again leaves the line in which it waits, however long that is."""
    provider = Stepped()
    bulky = [await opened(tmp_path, f"bulky{n}", [f"{n} {text}" for text in BULK[:100]]) for n in range(4)]
    queue = queue_of(provider, cache)
    async with running(queue, *bulky):
        for number, index in enumerate(bulky):
            queue.serve(IndexToEmbed(f"bulky{number}", index, use_cache=True))
        for count in range(1, 10):
            await provider.asked(count)
            provider.allowed.release()
        last = int((await provider.asked(10))[0][0])  # it waits for its next turn, after all others
        await until_async(lambda: waits(queue) == 4)
        await write(bulky[last], "memory/new.md", "one note", 2)
        queue.serve(IndexToEmbed(f"bulky{last}", bulky[last], use_cache=True))
        for count in (11, 12, 13):  # another may be before it, and one more while it reads what is new
            await until_async(lambda: waits(queue) == 4)
            provider.allowed.release()
            await provider.asked(count)
        assert any("one note" in texts for texts in provider.requests[10:13])


async def test_all_have_their_turn(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Agents with much to embed get one batch each, round after round; one that is written to all the time, every other."""
    provider = Stepped()
    bulky = [await opened(tmp_path, f"bulky{n}", [f"agent{n} {text}" for text in BULK]) for n in range(3)]
    busy = await opened(tmp_path, "busy", ["note 0"])
    queue = queue_of(provider, cache)
    async with running(queue, *bulky, busy):
        for number, index in enumerate(bulky):
            queue.serve(IndexToEmbed(f"bulky{number}", index, use_cache=True))
        await provider.asked(1)
        await until_async(lambda: waits(queue) == 3)
        for count in range(1, 20):
            await provider.asked(count)
            queue.serve(IndexToEmbed("busy", busy, use_cache=True))
            await until_async(lambda: waits(queue) >= 4)
            provider.allowed.release()
            await provider.asked(count + 1)
            await write(busy, f"memory/{count}.md", f"note {count}", count)
        whose = ["busy" if one[0].startswith("note") else one[0].split()[0] for one in provider.requests]
        for number in range(3):
            assert whose.count(f"agent{number}") >= 3
        assert 7 <= whose.count("busy") <= 10


async def test_what_was_written_last_goes_before_the_rest_of_the_same_agent(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """An edit of the agent that is being indexed is in its next batch, first."""
    provider = Stepped()
    index = await opened(tmp_path, "main", BULK)
    queue = queue_of(provider, cache)
    async with running(queue, index):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await provider.asked(1)
        await write(index, "memory/new.md", "written last", 2)
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        provider.allowed.release()
        assert (await provider.asked(2))[0] == "written last"


@pytest.mark.parametrize("use_cache", [True, False])
async def test_a_store_that_fails_holds_up_its_own_agent_alone(
    tmp_path: Path, cache: EmbeddingStore, use_cache: bool
) -> None:
    """An index that cannot be written has its trouble named; others get their vectors, and it does once it can."""
    provider = HashingProvider()
    failing = await opened(tmp_path, "failing", ["failing text"])
    sound = await opened(tmp_path, "sound", ["sound text", *BULK[:50]])
    queue = queue_of(provider, cache)
    async with running(queue, failing, sound):
        async with locked(failing, busy_ms=1):
            queue.serve(IndexToEmbed("failing", failing, use_cache=use_cache))
            await until_async(lambda: queue.reason_of("failing"))
            queue.serve(IndexToEmbed("sound", sound, use_cache=use_cache))
            assert await queue.wait_for(sound) == (0, None)
            assert (queue.reason, queue.reason_of("sound")) == (None, None)
            waiting, reason = await queue.wait_for(failing)
            assert waiting == 1
            assert reason
            assert queue.store_trouble("failing") == reason
            assert queue.store_trouble("sound") is None
            for _ in range(3):  # told that something was written, it tries again, and pays for nothing
                queue.serve(IndexToEmbed("failing", failing, use_cache=use_cache))
                backlog = queue.backlogs["failing"]
                await until_async(lambda backlog=backlog: not backlog.anew.is_set())  # type: ignore[misc]
                await until_async(lambda: queue.reason_of("failing"))
        queue.serve(IndexToEmbed("failing", failing, use_cache=use_cache))
        await until_async(lambda: failing.has_vectors, 10)
        assert await queue.wait_for(failing) == (0, None)
        assert queue.reason_of("failing") is queue.store_trouble("failing") is None
        assert sum("failing text" in request for request in provider.requests) <= (1 if use_cache else 2)


async def test_a_store_that_blocks_holds_up_nobody(tmp_path: Path, cache: EmbeddingStore) -> None:
    """While one index waits for another program to let it write, another gets all its vectors, and is told so."""
    provider = HashingProvider()
    blocked = await opened(tmp_path, "blocked", ["blocked text"])
    sound = await opened(tmp_path, "sound", BULK[:50])
    queue = queue_of(provider, cache)
    async with running(queue, blocked, sound):
        async with locked(blocked, busy_ms=30_000):
            queue.serve(IndexToEmbed("blocked", blocked, use_cache=True))
            storing = queue.backlogs["blocked"].storing
            await until_async(storing.locked)
            queue.serve(IndexToEmbed("sound", sound, use_cache=True))
            assert await queue.wait_for(sound) == (0, None)
            assert not blocked.has_vectors
            assert storing.locked()
        assert await queue.wait_for(blocked) == (0, None)


async def test_refused_texts_of_one_agent_do_not_hold_up_another(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Between two refusals the other agent has its turn."""
    provider = Stepped(rejects=["poison"])
    poisoned = await opened(tmp_path, "poisoned", [f"poison {n}" for n in range(50)])
    sound = await opened(tmp_path, "sound", ["sound text"])
    queue = queue_of(provider, cache)
    async with running(queue, poisoned, sound):
        queue.serve(IndexToEmbed("poisoned", poisoned, use_cache=True))
        await provider.asked(1)
        queue.serve(IndexToEmbed("sound", sound, use_cache=True))
        await until_async(lambda: waits(queue) == 1)
        provider.allowed.release()
        assert await provider.asked(2) == ["sound text"]
        provider.let_all()
        assert await queue.wait_for(poisoned) == (0, None)
        assert (await poisoned.counts()).refused == 50


@pytest.mark.parametrize("use_cache", [True, False])
async def test_a_refusal_is_no_trouble_of_an_agent_that_was_stopped(
    tmp_path: Path, cache: EmbeddingStore, use_cache: bool
) -> None:
    """A text of one agent is refused while the store of another closes: the first goes on to its end."""
    provider = HashingProvider(rejects=["poison"])
    closed = await opened(tmp_path, "closed", ["text"])
    sound = await opened(tmp_path, "sound", ["a poison text", "fine", "a poison text"])
    queue = queue_of(provider, cache)
    async with running(queue, sound):
        queue.serve(IndexToEmbed("closed", closed, use_cache=use_cache))
        assert await queue.wait_for(closed) == (0, None)
        await closed.close()
        queue.serve(IndexToEmbed("sound", sound, use_cache=use_cache))
        assert await queue.wait_for(sound) == (0, None)
        counts = await sound.counts()
        assert (counts.done, counts.refused) == (1, 2)
        assert sum("a poison text" in one for one in provider.requests) == 1


async def test_a_damaged_index_is_told_and_costs_nobody_else(tmp_path: Path, cache: EmbeddingStore) -> None:
    """The agent whose index is damaged hears of it, once; the others are served."""
    provider = HashingProvider()
    damaged = await opened(tmp_path, "damaged", ["text"])
    sound = await opened(tmp_path, "sound", ["sound text"])
    vandal = apsw.Connection(str(damaged.file))
    vandal.execute("DROP TABLE chunks")
    vandal.close()
    queue = queue_of(provider, cache)
    async with running(queue, damaged, sound):
        queue.serve(IndexToEmbed("damaged", damaged, use_cache=True))
        queue.serve(IndexToEmbed("sound", sound, use_cache=True))
        assert await queue.wait_for(sound) == (0, None)
        await until_async(lambda: damaged.damage.reason)
        assert damaged.damage.reported.version == 1
    assert sound.damage.reason is None


@pytest.mark.parametrize("failure", [StoreDamaged("no such table"), StoreUnavailable("the disk is full")])
async def test_an_index_that_cannot_be_counted_is_no_trouble_of_who_has_done_its_work(
    tmp_path: Path, cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """Then nobody knows how much the cache has to hold, and nothing is taken out of it."""
    other = await opened(tmp_path, "other", ["text"])
    sound = await opened(tmp_path, "sound", ["sound text"])
    queue = queue_of(HashingProvider(), cache)
    asked, pruned, count = asyncio.Event(), 0, other.counts
    own: set[asyncio.Task[Any]] = set()  # the tasks of the other agent, and of this test

    async def failing() -> Counts:
        if not own or asyncio.current_task() in own:
            return await count()
        asked.set()
        raise failure

    async def prune(_: int) -> bool:
        nonlocal pruned
        pruned += 1
        return False

    monkeypatch.setattr(other, "counts", failing)
    monkeypatch.setattr(queue.known, "prune", prune)
    async with running(queue, other, sound):
        queue.serve(IndexToEmbed("other", other, use_cache=True))
        assert await queue.wait_for(other) == (0, None)
        await until_async(lambda: pruned)
        own, pruned = asyncio.all_tasks(), 0
        queue.serve(IndexToEmbed("sound", sound, use_cache=True))
        await asyncio.wait_for(asked.wait(), 20)
        await write(sound, "memory/b.md", "a new text", 1)
        queue.serve(IndexToEmbed("sound", sound, use_cache=True))
        assert await queue.wait_for(sound) == (0, None)
        assert queue.reason_of("sound") is None
    assert (sound.damage.reason, pruned) == (None, 0)


async def test_what_nobody_foresaw_in_storing_is_the_trouble_of_one_agent_and_passes(
    tmp_path: Path, cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged with its place and told as long as it lasts; the agent's vectors are stored at the next attempt."""
    provider = HashingProvider()
    odd = await opened(tmp_path, "odd", ["text"])
    sound = await opened(tmp_path, "sound", ["sound text"])
    failures, add_vectors = [ValueError("nobody foresaw this")], odd.add_vectors

    async def fails_first(*args: Any) -> int:
        if failures:
            raise failures.pop()
        return await add_vectors(*args)

    monkeypatch.setattr(odd, "add_vectors", fails_first)
    monkeypatch.setattr(scheduler, "delay_s", lambda *_: 3600.0)
    queue = queue_of(provider, cache)
    with capture_logs() as logs:
        async with running(queue, odd, sound):
            queue.serve(IndexToEmbed("odd", odd, use_cache=True))
            queue.serve(IndexToEmbed("sound", sound, use_cache=True))
            assert await queue.wait_for(sound) == (0, None)
            waiting, reason = await queue.wait_for(odd)
            assert waiting == 1
            assert reason is not None
            assert "ValueError" in reason
            assert queue.store_trouble("odd") is None
            queue.serve(IndexToEmbed("odd", odd, use_cache=True))
            await until_async(lambda: queue.reason_of("odd") is None)
            assert await queue.wait_for(odd) == (0, None)
    assert [one["agent"] for one in logs if one["event"] == "embed.failed"] == ["odd"]


async def test_vectors_come_though_the_cache_is_broken(tmp_path: Path) -> None:
    """The cache only saves work: where its file cannot be opened, every agent gets its vectors all the same."""
    (tmp_path / "no directory").touch()
    cache = EmbeddingStore(tmp_path / "no directory" / "embeddings.sqlite")
    await cache.open()
    assert cache.failure is not None
    provider = HashingProvider()
    indexes = [await opened(tmp_path, name, [f"text of {name}", "shared"]) for name in ("one", "two")]
    queue = queue_of(provider, cache)
    async with running(queue, *indexes):
        for index in indexes:
            queue.serve(IndexToEmbed(index.file.stem, index, use_cache=True))
        for index in indexes:
            assert await queue.wait_for(index) == (0, None)
    await cache.close()


async def test_equal_texts_of_several_agents_are_embedded_once(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Agents that come at the same moment with the same notes pay for them once; each has its own vectors."""
    provider = HashingProvider()
    indexes = [await opened(tmp_path, f"twin{n}", BULK[:60]) for n in range(4)]
    queue = queue_of(provider, cache)
    for index in indexes:
        queue.serve(IndexToEmbed(index.file.stem, index, use_cache=True))
    async with running(queue, *indexes):
        for index in indexes:
            assert await queue.wait_for(index) == (0, None)
            assert (await index.counts()).done == 60
        assert sum(map(len, provider.requests)) == 60


async def test_an_agent_that_goes_gives_up_its_turn(tmp_path: Path, cache: EmbeddingStore) -> None:
    """Stopped in the middle of a batch, it is in nobody's way, and may come back with another index."""
    provider = Stepped()
    going = await opened(tmp_path, "going", ["going text"])
    back = await opened(tmp_path, "back", ["text of the one that is back"])
    other = await opened(tmp_path, "other", ["other text"])
    queue = queue_of(provider, cache)
    async with running(queue, back, other):
        queue.serve(IndexToEmbed("going", going, use_cache=True))
        await provider.asked(1)
        queue.serve(IndexToEmbed("other", other, use_cache=True))
        await going.close()
        await queue.leave("going")
        queue.serve(IndexToEmbed("going", back, use_cache=True))
        provider.let_all()
        assert await queue.wait_for(other) == (0, None)
        assert await queue.wait_for(back) == (0, None)


async def test_a_provider_that_is_down_is_no_trouble_of_one_agent(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """Every agent is told; when nobody wants anything of it any more, the trouble is over."""
    provider = HashingProvider()
    provider.fail_next(1000)
    index = await opened(tmp_path, "main", ["text"])
    queue = queue_of(provider, cache)
    async with running(queue):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: queue.reason)
        assert queue.reason_of("main") == queue.reason_of("another") == queue.reason
        await index.close()
        with contextlib.suppress(TimeoutError):
            await queue.leave("main")
        assert queue.reason is None


async def test_a_provider_that_is_down_stays_in_trouble_while_somebody_wants_it(
    tmp_path: Path, cache: EmbeddingStore
) -> None:
    """An agent that goes leaves the pause to those that wait; one that wants nothing does not keep it."""
    provider = HashingProvider()
    provider.fail_next(1000)
    going, waiting = (
        await opened(tmp_path, "going", ["text"]),
        await opened(tmp_path, "waiting", ["other text"]),
    )
    content = await opened(tmp_path, "content", [])
    queue = queue_of(provider, cache)
    async with running(queue, waiting, content):
        for name, index in (("going", going), ("waiting", waiting), ("content", content)):
            queue.serve(IndexToEmbed(name, index, use_cache=True))
        await until_async(lambda: queue.reason)
        await going.close()
        await queue.leave("going")
        assert queue.reason
        await waiting.remove(["memory/a.md"])
        queue.serve(IndexToEmbed("waiting", waiting, use_cache=True))
        await until_async(lambda: queue.reason is None)
