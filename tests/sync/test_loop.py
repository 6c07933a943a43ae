import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import apsw
import msgspec
import pytest

from memd.config import AgentSettings, SyncSettings
from memd.model import Kind
from memd.paths import Root
from memd.sources.roots import roots_of
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.sync.dirty import Dirty
from memd.sync.loop import PassFailed, SyncLoop
from memd.sync.rebuild import beside
from memd.sync.treatment import treatment_of
from memd.watch.debounce import Debouncer
from tests.wait import until_async

FINGERPRINT = Fingerprint("c1", "t1", ("memory",))
EVERYTHING = frozenset(Kind)


class Bench:
    """A sync loop on a real directory and a real index, without a watcher."""

    def __init__(self, home: Path, *, max_file_mb: float = 16) -> None:
        self.workspace = home / "workspace"
        (self.workspace / "memory").mkdir(parents=True)
        self.settings = AgentSettings(
            workspace=self.workspace, sync=SyncSettings(wait_ms=2000), max_file_mb=max_file_mb
        )
        self.index = Index(home / "main.sqlite")
        self.dirty = Dirty(Debouncer(quiet_s=1.5, cap_s=6.0), time.monotonic)
        self.roots: tuple[Root, ...] = roots_of(self.settings)
        self.loop = SyncLoop(
            "main",
            self.settings,
            treatment_of(self.settings, self.roots),
            self.index,
            FINGERPRINT,
            dirty=self.dirty,
            spaces=None,
            rng=Random(1),
        )

    def write(self, name: str, text: str) -> Path:
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    async def settle(self, *, force: bool = False) -> int:
        """A pass over everything; how many files it took in."""
        async with asyncio.timeout(10):
            return (await self.loop.settled(self.loop.request(force=force))).changed

    async def paths(self, word: str) -> set[str]:
        """The files that hold a word, as the index has it."""
        found = await self.index.keywords(f'"{word}"', 100, EVERYTHING)
        places = await self.index.read(lambda reader: reader.places([chunk_id for chunk_id, _ in found]))
        return {place.path for place in places}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.index.open()
    await made.index.adopt(FINGERPRINT)
    running = asyncio.create_task(made.loop.run())
    yield made
    running.cancel()
    await asyncio.wait([running])
    await made.index.close()


async def test_index_follows_edits_renames_and_deletions(bench: Bench) -> None:
    """After each pass the index says what the directory says."""
    file = bench.write("memory/a.md", "apples")
    await bench.settle()
    assert await bench.paths("apples") == {"memory/a.md"}
    file.write_text("pears")
    await bench.settle()
    assert await bench.paths("apples") == set()
    assert await bench.paths("pears") == {"memory/a.md"}
    file.rename(bench.workspace / "memory/b.md")
    await bench.settle()
    assert await bench.paths("pears") == {"memory/b.md"}
    (bench.workspace / "memory/b.md").unlink()
    bench.write("memory/c.md", "plums")
    await bench.settle()
    assert await bench.paths("pears") == set()


async def test_unchanged_files_are_not_read_again(bench: Bench) -> None:
    """A pass over unchanged files takes in none of them, unless it is forced to look, and then changes nothing."""
    await bench.settle()
    for number in range(5):
        bench.write(f"memory/{number}.md", f"note{number}")
    assert await bench.settle() == 5
    assert await bench.settle() == 0
    assert await bench.settle(force=True) == 0


async def test_catch_up_takes_in_what_was_just_written(bench: Bench) -> None:
    """Without any event, a look at the likely files is enough for a search."""
    await bench.settle()
    bench.write("memory/a.md", "apples")
    assert await bench.loop.catch_up()
    assert await bench.paths("apples") == {"memory/a.md"}


class Counts:
    """How far a watcher is, as a test has it."""

    def __init__(self) -> None:
        self.given = 0
        self.known = 0

    def told(self) -> int:
        return self.known

    def hurry(self) -> None:
        pass


async def test_catch_up_looks_at_directories_that_nobody_watches_yet(bench: Bench) -> None:
    """As long as the watcher names a new directory, each search finds what was just written in it."""
    await bench.settle()
    bench.loop.backlog.begins(Counts())
    bench.loop.backlog.rests(frozenset({bench.workspace / "memory/new"}))
    for number, word in enumerate(("apples", "pears", "plums")):
        bench.write(f"memory/new/deep/{number}.md", word)
        assert await bench.loop.catch_up()
        assert await bench.paths(word) == {f"memory/new/deep/{number}.md"}


async def test_catch_up_takes_in_what_the_watcher_is_about_to_mark(bench: Bench) -> None:
    """An event that is still on its way is waited for, and then the pass that it asks for."""
    note = bench.write("memory/a.md", "apples")
    await bench.settle()
    counts = Counts()
    bench.loop.backlog.begins(counts)
    note.write_text("pears")
    counts.known = 32
    caught_up = asyncio.create_task(bench.loop.catch_up())
    await asyncio.sleep(0)
    bench.dirty.mark([note])
    counts.given = 32
    bench.loop.backlog.rests(frozenset())
    assert await caught_up
    assert await bench.paths("pears") == {"memory/a.md"}


async def test_catch_up_does_not_wait_for_ever_for_the_watcher(bench: Bench) -> None:
    """Where the watcher does not get on, the answer is called stale."""
    await bench.settle()
    bench.loop._settings = msgspec.structs.replace(bench.settings, sync=SyncSettings(wait_ms=0))
    counts = Counts()
    bench.loop.backlog.begins(counts)
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
    bench.dirty.mark([edited])
    bench.dirty.hurry()
    while not await bench.paths("urgent"):
        pass
    assert bench.loop.progress is not None, "the long pass was over before the short one began"
    await bench.loop.settled(ticket)
    assert len(await bench.paths("bulk")) > 0


async def test_a_pass_that_fails_is_tried_again_and_loses_nothing(bench: Bench) -> None:
    """A store that cannot be written fails the pass; when it can, what was marked is taken in."""
    await bench.settle()
    blocker = apsw.Connection(str(bench.index.file))
    bench.index._database._writer.set_busy_timeout(1)  # type: ignore[union-attr]
    blocker.execute("BEGIN IMMEDIATE")
    bench.write("memory/a.md", "apples")
    with pytest.raises(PassFailed):
        await bench.settle()
    assert bench.loop.last_pass is not None
    assert bench.loop.last_pass.failed
    assert bench.loop.pending
    blocker.execute("ROLLBACK")
    blocker.close()
    async with asyncio.timeout(10):
        while not await bench.paths("apples"):
            pass


async def test_a_broken_keyword_index_is_rebuilt_beside(bench: Bench) -> None:
    """The index is built anew by itself, and nothing of the attempt is left."""
    bench.write("memory/a.md", "apples")
    await bench.settle()
    vandal = apsw.Connection(str(bench.index.file))
    vandal.execute("DROP TABLE keywords")
    vandal.close()
    bench.loop.keyword_failed("no such table: keywords")
    await until_async(lambda: bench.loop.health.rebuild is None, 10)
    assert bench.loop.health.keyword is None
    assert await bench.paths("apples") == {"memory/a.md"}
    assert not beside(bench.index.file).exists()
    bench.write("memory/b.md", "pears")
    await bench.settle()
    assert await bench.paths("pears") == {"memory/b.md"}


async def test_an_edit_during_a_rebuild_is_in_the_new_index(bench: Bench) -> None:
    """What changes while the new index is built is in it when it takes over."""
    for number in range(200):
        bench.write(f"memory/{number}.md", f"note {number}")
    await bench.settle()
    bench.loop.rebuild("a test wants it")
    await until_async(beside(bench.index.file).exists)
    edited = bench.write("memory/0.md", "edited meanwhile")
    bench.dirty.mark([edited])
    bench.dirty.hurry()
    await until_async(lambda: bench.loop.health.rebuild is None, 10)
    assert await bench.paths("meanwhile") == {"memory/0.md"}
    assert len(await bench.index.known()) == 200


async def test_a_workspace_that_is_not_mounted_deletes_nothing(bench: Bench) -> None:
    """A workspace that is gone keeps its notes in the index, and is followed again when it is back."""
    bench.write("memory/a.md", "apples")
    await bench.settle()
    away = bench.workspace.with_name("away")
    bench.workspace.rename(away)
    await bench.settle()
    assert await bench.paths("apples") == {"memory/a.md"}
    away.rename(bench.workspace)
    (bench.workspace / "memory/a.md").unlink()
    await bench.settle()
    assert await bench.paths("apples") == set()


async def test_a_file_that_became_too_large_is_forgotten_and_counted(tmp_path: Path) -> None:
    """What is over the limit is not searchable with its old text, and status says why."""
    made = Bench(tmp_path, max_file_mb=0.0001)
    await made.index.open()
    await made.index.adopt(FINGERPRINT)
    running = asyncio.create_task(made.loop.run())
    file = made.write("memory/a.md", "apples")
    await made.settle()
    file.write_text("pears " * 100)
    await made.settle()
    assert await made.paths("apples") == set()
    assert dict(made.loop.health.skipped) == {"too large": 1}
    running.cancel()
    await asyncio.wait([running])
    await made.index.close()


async def test_how_far_a_pass_is_ends_with_it(bench: Bench) -> None:
    """Of several at once the longest tells, a rebuild like any; afterwards nothing is under way."""

    def progress() -> tuple[int, int] | None:
        return bench.loop.progress

    for number in range(200):
        bench.write(f"memory/{number}.md", f"note {number}\n" * 20)
    await bench.settle()
    assert progress() is None
    bench.loop.rebuild("a test asks for it")
    await until_async(progress, 10)
    seen: set[int] = set()
    while bench.loop.health.rebuild is not None:
        edited = bench.write("memory/0.md", f"edited {len(seen)}")
        bench.dirty.mark([edited])
        async with asyncio.timeout(20):
            await bench.dirty.wait_for(bench.dirty.hurry())
        if (under_way := progress()) is not None:
            seen.add(under_way[1])
    assert seen <= {200, 201}
    await bench.settle()
    assert progress() is None
