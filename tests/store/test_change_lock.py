"""Changes of an index: one at a time, and each to its end."""

import asyncio

import pytest

from memd.store.change_lock import ChangeLock


async def test_each_change_gives_another_state() -> None:
    """While one runs there is none."""
    lock = ChangeLock()
    before = lock.state
    async with lock:
        assert lock.state is None
    assert lock.state not in {None, before}


async def test_changes_run_one_at_a_time() -> None:
    """In the order in which they came, each with its own result."""
    lock, running, ended = ChangeLock(), 0, list[int]()

    async def change(number: int) -> int:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        running -= 1
        ended.append(number)
        return number

    async def carried(number: int) -> int:
        return await lock.carry_through(lambda: change(number))

    assert await asyncio.gather(*map(carried, range(5))) == ended == [0, 1, 2, 3, 4]


async def test_a_change_goes_on_without_its_caller() -> None:
    """Whoever closes the index waits for it."""
    lock, begun, may_end, ended = ChangeLock(), asyncio.Event(), asyncio.Event(), False

    async def change() -> None:
        nonlocal ended
        begun.set()
        await may_end.wait()
        ended = True

    caller = asyncio.create_task(lock.carry_through(change))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    assert not await lock.at_rest(0.001)
    closing = asyncio.create_task(lock.wait_for_all())
    may_end.set()
    await closing
    assert ended
    assert await lock.at_rest(60)
    await lock.wait_for_all()


async def test_a_change_that_fails_tells_its_caller() -> None:
    """And holds up no other one."""
    lock = ChangeLock()

    async def change() -> None:
        raise ValueError("the disk is full")

    with pytest.raises(ValueError, match="the disk is full"):
        await lock.carry_through(change)
    assert await lock.at_rest(60)
