"""Which indexed files are gone for good."""

import os
from pathlib import Path

import pytest

from memd.domain_types import FoundFile, Kind, Stamp
from memd.sources.scan import scan
from memd.sources.scan_result import BlindReason, MountPoint, Scan
from memd.sources.vanished import kept, mounts_after, still_covered
from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, SingleFile, Workspace, exclude_of

DISK = MountPoint("/ws/memory/disk", "memory/disk")
VAULT = MountPoint("/vault", "/vault")
NAMES = ["MEMORY.md", "memory/a.md", "memory/disk/a.md", "/vault/a.md", "sessions/x/1.jsonl"]


def seen(
    *found: str,
    blind: dict[str, BlindReason] | None = None,
    mounts: tuple[MountPoint, ...] = (),
    looked: tuple[str, ...] | None = None,
) -> Scan:
    stamp = Stamp(size=1, mtime_ns=1, inode=1)
    return Scan(
        found={name: FoundFile(name, f"/ws/{name}", Kind.NOTE, stamp) for name in found},
        skipped={},
        blind=blind or {},
        mounts=frozenset(mounts),
        looked=None if looked is None else frozenset(looked),
    )


@pytest.mark.parametrize("force", [False, True])
def test_what_was_not_found_is_gone(force: bool) -> None:
    """A scan with open eyes misses what was deleted, and what is configured no longer: be it one file or all of them."""
    assert kept(NAMES, [], seen(), force=force) == {}
    assert kept(NAMES, [DISK, VAULT], seen(mounts=(DISK, VAULT)), force=force) == {}


@pytest.mark.parametrize(
    ("blind", "names", "forced"),
    [
        ({"": BlindReason.ABSENT}, NAMES[:3], []),
        ({"": BlindReason.CLOSED}, NAMES[:3], NAMES[:3]),
        ({"memory/disk": BlindReason.CLOSED}, NAMES[2:3], NAMES[2:3]),
        ({"/vault": BlindReason.ABSENT}, NAMES[3:4], []),
        ({"sessions/x": BlindReason.ABSENT}, NAMES[4:], []),
        ({"": BlindReason.ABSENT, "memory": BlindReason.CLOSED}, NAMES[:3], NAMES[1:3]),
    ],
)
def test_nothing_is_gone_where_the_scan_was_blind(
    blind: dict[str, BlindReason], names: list[str], forced: list[str]
) -> None:
    """What could not be looked at stays; by force only where somebody else keeps a user from looking."""
    assert list(kept(NAMES, [], seen(blind=blind))) == names
    assert list(kept(NAMES, [], seen(blind=blind), force=True)) == forced


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("mounts", "names"), [((DISK,), NAMES[2:3]), ((VAULT,), NAMES[3:4]), ((DISK, VAULT), NAMES[2:4])]
)
def test_what_lay_on_a_disk_that_is_not_mounted_stays(
    mounts: tuple[MountPoint, ...], names: list[str], force: bool
) -> None:
    """Whatever shows in its place, and whether its mount point is there or not."""
    assert kept(NAMES, mounts, seen(), force=force) == dict.fromkeys(names, BlindReason.UNMOUNTED)
    others = seen("memory/disk/b.md", "/vault/b.md", blind={"/vault": BlindReason.ABSENT}, mounts=())
    assert {name for name, why in kept(NAMES, mounts, others).items() if why is BlindReason.UNMOUNTED} == set(
        names
    )


def test_a_partial_scan_misses_only_where_it_looked() -> None:
    """Where it did not look nothing is gone, and nothing is kept either."""
    assert kept(NAMES, [DISK], seen(looked=("memory/a.md",))) == {}
    assert list(kept(NAMES, [DISK], seen(looked=("memory/disk/a.md",)))) == ["memory/disk/a.md"]
    assert kept(NAMES, [DISK], seen(looked=("memory/disk/a.md",), mounts=(DISK,))) == {}


@pytest.mark.parametrize(
    ("scan_now", "still", "after"),
    [
        (seen(), ["memory/disk/a.md"], {DISK}),
        (seen(), ["memory/a.md"], set()),
        (seen(), [], set()),
        (seen(looked=("memory/a.md",)), [], {DISK}),
        (seen(mounts=(VAULT,)), ["memory/disk/a.md"], {DISK, VAULT}),
        (seen(mounts=(VAULT,), looked=("/vault/a.md",)), [], {DISK, VAULT}),
        (seen(mounts=(DISK,)), [], {DISK}),
    ],
)
def test_a_mount_point_is_expected_back_as_long_as_a_file_waits_for_it(
    scan_now: Scan, still: list[str], after: set[MountPoint]
) -> None:
    """Only a scan of everything can tell that none does."""
    assert mounts_after([DISK], scan_now, still) == after


@pytest.mark.parametrize(
    ("root", "covered"),
    [
        (Workspace(Path("/ws")), {DISK}),
        (Workspace(Path("/ws"), exclude_of(["memory/disk/"])), set()),
        (Workspace(Path("/other")), set()),
        (ExtraDirectory(Path("/vault")), {VAULT}),
        (SingleFile(Path("/vault"), "a.md"), set()),
        (SessionPaths(Path("/vault"), "x", "plain"), set()),
    ],
)
def test_who_changed_the_configuration_waits_for_no_disk(root: Root, covered: set[MountPoint]) -> None:
    """What no root leads to any more is not kept for the sake of a mount point."""
    assert still_covered([DISK, VAULT], [root]) == covered


def test_real_directories(tmp_path: Path) -> None:
    """On a real disk: emptied, exchanged or made anew is gone; taken away altogether stays."""
    base = Path(os.path.realpath(tmp_path))
    for name in ("emptied", "moved", "exchanged", "single"):
        (base / name).mkdir()
        (base / name / "a.md").touch()
    (base / "single" / "b.md").touch()
    roots: list[Root] = [
        Workspace(base / "ws"),
        ExtraDirectory(base / "emptied"),
        ExtraDirectory(base / "moved"),
        ExtraDirectory(base / "exchanged"),
        SingleFile(base / "single", "a.md"),
    ]
    first = scan(roots, max_bytes=10)
    names = [*first.found, "memory/of-a-missing-workspace.md"]
    (base / "emptied" / "a.md").unlink()
    (base / "moved").rename(base / "elsewhere")
    (base / "exchanged").rename(base / "aside")
    (base / "exchanged").mkdir()
    (base / "single" / "a.md").unlink()
    second = scan(roots, max_bytes=10)
    assert kept(names, mounts_after([], first, []), second) == {
        str(base / "moved" / "a.md"): BlindReason.ABSENT,
        "memory/of-a-missing-workspace.md": BlindReason.ABSENT,
    }
