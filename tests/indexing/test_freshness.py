"""What a search waits for."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest

from memd.errors import MemdError
from memd.indexing.pass_scheduler import PassFailed
from memd.indexing.recent_files import LOOK_S, RecentFileCheck
from memd.watch.watch_plan import identities_of
from tests.clock import Clock
from tests.indexing.looping import Bench, HeldIndex, running
from tests.wait import until_async


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    async with running(made):
        yield made


async def test_catch_up_takes_in_what_was_just_written(bench: Bench) -> None:
    """Without any event, a look at the likely files is enough for a search."""
    await bench.settle()
    bench.write("memory/a.md", "apples")
    assert await bench.loop.catch_up()
    assert await bench.paths("apples") == {"memory/a.md"}


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_a_search_waits_for_a_pass_over_everything_that_somebody_wants(
    bench: Bench, is_wanted: bool
) -> None:
    """Of what no event tells, only that pass can know; nobody else has a search wait for one."""
    await bench.settle()
    bench.loop.barrier.begin(Counts())
    bench.loop.barrier.advance(frozenset())
    bench.write("memory/a.md", "apples")
    if is_wanted:
        bench.pending.mark_all()
    assert await bench.loop.catch_up()
    assert await bench.paths("apples") == ({"memory/a.md"} if is_wanted else set())


async def test_a_note_that_was_just_made_is_to_be_watched_by_itself(bench: Bench) -> None:
    """That it came may have been told to nobody, and who made it may write on under a name that is gone."""
    note = bench.write("memory/a.md", "apples")
    await bench.settle()
    assert bench.loop.barrier.to_watch == frozenset({(note, note.stat().st_ino)})


class Counts:
    """How far a watcher is, as a test has it."""

    def __init__(self) -> None:
        self.given = 0
        self.known = 0

    def queued(self) -> int:
        return self.known

    def hurry(self) -> None:
        pass


async def test_catch_up_looks_at_directories_that_nobody_watches_yet(bench: Bench) -> None:
    """As long as the watcher names a new directory, each search finds what was just written in it."""
    await bench.settle()
    bench.loop.barrier.begin(Counts())
    bench.loop.barrier.advance(frozenset({bench.workspace / "memory/new"}))
    for number, word in enumerate(("apples", "pears", "plums")):
        bench.write(f"memory/new/deep/{number}.md", word)
        assert await bench.loop.catch_up()
        assert await bench.paths(word) == {f"memory/new/deep/{number}.md"}


@pytest.mark.parametrize("is_in_time", [True, False])
async def test_catch_up_looks_whether_a_directory_was_put_in_the_place_of_another(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_in_time: bool
) -> None:
    """No event tells of what came with it; where that cannot be seen in time, the answer may be stale."""
    bench.write("memory/a.md", "apples")
    await bench.settle()
    bench.loop.barrier.begin(Counts(), roots=identities_of(bench.roots))
    bench.loop.barrier.advance(frozenset())
    assert await bench.loop.catch_up()
    memory = bench.workspace / "memory"
    memory.rename(bench.workspace / "old")
    bench.write("memory/b.md", "pears")
    if not is_in_time:

        async def replaced(*_: object) -> None:
            pass

        monkeypatch.setattr(RecentFileCheck, "replaced", replaced)
    assert await bench.loop.catch_up() == is_in_time
    assert await bench.paths("pears") == ({"memory/b.md"} if is_in_time else set())


@pytest.mark.parametrize("is_watched", [True, False])
async def test_an_answer_is_stale_once_a_configured_symlink_leads_elsewhere(
    tmp_path: Path, is_watched: bool
) -> None:
    """The check that each search makes finds that out, and asks for new roots; the health says why."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("one")
    bench = Bench(tmp_path, extra_paths=(link,))
    async with running(bench):
        await bench.settle()
        if is_watched:
            bench.loop.barrier.begin(Counts(), roots=identities_of(bench.roots))
            bench.loop.barrier.advance(frozenset())
        moved = asyncio.create_task(bench.loop.roots_moved())
        assert await bench.loop.catch_up()
        link.unlink()
        assert not await bench.loop.catch_up()
        assert "leads nowhere now" in str(bench.loop.health.watcher)
        link.symlink_to("other")
        assert not await bench.loop.catch_up()
        assert "other now, no longer to" in str(bench.loop.health.watcher)
        async with asyncio.timeout(60):
            await moved


async def test_catch_up_takes_in_what_the_watcher_is_about_to_mark(bench: Bench) -> None:
    """An event that is still on its way is waited for, and then the pass that it asks for."""
    note = bench.write("memory/a.md", "apples")
    await bench.settle()
    counts = Counts()
    bench.loop.barrier.begin(counts)
    note.write_text("pears")
    counts.known = 32
    caught_up = asyncio.create_task(bench.loop.catch_up())
    await asyncio.sleep(0)
    bench.pending.mark([note])
    counts.given = 32
    bench.loop.barrier.advance(frozenset())
    assert await caught_up
    assert await bench.paths("pears") == {"memory/a.md"}


@pytest.mark.parametrize(("wait_ms", "least_s", "most_s"), [(0, LOOK_S, LOOK_S), (60_000, LOOK_S, 60.0)])
async def test_no_look_at_the_disk_takes_longer_than_a_search_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_ms: int, least_s: float, most_s: float
) -> None:
    """Nor less than a disk needs that works: a share that hangs holds up no search."""
    asked = dict[str, float]()
    for name in ("changed", "replaced", "changed_in"):

        async def look(_: RecentFileCheck, *about: Any, name: str = name) -> Collection[Path]:
            asked[name] = about[-1]
            return ()

        monkeypatch.setattr(RecentFileCheck, name, look)
    bench = Bench(tmp_path, wait_ms=wait_ms)
    async with running(bench):
        await bench.settle()
        await bench.loop.catch_up()
        bench.loop.barrier.begin(Counts(), roots=identities_of(bench.roots))
        bench.loop.barrier.advance(frozenset())
        bench.loop.barrier.set_missing(frozenset({tmp_path / "share"}))
        await bench.loop.catch_up()
    assert asked.keys() == {"changed", "replaced", "changed_in"}
    assert all(least_s <= timeout_s <= most_s for timeout_s in asked.values()), asked


async def test_catch_up_does_not_wait_for_ever_for_the_watcher(tmp_path: Path) -> None:
    """Where the watcher does not get on, the answer is called stale."""
    bench = Bench(tmp_path, wait_ms=0)
    async with running(bench):
        await bench.settle()
        counts = Counts()
        bench.loop.barrier.begin(counts)
        assert await bench.loop.catch_up()
        counts.known = 32
        assert not await bench.loop.catch_up()


async def test_an_edit_is_taken_in_while_a_long_pass_runs(bench: Bench) -> None:
    """Hundreds of files that are being read keep nobody from finding what was just written."""
    await bench.settle()
    for number in range(400):
        bench.write(f"memory/bulk/{number}.md", f"bulk note {number}\n" * 30)
    ticket = bench.loop.request()
    await until_async(lambda: bench.loop.progress is not None and bench.loop.progress[0] >= 5)
    edited = bench.write("memory/urgent.md", "urgent words")
    bench.pending.mark([edited])
    bench.pending.hurry()
    while not await bench.paths("urgent"):
        pass
    assert bench.loop.progress is not None, "the long pass was over before the short one began"
    await bench.loop.wait_for_pass(ticket)
    assert len(await bench.paths("bulk")) > 0


async def test_a_search_does_not_wait_for_a_pass_that_is_long_already(tmp_path: Path) -> None:
    """However long searches may wait: the next would wait for the same pass, and the one after it."""
    clock = Clock()
    bench = Bench(tmp_path, wait_ms=3_600_000, index=HeldIndex(tmp_path / "main.sqlite"), marks_clock=clock)
    index = bench.index
    assert isinstance(index, HeldIndex)
    bench.write("memory/a.md", "apples")
    async with running(bench):
        await index.is_asked.wait()
        clock.run(3601)
        async with asyncio.timeout(60):
            assert not await bench.loop.catch_up()
        waits = asyncio.create_task(bench.loop.catch_up())
        index.may.set()
        await waits


async def test_a_search_waits_for_a_pass_that_has_run_for_as_long_as_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one that has run for longer is a long one; what this one takes in makes the answer fresh."""
    clock = Clock()
    bench = Bench(tmp_path, wait_ms=3_600_000, index=HeldIndex(tmp_path / "main.sqlite"), marks_clock=clock)
    index, real = bench.index, bench.pending.running_for_s
    assert isinstance(index, HeldIndex)
    bench.write("memory/a.md", "apples")

    def running_for_s() -> dict[int, float]:
        index.may.set()
        return real()

    async with running(bench):
        await index.is_asked.wait()
        clock.run(3600)
        monkeypatch.setattr(bench.pending, "running_for_s", running_for_s)
        assert await bench.loop.catch_up()
        assert await bench.paths("apples") == {"memory/a.md"}


async def test_a_place_of_which_nothing_is_told_is_looked_at_whole(bench: Bench) -> None:
    """Any of many notes that others changed there is found, and searches of other places wait for nothing."""
    notes = [bench.write(f"memory/{number}.md", "apples") for number in range(60)]
    await bench.settle()
    bench.loop.barrier.begin(Counts(), unseen=frozenset({bench.workspace}))
    for number in (0, 30, 59):
        assert await bench.loop.catch_up()
        notes[number].write_text(f"pears{number}")
        assert await bench.loop.catch_up()
        assert await bench.paths(f"pears{number}") == {f"memory/{number}.md"}


async def test_a_place_that_cannot_be_looked_at_in_time_makes_the_answer_stale(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others wrote there may be missing; what was written elsewhere is not."""
    await bench.settle()
    bench.loop.barrier.begin(Counts(), unseen=frozenset({bench.workspace}))
    monkeypatch.setattr("memd.indexing.recent_files.LOOK_S", -1.0)
    await bench.loop.catch_up()
    bench.pending.mark([bench.write("memory/a.md", "apples")])
    assert not await bench.loop.catch_up()
    assert await bench.paths("apples") == {"memory/a.md"}


async def test_who_has_no_time_left_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a moment for a pass that runs: with a wait of nothing, each search is answered as things are."""
    bench = Bench(tmp_path, wait_ms=0, index=HeldIndex(tmp_path / "main.sqlite"))
    index, real, waits = bench.index, asyncio.timeout, list[float | None]()
    assert isinstance(index, HeldIndex)
    bench.write("memory/a.md", "apples")

    def timeout(delay: float | None) -> asyncio.Timeout:
        waits.append(delay)
        return real(delay)

    async with running(bench):
        await index.is_asked.wait()
        monkeypatch.setattr(asyncio, "timeout", timeout)
        assert not await bench.loop.catch_up()
        monkeypatch.undo()
        assert 0.0 in waits
        index.may.set()


async def test_files_that_cannot_be_looked_at_in_time_make_the_answer_stale(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no watcher tells of them."""

    async def too_late(*_: object) -> None:
        return None

    await bench.settle()
    assert await bench.loop.catch_up()
    monkeypatch.setattr(RecentFileCheck, "changed", too_late)
    assert not await bench.loop.catch_up()


async def test_a_pass_that_takes_longer_than_a_search_waits_makes_its_answer_stale(tmp_path: Path) -> None:
    """Though it had not run for long when the search came."""
    bench = Bench(tmp_path, wait_ms=20, index=HeldIndex(tmp_path / "main.sqlite"), marks_clock=Clock())
    index = bench.index
    assert isinstance(index, HeldIndex)
    bench.write("memory/a.md", "apples")
    async with running(bench):
        await index.is_asked.wait()
        assert not await bench.loop.catch_up()
        index.may.set()


async def test_what_failed_is_not_tried_again_for_a_search(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in its time; until then answers are stale."""
    await bench.settle()
    tried: list[object] = []

    async def failing(*call: object, **_: object) -> None:
        tried.append(call)
        raise MemdError("no room")

    monkeypatch.setattr("memd.indexing.run_pass.apply_files", failing)
    bench.write("memory/a.md", "apples")
    with pytest.raises(PassFailed):
        await bench.settle()
    before = len(tried)
    for _ in range(3):
        assert not await bench.loop.catch_up()
    assert len(tried) == before


async def test_a_search_waits_for_a_pass_over_everything_that_is_due(bench: Bench) -> None:
    """What no event and no look told is in its answer."""
    notes = [bench.write(f"memory/{number:02}.md", "apples") for number in range(60)]
    for note in notes[:30]:
        os.utime(note, ns=(1, 1))
    await bench.settle()
    notes[0].write_text("pears")
    os.utime(notes[0], ns=(1, 1))
    assert await bench.loop.catch_up()
    assert await bench.paths("pears") == set()
    bench.pending.mark_all()
    assert await bench.loop.catch_up()
    assert await bench.paths("pears") == {"memory/00.md"}
