"""From settings to roots."""

import os
from pathlib import Path

import pytest

from memd.config import AgentSettings
from memd.paths import SingleFile, Tree, Workspace, admits
from memd.sources.roots import roots_of


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
