"""Batch jobs out of what the scheduler has waiting, at a provider over HTTP."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import msgspec
import numpy as np
import pytest

from memd.config.settings import BatchSettings
from memd.domain_types import TextHash
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.batch_submitter import BatchSubmitter
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import LOOK_AHEAD, EmbeddingQueue
from memd.providers.batch.client import BatchClient, batch_dialect
from memd.providers.batch.job import VectorForm
from memd.providers.batch.runner import BatchRunner
from memd.providers.remote.provider import RemoteProvider
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.chunks import WaitingChunk
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.provider_records import ProviderStore
from tests.embedding.passage_queue.queues import DIMENSIONS, healthy, opened, opened_for, running
from tests.embedding.passage_queue.remote import client_at, provider_at
from tests.fakes import HashingProvider
from tests.fakes.embedding_server import EmbeddingServer
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async

TEXTS = [f"note {number} about {number % 17}" for number in range(600)]
SETTINGS = BatchSettings(enabled=True, poll_interval_ms=5)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=DIMENSIONS) as running:
        yield running


class Desk(msgspec.Struct, frozen=True):
    """A queue with batch jobs, at work."""

    queue: EmbeddingQueue
    batches: BatchRunner
    provider: RemoteProvider

    async def serve(
        self, tmp_path: Path, texts: list[str], name: str = "main", *, use_cache: bool = True
    ) -> Index:
        index = await opened_for(tmp_path, self.provider, texts, name)
        self.queue.serve(IndexToEmbed(name, index, use_cache))
        return index


@asynccontextmanager
async def desk(
    tmp_path: Path, server: EmbeddingServer, settings: BatchSettings = SETTINGS
) -> AsyncIterator[Desk]:
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    async with provider_at(server) as provider:
        asker = client_at(server)
        dialect = batch_dialect(asker.dialect, asker.account.base_url)
        assert dialect is not None
        identity = provider.identity
        space = (identity.provider, identity.model, identity.key)
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(0.02))
        client = BatchClient(dialect, asker.session, asker.account.key, rng=Random(2), clock=time.time)
        bias = None if provider.bias is None else provider.bias.passages
        ledger = ProviderStore(cache, space)
        batches = BatchRunner(client, ledger, settings, VectorForm(DIMENSIONS, bias), ChangeNotifier())
        queue.batch_submitter.use(batches, settings)
        await batches.resume()
        running = asyncio.create_task(queue.run())
        try:
            async with asyncio.timeout(60):
                yield Desk(queue, batches, provider)
        finally:
            running.cancel()
            await asyncio.wait([running])
            await batches.close()
            await asker.session.close()
            await cache.close()


async def assert_right(index: Index, texts: list[str], server: EmbeddingServer) -> None:
    """Every text has its own vector."""
    hashes = [chunk_of(text).hash for text in texts]
    stored = await index.vectors_of(hashes)
    told = np.stack([np.frombuffer(stored[text_hash], "<f4") for text_hash in hashes])
    np.testing.assert_allclose(told, server.embedder.embed(texts), atol=4e-5)


async def test_a_first_index_is_one_job(tmp_path: Path, server: EmbeddingServer) -> None:
    """Whatever number of files it comes from; nothing is sent by a plain request, and whoever waits waits for it."""
    async with desk(tmp_path, server) as at:
        index = await opened_for(tmp_path, at.provider, [])
        for part in range(0, 600, 60):
            chunks = [chunk_of(text, line) for line, text in enumerate(TEXTS[part : part + 60], 1)]
            await index.replace(found_file(f"memory/{part}.md"), b"1", chunks, {}, frozenset())
        at.queue.serve(IndexToEmbed("main", index, use_cache=True))
        assert await at.queue.wait_for(index) == (0, None)
        await assert_right(index, TEXTS, server)
        assert len(server.requests("create")) == 1
        assert not server.requests("embed")
        await index.close()


async def test_what_is_written_while_a_job_runs_is_embedded_at_once(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """A note does not wait for the job, and nothing that is in it is sent a second time."""
    server.batch_outcome = "never"
    async with desk(tmp_path, server) as at:
        index = await at.serve(tmp_path, TEXTS)
        await until_async(lambda: at.queue.note_of("main") == "in a batch job of 600 texts")
        await index.replace(found_file("memory/new.md"), b"1", [chunk_of("just written")], {}, frozenset())
        at.queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: index.has_vectors)
        assert [seen.texts for seen in server.requests("embed")] == [("just written",)]
        assert at.queue.reason_of("main") is None
        server.batch_outcome = "completed"
        assert await at.queue.wait_for(index) == (0, None)
        await assert_right(index, TEXTS, server)
        assert max(Counter(server.embedded()).values()) == 1
        await index.close()


async def test_a_job_that_nobody_waits_for_is_told(tmp_path: Path, server: EmbeddingServer) -> None:
    """With wait = false a sync ends as soon as the texts are handed over."""
    server.batch_outcome = "never"
    async with desk(tmp_path, server, BatchSettings(enabled=True, poll_interval_ms=5, wait=False)) as at:
        index = await at.serve(tmp_path, TEXTS)
        assert await at.queue.wait_for(index) == (600, "handed over to a batch job of 600 texts")
        server.batch_outcome = "completed"
        await until_async(lambda: not at.batches.jobs, 10)
        assert await at.queue.wait_for(index) == (0, None)
        await index.close()


async def test_jobs_that_fail_are_nobodys_loss(tmp_path: Path, server: EmbeddingServer) -> None:
    """Plain requests do their work; after two failures they do all of it, until a person turns jobs on again."""
    server.batch_outcome = "failed"
    async with desk(tmp_path, server) as at:
        for name in ("one", "two"):
            texts = [f"{name} {text}" for text in TEXTS]
            index = await at.serve(tmp_path, texts, name)
            assert await at.queue.wait_for(index) == (0, None)
            await assert_right(index, texts, server)
            await index.close()
            await at.queue.leave(name)
        assert (at.batches.state.is_on, at.batches.state.failures) == (False, 2)
        jobs = len(server.requests("create"))
        assert jobs == 2
        third = await at.serve(tmp_path, [f"three {text}" for text in TEXTS], "three")
        assert await at.queue.wait_for(third) == (0, None)
        assert len(server.requests("create")) == jobs
        await third.close()
        await at.queue.leave("three")
        server.batch_outcome = "completed"
        await at.batches.turn_on()
        fourth = await at.serve(tmp_path, [f"four {text}" for text in TEXTS], "four")
        assert await at.queue.wait_for(fourth) == (0, None)
        assert len(server.requests("create")) == jobs + 1
        await fourth.close()


@pytest.mark.parametrize(
    ("settings", "use_cache"),
    [
        (BatchSettings(enabled=False), True),
        (BatchSettings(enabled=True, min_chunks=601), True),
        (SETTINGS, False),
    ],
    ids=["off", "too few", "no cache"],
)
async def test_there_are_no_jobs_where_none_are_wanted(
    tmp_path: Path, server: EmbeddingServer, settings: BatchSettings, use_cache: bool
) -> None:
    """By the configuration, for few texts, and where their vectors would have no place."""
    async with desk(tmp_path, server, settings) as at:
        index = await at.serve(tmp_path, TEXTS, use_cache=use_cache)
        assert await at.queue.wait_for(index) == (0, None)
        assert not server.requests("upload")
        reason = at.queue.batch_submitter.reason(use_cache=use_cache)
        assert (reason is None) == use_cache
        await index.close()


async def test_texts_of_several_agents_share_a_job(tmp_path: Path, server: EmbeddingServer) -> None:
    """None of them has enough for one by itself; what both have is in it once."""
    async with desk(tmp_path, server, BatchSettings(enabled=True, poll_interval_ms=5, min_chunks=700)) as at:
        await at.queue.pause("one")
        one = await at.serve(tmp_path, TEXTS[:400], "one")
        await until_async(lambda: at.queue.backlogs["one"].is_idle)
        await at.queue.pause("two")
        two = await at.serve(tmp_path, TEXTS[350:] + [f"two {text}" for text in TEXTS[:200]], "two")
        await until_async(lambda: at.queue.backlogs["two"].is_idle)
        await at.queue.switches.pause("two", paused=False)
        await at.queue.resume("one")
        assert await at.queue.wait_for(one) == (0, None)
        assert await at.queue.wait_for(two) == (0, None)
        assert len(server.requests("create")) == 1
        assert max(Counter(server.embedded()).values()) == 1
        await one.close()
        await two.close()


async def test_texts_of_a_paused_agent_go_into_no_job_of_another(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """However many of them wait."""
    async with desk(tmp_path, server) as at:
        await at.queue.pause("other")
        other = await at.serve(tmp_path, [f"other {number}" for number in range(300)], "other")
        await until_async(lambda: at.queue.backlogs["other"].open == 300)
        index = await at.serve(tmp_path, TEXTS)
        assert await at.queue.wait_for(index) == (0, None)
        assert set(server.embedded()) == set(TEXTS)
        assert len(server.requests("create")) == 1
        assert (await other.counts()).done == 0
        await index.close()
        await other.close()


async def test_texts_that_were_not_looked_at_go_into_no_job_of_another(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be more than is sent without a confirmation: that is known when they were."""
    async with desk(tmp_path, server) as at:
        other = await opened_for(tmp_path, at.provider, [f"other {number}" for number in range(30)], "other")
        waiting, looks = other.waiting, asyncio.Event()

        async def slowly(most: int, passed_over: frozenset[TextHash] = frozenset()) -> list[WaitingChunk]:
            if most == LOOK_AHEAD:
                looks.set()
                await asyncio.Event().wait()
            return await waiting(most, passed_over)

        monkeypatch.setattr(other, "waiting", slowly)
        at.queue.serve(IndexToEmbed("other", other, use_cache=True))
        await looks.wait()
        index = await at.serve(tmp_path, TEXTS)
        assert await at.queue.wait_for(index) == (0, None)
        assert set(server.embedded()) == set(TEXTS)
        await at.queue.leave("other")
        await index.close()
        await other.close()


async def test_another_agents_index_that_fails_stops_no_job(tmp_path: Path, server: EmbeddingServer) -> None:
    """What can be read is handed over."""
    async with desk(tmp_path, server) as at:
        await at.queue.pause("broken")
        broken = await at.serve(tmp_path, TEXTS[:30], "broken")
        await until_async(lambda: at.queue.backlogs["broken"].is_idle)
        await at.queue.switches.pause("broken", paused=False)
        await broken.close()
        index = await at.serve(tmp_path, TEXTS)
        assert await at.queue.wait_for(index) == (0, None)
        assert len(server.requests("create")) == 1
        await index.close()


class Jobs:
    """Batch jobs, as far as who hands texts over looks at them."""

    def __init__(self, *, jobs: int = 0, claimed: Sequence[bytes] = (), reason: str | None = None) -> None:
        self.jobs = jobs
        self.held = {TextHash(one) for one in claimed}
        self.reason = reason
        self.is_open = True
        self.changes = ChangeNotifier()
        self.submitted: list[dict[TextHash, str]] = []

    @property
    def claimed(self) -> int:
        return len(self.held)

    def holds(self, text_hash: TextHash) -> bool:
        return text_hash in self.held

    def takes(self, text_hash: TextHash) -> bool:
        return text_hash != b"refused"

    def held_of(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        return frozenset(self.held.intersection(hashes))

    async def submit(self, texts: dict[TextHash, str]) -> None:
        self.submitted.append(dict(texts))
        self.held.update(texts)


class Cached:
    """A cache that knows some texts."""

    def __init__(self, *, held: Sequence[bytes] = (), refused: Sequence[bytes] = ()) -> None:
        self.store = SimpleNamespace(failure=None)
        self._held, self._refused = frozenset(held), frozenset(refused)

    async def held(self, hashes: Collection[bytes]) -> frozenset[bytes]:
        return self._held.intersection(hashes)

    async def refused(self, hashes: Collection[bytes]) -> frozenset[bytes]:
        return self._refused.intersection(hashes)


def submitter(
    jobs: Jobs | None = None, *, known: Cached | None = None, wait: bool = False, min_chunks: int = 2
) -> BatchSubmitter:
    """Who hands texts to jobs; None: there are none."""
    made = BatchSubmitter(cast("KnownVectors", known or Cached()))
    if jobs is not None:
        made.use(cast("BatchRunner", jobs), BatchSettings(enabled=True, wait=wait, min_chunks=min_chunks))
    return made


@pytest.mark.parametrize(
    ("jobs", "wait", "note"),
    [
        (None, False, None),
        (Jobs(), False, None),
        (Jobs(reason="the quota is used up"), False, "the quota is used up"),
        (Jobs(jobs=1, claimed=[b"1"]), False, "handed over to a batch job of 1 text"),
        (Jobs(jobs=2, claimed=[b"1", b"2"]), True, "in 2 batch jobs of 2 texts"),
    ],
)
def test_what_texts_in_jobs_wait_for_is_told(jobs: Jobs | None, note: str | None, *, wait: bool) -> None:
    """Nothing, where there are none."""
    made = submitter(jobs, wait=wait)
    assert made.note == note
    assert jobs is None or made.is_waited_for is wait
    assert made.is_enabled is (jobs is not None)


@pytest.mark.parametrize("wait", [False, True])
async def test_what_waits_in_jobs_is_told_of_the_agent_whose_it_is(tmp_path: Path, *, wait: bool) -> None:
    """Of one all of whose texts have their vectors, or that is not served, nothing."""
    indexes = [await opened(tmp_path, name, [f"text of {name}"]) for name in ("one", "other")]
    [in_job] = await indexes[0].waiting_hashes()
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    queue = EmbeddingQueue(HashingProvider(), cache, CacheBound(10), healthy())
    jobs = Jobs(jobs=1, claimed=[in_job])
    queue.batch_submitter.use(cast("BatchRunner", jobs), BatchSettings(enabled=True, wait=wait))
    async with running(queue, *indexes):
        for index in indexes:
            queue.serve(IndexToEmbed(index.file.stem, index, use_cache=True))
        assert await queue.wait_for(indexes[1]) == (0, None)
        await until_async(lambda: all(one.is_idle for one in queue.backlogs.values()))
        told = "in a batch job of 1 text" if wait else "handed over to a batch job of 1 text"
        assert [queue.note_of(agent) for agent in ("one", "other", "none")] == [told, None, None]
        left = [queue.only_jobs_left(agent) for agent in ("one", "other", "none")]
        assert left == [not wait, False, False]
    await cache.close()


async def test_who_has_no_cache_does_not_wait_while_texts_of_another_are_put_into_a_job(
    tmp_path: Path,
) -> None:
    """None of its own go there."""
    index = await opened(tmp_path, "main", [f"text {number}" for number in range(30)])
    other = await opened(tmp_path, "other", ["a text of another"])
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    queue = EmbeddingQueue(HashingProvider(), cache, CacheBound(1000), healthy())

    class Stuck(Jobs):
        async def submit(self, texts: dict[TextHash, str]) -> None:
            await super().submit(texts)
            await asyncio.Event().wait()

    jobs = Stuck()
    queue.batch_submitter.use(cast("BatchRunner", jobs), BatchSettings(enabled=True, min_chunks=20))
    async with running(queue, index, other):
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: jobs.submitted)
        queue.serve(IndexToEmbed("other", other, use_cache=False))
        assert await queue.wait_for(other) == (0, None)
    await cache.close()


async def test_texts_in_a_job_count_for_the_agent_whose_they_are(tmp_path: Path) -> None:
    """What each has sent just before is told where more waits, whichever of them handed over the texts of both."""
    counts = {"one": 30, "two": 40}
    indexes = {
        name: await opened(tmp_path, name, [f"{name} {number}" for number in range(count)])
        for name, count in counts.items()
    }
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    queue = EmbeddingQueue(HashingProvider(), cache, CacheBound(1000), healthy(), confirm_above=50)

    class Slow(Jobs):
        async def submit(self, texts: dict[TextHash, str]) -> None:
            for name, index in indexes.items():  # written meanwhile
                more = [chunk_of(f"more of {name} {number}", number + 1) for number in range(25)]
                await index.replace(found_file("memory/more.md"), b"1", more, {}, frozenset())
                queue.serve(IndexToEmbed(name, index, use_cache=True))
            await super().submit(texts)

    jobs = Slow()
    queue.batch_submitter.use(cast("BatchRunner", jobs), BatchSettings(enabled=True, min_chunks=60))
    async with running(queue, *indexes.values()):
        for name, index in indexes.items():
            await queue.pause(name)
            queue.serve(IndexToEmbed(name, index, use_cache=True))
        await until_async(lambda: {one: queue.backlogs[one].open for one in counts} == counts)
        await queue.switches.pause("one", paused=False)
        await queue.resume("two")
        await until_async(lambda: jobs.submitted and all(one.is_idle for one in queue.backlogs.values()))
        assert [len(texts) for texts in jobs.submitted] == [70]
        asked = [one.unconfirmed for one in queue.backlogs.values()]
        assert [one and (one.chunks, one.sent) for one in asked] == [(25, 30), (25, 40)]
    await cache.close()


def test_why_there_are_no_jobs_though_they_are_configured_is_told() -> None:
    """Their vectors need a place; without them nothing is in the way."""
    known = Cached()
    assert submitter().reason(use_cache=False) is None
    made = submitter(Jobs(reason="too many"), known=known)
    assert "the cache is disabled" in str(made.reason(use_cache=False))
    assert made.reason(use_cache=True) == "too many"
    known.store.failure = "it is full"
    assert str(made.reason(use_cache=True)).endswith("would have no place: it is full")


def test_a_job_is_wanted_where_there_is_enough_and_it_is_taken() -> None:
    """As many as are configured; not where the cache is broken or no job is taken just now."""
    known, jobs = Cached(), Jobs()
    made = submitter(jobs, known=known)
    assert [made.is_wanted(number) for number in (1, 2, 3)] == [False, True, True]
    assert not submitter().is_wanted(99)
    known.store.failure = "it is full"
    assert not made.is_wanted(2)
    known.store.failure, jobs.is_open = None, False
    assert not made.is_wanted(2)
    jobs.is_open = True
    made.use(cast("BatchRunner", jobs), BatchSettings(enabled=False, min_chunks=2))
    assert not made.is_wanted(2)


class Waits:
    """An index whose chunks wait."""

    def __init__(self, *texts: bytes, fails: Exception | None = None) -> None:
        self._texts = texts
        self._fails = fails

    async def waiting(self, _: int, passed_over: frozenset[TextHash]) -> list[SimpleNamespace]:
        if self._fails is not None:
            raise self._fails
        return [SimpleNamespace(hash=one, text=one.decode()) for one in self._texts if one not in passed_over]

    async def waiting_hashes(self) -> list[bytes]:
        return list(self._texts)


async def test_only_what_nobody_knows_or_asks_for_goes_into_a_job() -> None:
    """If it is still enough; while it is put there, nobody else asks for it."""
    jobs, asking = Jobs(), {TextHash(b"asked")}
    known = Cached(held=[b"cached"], refused=[b"set aside"])
    made = submitter(jobs, known=known)
    index = Waits(b"1", b"2", b"out", b"asked", b"cached", b"set aside", b"refused")
    sources = [
        (cast("Index", Waits(b"3", fails=StoreUnavailable("busy"))), frozenset[TextHash]()),
        (cast("Index", index), frozenset({TextHash(b"out")})),
    ]
    seen: list[set[TextHash]] = []
    submit = jobs.submit

    async def watching(texts: dict[TextHash, str]) -> None:
        seen.append(set(asking))
        await submit(texts)

    jobs.submit = watching  # type: ignore[method-assign]  # looked at
    assert await made.submit(sources, asking) == [0, 2]
    assert jobs.submitted == [{b"1": "1", b"2": "2"}]
    assert seen == [{b"asked", b"1", b"2"}]
    assert asking == {b"asked"}
    assert await submitter(jobs, known=known, min_chunks=3).submit(sources, asking) == [0, 0]
    assert await submitter().submit(sources, asking) == [0, 0]
    assert len(jobs.submitted) == 1
    assert await made.held(cast("Index", index)) == {b"1", b"2"}
    assert await submitter().held(cast("Index", index)) == frozenset()
    assert await submitter(Jobs()).held(cast("Index", index)) == frozenset()
    chunks = [SimpleNamespace(hash=one) for one in (b"1", b"9")]
    left = made.without_held(cast("list[WaitingChunk]", chunks))
    assert [chunk.hash for chunk in left] == [b"9"]
    assert submitter(Jobs()).without_held(cast("list[WaitingChunk]", chunks)) == chunks
