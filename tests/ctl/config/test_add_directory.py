"""What has to change for a directory to be searched."""

from pathlib import Path

import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.ctl.config.add_directory import AlreadySearched, NewExtraPath, NewWorkspace, agent_of, change_for
from memd.ctl.config.directory import Directory
from memd.ctl.failures import UsageError


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
