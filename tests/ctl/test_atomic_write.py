"""Files are written at once or not at all, those of other programs too."""

import errno
import os
import resource
import stat
import struct
import sys
from pathlib import Path

import pytest

from memd.ctl import atomic_write
from memd.ctl.atomic_write import NotWritten, Overtaken, change_file, write_text
from memd.ctl.failures import Failed
from memd.ctl.integrations.json_edit import NotEditable
from tests.bounds import shipped


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
    with pytest.raises(NotWritten, match="is no UTF-8"):
        write_text(file, "\udcff")
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    assert file.read_text(encoding="utf-8") == "old"


def _acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as the kernel has it: (tag, permissions, id) each."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


_NOBODY = 0xFFFFFFFF
_USER_4711_READS = ((1, 6, _NOBODY), (2, 4, 4711), (4, 0, _NOBODY), (0x10, 4, _NOBODY), (0x20, 0, _NOBODY))


@pytest.mark.skipif(sys.platform != "linux", reason="lists of POSIX.1e")
def test_a_file_keeps_its_access_control_list(tmp_path: Path) -> None:
    """Without it the group would get what is meant for those whom the list names."""
    file = tmp_path / "settings.json"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o600)
    acl = _acl(*_USER_4711_READS)
    os.setxattr(file, "system.posix_acl_access", acl)
    assert _mode(file) == 0o640
    write_text(file, "new")
    assert (file.read_text(encoding="utf-8"), _mode(file)) == ("new", 0o640)
    assert os.getxattr(file, "system.posix_acl_access") == acl


@pytest.mark.skipif(sys.platform != "linux", reason="lists of POSIX.1e")
def test_a_list_that_cannot_be_kept_opens_nothing_to_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loses what it had rather than giving it to others."""
    file = tmp_path / "settings.json"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o600)
    os.setxattr(file, "system.posix_acl_access", _acl(*_USER_4711_READS))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    monkeypatch.setattr(os, "setxattr", refuse)
    write_text(file, "new")
    assert _mode(file) == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="lists of POSIX.1e")
def test_a_directory_gives_a_file_no_list_of_its_own(tmp_path: Path) -> None:
    """A file without a list has none afterwards."""
    file = tmp_path / "settings.json"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o644)
    os.setxattr(tmp_path, "system.posix_acl_default", _acl(*_USER_4711_READS))
    write_text(file, "new")
    assert _mode(file) == 0o644
    assert "system.posix_acl_access" not in os.listxattr(file)


@pytest.mark.parametrize(
    ("there", "over", "ok"),
    [(b"old", b"old", True), (b"x", b"old", False), (None, b"", True), (None, b"a", False), (b"", b"", True)],
)
def test_only_what_was_read_is_replaced(tmp_path: Path, there: bytes | None, over: bytes, ok: bool) -> None:
    """Whatever somebody else has written meanwhile stays."""
    file = tmp_path / "f"
    if there is not None:
        file.write_bytes(there)
    if ok:
        write_text(file, "new", over=over)
        assert file.read_bytes() == b"new"
        return
    with pytest.raises(Overtaken):
        write_text(file, "new", over=over)
    assert (file.read_bytes() if file.exists() else None) == there
    assert len(list(tmp_path.iterdir())) == (0 if there is None else 1)


def _replace_as_another_program(file: Path, text: bytes) -> None:
    other = file.with_name("other")
    other.write_bytes(text)
    other.replace(file)


@pytest.mark.parametrize("there", [b"old", b"", None])
@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_change_after_the_last_check_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bytes | None, *, can_exchange: bool
) -> None:
    """Where the system can exchange two files, or nothing was there; elsewhere the last moment is too late for it."""
    file, required = tmp_path / "f", atomic_write.require
    if there is not None:
        file.write_bytes(there)
    if not can_exchange:
        monkeypatch.setattr(atomic_write, "exchange", lambda *_: False)

    def require(target: Path, over: bytes) -> None:
        required(target, over)
        _replace_as_another_program(file, b"theirs")

    monkeypatch.setattr(atomic_write, "require", require)
    if can_exchange or not there:
        with pytest.raises(Overtaken):
            write_text(file, "new", over=there or b"")
        assert file.read_bytes() == b"theirs"
    else:
        write_text(file, "new", over=there)
        assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_replaces_one_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    """A hard link is refused where there is a file; without hard links the last moment is too late for it."""
    file, linked = tmp_path / "f", os.link

    def link(made: Path, target: Path) -> None:
        if not links:
            raise OSError(errno.EPERM, "not supported")
        _replace_as_another_program(file, b"theirs")
        linked(made, target)

    monkeypatch.setattr(os, "link", link)
    if links:
        with pytest.raises(Overtaken):
            write_text(file, "new", over=b"")
        assert file.read_bytes() == b"theirs"
    else:
        write_text(file, "new", over=b"")
        assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_of_two_changes_meanwhile_the_newest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the second comes while the first is put back."""
    file, exchanged, required = tmp_path / "f", atomic_write.exchange, atomic_write.require
    file.write_bytes(b"old")
    changes = iter([b"first", None, b"second", None])

    def change() -> None:
        text = next(changes, None)
        if text is not None:
            _replace_as_another_program(file, text)

    def require(target: Path, over: bytes) -> None:
        required(target, over)
        change()

    def exchange(one: Path, other: Path) -> bool:
        change()
        return exchanged(one, other)

    monkeypatch.setattr(atomic_write, "require", require)
    monkeypatch.setattr(atomic_write, "exchange", exchange)
    with pytest.raises(Overtaken):
        write_text(file, "new", over=b"old")
    assert file.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [file]


def test_a_change_in_the_moment_before_the_replacement_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the new text is being brought to the disk, which takes the longest."""
    file = tmp_path / "f"
    file.write_text("old", encoding="utf-8")
    synced = os.fsync

    def sync(descriptor: int) -> None:
        synced(descriptor)
        other = tmp_path / "other"
        other.write_text("theirs", encoding="utf-8")
        other.replace(file)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(Overtaken):
        write_text(file, "new", over=b"old")
    assert file.read_text(encoding="utf-8") == "theirs"


def changed(file: Path, old: str = "old", new: str = "new") -> bool:
    """Replace a word in a file."""
    return change_file(
        file, lambda text: text.replace(old, new) or new, name="~/f", by_hand="Do it yourself."
    )


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
    assert not change_file(tmp_path / "none", lambda text: text, name="f", by_hand="")
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

    assert change_file(file, edit, name="f", by_hand="")
    assert file.read_text(encoding="utf-8") == "new and more"


def test_a_file_that_never_rests_is_left_alone(tmp_path: Path) -> None:
    """After some attempts; the person is asked to try again."""
    file = tmp_path / "f"
    file.write_text("0", encoding="utf-8")

    def edit(text: str) -> str:
        file.write_text(str(int(text) + 1), encoding="utf-8")
        return "changed"

    with pytest.raises(Failed) as failed:
        change_file(file, edit, name="f", by_hand="")
    assert failed.value.exit_code == 75
    assert file.read_text(encoding="utf-8") == str(shipped("memd.ctl.atomic_write._TIMES"))


def refuses(_text: str) -> str:
    raise NotEditable("it has comments")


def test_what_cannot_be_changed_is_left_alone(tmp_path: Path) -> None:
    """With the reason, and what to do instead."""
    file = tmp_path / "f"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(Failed, match=r"~/f was left alone: it has comments\.") as failed:
        change_file(file, refuses, name="~/f", by_hand="Do it yourself.")
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
        stream.truncate(shipped("memd.ctl.atomic_write._MOST_BYTES") + beyond)
    # What is small enough to be read is refused by who edits it.
    with pytest.raises(Failed, match="is too large to be a configuration" if beyond else "it has comments"):
        change_file(file, refuses, name="~/f", by_hand="Do it yourself.")
