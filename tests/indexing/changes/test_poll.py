"""Changes where no event tells of them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from memd.indexing.changes.pending import PendingChanges
from memd.indexing.changes.poll import Looks, PolledPlaces, PollPace, differences, look_by_scan, poll
from memd.model import Stamp
from memd.runtime.debounce import Debouncer
from memd.text.memory_paths import ExtraDirectory, SingleFile
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
) -> AsyncIterator[tuple[PolledPlaces, PendingChanges]]:
    unseen = PolledPlaces()
    dirty = PendingChanges(Debouncer(quiet_s=1000, cap_s=1000), asyncio.get_running_loop().time)
    task = asyncio.create_task(poll(unseen, dirty, disk, pace=pace, now_ns=lambda: now_ns))
    try:
        yield unseen, dirty
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
        unseen.be(W)
        await disk.looked_at_again()
        assert set(disk.looked) == {W}
        unseen.be(frozenset())
        await until_async(lambda: len(disk.looked) > 0)
        unseen.be(frozenset({A}))
        await until_async(lambda: disk.looked[-1] == {A})


async def test_the_first_look_asks_for_a_scan(disk: Disk) -> None:
    """What happened before anybody looked is for a scan; one after the look, so that nothing falls in between."""
    async with polling(disk) as (unseen, dirty):
        disk.answers.clear()
        unseen.be(W)
        await until_async(lambda: disk.looked)
        assert not dirty.pending
        disk.answers.set()
        assert (await dirty.take()).everything


async def test_marks_what_changes(disk: Disk) -> None:
    """A changed file is marked, debounced like one that was seen; without a change nothing is."""
    async with polling(disk) as (unseen, dirty):
        disk.files = {A: OLD, B: OLD}
        unseen.be(W)
        await dirty.take()
        await disk.looked_at_again()
        assert not dirty.pending
        disk.files = {A: OLD, B: NEW}
        await until_async(lambda: dirty.pending)
        assert dirty.take_due_paths() is None
        dirty.hurry()
        assert (await dirty.take()).paths == {B}


async def test_very_many_changes_are_a_scan(disk: Disk) -> None:
    """When a share goes away with all its files, they are not marked one by one."""
    async with polling(disk) as (unseen, dirty):
        disk.files = {Path(f"/w/{n}.md"): OLD for n in range(1500)}
        unseen.be(W)
        await dirty.take()
        disk.files = {}
        taken = await dirty.take()
        assert taken.everything
        assert not taken.paths


async def test_a_file_that_was_just_written_is_looked_at_once_more(disk: Disk) -> None:
    """A second write in the same tick of the clock leaves the stamp as it is: the file is marked all the same."""
    now_ns = 1_700_000_000_000_000_001
    async with polling(disk, now_ns=now_ns) as (unseen, dirty):
        disk.files = {A: Stamp(1, now_ns, 1), B: Stamp(1, now_ns + 86_400 * 10**9, 1)}
        unseen.be(W)
        await dirty.take()
        await until_async(lambda: dirty.pending)
        dirty.hurry()
        assert (await dirty.take()).paths == {A}


@pytest.mark.parametrize("failure", [OSError("broken disk"), RuntimeError("a bug")])
async def test_a_look_that_fails_is_repeated(disk: Disk, failure: Exception) -> None:
    """An error ends neither the looking nor loses a change that came meanwhile."""
    async with polling(disk) as (unseen, dirty):
        disk.files = {A: OLD}
        unseen.be(W)
        await dirty.take()
        disk.failing = failure
        await disk.looked_at_again()
        disk.files = {A: NEW}
        disk.failing = None
        await until_async(lambda: dirty.pending)


async def test_the_pause_follows_the_look(disk: Disk) -> None:
    """Between two looks there is a pause that only other places cut short."""
    async with polling(disk, pace=PollPace(least_s=1000)) as (unseen, dirty):
        unseen.be(W)
        await dirty.take()
        assert len(disk.looked) == 1
        unseen.be(frozenset({A}))
        await dirty.take()
        assert disk.looked == [W, {A}]


async def test_after_a_look_that_failed_there_is_a_pause(disk: Disk) -> None:
    """That only other places cut short: a disk that is broken is not asked all the time."""
    async with polling(disk, pace=PollPace(failed_s=1000)) as (unseen, _):
        disk.failing = OSError("broken disk")
        unseen.be(W)
        await until_async(lambda: disk.looked)
        for _ in range(20):
            await asyncio.to_thread(int)
        assert disk.looked == [W]
        unseen.be(frozenset({A}))
        await until_async(lambda: len(disk.looked) == 2)
