"""Which directories are watched."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, SingleFile, Workspace, exclude_of
from memd.watch.watch_plan import WatchPlan, identity_of, plan_watches, replaced, root_state_of
from tests.otheruser import as_other_user, shared_directory


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def make(base: Path, *directories: str) -> None:
    for directory in directories:
        (base / directory).mkdir(parents=True, exist_ok=True)


def names(directories: frozenset[Path], base: Path) -> set[str]:
    return {str(directory.relative_to(base)) for directory in directories}


def test_one_by_one(base: Path) -> None:
    """Of a workspace, itself and memory/ with what lies below; of an extra directory all; of a file its own."""
    make(base, "ws/memory/a/b", "ws/src/lib", "vault/x/y", "home/sub")
    roots: list[Root] = [
        Workspace(base / "ws"),
        ExtraDirectory(base / "vault"),
        SingleFile(base / "home", "todo.md"),
    ]
    plan = plan_watches(roots, recursive=False)
    assert names(plan.flat, base) == {
        "ws", "ws/memory", "ws/memory/a", "ws/memory/a/b", "vault", "vault/x", "vault/x/y", "home",
    }  # fmt: skip
    assert not plan.deep
    assert plan.above == frozenset(base.parents) | {base}
    assert plan.size == 8 + len(plan.above)


def test_from_above(base: Path) -> None:
    """Where the system watches whole trees, only their tops are named; a workspace is still not watched whole."""
    make(base, "ws/memory/a", "vault/x", "home")
    roots: list[Root] = [
        Workspace(base / "ws"),
        ExtraDirectory(base / "vault"),
        SingleFile(base / "home", "todo.md"),
    ]
    plan = plan_watches(roots, recursive=True)
    assert names(plan.flat, base) == {"ws", "home"}
    assert names(plan.deep, base) == {"ws/memory", "vault"}
    assert not plan.above


def test_foreign_directories_cost_no_watch(base: Path) -> None:
    """What is hidden, excluded, somebody's packages or a symlink is not watched."""
    make(base, "v/.git/objects", "v/node_modules/p", "v/venv/lib", "v/drafts", "v/kept", "elsewhere/x")
    (base / "v" / "link").symlink_to(base / "elsewhere")
    plan = plan_watches([ExtraDirectory(base / "v", exclude_of(["drafts/"]))], recursive=False)
    assert names(plan.flat, base) == {"v", "v/kept"}


@pytest.mark.parametrize("recursive", [False, True])
def test_what_is_not_there(base: Path, recursive: bool) -> None:
    """Missing roots are not watched, but known as missing."""
    make(base, "ws")
    roots: list[Root] = [
        Workspace(base / "ws"),
        ExtraDirectory(base / "away"),
        SingleFile(base / "off", "a.md"),
    ]
    plan = plan_watches(roots, recursive=recursive)
    assert names(plan.flat | plan.deep, base) == {"ws"}
    missing = {path for path, identity in plan.root_state.identities.items() if identity is None}
    assert missing == {base / "ws" / "memory", base / "away", base / "off"}


@pytest.mark.parametrize("recursive", [False, True])
def test_memory_as_a_symlink(base: Path, recursive: bool) -> None:
    """A memory/ that is a symlink is not watched."""
    make(base, "ws", "elsewhere")
    (base / "ws" / "memory").symlink_to(base / "elsewhere")
    plan = plan_watches([Workspace(base / "ws")], recursive=recursive)
    assert names(plan.flat | plan.deep, base) == {"ws"}


@pytest.mark.parametrize("recursive", [False, True])
def test_a_root_whose_name_is_not_utf8(base: Path, recursive: bool) -> None:
    """A root that the watching library could not be told of is left out."""
    odd = base / os.fsdecode(b"odd\xff")
    (odd / "memory").mkdir(parents=True)
    plan = plan_watches([Workspace(odd), ExtraDirectory(odd)], recursive=recursive)
    assert not plan.flat | plan.deep


def test_whether_what_is_missing_would_come_with_an_event(base: Path) -> None:
    """Of memory/ in a workspace that is watched, and of a root in another one; not of a root that hangs in the air."""
    make(base, "ws")
    roots: list[Root] = [Workspace(base / "ws"), ExtraDirectory(base / "ws" / "memory")]
    assert plan_watches(roots, recursive=False).is_complete
    assert not plan_watches([*roots, ExtraDirectory(base / "none")], recursive=False).is_complete


def test_identities(base: Path) -> None:
    """Another directory in the same place has another identity."""
    make(base, "ws/memory", "other")
    roots = [Workspace(base / "ws")]
    before = root_state_of(roots, "")
    assert root_state_of(roots, "") == before
    (base / "ws" / "memory").rename(base / "aside")
    (base / "other").rename(base / "ws" / "memory")
    after = root_state_of(roots, "")
    assert after != before
    assert after.identities[base / "ws"] == before.identities[base / "ws"]


@pytest.mark.parametrize("link", ["ws", "ws/deep", "ws/deep/memory"])
def test_behind_a_symlink(base: Path, link: str) -> None:
    """What lies behind a symlink, however far above, is not watched and has no identity until it is uncovered."""
    make(base, "ws/deep/memory")
    roots = [Workspace(base / "ws" / "deep")]
    before = plan_watches(roots, recursive=False)
    (base / link).rename(base / "aside")
    (base / link).symlink_to(base / "aside")
    hidden = plan_watches(roots, recursive=False)
    assert base / "ws/deep/memory" not in hidden.flat
    assert hidden.root_state.identities[base / "ws/deep/memory"] is None
    (base / link).unlink()
    (base / "aside").rename(base / link)
    assert plan_watches(roots, recursive=False) == before


def surveyed_by_other_user(directory: str, recursive: str) -> list[str]:
    plan: WatchPlan = plan_watches(
        [Workspace(Path(directory)), ExtraDirectory(Path(directory) / "closed")], recursive=bool(recursive)
    )
    return sorted(str(path).removeprefix(directory) for path in plan.flat | plan.deep)


@pytest.mark.parametrize(
    ("recursive", "watched"), [("", ["", "/memory", "/memory/b"]), ("yes", ["", "/memory"])]
)
def test_unlistable_directories(recursive: str, watched: list[str]) -> None:
    """A directory that cannot be listed cannot be watched either: it is left out, not an error."""
    with shared_directory() as base:
        make(base, "memory/a", "memory/b", "closed")
        (base / "memory" / "a").chmod(0)
        (base / "closed").chmod(0)
        assert as_other_user(__name__, surveyed_by_other_user.__name__, str(base), recursive) == watched


def test_only_directories_of_transcripts_are_watched(base: Path) -> None:
    """Agents keep much else beside them, thousands of directories in a year."""
    make(
        base,
        *("c/-a/u1/subagents", "c/-a/u1/tool-results", "c/-b/memory"),
        *("g/9f/chats/u2", "g/9f/checkpoints/x", "g/8e/shell"),
        *("x/2026/03/02", "x/2026/tmp", "o/main/sessions/cold", "o/main/agent/x", "one"),
    )
    roots: list[Root] = [
        SessionPaths(base / "c", "claude-code", "claude-code"),
        SessionPaths(base / "g", "gemini", "gemini"),
        SessionPaths(base / "x", "codex", "codex"),
        SessionPaths(base / "o", "openclaw", "openclaw"),
        SessionPaths(base / "one", "one", "plain", file="a.jsonl"),
        SessionPaths(base / "later", "later", "plain"),
    ]
    plan = plan_watches(roots, recursive=False)
    assert names(plan.flat, base) == {
        "c", "c/-a", "c/-b",
        "g", "g/9f", "g/9f/chats", "g/8e",
        "x", "x/2026", "x/2026/03", "x/2026/03/02",
        "o", "o/main", "o/main/agent", "o/main/sessions", "o/main/sessions/cold",
        "one",
    }  # fmt: skip
    with_subagents = plan_watches(
        [SessionPaths(base / "c", "c", "claude-code", subagents=True)], recursive=False
    )
    assert names(with_subagents.flat, base) == {
        "c", "c/-a", "c/-a/u1", "c/-a/u1/subagents", "c/-b", "c/-b/memory",
    }  # fmt: skip
    assert plan.root_state.identities[base / "later"] is None


def test_a_way_to_notes_is_watched(base: Path) -> None:
    """From its beginning, so that a directory which comes on it is seen to come."""
    make(base, "c/projects/-a/memory/topics", "c/projects/-a/u1", "c/cache/x", "c/projects/-b")
    plan = plan_watches([ExtraDirectory(base / "c", way=("projects", "*", "memory"))], recursive=False)
    assert names(plan.flat, base) == {
        "c", "c/projects", "c/projects/-a", "c/projects/-a/memory", "c/projects/-a/memory/topics", "c/projects/-b",
    }  # fmt: skip


def test_directories_that_are_not_those_that_were_watched(base: Path) -> None:
    """Another one in the place, or none."""
    make(base, "same", "other", "gone", "aside")
    before = {base / name: identity_of(base / name) for name in ("same", "other", "gone", "later")}
    (base / "gone").rmdir()
    (base / "other").rename(base / "kept")
    (base / "aside").rename(base / "other")
    assert replaced(before) == [base / "other", base / "gone"]


@pytest.mark.parametrize(
    "why", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOENT, errno.EACCES, errno.EIO]
)
def test_a_directory_that_cannot_be_listed(base: Path, monkeypatch: pytest.MonkeyPatch, why: int) -> None:
    """What went is left out; a process that can look at nothing must not take all for gone."""
    make(base, "v/a/deep", "v/b")
    listed = os.scandir

    def refused(directory: Path) -> Any:
        if Path(directory).name == "a":
            raise OSError(why, os.strerror(why))
        return listed(directory)

    monkeypatch.setattr("memd.watch.watch_plan.os.scandir", refused)
    if why in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
        with pytest.raises(OSError, match=os.strerror(why)):
            plan_watches([ExtraDirectory(base / "v")], recursive=False)
    else:
        plan = plan_watches([ExtraDirectory(base / "v")], recursive=False)
        assert names(plan.flat, base) == {"v", "v/b"}


def test_an_entry_that_cannot_be_looked_at_is_no_directory(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that does not say the kind of its entries is asked for each, which may fail."""
    make(base, "v/a", "v/b")

    class Entry:
        def __init__(self, name: str) -> None:
            self.name = name

        def is_dir(self, *, follow_symlinks: bool) -> bool:
            assert not follow_symlinks
            if self.name == "a":
                raise OSError(errno.EIO, "Input/output error")
            return True

    def scandir(directory: Path) -> Any:
        found = [Entry("a"), Entry("b")] if Path(directory).name == "v" else []
        return nullcontext(found)

    monkeypatch.setattr("memd.watch.watch_plan.os.scandir", scandir)
    plan = plan_watches([ExtraDirectory(base / "v")], recursive=False)
    assert names(plan.flat, base) == {"v", "v/b"}
