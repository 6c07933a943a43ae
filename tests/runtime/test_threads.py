"""Threads of one's own."""

import asyncio
import threading
import weakref
from collections.abc import Callable

import pytest

from memd.runtime.threads import NoMemory, NoThread, Threads, beside
from tests.wait import until_async


class Gate:
    """Work that blocks until it is let through, as on a disk that does not answer."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.inside += 1
        self.open.wait(30)
        return threading.current_thread().name


async def test_results_and_errors_come_back() -> None:
    """A call gives what its function gives or raises, with the arguments it was given."""
    threads = Threads(1, "test")
    assert await threads.run(divmod, 7, 2) == (3, 1)
    assert await threads.run(sorted, [1, 2], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 1, 0)


async def test_so_many_run_at_a_time() -> None:
    """Beyond the limit calls wait, and begin in the order they came."""
    threads, gate = Threads(2, "test"), Gate()
    blocked = [asyncio.create_task(threads.run(gate)) for _ in range(2)]
    await until_async(lambda: gate.inside == 2)
    order: list[int] = []
    waiting = [asyncio.create_task(threads.run(order.append, number)) for number in range(5)]
    await asyncio.sleep(0)
    assert (threads.count, order) == (2, [])
    gate.open.set()
    await asyncio.gather(*blocked, *waiting)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert threads.count == 2


async def test_work_that_hangs_takes_nobody_elses_threads() -> None:
    """With every thread of one purpose blocked, another purpose goes on."""
    gate = Gate()
    hanging = Threads(1, "hanging")
    blocked = [asyncio.create_task(hanging.run(gate)) for _ in range(100)]
    await until_async(lambda: gate.inside == 1)
    assert await Threads(1, "other").run(len, "abc") == 3
    assert hanging.count == 1
    gate.open.set()
    await asyncio.gather(*blocked)


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    """A caller that gives up takes back what waits behind a call that hangs; what runs goes on."""
    threads, gate = Threads(1, "test"), Gate()
    running = asyncio.create_task(threads.run(gate))
    await until_async(lambda: gate.inside == 1)
    done: list[int] = []
    given_up = [asyncio.create_task(threads.run(done.append, number)) for number in range(1000)]
    kept = asyncio.create_task(threads.run(done.append, 1000))
    await asyncio.sleep(0)
    for task in [running, *given_up]:
        task.cancel()
    await asyncio.wait([running, *given_up])
    assert threads.waiting == 1
    gate.open.set()
    await kept
    assert done == [1000]


async def test_the_longest_call_under_way_is_told() -> None:
    """Whoever asks learns whether something hangs."""
    threads, gate = Threads(2, "test"), Gate()
    assert threads.busy_s() == 0.0
    blocked = asyncio.create_task(threads.run(gate))
    await until_async(lambda: threads.busy_s() > 0.01)
    before = threads.busy_s()
    await threads.run(len, "abc")
    assert threads.busy_s() >= before
    gate.open.set()
    await blocked
    await until_async(lambda: threads.busy_s() == 0.0)


async def test_threads_without_work_end() -> None:
    """Nothing is kept of a purpose that nobody has any more, and it is there again when it is needed."""
    threads = Threads(3, "ending", idle_s=0.01)
    for _ in range(3):
        await asyncio.gather(*(threads.run(len, "abc") for _ in range(9)))
        await until_async(lambda: threads.count == 0)
    assert not [thread for thread in threading.enumerate() if thread.name == "ending"]


async def test_the_end_of_all_work_is_told() -> None:
    """When what runs has ended, and what waits has run or been taken back."""
    threads, gate = Threads(1, "test"), Gate()
    running = asyncio.create_task(threads.run(gate))
    await until_async(lambda: gate.inside == 1)
    done: list[int] = []
    waiting = asyncio.create_task(threads.run(done.append, 1))
    given_up = asyncio.create_task(threads.run(done.append, 2))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    assert not threads.is_done
    gate.open.set()
    await until_async(lambda: threads.is_done)
    await asyncio.wait([running, waiting])
    assert done == [1]


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether the system refuses to begin threads."""
    start = threading.Thread.start
    is_refused = False

    def starting(thread: threading.Thread) -> None:
        if is_refused and thread.name == "test":
            raise RuntimeError("can't start new thread")
        start(thread)

    def refuse(wanted: bool) -> None:
        nonlocal is_refused
        is_refused = wanted

    monkeypatch.setattr(threading.Thread, "start", starting)
    return refuse


async def test_a_moment_without_threads_is_over_when_there_are_some(no_room: Callable[[bool], None]) -> None:
    """Calls that nobody could take fail and are not made later; the next ones are made."""
    threads = Threads(2, "test", idle_s=0.01)
    no_room(True)
    done: list[int] = []
    for number in range(3):
        with pytest.raises(NoThread):
            await threads.run(done.append, number)
    assert threads.count == 0
    assert threads.is_done
    no_room(False)
    for number in range(3, 6):
        await asyncio.wait_for(threads.run(done.append, number), 60)
    assert done == [3, 4, 5]


async def test_where_no_more_threads_begin_those_there_are_do_the_work(
    no_room: Callable[[bool], None],
) -> None:
    """One after the other."""
    threads, gate = Threads(3, "test"), Gate()
    blocked = asyncio.create_task(threads.run(gate))
    await until_async(lambda: gate.inside == 1)
    no_room(True)
    waiting = [asyncio.create_task(threads.run(abs, -number)) for number in range(5)]
    await asyncio.sleep(0)
    assert threads.count == 1
    gate.open.set()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [0, 1, 2, 3, 4]
    await blocked


async def test_work_that_memory_was_too_short_for_can_be_tried_again() -> None:
    """Whoever made the call knows what to do about that, as about a thread that was not to be had."""

    def work() -> None:
        raise MemoryError

    with pytest.raises(NoMemory) as short:
        await Threads(1, "test").run(work)
    assert isinstance(short.value.__cause__, MemoryError)


@pytest.mark.parametrize("deaths", [1, 2])
async def test_a_thread_that_dies_before_it_has_begun_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    """Memory was too short for its first steps: Python would wait for them for ever, and the loop with it."""
    bootstrap, left = vars(threading.Thread)["_bootstrap"], [None] * deaths

    def dying(thread: threading.Thread) -> None:
        if thread.name == "dying" and left:
            left.pop()
            return
        bootstrap(thread)

    monkeypatch.setattr(threading.Thread, "_bootstrap", dying)
    threads = Threads(1, "dying", birth_s=0.01)
    async with asyncio.timeout(60):
        both = await asyncio.gather(threads.run(divmod, 7, 2), threads.run(divmod, 9, 2))
        assert list(both) == [(3, 1), (4, 1)]
    assert threads.count == 1


async def test_a_thread_that_dies_is_replaced_while_others_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its call would wait for that of somebody else, which may hang."""
    bootstrap, begun = vars(threading.Thread)["_bootstrap"], 0

    def second_dies(thread: threading.Thread) -> None:
        nonlocal begun
        if thread.name == "dying":
            begun += 1
            if begun == 2:
                return
        bootstrap(thread)

    monkeypatch.setattr(threading.Thread, "_bootstrap", second_dies)
    threads, gate = Threads(2, "dying", idle_s=600.0, birth_s=0.01), Gate()
    hanging = asyncio.create_task(threads.run(gate))
    await until_async(lambda: gate.inside == 1)
    async with asyncio.timeout(60):
        assert await threads.run(divmod, 7, 2) == (3, 1)
    assert (gate.open.is_set(), threads.count) == (False, 2)
    gate.open.set()
    await hanging


async def test_all_calls_behind_a_thread_that_dies_fail_where_it_cannot_be_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise those that wait behind the first would wait until somebody makes another call."""
    start, started = threading.Thread.start, 0

    def starting(thread: threading.Thread) -> None:
        nonlocal started
        if thread.name == "dying":
            started += 1
            if started > 1:
                raise RuntimeError("can't start new thread")
        start(thread)

    bootstrap = vars(threading.Thread)["_bootstrap"]
    monkeypatch.setattr(threading.Thread, "start", starting)
    monkeypatch.setattr(
        threading.Thread,
        "_bootstrap",
        lambda thread: None if thread.name == "dying" else bootstrap(thread),
    )
    threads = Threads(1, "dying", birth_s=0.01)
    done: list[int] = []
    async with asyncio.timeout(60):
        calls = (threads.run(done.append, number) for number in range(3))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [NoThread] * 3
    assert (done, threads.count, threads.is_done) == ([], 0, True)


async def test_a_thread_that_begins_after_its_replacement_does_no_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise more threads than the limit would work."""
    bootstrap, late, go = vars(threading.Thread)["_bootstrap"], list[threading.Thread](), threading.Event()

    def first_is_late(thread: threading.Thread) -> None:
        if thread.name == "late" and not late:
            late.append(thread)
            go.wait(60)
        bootstrap(thread)

    monkeypatch.setattr(threading.Thread, "_bootstrap", first_is_late)
    threads, gate = Threads(1, "late", idle_s=0.01, birth_s=0.01), Gate()
    hanging = asyncio.create_task(threads.run(gate))
    await until_async(lambda: gate.inside == 1)
    done: list[int] = []
    waiting = asyncio.create_task(threads.run(done.append, 1))
    await until_async(lambda: threads.waiting == 1)
    go.set()
    await until_async(lambda: late[0].ident is not None and not late[0].is_alive())
    assert (done, threads.count, threads.waiting) == ([], 1, 1)
    gate.open.set()
    await asyncio.gather(hanging, waiting)
    assert done == [1]


async def test_what_must_not_fail_is_done_without_a_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the loop where that can be, else on it; with the same result, and the same errors."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("memd.runtime.threads._BESIDE", Threads(1, "beside", idle_s=0.01))
    here = threading.get_ident()
    assert await beside(threading.get_ident) != here
    await until_async(lambda: _counted("beside") == 0)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await beside(threading.get_ident) == here
    with pytest.raises(ZeroDivisionError):
        await beside(divmod, 1, 0)


def _counted(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


async def test_a_thread_that_waits_is_used_again() -> None:
    """One call after the other needs one thread, though each comes in the moment when the last one ends."""
    threads = Threads(8, "test")
    for _ in range(500):
        await threads.run(len, "abc")
    assert threads.count == 1


async def test_an_idle_thread_keeps_nothing_of_its_last_call() -> None:
    """A connection or a large text of it goes at once."""
    threads, given = Threads(1, "test"), Gate()
    kept = weakref.ref(given)
    assert not await threads.run(bool, [])
    await threads.run(id, given)
    del given
    await until_async(lambda: kept() is None, 15)
    assert threads.count == 1


async def test_many_at_once_all_run() -> None:
    """None of a flood is forgotten, though threads come and go meanwhile."""
    threads = Threads(3, "test", idle_s=0.0)
    for _ in range(20):
        assert await asyncio.gather(*(threads.run(abs, -n) for n in range(50))) == list(range(50))


def test_a_thread_that_hangs_does_not_keep_the_process() -> None:
    """The process may end while a call hangs."""
    gate = Gate()

    async def leave() -> None:
        task = asyncio.create_task(Threads(1, "stuck").run(gate))
        await until_async(lambda: gate.inside == 1)
        task.cancel()

    asyncio.run(leave())
    stuck = [thread for thread in threading.enumerate() if thread.name == "stuck"]
    assert [thread.daemon for thread in stuck] == [True]
    gate.open.set()
