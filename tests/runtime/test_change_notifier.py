import asyncio

from memd.runtime.change_notifier import ChangeNotifier


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
