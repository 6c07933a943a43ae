"""What the roots of an agent are like on the disk."""

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.inspection.probe import Disk, InspectedDatabase, PresetNotes, RootsScan
from memd.inspection.roots import disk_of, look_at_roots
from tests.bounds import shipped
from tests.otheruser import as_other_user, shared_directory
from tests.sources.homes import write_homes
from tests.sources.transcripts.openclaw_store import OpenClawStore
from tests.sources.transcripts.opencode_store import OpenCodeStore

_NOW = 1_700_000_000.0


def _look(workspace: Path, *extra: Path, **settings: Any) -> RootsScan:
    wanted = AgentSettings(workspace=workspace, extra_paths=extra, **settings)
    *_, scan = look_at_roots("main", wanted, _NOW, workspace.parent / "state")
    assert isinstance(scan, RootsScan)
    return scan


def _note(file: Path, at: float = _NOW - 100) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x", encoding="utf-8")
    os.utime(file, (at, at))
    return file


def test_notes_are_counted_as_a_scan_finds_them(tmp_path: Path) -> None:
    """With the directories that are to be watched, and what was left out by its reason."""
    ws = tmp_path / "ws"
    for name in ("MEMORY.md", "memory/a.md", "memory/deep/b.md", "README.md", "memory/c.txt"):
        _note(ws / name)
    (ws / "memory" / "link.md").symlink_to(ws / "MEMORY.md")
    for size in (1_000_000, 1_000_001):
        os.truncate(_note(ws / "memory" / f"{size}.md"), size)
    scan = _look(ws, _note(tmp_path / "more" / "d.md").parent, max_file_mb=1)
    assert (scan.notes, scan.skipped) == (5, {"symlink": 1, "too large": 1})
    assert scan.directories == 4  # the workspace, memory/, deep/ and more/
    assert [(root.is_workspace, root.fault) for root in scan.roots] == [(True, None), (False, None)]
    assert len(_look(ws, ws).roots) == 1


def test_a_database_of_transcripts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is in it, whether its program has it open, or why it cannot be read."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "claw"))
    file = tmp_path / "claw/agents/main/agent/openclaw-agent.sqlite"
    store = OpenClawStore(file)
    store.start("one")
    store.start("two", "agent:main:telegram:group:-1", chat_type="group")
    store.start("three", "agent:main:subagent:1")
    wanted: dict[str, Any] = {
        "sources": ("memory", "sessions"),
        "sessions": SessionSettings(presets=("openclaw",)),
    }
    told = _look(tmp_path / "ws", **wanted)
    assert told.transcripts == 2
    expected = InspectedDatabase(file=str(file), version=23, is_open=True, sessions=3, shared=1, subagents=1)
    assert told.databases == (expected,)
    store.close()
    assert _look(tmp_path / "ws", **wanted).databases[0].is_open is False
    file.write_bytes(b"no database, whatever its name says" * 100)
    [faulty] = _look(tmp_path / "ws", **wanted).databases
    assert faulty.fault == "not a sound SQLite database"
    assert (faulty.version, faulty.is_open) == (0, False)
    assert (faulty.sessions, faulty.shared, faulty.subagents) == (0, 0, 0)
    assert _look(tmp_path / "ws").databases == ()


def test_a_database_of_opencode_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no version of its tables."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = OpenCodeStore(tmp_path / "opencode/opencode.db")
    store.start("ses_1")
    store.say("ses_1", "first")
    sessions = SessionSettings(presets=("opencode",))
    told = _look(tmp_path / "ws", sources=("memory", "sessions"), sessions=sessions)
    store.close()
    expected = InspectedDatabase(
        file=str(store.file), version=0, is_open=True, sessions=1, shared=0, subagents=0
    )
    assert told.databases == (expected,)


def test_what_memd_keeps_is_not_counted(tmp_path: Path) -> None:
    """The daemon does not read it either: copies for qmd, among the notes of an extra path above it."""
    _note(tmp_path / "state" / "agents" / "main.qmd" / "notes" / "a.md")
    _note(tmp_path / "b.md")
    scan = _look(tmp_path / "ws", tmp_path, memory_presets=("codex",))
    assert (scan.notes, scan.unreadable_count, scan.directories) == (1, 0, 1)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("missing", "does not exist"),
        ("file", "is not a directory"),
        ("dangling", "is a symlink that leads nowhere"),
        ("loop", "cannot be reached: "),
    ],
)
def test_a_workspace_that_cannot_be_read_is_told(tmp_path: Path, kind: str, fault: str) -> None:
    """By what is there instead."""
    place = tmp_path / "ws"
    if kind == "file":
        place.touch()
    elif kind != "missing":
        place.symlink_to(place if kind == "loop" else tmp_path / "nowhere")
    assert str(_look(place).roots[0].fault).startswith(fault)


def test_a_symlink_tells_where_it_leads(tmp_path: Path) -> None:
    """A configured path may be one."""
    _note(tmp_path / "real" / "MEMORY.md")
    (tmp_path / "ws").symlink_to(tmp_path / "real")
    [root] = _look(tmp_path / "ws").roots
    assert (root.path, root.resolved) == (str(tmp_path / "ws"), str(tmp_path / "real"))


def test_a_network_file_system_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its type, as programs on other machines can change files there without an event."""
    vault = tmp_path.resolve() / "vault"
    mounts = f"20 1 8:1 / / rw - ext4 disk rw\n21 20 0:9 / {vault} rw - nfs4 nas:/vault rw\n"
    monkeypatch.setattr("memd.inspection.roots.read_mounts", lambda: mounts)
    scan = _look(tmp_path.resolve() / "ws", _note(vault / "a.md").parent)
    assert [root.remote for root in scan.roots] == [None, "nfs4"]
    assert disk_of(vault) == Disk(kind="nfs4", point=str(vault), is_remote=True)
    assert disk_of(tmp_path) == Disk(kind="ext4", point="/", is_remote=False)


def test_files_from_the_future_are_told(tmp_path: Path) -> None:
    """Five minutes are no future: clocks differ."""
    ahead_s = shipped("memd.inspection.roots._AHEAD_S")
    _note(tmp_path / "memory" / "soon.md", _NOW + ahead_s)
    _note(tmp_path / "memory" / "late.md", _NOW + ahead_s + 1)
    scan = _look(tmp_path)
    assert (scan.future, scan.future_count) == (("memory/late.md",), 1)
    named = shipped("memd.inspection.roots._NAMED")
    for number in range(named + 1):
        _note(tmp_path / "memory" / f"later-{number}.md", _NOW + 2 * ahead_s)
    scan = _look(tmp_path)
    assert (len(scan.future), scan.future_count) == (named, named + 2)


def closed(workspace: str) -> dict[str, Any]:
    """What is told to whoever calls this of a workspace."""
    found: dict[str, Any] = msgspec.to_builtins(_look(Path(workspace)))
    return found


def test_files_that_may_not_be_read_are_told() -> None:
    """Files and directories; root may read whatever the modes say, so another user looks."""
    with shared_directory() as directory:
        _note(directory / "memory" / "a.md").chmod(0o000)
        _note(directory / "memory" / "b.md").chmod(0o644)
        _note(directory / "memory" / "deep" / "shut" / "c.md").parent.chmod(0o000)
        for folder in ("memory", "memory/deep"):
            (directory / folder).chmod(0o755)
        found = as_other_user("tests.inspection.test_roots", "closed", str(directory))
        assert found["unreadable_count"] == 2
        assert found["unreadable"] == [str(directory / "memory" / "a.md"), "memory/deep/shut"]
        directory.chmod(0o000)
        assert as_other_user("tests.inspection.test_roots", "closed", str(directory))["roots"][0]["fault"]
        directory.chmod(0o755)


def test_each_path_is_named_before_it_is_touched(tmp_path: Path) -> None:
    """So that one that hangs is known."""
    extra = tmp_path / "extra"
    *paths, scan = look_at_roots(
        "main", AgentSettings(workspace=tmp_path, extra_paths=(extra,)), time.time(), tmp_path / "state"
    )
    assert paths == [tmp_path, extra, tmp_path, tmp_path]
    assert isinstance(scan, RootsScan)


def test_the_file_system_of_a_directory_that_is_not_there_yet_is_known(tmp_path: Path) -> None:
    """It is that of the one above."""
    there, later = disk_of(tmp_path), disk_of(tmp_path / "no" / "such")
    assert there is not None
    assert there == later


def test_transcripts_are_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the directories where they are, or will be if they are expected."""
    home = tmp_path.resolve() / "home"
    write_homes(home)
    monkeypatch.setenv("HOME", str(home))
    late = home / "chats" / "late.jsonl"
    _note(late, _NOW + 10_000)
    wanted = SessionSettings(presets=("codex", "gemini"), paths=(late, home / "none"))
    _note(home / "ws" / "MEMORY.md")
    scan = _look(home / "ws", sources=("memory", "sessions"), sessions=wanted)
    assert (scan.notes, scan.transcripts) == (1, 4)
    assert [(Path(root.path).name, root.fault) for root in scan.transcript_roots] == [
        ("sessions", None),
        ("archived_sessions", None),
        ("tmp", None),
        ("late.jsonl", None),
        ("none", "does not exist"),
    ]
    assert scan.future_count == 4
    assert all(Path(name).is_file() for name in scan.future)


def test_notes_of_other_programs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the directory of each program, and what of it is searched; transcripts are none of them."""
    home = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    scan = _look(
        home / "ws",
        sources=("memory", "sessions"),
        memory_presets=("claude-code", "gemini"),
        sessions=SessionSettings(presets=("claude-code",)),
    )
    assert scan.presets == (
        PresetNotes(directory=f"{home}/.claude", way=("projects", "*", "memory")),
        PresetNotes(directory=f"{home}/.gemini", file="GEMINI.md"),
        PresetNotes(directory=f"{home}/.gemini", way=("tmp", "*", "memory")),
    )


def seen_by_other_user(home: str) -> list[str]:
    """What a user who may not look into every directory of transcripts is told."""
    wanted = SessionSettings(paths=(Path(home),))
    scan = _look(Path(home), sources=("sessions",), sessions=wanted)
    return list(scan.unreadable)


def test_transcripts_that_cannot_be_read_are_told_by_their_place() -> None:
    """So that somebody can mend it."""
    with shared_directory() as home:
        _note(home / "a" / "x.jsonl")
        (home / "a").chmod(0)
        assert as_other_user(__name__, seen_by_other_user.__name__, str(home)) == [f"{home}/a"]
