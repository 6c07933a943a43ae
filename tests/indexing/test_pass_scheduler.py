"""Passes of one agent: their order, what fails them, and the log of those that took long."""

import asyncio
import gc
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import apsw
import msgspec
import pytest
import zstandard
from structlog.testing import capture_logs

from memd.config.settings import SessionSettings
from memd.domain_types import FoundFile, Kind
from memd.errors import FatalError, MemdError, TransientError
from memd.indexing import index_transcripts, pass_scheduler, plan, run_pass
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.index_notes import AppliedChanges, apply_files
from memd.indexing.index_transcripts import apply_sessions
from memd.indexing.pass_scheduler import (
    NOTABLE,
    OUTCOMES,
    PassFailed,
    PassScheduler,
    allowed_s,
    log_slow_pass,
)
from memd.indexing.run_pass import PassResult, PassRunner
from memd.maintenance.tasks import MANY, MaintenanceTriggers
from memd.runtime.logs import SlowLog
from memd.runtime.profiling import TimeTrace, timed_part
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import LONGEST_WAIT_S, Debouncer, delay_s
from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable, NoRoot, OutsideFence, SourceError
from memd.sources.scan import scan
from memd.sources.scan_result import BlindReason, MountPoint, Scan
from memd.store import disk_room
from memd.store.errors import StoreClosed, StoreDamaged, StoreFull, StoreUnavailable
from memd.store.files import ReplacedChunks
from memd.store.index import Index
from memd.store.integrity import IndexDamage
from tests.clock import Clock, Ticking, hastily
from tests.indexing.looping import FINGERPRINT, Bench, HeldIndex, running
from tests.store.conftest import ranked
from tests.wait import until_async


def passes_of(
    pending: DebouncedChanges,
    make: Callable[..., Coroutine[None, None, PassResult]],
    clock: Clock,
    triggers: MaintenanceTriggers | None = None,
) -> PassScheduler:
    """The passes of an agent whose index is a stand-in."""
    runner = SimpleNamespace(run=make, writing=asyncio.Lock())
    at_once = partial(asyncio.sleep, 0)
    database = SimpleNamespace(raise_if_unsynced=at_once)
    index = SimpleNamespace(finish_opening=at_once, database=database, damage=IndexDamage("main"))
    return PassScheduler(
        "main",
        cast("Index", index),
        pending,
        cast("PassRunner", runner),
        triggers or MaintenanceTriggers(),
        rng=Random(3),
        clock=clock,
    )


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    async with running(made):
        yield made


async def test_unchanged_files_are_not_read_again(bench: Bench) -> None:
    """A pass over unchanged files takes in none of them, unless it is forced to look, and then changes nothing."""
    await bench.settle()
    for number in range(5):
        bench.write(f"memory/{number}.md", f"note{number}")
    assert await bench.settle() == 5
    assert await bench.settle() == 0
    assert await bench.settle(force=True) == 0


async def test_a_pass_that_fails_is_tried_again_and_loses_nothing(bench: Bench) -> None:
    """A store that cannot be written fails the pass; when it can, what was marked is taken in."""
    await bench.settle()
    blocker = apsw.Connection(str(bench.index.file))
    await bench.index.database.write(lambda connection: connection.set_busy_timeout(1))
    blocker.execute("BEGIN IMMEDIATE")
    bench.write("memory/a.md", "apples")
    with pytest.raises(PassFailed):
        await bench.settle()
    assert bench.loop.last_pass is not None
    assert bench.loop.last_pass.failed
    assert bench.loop.pending
    blocker.execute("ROLLBACK")
    blocker.close()
    async with asyncio.timeout(60):
        while not await bench.paths("apples"):
            pass


@pytest.mark.parametrize("failure", [ValueError("nobody foresaw this"), MemdError("nobody foresaw that")])
async def test_a_pass_that_memd_fails_at_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """The loop goes on, and so does the daemon; what was marked is taken in when it can be."""
    await bench.settle()
    failures = [failure]

    def look(*args: Any, **kwargs: Any) -> Scan:
        if failures:
            raise failures.pop()
        return scan(*args, **kwargs)

    monkeypatch.setattr(run_pass, "scan", look)
    bench.write("memory/a.md", "apples")
    with capture_logs() as logs, pytest.raises(PassFailed, match=re.escape(safe_message(failure))):
        await bench.settle()
    assert [one["exc_info"] for one in logs if one["event"] == "sync.pass_failed"] == [failure]
    await until_async(lambda: bench.loop.last_pass is not None and bench.loop.last_pass.failed is None)
    assert await bench.paths("apples")


async def test_what_a_pass_that_met_damage_was_to_do_waits_for_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The damage is reported, and nothing that was marked is forgotten: the rebuilt index is brought up to date with it."""
    await bench.settle()
    damage = [StoreDamaged("page 7 is not what was written")]

    def look(*args: Any, **kwargs: Any) -> Scan:
        if damage:
            raise damage.pop()
        return scan(*args, **kwargs)

    monkeypatch.setattr(run_pass, "scan", look)
    bench.write("memory/a.md", "apples")
    with pytest.raises(PassFailed, match="page 7"):
        await bench.settle()
    assert bench.index.damage.reason == "page 7 is not what was written"
    bench.pending.hurry()
    await until_async(lambda: bench.loop.last_pass is not None and bench.loop.last_pass.failed is None, 10)
    assert await bench.paths("apples")


async def test_each_search_looks_whether_a_disk_that_is_away_is_there_again(bench: Bench) -> None:
    """What lay on it stays, and where it is expected is known to those who look."""
    away, there = bench.workspace / "memory" / "away", bench.workspace / "memory" / "there"
    for disk in (away, there):
        bench.write(f"memory/{disk.name}/a.md", "apples")
    await bench.settle()
    await bench.index.put_mounts([(str(away), "memory/away")])
    bench.parts.runner.index_replaced()  # what is expected is asked of the index again
    shutil.rmtree(away)
    await bench.settle()
    assert await bench.paths("apples") == {"memory/away/a.md", "memory/there/a.md"}
    # The tests themselves may lie on a disk in memory.
    expected = bench.parts.barrier.changed_mounts(frozenset)
    assert {place for place in expected if place.is_relative_to(bench.workspace)} == {away}
    assert bench.parts.barrier.changed_mounts(lambda _: frozenset()) == frozenset()


async def test_each_search_looks_whether_a_directory_that_is_away_is_there_again(tmp_path: Path) -> None:
    """One whose files stay indexed meanwhile."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("apples")
    bench = Bench(tmp_path, extra_paths=(notes,))
    async with running(bench):
        await bench.settle()
        assert bench.parts.barrier.missing == frozenset()
        shutil.rmtree(notes)
        with capture_logs() as logs:
            for _ in range(3):
                await bench.settle()
        # What is kept is told once.
        told = [(one["files"], one["reasons"]) for one in logs if one["event"] == "sync.files_kept"]
        assert told == [(1, [BlindReason.ABSENT])]
        assert len(await bench.paths("apples")) == 1
        assert bench.parts.barrier.missing == {notes}
        bench.pending.mark([bench.write("memory/b.md", "pears")])
        await bench.pending.wait_for(bench.pending.hurry())
        assert await bench.paths("pears") == {"memory/b.md"}
        assert bench.parts.barrier.missing == {notes}, "a pass over another place says nothing of this one"
        notes.mkdir()
        await bench.settle()
        assert bench.parts.barrier.missing == frozenset()


@pytest.mark.parametrize(
    ("trouble", "is_kept"),
    [
        (FileMissing, True),  # its deletion is an event of its own
        (NoRoot, True),
        (FileUnreadable, True),
        (OutsideFence, False),
        (TooLarge, False),
    ],
)
async def test_what_is_no_note_any_more_is_forgotten_and_what_cannot_be_read_is_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, trouble: type[SourceError], *, is_kept: bool
) -> None:
    """Where that shows only when it is read, after it was found."""
    note = bench.write("memory/a.md", "apples")
    await bench.settle()

    async def failing(_: Index, found: Sequence[FoundFile], *__: object, **___: object) -> AppliedChanges:
        return AppliedChanges(frozenset(), 0, {one.path: trouble(one.path, "so it is") for one in found})

    monkeypatch.setattr(run_pass, "apply_files", failing)
    bench.pending.mark([note])
    await bench.pending.wait_for(bench.pending.hurry())
    assert await bench.paths("apples") == ({"memory/a.md"} if is_kept else set())
    # What is still shown, and may say something else by now, is told.
    assert sum(bench.parts.runner.kept.values()) == (trouble in {NoRoot, FileUnreadable})


async def test_a_file_that_cannot_be_read_is_told_until_it_is_read_or_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass over another place says nothing of it."""
    note = bench.write("memory/a.md", "apples")

    async def failing(index: Index, found: Sequence[FoundFile], *rest: Any, **more: Any) -> AppliedChanges:
        failed = {
            one.path: FileUnreadable(one.path, "so it is") for one in found if one.path == "memory/a.md"
        }
        others = [one for one in found if one.path not in failed]
        applied = await apply_files(index, others, *rest, **more)
        return msgspec.structs.replace(applied, failed={**applied.failed, **failed})

    monkeypatch.setattr(run_pass, "apply_files", failing)
    await bench.settle()
    told = dict(bench.parts.runner.skipped)
    assert list(told.values()) == [1]
    bench.pending.mark([bench.write("memory/b.md", "pears")])
    await bench.pending.wait_for(bench.pending.hurry())
    assert await bench.paths("pears") == {"memory/b.md"}
    assert dict(bench.parts.runner.skipped) == told
    note.unlink()
    await bench.settle()
    assert dict(bench.parts.runner.skipped) == {}


async def test_what_the_index_before_kept_is_not_told_of_another(tmp_path: Path) -> None:
    """It may never have held it."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("apples")
    bench = Bench(tmp_path, extra_paths=(notes,))
    async with running(bench):
        await bench.settle()
        shutil.rmtree(notes)
        await bench.settle()
        assert dict(bench.parts.runner.kept) == {BlindReason.ABSENT: 1}
        bench.parts.runner.index_replaced()
        assert dict(bench.parts.runner.kept) == {}


async def test_transcripts_that_grow_are_looked_at_again_in_another_index(tmp_path: Path) -> None:
    """A rebuild reads all of them: they need not be waited for any more. At once, whatever else is quiet by then."""
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), idle_seconds=3600)
    bench = Bench(tmp_path, marks_clock=Clock(), sources=("memory", "sessions"), sessions=sessions)
    file = tmp_path / "chats" / "a.jsonl"
    async with running(bench):
        await bench.settle()
        file.write_text('{"role": "user", "content": "hello"}\n')
        bench.pending.mark([file])
        bench.pending.hurry()
        await until_async(lambda: bench.parts.runner.growing == 1, 10)
        assert not bench.pending.awaits_paths
        bench.parts.runner.index_replaced()
        assert bench.pending.count == 1
        await until_async(lambda: bench.pending.count == 0, 10)


class HeldTranscripts(Index):
    """Writes transcripts when it is let."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.is_asked = asyncio.Event()
        self.may = asyncio.Event()

    async def replace_sessions(self, *args: Any, **kwargs: Any) -> list[ReplacedChunks | None]:
        self.is_asked.set()
        await self.may.wait()
        return await super().replace_sessions(*args, **kwargs)


async def test_a_transcript_that_is_due_while_others_are_read_is_read_after_them(tmp_path: Path) -> None:
    """The short pass that met it leaves it to another one, which begins at once."""
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), delta_bytes=0, delta_messages=0)
    index = HeldTranscripts(tmp_path / "main.sqlite")
    # No time passes: what is marked waits until somebody hurries.
    bench = Bench(
        tmp_path, index=index, sources=("memory", "sessions"), sessions=sessions, marks_clock=Clock()
    )
    (tmp_path / "chats" / "a.jsonl").write_text('{"role": "user", "content": "apples"}\n')
    async with running(bench):
        await index.is_asked.wait()
        late = tmp_path / "chats" / "b.jsonl"
        late.write_text('{"role": "user", "content": "pears"}\n')
        bench.pending.mark([late])
        number = bench.pending.hurry()
        await bench.pending.wait_for(number)
        assert not bench.parts.passes.has_succeeded(number)
        assert not bench.pending.awaits_paths
        index.may.set()
        await until_async(lambda: not bench.pending.count and not bench.pending.running_for_s(), 10)
        assert {Path(path).name for path in await bench.paths("pears")} == {"b.jsonl"}
        assert {Path(path).name for path in await bench.paths("apples")} == {"a.jsonl"}


async def test_a_transcript_that_somebody_else_changed_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was taken in is not."""
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), delta_bytes=0, delta_messages=0)
    bench = Bench(tmp_path, sources=("memory", "sessions"), sessions=sessions)
    files = [tmp_path / "chats" / name for name in ("a.jsonl", "b.jsonl")]
    for file in files:
        file.write_text('{"role": "user", "content": "apples"}\n')
    real = apply_sessions

    async def overtaken(index: Index, group: Sequence[FoundFile], **how: Any) -> AppliedChanges:
        first = [found for found in group if found.file == files[0]]
        applied = await real(index, [found for found in group if found not in first], **how)
        return msgspec.structs.replace(applied, stale=frozenset(found.path for found in first))

    async with running(bench):
        monkeypatch.setattr(index_transcripts, "apply_sessions", overtaken)
        await bench.settle()
        monkeypatch.undo()
        assert {Path(path).name for path in await bench.paths("apples")} == {"b.jsonl"}
        assert bench.pending.count == 1
        await bench.pending.wait_for(bench.pending.hurry())
        assert {Path(path).name for path in await bench.paths("apples")} == {"a.jsonl", "b.jsonl"}
        assert bench.pending.count == 0


@pytest.mark.parametrize("returns", [False, True])
async def test_a_transcript_that_is_deleted_while_others_are_read_is_not_counted_as_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returns: bool
) -> None:
    """A short pass has seen that it is gone before the long one fails to read it. One that returned is indexed."""
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), delta_bytes=0, delta_messages=0)
    bench = Bench(tmp_path, sources=("memory", "sessions"), sessions=sessions)
    file = tmp_path / "chats" / "a.jsonl"
    content = '{"role": "user", "content": "apples"}\n'
    file.write_text(content)
    real = apply_sessions

    async def overtaken(*what: Any, **how: Any) -> AppliedChanges:
        monkeypatch.undo()
        file.unlink()
        bench.pending.mark([file])
        await bench.pending.wait_for(bench.pending.hurry())
        applied = await real(*what, **how)
        if returns:
            file.write_text(content)
            bench.pending.mark([file])
            await bench.pending.wait_for(bench.pending.hurry())
        return applied

    monkeypatch.setattr(index_transcripts, "apply_sessions", overtaken)
    async with running(bench):
        await bench.settle()
        await until_async(lambda: not bench.pending.count and not bench.pending.running_for_s(), 10)
        assert dict(bench.parts.runner.skipped) == {}
        assert len(await bench.paths("apples")) == returns


async def test_a_transcript_that_is_deleted_after_a_long_pass_has_read_it_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short pass has seen that it is gone before the long one writes it into the index."""
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), delta_bytes=0, delta_messages=0)
    bench = Bench(tmp_path, sources=("memory", "sessions"), sessions=sessions)
    file = tmp_path / "chats" / "a.jsonl"
    file.write_text('{"role": "user", "content": "apples"}\n')
    real = bench.index.replace_sessions

    async def overtaken(*what: Any, **how: Any) -> list[ReplacedChunks | None]:
        if file.exists():
            file.unlink()
            bench.pending.mark([file])
            await bench.pending.wait_for(bench.pending.hurry())
        return await real(*what, **how)

    monkeypatch.setattr(bench.index, "replace_sessions", overtaken)
    async with running(bench):
        await bench.settle()
        assert not file.exists()
        await bench.pending.wait_for(bench.pending.hurry())
        await until_async(lambda: not bench.pending.count and not bench.pending.running_for_s(), 10)
        assert await bench.paths("apples") == set()


async def test_a_transcript_that_is_compressed_before_a_long_pass_reads_it_is_not_counted_as_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short pass has read it under its new name when the long one misses the old name."""
    monkeypatch.setattr(plan, "GROUP_FILES", 1)
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), delta_bytes=0, delta_messages=0)
    bench = Bench(tmp_path, sources=("memory", "sessions"), sessions=sessions)
    first, second = (tmp_path / "chats" / name for name in ("a.jsonl", "b.jsonl"))
    for file in (first, second):
        file.write_text('{"role": "user", "content": "apples"}\n')
        os.utime(file, (0, 0))  # of equal age: they are read in the order of their names
    packed = second.with_name("b.jsonl.zst")
    asked: list[str] = []

    async def noted(index: Index, group: Sequence[FoundFile], **how: Any) -> AppliedChanges:
        asked.extend(found.file.name for found in group)
        if len(asked) == 1:
            packed.write_bytes(zstandard.compress(second.read_bytes()))
            second.unlink()
            bench.pending.mark([second, packed])
            bench.pending.hurry()
        return await apply_sessions(index, group, **how)

    monkeypatch.setattr(index_transcripts, "apply_sessions", noted)
    async with running(bench):
        await bench.settle()
        assert asked.index("b.jsonl.zst") < asked.index("b.jsonl")
        assert len(await bench.paths("apples")) == 2
        assert dict(bench.parts.runner.skipped) == {}


async def test_how_far_a_pass_is_is_told_while_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all notes and transcripts that it reads how many are done: each group before the next; then nothing is told."""
    monkeypatch.setattr(plan, "GROUP_FILES", 2)
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), delta_bytes=0, delta_messages=0)
    bench = Bench(tmp_path, sources=("memory", "sessions"), sessions=sessions)
    for number in range(3):
        (tmp_path / "chats" / f"{number}.jsonl").write_text('{"role": "user", "content": "apples"}\n')
        bench.write(f"memory/{number}.md", "pears")
    told: list[tuple[int, int] | None] = []

    def telling(real: Callable[..., Coroutine[None, None, AppliedChanges]]) -> Callable[..., object]:
        def tell(*what: Any, **how: Any) -> object:
            told.append(bench.loop.progress)
            return real(*what, **how)

        return tell

    monkeypatch.setattr(run_pass, "apply_files", telling(apply_files))
    monkeypatch.setattr(index_transcripts, "apply_sessions", telling(apply_sessions))
    async with running(bench):
        await bench.settle()
        assert told == [(0, 6), (2, 6), (3, 6), (5, 6)]
        assert bench.loop.progress is None


@pytest.mark.parametrize(
    "wait", [lambda bench: bench.loop.catch_up(), lambda bench: bench.settle()], ids=["search", "sync"]
)
async def test_a_pass_that_is_broken_off_is_no_success(
    tmp_path: Path, wait: Callable[[Bench], Coroutine[None, None, object]]
) -> None:
    """Who waits for one when the agent is stopped is not told that the index is up to date, but sent away."""
    index = HeldIndex(tmp_path / "main.sqlite")
    bench = Bench(tmp_path, index=index)
    await index.open()
    await index.adopt(FINGERPRINT)
    keeping = asyncio.create_task(bench.loop.run())
    await bench.settle()
    bench.write("memory/a.md", "apples")
    waiting = asyncio.create_task(wait(bench))
    await index.is_asked.wait()
    keeping.cancel()
    await asyncio.wait([keeping])
    await bench.loop.stop()
    with pytest.raises(StoreClosed):
        await waiting
    assert not await bench.paths("apples")
    await index.close()


class SlowIndex(Index):
    """Takes five seconds to write, by the clock of the test."""

    def __init__(self, file: Path, clock: Clock) -> None:
        super().__init__(file)
        self._clock = clock

    async def replace_all(self, *args: Any, **kwargs: Any) -> list[ReplacedChunks]:
        self._clock.run(5)
        return await super().replace_all(*args, **kwargs)


async def test_a_pass_that_a_blocked_store_held_up_is_told(tmp_path: Path) -> None:
    """Once, with the part that took so long; one that finds nothing to write is not."""
    clock = Clock()
    made = Bench(tmp_path, index=SlowIndex(tmp_path / "main.sqlite", clock), clock=clock)
    made.write("memory/a.md", "apples")
    async with running(made):
        with capture_logs() as logs:
            await made.settle()
            await made.settle()
        told = [one for one in logs if one["event"] == "sync.was_slow"]
        assert [(one["parts"], one["took_ms"], one["read"]) for one in told] == [({"writing": 5000}, 5000, 1)]
        assert made.loop.last_pass is not None
        assert made.loop.last_pass.took_s == 0
    assert "apples" not in str(logs)


async def test_all_that_a_pass_does_has_a_name(tmp_path: Path) -> None:
    """From the look at the files to what is written, and the file that took longest."""
    made = Bench(tmp_path, clock=Ticking())
    made.write("memory/a.md", "apples")
    made.write("memory/b.md", "pears")
    async with running(made):
        with capture_logs() as logs:
            await made.settle()
    [told] = [one for one in logs if one["event"] == "sync.was_slow" and one["read"]]
    assert {"looking", "looking, queued", "reading", "reading, queued", "cutting", "writing"} <= set(
        told["parts"]
    )
    assert told["slowest"] in {"memory/a.md", "memory/b.md"}
    assert sum(told["parts"].values()) == told["took_ms"]


async def test_passes_that_go_in_between_do_not_nest(tmp_path: Path) -> None:
    """Wherever an edit and a search arrive while a group of files is written: the one under way ends before the next begins.

    Else none of them would end as long as edits go on, and each would be a few frames deeper than the one before.
    """
    made = Bench(tmp_path)
    async with running(made):
        await made.settle()
        real, edits, most = made.index.replace_all, 0, 0

        async def written(*args: Any) -> list[ReplacedChunks]:
            nonlocal edits, most
            most = max(most, len(made.pending.running_for_s()))
            if edits < 30:
                edits += 1
                made.pending.mark([made.write(f"memory/edit{edits}.md", f"apples {edits}")])
                made.pending.hurry()
            return await real(*args)

        made.index.replace_all = written  # type: ignore[method-assign, assignment]
        made.write("memory/a.md", "pears")
        await made.settle()
        await until_async(lambda: not made.pending.count and not made.pending.running_for_s())
        assert len(await made.paths("apples")) == edits == 30
    assert most == 2


async def test_a_note_that_was_away_while_a_long_pass_looked_stays_where_a_later_one_has_seen_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moved away and back, with the same bytes and the same stamp; a note that is gone at the later look goes."""
    made = Bench(tmp_path)
    for number in range(100):
        made.write(f"memory/{number}.md", f"note {number}")
    away, gone = made.write("memory/away.md", "apples"), made.write("memory/gone.md", "pears")
    async with running(made):
        await made.settle()
        real = scan

        def looked(*args: Any, within: Any, **kwargs: Any) -> Scan:
            if within is not None:
                return real(*args, within=within, **kwargs)
            hidden = away.rename(away.with_suffix(".hidden"))
            gone.unlink(missing_ok=True)
            seen = real(*args, within=within, **kwargs)
            hidden.rename(away)
            return seen

        monkeypatch.setattr(run_pass, "scan", looked)
        number = made.loop.request(force=True)
        await until_async(lambda: made.loop.progress)
        made.pending.mark([away, gone])
        made.pending.hurry()
        await made.loop.wait_for_pass(number)
        assert await made.paths("apples") == {"memory/away.md"}
        assert await made.paths("pears") == set()


async def test_a_short_pass_that_failed_inside_a_long_one_is_made_again(
    tmp_path: Path,
) -> None:
    """The success of the long one is none of the other's."""
    made = Bench(tmp_path)
    for number in range(100):
        made.write(f"memory/{number}.md", f"note {number}")
    async with running(made):
        await made.settle()
        real, failed = made.index.replace_all, 0

        async def locked(changes: Sequence[Any], *rest: Any) -> list[ReplacedChunks]:
            nonlocal failed
            if not failed and any(change.found.path == "memory/new.md" for change in changes):
                failed += 1
                raise StoreUnavailable("another program has it locked")
            return await real(changes, *rest)

        made.index.replace_all = locked  # type: ignore[method-assign, assignment]
        number = made.loop.request(force=True)
        await until_async(lambda: made.loop.progress)
        made.pending.mark([made.write("memory/new.md", "apples")])
        made.pending.hurry()
        await made.loop.wait_for_pass(number)
        assert failed == 1
        await until_async(lambda: not made.pending.count and not made.pending.running_for_s(), 10)
        assert await made.paths("apples") == {"memory/new.md"}


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_on_a_full_disk_what_was_deleted_makes_room_for_what_is_new(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """In the same pass; where nothing was deleted, the pass fails, and what is new waits."""
    old = bench.write("memory/old.md", "\n\n".join(f"apples {number} " * 40 for number in range(2000)))
    await bench.settle()
    files = [bench.index.file, Path(f"{bench.index.file}-wal")]
    disk_bytes = sum(file.stat().st_size for file in files)

    def usage(_: object) -> SimpleNamespace:
        used = sum(file.stat().st_size for file in files if file.exists())
        return SimpleNamespace(total=disk_bytes, used=used, free=max(0, disk_bytes - used))

    given_back, shrink = list[None](), bench.index.database.shrink

    async def shrinking() -> bool:
        given_back.append(None)
        return await shrink()

    monkeypatch.setattr(bench.index.database, "shrink", shrinking)
    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(disk_room, "SPARED_BYTES", 1 << 16)
    bench.write("memory/new.md", "pears")
    if is_deleted:
        old.unlink()
        assert await bench.settle() == 1
        assert await bench.paths("pears") == {"memory/new.md"}
        assert await bench.paths("apples") == set()
    else:
        with pytest.raises(PassFailed):
            await bench.settle()
        assert await bench.paths("apples") == {"memory/old.md"}
    assert bool(given_back) is is_deleted


async def test_a_pass_whose_writes_are_not_on_the_disk_has_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it read is found meanwhile; it is tried again."""

    async def raise_if_unsynced() -> None:
        raise StoreUnavailable("the disk keeps nothing")

    bench.write("memory/a.md", "apples")
    with monkeypatch.context() as broken:
        broken.setattr(bench.index.database, "raise_if_unsynced", raise_if_unsynced)
        with pytest.raises(PassFailed, match="the disk keeps nothing"):
            await bench.settle()
        assert await bench.paths("apples") == {"memory/a.md"}
    await bench.settle()


async def test_what_was_deleted_keeps_its_room_in_the_index_while_the_disk_has_enough(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes is written there; to give it back would be done again at each deletion."""
    given_back: list[object] = []

    async def shrink() -> bool:
        given_back.append(None)
        return False

    monkeypatch.setattr(bench.index.database, "shrink", shrink)
    note = bench.write("memory/a.md", "apples")
    await bench.settle()
    note.unlink()
    await bench.settle()
    assert await bench.paths("apples") == set()
    assert given_back == []


async def test_where_a_disk_has_no_room_for_all_at_once_files_are_taken_out_some_after_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was deleted is to be found no more; one that cannot go even by itself waits for another pass."""
    remove, most, taken = bench.index.remove, 2, list[str]()

    async def remove_few(paths: Sequence[str]) -> None:
        if len(paths) > most:
            raise StoreFull("no room")
        taken.extend(paths)
        await remove(paths)

    waits, checkpoint = set[bool](), bench.index.database.checkpoint

    async def folded(*, wait: bool) -> None:
        waits.add(wait)
        await checkpoint(wait=wait)

    monkeypatch.setattr(bench.index.database, "checkpoint", folded)
    monkeypatch.setattr(bench.index, "remove", remove_few)
    notes = [bench.write(f"memory/{number}.md", "apples") for number in range(5)]
    await bench.settle()
    for note in notes:
        note.unlink()
    await bench.settle()
    assert sorted(taken) == [f"memory/{number}.md" for number in range(5)]
    assert await bench.paths("apples") == set()
    assert waits == {False}  # readers hold nothing up
    most = 0
    bench.write("memory/one.md", "pears")
    await bench.settle()
    (bench.workspace / "memory/one.md").unlink()
    with pytest.raises(PassFailed, match="no room") as failed:
        await bench.settle()
    assert failed.value.needs_person
    assert await bench.paths("pears") == {"memory/one.md"}


async def test_what_has_ended_is_not_tried_again() -> None:
    """A pass that failed just before calls for no other one any more."""

    async def make(*_: object, **__: object) -> PassResult:
        raise StoreUnavailable("the disk is full")

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    passes = passes_of(pending, make, clock)
    pending.mark_all()
    await passes.attempt(await pending.take())
    assert passes.awaits_retry
    passes.stop()
    assert not passes.awaits_retry


async def test_what_ends_the_daemon_ends_the_passes() -> None:
    """It is no failure that a pause mends: nothing is tried again, and nothing is told as a defect."""

    async def make(*_: object, **__: object) -> PassResult:
        raise FatalError("no index can be kept", exit_code=1)

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    passes = passes_of(pending, make, clock)
    with capture_logs() as logs, pytest.raises(FatalError):
        await passes.run()
    assert not passes.awaits_retry
    assert logs == []


@pytest.mark.parametrize("ends", ["stopped", "succeeded"])
def test_no_timer_of_an_earlier_failure_is_left(ends: str) -> None:
    """However many passes failed one after the other: else a pass would begin that nobody asked for."""
    is_failing = True

    async def make(*_: object, **__: object) -> PassResult:
        if is_failing:
            raise StoreUnavailable("the disk is full")
        return PassResult()

    async def story() -> None:
        nonlocal is_failing
        clock = Clock()
        pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
        passes = passes_of(pending, make, clock)
        for _ in range(3):
            pending.mark_all()
            await passes.attempt(await pending.take())
        if ends == "stopped":
            passes.stop()
        else:
            is_failing = False
            pending.mark_all()
            await passes.attempt(await pending.take())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pending.take(), 10 * LONGEST_WAIT_S)

    hastily(story())


@pytest.mark.parametrize("kind", [StoreUnavailable("the disk is full"), MemoryError()])
async def test_the_pauses_between_passes_that_fail_grow_and_begin_anew_after_one_that_does_not(
    kind: Exception,
) -> None:
    """Up to the longest: a disk that stays full is not asked each second for days; nor is a machine without memory."""
    is_failing = True

    async def make(*_: object, **__: object) -> PassResult:
        if is_failing:
            raise kind
        return PassResult()

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    passes = passes_of(pending, make, clock)
    failures = (*range(1, 9), 0, 1)
    with capture_logs() as logs:
        for failure in failures:
            is_failing = failure > 0
            pending.mark_all()
            await passes.attempt(await pending.take())
            assert passes.awaits_retry == is_failing
    passes.stop()
    waits = [line["wait_s"] for line in logs if line["event"] == "sync.retry_scheduled"]
    rng = Random(3)
    expected = [delay_s(failure, rng, cap_s=LONGEST_WAIT_S) for failure in failures if failure]
    assert waits == [round(one, 1) for one in expected]
    assert waits[7] > waits[3] > waits[1] > waits[8]


async def test_how_the_last_passes_ended_is_remembered() -> None:
    """So many: who waited for one of them is answered, and nothing grows for ever."""

    async def make(*_: object, **__: object) -> PassResult:
        return PassResult()

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    passes = passes_of(pending, make, clock)
    for _ in range(OUTCOMES + 1):
        pending.mark_all()
        await passes.attempt(await pending.take())
    remembered = [number for number in range(OUTCOMES + 3) if passes.has_succeeded(number)]
    assert remembered == [*range(2, OUTCOMES + 2)]


async def test_passes_that_changed_something_or_failed_are_told() -> None:
    """The newest first, and no more than twenty of them, however many others there were."""
    outcomes: list[PassResult | TransientError] = [
        PassResult(),
        PassResult(removed=2),
        TransientError("no disk"),
        *[PassResult()] * OUTCOMES,
    ]

    async def make(*_: object, **__: object) -> PassResult:
        outcome = outcomes.pop(0) if outcomes else PassResult(changed=1)
        if isinstance(outcome, TransientError):
            raise outcome
        return outcome

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    passes = passes_of(pending, make, clock)

    async def attempt(times: int) -> None:
        for _ in range(times):
            pending.mark_all()
            await passes.attempt(await pending.take())

    await attempt(len(outcomes))
    assert [(one.changed, one.removed, one.failed) for one in passes.notable] == [
        (0, 0, "no disk"),
        (0, 2, None),
    ]
    await attempt(NOTABLE + 1)
    assert [(one.changed, one.failed) for one in passes.notable] == [(1, None)] * 20
    passes.stop()


@pytest.mark.parametrize(("changed", "removed"), [(0, 0), (2, 0), (0, 3), (2, 3)])
async def test_a_pass_that_changed_something_is_logged_and_followed_by_maintenance(
    changed: int, removed: int
) -> None:
    """Those that found all as it was would fill a log, and have the disk work for nothing."""

    async def make(*_: object, **__: object) -> PassResult:
        return PassResult(changed=changed, removed=removed, looked=5)

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    pending.mark_all()
    triggers = MaintenanceTriggers(late_s=0.0)
    await triggers.enough()  # what may be left of an earlier life
    with capture_logs() as logs:
        await passes_of(pending, make, clock, triggers).attempt(await pending.take())
    assert triggers.is_due is (changed + removed > 0)
    finished = [(one["changed"], one["removed"]) for one in logs if one["event"] == "sync.finished"]
    assert finished == ([(changed, removed)] if changed + removed else [])


async def test_only_a_pass_over_everything_tells_that_the_index_is_whole() -> None:
    """What backups are kept for until then."""

    async def make(*_: object, **__: object) -> PassResult:
        return PassResult()

    clock, triggers = Clock(), MaintenanceTriggers()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    passes = passes_of(pending, make, clock, triggers)
    pending.mark([Path("/ws/a.md")])
    pending.hurry()
    await passes.attempt(await pending.take())
    assert not triggers.whole.is_set()
    pending.mark_all()
    await passes.attempt(await pending.take())
    assert triggers.whole.is_set()


async def test_a_slow_pass_that_failed_is_told_without_files() -> None:
    """How many it had looked at by then is not known."""
    clock = Clock()

    async def make(*_: object, **__: object) -> PassResult:
        clock.run(pass_scheduler.PASS_S + 0.1)
        raise StoreUnavailable("the disk is full")

    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    pending.mark_all()
    failing = passes_of(pending, make, clock)
    with capture_logs() as logs:
        await failing.attempt(await pending.take())
    failing.stop()
    [line] = [one for one in logs if one["event"] == "sync.was_slow"]
    counts = {name: line[name] for name in ("looked", "read", "changed", "removed")}
    assert counts == dict.fromkeys(counts, 0)
    assert line["failed"] == "the disk is full"


def took(clock: Clock, seconds: float) -> TimeTrace:
    """The account of a pass over two files that took so long."""
    with TimeTrace(clock) as account:
        with timed_part("reading", "memory/a.md"):
            clock.run(seconds * 0.75)
        with timed_part("reading", "memory/b.md"):
            clock.run(seconds * 0.25)
    return account


@pytest.mark.parametrize(
    ("done", "usual_s", "slow_s"),
    [
        (PassResult(), 0.01, 2.1),
        (PassResult(changed=1, looked=1, read=1), 0.05, 4.5),
        (PassResult(looked=10_000), 1.0, 15.0),
        (PassResult(changed=5000, looked=5000, read=5000), 25.0, 600.0),
    ],
)
def test_what_is_slow_depends_on_the_files(done: PassResult, usual_s: float, slow_s: float) -> None:
    """A first pass over thousands may take its time; one edit may not."""
    assert usual_s < allowed_s(done) < slow_s


def test_a_pass_is_slow_beyond_what_is_allowed() -> None:
    """So much for itself, for each file that is read, and for each that is only looked at."""
    clock, done = Clock(), PassResult(1, 0, looked=2_000, read=3)
    allowed = pass_scheduler.PASS_S + 3 * pass_scheduler.READ_S + 2_000 * pass_scheduler.LOOKED_S
    for took_s, lines in ((allowed - 0.01, 0), (allowed + 0.01, 1)):
        with capture_logs() as logs:
            log_slow_pass(SlowLog(), "main", took(clock, took_s), done, None, clock.now)
        assert len(logs) == lines


def test_a_slow_pass_is_told_with_its_slowest_file() -> None:
    """By its name, and where the time went; a quick one is not."""
    clock = Clock()
    slow_log = SlowLog()
    with capture_logs() as logs:
        log_slow_pass(slow_log, "main", took(clock, 0.5), PassResult(1, 0, looked=2, read=2), None, clock.now)
        log_slow_pass(slow_log, "main", took(clock, 8.0), PassResult(1, 1, looked=2, read=2), None, clock.now)
    assert logs == [
        {
            "event": "sync.was_slow",
            "log_level": "warning",
            "agent": "main",
            "took_ms": 8000,
            "parts": {"reading": 8000},
            "looked": 2,
            "read": 2,
            "changed": 1,
            "removed": 1,
            "slowest": "memory/a.md",
            "slowest_ms": 6000,
            "failed": None,
            "left_out": 0,
        }
    ]


def test_many_slow_passes_are_one_line_in_ten_seconds() -> None:
    """The next one says how many there were; a failure is told with its reason."""
    clock = Clock()
    slow_log = SlowLog()
    with capture_logs() as logs:
        for _ in range(5):
            log_slow_pass(slow_log, "main", took(clock, 3.0), PassResult(), "the disk is full", clock.now)
    assert [(one["left_out"], one["failed"]) for one in logs] == [
        (0, "the disk is full"),
        (3, "the disk is full"),
    ]


async def test_on_a_full_disk_what_an_index_does_not_need_is_given_back_until_the_log_is_empty(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step, and again after what is new was taken in; once it is done, no more."""
    old = bench.write("memory/old.md", "apples")
    await bench.settle()
    did = list[str]()
    shrinks, empties, refusals = [True, True, False, False], [False, True], [StoreFull("no room")]
    replace_all, index_database = bench.index.replace_all, bench.index.database

    async def replaced(*what: Any, **how: Any) -> Any:
        did.append("replace")
        if refusals:
            raise refusals.pop()
        return await replace_all(*what, **how)

    async def checkpoint(*, wait: bool) -> None:
        assert not wait
        did.append("checkpoint")

    async def shrink() -> bool:
        did.append("shrink")
        return shrinks.pop(0)

    async def truncate_wal() -> bool:
        did.append("empty")
        return empties.pop(0)

    monkeypatch.setattr(bench.index, "replace_all", replaced)
    for name, stand_in in {"checkpoint": checkpoint, "shrink": shrink, "truncate_wal": truncate_wal}.items():
        monkeypatch.setattr(index_database, name, stand_in)
    old.unlink()
    bench.write("memory/new.md", "pears")
    assert await bench.settle() == 1
    step = ["shrink", "checkpoint"]
    before = ["replace", "checkpoint", *step, *step, "shrink", "empty"]
    assert did == [*before, "replace", "checkpoint", "shrink", "empty"]
    bench.write("memory/more.md", "plums")
    assert await bench.settle() == 1
    assert did[len(before) + 4 :] == ["replace"]


async def test_where_something_is_mounted_is_kept_for_the_next_start(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; a name that no string holds is not, and an index that cannot be written fails no pass for it."""
    mounts = [
        MountPoint("/z", "memory/z/"),
        MountPoint("/a", "memory/a/"),
        MountPoint("/\udcff", "memory/c/"),
    ]
    monkeypatch.setattr(run_pass, "mounts_after", lambda *_: frozenset(mounts))
    put_mounts, put = bench.index.put_mounts, list[object]()

    async def counting(pairs: Any) -> None:
        put.append(pairs)
        if len(put) == 1:
            raise StoreUnavailable("no room")
        await put_mounts(pairs)

    monkeypatch.setattr(bench.index, "put_mounts", counting)
    await bench.settle()
    assert put == [[("/a", "memory/a/"), ("/z", "memory/z/")]]
    await bench.settle()
    assert len(put) == 1
    mounts.pop(0)
    await bench.settle()
    assert list(await bench.index.mounts()) == [("/a", "memory/a/")]


async def test_a_file_that_another_program_held_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open it asked for its lease, and no event tells when that is given up."""
    bench = Bench(tmp_path, marks_clock=Clock())
    monkeypatch.setattr(run_pass, "HELD_S", 0.01)

    async def held(_: object, found: Sequence[FoundFile], *__: Any, **___: Any) -> AppliedChanges:
        return AppliedChanges(frozenset(), 0, {one.path: FileHeld(one.path, "held") for one in found})

    async with running(bench):
        await bench.settle()
        assert not bench.pending.count
        with monkeypatch.context() as patched:
            patched.setattr(run_pass, "apply_files", held)
            bench.write("memory/a.md", "apples")
            await bench.settle()
        await until_async(lambda: bench.pending.awaits_paths)
        await bench.pending.wait_for(bench.pending.hurry())
        assert await bench.paths("apples") == {"memory/a.md"}


async def test_an_index_that_is_built_beside_has_transcripts_that_are_not_due(tmp_path: Path) -> None:
    """All of them: one that grows is due to the index that serves alone."""
    (tmp_path / "chats").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "chats",), idle_seconds=3600)
    bench = Bench(tmp_path, sources=("memory", "sessions"), sessions=sessions)
    async with running(bench):
        await bench.settle()
        (tmp_path / "chats" / "a.jsonl").write_text('{"role": "user", "content": "pears"}\n')
        beside = Index(tmp_path / "beside.sqlite")
        await beside.open()
        await beside.adopt(FINGERPRINT)
        await bench.parts.runner.fill(beside)
        assert [hit for hit, _ in await ranked(beside, "pears", 5, set(Kind))]
        assert await bench.paths("pears") == set()
        await beside.close()


async def test_passes_that_have_ended_hold_on_to_nothing(bench: Bench) -> None:
    """What one looked at is kept for those that run meanwhile, and goes with them."""

    def scans() -> int:
        gc.collect()
        return sum(isinstance(one, Scan) for one in gc.get_objects())

    bench.write("memory/a.md", "apples")
    await bench.settle()
    before = scans()
    for _ in range(3):
        await bench.settle()
    await until_async(lambda: scans() <= before)  # a thread may still be letting go of the last one


@pytest.mark.parametrize("missing", [0, 1])
async def test_files_that_changed_and_files_that_went_count_together_for_maintenance(missing: int) -> None:
    """The keywords are put in order after so many, whichever they were."""

    async def make(*_: object, **__: object) -> PassResult:
        return PassResult(changed=MANY // 2, removed=MANY - MANY // 2 - missing, looked=5)

    clock = Clock()
    pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), clock)
    pending.mark_all()
    triggers = MaintenanceTriggers(late_s=3600.0)
    due = asyncio.create_task(triggers.enough())
    await passes_of(pending, make, clock, triggers).attempt(await pending.take())
    for _ in range(20):
        await asyncio.sleep(0)
    assert due.done() is not bool(missing)
    due.cancel()
    await asyncio.wait([due])
