"""The directory of `up`, and its place in a configuration."""

from pathlib import Path

import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.ctl.config.add_directory import (
    AlreadySearched,
    Directory,
    NewExtraPath,
    NewWorkspace,
    agent_of,
    change_for,
    checked,
)
from memd.ctl.failures import UsageError
from tests.otheruser import as_other_user, shared_directory


@pytest.fixture
def notes(home: Path) -> Path:
    """A directory of notes that is no workspace."""
    directory = home / "notes"
    directory.mkdir()
    (directory / "a.md").touch()
    return directory


@pytest.mark.parametrize(
    "typed", ["{home}/notes", "{home}/notes/", "~/notes", "notes", "./notes/.", "notes/../notes"]
)
def test_a_directory_is_named_in_many_ways(
    home: Path, notes: Path, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All mean the same absolute path."""
    monkeypatch.chdir(home)
    assert checked(typed.format(home=home), home) == Directory(notes, is_workspace=False)


@pytest.mark.parametrize(
    ("name", "is_directory", "is_workspace"),
    [
        ("MEMORY.md", False, True),
        ("memory.MD", False, True),
        ("memory", True, True),
        ("MEMORY.md", True, False),
        ("memory", False, False),
        ("Memory", True, False),
        ("USER.md", False, False),
    ],
)
def test_a_workspace_is_known_by_its_marks(
    home: Path, notes: Path, name: str, *, is_directory: bool, is_workspace: bool
) -> None:
    """MEMORY.md, in any case of letters, or memory/ in it."""
    mark = notes / name
    mark.mkdir() if is_directory else mark.touch()
    assert checked(str(notes), home).is_workspace is is_workspace


def test_a_mark_that_is_a_symlink_is_none(home: Path, notes: Path) -> None:
    """The daemon follows none inside a workspace."""
    (home / "elsewhere").mkdir()
    (notes / "memory").symlink_to(home / "elsewhere")
    (notes / "MEMORY.md").symlink_to(notes / "a.md")
    assert not checked(str(notes), home).is_workspace


def test_a_symlink_keeps_its_name(home: Path, notes: Path) -> None:
    """It may lead elsewhere tomorrow. Behind one, `..` is the parent of where it leads."""
    (home / "deep" / "down").mkdir(parents=True)
    (home / "link").symlink_to(home / "deep" / "down")
    assert checked(str(home / "link"), home).path == home / "link"
    assert checked(str(home / "link" / ".."), home).path == home / "deep"


@pytest.mark.parametrize("typed", ["/", "{home}", "{home}/", "{home}/..", "~", "{home}/link"])
def test_a_whole_home_directory_is_refused(home: Path, typed: str) -> None:
    """Every program keeps Markdown there; whatever the name, and what lies above it too."""
    (home / "link").symlink_to(home)
    with pytest.raises(UsageError, match="home directory"):
        checked(typed.format(home=home), home)


def test_a_home_directory_with_a_memory_is_a_workspace(home: Path) -> None:
    """Of a workspace only MEMORY.md, USER.md and memory/ are searched."""
    (home / "memory").mkdir()
    assert checked("~", home) == Directory(home, is_workspace=True)


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("~/none", "does not exist"),
        ("~/notes/none/deeper", "does not exist"),
        ("~/notes/a.md", "is no directory"),
        ("~/notes/a.md/b", "is no directory"),
        ("~/loop", "symbolic links"),
        ("~/" + "x" * 300, "too long"),
        ("~/dangling", "does not exist"),
    ],
)
def test_what_is_no_directory_is_refused(home: Path, notes: Path, typed: str, complaint: str) -> None:
    """With the reason."""
    (home / "loop").symlink_to(home / "loop")
    (home / "dangling").symlink_to(home / "gone")
    with pytest.raises(UsageError, match=complaint):
        checked(typed, home)


def complaint_about(directory: str) -> str:
    """What is wrong with a directory; run as another user."""
    try:
        checked(directory, Path("/nowhere"))
    except UsageError as refused:
        return str(refused)
    return ""


def test_a_closed_directory_is_refused() -> None:
    """The daemon, which runs as the same user, could not read it either."""
    with shared_directory() as directory:
        closed = directory / "closed"
        closed.mkdir(mode=0o000)
        assert "cannot be read: Permission denied" in as_other_user(__name__, "complaint_about", str(closed))
        assert "cannot be read: Permission denied" in as_other_user(
            __name__, "complaint_about", str(closed / "x")
        )


@pytest.fixture
def ann(tmp_path: Path) -> AgentSettings:
    """An agent with a workspace and an extra path, which is a symlink."""
    for name in ("workspace/memory/2026", "docs/deep/.hidden", "docs/node_modules/x", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    return AgentSettings(workspace=tmp_path / "workspace", extra_paths=(tmp_path / "link", tmp_path / "a.md"))


@pytest.mark.parametrize(
    "name",
    ["workspace", "workspace/memory", "workspace/memory/2026", "docs", "link", "docs/deep", "link/deep"],
)
def test_what_lies_in_something_searched_is_searched(tmp_path: Path, ann: AgentSettings, name: str) -> None:
    """By whatever name."""
    change = change_for(Directory(tmp_path / name, is_workspace=False), "ann", {"ann": ann})
    assert isinstance(change, AlreadySearched)


@pytest.mark.parametrize("name", ["other", "docs/deep/.hidden", "docs/node_modules/x", ""])
def test_what_is_passed_over_in_there_is_an_extra_path_of_its_own(
    tmp_path: Path, ann: AgentSettings, name: str
) -> None:
    """As is what only holds something searched."""
    change = change_for(Directory(tmp_path / name, is_workspace=False), "ann", {"ann": ann})
    assert change == NewExtraPath()


@pytest.mark.parametrize(
    ("workspace", "default", "replaced"),
    [
        ("none", "none", True),
        ("workspace", "workspace", False),
        ("none", "other", False),
        ("link-to-none", "link-to-none", False),
    ],
)
def test_a_workspace_that_nobody_chose_and_nobody_has_gives_way(
    tmp_path: Path, ann: AgentSettings, workspace: str, default: str, replaced: bool
) -> None:
    """One that a person has named is waited for, and one that a dead symlink stands for may come back."""
    (tmp_path / "link-to-none").symlink_to(tmp_path / "nowhere")
    of_agent = AgentSettings(workspace=tmp_path / workspace)
    notes = Directory(tmp_path / "other", is_workspace=False)
    change = change_for(notes, "main", {"main": of_agent}, tmp_path / default)
    assert change == NewExtraPath(is_workspace_too=replaced)


def test_a_workspace_takes_the_place_of_another(tmp_path: Path, ann: AgentSettings) -> None:
    """Even one that was an extra path, where more of it was searched."""
    for name in ("other", "docs"):
        change = change_for(Directory(tmp_path / name, is_workspace=True), "ann", {"ann": ann})
        assert change == NewWorkspace(tmp_path / "workspace")


def test_the_same_workspace_changes_nothing(tmp_path: Path, ann: AgentSettings) -> None:
    """Whatever name it goes by."""
    (tmp_path / "ws").symlink_to(tmp_path / "workspace")
    for name in ("workspace", "ws"):
        change = change_for(Directory(tmp_path / name, is_workspace=True), "ann", {"ann": ann})
        assert change == AlreadySearched(tmp_path / "workspace")


def test_a_new_agent_needs_a_workspace(tmp_path: Path, ann: AgentSettings) -> None:
    """There is none by default but for main."""
    assert change_for(Directory(tmp_path, is_workspace=True), "bob", {"ann": ann}) == NewWorkspace(None)
    with pytest.raises(UsageError, match="cannot be its workspace"):
        change_for(Directory(tmp_path, is_workspace=False), "bob", {"ann": ann})


@pytest.mark.parametrize(
    ("named", "agents", "meant"),
    [
        (None, ["ann"], "ann"),
        (None, ["ann", "main"], "main"),
        ("bob", ["ann", "main"], "bob"),
    ],
)
def test_the_agent_is_the_one_named_or_the_only_one_or_main(
    ann: AgentSettings, named: str | None, agents: list[str], meant: str
) -> None:
    """As a search has it."""
    assert agent_of(named, dict.fromkeys(agents, ann)) == meant


def test_among_others_one_must_be_named(ann: AgentSettings) -> None:
    """Rather than changing any."""
    with pytest.raises(UsageError, match="ann, bob"):
        agent_of(None, {"bob": ann, "ann": ann})


def test_what_only_transcripts_or_some_notes_are_searched_in_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory above the notes of another agent, or with transcripts, can still become an extra path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".claude/projects/-a/memory", ".codex/sessions"):
        (tmp_path / name).mkdir(parents=True)
    settings = AgentSettings(
        workspace=tmp_path / "w",
        sources=("memory", "sessions"),
        memory_presets=("claude-code",),
        sessions=SessionSettings(presets=("codex",)),
    )

    def change(name: str) -> object:
        return change_for(Directory(tmp_path / name, is_workspace=False), "main", {"main": settings})

    assert change(".claude/projects") == NewExtraPath()
    assert change(".codex/sessions") == NewExtraPath()
    assert change(".claude/projects/-a/memory") == AlreadySearched((tmp_path / ".claude").resolve())
