import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.config.settings import SessionSettings
from memd.domain_types import FoundFile
from memd.indexing import transcript_schedule
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.index_transcripts import apply_sessions
from memd.indexing.transcript_schedule import TranscriptSchedule, due_at
from memd.runtime.threads import Threads
from memd.runtime.timers import Debouncer
from memd.sources.scan import scan
from memd.sources.transcripts import database_reader
from memd.sources.transcripts.open_transcript import Growth, growth
from memd.store.index import Index
from tests.bounds import shipped
from tests.indexing.transcribed import apply, opened, rules, shelf
from tests.sources.transcripts.transcripts import append, replace, said
from tests.wait import until_async

NOW = 1_790_000_000.0


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    """An open index."""
    async with opened(tmp_path / "x.sqlite") as one:
        yield one


class Marks(DebouncedChanges):
    """What was marked, in order."""

    def __init__(self, debouncer: Debouncer, clock: Callable[[], float]) -> None:
        super().__init__(debouncer, clock)
        self.marked: list[Path] = []

    def mark(self, paths: Iterable[Path]) -> None:
        self.marked += paths


class Bench:
    """Transcripts that grow by a clock that a test sets."""

    def __init__(self, directory: Path, index: Index, settings: SessionSettings | None = None) -> None:
        self.directory = directory
        self.roots = shelf(directory)
        self.index = index
        self.now = NOW
        self.pending = Marks(Debouncer(quiet_s=1.5, cap_s=6.0), lambda: self.now)
        self.growing = TranscriptSchedule(
            settings or SessionSettings(delta_bytes=2000, delta_messages=5, idle_seconds=60),
            index,
            self.roots,
            Threads(1, "counting"),
            self.pending,
            now=lambda: self.now,
        )

    @property
    def marked(self) -> list[Path]:
        return self.pending.marked

    def say(self, name: str, turns: int, *, ago_s: float = 0.0) -> Path:
        file = self.directory / name
        append(file, *(said(f"turn {number}") for number in range(turns)))
        os.utime(file, (self.now - ago_s, self.now - ago_s))
        return file

    def found(self) -> list[FoundFile]:
        return list(scan(self.roots, max_bytes=1).found.values())

    async def due(self, *, eager: bool = False) -> set[str]:
        """The names of those that have changed and are due."""
        known = await self.index.known()
        changed = [one for one in self.found() if getattr(known.get(one.path), "stamp", None) != one.stamp]
        due = await self.growing.due(changed, known, lambda _: True, eager=eager)
        return {found.file.name for found in due}

    async def index_all(self) -> None:
        await asyncio.sleep(0.05)  # so that no second write could leave the stamps as they are
        await apply(self.index, rules(self.roots))


async def test_what_was_never_indexed_counts_from_nothing(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long ones and quiet ones are due, what was begun a moment ago is not; to know of a quiet one, it need not be opened."""
    bench = Bench(tmp_path / "here", index)
    opened: list[str] = []

    def counted(found: FoundFile, *of: Any, **how: Any) -> Growth:
        opened.append(found.file.name)
        return growth(found, *of, **how)

    monkeypatch.setattr(transcript_schedule, "growth", counted)
    bench.say("long.jsonl", 5)
    bench.say("quiet.jsonl", 1, ago_s=60)
    bench.say("begun.jsonl", 1, ago_s=1)
    assert await bench.due() == {"long.jsonl", "quiet.jsonl"}
    assert sorted(opened) == ["begun.jsonl", "long.jsonl"]
    assert len(bench.growing) == 1
    bench.growing.stop()


async def test_one_that_was_just_made_is_not_taken_for_one_that_was_cut(tmp_path: Path, index: Index) -> None:
    """Nothing is in it yet: its first words are waited for like those of any other, however few are enough."""
    settings = SessionSettings(delta_bytes=2, delta_messages=5, idle_seconds=60)
    bench = Bench(tmp_path / "here", index, settings)
    bench.say("empty.jsonl", 0, ago_s=1)
    assert await bench.due() == set()
    assert len(bench.growing) == 1
    bench.now += 60
    assert await bench.due() == {"empty.jsonl"}
    bench.growing.stop()


async def test_growth_counts_from_the_last_reading(tmp_path: Path, index: Index) -> None:
    """Four more lines are too few, the fifth is enough; so are many bytes on one line."""
    bench = Bench(tmp_path / "here", index)
    bench.say("a.jsonl", 100)
    big = bench.say("b.jsonl", 100)
    await bench.index_all()
    bench.say("a.jsonl", 4)
    assert await bench.due() == set()
    append(big, said("x" * 2000))
    bench.say("a.jsonl", 1)
    assert await bench.due() == {"a.jsonl", "b.jsonl"}
    assert len(bench.growing) == 0


async def test_the_rest_of_a_line_is_no_message(tmp_path: Path, index: Index) -> None:
    """Only complete lines are counted."""
    bench = Bench(tmp_path / "here", index)
    file = bench.say("a.jsonl", 4)
    append(file, b'{"role": "user", "conte')
    os.utime(file, (bench.now, bench.now))
    assert await bench.due() == set()
    bench.growing.stop()


async def test_what_was_cut_or_touched_is_looked_at_at_once(tmp_path: Path, index: Index) -> None:
    """It may not say any more what the index says."""
    bench = Bench(tmp_path / "here", index)
    cut, touched = bench.say("cut.jsonl", 9), bench.say("touched.jsonl", 9)
    await bench.index_all()
    cut.write_bytes(said("turn 0"))
    for file in (cut, touched):
        os.utime(file, (bench.now + 1, bench.now + 1))
    assert await bench.due() == {"cut.jsonl", "touched.jsonl"}


async def test_a_transcript_that_is_always_written_anew_waits_for_quiet(tmp_path: Path, index: Index) -> None:
    """Its lines are not counted as if all of them were new, however few are enough."""
    settings = SessionSettings(delta_bytes=2000, delta_messages=1, idle_seconds=60)
    bench = Bench(tmp_path / "here", index, settings)
    file = bench.say("a.jsonl", 50)
    await bench.index_all()
    replace(file, b"".join(said(f"turn {number}") for number in range(51)))
    os.utime(file, (bench.now, bench.now))
    assert await bench.due() == set()
    bench.now += 60
    assert await bench.due() == {"a.jsonl"}


async def test_all_are_due_to_who_asks_for_all(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none waits any more, nor rings in its time."""
    bench = Bench(tmp_path / "here", index)
    loop, alarms = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def noted(wait_s: float, ring: Callable[..., object], *given: Any) -> asyncio.TimerHandle:
        alarm = call_later(wait_s, ring, *given)
        if wait_s > 50:  # threads that end wait for less
            alarms.append(alarm)
        return alarm

    monkeypatch.setattr(loop, "call_later", noted)
    bench.say("a.jsonl", 1)
    assert await bench.due() == set()
    assert [alarm.cancelled() for alarm in alarms] == [False]
    assert await bench.due(eager=True) == {"a.jsonl"}
    assert len(bench.growing) == 0
    assert [alarm.cancelled() for alarm in alarms] == [True]


async def test_it_is_marked_when_it_is_due(tmp_path: Path, index: Index) -> None:
    """The first alarm is for those that are due first."""
    settings = SessionSettings(delta_bytes=2000, delta_messages=5, idle_seconds=60)
    bench = Bench(tmp_path / "here", index, settings)
    first = bench.say("a.jsonl", 1, ago_s=59.98)
    bench.say("b.jsonl", 1)
    assert await bench.due() == set()
    await until_async(lambda: bench.marked)
    assert bench.marked == [first]
    bench.growing.stop()


@pytest.fixture
async def alarms(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, set[str]]]:
    """In how many seconds alarms that were set ring, and for which files."""
    loop, rung = asyncio.get_running_loop(), list[tuple[float, set[str]]]()
    call_later = loop.call_later

    def noted(wait_s: float, ring: Callable[..., object], *given: Any) -> asyncio.TimerHandle:
        if given and isinstance(given[0], list):
            rung.append((wait_s, {file.name for file in given[0]}))
        return call_later(wait_s, ring, *given)

    monkeypatch.setattr(loop, "call_later", noted)
    return rung


async def test_those_that_are_due_within_a_second_are_marked_together(
    tmp_path: Path, index: Index, alarms: list[tuple[float, set[str]]]
) -> None:
    """One pass reads all of them."""
    bench = Bench(tmp_path / "here", index)
    for name, ago_s in (("a.jsonl", 30), ("b.jsonl", 29), ("c.jsonl", 28)):
        bench.say(name, 1, ago_s=ago_s)
    assert await bench.due() == set()
    bench.growing.stop()
    assert alarms == [(30.0, {"a.jsonl", "b.jsonl"})]


async def test_a_clock_that_was_put_back_hides_nothing(tmp_path: Path, index: Index) -> None:
    """What is from the future is due now."""
    bench = Bench(tmp_path / "here", index)
    bench.say("a.jsonl", 1, ago_s=-86_400)
    assert await bench.due() == {"a.jsonl"}


async def test_one_that_cannot_be_opened_is_left_to_who_reads(tmp_path: Path, index: Index) -> None:
    """Why it cannot be read is told once it is tried."""
    bench = Bench(tmp_path / "here", index)
    file = bench.say("a.jsonl", 1)
    changed = bench.found()
    file.unlink()
    assert await bench.growing.due(changed, {}, lambda _: True, eager=False) == changed


async def test_a_pass_over_some_says_nothing_of_the_others(tmp_path: Path, index: Index) -> None:
    """They wait on, and ring in their time."""
    settings = SessionSettings(delta_bytes=2000, delta_messages=5, idle_seconds=0.05)
    bench = Bench(tmp_path / "here", index, settings)
    bench.say("a.jsonl", 1)
    assert await bench.due() == set()
    await bench.growing.due([], {}, lambda path: path != "sessions/here/a.jsonl", eager=False)
    assert len(bench.growing) == 1
    await until_async(lambda: bench.marked)


async def test_what_was_read_all_the_same_rings_no_alarm(
    tmp_path: Path, index: Index, alarms: list[tuple[float, set[str]]]
) -> None:
    """That of the next one is set in its place."""
    bench = Bench(tmp_path / "here", index)
    bench.say("read.jsonl", 1, ago_s=30)
    bench.say("other.jsonl", 1, ago_s=20)
    assert await bench.due() == set()
    read = [found for found in bench.found() if found.file.name == "read.jsonl"]
    threads = Threads(1, "reading")
    await apply_sessions(index, read, rules=rules(bench.roots), vectors=None, threads=threads)
    await bench.growing.forget([found.path for found in read])
    bench.growing.stop()
    assert alarms == [(30.0, {"read.jsonl"}), (40.0, {"other.jsonl"})]


async def test_what_was_read_all_the_same_is_not_waited_for(tmp_path: Path, index: Index) -> None:
    """A long pass came to them after a short one had found them to grow; what has grown since goes on waiting."""
    bench = Bench(tmp_path / "here", index)
    names = ["read.jsonl", "grown.jsonl"]
    for name in names:
        bench.say(name, 1)
    assert await bench.due() == set()
    await bench.index_all()
    bench.say("grown.jsonl", 1)
    changed = [found for found in bench.found() if found.file.name == "grown.jsonl"]
    known = await index.known()
    assert not await bench.growing.due(changed, known, lambda path: path.endswith("grown.jsonl"), eager=False)
    assert len(bench.growing) == 2
    await bench.growing.forget([*known, "sessions/here/nowhere.jsonl"])
    assert len(bench.growing) == 1
    bench.growing.look_again()
    assert [file.name for file in bench.marked] == ["grown.jsonl"]
    bench.growing.stop()


SETTINGS = SessionSettings(delta_bytes=1000, delta_messages=5, idle_seconds=120)


@pytest.mark.parametrize(
    ("came_bytes", "came_lines", "changed_at", "due"),
    [
        pytest.param(10, 1, NOW - 1, NOW + 119, id="a little, a moment ago"),
        pytest.param(999, 4, NOW - 60, NOW + 60, id="not quite enough"),
        pytest.param(1000, 0, NOW, NOW, id="enough bytes"),
        pytest.param(10, 5, NOW, NOW, id="enough messages"),
        pytest.param(10, 1, NOW - 120, NOW, id="quiet for long enough"),
        pytest.param(10, 1, NOW - 5000, NOW - 4880, id="quiet for longer"),
        pytest.param(0, 0, NOW, NOW, id="touched"),
        pytest.param(-500, 0, NOW, NOW, id="cut"),
        pytest.param(10, 1, NOW + 1.5, NOW + 121.5, id="clocks a little apart"),
        pytest.param(10, 1, NOW + 3600, NOW, id="written in the future"),
    ],
)
def test_when_a_transcript_is_due(came_bytes: int, came_lines: int, changed_at: float, due: float) -> None:
    """Enough has come, or it was quiet for long enough; what is not as it was is looked at at once."""
    found = due_at(came_bytes, came_lines, changed_at, SETTINGS, NOW)
    assert found == due if due > NOW else found <= NOW


@pytest.mark.parametrize(
    "settings",
    [
        SessionSettings(delta_bytes=0),
        SessionSettings(delta_messages=0),
        SessionSettings(idle_seconds=0),
    ],
)
def test_nought_means_any_growth(settings: SessionSettings) -> None:
    """With nothing to wait for, one byte is enough."""
    assert due_at(1, 0, NOW, settings, NOW) <= NOW


@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 10**6),
    st.floats(-1e12, 1e12),
    st.floats(0, 1e10),
)
def test_no_transcript_waits_for_longer_than_the_time_of_quiet(
    came_bytes: int, came_lines: int, changed_at: float, now: float
) -> None:
    """Whatever the clocks and the file say, it is due within the time of quiet and what clocks may be apart."""
    assert due_at(came_bytes, came_lines, changed_at, SETTINGS, now) <= now + SETTINGS.idle_seconds + 2.0


def test_a_time_that_is_ahead_tells_of_quiet_within_the_slack_of_clocks() -> None:
    """A little ahead is a clock that was read before; further ahead was set."""
    ahead, settings = shipped("memd.indexing.transcript_schedule._AHEAD_S"), SessionSettings()
    assert due_at(1, 0, 100.0 + ahead, settings, 100.0) == 100.0 + ahead + settings.idle_seconds
    assert due_at(1, 0, 100.1 + ahead, settings, 100.0) == 100.0


@pytest.mark.parametrize("came_bytes", [1, 2, 3000])
async def test_of_a_session_in_a_database_what_its_events_hold_is_counted(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch, came_bytes: int
) -> None:
    """Its stamp counts events: one alone may be a long message."""
    bench = Bench(tmp_path / "here", index)
    bench.say("a.jsonl", 4)
    await bench.index_all()
    [before] = bench.found()
    known = await index.known()
    stamp = msgspec.structs.replace(
        before.stamp, size=before.stamp.size + 1, mtime_ns=int((bench.now - 1) * 1e9)
    )
    found = msgspec.structs.replace(before, stamp=stamp, entry="main")
    came = Growth(bytes=came_bytes, lines=1)
    monkeypatch.setattr(database_reader, "entry_growth", lambda *_, **__: came)
    due = await bench.growing.due([found], known, lambda _: True, eager=False)
    assert due == ([found] if came_bytes >= 2000 else [])
    bench.growing.stop()
