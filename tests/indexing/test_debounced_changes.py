import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.indexing.debounced_changes import DebouncedChanges
from memd.runtime.timers import Debouncer
from tests.clock import hastily, now_s


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[DebouncedChanges, Clock]:
    clock = Clock()
    return DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock), clock


A, B = Path("/w/a.md"), Path("/w/b.md")


async def test_marks_wait_for_quiet() -> None:
    """A pass is due when nothing was marked for the quiet time."""
    pending, clock = made()
    pending.mark([A])
    assert pending.take_due_paths() is None
    assert pending.count == 1
    clock.now += 1.5
    taken = pending.take_due_paths()
    assert taken is not None
    assert taken.paths == {A}
    assert pending.count == 0


async def test_steady_marks_are_taken_at_the_cap() -> None:
    """Marks that never cease are taken all the same."""
    pending, clock = made()
    for _ in range(61):
        pending.mark([A])
        clock.now += 0.1
    assert pending.take_due_paths() is not None


async def test_mark_during_a_pass_is_in_the_next_one() -> None:
    """What is marked while a pass works is not lost with the marks that it took."""
    pending, clock = made()
    pending.mark([A])
    pending.hurry()
    first = await pending.take()
    pending.mark([A, B])
    await pending.finish(first)
    clock.now += 2
    second = await pending.take()
    assert second.paths == {A, B}


async def test_force_during_a_pass_is_in_the_next_one() -> None:
    """Who asks for every file to be read does not get the pass that reads what changed."""
    pending, _ = made()
    pending.mark_all()
    pending.hurry()
    first = await pending.take()
    assert (first.everything, first.force) == (True, False)
    pending.mark_all(force=True)
    pending.hurry()
    await pending.finish(first)
    second = await pending.take()
    assert (second.everything, second.force) == (True, True)
    await pending.finish(second)
    pending.mark_all()
    pending.hurry()
    assert not (await pending.take()).force


async def test_marks_of_a_failed_pass_come_back() -> None:
    """A pass that fails puts its marks back, with force and all."""
    pending, _ = made()
    pending.mark([A])
    pending.mark_all(force=True)
    taken = await pending.take()
    assert taken.everything
    assert taken.force
    pending.put_back(taken)
    pending.hurry()
    again = await pending.take()
    assert (again.paths, again.everything, again.force) == (frozenset({A}), True, True)


async def test_a_request_waits_for_a_pass_that_begins_after_it() -> None:
    """Whoever asks during a pass is not satisfied by that pass."""
    pending, _ = made()
    pending.mark_all()
    first = await pending.take()
    number = pending.mark_all(force=True)
    waiting = asyncio.create_task(pending.wait_for_everything(number))
    await pending.finish(first)
    await asyncio.sleep(0)
    assert not waiting.done()
    second = await pending.take()
    assert second.number == number
    assert second.force
    await pending.finish(second)
    assert await asyncio.wait_for(waiting, 60) == number


async def test_short_pass_between_files_of_a_long_one() -> None:
    """A hurried path is taken while a long pass runs, and the long one still counts as running."""
    pending, _ = made()
    pending.mark_all()
    long = await pending.take()
    pending.mark([A])
    number = pending.hurry()
    short = pending.take_due_paths()
    assert short is not None
    assert short.number == number
    await pending.finish(short)
    await asyncio.wait_for(pending.wait_for(number), 1)
    assert list(pending.running_for_s()) == [long.number]
    waiting = asyncio.create_task(pending.wait_for(long.number))
    await asyncio.sleep(0)
    assert not waiting.done()
    await pending.finish(long)
    await asyncio.wait_for(waiting, 60)


async def test_a_short_pass_keeps_no_promise_of_a_long_one() -> None:
    """While everything is marked, paths go between, and whoever asked for everything waits on for that."""
    pending, clock = made()
    pending.mark_all()
    long = await pending.take()
    pending.mark([A])
    number = pending.mark_all(force=True, eager=True)
    assert pending.take_due_paths() is None, "the path is not due, whatever everything is"
    clock.now += 2
    short = pending.take_due_paths()
    assert short is not None
    assert (short.paths, short.everything, short.force, short.eager) == (frozenset({A}), False, False, False)
    waiting = asyncio.create_task(pending.wait_for_everything(number))
    await pending.finish(short)
    await pending.finish(long)
    await asyncio.sleep(0)
    assert not waiting.done()
    assert pending.awaits_everything
    whole = await pending.take()
    assert (whole.everything, whole.force, whole.eager) == (True, True, True)
    await pending.finish(whole)
    assert await asyncio.wait_for(waiting, 60) == whole.number


async def test_everything_that_failed_waits_for_somebody_to_hurry() -> None:
    """What is put back begins no pass by itself, and goes with the next one that is due."""
    pending, clock = made()
    pending.mark_all(eager=True)
    failed = await pending.take()
    pending.put_back(failed)
    await pending.finish(failed)
    next_one = asyncio.create_task(pending.take())
    await asyncio.sleep(0)
    assert not next_one.done()
    clock.now += 2
    pending.mark([A])
    pending.hurry()
    taken = await asyncio.wait_for(next_one, 60)
    assert (taken.everything, taken.eager) == (True, True)


async def test_waiting_for_paths_that_are_due() -> None:
    """Whoever works at something long is told when paths are due, and not of anything else."""
    pending, _ = made()
    due = asyncio.create_task(pending.paths_due())
    pending.mark_all()
    pending.mark([])
    pending.hurry()
    await asyncio.sleep(0.01)
    assert not due.done()
    pending.mark([A])
    await asyncio.wait_for(due, 60)
    assert pending.take_due_paths() is not None


@pytest.mark.parametrize("ask", [DebouncedChanges.mark_all, DebouncedChanges.hurry])
async def test_nothing_is_due_after_all_is_taken(ask: Callable[[DebouncedChanges], object]) -> None:
    """Else a pass would follow the other for ever."""
    pending, clock = made()
    pending.mark([A])
    ask(pending)
    await pending.take()
    clock.now += 100
    next_one = asyncio.create_task(pending.take())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not next_one.done()
    assert pending.take_due_paths() is None
    pending.mark([B])
    assert pending.take_due_paths() is None, "what comes now has its own time"
    next_one.cancel()


async def test_a_hurry_is_over_with_what_was_hurried() -> None:
    """What is marked after a short pass was taken waits for quiet again."""
    pending, _ = made()
    pending.mark([A])
    pending.hurry()
    assert pending.take_due_paths() is not None
    pending.mark([B])
    assert pending.take_due_paths() is None


@pytest.mark.parametrize("quiet_s", [0.25, 1.0, 1.5])
def test_a_pass_begins_as_soon_as_it_is_due(quiet_s: float) -> None:
    """Neither later, nor by looking again and again."""

    async def took_s() -> list[float]:
        pending = DebouncedChanges(Debouncer(quiet_s=quiet_s, cap_s=6.0), now_s)
        taken = []
        for _ in range(3):
            began = now_s()
            pending.mark([A])
            await pending.take()
            taken.append(now_s() - began)
        return taken

    assert hastily(took_s()) == pytest.approx([quiet_s] * 3)


async def test_no_pass_over_everything_has_ended_before_the_first_one() -> None:
    """Whoever asks for the first one waits for it."""
    pending, _ = made()
    waiting = asyncio.create_task(pending.wait_for_everything(pending.mark_all()))
    first = await pending.take()
    await asyncio.sleep(0)
    assert not waiting.done()
    await pending.finish(first)
    assert await asyncio.wait_for(waiting, 60) == first.number


async def test_marks_that_a_pass_has_taken_are_unfinished_until_it_has_ended() -> None:
    """What is marked again meanwhile counts once, and everything as one; those of a failed pass wait again."""
    pending, _ = made()
    pending.mark([A, B])
    pending.mark_all()
    taken = await pending.take()
    pending.mark([A])
    assert (pending.count, pending.unfinished) == (1, 3)
    pending.put_back(taken)
    await pending.finish(taken)
    assert (pending.count, pending.unfinished) == (3, 3)
    pending.hurry()
    await pending.finish(await pending.take())
    assert (pending.count, pending.unfinished) == (0, 0)
