"""Slots are given in turn, and to short work first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from memd.embedding.passage_queue.fair_slots import FairSlots, end_all


@asynccontextmanager
async def turn(slots: FairSlots, who: str, *, quick: bool) -> AsyncIterator[None]:
    """Have a slot for as long as the block takes."""
    await slots.take(who, quick=quick)
    try:
        yield
    finally:
        slots.give_back()


class Line:
    """People who come one after the other and have the place when it is theirs."""

    def __init__(self) -> None:
        self.slots = FairSlots()
        self.had: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, who: str, *, quick: bool = False) -> None:
        async def have() -> None:
            async with turn(self.slots, who, quick=quick):
                self.had.append(who)

        self.tasks[who] = asyncio.create_task(have())
        await asyncio.sleep(0)

    async def ended(self) -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*self.tasks.values(), return_exceptions=True)


@pytest.mark.parametrize(
    ("coming", "order"),
    [
        ("abc", "abc"),
        ("abC", "Cab"),
        # One of the long queue between two of the quick one: nobody waits for ever.
        ("abcXYZ", "XaYbZc"),
        ("aXYZ", "XaYZ"),
        ("XYZ", "XYZ"),
    ],
)
async def test_the_quick_go_first_and_not_always(coming: str, order: str) -> None:
    """In the order they came, capitals in a hurry."""
    line = Line()
    async with turn(line.slots, "first", quick=False):
        for who in coming:
            await line.come(who, quick=who.isupper())
        assert line.had == []
    await line.ended()
    assert "".join(line.had) == order


async def test_one_at_a_time() -> None:
    """Nobody has the place while another has it."""
    slots, inside = FairSlots(), 0

    async def have(number: int) -> None:
        nonlocal inside
        async with turn(slots, str(number), quick=number % 3 == 0):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(have(number) for number in range(50)))


async def test_who_is_hurried_goes_before_the_others() -> None:
    """From the long queue into the quick one; somebody who does not wait is not disturbed."""
    line = Line()
    async with turn(line.slots, "first", quick=False):
        for who in "abc":
            await line.come(who)
        line.slots.hurry("c")
        line.slots.hurry("nobody")
    await line.ended()
    assert line.had == ["c", "a", "b"]


async def test_who_gives_up_passes_the_place_on() -> None:
    """Cancelled while waiting, after being hurried, or in the moment of getting it: the others have their turn."""
    line = Line()
    async with turn(line.slots, "first", quick=False):
        for who in "abcd":
            await line.come(who)
        line.slots.hurry("d")
        line.tasks["b"].cancel()
        line.tasks["d"].cancel()
        await asyncio.sleep(0)
    line.tasks["a"].cancel()  # it has been given the place, and has not run since
    await line.ended()
    assert line.had == ["c"]
    await line.come("e")
    await line.ended()
    assert line.had == ["c", "e"]


async def test_all_may_go_at_once() -> None:
    """Whoever has the place and all who wait are cancelled in the same moment: the place is free."""
    line = Line()
    for who in "aBcD":
        await line.come(who, quick=who.isupper())
    slots = line.slots
    forever = asyncio.create_task(_stay(slots))
    await asyncio.sleep(0)
    for who in "eFgH":
        await line.come(who, quick=who.isupper())
    for task in [forever, *line.tasks.values()]:
        task.cancel()
    await asyncio.wait([forever, *line.tasks.values()])
    await line.come("after")
    await line.ended()
    assert line.had[-1] == "after"
    assert not set("eFgH") & set(line.had)


async def _stay(slots: FairSlots) -> None:
    async with turn(slots, "forever", quick=False):
        await asyncio.Event().wait()


async def test_a_failure_passes_the_place_on() -> None:
    """Whatever happens in the place, it is free afterwards."""
    slots = FairSlots()
    with pytest.raises(ZeroDivisionError):
        async with turn(slots, "a", quick=True):
            raise ZeroDivisionError
    async with asyncio.timeout(60), turn(slots, "b", quick=False):
        pass


async def test_as_many_go_at_once_as_there_are_places() -> None:
    """No more, also when places become fewer; and more when there are more."""
    slots, inside, most = FairSlots(), 0, 0

    async def have(number: int) -> None:
        nonlocal inside, most
        async with turn(slots, str(number), quick=number % 3 == 0):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    for wanted in (3, 1, 5):
        slots.capacity, most = wanted, 0
        await asyncio.gather(*(have(number) for number in range(50)))
        assert most == wanted
    assert slots.waiting == 0


async def test_tasks_that_are_ended_have_ended() -> None:
    """However long they take to clean up; where there are none, nothing is waited for."""
    cleaned: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(number):
                await asyncio.sleep(0)
            cleaned.append(number)

    tasks = [asyncio.create_task(work(number)) for number in (0, 3, 9)]
    await asyncio.sleep(0)
    await end_all(tasks)
    assert cleaned == [0, 3, 9]
    assert all(task.cancelled() for task in tasks)
    await end_all([])


async def test_slots_that_were_added_are_taken_when_somebody_asks() -> None:
    """By those who waited before, and by whoever asks."""
    slots = FairSlots()
    await slots.take("a", quick=False)
    waiting = [asyncio.create_task(slots.take("b", quick=False))]
    await asyncio.sleep(0)
    slots.capacity = 3
    waiting.append(asyncio.create_task(slots.take("c", quick=False)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [one.done() for one in waiting] == [True, True]
    assert slots.waiting == 0
