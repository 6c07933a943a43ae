"""Questions to one provider, of many who ask at once."""

import asyncio
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from structlog.testing import capture_logs

from memd.embedding import query_queue
from memd.embedding.provider_health import ProviderHealth
from memd.embedding.query_queue import (
    AT_ONCE,
    CACHED_BYTES,
    LONGEST_S,
    TOGETHER_FIRST,
    TOGETHER_MOST,
    QuestionQueue,
)
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, Vector
from memd.runtime.threads import NoThread
from tests.clock import Clock, hastily, now_s
from tests.embedding.passage_queue.queues import healthy
from tests.fakes import HashingProvider
from tests.wait import until_async


class Together(HashingProvider):
    """Takes several questions in a request, each answered when the test says so."""

    def __init__(self, *, is_open: bool = True, rejects: Sequence[str] = ()) -> None:
        super().__init__(rejects=rejects)
        self.together: list[list[str]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.pause_s = 0.0
        self.may = asyncio.Event()
        if is_open:
            self.may.set()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector | EmbedUnavailable]:
        self.together.append(list(texts))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.pause_s)
            await self.may.wait()
            self._fail_if_told()
        finally:
            self.under_way -= 1
        refused = EmbedUnavailable("not this one")
        return [refused if text in self.rejects else self.embed([text])[0] for text in texts]


async def test_the_same_question_of_many_is_one_request() -> None:
    """And none, if it was answered lately."""
    provider = Together()
    queue = QuestionQueue(provider, healthy())
    vectors = await asyncio.gather(*(queue.ask("which?", 5, asker) for asker in range(40)))
    assert provider.together == [["which?"]]
    assert all(np.array_equal(vector, provider.embed(["which?"])[0]) for vector in vectors)
    await queue.ask("which?", 5)
    assert provider.together == [["which?"]]


async def test_questions_that_wait_go_together() -> None:
    """Four hundred at once are a few requests, two at a time, and all get the vectors that are theirs."""
    provider = Together()
    queue = QuestionQueue(provider, healthy())
    questions = [f"question {n}" for n in range(400)]
    vectors = await asyncio.gather(*(queue.ask(text, 5, text) for text in questions))
    np.testing.assert_array_equal(vectors, provider.embed(questions))
    assert sorted(text for some in provider.together for text in some) == sorted(questions)
    assert [len(some) for some in provider.together[:4]] == [1, 1, TOGETHER_FIRST, TOGETHER_FIRST]
    assert len(provider.together) < 15
    assert max(map(len, provider.together)) <= TOGETHER_MOST
    assert provider.most_under_way == AT_ONCE


async def test_a_provider_that_takes_one_gets_one_at_a_time() -> None:
    """Those that wait are answered in turn."""
    provider = HashingProvider()
    queue = QuestionQueue(provider, healthy())
    questions = [f"question {n}" for n in range(20)]
    await asyncio.gather(*(queue.ask(text, 5) for text in questions))
    assert provider.questions == questions


async def test_askers_take_turns() -> None:
    """One that asks a hundred things keeps nobody waiting who asks one."""
    provider = HashingProvider()
    queue = QuestionQueue(provider, healthy())
    many = [asyncio.ensure_future(queue.ask(f"many {n}", 5, "many")) for n in range(100)]
    await asyncio.sleep(0)
    await queue.ask("one", 5, "one")
    assert provider.questions.index("one") <= 2
    await asyncio.gather(*many)


async def test_a_question_waits_while_others_are_answered() -> None:
    """For longer than its patience, as long as the queue moves; ten seconds at most. One that stands still is left."""
    clock, provider = Clock(), Together(is_open=False)
    queue = QuestionQueue(provider, healthy(), clock=clock)

    first = [asyncio.ensure_future(queue.ask(f"first {n}", 0.5)) for n in range(2)]
    await until_async(lambda: provider.under_way == 2)
    patient = asyncio.ensure_future(queue.ask("patient", 0.5))
    await asyncio.sleep(0)
    provider.pause_s = 60.0
    clock.run(0.4)
    provider.may.set()
    await asyncio.gather(*first)
    clock.run(0.4)
    await asyncio.sleep(0.2)
    assert not patient.done(), "it has waited for 0.8 s, and 0.4 since something was answered"
    clock.run(0.2)
    with pytest.raises(EmbedUnavailable, match="the question had no vector after 1 s"):
        await patient
    queue.close()


async def test_a_model_that_hangs_is_not_waited_for() -> None:
    """The patience of who asks ends it, whichever provider it is."""

    class Hanging(HashingProvider):
        async def embed_query(self, text: str) -> Vector:
            await asyncio.Event().wait()
            return await super().embed_query(text)

    queue = QuestionQueue(Hanging(), healthy())
    with pytest.raises(EmbedUnavailable, match=r"no vector after 0\.\d s"):
        await queue.ask("a", 0.05)
    queue.close()


async def test_a_question_that_nobody_waits_for_any_more_is_not_asked() -> None:
    """Unless it is under way: then its answer is kept for who asks next."""
    provider = Together(is_open=False)
    queue = QuestionQueue(provider, healthy())
    asking = [asyncio.ensure_future(queue.ask(f"question {n}", 5)) for n in range(6)]
    await until_async(lambda: provider.under_way == 2)
    for one in (asking[0], *asking[3:]):
        one.cancel()
    await asyncio.sleep(0)
    provider.may.set()
    await asyncio.gather(*asking, return_exceptions=True)
    assert provider.together == [["question 0"], ["question 1"], ["question 2"]]
    await queue.ask("question 0", 5)
    assert len(provider.together) == 3


@pytest.mark.parametrize("failure", [EmbedUnavailable("it is down"), EmbedTerminal("the key is refused")])
async def test_a_failure_is_told_to_all_who_asked_and_not_kept(failure: Exception) -> None:
    """Each has an error of its own, with its words; the next question is put again."""

    class Failing(Together):
        async def embed_queries(self, texts: Sequence[str]) -> list[Vector | EmbedUnavailable]:
            await super().embed_queries(texts)
            raise failure

    provider = Failing()
    queue = QuestionQueue(provider, healthy())
    told = await asyncio.gather(*(queue.ask("a", 5) for _ in range(3)), return_exceptions=True)
    assert {(type(one), str(one)) for one in told} == {(EmbedUnavailable, str(failure))}
    assert len(set(map(id, told))) == 3
    with pytest.raises(EmbedUnavailable):
        await queue.ask("a", 5)
    assert provider.together == [["a"], ["a"]]


async def test_one_refused_question_takes_no_vector_from_the_others() -> None:
    """Each question has an outcome of its own."""
    provider = Together(rejects=["bad"])
    queue = QuestionQueue(provider, healthy())
    told = await asyncio.gather(
        *(queue.ask(text, 5) for text in ("a", "b", "c", "bad", "d")), return_exceptions=True
    )
    assert [isinstance(one, EmbedUnavailable) for one in told] == [False, False, False, True, False]


async def test_a_provider_that_refuses_each_question_of_a_request_is_not_well() -> None:
    """Until it answers one; the next questions are sent all the same."""
    provider, health = Together(rejects=["bad", "worse"]), healthy()
    queue = QuestionQueue(provider, health)
    for text, reason in (("bad", "not this one"), ("good", None), ("worse", "not this one")):
        await asyncio.gather(queue.ask(text, 5), return_exceptions=True)
        assert health.reason == reason
    assert provider.together == [["bad"], ["good"], ["worse"]]


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked last stays."""
    provider = Together()
    monkeypatch.setattr(query_queue, "CACHED_BYTES", 4 * 384 * 4)
    queue = QuestionQueue(provider, healthy())
    for text in ("a", "b", "c", "d", "a", "e"):
        await queue.ask(text, 5)
    before = len(provider.together)
    for text in ("a", "e", "d", "c"):
        await queue.ask(text, 5)
    assert len(provider.together) == before
    await queue.ask("b", 5)
    assert len(provider.together) == before + 1


async def test_after_the_end_nobody_waits() -> None:
    """Neither who has asked nor who asks then."""
    queue = QuestionQueue(Together(is_open=False), healthy())
    asking = [asyncio.ensure_future(queue.ask(f"question {n}", 5)) for n in range(5)]
    await asyncio.sleep(0.01)
    queue.close()
    for one in asking:
        with pytest.raises(EmbedUnavailable, match="closed"):
            await one
    with pytest.raises(EmbedUnavailable, match="closed"):
        await queue.ask("later", 5)


async def test_vectors_of_questions_are_remembered_up_to_a_size() -> None:
    """The one that was asked the longest ago is forgotten first."""
    provider = HashingProvider(dimensions=65_536)
    queue = QuestionQueue(provider, healthy())
    fit = CACHED_BYTES // (4 * 65_536)
    for number in range(fit):
        await queue.ask(f"question {number}", 60)
    await queue.ask("question 0", 60)  # so that it is younger than the second one
    assert len(provider.questions) == fit
    await queue.ask("one more", 60)
    await queue.ask("question 0", 60)
    assert len(provider.questions) == fit + 1
    await queue.ask("question 1", 60)
    assert len(provider.questions) == fit + 2
    queue.close()


class Sticking(HashingProvider):
    """Takes several questions; one of them is never answered, the others each take a second."""

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        await (asyncio.Future[None]() if "stuck" in texts else asyncio.sleep(1))
        return [self.embed([text])[0] for text in texts]


def test_a_question_waits_while_others_are_answered_and_not_for_ever() -> None:
    """By the shipped figure."""

    async def main() -> float:
        queue = QuestionQueue(Sticking(), healthy(), clock=now_s)
        stuck = asyncio.create_task(queue.ask("stuck", 2))
        await asyncio.sleep(0)
        number = 0
        while not stuck.done():
            number += 1
            await queue.ask(f"question {number}", 2)
        with pytest.raises(EmbedUnavailable):
            await stuck
        queue.close()
        return now_s()

    assert LONGEST_S <= hastily(main()) <= LONGEST_S + 1


class Odd(HashingProvider):
    """Fails once, as nobody foresaw."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self.failures = [failure]

    async def embed_query(self, text: str) -> Vector:
        if self.failures:
            raise self.failures.pop()
        return await super().embed_query(text)


class Short(Together):
    """Answers one question less than it was asked, once."""

    is_short = True

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector | EmbedUnavailable]:
        outcomes = await super().embed_queries(texts)
        if self.is_short:
            self.is_short = False
            outcomes.pop()
        return outcomes


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (Odd(NoThread("too many threads are running")), "too many threads are running"),
        (Odd(KeyError("which?")), r"in an unexpected way \(KeyError\)"),
        (Odd(MemoryError()), r"in an unexpected way \(MemoryError\)"),
        (Odd(asyncio.CancelledError()), "given up"),
        (Short(), "0 vectors for 1 question"),
    ],
)
async def test_a_question_that_failed_in_whatever_way_is_asked_again(
    provider: HashingProvider, said: str
) -> None:
    """It is told at once, however long its patience; who asks the same next gets the vector."""
    queue = QuestionQueue(provider, healthy())
    async with asyncio.timeout(60):
        with capture_logs(), pytest.raises(EmbedUnavailable, match=said):
            await queue.ask("which?", 3600)
        np.testing.assert_array_equal(await queue.ask("which?", 3600), provider.embed(["which?"])[0])
    queue.close()


@pytest.mark.parametrize("failure", [EmbedUnavailable("questions failed"), KeyError("which?")])
async def test_a_defect_of_the_queue_itself_is_logged_and_told(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """What is expected is only told."""

    def fail() -> None:
        raise failure

    health = healthy()
    monkeypatch.setattr(health, "admit_question", fail)
    queue = QuestionQueue(HashingProvider(), health)
    with capture_logs() as logs, pytest.raises(EmbedUnavailable):
        await queue.ask("which?", 60)
    is_defect = isinstance(failure, KeyError)
    assert [one["event"] for one in logs] == ["embed.question_failed"] * is_defect
    queue.close()


async def test_a_dead_server_is_left_alone_for_a_while() -> None:
    """After two failures questions fail at once, with the reason."""
    provider = Together()
    provider.fail_next(100)
    queue = QuestionQueue(provider, ProviderHealth("openai", Random(1), is_remote=True))
    for number in range(5):
        with pytest.raises(EmbedUnavailable, match="lets this request fail"):
            await queue.ask(f"question {number}", 5)
    assert len(provider.together) == 2
    queue.close()


@pytest.mark.parametrize("failure", [EmbedUnavailable("down"), KeyError("which?")])
async def test_after_a_failure_half_as_many_questions_go_together_and_at_least_one(
    failure: Exception,
) -> None:
    """A provider may have broken down at how many they were."""
    clock, fails_at = Clock(), TOGETHER_FIRST

    class Failing(Together):
        async def embed_queries(self, texts: Sequence[str]) -> list[Vector | EmbedUnavailable]:
            clock.run(LONGEST_S)  # so slow that no more go together once it answers
            outcomes = await super().embed_queries(texts)
            if len(texts) == fails_at:
                raise failure
            return outcomes

    provider = Failing()
    queue = QuestionQueue(provider, healthy(), clock=clock)

    async def together(count: int) -> list[int]:
        """How many of so many questions go together, after the first, which find no others."""
        provider.together.clear()
        asked = [queue.ask(f"{clock.now} {n}", 60 * LONGEST_S) for n in range(AT_ONCE + count)]
        with capture_logs():
            await asyncio.gather(*asked, return_exceptions=True)
        assert [len(some) for some in provider.together[:AT_ONCE]] == [1] * AT_ONCE
        return [len(some) for some in provider.together[AT_ONCE:]]

    assert await together(TOGETHER_FIRST) == [TOGETHER_FIRST]
    assert await together(TOGETHER_FIRST) == [TOGETHER_FIRST // 2] * 2
    fails_at = 1
    await together(0)
    fails_at = 0
    assert await together(4) == [1] * 4
    queue.close()


async def test_a_question_that_is_given_up_goes_alone_and_takes_none_of_others_along() -> None:
    """Of one asker or of another, it is not asked, and the others are."""
    provider = Together(is_open=False)
    queue = QuestionQueue(provider, healthy())
    limit = AT_ONCE
    first = [asyncio.ensure_future(queue.ask(f"first {n}", 60)) for n in range(limit)]
    await until_async(lambda: provider.under_way == limit)
    asked = {
        text: asyncio.ensure_future(queue.ask(text, 60, asker=asker))
        for text, asker in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"))
    }
    await asyncio.sleep(0)
    for text in ("a1", "b1"):
        asked[text].cancel()
    await asyncio.wait([asked["a1"], asked["b1"]])
    provider.may.set()
    await asyncio.gather(*first, asked["a2"], asked["c1"])
    texts = [text for one in provider.together for text in one if "first" not in text]
    assert sorted(texts) == ["a2", "c1"]
    again = queue.ask("a1", 60, asker="a")
    assert len(await again) > 0
    queue.close()


@pytest.mark.parametrize(("took_s", "together"), [(0.49, 2 * TOGETHER_FIRST), (0.5, TOGETHER_FIRST)])
async def test_more_questions_go_together_only_while_all_that_may_are_answered_fast(
    took_s: float, together: int
) -> None:
    """Within half a second: a twentieth of how long a question waits for others."""
    clock = Clock()

    class Taking(Together):
        async def embed_queries(self, texts: Sequence[str]) -> list[Vector | EmbedUnavailable]:
            clock.run(took_s)
            return await super().embed_queries(texts)

    provider = Taking()
    queue = QuestionQueue(provider, healthy(), clock=clock)
    for count in (AT_ONCE + TOGETHER_FIRST, AT_ONCE + 3 * TOGETHER_FIRST):
        provider.together.clear()
        await asyncio.gather(*(queue.ask(f"{count} {n}", 60) for n in range(count)))
    assert [len(some) for some in provider.together[: AT_ONCE + 1]] == [1, 1, together]
    queue.close()
