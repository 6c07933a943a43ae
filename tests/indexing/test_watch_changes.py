"""Marks of what changes on the disk, by events and by polling."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from memd.domain_types import Stamp
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.watch_changes import Looks, PolledPlaces, PollPace, differences, follow, look_by_scan, poll
from memd.runtime.timers import Debouncer
from memd.text.memory_paths import ExtraDirectory, SessionPaths, SingleFile
from memd.watch.events import EventBatch
from memd.watch.watch_plan import WatchPlan
from memd.watch.watcher import Event, PathsChanged, RescanNeeded, WatcherHealth, WatchMethods, watch
from tests.bounds import shipped
from tests.sources.transcripts.openclaw_store import OpenClawStore
from tests.wait import until_async

OLD, NEW = Stamp(1, 1, 1), Stamp(1, 2, 1)
A, B = Path("/w/a.md"), Path("/w/b.md")
PACE = PollPace(least_s=0.005, share=0, failed_s=0.005)
W = frozenset({Path("/w")})


@pytest.mark.parametrize(
    ("took_s", "pause_s"), [(0.0, 2.0), (0.05, 2.0), (0.2, 4.0), (1.0, 20.0), (60.0, 600.0)]
)
def test_a_look_costs_a_twentieth(took_s: float, pause_s: float) -> None:
    """A long look comes rarely, a short one every other second."""
    assert PollPace().pause_s(took_s) == pytest.approx(pause_s)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {}, set()),
        ({A: OLD}, {A: OLD}, set()),
        ({A: OLD}, {A: NEW}, {A}),
        ({A: OLD}, {}, {A}),
        ({}, {A: OLD}, {A}),
        ({A: OLD, B: OLD}, {A: OLD, B: NEW}, {B}),
    ],
)
def test_differences(before: Looks, after: Looks, changed: set[Path]) -> None:
    """Files that came, went or look different."""
    assert differences(before, after) == changed


def test_looks_by_scan(tmp_path: Path) -> None:
    """Only indexable files of the places that were asked for are looked at."""
    for name in ("v/a.md", "v/deep/b.md", "v/c.txt", "w/d.md", "todo.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    look = look_by_scan(
        [ExtraDirectory(tmp_path / "v"), ExtraDirectory(tmp_path / "w"), SingleFile(tmp_path, "todo.md")],
        1000,
    )
    assert look(frozenset({tmp_path / "v"})).keys() == {tmp_path / "v/a.md", tmp_path / "v/deep/b.md"}
    assert look(frozenset({tmp_path / "v/deep"})).keys() == {tmp_path / "v/deep/b.md"}
    assert look(frozenset({tmp_path / "todo.md"})).keys() == {tmp_path / "todo.md"}


class Disk:
    """Files with stamps that a test sets, and the looks at them so far."""

    def __init__(self) -> None:
        self.files: dict[Path, Stamp] = {}
        self.looked: list[frozenset[Path]] = []
        self.failing: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self, places: frozenset[Path]) -> Looks:
        self.looked.append(places)
        self.answers.wait(20)
        if self.failing is not None:
            raise self.failing
        return dict(self.files)

    async def looked_at_again(self) -> None:
        """Wait for a look that begins after this call, and what comes of it."""
        number = len(self.looked) + 2
        await until_async(lambda: len(self.looked) >= number)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.answers.set()


@asynccontextmanager
async def polling(
    disk: Disk, *, now_ns: int = 10**18, pace: PollPace = PACE
) -> AsyncIterator[tuple[PolledPlaces, DebouncedChanges]]:
    unseen = PolledPlaces()
    pending = DebouncedChanges(Debouncer(quiet_s=1000, cap_s=1000), asyncio.get_running_loop().time)
    task = asyncio.create_task(poll(unseen, pending, disk, pace=pace, now_ns=lambda: now_ns))
    try:
        yield unseen, pending
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_looks_only_where_it_is_blind(disk: Disk) -> None:
    """Where everything is seen, nothing is looked at; otherwise only what is not; and it stops when all is seen again."""
    async with polling(disk) as (unseen, _):
        await asyncio.sleep(0)
        assert not disk.looked
        unseen.replace(W)
        await disk.looked_at_again()
        assert set(disk.looked) == {W}
        unseen.replace(frozenset())
        await until_async(lambda: len(disk.looked) > 0)
        unseen.replace(frozenset({A}))
        await until_async(lambda: disk.looked[-1] == {A})


async def test_the_first_look_asks_for_a_scan(disk: Disk) -> None:
    """What happened before anybody looked is for a scan; one after the look, so that nothing falls in between."""
    async with polling(disk) as (unseen, pending):
        disk.answers.clear()
        unseen.replace(W)
        await until_async(lambda: disk.looked)
        assert not pending.count
        disk.answers.set()
        assert (await pending.take()).everything


async def test_marks_what_changes(disk: Disk) -> None:
    """A changed file is marked, debounced like one that was seen; without a change nothing is."""
    async with polling(disk) as (unseen, pending):
        disk.files = {A: OLD, B: OLD}
        unseen.replace(W)
        await pending.take()
        await disk.looked_at_again()
        assert not pending.count
        disk.files = {A: OLD, B: NEW}
        await until_async(lambda: pending.count)
        assert pending.take_due_paths() is None
        pending.hurry()
        assert (await pending.take()).paths == {B}


@pytest.mark.parametrize("more", [0, 1])
async def test_very_many_changes_are_a_scan(disk: Disk, more: int) -> None:
    """When a share goes away with all its files, they are not marked one by one."""
    async with polling(disk) as (unseen, pending):
        gone = {
            Path(f"/w/{n}.md"): OLD for n in range(shipped("memd.indexing.watch_changes._MANY_PATHS") + more)
        }
        disk.files = gone
        unseen.replace(W)
        await pending.take()
        disk.files = {}
        await until_async(lambda: pending.count)
        pending.hurry()
        taken = await pending.take()
        assert taken.everything is bool(more)
        assert taken.paths == (frozenset() if more else frozenset(gone))


async def test_a_file_that_was_just_written_is_looked_at_once_more(disk: Disk) -> None:
    """A second write in the same tick of the clock leaves the stamp as it is: the file is marked all the same."""
    now_ns = 1_700_000_000_000_000_001
    async with polling(disk, now_ns=now_ns) as (unseen, pending):
        disk.files = {A: Stamp(1, now_ns, 1), B: Stamp(1, now_ns + 86_400 * 10**9, 1)}
        unseen.replace(W)
        await pending.take()
        await until_async(lambda: pending.count)
        pending.hurry()
        assert (await pending.take()).paths == {A}


@pytest.mark.parametrize("failure", [OSError("broken disk"), RuntimeError("a bug")])
async def test_a_look_that_fails_is_repeated(disk: Disk, failure: Exception) -> None:
    """An error ends neither the looking nor loses a change that came meanwhile."""
    async with polling(disk) as (unseen, pending):
        disk.files = {A: OLD}
        unseen.replace(W)
        await pending.take()
        disk.failing = failure
        await disk.looked_at_again()
        disk.files = {A: NEW}
        disk.failing = None
        await until_async(lambda: pending.count)


async def test_the_pause_follows_the_look(disk: Disk) -> None:
    """Between two looks there is a pause that only other places cut short."""
    async with polling(disk, pace=PollPace(least_s=1000)) as (unseen, pending):
        unseen.replace(W)
        await pending.take()
        assert len(disk.looked) == 1
        unseen.replace(frozenset({A}))
        await pending.take()
        assert disk.looked == [W, {A}]


async def test_after_a_look_that_failed_there_is_a_pause(disk: Disk) -> None:
    """That only other places cut short: a disk that is broken is not asked all the time."""
    async with polling(disk, pace=PollPace(failed_s=1000)) as (unseen, _):
        disk.failing = OSError("broken disk")
        unseen.replace(W)
        await until_async(lambda: disk.looked)
        for _ in range(20):
            await asyncio.to_thread(int)
        assert disk.looked == [W]
        unseen.replace(frozenset({A}))
        await until_async(lambda: len(disk.looked) == 2)


A = Path("/w/a.md")
BLIND = WatcherHealth(ok=False, reason="no watches left", unseen=frozenset({Path("/w")}))


class Followed:
    """A stream of events that a test sends, and what comes of it."""

    def __init__(self) -> None:
        self.pending = DebouncedChanges(Debouncer(quiet_s=1000, cap_s=1000), asyncio.get_running_loop().time)
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
            followed.pending,
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
        await until_async(lambda: followed.pending.count)
        assert followed.pending.take_due_paths() is None
        followed.pending.hurry()
        assert (await followed.pending.take()).paths == {A}


async def test_a_rescan_is_a_pass_over_everything_at_once() -> None:
    """Where anything may have changed, everything is looked at, now."""
    async with following() as followed:
        followed.send(RescanNeeded("events were lost"))
        assert (await followed.pending.take()).everything


async def test_blind_and_seeing_again() -> None:
    """While changes are not seen they are looked for, and somebody is told; when they are seen, that ends."""
    async with following() as followed:
        followed.send(BLIND)
        assert (await followed.pending.take()).everything
        assert followed.told == [BLIND]
        followed.files = {A: Stamp(1, 1, 1)}
        await until_async(lambda: followed.pending.count)
        followed.pending.hurry()
        assert (await followed.pending.take()).paths == {A}
        followed.send(WatcherHealth(ok=True))
        followed.send(RescanNeeded("watching began again"))
        assert (await followed.pending.take()).everything
        looks = followed.looks
        followed.files = {}
        followed.send(PathsChanged(frozenset({A})))
        await until_async(lambda: followed.pending.count)
        assert followed.looks <= looks + 1
        assert followed.told == [BLIND, WatcherHealth(ok=True)]


class Deaf:
    """The watches of a network mount while others write to it: nothing is told."""

    async def start(self, plan: WatchPlan) -> None:
        pass

    async def next(self, until: float) -> EventBatch:
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        return EventBatch()

    async def watch_files(self, _: Iterable[Path]) -> frozenset[Path]:
        return frozenset()

    @property
    def reports_roots(self) -> bool:
        return False

    def position(self) -> None:
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

    pending = DebouncedChanges(Debouncer(quiet_s=1000, cap_s=1000), asyncio.get_running_loop().time)
    told: list[WatcherHealth] = []
    events = watch(roots, methods=WatchMethods(recursive=False, feed=Deaf, mountinfo=lambda: info))
    pace = PollPace(least_s=0.005, share=0)
    task = asyncio.create_task(follow(events, pending, look, told.append, pace=pace))
    try:
        await until_async(lambda: looks[0] > 1)
        assert (await pending.take()).everything
        for act in (lambda: other.write_text("new"), lambda: note.write_text("changed"), note.unlink):
            # A file that was just written is looked at more than once: only what comes after that counts.
            await until_async(lambda: time.time_ns() - newest_ns(note, other) > 50_000_000)
            before = looks[0]
            await until_async(lambda: looks[0] > before + 1)  # noqa: B023 - it is called before the next round
            pending.hurry()
            await pending.take()
            act()
            await until_async(lambda: pending.count)
            pending.hurry()
            assert (await pending.take()).paths & {note, other}
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    (health,) = told
    assert health.ok
    assert "nas:/notes" in (health.reason or "")


def newest_ns(*files: Path) -> int:
    return max(file.stat().st_mtime_ns for file in files if file.exists())


def test_a_look_by_scan_sees_each_session_of_a_database(tmp_path: Path) -> None:
    """All of them have one file: where nothing else tells of changes, each changes what that looks like."""
    base = Path(os.path.realpath(tmp_path))
    store = OpenClawStore(base / "main/agent/openclaw-agent.sqlite")
    for session in ("one", "two", "three"):
        store.start(session)
    look = look_by_scan([SessionPaths(base, "openclaw", "openclaw")], 10)
    seen = [look(frozenset({base}))]
    for session in ("one", "two", "three"):
        store.say(session, "more")
        seen.append(look(frozenset({base})))
    store.close()
    assert all(set(one) == {store.file} for one in seen)
    assert len({one[store.file] for one in seen}) == len(seen)
