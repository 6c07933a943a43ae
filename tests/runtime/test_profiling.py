"""Where the time of a piece of work goes."""

import asyncio
import gc
import threading
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.runtime.profiling import OTHER, TimedPart, TimeTrace, in_ms, slow_parts_ms, timed_part
from memd.runtime.threads import Threads
from tests.bounds import shipped
from tests.clock import Clock
from tests.wait import until_async


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_parts_add_up_to_the_whole(clock: Clock) -> None:
    """One after the other, several times, and what has no name."""
    with TimeTrace(clock) as trace:
        clock.run(1)
        with timed_part("keywords"):
            clock.run(2)
        with timed_part("ranking"):
            clock.run(4)
        with timed_part("keywords"):
            clock.run(8)
        clock.run(16)
    clock.run(32)
    assert trace.parts() == {OTHER: 17, "keywords": 10, "ranking": 4}
    assert list(trace.parts()) == [OTHER, "keywords", "ranking"]
    assert trace.took_s == 31


def test_the_time_within_a_part_is_that_of_the_inner_one(clock: Clock) -> None:
    """A note that takes long to be redacted is not a slow disk."""
    with TimeTrace(clock) as trace, timed_part("reading"):
        clock.run(1)
        with timed_part("redacting"):
            clock.run(2)
        clock.run(4)
    assert trace.parts() == {"reading": 5, "redacting": 2}


def test_of_parts_that_took_alike_the_names_are_in_order(clock: Clock) -> None:
    """Whichever came first: two answers can be compared."""
    with TimeTrace(clock) as trace:
        for part in ("vectors", "keywords", "ranking"):
            with timed_part(part):
                clock.run(1)
    assert list(trace.parts()) == ["keywords", "ranking", "vectors"]


async def test_what_runs_at_the_same_time_is_counted_once(clock: Clock) -> None:
    """Under both names, and under the name of the slower one for what it takes longer."""
    first, second = asyncio.Event(), asyncio.Event()

    async def side(name: str, end: asyncio.Event) -> None:
        with timed_part(name):
            await end.wait()

    with TimeTrace(clock) as trace:
        both = asyncio.gather(side("vectors", second), side("keywords", first))
        await asyncio.sleep(0)
        clock.run(2)
        first.set()
        await asyncio.sleep(0)
        clock.run(5)
        second.set()
        await both
    assert trace.parts() == {"vectors": 5, "keywords + vectors": 2}
    assert sum(trace.parts().values()) == trace.took_s


async def test_a_part_that_runs_twice_at_once_has_one_name(clock: Clock) -> None:
    """Several runs of one program are no other part than one."""
    with TimeTrace(clock) as trace, ExitStack() as stack:
        ended = asyncio.Event()

        async def run() -> None:
            with timed_part("qmd"):
                await ended.wait()

        runs = [asyncio.create_task(run()) for _ in range(3)]
        await asyncio.sleep(0)
        clock.run(3)
        stack.callback(ended.set)
        ended.set()
        await asyncio.gather(*runs)
    assert trace.parts() == {"qmd": 3}


async def test_waiting_for_a_thread_is_told_from_working_on_it(clock: Clock) -> None:
    """And what the function says it does there is a part of its own."""
    threads, began, opened = Threads(1, "test"), threading.Event(), threading.Event()

    def block() -> None:
        began.set()
        opened.wait(30)

    def work() -> None:
        clock.run(2)
        with timed_part("redacting"):
            clock.run(1)

    blocked = asyncio.create_task(threads.run(block))
    await until_async(began.is_set)
    with TimeTrace(clock) as trace:

        async def read() -> None:
            with timed_part("disk"):
                await threads.run(work)

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        clock.run(7)
        opened.set()
        await reading
    await blocked
    assert trace.parts() == {"disk, queued": 7, "disk": 2, "redacting": 1}


async def test_a_thread_that_nobody_waits_for_any_more_is_not_counted(clock: Clock) -> None:
    """Be it that it has not begun, or that it goes on for nobody."""
    threads, began, opened = Threads(1, "test"), threading.Event(), threading.Event()

    def block() -> None:
        with timed_part("redacting"):
            began.set()
            opened.wait(30)

    with TimeTrace(clock) as trace:
        with timed_part("disk"):
            first = asyncio.create_task(threads.run(block))
            await until_async(began.is_set)
            second = asyncio.create_task(threads.run(block))
            await asyncio.sleep(0)
            clock.run(1)
            for call in (first, second):
                call.cancel()
            await asyncio.wait([first, second])
            clock.run(2)
        clock.run(4)
        opened.set()
        await until_async(lambda: threads.is_done)
    assert trace.parts() == {OTHER: 4, "redacting": 2, "disk, queued + redacting": 1}


async def test_what_goes_on_after_its_part_is_over_takes_no_time_of_others(clock: Clock) -> None:
    """A look that several searches share may outlive the patience of the first."""
    ended = asyncio.Event()

    async def look() -> None:
        with timed_part("looking"):
            await ended.wait()
            with timed_part("looking again"):
                clock.run(1)

    with TimeTrace(clock) as trace:
        with timed_part("catching up"):
            shared = asyncio.create_task(look())
            await asyncio.sleep(0)
            clock.run(2)
        with timed_part("keywords"):
            clock.run(4)
            ended.set()
            await shared
    assert trace.parts() == {"keywords": 5, "looking": 2}


async def test_what_goes_on_after_the_work_is_no_part_of_it(clock: Clock) -> None:
    """A task that a search has begun may live for days."""
    ended = asyncio.Event()

    async def live() -> None:
        await ended.wait()
        for _ in range(1000):
            with timed_part("living"):
                clock.run(1)

    with TimeTrace(clock) as trace:
        clock.run(1)
        task = asyncio.create_task(live())
    ended.set()
    await task
    assert trace.parts() == {OTHER: 1}
    # The garbage collector knows all parts that are kept.
    kept = [one for one in gc.get_objects() if isinstance(one, TimedPart) and one.name == "living"]
    assert kept == []


def test_a_trace_within_another_is_its_own(clock: Clock) -> None:
    """A short pass goes in between two groups of files of a long one."""
    with TimeTrace(clock) as long:
        with timed_part("edits in between"):
            with TimeTrace(clock) as short, timed_part("reading"):
                clock.run(2)
            with timed_part("writing"):
                clock.run(3)
        with timed_part("reading"):
            clock.run(1)
    assert long.parts() == {"writing": 3, "edits in between": 2, "reading": 1}
    assert short.parts() == {"reading": 2}


def test_without_a_trace_nothing_is_measured() -> None:
    """What is done for nobody in particular just runs."""
    with timed_part("keywords"), timed_part("reading", "a.md"):
        pass


def test_the_slowest_is_known_by_name(clock: Clock) -> None:
    """With all that was done to it at once; of equal ones the first."""
    with TimeTrace(clock) as trace:
        for path, seconds in (("a.md", 2), ("b.md", 3), ("c.md", 3)):
            with timed_part("reading", path), timed_part("redacting"):
                clock.run(seconds)
        with timed_part("writing"):
            clock.run(9)
    assert trace.slowest() == ("b.md", 3)
    with TimeTrace(clock) as nothing:
        pass
    assert nothing.slowest() is None


def test_a_failure_ends_the_parts_it_goes_through(clock: Clock) -> None:
    """What is done after it is somewhere else."""

    def fail() -> None:
        with timed_part("qmd"), timed_part("reading text"):
            clock.run(1)
            raise ZeroDivisionError

    with TimeTrace(clock) as trace:
        with pytest.raises(ZeroDivisionError):
            fail()
        with timed_part("keywords"):
            clock.run(2)
    assert trace.parts() == {"keywords": 2, "reading text": 1}


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 5)), max_size=1500))
def test_the_sum_is_right_whatever_begins_and_ends_when(steps: list[tuple[int, bool, int]]) -> None:
    """Parts within parts, ended in any order, or never; many more of them than are kept at once."""
    clock = Clock()
    with TimeTrace(clock) as trace:
        parts = [trace.whole]
        for which, begins, seconds in steps:
            clock.run(seconds)
            part = parts[which % len(parts)]
            if begins:
                inner = TimedPart(f"part {which}")
                inner.begin(part)
                parts = [*parts[-8:], inner]
            elif part is not trace.whole:
                part.end()
    assert trace.took_s == sum(seconds for _, _, seconds in steps)
    assert sum(trace.parts().values()) == trace.took_s


@pytest.mark.parametrize(
    ("seconds", "ms"), [(0.00051, 0.5), (0.0094, 9.4), (0.0105, 10.0), (0.25, 250.0), (12.3456, 12346.0)]
)
def test_milliseconds_are_as_exact_as_anybody_wants(seconds: float, ms: float) -> None:
    """A tenth below ten, whole ones above."""
    assert in_ms(seconds) == ms


def test_parts_that_nobody_would_notice_are_left_out(clock: Clock) -> None:
    """The longest comes first."""
    with TimeTrace(clock) as trace:
        with timed_part("keywords"):
            clock.run(shipped("memd.runtime.profiling._NOTICED_S") - 0.00001)
        with timed_part("ranking"):
            clock.run(0.0123)
        with timed_part("vectors"):
            clock.run(1.5)
        with timed_part("snippets"):
            clock.run(shipped("memd.runtime.profiling._NOTICED_S") + 0.00001)
    assert list(slow_parts_ms(trace).items()) == [("vectors", 1500), ("ranking", 12), ("snippets", 0.5)]


def test_however_often_a_part_comes_it_adds_up(clock: Clock) -> None:
    """Beginnings and ends are added up after so many, be it in the middle of a part."""
    often = shipped("memd.runtime.profiling._AT_ONCE")
    with TimeTrace(clock) as trace:
        with timed_part("outer"):
            for _ in range(often):
                with timed_part("inner"):
                    clock.run(1)
                clock.run(1)
        clock.run(1)
    parts = trace.parts()
    assert (parts["outer"], parts["inner"], trace.took_s) == (often, often, 2 * often + 1)
