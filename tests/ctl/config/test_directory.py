"""What `up` may be given."""

from pathlib import Path

import pytest

from memd.ctl.config.directory import Directory, checked
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
