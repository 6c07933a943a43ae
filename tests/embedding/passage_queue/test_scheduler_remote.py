"""The scheduler at a provider over HTTP that answers badly, late or not at all."""

import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from memd.embedding.health_transitions import Healthy, Refusing, Retrying
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.store.embedding_cache import EmbeddingStore
from memd.store.index import Index
from tests.embedding.passage_queue.queues import DIMENSIONS, changed, healthy, opened_for, running
from tests.embedding.passage_queue.remote import ONCE, provider_at
from tests.fakes import embedding_server as says
from tests.fakes.embedding_server import EmbeddingServer, Seen
from tests.fakes.http import Response
from tests.store.conftest import chunk_of
from tests.wait import until_async

SEED = 20
SHARE = 0.3


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=DIMENSIONS) as running:
        yield running


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    store = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await store.open()
    yield store
    await store.close()


async def done(queue: EmbeddingQueue, index: Index) -> None:
    """Until nothing waits, through all troubles."""
    while (await queue.wait_for(index))[0]:
        state = queue.health.now.passages
        if not isinstance(state, Healthy):
            await changed(queue, state)


class Flapping:
    """Fails a share of the requests in every way that passes by itself.

    Whether and how is decided by the seed, the first text of the request, and how often that text came first before:
    never by time.
    """

    def __init__(self, server: EmbeddingServer) -> None:
        self.server = server
        self.led: Counter[str] = Counter()  # by first text
        self.whole: Counter[str] = Counter()  # texts whose vectors were sent as they should be
        self.kinds: Counter[str] = Counter()

    def __call__(self, seen: Seen) -> Response | None:
        first = seen.texts[0]
        self.led[first] += 1
        dice = random.Random(f"{SEED}/{first}/{self.led[first]}")
        if dice.random() >= SHARE:
            self.whole.update(seen.texts)
            shuffled = self._body(seen, order=dice.sample(range(len(seen.texts)), len(seen.texts)))
            return shuffled if dice.random() < 0.3 else None
        kind = dice.choice(KINDS)
        self.kinds[kind] += 1
        return self._failed(kind, seen)

    def _failed(self, kind: str, seen: Seen) -> Response:
        if kind.isdigit():
            return says.too_fast("openai", "0.01") if kind == "429" else says.broken("openai", int(kind))
        good = self._body(seen)
        change = msgspec.structs.replace
        ways: dict[str, Callable[[], Response]] = {
            "429 for longer": lambda: says.too_fast("openai", "0.3"),
            "reset": lambda: Response(reset=True),
            "cut": lambda: change(good, cut_after=len(good.body) // 2),
            "drip": lambda: change(good, drip_s=0.05),
            "silent": lambda: change(good, delay_s=30.0),
            "page": lambda: Response(200, b"<html>Please log in</html>", content_type="text/html"),
            "too few": lambda: self._body(seen, order=list(range(len(seen.texts) - 1))),
            "too short": lambda: self._body(seen, dimensions=DIMENSIONS - 1),
            "zeros": lambda: self._body(seen, times=0.0),
            "NaN": lambda: change(good, body=good.body.replace(b'"embedding":[', b'"embedding":[NaN,', 1)),
        }
        return ways[kind]()

    def _body(
        self, seen: Seen, *, order: list[int] | None = None, dimensions: int = DIMENSIONS, times: float = 1.0
    ) -> Response:
        rows = self.server.embedder.embed(seen.texts)[:, :dimensions] * times
        places = range(len(seen.texts)) if order is None else order
        data = [{"index": place, "embedding": [float(value) for value in rows[place]]} for place in places]
        return Response(body=msgspec.json.encode({"data": data}))


KINDS = (
    *("500", "502", "503", "504", "429", "429 for longer", "reset", "cut"),
    *("drip", "silent", "page", "too few", "too short", "zeros", "NaN"),
)


@pytest.mark.long
async def test_a_provider_that_fails_three_in_ten_gives_every_vector(
    tmp_path: Path, cache: EmbeddingStore, server: EmbeddingServer
) -> None:
    """All 2,000 chunks have their own vectors in the end, and none is paid for twice.

    A text counts as requested when an answer with its vectors was sent whole and sound; a request that failed is put
    again, so a text may be sent more often than that. Of sendings there are at most twice as many as texts, and no text
    is sent more than ten times.
    """
    texts = [f"note {n} " + f"word{n % 7} " * 240 for n in range(2000)]
    flapping = server.plan = Flapping(server)
    async with provider_at(server, timeout_s=2.0) as provider:
        index = await opened_for(tmp_path, provider, texts)
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
        async with running(queue):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            await done(queue, index)
    assert len(flapping.kinds) >= 10
    hashes = [chunk_of(text).hash for text in texts]
    stored = await index.vectors_of(hashes)
    told = np.stack([np.frombuffer(stored[text_hash], "<f4") for text_hash in hashes])
    np.testing.assert_allclose(told, server.embedder.embed(texts), atol=4e-5)
    assert set(flapping.whole) == set(texts)
    assert max(flapping.whole.values()) <= 2
    sent = Counter(server.embedded(billed=False))
    assert sent.total() <= 2 * len(texts)
    assert max(sent.values()) <= 10
    await index.close()


async def test_a_provider_that_is_down_is_asked_for_one_text_at_a_time(
    tmp_path: Path, cache: EmbeddingStore, server: EmbeddingServer
) -> None:
    """After the first failures there is one small request at a time, until one is answered; then all lanes work."""
    failing = itertools.count()
    server.plan = lambda _: says.broken("openai", 503) if next(failing) < 7 else None
    async with provider_at(server, retries=ONCE) as provider:
        index = await opened_for(tmp_path, provider, [f"note {n} " + "word " * 300 for n in range(200)])
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(0.02))
        async with running(queue, index):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            waiting, reason = await queue.wait_for(index)
            assert waiting
            assert reason is not None
            assert "503" in reason
            state = queue.health.now.passages
            assert isinstance(state, Retrying)
            await done(queue, index)
        sizes = [len(seen.texts) for seen in server.requests("embed")]
        assert sizes[4:8] == [1, 1, 1, 1]
        assert max(sizes[8:]) > 1
        assert sum(sizes[7:]) == 200


async def test_what_a_provider_asks_for_is_waited(
    tmp_path: Path, cache: EmbeddingStore, server: EmbeddingServer
) -> None:
    """Nothing is sent before the moment that Retry-After names."""
    server.plan = lambda _: says.too_fast("openai", "3600")
    async with provider_at(server) as provider:
        index = await opened_for(tmp_path, provider, ["a note"])
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
        async with running(queue, index):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            assert (await queue.wait_for(index))[0] == 1
            next_try_s = queue.next_try_s("main")
            assert next_try_s is not None
            assert 3500 < next_try_s <= 3600
            assert len(server.seen) == 1
            server.plan = lambda _: None
            await queue.resume("main")  # a person who knows better goes first
            assert await queue.wait_for(index) == (0, None)


@pytest.mark.parametrize("refusal", ["no_quota", "wrong_key"])
async def test_a_refusal_for_good_ends_all_requests(
    tmp_path: Path, cache: EmbeddingStore, server: EmbeddingServer, refusal: str
) -> None:
    """A used-up quota or a wrong key is told, with what to do, and not asked again until a person says so."""
    server.plan = lambda _: getattr(says, refusal)("openai")
    async with provider_at(server, concurrency=2) as provider:
        index = await opened_for(tmp_path, provider, [f"note {n}" for n in range(2000)])
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
        async with running(queue, index):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            waiting, reason = await queue.wait_for(index)
            assert waiting == 2000
            assert reason is not None
            assert "memd-ctl embed resume --agent main" in reason
            assert isinstance(queue.health.now.passages, Refusing)
            await until_async(lambda: not queue.backlogs["main"].requests)
            asked = len(server.seen)
            assert asked <= 2
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            await until_async(lambda: queue.backlogs["main"].is_idle)
            assert len(server.seen) == asked
            server.plan = lambda _: None
            await queue.resume("main")
            await done(queue, index)


async def test_a_text_that_a_provider_fails_at_keeps_no_other_from_its_vector(
    tmp_path: Path, cache: EmbeddingStore, server: EmbeddingServer
) -> None:
    """A server that breaks down at one text gives the vectors of all others."""
    server.plan = lambda seen: says.broken("openai", 500) if "poison" in "".join(seen.texts) else None
    async with provider_at(server, retries=ONCE) as provider:
        index = await opened_for(
            tmp_path, provider, ["poison", *(f"note {n} " + "word " * 900 for n in range(60))]
        )
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy(0.02))
        async with running(queue, index):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            while (await index.counts()).done < 60:
                await changed(queue)
            assert [chunk.text for chunk in await index.waiting(10)] == ["poison"]


async def test_a_request_that_fails_takes_no_other_with_it(
    tmp_path: Path, cache: EmbeddingStore, server: EmbeddingServer
) -> None:
    """Of requests that are under way together, those that are answered are stored."""
    server.plan = lambda seen: says.broken("openai", 500) if "note 0 " in seen.texts[0] else None
    server.delay_s = 0.2
    async with provider_at(server, retries=ONCE) as provider:
        index = await opened_for(tmp_path, provider, [f"note {n} " + "word " * 1500 for n in range(16)])
        queue = EmbeddingQueue(provider, cache, CacheBound(10_000), healthy())
        async with running(queue, index):
            queue.serve(IndexToEmbed("main", index, use_cache=True))
            _, reason = await queue.wait_for(index)
            assert reason is not None
            await until_async(lambda: not queue.backlogs["main"].requests)
            sent = [len(seen.texts) for seen in server.requests("embed")[:4]]
            assert (await index.counts()).done == sum(sent[1:])
