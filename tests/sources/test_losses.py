"""Which indexed files are gone for good."""

import os
import shutil
from pathlib import Path

import pytest

from memd.model import FoundFile, Kind, Stamp
from memd.paths import Root, SingleFile, Tree, Workspace
from memd.sources.losses import anchors_after, gone, lost_roots
from memd.sources.scan import Anchor, Scan, scan

DISK = Anchor(device=2, inode=2, empty=False)
MOUNT_POINT = Anchor(device=1, inode=77, empty=True)


def seen(
    *found: str,
    blind: tuple[str, ...] = (),
    anchors: dict[str, Anchor] | None = None,
    looked: tuple[str, ...] | None = None,
) -> Scan:
    stamp = Stamp(size=1, mtime_ns=1, inode=1)
    return Scan(
        found={name: FoundFile(name, Path("/ws") / name, Kind.NOTE, stamp) for name in found},
        skipped={},
        missing_roots=frozenset(),
        blind=frozenset(blind),
        anchors=anchors or {},
        looked=None if looked is None else frozenset(looked),
    )


def test_what_was_not_found_is_gone() -> None:
    """A full scan with open eyes misses what was deleted, and what is configured no longer."""
    names = ["memory/a.md", "memory/b.md", "/once/c.md"]
    assert gone(names, {}, seen("memory/a.md")) == {"memory/b.md", "/once/c.md"}


def test_a_partial_scan_misses_only_where_it_looked() -> None:
    """Where the scan did not look, nothing is gone."""
    names = ["memory/a.md", "memory/sub/b.md", "memory/subway.md"]
    assert gone(names, {}, seen(looked=("memory/sub",))) == {"memory/sub/b.md"}


def test_nothing_is_gone_where_the_scan_was_blind() -> None:
    """What could not be looked at stays."""
    names = ["memory/closed/a.md", "memory/b.md", "/away/c.md"]
    assert gone(names, {}, seen(blind=("memory/closed", "/away"))) == {"memory/b.md"}


@pytest.mark.parametrize(
    ("before", "now", "lost"),
    [
        (None, MOUNT_POINT, True),
        (None, DISK, False),
        (DISK, MOUNT_POINT, True),
        (DISK, Anchor(device=2, inode=2, empty=True), False),
        (DISK, DISK, False),
        (DISK, Anchor(device=1, inode=77, empty=False), True),
        (DISK, Anchor(device=2, inode=99, empty=False), False),
        (DISK, Anchor(device=2, inode=99, empty=True), True),
    ],
    ids=[
        "empty after a restart",
        "not empty after a restart",
        "unmounted",
        "emptied by a person",
        "others left by a person",
        "something else on another device",
        "made anew with other files in it",
        "made anew and empty",
    ],
)
@pytest.mark.parametrize("prefix", ["", "memory", "/vault"])
def test_lost(prefix: str, before: Anchor | None, now: Anchor, lost: bool) -> None:
    """All files of a directory gone at once count as lost when that may be for want of its disk."""
    names = ["/vault/a.md" if prefix == "/vault" else "memory/a.md"]
    known = {} if before is None else {prefix: before}
    scan_now = seen(anchors={prefix: now})
    assert lost_roots(names, known, scan_now) == ({prefix} if lost else set())
    assert gone(names, known, scan_now) == (set() if lost else set(names))


def test_one_file_left_shows_that_the_disk_is_there() -> None:
    """Where anything is still found, the rest was deleted."""
    scan_now = seen("memory/a.md", anchors={"": Anchor(device=9, inode=9, empty=False)})
    assert not lost_roots(["memory/a.md", "memory/b.md"], {"": DISK}, scan_now)


def test_nothing_can_be_lost_of_an_empty_index() -> None:
    """A new directory with nothing in it has lost nothing."""
    assert not lost_roots([], {}, seen(anchors={"": MOUNT_POINT}))


def test_memory_may_be_a_disk_of_its_own() -> None:
    """With memory/ unmounted its files stay, while a curated file that was deleted goes."""
    anchors = {"": Anchor(device=1, inode=5, empty=False), "memory": MOUNT_POINT}
    before = {"": Anchor(device=1, inode=5, empty=False), "memory": DISK}
    names = ["MEMORY.md", "USER.md", "memory/a.md"]
    assert gone(names, before, seen("MEMORY.md", anchors=anchors)) == {"USER.md"}


def test_anchors_of_lost_roots_are_kept() -> None:
    """A mount point is never taken for the disk it waits for, so the loss is still seen the next time."""
    scan_now = seen(anchors={"": MOUNT_POINT, "/vault": MOUNT_POINT})
    assert anchors_after({"": DISK}, scan_now, frozenset({""})) == {"": DISK, "/vault": MOUNT_POINT}
    assert anchors_after({}, scan_now, frozenset({""})) == {"/vault": MOUNT_POINT}


def test_real_directories(tmp_path: Path) -> None:
    """On a real disk: emptied by hand is gone, taken away or exchanged for nothing stays."""
    base = Path(os.path.realpath(tmp_path))
    for name in ("emptied", "moved", "exchanged", "single"):
        (base / name).mkdir()
        (base / name / "a.md").touch()
    (base / "single" / "b.md").touch()
    roots: list[Root] = [
        Workspace(base / "ws"),
        Tree(base / "emptied"),
        Tree(base / "moved"),
        Tree(base / "exchanged"),
        SingleFile(base / "single", "a.md"),
    ]
    first = scan(roots, max_bytes=10)
    names = [*first.found, "memory/of-a-missing-workspace.md"]
    (base / "emptied" / "a.md").unlink()
    (base / "moved").rename(base / "elsewhere")
    (base / "exchanged").rename(base / "aside")
    (base / "exchanged").mkdir()
    (base / "single" / "a.md").unlink()
    before = anchors_after({}, first, frozenset())
    second = scan(roots, max_bytes=10)
    assert gone(names, before, second) == {str(base / "emptied" / "a.md"), str(base / "single" / "a.md")}
    assert lost_roots(names, before, second) == {str(base / "exchanged")}
    shutil.rmtree(base / "aside")


OTHER_DISK = Anchor(device=3, inode=2, empty=False, mounted=True)
MOUNTED = Anchor(device=2, inode=2, empty=False, mounted=True)
PLAIN = Anchor(device=1, inode=77, empty=False)


@pytest.mark.parametrize(
    ("prefix", "now", "found", "kept"),
    [
        ("memory/disk", None, (), True),
        ("memory/disk", None, ("memory/disk/readme.md", "memory/b.md"), True),
        ("memory", PLAIN, ("memory/readme.md",), True),
        ("memory/disk", MOUNTED, (), False),
        ("memory/disk", MOUNTED, ("memory/disk/other.md",), False),
        ("memory/disk", OTHER_DISK, ("memory/disk/other.md",), False),
        ("memory/disk", OTHER_DISK, (), True),
    ],
    ids=[
        "not there",
        "others in its place",
        "memory itself",
        "emptied",
        "deleted",
        "deleted while it was away",
        "exchanged for another",
    ],
)
def test_a_disk_inside_memory(prefix: str, now: Anchor | None, found: tuple[str, ...], kept: bool) -> None:
    """What lay on a disk stays while it is not mounted, whatever shows in its place, and goes when it is missed on it."""
    note = f"{prefix}/a.md"
    scan_now = seen(*found, anchors={} if now is None else {prefix: now})
    before = {"": PLAIN, prefix: MOUNTED}
    assert (note not in gone([note, *found], before, scan_now)) is kept
    lost = lost_roots([note, *found], before, scan_now)
    assert lost == ({prefix} if kept else set())
    expected = MOUNTED if kept else now
    assert anchors_after(before, scan_now, lost)[prefix] == expected


def test_a_partial_scan_below_an_unmounted_disk() -> None:
    """A look at one file of a disk that is gone does not take the file for deleted; one elsewhere says nothing of it."""
    before = {"": PLAIN, "memory/disk": MOUNTED}
    names = ["memory/disk/a.md", "memory/b.md"]
    assert gone(names, before, seen(looked=("memory/disk/a.md",))) == set()
    assert gone(names, before, seen(looked=("memory/b.md",))) == {"memory/b.md"}
    assert not lost_roots(names, before, seen(looked=("memory/b.md",)))


@pytest.mark.parametrize(
    ("looked", "now", "lost", "after"),
    [
        (("memory/new.md",), PLAIN, (), MOUNTED),
        (("memory/new.md",), MOUNTED, (), MOUNTED),
        (None, PLAIN, (), PLAIN),
        (None, PLAIN, ("memory",), MOUNTED),
        (None, OTHER_DISK, (), OTHER_DISK),
    ],
    ids=["a few places", "a few places on the disk", "nothing is missed", "lost", "another disk"],
)
def test_what_a_mount_point_is_compared_with(
    looked: tuple[str, ...] | None, now: Anchor, lost: tuple[str, ...], after: Anchor
) -> None:
    """A look at a few places never takes a disk for gone; one at everything does, if nothing of it is missed."""
    scan_now = seen("memory/new.md", anchors={"memory": now}, looked=looked)
    assert anchors_after({"memory": MOUNTED}, scan_now, frozenset(lost)) == {"memory": after}


def test_what_a_mount_point_without_notes_is_compared_with() -> None:
    """A mount point below a root is forgotten with its last note, unless nobody could look there."""
    before = {"memory/disk": MOUNTED, "/vault": PLAIN, "/away": MOUNTED}
    assert anchors_after(before, seen(blind=("/away",)), frozenset()) == {"/vault": PLAIN, "/away": MOUNTED}


def test_a_few_places_tell_of_a_new_disk() -> None:
    """A disk that a look at a few places met first is known as one from then on."""
    scan_now = seen(anchors={"memory": MOUNTED, "": PLAIN}, looked=("memory/a.md",))
    assert anchors_after({"memory": PLAIN, "": DISK}, scan_now, frozenset()) == {"memory": MOUNTED, "": DISK}
