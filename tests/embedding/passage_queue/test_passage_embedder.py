"""Requests with passages, and their throughput."""

import asyncio
import math
from collections.abc import Sequence

import numpy as np
import pytest
from structlog.testing import capture_logs

from memd.domain_types import TextHash
from memd.embedding.health_transitions import Healthy, Refusing, Retrying
from memd.embedding.passage_queue.passage_embedder import PartialResult, PassageEmbedder, Throughput
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, Vectors
from tests.bounds import shipped
from tests.clock import Clock
from tests.embedding.passage_queue.queues import healthy
from tests.fakes import HashingProvider
from tests.wait import until_async

TEXTS = {TextHash(b"1"): "apples", TextHash(b"2"): "pears"}


class Bench:
    """A provider that the test holds in its hands, and a clock."""

    def __init__(self, provider: HashingProvider | None = None) -> None:
        self.provider = provider or HashingProvider(dimensions=8)
        self.clock = Clock()
        self.health = healthy(clock=self.clock)
        self.embedder = PassageEmbedder(self.provider, self.health)

    @property
    def reason(self) -> str | None:
        passages = self.health.now.passages
        return None if isinstance(passages, Healthy) else passages.reason


async def test_each_text_gets_its_vector() -> None:
    """As the store keeps it: float32, little-endian."""
    bench = Bench()
    vectors = await bench.embedder.ask(TEXTS)
    assert isinstance(vectors, dict)
    assert vectors.keys() == TEXTS.keys()
    expected = bench.provider.embed(list(TEXTS.values())).astype("<f4")
    assert [np.frombuffer(one, "<f4").tolist() for one in vectors.values()] == expected.tolist()
    assert bench.reason is None


async def test_a_provider_that_fails_is_left_alone_until_its_time() -> None:
    """Or until somebody says that it may be asked again; an answer ends that, too."""
    bench = Bench()
    bench.provider.fail_next(1)
    with capture_logs() as logs:
        assert await bench.embedder.ask(TEXTS) is None
    assert [one["event"] for one in logs] == ["embed.retry_scheduled"]
    assert bench.reason is not None
    waiting = asyncio.create_task(bench.health.passages_due())
    await asyncio.sleep(0)
    assert not waiting.done()
    bench.health.retry_passages()
    await waiting
    bench.provider.fail_next(1)
    assert await bench.embedder.ask(TEXTS) is None
    bench.clock.run(60)
    await bench.health.passages_due()
    assert isinstance(await bench.embedder.ask(TEXTS, probing=True), dict)
    assert bench.reason is None


async def test_an_answer_to_what_was_asked_before_a_failure_ends_nothing() -> None:
    """It may have been on its way for long."""

    class Held(HashingProvider):
        gate = asyncio.Event()

        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            if texts == ["late"]:
                await self.gate.wait()
            return await super().embed_passages(texts)

    bench = Bench(Held(dimensions=8))
    late = asyncio.create_task(bench.embedder.ask({TextHash(b"9"): "late"}))
    await asyncio.sleep(0)
    bench.clock.run(1)
    bench.provider.fail_next(1)
    assert await bench.embedder.ask(TEXTS) is None
    Held.gate.set()
    assert isinstance(await late, dict)
    assert isinstance(bench.health.now.passages, Retrying)
    assert bench.embedder.answers == 1


async def test_a_text_that_is_refused_is_no_failure_of_the_provider() -> None:
    """The others may be asked for again."""
    bench = Bench(HashingProvider(dimensions=8, rejects=["pears"]))
    refusal = await bench.embedder.ask(TEXTS)
    assert refusal == PartialResult({}, {TextHash(b"2"): "this text is rejected by the test"})
    assert bench.health.now.passages == Healthy()
    assert bench.embedder.answers == 1


class Odd(HashingProvider):
    """Gives one vector too few, or refuses for good."""

    failure: EmbedTerminal | None = None

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if self.failure is not None:
            raise self.failure
        return self.embed(texts)[1:]


async def test_vectors_that_are_missing_are_a_failure() -> None:
    """Nobody could tell whose the others are."""
    bench = Bench(Odd(dimensions=8))
    assert await bench.embedder.ask(TEXTS) is None
    assert bench.reason == "2 texts were sent and 1 vectors came back"


async def test_a_refusal_for_good_is_told_and_ends_the_asking() -> None:
    """Until a person has changed something."""
    odd = Odd(dimensions=8)
    odd.failure = EmbedTerminal("the key is wrong")
    bench = Bench(odd)
    changed = asyncio.create_task(bench.health.progress.next())
    await asyncio.sleep(0)
    with capture_logs() as logs:
        assert await bench.embedder.ask(TEXTS) is None
    assert bench.health.now.passages == Refusing(bench.clock.now, "the key is wrong")
    assert [one["event"] for one in logs] == ["embed.stopped"]
    await until_async(changed.done)


async def test_a_request_that_is_given_up_counts_for_nothing() -> None:
    """Whoever asked was stopped."""
    bench = Bench(HashingProvider(dimensions=8, delay_s=3600))
    asking = asyncio.create_task(bench.embedder.ask(TEXTS))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert bench.health.now.passages == Healthy()
    assert bench.embedder.answers == 0


@pytest.mark.parametrize("failure", [EmbedUnavailable("it broke off"), EmbedTerminal("the quota is used up")])
async def test_what_came_before_a_failure_is_kept(failure: EmbedUnavailable | EmbedTerminal) -> None:
    """It has been paid for; how the provider stands is told by the failure."""
    odd = Odd(dimensions=8)
    row = odd.embed(["pears"])[0]
    failure.vectors = {1: row}

    class Breaking(Odd):
        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            raise failure

    bench = Bench(Breaking(dimensions=8))
    assert await bench.embedder.ask(TEXTS) == PartialResult({TextHash(b"2"): row.tobytes()}, has_failed=True)
    assert bench.reason == str(failure)
    assert bench.embedder.answers == 0


def test_nothing_is_known_before_the_first_answer() -> None:
    """Not even while it is awaited."""
    rate = Throughput()
    rate.asked(0.0)
    assert rate.per_s is None


@pytest.mark.parametrize(("requests", "expected"), [(1, 10.0), (4, 40.0)])
def test_requests_count_together(requests: int, expected: float) -> None:
    """Each answers 20 texts after two seconds; four at once are four times as fast."""
    rate = Throughput()
    for second in range(0, 60, 2):
        for _ in range(requests):
            rate.asked(float(second))
        for _ in range(requests):
            rate.answered(20, second + 2.0)
    assert rate.per_s == pytest.approx(expected, rel=0.05)


def test_breaks_do_not_count() -> None:
    """An hour without work makes nothing slower."""
    rate = Throughput()
    for began in (0.0, 3600.0):
        rate.asked(began)
        rate.answered(20, began + 2.0)
    assert rate.per_s == pytest.approx(10.0, rel=0.01)


def test_failures_make_it_slower() -> None:
    """The time that they took is gone."""
    rate = Throughput()
    rate.asked(0.0)
    rate.answered(20, 2.0)
    rate.asked(2.0)
    rate.answered(0, 4.0)
    assert rate.per_s is not None
    assert rate.per_s < 6


def test_a_request_that_hung_is_soon_forgotten() -> None:
    """A minute after a break of ten, texts come as fast as they do."""
    rate = Throughput()
    now = 0.0
    for took_s in (*[1.0] * 60, 600.0, *[1.0] * 60):
        rate.asked(now)
        now += took_s
        rate.answered(16, now)
    assert rate.per_s == pytest.approx(16.0, rel=0.2)


def test_what_is_longer_past_counts_for_less_than_a_third() -> None:
    """One text a second for long, and then none: after the span of its memory a third of that is left, less a little."""
    span_s = shipped("memd.embedding.passage_queue.passage_embedder.MEMORY_S")
    rate = Throughput()
    for second in range(600):
        rate.asked(float(second))
        rate.answered(1, second + 1.0)
    rate.asked(600.0)
    rate.answered(0, 600.0 + span_s)
    assert rate.per_s == pytest.approx(math.exp(-1), rel=1e-3)
