"""Raw events from the library that watches where there is no inotify."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from watchfiles import Change

from memd.watch.events import EventBatch
from memd.watch.watch_plan import RootState, WatchPlan
from memd.watch.watchfiles_feed import LibraryFeed
from tests.wait import until_async


@asynccontextmanager
async def fed(directory: Path) -> AsyncIterator[LibraryFeed]:
    feed = LibraryFeed()
    try:
        await feed.start(WatchPlan(frozenset(), frozenset({directory}), RootState({}, {})))
        yield feed
    finally:
        await feed.stop()


async def test_events_of_a_tree(tmp_path: Path) -> None:
    """What happens anywhere below a directory is told; and that nothing happened is told in time."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    clock = asyncio.get_running_loop().time
    async with fed(tmp_path) as feed:
        assert await feed.next(clock() + 0.02) == EventBatch()
        (tmp_path / "deep" / "er" / "a.md").touch()
        found = await feed.next(clock() + 10)
        assert found == EventBatch(frozenset({(Change.added, str(tmp_path / "deep" / "er" / "a.md"))}))


async def test_an_idle_watch_looks_for_nothing_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread waits for the system, however long that is."""
    run, calls = anyio.to_thread.run_sync, []

    async def counting(*call: Any, **how: Any) -> Any:
        calls.append(call[0])
        return await run(*call, **how)

    monkeypatch.setattr("anyio.to_thread.run_sync", counting)
    async with fed(tmp_path) as feed:
        await until_async(lambda: calls)
        await feed.next(asyncio.get_running_loop().time() + 0.15)
        assert len(calls) == 1


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """That a directory went away meanwhile is told as such: the others can be watched."""
    with pytest.raises(FileNotFoundError):
        async with fed(tmp_path / "gone"):
            pass
