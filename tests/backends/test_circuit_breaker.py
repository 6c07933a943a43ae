"""When a backend that fails is asked, and when it is left alone. What a fallback makes of it: test_fallback."""

import asyncio

import pytest

from memd.backends.circuit_breaker import (
    BreakerState,
    BreakerTimeouts,
    CircuitBreaker,
    CoolingDown,
    InUse,
    failed,
    may_be_tried,
)
from tests.wait import until_async


class Slow:
    """A backend that answers once its gate is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked = 0

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.gate.set()

    async def answer(self) -> str:
        self.asked += 1
        await self.gate.wait()
        return "an answer"


async def test_an_answer_that_comes_too_late_is_a_failure() -> None:
    """Who asks goes on without it, and so do all others until the cool-down is over."""
    now = 100.0
    slow = Slow()

    async def create() -> Slow:
        return slow

    breaker: CircuitBreaker[Slow] = CircuitBreaker(
        "main", "team:alice/main", create, BreakerTimeouts(5.0, 60.0), clock=lambda: now
    )
    overdue = asyncio.get_running_loop().create_future()
    asked = asyncio.create_task(breaker.ask(Slow.answer, overdue))
    await until_async(lambda: slow.asked)
    now = 100.6
    overdue.set_result(None)
    async with asyncio.timeout(60):
        assert await asked is None
        assert breaker.state == CoolingDown(100.6, "team:alice/main has not answered for 0.6 s", 160.6)
        assert await breaker.ask(Slow.answer) is None
        assert (slow.asked, breaker.reason) == (1, "team:alice/main has not answered for 0.6 s")
        now = 160.6
        slow.gate.set()
        assert await breaker.ask(Slow.answer, asyncio.get_running_loop().create_future()) == "an answer"
        assert breaker.reason is None
        await breaker.close()


async def test_closing_waits_until_what_is_being_made_has_ended() -> None:
    """What it had begun, such as a program, is gone by then: another breaker may begin it anew."""
    begun, ended = asyncio.Event(), False

    async def create() -> Slow:
        nonlocal ended
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):  # it takes a while, as the end of a program does
                await asyncio.sleep(0)
            ended = True
        return Slow()

    breaker: CircuitBreaker[Slow] = CircuitBreaker("main", "slow", create, BreakerTimeouts(5.0, 60.0))
    making = asyncio.create_task(breaker.ready())
    await begun.wait()
    await breaker.close()
    assert ended
    await making
    await breaker.ready()  # which makes none any more
    assert breaker.backend is None


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (InUse(), 100.0, CoolingDown(100.0, "gone", 160.0)),
        (CoolingDown(100.0, "slow", 160.0), 170.0, CoolingDown(100.0, "gone", 230.0)),
        (CoolingDown(100.0, "slow", 160.0), 110.0, CoolingDown(100.0, "gone", 170.0)),
    ],
    ids=["at first", "again after the cool-down", "again before its end"],
)
def test_a_failure_begins_a_cool_down(before: BreakerState, now: float, after: BreakerState) -> None:
    """The reason is the last one, the beginning the first, and the cool-down begins anew."""
    assert failed(before, "gone", now, 60.0) == after


@pytest.mark.parametrize(
    ("state", "now", "may"),
    [
        (InUse(), 0.0, True),
        (CoolingDown(100.0, "gone", 160.0), 159.9, False),
        (CoolingDown(100.0, "gone", 160.0), 160.0, True),
        (CoolingDown(100.0, "gone", 100.0), 100.0, True),
    ],
)
def test_a_backend_that_failed_is_left_alone_for_a_while(state: BreakerState, now: float, may: bool) -> None:
    """Until the cool-down is over; one of no length is over at once."""
    assert may_be_tried(state, now) is may
