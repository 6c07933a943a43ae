"""What happened in a session of each agent is what its transcript is read as."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memd.sources.transcripts.format import UnparsedLine
from memd.sources.transcripts.parser import format_of
from memd.sources.transcripts.turn_builder import TurnBuilder, UnresolvedReference
from tests.fakes.homes import ClaudeCode, Codex, Gemini, OpenClaw, Spoken

DAY = 1_773_100_800.0


class Told(msgspec.Struct):
    """A transcript, and what was said in it."""

    path: Path
    turns: list[Spoken]
    format: str
    subagent: bool | None = None


def claude_code(home: Path) -> Told:
    session = ClaudeCode(home).session(at=DAY)
    session.user("why did we drop MySQL?", DAY + 1)
    session.tool("Grep", {"pattern": "mysql"}, "docs/db.md: MySQL was dropped", DAY + 2)
    session.assistant("Because of JSONB.", "And because of 分区表.", at=DAY + 3)
    session.command("clear", "cleared", DAY + 4)
    session.subagent("count the tables", "There are nine.", DAY + 5)
    session.compact("MySQL was dropped.", DAY + 6)
    session.user("see the picture", DAY + 7, image=True)
    session.interrupt(DAY + 8)
    session.assistant("I see.", at=DAY + 9)
    return Told(session.path, session.turns, "claude-code")


def claude_code_subagent(home: Path) -> Told:
    session = ClaudeCode(home).session(at=DAY).subagent("count the tables", "There are nine.", DAY + 5)
    return Told(session.path, session.turns, "claude-code", subagent=True)


def codex(home: Path, logs: str = "both") -> Told:
    session = Codex(home).session(at=DAY, logs=logs)
    session.user("reduce 429s", DAY + 1)
    session.tool("exec_command", {"cmd": ["rg", "429"]}, "client.py: 429", DAY + 2)
    session.assistant("Backoff only.", DAY + 3)
    session.user("yes", DAY + 4)
    session.assistant("Done.", DAY + 5)
    session.compact("Backoff was added.", DAY + 6)
    session.user("yes", DAY + 7)
    session.assistant("Done.", DAY + 8)
    session.user("no, back", DAY + 9)
    session.roll_back(2, DAY + 10)
    session.user("重试三次", DAY + 11)
    return Told(session.path, session.turns, "codex")


def codex_sent(home: Path) -> Told:
    return codex(home, "sent")


def codex_shown(home: Path) -> Told:
    return codex(home, "shown")


def codex_subagent(home: Path) -> Told:
    agent = Codex(home)
    session = agent.session(at=DAY, parent=agent.session(at=DAY))
    session.user("look for 429", DAY + 1)
    session.assistant("It is in client.py.", DAY + 2)
    return Told(session.path, session.turns, "codex", subagent=True)


def gemini(home: Path) -> Told:
    session = Gemini(home).session(at=DAY)
    session.user("hello", DAY + 1)
    session.info("Update available", DAY + 2)
    session.assistant("Hello, what is to be done?", DAY + 3)
    session.user("a mistake", DAY + 4)
    session.tool("read_file", {"path": "a.py"}, "x = 1", DAY + 5)
    session.assistant("That is a mistake.", DAY + 6)
    session.rewind(1, DAY + 7)
    session.user("读一下 a.py", DAY + 8)
    session.assistant("It sets x.", DAY + 9)
    session.compact("x is set.", DAY + 10)
    session.user("thanks", DAY + 11)
    return Told(session.path, session.turns, "gemini")


def gemini_rewritten(home: Path) -> Told:
    session = Gemini(home).session(at=DAY)
    session.user("hello", DAY + 1)
    session.assistant("Hello!", DAY + 2)
    session.rewrite()
    session.user("on with it", DAY + 3)
    return Told(session.path, session.turns, "gemini")


def gemini_subagent(home: Path) -> Told:
    agent = Gemini(home)
    session = agent.session(at=DAY, parent=agent.session(at=DAY))
    session.user("look", DAY + 1)
    return Told(session.path, session.turns, "gemini", subagent=True)


def openclaw(home: Path) -> Told:
    session = OpenClaw(home).session(at=DAY)
    session.user("我们选了哪个数据库?", DAY + 1)
    session.tool("memory_search", {"query": "database"}, "PostgreSQL", DAY + 2)
    session.assistant("PostgreSQL,因为 JSONB。", DAY + 3)
    session.user("and the cache?", DAY + 4)
    session.assistant("Redis.", DAY + 5)
    session.user("are you sure?", DAY + 6)
    session.branch(2, DAY + 7)
    session.user("which port?", DAY + 8)
    session.flush(DAY + 9)
    session.compact("A database was picked.", DAY + 10)
    session.assistant("5432.", DAY + 11)
    session.reset(DAY + 12)
    return Told(session.path, session.turns, "openclaw")


HAPPENED = [
    claude_code,
    claude_code_subagent,
    codex,
    codex_sent,
    codex_shown,
    codex_subagent,
    gemini,
    gemini_rewritten,
    gemini_subagent,
    openclaw,
]


@pytest.mark.parametrize("happened", HAPPENED)
def test_a_session_is_read_as_it_happened(happened: Callable[[Path], Told], tmp_path: Path) -> None:
    """Every turn is found, with its speaker and time, and nothing that nobody said."""
    told = happened(tmp_path)
    lines = told.path.read_bytes().splitlines(keepends=True)
    found = format_of(lines)
    assert found is not None
    assert found.name == told.format
    state, builder = found.State(), TurnBuilder()
    for number, line in enumerate(lines, 1):
        for event in found.parse(line, state):
            assert not isinstance(event, UnparsedLine), line
            builder.take(number, event)
    assert [Spoken(turn.role, turn.text, turn.at or 0) for turn in builder.turns] == told.turns
    assert told.turns
    assert builder.learnt.subagent == told.subagent
    assert builder.learnt.session_id
    assert DAY <= (builder.learnt.started_at or 0) <= DAY + 5
    ids = [turn.id for turn in builder.turns if turn.id]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("happened", HAPPENED)
def test_a_session_can_be_read_in_parts(happened: Callable[[Path], Told], tmp_path: Path) -> None:
    """Wherever an earlier reading ended, going on ends where a reading of all does, or says that it cannot."""
    lines = happened(tmp_path).path.read_bytes().splitlines(keepends=True)
    found = format_of(lines)
    assert found is not None
    whole, followed = _read(found, lines, found.State(), 0, TurnBuilder()), 0
    for cut in range(1, len(lines)):
        state = found.State()
        first = _read(found, lines[:cut], state, 0, TurnBuilder())
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=found.State)
        known = first.turns
        second = TurnBuilder(len(known), known[-1] if known else None, first.learnt)
        try:
            _read(found, lines[cut:], again, cut, second)
        except UnresolvedReference:
            continue
        followed += 1
        assert known[: second.turns_from] + second.turns == whole.turns, cut
        assert second.learnt == whole.learnt
    assert followed >= len(lines) // 4


def _read(found: object, lines: list[bytes], state: object, after: int, builder: TurnBuilder) -> TurnBuilder:
    for number, line in enumerate(lines, after + 1):
        for event in found.parse(line, state):  # type: ignore[attr-defined]
            builder.take(number, event)
    return builder
