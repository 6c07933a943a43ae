import os
from pathlib import Path
from typing import Any

import pytest

from memd.backends.qmd import own_files
from memd.backends.qmd.process import QmdFailed


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask says; so are the directories that are made for it."""
    own_files.put(tmp_path, "sessions/a/b.md", b"text")
    assert (tmp_path / "sessions/a/b.md").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "sessions/a").stat().st_mode & 0o777 == 0o700
    own_files.make(tmp_path / "made")
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    assert own_files.get(tmp_path, "sessions/a/b.md") == b"text"
    own_files.put(tmp_path, "sessions/a/b.md", b"other")
    assert own_files.markdown(tmp_path, "sessions") == {"sessions/a/b.md": 5}


def test_no_symlink_is_followed(tmp_path: Path) -> None:
    """Not to a directory, and not to a file: what it leads to stays as it is."""
    base, elsewhere = tmp_path / "base", tmp_path / "elsewhere"
    base.mkdir()
    elsewhere.mkdir()
    (elsewhere / "a.md").write_text("theirs")
    (base / "sessions").symlink_to(elsewhere)
    for act in (
        lambda: own_files.put(base, "sessions/a.md", b"x"),
        lambda: own_files.remove(base, "sessions/a.md"),
        lambda: own_files.markdown(base, "sessions"),
        lambda: own_files.get(base, "sessions/a.md"),
        lambda: own_files.make(base / "sessions"),
    ):
        with pytest.raises(QmdFailed):
            act()
    (base / "link.md").symlink_to(elsewhere / "a.md")
    with pytest.raises(QmdFailed):
        own_files.get(base, "link.md")
    own_files.put(base, "link.md", b"ours")
    assert (base / "link.md").read_text() == "ours"
    (base / "notes").mkdir()
    (base / "notes" / "in").symlink_to(elsewhere)
    (base / "notes" / "c.md").symlink_to(elsewhere / "a.md")
    assert own_files.markdown(base, "notes") == {"notes/c.md": -1}
    assert (elsewhere / "a.md").read_text() == "theirs"


def test_to_look_makes_no_directory(tmp_path: Path) -> None:
    """Nor does one that is gone meanwhile come back."""
    base = tmp_path / "base"
    base.mkdir()
    for name in ("sessions", "sessions/main"):
        assert own_files.markdown(base, name) == {}
    assert not list(base.iterdir())


def test_what_an_interrupted_write_left_is_cleared_away(tmp_path: Path) -> None:
    """It is memd's, and nobody reads it; what is not memd's stays."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / ".memd-0123456789abcdef").write_text("half")
    (tmp_path / "sessions" / "theirs.txt").write_text("whole")
    assert own_files.markdown(tmp_path, "sessions") == {}
    assert [file.name for file in (tmp_path / "sessions").iterdir()] == ["theirs.txt"]


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves the old one or the new one, and never a name with nothing in it; then the name lasts, too."""
    done: list[int | str] = []  # the inodes that were synced, and the replacement
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        done.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    def replaced(*args: Any, **kwargs: Any) -> None:
        done.append("replaced")
        replace(*args, **kwargs)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    own_files.put(tmp_path, "a.md", b"text")
    assert done == [(tmp_path / "a.md").stat().st_ino, "replaced", tmp_path.stat().st_ino]


def test_what_is_not_there_is_no_failure(tmp_path: Path) -> None:
    """To delete it, to list it or to read it."""
    own_files.remove(tmp_path, "sessions/a.md")
    assert own_files.markdown(tmp_path, "sessions") == {}
    assert own_files.get(tmp_path, "exported.json") == b""


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing of itself."""
    (tmp_path / "a.md").mkdir()
    with pytest.raises(QmdFailed, match=r"a\.md"):
        own_files.put(tmp_path, "a.md", b"x")
    assert [file.name for file in tmp_path.iterdir()] == ["a.md"]
    with pytest.raises(QmdFailed):
        own_files.put(tmp_path / "gone", "a.md", b"x")
