"""A person is asked before a rebuild that costs money."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memd.embedding.queue.agent_queues import AgentQueues
from memd.rebuild.confirm_cost import RebuildPermission
from memd.rebuild.cost import CostEstimate, RebuildCost
from memd.store.meta import Fingerprint

WANTED = Fingerprint("c1", "t1", ("memory",), "openai", "m", "1", 8)


class Queue:
    """Asks before anything is sent, or before nothing."""

    def __init__(self, *, asks: bool) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self.confirmed = asyncio.Event()
        self._asks = asks

    def asks_before(self, _: int) -> bool:
        return self._asks

    @asynccontextmanager
    async def permitted(self, agent: str, texts: int, tokens: int) -> AsyncIterator[None]:
        self.asked.append((agent, texts, tokens))
        await self.confirmed.wait()
        yield


def permission_of(queue: Queue | None, estimated: list[bool]) -> RebuildPermission:
    async def of_rebuild(*, force: bool) -> RebuildCost:
        estimated.append(force)
        return RebuildCost(files=1, chunks=7, cached=2, to_embed=5, tokens=500)

    queues: Any = SimpleNamespace(queue=lambda space: queue if space == WANTED.space else None)
    estimate: Any = SimpleNamespace(of_rebuild=of_rebuild)
    return RebuildPermission("main", cast("AgentQueues", queues), cast("CostEstimate", estimate))


@pytest.mark.parametrize("queue", [None, Queue(asks=False)])
async def test_where_nothing_costs_nobody_is_asked(queue: Queue | None) -> None:
    """Nor are all files read to find out what it would cost."""
    estimated: list[bool] = []
    async with permission_of(queue, estimated).permitted(WANTED, force=True):
        pass
    assert estimated == []


@pytest.mark.parametrize("force", [False, True])
async def test_a_person_is_asked_with_what_it_costs_and_the_rebuild_waits(*, force: bool) -> None:
    """Through whom is known meanwhile: if another queue is to embed, nobody can answer this one any more."""
    queue, estimated, begun = Queue(asks=True), list[bool](), asyncio.Event()
    permission = permission_of(queue, estimated)

    async def rebuild() -> None:
        async with permission.permitted(WANTED, force=force):
            assert permission.asked is None
            begun.set()

    building = asyncio.create_task(rebuild())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (queue.asked, estimated) == ([("main", 5, 500)], [force])
    assert permission.asked is cast("Any", queue)
    assert not begun.is_set()
    queue.confirmed.set()
    await building
    assert begun.is_set()


async def test_a_question_that_is_given_up_is_asked_no_more() -> None:
    """The rebuild was cancelled while it waited."""
    queue = Queue(asks=True)
    permission = permission_of(queue, [])

    async def rebuild() -> None:
        async with permission.permitted(WANTED, force=False):
            raise AssertionError

    building = asyncio.create_task(rebuild())
    for _ in range(5):
        await asyncio.sleep(0)
    building.cancel()
    await asyncio.wait([building])
    assert permission.asked is None
