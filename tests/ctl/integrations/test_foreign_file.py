"""Files of other programs."""

import os
import stat
from pathlib import Path

import pytest

from memd.ctl.failures import Failed
from memd.ctl.integrations.foreign_file import change
from memd.ctl.integrations.json_edit import NotEditable
from tests.bounds import shipped


def changed(file: Path, old: str = "old", new: str = "new") -> bool:
    """Replace a word in a file."""
    return change(file, lambda text: text.replace(old, new) or new, name="~/f", by_hand="Do it yourself.")


def test_a_file_is_changed_in_its_mode_behind_its_link(tmp_path: Path) -> None:
    """As one that lies in a repository of settings."""
    target = tmp_path / "dotfiles" / "f"
    target.parent.mkdir()
    target.write_bytes("old \r\n é".encode())
    target.chmod(0o640)
    link = tmp_path / "f"
    link.symlink_to("dotfiles/f")
    assert changed(link)
    assert link.is_symlink()
    assert target.read_bytes() == "new \r\n é".encode()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(target.parent.iterdir()) == [target]


def test_a_missing_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """With the directories that it needs."""
    file = tmp_path / "a" / "b" / "f"
    assert changed(file)
    assert file.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_what_is_right_is_not_written(tmp_path: Path) -> None:
    """Its time stays, and a missing one is not made for nothing."""
    file = tmp_path / "f"
    file.write_text("new", encoding="utf-8")
    os.utime(file, (1, 1))
    assert not changed(file)
    assert file.stat().st_mtime == 1
    assert not change(tmp_path / "none", lambda text: text, name="f", by_hand="")
    assert not (tmp_path / "none").exists()


def test_a_change_in_between_is_kept(tmp_path: Path) -> None:
    """The owner may write its file at the same time."""
    file = tmp_path / "f"
    file.write_text("old", encoding="utf-8")
    seen = []

    def edit(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:
            file.write_text("old and more", encoding="utf-8")
        return text.replace("old", "new")

    assert change(file, edit, name="f", by_hand="")
    assert file.read_text(encoding="utf-8") == "new and more"


def test_a_file_that_never_rests_is_left_alone(tmp_path: Path) -> None:
    """And the person is asked to try again."""
    file = tmp_path / "f"
    file.write_text("0", encoding="utf-8")

    def edit(text: str) -> str:
        file.write_text(str(int(text) + 1), encoding="utf-8")
        return "changed"

    with pytest.raises(Failed) as failed:
        change(file, edit, name="f", by_hand="")
    assert failed.value.exit_code == 75
    assert file.read_text(encoding="utf-8").isdecimal()


def refuses(_text: str) -> str:
    raise NotEditable("it has comments")


def test_what_cannot_be_changed_is_left_alone(tmp_path: Path) -> None:
    """With the reason, and what to do instead."""
    file = tmp_path / "f"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(Failed, match=r"~/f was left alone: it has comments\.") as failed:
        change(file, refuses, name="~/f", by_hand="Do it yourself.")
    assert failed.value.hint == "Do it yourself."
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(Failed, match="~/f was left alone: 'utf-8' codec"):
        changed(file)
    assert file.read_bytes() == b"\xff\xfe"


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    """A directory, a FIFO that nobody writes to, a link in a circle, a file in the place of a directory."""
    fifo, circle, file = tmp_path / "fifo", tmp_path / "circle", tmp_path / "f"
    os.mkfifo(fifo)
    circle.symlink_to("circle")
    file.write_text("x", encoding="utf-8")
    for odd in (tmp_path, fifo, circle, file / "f"):
        with pytest.raises(Failed) as failed:
            changed(odd)
        assert failed.value.hint == "Do it yourself."


@pytest.mark.parametrize("beyond", [0, 1])
def test_what_is_far_too_large_is_not_read(tmp_path: Path, beyond: int) -> None:
    """A file of another program is read into memory: one of gigabytes is no configuration."""
    file = tmp_path / "f"
    with file.open("wb") as stream:
        stream.truncate(shipped("memd.ctl.integrations.foreign_file._MOST_BYTES") + beyond)
    # What is small enough to be read is refused by who edits it.
    with pytest.raises(Failed, match="is too large to be a configuration" if beyond else "it has comments"):
        change(file, refuses, name="~/f", by_hand="Do it yourself.")
