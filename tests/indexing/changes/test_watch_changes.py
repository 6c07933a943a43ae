"""From what happens on the disk to marks."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from memd.indexing.changes.pending import PendingChanges
from memd.indexing.changes.poll import Looks, PollPace, look_by_scan
from memd.indexing.changes.watch_changes import follow
from memd.model import Stamp
from memd.runtime.debounce import Debouncer
from memd.text.memory_paths import ExtraDirectory
from memd.watch.raw_events import EventBatch
from memd.watch.watch_plan import WatchPlan
from memd.watch.watcher import Event, PathsChanged, RescanNeeded, WatcherHealth, WatchMethods, watch
from tests.wait import until_async

A = Path("/w/a.md")
BLIND = WatcherHealth(ok=False, reason="no watches left", unseen=frozenset({Path("/w")}))


class Followed:
    """A stream of events that a test sends, and what comes of it."""

    def __init__(self) -> None:
        self.dirty = PendingChanges(Debouncer(quiet_s=1000, cap_s=1000), asyncio.get_running_loop().time)
        self.told: list[WatcherHealth] = []
        self.files: dict[Path, Stamp] = {}
        self.looks = 0
        self.closed = False
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    def send(self, event: Event) -> None:
        self._events.put_nowait(event)

    async def events(self) -> AsyncGenerator[Event, None]:
        try:
            while True:
                yield await self._events.get()
        finally:
            self.closed = True

    def look(self, places: frozenset[Path]) -> Looks:
        assert places == BLIND.unseen
        self.looks += 1
        return dict(self.files)


@asynccontextmanager
async def following() -> AsyncIterator[Followed]:
    followed = Followed()
    task = asyncio.create_task(
        follow(
            followed.events(),
            followed.dirty,
            followed.look,
            followed.told.append,
            pace=PollPace(least_s=0.005, share=0),
        )
    )
    try:
        yield followed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert followed.closed


async def test_a_change_is_marked() -> None:
    """A change that was seen waits for quiet, and may be needed sooner."""
    async with following() as followed:
        followed.send(PathsChanged(frozenset({A})))
        await until_async(lambda: followed.dirty.pending)
        assert followed.dirty.take_due_paths() is None
        followed.dirty.hurry()
        assert (await followed.dirty.take()).paths == {A}


async def test_a_rescan_is_a_pass_over_everything_at_once() -> None:
    """Where anything may have changed, everything is looked at, now."""
    async with following() as followed:
        followed.send(RescanNeeded("events were lost"))
        assert (await followed.dirty.take()).everything


async def test_blind_and_seeing_again() -> None:
    """While changes are not seen they are looked for, and somebody is told; when they are seen, that ends."""
    async with following() as followed:
        followed.send(BLIND)
        assert (await followed.dirty.take()).everything
        assert followed.told == [BLIND]
        followed.files = {A: Stamp(1, 1, 1)}
        await until_async(lambda: followed.dirty.pending)
        followed.dirty.hurry()
        assert (await followed.dirty.take()).paths == {A}
        followed.send(WatcherHealth(ok=True))
        followed.send(RescanNeeded("watching began again"))
        assert (await followed.dirty.take()).everything
        looks = followed.looks
        followed.files = {}
        followed.send(PathsChanged(frozenset({A})))
        await until_async(lambda: followed.dirty.pending)
        assert followed.looks <= looks + 1
        assert followed.told == [BLIND, WatcherHealth(ok=True)]


class Deaf:
    """The watches of a network mount while others write to it: nothing is told."""

    async def start(self, ground: WatchPlan) -> None:
        pass

    async def next(self, until: float) -> EventBatch:
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        return EventBatch()

    async def watch_files(self, _: Iterable[Path]) -> frozenset[Path]:
        return frozenset()

    def tap(self) -> None:
        pass

    async def stop(self) -> None:
        pass


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def test_a_network_mount_that_others_write_to(base: Path) -> None:
    """What other machines write, change and delete on a network mount is marked, and replies are told of no trouble."""
    note, other = base / "a.md", base / "b.md"
    note.write_text("first")
    info = f"1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:40 / {base} rw - nfs4 nas:/notes rw\n"
    roots = [ExtraDirectory(base)]
    looks = [0]
    scanned = look_by_scan(roots, 1000)

    def look(places: frozenset[Path]) -> Looks:
        looks[0] += 1
        return scanned(places)

    dirty = PendingChanges(Debouncer(quiet_s=1000, cap_s=1000), asyncio.get_running_loop().time)
    told: list[WatcherHealth] = []
    events = watch(roots, ways=WatchMethods(recursive=False, feed=Deaf, mountinfo=lambda: info))
    pace = PollPace(least_s=0.005, share=0)
    task = asyncio.create_task(follow(events, dirty, look, told.append, pace=pace))
    try:
        await until_async(lambda: looks[0] > 1)
        assert (await dirty.take()).everything
        for act in (lambda: other.write_text("new"), lambda: note.write_text("changed"), note.unlink):
            # A file that was just written is looked at more than once: only what comes after that counts.
            await until_async(lambda: time.time_ns() - newest_ns(note, other) > 50_000_000)
            before = looks[0]
            await until_async(lambda: looks[0] > before + 1)  # noqa: B023 - it is called before the next round
            dirty.hurry()
            await dirty.take()
            act()
            await until_async(lambda: dirty.pending)
            dirty.hurry()
            assert (await dirty.take()).paths & {note, other}
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    (health,) = told
    assert health.ok
    assert "nas:/notes" in (health.reason or "")


def newest_ns(*files: Path) -> int:
    return max(file.stat().st_mtime_ns for file in files if file.exists())
