"""A provider as whoever asks it knows it."""

import asyncio
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from structlog.testing import capture_logs

from memd.embedding.queue.provider_health import PartialResult, ProviderHealth
from memd.embedding.queue.states import BackingOff, Stopped, Working
from memd.model import TextHash
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, Vectors
from memd.runtime.changed import ChangeNotifier
from tests.clock import Clock
from tests.fakes import HashingProvider
from tests.wait import until_async

TEXTS = {TextHash(b"1"): "apples", TextHash(b"2"): "pears"}


class Bench:
    """A provider that the test holds in its hands, and a clock."""

    def __init__(self, provider: HashingProvider | None = None) -> None:
        self.provider = provider or HashingProvider(dimensions=8)
        self.clock = Clock()
        self.respondent = ProviderHealth(self.provider, ChangeNotifier(), Random(1), self.clock, 1.0)


async def test_each_text_gets_its_vector() -> None:
    """As the store keeps it: float32, little-endian."""
    bench = Bench()
    vectors = await bench.respondent.ask(TEXTS)
    assert isinstance(vectors, dict)
    assert vectors.keys() == TEXTS.keys()
    expected = bench.provider.embed(list(TEXTS.values())).astype("<f4")
    assert [np.frombuffer(one, "<f4").tolist() for one in vectors.values()] == expected.tolist()
    assert bench.respondent.trouble is None


async def test_a_provider_that_fails_is_left_alone_until_its_time() -> None:
    """Or until somebody says that it may be asked again; an answer ends that, too."""
    bench = Bench()
    bench.provider.fail_next(1)
    with capture_logs() as logs:
        assert await bench.respondent.ask(TEXTS) is None
    assert [one["event"] for one in logs] == ["embed.retry_scheduled"]
    assert bench.respondent.trouble is not None
    waiting = asyncio.create_task(bench.respondent.due())
    await asyncio.sleep(0)
    assert not waiting.done()
    bench.respondent.ask_again()
    await waiting
    bench.provider.fail_next(1)
    assert await bench.respondent.ask(TEXTS) is None
    bench.clock.run(60)
    await bench.respondent.due()
    assert isinstance(await bench.respondent.ask(TEXTS, probing=True), dict)
    assert bench.respondent.trouble is None


async def test_an_answer_to_what_was_asked_before_a_failure_ends_nothing() -> None:
    """It may have been on its way for long."""

    class Held(HashingProvider):
        gate = asyncio.Event()

        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            if texts == ["late"]:
                await self.gate.wait()
            return await super().embed_passages(texts)

    bench = Bench(Held(dimensions=8))
    late = asyncio.create_task(bench.respondent.ask({TextHash(b"9"): "late"}))
    await asyncio.sleep(0)
    bench.clock.run(1)
    bench.provider.fail_next(1)
    assert await bench.respondent.ask(TEXTS) is None
    Held.gate.set()
    assert isinstance(await late, dict)
    assert isinstance(bench.respondent.state, BackingOff)
    assert bench.respondent.answers == 1


async def test_a_text_that_is_refused_is_no_failure_of_the_provider() -> None:
    """The others may be asked for again."""
    bench = Bench(HashingProvider(dimensions=8, rejects=["pears"]))
    refusal = await bench.respondent.ask(TEXTS)
    assert refusal == PartialResult({}, {TextHash(b"2"): "this text is rejected by the test"})
    assert bench.respondent.state == Working()
    assert bench.respondent.answers == 1


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
    assert await bench.respondent.ask(TEXTS) is None
    assert bench.respondent.trouble == "2 texts were sent and 1 vectors came back"


async def test_a_refusal_for_good_is_told_and_ends_the_asking() -> None:
    """Until a person has changed something."""
    odd = Odd(dimensions=8)
    odd.failure = EmbedTerminal("the key is wrong")
    bench = Bench(odd)
    changed = asyncio.create_task(bench.respondent.changed(bench.respondent.state))
    with capture_logs() as logs:
        assert await bench.respondent.ask(TEXTS) is None
    assert bench.respondent.state == Stopped(bench.clock.now, "the key is wrong")
    assert [one["event"] for one in logs] == ["embed.stopped"]
    await until_async(changed.done)
    assert changed.result() == bench.respondent.state


async def test_a_request_that_is_given_up_counts_for_nothing() -> None:
    """Whoever asked was stopped."""
    bench = Bench(HashingProvider(dimensions=8, delay_s=3600))
    asking = asyncio.create_task(bench.respondent.ask(TEXTS))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert bench.respondent.state == Working()
    assert bench.respondent.answers == 0


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
    assert await bench.respondent.ask(TEXTS) == PartialResult(
        {TextHash(b"2"): row.tobytes()}, has_failed=True
    )
    assert bench.respondent.trouble == str(failure)
    assert bench.respondent.answers == 0
