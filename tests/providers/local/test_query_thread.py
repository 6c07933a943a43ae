"""Questions on a thread that one of them may never leave."""

import asyncio
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from memd.embedding.health_transitions import Healthy
from memd.embedding.query_queue import QuestionQueue
from memd.providers.local.query_thread import REPLACED, SLOW_S, STUCK_S, QueryThread
from memd.providers.provider import EmbedUnavailable, Vector
from memd.runtime.threads import Threads
from tests.embedding.passage_queue.queues import healthy
from tests.fakes import HashingProvider
from tests.wait import until_async


class Desks:
    """Models that are numbers, from 0; all questions that are stuck go on at the end."""

    def __init__(self) -> None:
        self.loaded = 0
        self.stuck_at = 0
        self.end = threading.Event()

    def load(self) -> int:
        self.loaded += 1
        return self.loaded - 1

    def stuck(self, desk: int) -> int:
        self.stuck_at += 1
        self.end.wait(60)
        return desk


@pytest.fixture
def desks() -> Iterator[Desks]:
    """Models that nobody is stuck in after the test."""
    made = Desks()
    yield made
    made.end.set()


def sound(desk: int) -> int:
    """The answer to a question that nothing is wrong with: which model it was."""
    return desk


async def ask_in_vain(questions: QueryThread[int], desks: Desks) -> None:
    """Put a question that is stuck, and give it up once it is, as a search does."""
    before = desks.stuck_at
    asked = asyncio.create_task(questions.ask(desks.stuck))
    await until_async(lambda: desks.stuck_at > before, 20)
    asked.cancel()
    await asyncio.wait([asked])


async def refusal(questions: QueryThread[int]) -> str:
    """What a question is told, as soon as nobody is made to wait any more."""
    async with asyncio.timeout(60):
        while True:
            try:
                async with asyncio.timeout(0.01):
                    await questions.ask(sound)
            except TimeoutError:
                continue
            except EmbedUnavailable as refused:
                return str(refused)


async def answer(questions: QueryThread[int]) -> int:
    """What a question is answered, as soon as one is, where nobody waits behind another."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await questions.ask(sound)
            except EmbedUnavailable:
                await asyncio.sleep(0)


async def test_the_model_is_loaded_once(desks: Desks) -> None:
    """Questions that are answered share one model."""
    questions = QueryThread(desks.load)
    assert await asyncio.gather(*(questions.ask(sound) for _ in range(20))) == [0] * 20
    assert desks.loaded == 1


async def test_nobody_waits_long_behind_a_stuck_question(desks: Desks) -> None:
    """Once a question has taken too long, the others are refused at once, until it is answered."""
    questions = QueryThread(desks.load, slow_s=0.05, stuck_s=60)
    await ask_in_vain(questions, desks)
    assert "at one question" in await refusal(questions)
    desks.end.set()
    assert await answer(questions) == 0
    assert desks.loaded == 1


async def test_a_stuck_thread_is_replaced_and_not_for_ever(desks: Desks) -> None:
    """The questions after a stuck one get a model of their own, so many times; then a person is asked to restart memd."""
    questions = QueryThread(desks.load, slow_s=0, stuck_s=0.04)
    for attempt in range(REPLACED + 1):
        assert await answer(questions) == attempt
        await ask_in_vain(questions, desks)
    while "restart memd" not in await refusal(questions):
        pass
    assert desks.loaded == REPLACED + 1


async def test_a_stuck_question_keeps_no_place_in_the_queue(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its failure is told, and the questions behind it are put: that is when its thread is given up."""
    busy = 0.0
    monkeypatch.setattr(Threads, "busy_s", lambda _: busy)
    questions = QueryThread(desks.load, wait_s=0.02)

    class Numbered(HashingProvider):
        """Its vectors tell which model they are of."""

        async def embed_query(self, text: str) -> Vector:
            desk = await questions.ask(desks.stuck if text == "stuck" else sound)
            return np.full(4, desk, np.float32)

    health = healthy()
    queue = QuestionQueue(Numbered(), health)
    async with asyncio.timeout(60):
        while not desks.stuck_at:  # a thread that is slow to begin has its question taken back
            with pytest.raises(EmbedUnavailable, match="at one question"):
                await queue.ask("stuck", 60)
    assert str(health.reason) == "The bundled model has been at one question for 0 s."
    busy = STUCK_S + 0.01
    while True:
        try:
            vector = await queue.ask("sound", 60)
        except EmbedUnavailable:
            busy = 0.0  # of the thread that has taken the place
        else:
            break
    assert list(vector) == [1.0] * 4
    assert health.now.overall == Healthy()
    queue.close()


async def test_after_so_many_stuck_threads_nobody_gets_one_more(desks: Desks) -> None:
    """Each keeps its copy of the model: a daemon that runs for months would be all models."""
    questions = QueryThread(desks.load, slow_s=0, stuck_s=0)
    for _ in range(REPLACED + 1):
        await ask_in_vain(questions, desks)
    with pytest.raises(EmbedUnavailable, match="restart memd"):
        await questions.ask(sound)
    assert desks.loaded == REPLACED + 1


async def test_how_long_a_question_may_take(desks: Desks, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the shipped figures: others wait for a while, then go by keywords, then have another thread."""
    busy = 0.0
    monkeypatch.setattr(Threads, "busy_s", lambda _: busy)
    questions = QueryThread(desks.load)
    busy = SLOW_S
    assert await questions.ask(sound) == 0
    for seconds in (SLOW_S + 0.01, STUCK_S):
        busy = seconds
        with pytest.raises(EmbedUnavailable, match="at one question"):
            await questions.ask(sound)
    busy = STUCK_S + 0.01
    assert await questions.ask(sound) == 1


async def test_a_model_that_is_slow_to_load_is_not_loaded_twice(desks: Desks) -> None:
    """Nobody waits for it, and no other thread takes the place: the disk would be as slow for that one."""
    begun, may_go_on = threading.Semaphore(0), threading.Event()

    def load() -> int:
        begun.release()
        assert may_go_on.wait(60)
        return desks.load()

    questions = QueryThread(load, slow_s=0, stuck_s=0, wait_s=0.02)
    while not begun.acquire(blocking=False):  # a thread that is slow to begin has its question taken back
        with pytest.raises(EmbedUnavailable):
            await questions.ask(sound)
    for _ in range(REPLACED + 2):
        with pytest.raises(EmbedUnavailable, match=r"^The bundled model has been loading for \d s\.$"):
            await questions.ask(sound)
    assert not begun.acquire(blocking=False)
    may_go_on.set()
    await answer(questions)
