"""Glances that never hold a search up."""

import asyncio
import threading
from pathlib import Path

from memd.paths import Root
from memd.sync.glance import Glance
from memd.sync.peek import Peek
from memd.threads import Threads
from tests.wait import until_async

NOTE = Path("/w/memory/a.md")


class Dead(Glance):
    """A glance at a disk that answers when the test says so."""

    def __init__(self) -> None:
        super().__init__(tuple[Root, ...]())
        self.answers = threading.Event()
        self.looks = 0

    def changed(self) -> list[Path]:
        self.looks += 1
        self.answers.wait(30)
        return [NOTE]


async def test_a_disk_that_does_not_answer_is_waited_for_once() -> None:
    """The first search waits as long as it may, those after it not at all, and one thread is lost."""
    glance, threads = Dead(), Threads(1, "test")
    peek = Peek(glance, threads)
    assert await peek.changed(0.05) is None
    async with asyncio.timeout(5):
        for _ in range(200):
            assert await peek.changed(0.05) is None
    assert (glance.looks, threads.count) == (1, 1)
    assert peek.blocked_s() > 0.05
    glance.answers.set()
    await until_async(lambda: peek.blocked_s() == 0.0)
    assert await peek.changed(5.0) == [NOTE]


async def test_a_look_is_shared_by_those_that_asked_before_it_began() -> None:
    """Searches that ask while one look is under way share the next one, which begins after they asked."""
    glance, threads = Dead(), Threads(1, "test")
    peek = Peek(glance, threads)
    first = asyncio.create_task(peek.changed(20.0))
    await until_async(lambda: glance.looks == 1)
    others = [asyncio.create_task(peek.changed(20.0)) for _ in range(50)]
    await asyncio.sleep(0)
    glance.answers.set()
    assert await asyncio.gather(first, *others) == [[NOTE]] * 51
    assert glance.looks == 2


async def test_a_search_that_gives_up_takes_nothing_from_others() -> None:
    """A look is waited for by many; one that is cancelled leaves it to the others."""
    glance = Dead()
    peek = Peek(glance, Threads(1, "test"))
    given_up, kept = asyncio.create_task(peek.changed(20.0)), asyncio.create_task(peek.changed(20.0))
    await until_async(lambda: glance.looks == 1)
    given_up.cancel()
    await asyncio.wait([given_up])
    glance.answers.set()
    assert await kept == [NOTE]
