"""Which file is indexed where several have one name, and under which name where a file has several."""

import unicodedata
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from memd.domain_types import FoundFile, Kind, Stamp
from memd.sources.choose_files import FileCandidate, each_once
from memd.sources.scan_result import SkipReason
from memd.text.memory_paths import ExtraDirectory, Root, Workspace

WORKSPACE, VAULT = Workspace(Path("/ws")), ExtraDirectory(Path("/vault"))
ORDER = {WORKSPACE.directory: 0, VAULT.directory: 1}
CAFE = "café.md"


def candidate(
    root: Root,
    below: str,
    *,
    path: str | None = None,
    kind: Kind = Kind.NOTE,
    inode: int = 0,
    has_other_names: bool = False,
) -> FileCandidate:
    """A file of a root; without an inode, it is another file than all others."""
    location = f"{root.directory}/{below}"
    found = FoundFile(path or location, location, kind, Stamp(1, 1, inode))
    return FileCandidate(root, tuple(below.split("/")), found, 1, has_other_names)


def chosen(*candidates: FileCandidate) -> tuple[list[str], list[tuple[str, SkipReason]]]:
    """The locations of the files that are indexed, and what is left out; the same in whatever order they were found."""

    def of(some: Sequence[FileCandidate]) -> tuple[list[str], list[tuple[str, SkipReason]]]:
        found, skipped = each_once(some, ORDER)
        assert all(path == file.path for path, file in found.items())
        return [file.location for file in found.values()], skipped

    first, *others = map(of, permutations(candidates))
    assert all(other == first for other in others)
    return first


def test_different_files_are_all_indexed() -> None:
    """Those of the workspace first, each root by path."""
    files = [candidate(VAULT, "a.md"), candidate(WORKSPACE, "memory/b.md"), candidate(WORKSPACE, "MEMORY.md")]
    assert chosen(*files) == (["/ws/MEMORY.md", "/ws/memory/b.md", "/vault/a.md"], [])


def test_a_file_with_two_names_is_indexed_once() -> None:
    """By its name in the workspace; the other one is reported."""
    one = candidate(WORKSPACE, "memory/a.md", inode=7, has_other_names=True)
    other = candidate(VAULT, "a.md", inode=7, has_other_names=True)
    assert chosen(one, other) == (["/ws/memory/a.md"], [("/vault/a.md", SkipReason.SAME_FILE)])


def test_a_file_that_two_roots_contain_is_reported_by_neither() -> None:
    """It is one name, found in two ways."""
    inner = ExtraDirectory(Path("/ws/memory"))
    one = candidate(WORKSPACE, "memory/a.md", path="memory/a.md", inode=7)
    same = FileCandidate(inner, ("a.md",), one.found, 1, has_other_names=False)
    found, skipped = each_once([same, one], ORDER | {inner.directory: 2})
    assert (list(found), skipped) == (["memory/a.md"], [])


def test_of_two_ways_to_one_file_the_private_one_is_taken() -> None:
    """Whichever root was listed first."""
    shown = candidate(WORKSPACE, "memory/a.md", path="x.md", inode=7)
    private = candidate(WORKSPACE, "memory/a.md", path="x.md", kind=Kind.CURATED, inode=7)
    for some in ([shown, private], [private, shown]):
        found, skipped = each_once(some, ORDER)
        assert ([one.kind for one in found.values()], skipped) == ([Kind.CURATED], [])


def test_of_two_spellings_of_one_name_the_composed_one_is_taken() -> None:
    """The other file is reported by where it is."""
    spelled = [unicodedata.normalize(form, CAFE) for form in ("NFC", "NFD")]
    one, other = (candidate(WORKSPACE, f"memory/{name}", path=f"memory/{spelled[0]}") for name in spelled)
    assert chosen(other, one) == (
        [f"/ws/memory/{spelled[0]}"],
        [(f"/ws/memory/{spelled[1]}", SkipReason.SAME_NAME)],
    )


def test_an_inode_that_is_used_again_is_of_another_file() -> None:
    """Without other names the first file is gone, or is being replaced."""
    one, other = (candidate(WORKSPACE, f"memory/{name}.md", inode=7) for name in "ab")
    assert chosen(one, other) == (["/ws/memory/a.md", "/ws/memory/b.md"], [])


@pytest.mark.parametrize("listed", ["plan.md", "Plan.md"])
def test_of_two_cases_of_one_name_the_one_that_the_directory_lists_is_taken(
    tmp_path: Path, listed: str
) -> None:
    """Where the disk makes no difference between them, or the file was renamed during the scan."""
    (tmp_path / listed).touch()
    root = ExtraDirectory(tmp_path)
    old, new = (candidate(root, name, inode=7) for name in ("plan.md", "Plan.md"))
    for some in permutations([old, new]):
        found, skipped = each_once(some, {tmp_path: 0})
        assert (list(found), skipped) == ([f"{tmp_path}/{listed}"], [])
