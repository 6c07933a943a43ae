"""Which file systems memory lies on."""

import errno
import os
import select
import sys
from pathlib import Path

import pytest

from memd.text.memory_paths import ExtraDirectory, Root, SingleFile, Workspace, exclude_of
from memd.watch.mounts import MountEvents, concerning, mounted, parsed, read_mounts, unseen
from tests.descriptors import open_descriptors

DISK = "20 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw"
ROOTS: tuple[Root, ...] = (
    Workspace(Path("/home/me/ws")),
    ExtraDirectory(Path("/vault"), exclude_of(["closed/"])),
    SingleFile(Path("/home/me"), "todo.md"),
)


def line(number: int, parent: int, point: str, kind: str = "nfs4", source: str = "nas:/notes") -> str:
    return f"{number} {parent} 0:{number} / {point} rw,relatime - {kind} {source} rw"


def kinds(*lines: str, roots: tuple[Root, ...] = ROOTS) -> dict[str, str]:
    concerned = concerning(roots, parsed("\n".join([DISK, *lines])))
    return {str(place): mount.kind for place, mount in concerned.items()}


LOCAL = {"/home/me/ws": "ext4", "/vault": "ext4", "/home/me/todo.md": "ext4"}


@pytest.mark.parametrize(
    ("lines", "concerned"),
    [
        ([], LOCAL),
        ([line(21, 20, "/home", "nfs")], LOCAL | {"/home/me/ws": "nfs", "/home/me/todo.md": "nfs"}),
        ([line(21, 20, "/vault", "cifs")], LOCAL | {"/vault": "cifs"}),
        ([line(21, 20, "/vault/a/b", "9p")], LOCAL | {"/vault/a/b": "9p"}),
        ([line(21, 20, "/home/me/ws/memory/disk", "9p")], LOCAL | {"/home/me/ws/memory/disk": "9p"}),
        ([line(21, 20, "/home/me/ws/src", "nfs"), line(22, 20, "/vaults"), line(23, 20, "/vault/.hidden")], LOCAL),
        ([line(21, 20, "/vault/closed"), line(22, 20, "/home/me/sub")], LOCAL),
        ([line(21, 20, "/vault", "cifs"), line(22, 21, "/vault", "xfs")], LOCAL | {"/vault": "xfs"}),
        ([line(21, 20, "/vault/a", "cifs"), line(22, 20, "/vault", "xfs")], LOCAL | {"/vault": "xfs"}),
        ([line(21, 20, "/home/me/todo.md", "xfs")], LOCAL | {"/home/me/todo.md": "xfs"}),
    ],
    ids=["one disk", "above two", "at a root", "below a root", "below memory", "beside", "not entered", "stacked", "hidden", "file"],
)  # fmt: skip
def test_concerning(lines: list[str], concerned: dict[str, str]) -> None:
    """A root is on the mount that shows there; below it, mounts count where notes can lie and nothing hides them."""
    assert kinds(*lines) == concerned


def test_a_process_with_a_root_of_its_own() -> None:
    """In a container the mount at the top hangs on one that is not listed."""
    text = "\n".join(
        ["600 500 0:50 / / rw - overlay overlay rw", line(601, 600, "/vault", "virtiofs", "share")]
    )
    concerned = concerning([ExtraDirectory(Path("/vault"))], parsed(text))
    assert [mount.kind for mount in concerned.values()] == ["virtiofs"]


def test_spaces_in_names() -> None:
    """Names with spaces, backslashes and bytes that are no UTF-8 are as the disk has them."""
    text = line(21, 20, r"/mnt/my\040notes\134\011x" + "\udcff", "cifs", r"//nas/my\040share")
    (mount,) = parsed(text)
    assert mount.point == Path("/mnt/my notes\\\tx\udcff")
    assert mount.source == "//nas/my share"


@pytest.mark.parametrize(
    "text", ["", "nonsense", "a b c d e - nfs x", "1 2 3 - ext4 x", "1 2 0:3 / /x rw no dash"]
)
def test_lines_that_are_none(text: str) -> None:
    """What cannot be understood is passed over."""
    assert parsed(text) == ()


@pytest.mark.parametrize(
    ("kind", "is_remote"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.sshfs", "fuse.rclone", "ceph")),
        *((kind, True) for kind in ("virtiofs", "vboxsf", "fuse.vmhgfs-fuse", "davfs", "fakeowner")),
        *((kind, False) for kind in ("ext4", "btrfs", "xfs", "tmpfs", "overlay", "fuseblk", "vfat", "zfs", "autofs")),
    ],
)  # fmt: skip
def test_what_is_remote(kind: str, is_remote: bool) -> None:
    """Where another machine, a host or a program answers for a file system, changes come without events."""
    (mount,) = parsed(line(21, 20, "/vault", kind))
    assert mount.is_remote is is_remote


def test_unseen() -> None:
    """The places to look at are whole roots, and mounts below roots that are not to be looked at as a whole."""
    mounts = parsed("\n".join([
        DISK,
        line(21, 20, "/home/me/ws", "nfs"),
        line(22, 21, "/home/me/ws/memory/phone", "fuse.sshfs"),
        line(23, 20, "/vault/nas", "cifs"),
        line(24, 20, "/vault/disk", "ext4"),
    ]))  # fmt: skip
    assert {str(place) for place in unseen(ROOTS, concerning(ROOTS, mounts))} == {"/home/me/ws", "/vault/nas"}


def test_a_local_disk_on_a_remote_root_is_looked_at_with_it() -> None:
    """Roots are looked at one by one: what lies in two of them is looked at for both."""
    roots = (ExtraDirectory(Path("/vault")), ExtraDirectory(Path("/vault/nas/notes")))
    mounts = parsed("\n".join([DISK, line(21, 20, "/vault/nas")]))
    assert set(unseen(roots, concerning(roots, mounts))) == {Path("/vault/nas"), Path("/vault/nas/notes")}


def test_a_mount_that_hangs_on_itself_is_at_the_top() -> None:
    """As the root of a system in memory does; what hangs on it is no other top."""
    text = "\n".join(
        ["1 1 0:1 / / rw - rootfs none rw", line(2, 1, "/vault", "xfs"), line(3, 2, "/vault/nas", "nfs")]
    )
    roots = [ExtraDirectory(Path("/vault")), ExtraDirectory(Path("/other"))]
    concerned = concerning(roots, parsed(text))
    assert {str(place): mount.kind for place, mount in concerned.items()} == {
        "/vault": "xfs",
        "/vault/nas": "nfs",
        "/other": "rootfs",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has mountinfo")
def test_the_events_of_mounts_are_closed_once(tmp_path: Path) -> None:
    """What is closed leaves no descriptor open, and closes none of another file."""
    before = open_descriptors()
    events = MountEvents()
    assert len(open_descriptors()) == len(before) + 2
    assert events.wakes is not None
    assert not events.take()
    events.acknowledge()
    assert events.take()
    assert not events.take()
    events.close()
    assert open_descriptors() == before
    with (tmp_path / "other").open("w") as other:
        events.close()
        other.write("still open")
    assert not events.take()
    for file in (tmp_path / "none", tmp_path / "other"):  # of the other one the system tells no events
        nowhere = MountEvents(file)
        assert not nowhere.have_changed()
        assert nowhere.wakes is None
        nowhere.close()
    assert open_descriptors() == before


def test_this_machine() -> None:
    """The mounts of this very process are found, and a system that tells of none is none's trouble."""
    assert "/" in {str(mount.point) for mount in parsed(read_mounts())}
    assert read_mounts(Path("/nonexistent/mountinfo")) == ""


def test_on_which_places_something_is_mounted() -> None:
    """Not what lies below a mount, nor a mount point that another mount hides."""
    mounts = parsed("\n".join([DISK, line(21, 20, "/a/b"), line(22, 20, "/c/d"), line(23, 20, "/c")]))
    places = map(Path, ("/a", "/a/b", "/a/b/c", "/c", "/c/d", "/"))
    assert mounted(places, mounts) == {Path("/a/b"), Path("/c"), Path("/")}
    assert mounted([Path("/a")], ()) == frozenset()


@pytest.mark.parametrize("why", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOENT, errno.EIO])
def test_mounts_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, why: int) -> None:
    """A process that can read nothing just now does not say that there are none."""

    def refused(*_: object) -> str:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(Path, "read_text", refused)
    if why in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
        with pytest.raises(OSError, match=os.strerror(why)):
            read_mounts()
    else:
        assert read_mounts() == ""


def test_a_mount_is_told_until_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells each change once; whoever only asks does not take it away."""
    told = [[(0, 0)], [], [], [(0, 0)]]
    asked: list[tuple[int, ...]] = []

    class Poll:
        def register(self, *what: int) -> None:
            asked.append(what)

        def poll(self, timeout: int) -> list[tuple[int, int]]:
            asked.append((timeout,))
            return told.pop(0)

    monkeypatch.setattr("memd.watch.mounts.select.poll", Poll)
    (tmp_path / "mountinfo").touch()
    events = MountEvents(tmp_path / "mountinfo")
    assert events.have_changed()
    assert events.have_changed()
    assert events.take()
    assert not events.have_changed()
    assert not events.take()
    assert events.take()
    assert asked[0][1:] == (select.POLLPRI,)
    assert asked[1:] == [(0,)] * 4
    events.close()
