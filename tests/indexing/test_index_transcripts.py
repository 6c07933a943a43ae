import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ParamSpec, TypeVar

import pytest

from memd.chunk.turns import ChunkedTurns, chunk_turns
from memd.domain_types import Kind, Turn
from memd.indexing import index_transcripts as applying
from memd.indexing.index_transcripts import apply_sessions, place_of, read_and_cut_session
from memd.runtime.threads import Threads
from memd.sources.safe_open import FileMissing, FileUnreadable
from memd.sources.scan import scan
from memd.sources.transcripts.format import SessionFacts
from memd.sources.transcripts.read_position import ReadProgress, mark_of
from memd.store.index import Index
from tests.fakes.homes import ClaudeCode, ClaudeCodeSession, Gemini, GeminiSession
from tests.indexing.transcribed import REDACTOR, apply, held, opened, rules, shelf
from tests.sources.transcripts.transcripts import append, replace, said
from tests.store.conftest import ranked

P = ParamSpec("P")
T = TypeVar("T")

AT = 1_772_442_000.0


class Talk:
    """Says something now and then, of all lengths, in a transcript of one kind or the other."""

    def __init__(self, session: ClaudeCodeSession | GeminiSession, rng: Random) -> None:
        self._session = session
        self._rng = rng
        self._at = AT

    def go_on(self) -> None:
        """One or more turns, or some are taken back."""
        turns = len(self._session.turns)
        if isinstance(self._session, GeminiSession) and turns > 2 and self._rng.random() < 0.25:
            users = sum(turn.role == "user" for turn in self._session.turns)
            self._session.rewind(self._rng.randint(1, max(1, users // 3)), self._later())
            return
        for _ in range(self._rng.choice((1, 1, 1, 2, 5))):
            self._session.user(self._text(), self._later())
            if self._rng.random() < 0.8:
                self._session.assistant(self._text(), at=self._later())
            if self._rng.random() < 0.3:
                self._session.tool("ls", {"path": "."}, "a\nb", self._later())

    def _later(self) -> float:
        self._at += self._rng.choice((1.0, 60.0, 40_000.0))
        return self._at

    def _text(self) -> str:
        words = self._rng.choices(
            ("walrus", "token:", "ghp_" + "a1B2" * 9, "database", "苹果", "so", "on"), k=4
        )
        return " ".join(words * self._rng.choice((1, 1, 3, 40))) + f" {self._at:.0f}"


@pytest.mark.parametrize("seed", range(6))
async def test_what_grew_step_by_step_equals_what_is_read_at_once(tmp_path: Path, seed: int) -> None:
    """Chunks, turns, their lines and what was counted: however often a transcript was read in between."""
    rng = Random(seed)
    here, home = tmp_path / "here", tmp_path / "home"
    sessions: list[ClaudeCodeSession | GeminiSession] = [
        ClaudeCode(home).session(at=AT),
        Gemini(home).session(at=AT),
    ]
    talks = [Talk(session, rng) for session in sessions]
    how = rules(shelf(here))
    for session in sessions:
        os.link(session.path, here / session.path.name)
    async with opened(tmp_path / "grown.sqlite") as index, opened(tmp_path / "fresh.sqlite") as fresh:
        for _ in range(12):
            rng.choice(talks).go_on()
            if rng.random() < 0.7:
                await apply(index, how)
        applied = await apply(index, how)
        assert not applied.failed
        await apply(fresh, how)
        assert held(tmp_path / "grown.sqlite") == held(tmp_path / "fresh.sqlite")
        turns = [
            [(turn.role, turn.at) for turn in await index.turns(f"sessions/here/{session.path.name}")]
            for session in sessions
        ]
    assert turns == [[(turn.role, turn.at) for turn in session.turns] for session in sessions]


@pytest.mark.parametrize("seed", range(4))
async def test_turns_that_are_taken_back_one_by_one_leave_the_chunks_of_a_first_reading(
    tmp_path: Path, seed: int
) -> None:
    """A chunk that ended because a turn did not fit goes on where another, shorter one takes its place."""
    rng = Random(seed)
    here = tmp_path / "here"
    session = Gemini(tmp_path / "home").session(at=AT)
    how = rules(shelf(here))
    os.link(session.path, here / session.path.name)
    async with opened(tmp_path / "grown.sqlite") as index, opened(tmp_path / "fresh.sqlite") as fresh:
        for number in range(40):
            if len(session.turns) > 3 and rng.random() < 0.45:
                session.rewind(1, AT + number)
            else:
                session.user(f"walrus {number} " * rng.choice((1, 2, 5, 9)), AT + number)
            await apply(index, how)
            await fresh.remove([f"sessions/here/{session.path.name}"])
            await apply(fresh, how)
            assert held(tmp_path / "grown.sqlite") == held(tmp_path / "fresh.sqlite")


async def test_one_more_turn_costs_the_last_chunks_alone(tmp_path: Path) -> None:
    """What was said long before keeps its chunks."""
    how = rules(shelf(tmp_path / "here"))
    file = tmp_path / "here" / "a.jsonl"
    append(
        file,
        *(said(f"turn {number} of the walrus talk, with some more words to it") for number in range(300)),
    )
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        before = await ids(index)
        append(file, said("and one more"))
        assert (await apply(index, how)).changed == 1
        after = await ids(index)
    assert len(before) > 60
    assert len(before - after) <= 2
    assert len(after - before) <= 3


async def test_one_more_turn_has_little_cut_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the talk is: from where the last chunks begin; all of it where what places it has changed."""
    how, file, cut_turns = rules(shelf(tmp_path / "here")), tmp_path / "here" / "a.jsonl", list[int]()
    real = chunk_turns

    def counted(turns: Sequence[Turn], *args: Any, **kwargs: Any) -> ChunkedTurns:
        cut_turns.append(len(turns))
        return real(turns, *args, **kwargs)

    monkeypatch.setattr(applying, "chunk_turns", counted)
    append(file, *(said(f"turn {number} of the walrus talk, with more words to it") for number in range(100)))
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        append(file, said("and one more"))
        await apply(index, how)
    assert cut_turns[0] == 100
    assert cut_turns[1] < 20


async def ids(index: Index) -> set[int]:
    return set(dict(await ranked(index, "walrus OR more", 10_000, frozenset(Kind))))


async def test_what_is_the_same_changes_nothing_but_the_stamp(tmp_path: Path) -> None:
    """A transcript that was only touched keeps its chunks, and its new time is remembered."""
    how = rules(shelf(tmp_path / "here"))
    file = tmp_path / "here" / "a.jsonl"
    append(file, said("apples"))
    os.utime(file, ns=(1, 1))
    async with opened(tmp_path / "x.sqlite") as index:
        assert (await apply(index, how)).changed == 1
        before = held(tmp_path / "x.sqlite")
        os.utime(file, ns=(5, 5))
        await asyncio.sleep(0.05)  # until the time of change is no longer that of a write that may go on
        applied = await apply(index, how)
        assert (applied.taken, applied.changed) == (frozenset({"sessions/here/a.jsonl"}), 0)
        assert (await index.known())["sessions/here/a.jsonl"].stamp.mtime_ns == 5
        assert held(tmp_path / "x.sqlite") == before


async def test_force_reads_what_nothing_tells_to_have_changed(tmp_path: Path) -> None:
    """A word in the middle of a long transcript was changed for one as long; where nothing was, nothing is written."""
    how = rules(shelf(tmp_path / "here"))
    file = tmp_path / "here" / "a.jsonl"
    append(file, *(said(f"about the walrus {number}, " + "and so on " * 20) for number in range(100)))
    os.utime(file, ns=(1, 1))
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        assert (await apply(index, how, force=True)).changed == 0
        edited(file, b"walrus 50,", b"wombat 50,")
        os.utime(file, ns=(1, 1))
        assert (await apply(index, how)).changed == 0
        assert (await apply(index, how, force=True)).changed == 1
        assert "wombat 50" in (await index.turns("sessions/here/a.jsonl"))[50].text
    async with opened(tmp_path / "fresh.sqlite") as index:
        await apply(index, how)
    assert held(tmp_path / "x.sqlite") == held(tmp_path / "fresh.sqlite")


async def test_force_takes_in_what_is_new_or_has_grown(tmp_path: Path) -> None:
    """Only what the index holds just as it is read is left alone."""
    how = rules(shelf(tmp_path / "here"))
    files = [tmp_path / "here" / name for name in ("a.jsonl", "b.jsonl")]
    async with opened(tmp_path / "x.sqlite") as index:
        for new, file in enumerate(files):
            append(files[0], said(f"about the walrus {new}"))
            append(file, said(f"about the wombat {new}"))
            assert (await apply(index, how, force=True)).changed == 1 + new
            assert (await apply(index, how, force=True)).changed == 0
        texts = [[turn.text for turn in await index.turns(f"sessions/here/{file.name}")] for file in files]
    assert texts == [
        ["about the walrus 0", "about the wombat 0", "about the walrus 1"],
        ["about the wombat 1"],
    ]


def edited(file: Path, old: bytes, new: bytes) -> None:
    """Write other bytes over some, in the same file."""
    with file.open("r+b") as stream:
        stream.seek(stream.read().index(old))
        stream.write(new)


async def test_another_file_in_its_place_replaces_all_of_it(tmp_path: Path) -> None:
    """Nothing of what was cut or rewritten is left."""
    how = rules(shelf(tmp_path / "here"))
    file = tmp_path / "here" / "a.jsonl"
    append(file, *(said(f"apples {number}") for number in range(50)))
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        with file.open("r+b") as stream:
            stream.truncate(len(said("apples 0")))
        await apply(index, how)
        assert [turn.text for turn in await index.turns("sessions/here/a.jsonl")] == ["apples 0"]
        replace(file, said("pears") + said("plums"))
        await apply(index, how)
        assert [turn.text for turn in await index.turns("sessions/here/a.jsonl")] == ["pears", "plums"]
        assert "apples" not in str(held(tmp_path / "x.sqlite"))


async def test_a_place_that_is_learnt_late_is_in_every_chunk(tmp_path: Path) -> None:
    """The project of a session is told by any of its lines; chunks from before get it, too."""
    here = tmp_path / "here"
    how = rules(shelf(here))
    file = here / "a.jsonl"
    line = (
        '{"type":"user","uuid":"%s","sessionId":"s","timestamp":"2026-03-02T09:00:00Z"%s,'
        '"message":{"role":"user","content":"about the walrus"}}\n'
    )
    file.write_text(line % ("1", ""))
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        assert [row[5].split("\n")[0] for row in held(tmp_path / "x.sqlite")["chunks"]] != []
        append(file, (line % ("2", ',"cwd":"/home/li/aquarium"')).encode())
        await apply(index, how)
        contexts = [row[5] for row in held(tmp_path / "x.sqlite")["chunks"]]
    assert contexts
    assert all("Claude Code session in aquarium" in context for context in contexts)


@pytest.mark.parametrize(
    ("format_name", "cwd", "place"),
    [
        ("claude-code", "/home/me/app", "Claude Code session in app"),
        ("codex", "/home/me/app/", "Codex session in app"),
        ("gemini", None, "Gemini session"),
        ("openclaw", "C:\\Users\\me\\notes", "OpenClaw session in notes"),
        ("plain", None, "Session"),
        ("plain", "/", "Session"),
        (None, "/home/me/app", "Session in app"),
    ],
)
def test_a_session_is_placed_by_agent_and_project(
    format_name: str | None, cwd: str | None, place: str
) -> None:
    """As people would say where it was."""
    progress = ReadProgress(
        inode=1, mark=mark_of(0, b"", b""), format=format_name, learnt=SessionFacts(cwd=cwd)
    )
    assert place_of(progress) == place


def found_in(directory: Path, text: str) -> list[str]:
    """The index files that hold a text."""
    return [file.name for file in directory.glob("x.sqlite*") if text.encode() in file.read_bytes()]


async def test_a_secret_is_nowhere_in_the_index(tmp_path: Path) -> None:
    """Neither in what was said nor in the name of the project."""
    here, token = tmp_path / "here", "ghp_" + "a1B2" * 9
    how = rules(shelf(here))
    session = ClaudeCode(tmp_path / "home").session(f"/home/li/{token}", at=AT)
    session.user(f"take {token} for it", AT + 1)
    (here / "a.jsonl").write_bytes(session.path.read_bytes())
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        rows = str(held(tmp_path / "x.sqlite"))
        assert (await index.tallies())["redacted.github-token"] == 2
    assert "[REDACTED:github-token]" in rows
    assert not found_in(tmp_path, token)


async def test_those_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    """One that went, and one that is damaged; the others are taken in."""
    here = tmp_path / "here"
    how = rules(shelf(here))
    for name in ("gone.jsonl", "kept.jsonl"):
        append(here / name, said(name))
    (here / "broken.jsonl.zst").write_bytes(b"no zstd")
    listed = list(scan(how.roots, max_bytes=1).found.values())
    (here / "gone.jsonl").unlink()
    async with opened(tmp_path / "x.sqlite") as index:
        applied = await apply_sessions(index, listed, rules=how, vectors=None, threads=Threads(1, "reading"))
    assert applied.taken == {"sessions/here/kept.jsonl"}
    assert applied.failed.keys() == {"sessions/here/gone.jsonl", "sessions/here/broken.jsonl"}
    assert isinstance(applied.failed["sessions/here/gone.jsonl"], FileMissing)
    assert isinstance(applied.failed["sessions/here/broken.jsonl"], FileUnreadable)


class Overtaken(Threads):
    """Lets somebody else do something when the first work is done."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(1, "overtaken")
        self._meanwhile: Callable[[], Awaitable[None]] | None = meanwhile

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        done = await super().run(fn, *args, **kwargs)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return done


async def test_a_reading_that_somebody_else_overtook_is_told(tmp_path: Path) -> None:
    """What goes on from a state that the index has left is not written; another reading puts it right."""
    how = rules(shelf(tmp_path / "here"))
    file = tmp_path / "here" / "a.jsonl"
    append(file, said("one"))
    async with opened(tmp_path / "x.sqlite") as index:
        await apply(index, how)
        append(file, said("two"))

        async def overtake() -> None:
            append(file, said("three"))
            await apply(index, how)

        found = list(scan(how.roots, max_bytes=1).found.values())
        applied = await apply_sessions(index, found, rules=how, vectors=None, threads=Overtaken(overtake))
        assert (applied.taken, applied.changed) == (frozenset(), 0)
        assert applied.stale == {"sessions/here/a.jsonl"}
        await apply(index, how)
        assert [turn.text for turn in await index.turns("sessions/here/a.jsonl")] == ["one", "two", "three"]


def test_a_dry_run_cuts_what_an_index_would_hold(tmp_path: Path) -> None:
    """All of it, redacted."""
    how = rules(shelf(tmp_path / "here"))
    append(tmp_path / "here" / "a.jsonl", said("the password is hunter2secretX9"), said("and so on"))
    [found] = scan(how.roots, max_bytes=1).found.values()
    cut = read_and_cut_session(found, how)
    assert [chunk.text for chunk in cut.chunks] == [
        "User: the password is [REDACTED:password]\nUser: and so on"
    ]
    assert REDACTOR.redact(cut.chunks[0].text).counts == {}
    assert [chunk.turn for chunk in cut.chunks] == [0]
