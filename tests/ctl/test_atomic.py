"""Replacing a file at once."""

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from memd.ctl.atomic import NotWritten, write_text


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """So are the directories made for it, whatever the umask; those that were there stay as they were."""
    tmp_path.chmod(0o755)
    old = os.umask(0o000)
    try:
        write_text(tmp_path / "a" / "b" / "c.toml", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "a" / "b" / "c.toml").read_bytes() == b"x"
    assert _mode(tmp_path / "a" / "b" / "c.toml") == 0o600
    assert (_mode(tmp_path / "a"), _mode(tmp_path / "a" / "b"), _mode(tmp_path)) == (0o700, 0o700, 0o755)


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o400, 0o664])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """Who could read it still can, and nobody else."""
    file = tmp_path / "config.toml"
    file.write_text("old", encoding="utf-8")
    file.chmod(mode)
    write_text(file, "new")
    assert (file.read_text(encoding="utf-8"), _mode(file)) == ("new", mode)


def test_a_file_keeps_its_line_ends(tmp_path: Path) -> None:
    """What is given is what is there."""
    write_text(tmp_path / "f", "a\r\nb\n笔")
    assert (tmp_path / "f").read_bytes() == b"a\r\nb\n\xe7\xac\x94"


def test_a_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    """A file that is kept elsewhere and linked to stays where it is kept."""
    (tmp_path / "dotfiles").mkdir()
    kept = tmp_path / "dotfiles" / "memd.toml"
    kept.write_text("old", encoding="utf-8")
    (tmp_path / "hop").symlink_to("dotfiles/memd.toml")
    link = tmp_path / "config.toml"
    link.symlink_to("hop")
    write_text(link, "new")
    assert link.readlink() == Path("hop")
    assert (kept.is_symlink(), kept.read_text(encoding="utf-8")) == (False, "new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "config.toml",
        "dotfiles",
        "hop",
        "memd.toml",
    ]


def test_a_link_to_nothing_yet_makes_its_target(tmp_path: Path) -> None:
    """The link was made first, the file comes now."""
    link = tmp_path / "config.toml"
    link.symlink_to("kept/memd.toml")
    write_text(link, "new")
    assert (tmp_path / "kept" / "memd.toml").read_text(encoding="utf-8") == "new"
    assert link.is_symlink()


def test_a_directory_or_pipe_is_left_alone(tmp_path: Path) -> None:
    """Only a file is replaced by a file: the configuration may have been given as a device."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("pipe", "directory"):
        with pytest.raises(NotWritten, match="is not a regular file"):
            write_text(tmp_path / name, "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "pipe"]


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    """There is no file to replace, and the links stay."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(NotWritten):
        write_text(tmp_path / "a", "x")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").is_symlink()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A directory where nothing can be made is told by name; what was there still is."""
    file = tmp_path / "file"
    file.write_text("old", encoding="utf-8")
    with pytest.raises(NotWritten, match=f"cannot be written: {os.strerror(errno.ENOTDIR)}"):
        write_text(file / "config.toml", "new")
    assert file.read_text(encoding="utf-8") == "old"


def test_a_write_that_breaks_off_leaves_no_temporary_file(tmp_path: Path) -> None:
    """A disk or quota that is full costs nothing."""
    file = tmp_path / "config.toml"
    file.write_text("old", encoding="utf-8")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
    try:
        with pytest.raises(NotWritten, match=os.strerror(errno.EFBIG)):
            write_text(file, "much longer than that")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    assert file.read_text(encoding="utf-8") == "old"


def test_what_is_not_unicode_leaves_the_old_file(tmp_path: Path) -> None:
    """A text that has no bytes is refused before anything is made."""
    file = tmp_path / "config.toml"
    file.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "\udcff")
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    assert file.read_text(encoding="utf-8") == "old"
