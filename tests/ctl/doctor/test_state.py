"""Whether the state directory can hold what memd keeps in it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.ctl.doctor import state
from memd.ctl.doctor.state import StateDirectory
from memd.inspection.facts import Disk
from tests.ctl.doctor.context import CONTEXT, STATE, by_name
from tests.otheruser import as_other_user, shared_directory

_GB = 1 << 30
_GOOD = StateDirectory(
    path=STATE,
    exists=True,
    above=STATE,
    owner=1000,
    free_bytes=9 * _GB,
    temporary=Path("/tmp"),
    temporary_bytes=_GB,
)
_DISK = Disk(kind="ext4", point="/", is_remote=False)


@pytest.mark.parametrize(
    ("changed", "bad"),
    [
        ({}, set()),
        ({"exists": False, "above": STATE.parent}, set()),
        ({"exists": False, "above": STATE.parent, "is_writable": False}, {"directory"}),
        ({"exists": False, "above": STATE.parent, "is_directory": False}, {"directory"}),
        ({"is_directory": False}, {"directory"}),
        ({"mode": 0o755}, {"directory"}),
        ({"owner": 0}, {"directory"}),
        ({"is_writable": False}, {"directory"}),
        ({"free_bytes": 1 << 20}, {"space"}),
        ({"largest_bytes": 5 * _GB, "temporary_bytes": 9 * _GB}, {"space"}),
        ({"largest_bytes": 2 * _GB}, {"temporary"}),
        ({"temporary": None, "temporary_bytes": 0}, {"temporary"}),
        ({"log_bytes": _GB}, {"log"}),
    ],
)
def test_what_is_wrong_is_told_under_its_name(changed: dict[str, Any], bad: set[str]) -> None:
    """And nothing else is."""
    found = by_name(state.check(msgspec.structs.replace(_GOOD, **changed), _DISK, CONTEXT))
    assert {name.removeprefix("state.") for name, one in found.items() if not one.ok} == bad


@pytest.mark.parametrize(
    ("kind", "is_remote", "ok"),
    [
        ("ext4", False, True),
        ("tmpfs", False, True),
        ("nfs4", True, False),
        ("9p", True, False),
        ("fuse.sshfs", True, False),
        ("fuse.gocryptfs", True, True),
    ],
)
def test_a_network_file_system_is_no_place_for_it(kind: str, *, is_remote: bool, ok: bool) -> None:
    """SQLite's log needs memory that is shared; what a program of this machine answers for is fine."""
    found = by_name(state.check(_GOOD, Disk(kind=kind, point="/x", is_remote=is_remote), CONTEXT))
    assert found["state.file_system"].ok is ok
    assert kind in found["state.file_system"].detail
    unknown = by_name(state.check(_GOOD, None, CONTEXT))["state.file_system"]
    assert unknown.detail.startswith("not checked")


def test_a_state_directory_is_looked_at_without_a_trace(tmp_path: Path) -> None:
    """One that is there, with its sizes, and one that is not."""
    place = tmp_path / "state"
    (place / "agents").mkdir(parents=True)
    place.chmod(0o750)
    (place / "agents" / "a.sqlite").write_bytes(b"x" * 10)
    (place / "agents" / "a.sqlite-wal").write_bytes(b"x" * 5)
    (place / "agents" / "b.sqlite").write_bytes(b"x" * 12)
    (place / "memd.log").write_bytes(b"x" * 7)
    found = state.look(_context(place))
    assert (found.exists, found.mode, found.largest_bytes, found.log_bytes) == (True, 0o750, 15, 7)
    missing = state.look(_context(tmp_path / "no" / "such"))
    assert (missing.exists, missing.above, missing.is_writable) == (False, tmp_path, True)
    assert not (tmp_path / "no").exists()


def _context(place: Path) -> Any:
    return msgspec.structs.replace(CONTEXT, places=msgspec.structs.replace(CONTEXT.places, state=place))


def writable(directory: str) -> bool:
    """Whether whoever calls this could write there."""
    return state.look(_context(Path(directory))).is_writable


def test_a_directory_that_may_not_be_written_to_is_known() -> None:
    """Nothing is written to find out; root may write anywhere, so another user looks."""
    with shared_directory() as directory:
        assert as_other_user("tests.ctl.doctor.test_state", "writable", str(directory)) is True
        directory.chmod(0o555)
        assert as_other_user("tests.ctl.doctor.test_state", "writable", str(directory)) is False
        directory.chmod(0o755)
