from pathlib import Path

import msgspec
import pytest

from memd.backends.qmd.collections import (
    NOTES,
    CollectionArguments,
    WantedCollection,
    as_added,
    reaches,
    steps,
    wanted,
)
from memd.backends.qmd.parse import QmdListing
from memd.config.settings import Collection
from memd.domain_types import Kind
from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, SingleFile, Workspace

ROOTS: tuple[Root, ...] = (
    Workspace(Path("/w")),
    ExtraDirectory(Path("/x/Team Notes")),
    ExtraDirectory(Path("/y/Team Notes")),
    SingleFile(Path("/z"), "a,b[1] ü.md"),
    SessionPaths(Path("/s"), "openclaw", "openclaw"),
    ExtraDirectory(Path("/claude/projects"), way=("*", "memory")),
)


def all_of(**how: object) -> dict[str, WantedCollection]:
    given: dict[str, object] = {"sessions": None, "copies": None, "is_directory": lambda _: True} | how
    custom = given.pop("custom", ())
    return {one.name: one for one in wanted("My_Agent", ROOTS, custom, **given)}  # type: ignore[arg-type]


def test_each_kind_of_place_is_a_collection_of_its_own() -> None:
    """Curated notes above all: a group must not search them."""
    found = all_of(sessions=Path("/state/sessions"))
    assert {name: (str(one.directory), one.pattern) for name, one in found.items()} == {
        "memory-root-my-agent": ("/w", "{MEMORY,USER}.md"),
        "memory-dir-my-agent": ("/w/memory", "**/*.md"),
        "team-notes-my-agent": ("/x/Team Notes", "**/*.md"),
        "team-notes-my-agent-2": ("/y/Team Notes", "**/*.md"),
        "a-b-1-my-agent": ("/z", "a?b?1? ?.md"),
        "projects-my-agent": ("/claude/projects", "*/memory/**/*.md"),
        "sessions-my-agent": ("/state/sessions", "**/*.md"),
    }
    assert found["memory-root-my-agent"].kinds == {Kind.CURATED}
    assert found["sessions-my-agent"].kinds == {Kind.SESSION, Kind.SHARED_SESSION}


def test_custom_collections_have_their_name_or_a_number() -> None:
    """One that is the same as another is left out, and one whose directory is missing comes when that does."""
    custom = (
        Collection(path=Path("/docs")),
        Collection(path=Path("/docs"), name="Again"),
        Collection(path=Path("/文档"), name="文档", pattern="*.md"),
        Collection(path=Path("/missing")),
    )
    found = all_of(custom=custom, is_directory=lambda path: path != Path("/missing"))
    assert [one.directory for name, one in found.items() if name.startswith("custom")] == [Path("/docs")]
    assert found["my-agent"].pattern == "*.md"


def test_where_notes_are_redacted_qmd_gets_copies_alone() -> None:
    """What is secret in a note must not reach the index of qmd."""
    copies = {Kind.CURATED: Path("/state/curated"), Kind.NOTE: Path("/state/notes")}
    found = all_of(copies=copies, custom=(Collection(path=Path("/docs")),))
    assert {one.directory for one in found.values()} == set(copies.values())
    assert all(one.exported for one in found.values())


A = WantedCollection("a", Path("/a"), "**/*.md", NOTES)


@pytest.mark.parametrize(
    ("listed", "added", "remove", "add"),
    [
        ([], {}, (), ("a",)),
        ([QmdListing("a")], {}, (), ()),  # a list of names tells nothing of differences
        ([QmdListing("a", "/a", "**/*.md")], {}, (), ()),
        ([QmdListing("a", "~/a", "**/*.md")], {}, (), ()),  # shortened for people
        ([QmdListing("a", "/elsewhere", "**/*.md")], {}, ("a",), ("a",)),
        ([QmdListing("a", None, "*.txt")], {}, ("a",), ("a",)),
        ([QmdListing("a", None, "**/*.md")], {"a": CollectionArguments("/old", "**/*.md")}, ("a",), ("a",)),
        ([QmdListing("a"), QmdListing("mine")], {}, (), ()),  # somebody else's
        ([QmdListing("a"), QmdListing("old")], {"old": CollectionArguments("/old", "*")}, ("old",), ()),
        ([QmdListing("a")], {"old": CollectionArguments("/old", "*")}, (), ()),
    ],
)
def test_only_what_is_known_to_differ_is_made_anew(
    listed: list[QmdListing],
    added: dict[str, CollectionArguments],
    remove: tuple[str, ...],
    add: tuple[str, ...],
) -> None:
    """What memd did not add and does not want is left alone."""
    work = steps([A], listed, added)
    assert (work.remove, tuple(one.name for one in work.add)) == (remove, add)


def test_a_collection_that_was_added_stays() -> None:
    """Nothing is to be done the next time."""
    assert steps([A], [QmdListing("a", None, A.pattern)], {"a": as_added(A)}) == steps([], [], {})


@pytest.mark.parametrize(
    ("pattern", "file", "is_reached"),
    [
        ("**/*.md", "/a/x.md", True),
        ("**/*.md", "/a/b/c/x.md", True),
        ("**/*.md", "/b/x.md", False),
        ("**/*.md", "/a/X.MD", False),
        ("**/*.md", "/a/build/x.md", False),
        ("**/*.md", "/a/build.md", True),
        ("{MEMORY,USER}.md", "/a/MEMORY.md", True),
        ("{MEMORY,USER}.md", "/a/memory.md", False),
        ("{MEMORY,USER}.md", "/a/b/USER.md", False),
        ("*/memory/**/*.md", "/a/p/memory/x/y.md", True),
        ("*/memory/**/*.md", "/a/p/other/y.md", False),
        ("*/memory/**/*.md", "/a/memory/y.md", False),
        ("x.md", "/a/x.md", True),
        ("*.md", "/a/x.md", False),  # not certain
    ],
)
def test_it_is_known_which_files_qmd_finds(pattern: str, file: str, is_reached: bool) -> None:
    """The others are searched by memd itself, so one that is not certain counts as not found."""
    assert reaches(msgspec.structs.replace(A, pattern=pattern), Path(file)) is is_reached
