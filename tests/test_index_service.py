"""All that keeps an index like its files."""

import asyncio
import fcntl
import os
import signal
import unicodedata
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest
from structlog.testing import capture_logs

from memd.chunk import markdown
from memd.domain_types import Chunk, Document
from memd.index_service import IndexService
from memd.maintenance.tasks import MANY
from memd.rebuild import rebuilder
from memd.rebuild.build_and_swap import beside
from memd.runtime import timers
from memd.sources.scan_result import SkipReason
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from tests.between import before_call
from tests.bounds import shipped
from tests.indexing.looping import Bench, running
from tests.wait import until, until_async, until_awaited


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    async with running(made):
        yield made


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


async def test_a_broken_keyword_index_is_rebuilt_beside(bench: Bench) -> None:
    """The index is built anew by itself, and nothing of the attempt is left."""
    bench.write("memory/a.md", "apples")
    await bench.settle()
    vandal = apsw.Connection(str(bench.index.file))
    vandal.execute("DROP TABLE keywords")
    vandal.close()
    bench.index.damage.report_keyword("no such table: keywords")
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
    bench.pending.mark([edited])
    bench.pending.hurry()
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
    async with running(made):
        file = made.write("memory/a.md", "apples")
        await made.settle()
        file.write_text("pears " * 100)
        await made.settle()
        assert await made.paths("apples") == set()
        assert dict(made.loop.skipped) == {"too large": 1}


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
        bench.pending.mark([edited])
        async with asyncio.timeout(60):
            await bench.pending.wait_for(bench.pending.hurry())
        if (under_way := progress()) is not None:
            seen.add(under_way[1])
    assert seen <= {200, 201}
    await bench.settle()
    assert progress() is None


async def test_a_file_that_memd_fails_at_is_counted_and_the_loop_lives_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps what the index said of it, is told under a reason of its own, and is taken in once it can be."""
    bench.write("memory/a.md", "apples")
    await bench.settle()
    cut = markdown.chunk

    told: list[object] = []

    def failing(document: Document, *args: int) -> list[Chunk]:
        if document.path == "memory/a.md":
            told.append((bench.loop.skipped, bench.loop.health.watcher))
            raise RecursionError
        return cut(document, *args)

    monkeypatch.setattr(markdown, "chunk", failing)
    bench.write("memory/a.md", "pears")
    bench.write("memory/b.md", "plums")
    await bench.settle()
    assert bench.loop.skipped == {SkipReason.FAILED: 1}
    assert await bench.paths("apples") == {"memory/a.md"}
    assert await bench.paths("plums") == {"memory/b.md"}
    told.clear()
    after = bench.loop.skipped, bench.loop.health.watcher
    await bench.settle()
    assert set(map(str, told)) == {str(after)}, "what is tried again is well for nobody meanwhile"
    monkeypatch.setattr(markdown, "chunk", cut)
    await bench.settle()
    assert bench.loop.skipped == {}
    assert await bench.paths("pears") == {"memory/a.md"}


async def test_a_note_that_another_program_holds_is_looked_at_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps no other note waiting; what is indexed of it stays, which makes answers stale, until it can be read."""
    loop, held_s, waits_s = (
        asyncio.get_running_loop(),
        shipped("memd.indexing.run_pass.HELD_S"),
        list[float](),
    )
    later = loop.call_later

    def sooner(delay_s: float, *given: Any, **named: Any) -> asyncio.TimerHandle:
        waits_s.append(delay_s)
        return later(0.05 if delay_s == held_s else delay_s, *given, **named)

    monkeypatch.setattr(loop, "call_later", sooner)
    bench.write("memory/a.md", "apples")
    await bench.settle()
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    descriptor = os.open(bench.write("memory/a.md", "pears"), os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        bench.write("memory/b.md", "plums")
        await bench.settle()
        assert await bench.paths("plums") == {"memory/b.md"}
        assert await bench.paths("apples") == {"memory/a.md"}
        assert dict(bench.loop.skipped) == {"held by another program": 1}
        assert not await bench.loop.catch_up()
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)
    await until_awaited(lambda: bench.paths("pears"), 10)
    assert held_s in waits_s
    assert await bench.loop.catch_up()


async def test_files_that_do_not_answer_for_so_long_are_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is only slow is none."""
    seconds = shipped("memd.index_service.BLOCKED_S")
    for blocked_s, told in (
        (seconds - 0.1, None),
        (seconds, f"the files have not answered for {seconds:.0f} s: is a network mount down?"),
    ):
        monkeypatch.setattr(bench.parts.recent, "blocked_s", lambda blocked_s=blocked_s: blocked_s)
        assert bench.loop.health.watcher == told


async def test_notes_that_were_just_written_are_followed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so many, the newest; what has stood there for so long was written by a program that is done with it."""
    just_ns = shipped("memd.indexing.run_pass._JUST_NS")
    most = shipped("memd.indexing.run_pass._MOST_JUST_CHANGED")
    followed: list[set[Path]] = []
    monkeypatch.setattr(
        bench.parts.barrier, "set_linked", lambda files: followed.append({file for file, _ in files})
    )
    first = bench.write("memory/first.md", "apples")
    changed_ns = first.stat().st_ctime_ns
    for later_ns, expected in ((just_ns - 1, {first}), (just_ns, set())):
        with patch("memd.indexing.run_pass.time.time_ns", return_value=changed_ns + later_ns):
            await bench.settle()
        assert followed[-1] == expected
    until(lambda: bench.write("memory/0.md", "pears").stat().st_ctime_ns > changed_ns)
    for number in range(1, most):
        bench.write(f"memory/{number}.md", "pears")
    with patch("memd.indexing.run_pass.time.time_ns", return_value=changed_ns):
        await bench.settle()
    assert followed[-1] == {bench.workspace / f"memory/{number}.md" for number in range(most)}


def _moved(place: Path) -> None:
    place.rename(place.with_name("moved"))


def _moved_behind_a_symlink(place: Path) -> None:
    _moved(place)
    place.symlink_to("moved")


@pytest.mark.parametrize("above", [False, True], ids=["the root", "above the root"])
@pytest.mark.parametrize("move", [_moved, _moved_behind_a_symlink])
async def test_a_root_that_moves_at_any_moment_of_a_pass_loses_nothing(
    tmp_path: Path, move: Callable[[Path], None], *, above: bool
) -> None:
    """Whatever was looked at or read by then: its notes stay in the index, which is not called up to date without the last edit."""
    made = Bench(tmp_path / "home", index=Index(tmp_path / "main.sqlite"))
    place = tmp_path / "home" if above else made.workspace
    async with running(made):
        note = made.write("memory/a.md", "apples")
        await made.settle()
        at, acted = 0, True
        while acted:
            note.write_text(f"apples apples{at}")
            made.pending.mark([note])
            with before_call(at, partial(move, place)) as calls:
                await made.pending.wait_for(made.pending.hurry())
                acted = place.with_name("moved").exists()
            assert await made.paths("apples") == {"memory/a.md"}, f"before call {at}"
            if acted:
                if not await made.paths(f"apples{at}"):
                    assert not await made.loop.catch_up()
                    assert made.loop.health.watcher is not None
                if place.is_symlink():
                    place.unlink()
                place.with_name("moved").rename(place)
                assert await made.loop.catch_up(), f"before call {at}"
                assert made.loop.health.watcher is None
                assert await made.paths(f"apples{at}")
            at += 1
        assert calls.made <= at
        assert at > 8


async def test_who_asks_for_everything_has_a_rebuild_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that failed waits for long."""
    attempts: list[str] = []

    async def fails(*_: object, **__: object) -> None:
        attempts.append("one more")
        raise StoreUnavailable("something is in the way")

    monkeypatch.setattr(rebuilder, "rebuild", fails)
    monkeypatch.setattr(timers, "delay_s", lambda *_, **__: 3600.0)
    bench.loop.rebuild("a person wishes it")
    await until_async(lambda: bench.loop.health.store)
    assert len(attempts) == 1
    bench.loop.request()
    await until_async(lambda: len(attempts) == 2)


async def test_many_files_that_changed_have_the_keywords_put_in_order(bench: Bench) -> None:
    """As soon as their pass is over."""

    def parts() -> int:
        connection = apsw.Connection(str(bench.index.file))
        try:
            return int(connection.execute("SELECT count(DISTINCT segid) FROM keywords_idx").get)
        finally:
            connection.close()

    await bench.settle()
    for number in range(MANY):
        bench.write(f"memory/{number}.md", " ".join(f"word{number}x{n}" for n in range(100)))
    await bench.settle()
    await until_async(lambda: parts() == 1, 20)


async def test_vectors_of_another_model_are_not_done(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until an index that is built beside has some, all wait."""
    bench.write("memory/a.md", "apples")
    await bench.settle()
    monkeypatch.setattr(IndexService, "_has_wanted_space", False)
    counts = await bench.loop.counts()
    assert (counts.chunks, counts.done, counts.waiting) == (1, 0, 1)


async def test_a_file_that_is_passed_over_is_counted_beside_one_that_has_its_name(bench: Bench) -> None:
    """Two Unicode forms of a directory make one name; what becomes of the one file tells nothing of the other."""
    composed, apart = (unicodedata.normalize(form, "memory/Café/a.md") for form in ("NFC", "NFD"))
    bench.write(composed, "apples")
    linked = bench.write("memory/0.md", "pears")
    other = bench.workspace / apart
    other.parent.mkdir()
    other.hardlink_to(linked)
    for _ in range(2):  # whether or not a file is read by the same pass
        await bench.settle()
        assert dict(bench.loop.skipped) == {SkipReason.SAME_FILE: 1}
    assert await bench.paths("apples") == {composed}


async def test_a_background_task_that_memd_fails_at_is_told_and_the_index_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes and searches have nothing to do with it; status says which task it is, and that the log has the place."""
    bench = Bench(tmp_path)
    truncate_wal, failing = bench.index.database.truncate_wal, [True]

    async def fails() -> bool:
        if failing:
            raise ValueError("nobody foresaw this")
        return await truncate_wal()

    monkeypatch.setattr(bench.index.database, "truncate_wal", fails)
    monkeypatch.setattr(timers, "delay_s", lambda *_, **__: 0.02)
    with capture_logs() as logs:
        async with running(bench):
            await bench.settle()
            bench.parts.triggers.left_over.set()
            await until_async(lambda: bench.loop.health.maintenance is not None)
            assert "emptying the log failed" in str(bench.loop.health.maintenance)
            assert "ValueError" in str(bench.loop.health.maintenance)
            assert bench.loop.health.store is None
            bench.write("memory/a.md", "apples")
            assert await bench.settle() == 1
            assert await bench.paths("apples")
            failing.clear()
            await until_async(lambda: bench.loop.health.maintenance is None)
    failures = [one for one in logs if one["event"] == "maintenance.failed"]
    assert failures
    assert {one["task"] for one in failures} == {"emptying the log"}
