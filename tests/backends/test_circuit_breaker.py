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
from memd.errors import TransientError
from tests.clock import hastily, now_s


class Slow:
    """A backend whose answers take as long as it is told, one after the other, and then no time."""

    def __init__(self, *took_s: float) -> None:
        self.took_s = list(took_s)
        self.asked = 0
        self.failure: Exception | None = None

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        return None

    async def answer(self) -> int:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(self.took_s.pop(0) if self.took_s else 0)
        if self.failure is not None:
            raise self.failure
        return number


class Bench:
    """A breaker around a slow backend, whose searches have half a second; a failure counts for a minute."""

    def __init__(self, *took_s: float) -> None:
        self.slow = Slow(*took_s)
        self.breaker: CircuitBreaker[Slow] = CircuitBreaker(
            "main", "team:alice/main", self._create, BreakerTimeouts(5.0, 60.0), clock=now_s
        )

    async def _create(self) -> Slow:
        return self.slow

    @property
    def state(self) -> BreakerState:
        """Of the breaker."""
        return self.breaker.state

    async def ask(self) -> tuple[int | None, float]:
        """The number of the answer, None if there is none, and the seconds until then."""
        began = now_s()
        overdue = asyncio.ensure_future(asyncio.sleep(0.5))
        answer = await self.breaker.ask(Slow.answer, overdue)
        overdue.cancel()
        return answer, round(now_s() - began, 3)


LATE = "team:alice/main has not answered for 0.5 s"


def test_a_backend_that_is_slow_each_time_delays_one_search() -> None:
    """Who asks goes on without it, and so do all others until the cool-down is over, though it answers in the end."""

    async def main() -> None:
        bench = Bench(0.8, 0.8, 0.8, 0.8)
        assert await bench.ask() == (None, 0.5)
        cooling_down = CoolingDown(0.5, LATE, 60.5)
        assert bench.state == cooling_down
        for _ in range(5):
            assert await bench.ask() == (None, 0.0)
            await asyncio.sleep(1.0)
        assert (bench.slow.asked, bench.state, bench.breaker.reason) == (2, cooling_down, LATE)
        await asyncio.sleep(60.0)
        assert await bench.ask() == (None, 0.5)
        await asyncio.sleep(5.0)
        assert bench.state == CoolingDown(0.5, LATE, 126.0)
        await asyncio.sleep(60.0)
        assert await bench.ask() == (5, 0.0)
        assert (bench.slow.asked, bench.breaker.reason) == (5, None)
        await bench.breaker.close()

    hastily(main())


def test_a_backend_that_was_slow_once_is_back_when_it_answers_in_time() -> None:
    """Nobody waits for that; the late answer is no answer to another search."""

    async def main() -> None:
        bench = Bench(0.8, 0.1)
        assert await bench.ask() == (None, 0.5)
        await asyncio.sleep(0.35)  # the late answer is there, and the next one is not
        assert (bench.slow.asked, await bench.ask()) == (2, (None, 0.0))
        await asyncio.sleep(0.1)
        assert bench.state == InUse()
        assert await bench.ask() == (3, 0.0)
        await bench.breaker.close()

    hastily(main())


def test_a_late_failure_begins_another_cool_down() -> None:
    """With its reason, which says more than that it was late; searches beside the one that is late are cancelled."""

    async def main() -> None:
        bench = Bench(3.0, 3.0)
        bench.slow.failure = TransientError("the server has gone away")
        assert [*await asyncio.gather(bench.ask(), bench.ask())] == [(None, 0.5), (None, 0.5)]
        await asyncio.sleep(3.0)
        assert bench.state == CoolingDown(0.5, "the server has gone away", 63.0)
        assert (bench.slow.asked, await bench.ask()) == (2, (None, 0.0))
        await bench.breaker.close()

    hastily(main())


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
def test_a_backend_that_failed_is_cooling_down_for_a_while(
    state: BreakerState, now: float, may: bool
) -> None:
    """Until the cool-down is over; one of no length is over at once."""
    assert may_be_tried(state, now) is may
