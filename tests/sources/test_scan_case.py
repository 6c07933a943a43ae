"""A scan of a file system that folds case, as those of macOS do: a stand-in in front of os.stat and os.open."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memd.sources.safe_open import is_spelled_so
from memd.sources.scan import scan
from memd.sources.scan_result import Scan
from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, SingleFile, Workspace

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the stand-in asks /proc; elsewhere is the real one"
)


@pytest.fixture
def folding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names below a descriptor lead to what differs from them in case alone, where nothing is called just so."""

    def built(call: Callable[..., Any]) -> Callable[..., Any]:
        def calling(path: Any, *rest: Any, dir_fd: int | None = None, **options: Any) -> Any:
            if dir_fd is not None and isinstance(path, str):
                # The descriptor may be one for passing through alone.
                names = [entry.name for entry in Path(f"/proc/self/fd/{dir_fd}").iterdir()]
                if path not in names:
                    path = next((name for name in names if name.casefold() == path.casefold()), path)
            return call(path, *rest, dir_fd=dir_fd, **options)

        return calling

    monkeypatch.setattr(os, "stat", built(os.stat))
    monkeypatch.setattr(os, "open", built(os.open))


def _scan(*roots: Root, within: Sequence[Path] | None = None) -> Scan:
    return scan(roots, max_bytes=1000, within=within)


def _write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("memory/Todo.md", "memory/todo.md"),
        ("memory/Projects/a.md", "memory/projects/a.md"),
        ("memory/Äpfel.md", "memory/äpfel.md"),
        ("memory/Δ/1.md", "memory/δ/1.md"),
        ("Memory.md", "MEMORY.md"),
    ],
)
def test_a_note_whose_name_changed_in_case_has_the_new_name_alone(
    base: Path, before: str, after: str
) -> None:
    """The old one still leads to it, and the watcher names both."""
    _write(base, before)
    workspace = Workspace(base)
    assert list(_scan(workspace).found) == [before]
    for old, new in zip(Path(before).parts, Path(after).parts, strict=True):
        if old != new:
            parent = base / Path(after).parents[len(Path(after).parts) - 1 - Path(after).parts.index(new)]
            (parent / old).rename(parent / new)
    seen = _scan(workspace, within=[base / before, base / after])
    assert list(seen.found) == [after]
    assert seen.covers(before)
    assert list(_scan(workspace).found) == [after]


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("name", ["MEMORY.md", "memory.md", "Memory.md"])
def test_a_file_that_two_roots_name_in_different_case_is_found_once(base: Path, name: str) -> None:
    """Under the name that it has, where a root names that."""
    _write(base, name)
    seen = _scan(SingleFile(base, "MEMORY.md"), SingleFile(base, "memory.md"))
    assert len(seen.found) == 1
    if name != "Memory.md":
        assert [found.file.name for found in seen.found.values()] == [name]


@pytest.mark.usefixtures("folding")
def test_what_is_configured_may_be_spelled_otherwise(base: Path) -> None:
    """A person wrote it, and the disk understood."""
    _write(base, "Memory/a.md", "Notes/memory/b.md")
    places = [base / "memory" / "a.md"]
    assert len(_scan(Workspace(base)).found) == len(_scan(Workspace(base), within=places).found) == 1
    tree = ExtraDirectory(base, way=("notes", "Memory"))
    assert len(_scan(tree, within=[base / "notes" / "Memory" / "b.md"]).found) == 1
    _write(base, "talk.jsonl")
    talk = SessionPaths(base, "talks", "plain", file="Talk.jsonl")
    assert len(_scan(talk).found) == len(_scan(talk, within=[base / "Talk.jsonl"]).found) == 1


def test_two_files_in_different_case_stay_two(base: Path) -> None:
    """Where case counts."""
    _write(base, "memory/Todo.md", "memory/todo.md")
    places = [base / "memory" / "Todo.md", base / "memory" / "todo.md"]
    for within in (None, places):
        assert list(_scan(Workspace(base), within=within).found) == ["memory/Todo.md", "memory/todo.md"]
    (base / "memory" / "ONE.md").hardlink_to(base / "memory" / "todo.md")
    (base / "memory" / "one.md").hardlink_to(base / "memory" / "todo.md")
    directory = os.open(base / "memory", os.O_RDONLY)
    try:
        assert is_spelled_so(directory, "one.md")
        assert is_spelled_so(directory, "ONE.md")
        assert is_spelled_so(directory, "2026")  # which no other spelling leads to
    finally:
        os.close(directory)


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("Todo.md", True), ("todo.md", False), ("TODO.MD", False), ("2026", True), ("ſ.md", True)],
)
def test_a_name_is_spelled_so_where_the_directory_has_it(base: Path, name: str, expected: bool) -> None:
    """Letters that have no other case, or several for one, are no other spelling."""
    _write(base, "memory/Todo.md", "memory/2026", "memory/ſ.md")
    directory = os.open(base / "memory", os.O_RDONLY)
    try:
        assert is_spelled_so(directory, name) is expected
    finally:
        os.close(directory)
