"""Raw events from the library that watches where there is no inotify."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from anyio.to_thread import current_default_thread_limiter

from memd.watch.events import Change, EventBatch, FeedBroken
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


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the library is asked for, once for each watch, behind what it does: batches that it gives, or an error."""
    script: list[Any] = []

    async def watch(*directories: Path, **how: Any) -> AsyncIterator[set[tuple[Change, str]]]:
        steps = list(script)
        script.append((directories, how))
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, set):
                yield step
        if not steps:
            await how["stop_event"].wait()

    monkeypatch.setattr("memd.watch.watchfiles_feed.awatch", watch)
    return script


async def test_what_the_library_is_asked_for(told: list[Any]) -> None:
    """All events, and each error; single directories and trees are watched apart, and what is empty not at all."""
    feed = LibraryFeed()
    plan = WatchPlan(frozenset({Path("/b"), Path("/a")}), frozenset(), RootState({}, {}))
    await feed.start(plan)
    ((directories, how),) = told
    assert directories == (Path("/a"), Path("/b"))
    assert not how.pop("stop_event").is_set()
    assert how == {
        "watch_filter": None,
        "debounce": 50,
        "step": 50,
        "rust_timeout": 0,
        "recursive": False,
        "ignore_permission_denied": False,
    }
    assert await feed.watch_files([Path("/a/b.md")]) == frozenset()
    await feed.stop()


async def test_batches_that_wait_are_given_together(told: list[Any]) -> None:
    """And the end of a watch is told with them: no more would come."""
    one, other = (Change.added, "/a/1.md"), (Change.deleted, "/a/2.md")
    told += [{one}, {other}]
    feed, tokens = LibraryFeed(), current_default_thread_limiter().total_tokens
    plan = WatchPlan(frozenset({Path("/a")}), frozenset(), RootState({}, {}))
    with pytest.raises(FeedBroken, match="the watch ended"):
        await feed.start(plan)
    with pytest.raises(FeedBroken, match="the watch ended"):
        await feed.next(asyncio.get_running_loop().time() + 5)
    await feed.stop()
    assert current_default_thread_limiter().total_tokens == tokens


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("no watches are left"),
        ExceptionGroup(
            "all", [ExceptionGroup("some", [RuntimeError("no watches are left"), OSError("other")])]
        ),
    ],
    ids=["one", "groups"],
)
async def test_an_error_of_the_library_is_told_by_its_words(told: list[Any], failure: Exception) -> None:
    """Whether it comes alone or in groups; whoever waits is woken."""
    told += [failure]
    feed = LibraryFeed()
    with pytest.raises(FeedBroken, match=r"^no watches are left$"):
        await feed.start(WatchPlan(frozenset({Path("/a")}), frozenset(), RootState({}, {})))
    with pytest.raises(FeedBroken, match=r"^no watches are left$"):
        await feed.next(asyncio.get_running_loop().time() + 5)
    await feed.stop()


async def test_events_of_several_watches_come_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits of all of them is one batch."""
    gave = asyncio.Event()

    async def watch(*directories: Path, **how: Any) -> AsyncIterator[set[tuple[Change, str]]]:
        yield {(Change.added, f"{directories[0]}/a.md")}
        gave.set()
        await how["stop_event"].wait()

    monkeypatch.setattr("memd.watch.watchfiles_feed.awatch", watch)
    feed = LibraryFeed()
    await feed.start(WatchPlan(frozenset({Path("/flat")}), frozenset({Path("/deep")}), RootState({}, {})))
    await gave.wait()
    found = await feed.next(asyncio.get_running_loop().time() + 5)
    assert found == EventBatch(frozenset({(Change.added, "/flat/a.md"), (Change.added, "/deep/a.md")}))
    await feed.stop()
