"""What the names of an agent's files tell."""

import pytest

from memd.text.transcript_files import (
    Layout,
    descends,
    entry,
    first_is_free,
    is_database,
    is_database_log,
    transcript,
)
from tests.table import table

UUID = "019dec85-7a1c-7d2e-9f00-0123456789ab"
OTHER = "3f2a9d10-1111-4222-8333-444455556666"


@table(
    ("layout", "path", "name"),
    [
        ("openclaw", f"main/sessions/{UUID}.jsonl", UUID),
        ("openclaw", f"main/sessions/{UUID}-topic-42.jsonl", f"{UUID}-topic-42"),
        ("openclaw", f"main/sessions/{UUID}.jsonl.reset.2026-03-02T01-02-03.000Z", UUID),
        ("openclaw", f"main/sessions/{UUID}.jsonl.reset.2026-03-02T01-02-03.000Z.zst", UUID),
        ("openclaw", f"main/sessions/{UUID}.jsonl.reset.1772413329120", UUID),
        ("openclaw", f"main/sessions/cold/{UUID}.jsonl.zst", UUID),
        ("openclaw", f"work/sessions/{UUID}.jsonl", UUID),
        ("openclaw", "main/sessions/daily.jsonl", "daily"),
        ("openclaw", "work/sessions/daily.jsonl", "work/daily"),
        ("pi", f"--home-li-app--/2026-03-02T01-02-03_{UUID}.jsonl", f"2026-03-02T01-02-03_{UUID}"),
        ("claude-code", f"-home-li-app/{UUID}.jsonl", UUID),
        ("claude-code", f"-home-li-app/{UUID}.jsonl.zst", UUID),
        ("codex", f"2026/03/02/rollout-2026-03-02T01-02-03-{UUID}.jsonl", f"rollout-2026-03-02T01-02-03-{UUID}"),
        ("codex", f"2026/03/02/rollout-2026-03-02T01-02-03-{UUID}.jsonl.zst", f"rollout-2026-03-02T01-02-03-{UUID}"),
        ("codex", f"rollout-2026-03-02T01-02-03-{UUID}.jsonl", f"rollout-2026-03-02T01-02-03-{UUID}"),
        ("qwen", f"-home-li-p/chats/{UUID}.jsonl", UUID),
        ("gemini", "9f86d081/chats/session-2026-01-21T10-00-a1b2c3d4.json", "session-2026-01-21T10-00-a1b2c3d4"),
        ("copilot", f"{UUID}/events.jsonl", UUID),
        ("copilot", f"{UUID}.jsonl", UUID),
        ("gemini", "9f86d081/chats/session-2026-08-21T10-00-a1b2c3d4.jsonl", "session-2026-08-21T10-00-a1b2c3d4"),
        ("plain", "a.jsonl", "a"),
        ("plain", "journal.jsonl", "journal"),
        ("plain", "deep/er/聊天 1.jsonl", "deep/er/聊天 1"),
    ],
)  # fmt: skip
def test_a_transcript_is_told_by_its_place(layout: Layout, path: str, name: str) -> None:
    """Its id is the same wherever the file is moved to, and however it is packed."""
    session = transcript(layout, tuple(path.split("/")))
    assert session is not None
    assert session.id == name
    assert not session.subagent


@table(
    ("layout", "path"),
    [
        ("openclaw", "main/sessions/sessions.json"),
        ("openclaw", f"main/sessions/{UUID}.jsonl.lock"),
        ("openclaw", f"main/sessions/{UUID}.jsonl.deleted.2026-03-02T01-02-03.000Z"),
        ("openclaw", f"main/sessions/{UUID}.jsonl.reset.2026-03-02T01-02-03.000Z.tmp"),
        ("openclaw", f"main/sessions/{UUID}.jsonl.reset."),
        ("openclaw", f"main/sessions/{UUID}.checkpoint.{OTHER}.jsonl"),
        ("openclaw", f"main/sessions/{UUID}.trajectory.jsonl"),
        ("openclaw", f"main/sessions/{UUID}.trajectory-path.json"),
        ("openclaw", f"main/sessions/{UUID}.jsonl.bak"),
        ("openclaw", f"main/agent/{UUID}.jsonl"),
        ("openclaw", f"main/sessions/old/{UUID}.jsonl"),
        ("openclaw", f"{UUID}.jsonl"),
        ("pi", f"a/b/{UUID}.jsonl"),
        ("claude-code", f"-home-li-app/{UUID}/tool-results/x.jsonl"),
        ("claude-code", f"-home-li-app/{UUID}/subagents/journal.jsonl"),
        ("claude-code", f"-home-li-app/{UUID}/subagents/{OTHER}.jsonl"),
        ("claude-code", "-home-li-app/journal.jsonl"),
        ("claude-code", f"-home-li-app/{UUID}/{OTHER}.jsonl"),
        ("claude-code", "history.jsonl"),
        ("claude-code", f"-home-li-app/{UUID}.jsonl.tmp"),
        ("claude-code", f"-home-li-app/.{UUID}.jsonl"),
        ("codex", "2026/03/02/history.jsonl"),
        ("codex", f"2026/03/rollout-2026-03-02T01-02-03-{UUID}.jsonl"),
        ("codex", f"a/b/c/rollout-2026-03-02T01-02-03-{UUID}.jsonl"),
        ("gemini", "9f86d081/chats/notes.json"),
        ("gemini", "9f86d081/logs.json"),
        ("qwen", f"-home-li-p/chats/session-{UUID}.json"),
        ("gemini", "9f86d081/chats/session-2026-08-21T10-00-a1b2c3d4.jsonl.tmp-4711"),
        ("gemini", "9f86d081/chats/session-2026-08-21T10-00-a1b2c3d4.jsonl.unreadable-1787300000000"),
        ("gemini", "9f86d081/logs.jsonl"),
        ("qwen", "-home-li-p/usage.jsonl"),
        ("qwen", f"-home-li-p/subagents/{UUID}/agent-1.jsonl"),
        ("copilot", f"{UUID}/rewind-file-snapshots/events.jsonl"),
        ("copilot", f"{UUID}/other.jsonl"),
        ("opencode", "x.jsonl"),
        ("opencode", "opencode.db"),
        ("plain", "a.json"),
        ("plain", ".jsonl"),
        ("plain", "x.trajectory.jsonl"),
        ("plain", "x/subagents/journal.jsonl"),
        ("plain", "notes.md"),
    ],
)  # fmt: skip
def test_what_is_no_transcript(layout: Layout, path: str) -> None:
    """Locks, checkpoints, sidecars, temporary files, and what was deleted."""
    assert transcript(layout, tuple(path.split("/"))) is None


def test_a_root_is_no_transcript() -> None:
    """A place without a name is a directory."""
    assert transcript("plain", ()) is None


@pytest.mark.parametrize(
    ("layout", "path", "name"),
    [
        ("claude-code", f"-home-li-app/{UUID}/subagents/agent-a1b2.jsonl", f"{UUID}/agent-a1b2"),
        ("claude-code", "-home-li-app/agent-a1b2.jsonl", "agent-a1b2"),
        ("gemini", f"9f86d081/chats/{UUID}/{OTHER}.jsonl", f"{UUID}/{OTHER}"),
        ("plain", "x/subagents/a.jsonl", "x/subagents/a"),
    ],
)
def test_subagents_are_told_by_their_place(layout: Layout, path: str, name: str) -> None:
    """They belong to the session that they worked for."""
    session = transcript(layout, tuple(path.split("/")))
    assert session is not None
    assert (session.id, session.subagent) == (name, True)


def test_an_older_file_of_gemini_goes_behind_a_newer_one() -> None:
    """Gemini CLI has gone on in that."""
    place = ("9f86d081", "chats")
    old, new = (transcript("gemini", (*place, f"session-1.{suffix}")) for suffix in ("json", "jsonl"))
    assert old is not None
    assert new is not None
    assert (old.id, new.id) == ("session-1", "session-1")
    assert (old.archived, new.archived) == (True, False)


def test_what_goes_before_what() -> None:
    """A file says whether it is archived, compressed, or not in the directory of its day."""
    reset = transcript("openclaw", ("main", "sessions", f"{UUID}.jsonl.reset.2026-03-02T01-02-03Z.zst"))
    cold = transcript("openclaw", ("main", "sessions", "cold", f"{UUID}.jsonl.zst"))
    here = transcript("codex", ("2026", "03", "02", f"rollout-2026-03-02T01-02-03-{UUID}.jsonl"))
    there = transcript("codex", ("2026", "03", "03", f"rollout-2026-03-02T01-02-03-{UUID}.jsonl.zst"))
    assert reset
    assert cold
    assert here
    assert there
    assert (reset.archived, reset.compressed, reset.reset) == (True, True, "2026-03-02T01-02-03Z")
    assert (cold.archived, cold.compressed, cold.reset) == (True, True, "")
    assert (here.archived, here.compressed, here.elsewhere) == (False, False, False)
    assert (there.archived, there.compressed, there.elsewhere) == (False, True, True)


@table(
    ("layout", "path", "plainly", "with_subagents"),
    [
        ("openclaw", "main", True, True),
        ("openclaw", "main/sessions", True, True),
        ("openclaw", "main/agent", True, True),
        ("openclaw", "main/agent/cold", False, False),
        ("openclaw", "main/sessions/cold", True, True),
        ("openclaw", "main/sessions/other", False, False),
        ("pi", "--home-li--", True, True),
        ("pi", "--home-li--/x", False, False),
        ("claude-code", "-home-li-app", True, True),
        ("claude-code", f"-home-li-app/{UUID}", False, True),
        ("claude-code", f"-home-li-app/{UUID}/subagents", False, True),
        ("claude-code", f"-home-li-app/{UUID}/tool-results", False, False),
        ("codex", "2026", True, True),
        ("codex", "2026/03/02", True, True),
        ("codex", "2026/03/02/1", False, False),
        ("codex", "backup", False, False),
        ("gemini", "9f86d081", True, True),
        ("qwen", "-home-li-p", True, True),
        ("copilot", UUID, True, True),
        ("copilot", f"{UUID}/checkpoints", False, False),
        ("opencode", "storage", False, False),
        ("qwen", "-home-li-p/chats", True, True),
        ("qwen", "-home-li-p/subagents", False, False),
        ("gemini", "9f86d081/chats", True, True),
        ("gemini", "9f86d081/checkpoints", False, False),
        ("gemini", f"9f86d081/chats/{UUID}", False, True),
        ("plain", "anything", True, True),
        ("plain", "x/subagents", False, True),
        ("plain", "x/tool-results", False, False),
    ],
)
def test_which_directories_are_entered(
    layout: Layout, path: str, plainly: bool, with_subagents: bool
) -> None:
    """Only those that can hold transcripts: each costs a watch."""
    parts = tuple(path.split("/"))
    assert descends(layout, parts, subagents=False) is plainly
    assert descends(layout, parts, subagents=True) is with_subagents


@pytest.mark.parametrize(
    ("layout", "path", "found"),
    [
        ("plain", "conversations.json", True),
        ("plain", "a/conversations-003.json", True),
        ("plain", "shared_conversations.json", False),
        ("gemini", "conversations.json", False),
        ("openclaw", "main/agent/openclaw-agent.sqlite", True),
        ("openclaw", "openclaw-agent.sqlite", False),
        ("opencode", "opencode.db", True),
        ("opencode", "opencode-beta.db", True),
        ("opencode", "storage/opencode.db", False),
        ("opencode", "opencode.db-wal", False),
        ("opencode", "other.db", False),
        ("plain", "opencode.db", False),
    ],
)
def test_which_files_are_databases(layout: Layout, path: str, found: bool) -> None:
    """With their logs; their sessions have names of their own."""
    parts = tuple(path.split("/"))
    assert is_database(layout, parts) is found
    assert is_database_log(layout, (*parts[:-1], f"{parts[-1]}-wal")) is (found and layout != "plain")
    session = entry(layout, parts, UUID)
    assert (session is not None and session.id == UUID) is found
    assert entry(layout, parts, "../x") is None
    assert entry(layout, parts, ".x") is None


def test_whose_copies_may_lie_anywhere() -> None:
    """A session of Claude Code may be in the directory of any project, one of Codex only in that of its day."""
    assert first_is_free("claude-code", ("-a", f"{UUID}.jsonl"))
    assert first_is_free("gemini", ("9f", "chats", "s.jsonl"))
    assert not first_is_free("codex", ("2026", "03", "02", "x.jsonl"))
    assert not first_is_free("plain", ("a", "x.jsonl"))
    assert not first_is_free("pi", ("x.jsonl",))
