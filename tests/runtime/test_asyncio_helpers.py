import asyncio

import pytest

from memd.runtime.asyncio_helpers import ChangeNotifier, first_of, is_cancelled


async def test_the_first_ends_the_wait_for_all_others() -> None:
    """The others are cancelled, and have ended by then."""
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("other")

    await first_of(wait(), asyncio.sleep(0), wait())
    assert ended == ["other", "other"]


async def test_the_failure_of_the_first_is_raised() -> None:
    """Nothing that was waited for fails unseen."""

    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await first_of(asyncio.Event().wait(), fail())


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_task_tells_its_own_cancellation_from_that_of_what_it_waits_for(is_own: bool) -> None:
    """Both arrive as CancelledError; only the one must end the task."""
    inner = asyncio.ensure_future(asyncio.Event().wait())
    told: list[bool] = []

    async def wait() -> None:
        try:
            await inner
        except asyncio.CancelledError:
            told.append(is_cancelled())

    outer = asyncio.create_task(wait())
    await asyncio.sleep(0)
    (outer if is_own else inner).cancel()
    await asyncio.wait([outer])
    assert told == [is_own]


async def test_everybody_who_waits_sees_each_change() -> None:
    """A change wakes all, and the version tells one who was busy meanwhile that there was one."""
    changed = ChangeNotifier()
    seen: list[int] = []

    async def follow() -> None:
        version = changed.version
        while version < 3:
            version = await changed.since(version)
            seen.append(version)

    async with asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(follow()) for _ in range(2)]
        await asyncio.sleep(0)
        changed.notify()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        changed.notify()
        changed.notify()
        await asyncio.wait(followers)
    assert seen == [1, 1, 3, 3]


async def test_a_change_of_before_is_not_the_next_one() -> None:
    """What has happened already is met at once by version, and not at all by `next`."""
    changed = ChangeNotifier()
    changed.notify()
    assert await changed.since(0) == 1
    waiting = asyncio.create_task(changed.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    changed.notify()
    assert await waiting == 2
