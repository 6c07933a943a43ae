"""What counts as waiting, and when a budget is spent; on a clock that passes at once."""

import asyncio

import pytest

from memd.runtime.wait_budget import WaitBudget, waiting
from tests.clock import hastily, now_s


async def _work(*seconds: float) -> None:
    """Wait for something that may not answer for so long each time, with other work of ten seconds between."""
    for number, wait_s in enumerate(seconds):
        await asyncio.sleep(10.0 if number else 0.0)
        with waiting():
            await asyncio.sleep(wait_s)


async def _spent_after_s(seconds: tuple[float, ...]) -> float | None:
    """When a budget of five seconds is spent by some work; None: never."""
    budget, began = WaitBudget(5.0), now_s()
    with budget.applied():
        work = asyncio.create_task(_work(*seconds))
    spent = asyncio.create_task(budget.is_spent.wait())
    await asyncio.wait([work, spent], return_when=asyncio.FIRST_COMPLETED)
    took_s = now_s() - began if spent.done() else None
    for task in (work, spent):
        task.cancel()
    return took_s


@pytest.mark.parametrize(
    ("seconds", "spent_s"),
    [((2.0, 2.0), None), ((6.0,), 5.0), ((3.0, 3.0), 15.0), ((4.5, 0.9), 15.0), ((1.0, 1.0, 1.0, 3.0), 35.0)],
    ids=["in time", "one long wait", "two short ones", "a moment too long", "several"],
)
def test_waits_add_up_and_other_work_does_not_count(
    seconds: tuple[float, ...], spent_s: float | None
) -> None:
    """Of five seconds."""
    took_s = hastily(_spent_after_s(seconds))
    assert took_s == (None if spent_s is None else pytest.approx(spent_s))


def test_waits_within_or_beside_another_one_count_once() -> None:
    """A search waits for a connection to be made, and the making waits for the server, in a task of its own."""

    async def waited() -> None:
        with waiting():
            await asyncio.sleep(4.0)

    async def is_spent() -> bool:
        budget = WaitBudget(5.0)
        with budget.applied(), waiting():
            await asyncio.create_task(waited())
        with budget.applied():
            await _work(0.5)
        return budget.is_spent.is_set()

    assert not hastily(is_spent())


def test_nothing_passes_where_no_budget_is_applied() -> None:
    """Also after one was."""

    async def is_spent() -> bool:
        budget = WaitBudget(0.0)
        with budget.applied():
            pass
        with waiting():
            await asyncio.sleep(1.0)
        return budget.is_spent.is_set()

    assert not hastily(is_spent())
