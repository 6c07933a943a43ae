"""From settings to roots."""

import os
from pathlib import Path

import pytest

from memd.config import AgentSettings
from memd.paths import SingleFile, Tree, Workspace, admits
from memd.sources.roots import roots_as_written, roots_of
from tests.otheruser import as_other_user, shared_directory


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
        Tree(base / "vault"),
        SingleFile(base, "todo.md"),
        Tree(base / "dir.md"),
    )


def test_missing_paths(base: Path) -> None:
    """An extra path that is not there yet is a file if it is called like one."""
    extra = (base / "later", base / "later.md")
    roots = roots_of(AgentSettings(workspace=base / "none", extra_paths=extra))
    assert roots == (Workspace(base / "none"), Tree(base / "later"), SingleFile(base, "later.md"))


def test_paths_that_cannot_be_looked_at(base: Path) -> None:
    """One that the system refuses to look at is what its name says, and no error."""
    extra = (base / ("x" * 300), base / ("x" * 300 + ".md"))
    _, tree, file = roots_of(AgentSettings(workspace=base / "ws", extra_paths=extra))
    assert (tree, file) == (Tree(extra[0]), SingleFile(base, extra[1].name))


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
    assert told == ["Workspace", "Tree", "SingleFile"]


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
        Tree(base / "vault"),
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
    assert roots_as_written(settings) == roots_of(settings)
    (base / "link").symlink_to("vault")
    behind = AgentSettings(workspace=base / "link")
    assert roots_as_written(behind)[0].directory == base / "link"
    assert roots_of(behind)[0].directory == base / "vault"
