import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.indexing.pending_changes import PendingChanges
from memd.runtime.debounce import Debouncer


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[PendingChanges, Clock]:
    clock = Clock()
    return PendingChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock), clock


A, B = Path("/w/a.md"), Path("/w/b.md")


async def test_marks_wait_for_quiet() -> None:
    """A pass is due when nothing was marked for the quiet time."""
    dirty, clock = made()
    dirty.mark([A])
    assert dirty.take_due_paths() is None
    assert dirty.pending == 1
    clock.now += 1.5
    taken = dirty.take_due_paths()
    assert taken is not None
    assert taken.paths == {A}
    assert dirty.pending == 0


async def test_steady_marks_are_taken_at_the_cap() -> None:
    """Marks that never cease are taken all the same."""
    dirty, clock = made()
    for _ in range(61):
        dirty.mark([A])
        clock.now += 0.1
    assert dirty.take_due_paths() is not None


async def test_mark_during_a_pass_is_in_the_next_one() -> None:
    """What is marked while a pass works is not lost with the marks that it took."""
    dirty, clock = made()
    dirty.mark([A])
    dirty.hurry()
    first = await dirty.take()
    dirty.mark([A, B])
    await dirty.finish(first)
    clock.now += 2
    second = await dirty.take()
    assert second.paths == {A, B}


async def test_marks_of_a_failed_pass_come_back() -> None:
    """A pass that fails puts its marks back, with force and all."""
    dirty, _ = made()
    dirty.mark([A])
    dirty.mark_all(force=True)
    taken = await dirty.take()
    assert taken.everything
    assert taken.force
    dirty.put_back(taken)
    dirty.hurry()
    again = await dirty.take()
    assert (again.paths, again.everything, again.force) == (frozenset({A}), True, True)


async def test_a_request_waits_for_a_pass_that_begins_after_it() -> None:
    """Whoever asks during a pass is not satisfied by that pass."""
    dirty, _ = made()
    dirty.mark_all()
    first = await dirty.take()
    number = dirty.mark_all(force=True)
    waiting = asyncio.create_task(dirty.wait_for_everything(number))
    await dirty.finish(first)
    await asyncio.sleep(0)
    assert not waiting.done()
    second = await dirty.take()
    assert second.number == number
    assert second.force
    await dirty.finish(second)
    assert await asyncio.wait_for(waiting, 1) == number


async def test_short_pass_between_files_of_a_long_one() -> None:
    """A hurried path is taken while a long pass runs, and the long one still counts as running."""
    dirty, _ = made()
    dirty.mark_all()
    long = await dirty.take()
    dirty.mark([A])
    number = dirty.hurry()
    short = dirty.take_due_paths()
    assert short is not None
    assert short.number == number
    await dirty.finish(short)
    await asyncio.wait_for(dirty.wait_for(number), 1)
    assert list(dirty.running_for_s()) == [long.number]
    waiting = asyncio.create_task(dirty.wait_for(long.number))
    await asyncio.sleep(0)
    assert not waiting.done()
    await dirty.finish(long)
    await asyncio.wait_for(waiting, 1)


async def test_a_short_pass_keeps_no_promise_of_a_long_one() -> None:
    """While everything is marked, paths go between, and whoever asked for everything waits on for that."""
    dirty, clock = made()
    dirty.mark_all()
    long = await dirty.take()
    dirty.mark([A])
    number = dirty.mark_all(force=True, eager=True)
    assert dirty.take_due_paths() is None, "the path is not due, whatever everything is"
    clock.now += 2
    short = dirty.take_due_paths()
    assert short is not None
    assert (short.paths, short.everything, short.force, short.eager) == (frozenset({A}), False, False, False)
    waiting = asyncio.create_task(dirty.wait_for_everything(number))
    await dirty.finish(short)
    await dirty.finish(long)
    await asyncio.sleep(0)
    assert not waiting.done()
    assert dirty.awaits_everything
    whole = await dirty.take()
    assert (whole.everything, whole.force, whole.eager) == (True, True, True)
    await dirty.finish(whole)
    assert await asyncio.wait_for(waiting, 1) == whole.number


async def test_everything_that_failed_waits_for_somebody_to_hurry() -> None:
    """What is put back begins no pass by itself, and goes with the next one that is due."""
    dirty, clock = made()
    dirty.mark_all(eager=True)
    failed = await dirty.take()
    dirty.put_back(failed)
    await dirty.finish(failed)
    next_one = asyncio.create_task(dirty.take())
    await asyncio.sleep(0)
    assert not next_one.done()
    clock.now += 2
    dirty.mark([A])
    dirty.hurry()
    taken = await asyncio.wait_for(next_one, 1)
    assert (taken.everything, taken.eager) == (True, True)


async def test_waiting_for_paths_that_are_due() -> None:
    """Whoever works at something long is told when paths are due, and not of anything else."""
    dirty, _ = made()
    due = asyncio.create_task(dirty.paths_due())
    dirty.mark_all()
    dirty.mark([])
    dirty.hurry()
    await asyncio.sleep(0.01)
    assert not due.done()
    dirty.mark([A])
    await asyncio.wait_for(due, 1)
    assert dirty.take_due_paths() is not None


@pytest.mark.parametrize("ask", [PendingChanges.mark_all, PendingChanges.hurry])
async def test_nothing_is_due_after_all_is_taken(ask: Callable[[PendingChanges], object]) -> None:
    """Else a pass would follow the other for ever."""
    dirty, clock = made()
    dirty.mark([A])
    ask(dirty)
    await dirty.take()
    clock.now += 100
    next_one = asyncio.create_task(dirty.take())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not next_one.done()
    assert dirty.take_due_paths() is None
    dirty.mark([B])
    assert dirty.take_due_paths() is None, "what comes now has its own time"
    next_one.cancel()


async def test_a_hurry_is_over_with_what_was_hurried() -> None:
    """What is marked after a short pass was taken waits for quiet again."""
    dirty, _ = made()
    dirty.mark([A])
    dirty.hurry()
    assert dirty.take_due_paths() is not None
    dirty.mark([B])
    assert dirty.take_due_paths() is None
