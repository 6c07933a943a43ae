"""From settings to roots."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.domain_types import Kind
from memd.sources.notes import read_note
from memd.sources.roots import notes_of, roots_as_written, roots_of, transcripts_of
from memd.sources.scan import scan
from memd.text.memory_paths import (
    ExtraDirectory,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    admits,
    find_place,
    only_file,
)
from tests.otheruser import as_other_user, shared_directory
from tests.sources.homes import ARCHIVED, NOTES, SESSIONS, write_homes


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def test_kinds(base: Path) -> None:
    """The workspace comes first, then each extra path as what it is, each once."""
    (base / "vault").mkdir()
    (base / "todo.md").touch()
    (base / "dir.md").mkdir()
    extra = (base / "vault", base / "todo.md", base / "dir.md", base / "vault")
    assert roots_of(AgentSettings(workspace=base, extra_paths=extra)) == (
        Workspace(base),
        ExtraDirectory(base / "vault"),
        SingleFile(base, "todo.md"),
        ExtraDirectory(base / "dir.md"),
    )


def test_missing_paths(base: Path) -> None:
    """An extra path that is not there yet is a file if it is called like one."""
    extra = (base / "later", base / "later.md")
    roots = roots_of(AgentSettings(workspace=base / "none", extra_paths=extra))
    assert roots == (Workspace(base / "none"), ExtraDirectory(base / "later"), SingleFile(base, "later.md"))


def test_paths_that_cannot_be_looked_at(base: Path) -> None:
    """One that the system refuses to look at is what its name says, and no error."""
    extra = (base / ("x" * 300), base / ("x" * 300 + ".md"))
    _, tree, file = roots_of(AgentSettings(workspace=base / "ws", extra_paths=extra))
    assert (tree, file) == (ExtraDirectory(extra[0]), SingleFile(base, extra[1].name))


def roots_behind_a_closed_directory(directory: str) -> list[str]:
    """What the other user sees."""
    closed = Path(directory) / "closed"
    closed.mkdir(0)
    settings = AgentSettings(workspace=closed / "ws", extra_paths=(closed / "vault", closed / "a.md"))
    return [type(root).__name__ for root in roots_of(settings)]


def test_paths_behind_a_closed_directory() -> None:
    """A directory that may not be entered makes no error: what is behind it is what its name says."""
    with shared_directory() as directory:
        told = as_other_user(__name__, roots_behind_a_closed_directory.__name__, str(directory))
    assert told == ["Workspace", "ExtraDirectory", "SingleFile"]


def test_configured_symlinks(base: Path) -> None:
    """A symlink that a person configured is resolved, for the workspace and for extra paths."""
    for name in ("workspace", "vault"):
        (base / name).mkdir()
        (base / f"to-{name}").symlink_to(name)
    (base / "vault" / "todo.md").touch()
    (base / "to-todo").symlink_to("vault/todo.md")
    settings = AgentSettings(
        workspace=base / "to-workspace", extra_paths=(base / "to-vault", base / "to-todo")
    )
    assert roots_of(settings) == (
        Workspace(base / "workspace"),
        ExtraDirectory(base / "vault"),
        SingleFile(base / "vault", "todo.md"),
    )


def test_a_loop_of_symlinks(base: Path) -> None:
    """A root that resolves to nothing is a root that is missing, not an error."""
    (base / "a").symlink_to("b")
    (base / "b").symlink_to("a")
    (root,) = roots_of(AgentSettings(workspace=base / "a"))
    assert isinstance(root, Workspace)


def test_home(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde is the home directory, in paths and in globs."""
    monkeypatch.setenv("HOME", str(base))
    settings = AgentSettings(workspace=Path("~/ws"), extra_paths=(Path("~/vault"),), exclude=("~/vault/x/",))
    workspace, vault = roots_of(settings)
    assert workspace.directory == base / "ws"
    assert not admits(vault, ("x", "a.md"))
    assert admits(vault, ("y", "a.md"))


@pytest.mark.parametrize(
    "glob", ["{link}/private", "{link}/private/", "{link}/private/**", "{link}/priv*/*.md"]
)
def test_globs_through_symlinks(base: Path, glob: str) -> None:
    """A glob that goes through a symlink matches what lies behind it."""
    (base / "vault").mkdir()
    (base / "link").symlink_to("vault")
    settings = AgentSettings(
        workspace=base, extra_paths=(base / "link",), exclude=(glob.format(link=base / "link"),)
    )
    _, vault = roots_of(settings)
    assert not admits(vault, ("private", "a.md"))
    assert admits(vault, ("public", "a.md"))


def test_roots_as_they_are_written_ask_no_disk(base: Path) -> None:
    """Where no symlink is in the way they are the same; what is behind one stays as it is called."""
    (base / "ws").mkdir()
    (base / "vault").mkdir()
    (base / "note.md").write_text("x")
    settings = AgentSettings(
        workspace=base / "ws",
        extra_paths=(base / "vault", base / "note.md", base / "vault" / ".." / "other"),
        exclude=("*.draft.md", str(base / "vault" / "private")),
    )
    assert roots_as_written(settings).roots == roots_of(settings)
    (base / "link").symlink_to("vault")
    behind = AgentSettings(workspace=base / "link")
    assert roots_as_written(behind).roots[0].directory == base / "link"
    assert roots_of(behind)[0].directory == base / "vault"


@pytest.fixture
def home(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with those of four agents."""
    directory = base / "home"
    write_homes(directory)
    monkeypatch.setenv("HOME", str(directory))
    return directory


def _settings(home: Path, **given: Any) -> AgentSettings:
    return AgentSettings(workspace=home / "none", **given)


def test_transcripts_are_roots_only_if_they_are_a_source(home: Path) -> None:
    """To name them is not enough."""
    wanted = SessionSettings(presets=("codex",), paths=(home / "x",))
    assert roots_of(_settings(home, sessions=wanted), {}) == (Workspace(home / "none"),)
    alone = roots_of(_settings(home, sessions=wanted, sources=("sessions",)), {})
    assert [type(root) for root in alone] == [SessionPaths] * 3


def test_presets_find_the_transcripts_of_all_agents(home: Path) -> None:
    """Each session once, under the name of its preset."""
    wanted = SessionSettings(presets=("openclaw", "claude-code", "codex", "gemini"))
    roots = roots_of(_settings(home, sessions=wanted, sources=("memory", "sessions")), {})
    assert tuple(scan(roots, max_bytes=1).found) == SESSIONS
    assert [root.directory.name for root in roots if isinstance(root, SessionPaths) and root.expected] == [
        "agents",
        "projects",
        "sessions",
        "tmp",
    ]


def test_memory_presets_find_the_notes_of_all_agents(home: Path) -> None:
    """By absolute names, as extra paths; what agents are told at every start is none of them."""
    presets = ("openclaw", "claude-code", "codex", "gemini")
    seen = scan(roots_of(_settings(home, memory_presets=presets), {}), max_bytes=1000)
    assert tuple(name.removeprefix(f"{home}/") for name in seen.found) == NOTES
    assert {file.kind for file in seen.found.values() if file.file.name == "MEMORY.md"} == {Kind.CURATED}


def test_what_one_agent_keeps_is_told_by_itself(home: Path) -> None:
    """Before anything of it is in the settings; of an agent that is not there nothing is found."""

    def names(roots: tuple[Root, ...]) -> list[str]:
        return [name.removeprefix(f"{home}/") for name in scan(roots, max_bytes=1000).found]

    told = [
        *names(notes_of("claude-code", {})),
        *names(notes_of("openclaw", {})),
        *names(notes_of("codex", {})),
    ]
    assert set(names(notes_of("claude-code", {}))) == {name for name in NOTES if name.startswith(".claude/")}
    assert set(told) == {name for name in NOTES if not name.startswith(".gemini/")}
    codex = names(transcripts_of("codex", {}))
    assert codex == [name for name in SESSIONS if name.startswith("sessions/codex/")] != []
    shutil.rmtree(home / ".codex")
    assert names(transcripts_of("codex", {})) == names(notes_of("codex", {})) == []


def test_exclude_holds_for_presets_too(home: Path) -> None:
    """Below their directories."""
    wanted = SessionSettings(presets=("claude-code", "codex"))
    settings = _settings(
        home,
        sessions=wanted,
        memory_presets=("claude-code",),
        exclude=("-home-li-app/", "2026/**", "topics/"),
        sources=("memory", "sessions"),
    )
    names = [name.removeprefix(f"{home}/") for name in scan(roots_of(settings, {}), max_bytes=1000).found]
    assert names == [f"sessions/codex/{ARCHIVED}.jsonl"]


def test_a_home_that_was_renamed_is_one(home: Path) -> None:
    """A symlink in its old place leads to the same directory."""
    shutil.rmtree(home / ".clawdbot")
    (home / ".clawdbot").symlink_to(".openclaw")
    roots = transcripts_of("openclaw", {})
    assert [str(root.directory.relative_to(home)) for root in roots] == [
        ".openclaw/agents",
        ".openclaw-team/agents",
        ".pi/agent/sessions",
    ]


def test_the_first_home_that_is_there_is_expected(home: Path) -> None:
    """What was never used is not missed."""
    shutil.rmtree(home / ".openclaw")
    assert [root.directory.parent.name for root in transcripts_of("openclaw", {}) if root.expected] == [
        ".openclaw-team"
    ]


def test_paths_of_transcripts(home: Path) -> None:
    """Files and directories go by their directory's name, unlike that of a preset or of another one."""
    (home / "chats").mkdir()
    (home / "x" / "chats").mkdir(parents=True)
    (home / "x" / "a.jsonl").touch()
    (home / "x" / "log.txt").touch()
    paths = (
        home / "chats",
        home / "x" / "chats",
        home / "x" / "a.jsonl",
        home / "x" / "log.txt",
        home / "later.jsonl",
        home / "codex",
        Path("/"),
    )
    wanted = SessionSettings(paths=paths)
    roots = roots_of(_settings(home, sessions=wanted, sources=("sessions",)), {})
    assert [(root.label, root.directory, root.file) for root in roots if isinstance(root, SessionPaths)] == [
        ("chats", home / "chats", None),
        ("chats-2", home / "x" / "chats", None),
        ("x", home / "x", "a.jsonl"),
        ("x", home / "x", "log.txt"),
        ("home", home, "later.jsonl"),
        ("codex-2", home / "codex", None),
        ("transcripts", Path("/"), None),
    ]
    assert {root.layout for root in roots if isinstance(root, SessionPaths)} == {"plain"}


def test_transcripts_without_a_look_at_the_disk(home: Path) -> None:
    """Where it does not answer, the usual places count."""
    wanted = SessionSettings(presets=("openclaw",), paths=(home / "a.jsonl",))
    roots = roots_as_written(_settings(home, sessions=wanted, sources=("sessions",)), {}).roots
    found = [(root.directory.parent.name, root.expected) for root in roots if isinstance(root, SessionPaths)]
    assert found[:3] == [(".openclaw", True), (".clawdbot", False), ("agent", False)]
    assert only_file(roots[-1]) == "a.jsonl"


@pytest.mark.parametrize("name", ["state", "Application Support", "st[a]te*?", "st\u00e4te"])
def test_what_memd_keeps_is_no_source(base: Path, name: str) -> None:
    """Below an extra path, as one, behind a symlink: no note or transcript is found in it, listed or asked for by name."""
    state = base / "data" / name
    copies = state / "agents" / "main.qmd" / "notes"
    copies.mkdir(parents=True)
    for file in (copies / "a-MEMORY.md", copies / "b.jsonl", base / "data" / "kept.md"):
        file.write_text('{"role": "user", "content": "hi"}')
    (base / "link").symlink_to(state)
    extra = (base / "data", copies, base / "link", copies / "a-MEMORY.md")
    settings = AgentSettings(
        workspace=base / "ws",
        extra_paths=extra,
        sources=("memory", "sessions"),
        sessions=SessionSettings(paths=(state,)),
    )
    for given in (state, base / "link"):
        roots = roots_of(settings, {}, state=given)
        assert list(scan(roots, max_bytes=1000).found) == [str(base / "data" / "kept.md")]
        assert find_place(str(copies / "a-MEMORY.md"), roots) is None
    assert len(scan(roots_of(settings, {}), max_bytes=1000).found) == 3


@pytest.mark.parametrize("beside", [True, False])
def test_a_symlink_called_like_what_is_its_owner_s_alone(base: Path, beside: bool) -> None:
    """Whatever it leads to, also where a directory that holds that is searched too, by whatever way it is read."""
    (base / "dot").mkdir()
    (base / "dot" / "about-me.md").write_text("walrus")
    (base / "USER.md").symlink_to(base / "dot" / "about-me.md")
    extra = (base / "dot", base / "USER.md") if beside else (base / "USER.md",)
    roots = roots_of(AgentSettings(workspace=base / "ws", extra_paths=extra))
    (found,) = scan(roots, max_bytes=1000).found.values()
    assert (found.path, found.kind) == (str(base / "dot" / "about-me.md"), Kind.CURATED)
    assert read_note(found.path, roots, max_bytes=1000, now_ns=0).document.kind is Kind.CURATED
