"""Checks of the state directory and of the databases in it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.ctl.doctor import state
from memd.ctl.doctor.state import StateDirectory
from memd.inspection.probe import Cache, Disk, KeptBackup, Store
from tests.bounds import shipped
from tests.ctl.doctor.context import CONTEXT, STATE, by_name, sound
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
    found = by_name(state.check_state(msgspec.structs.replace(_GOOD, **changed), _DISK, CONTEXT))
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
    found = by_name(state.check_state(_GOOD, Disk(kind=kind, point="/x", is_remote=is_remote), CONTEXT))
    assert found["state.file_system"].ok is ok
    assert kind in found["state.file_system"].detail
    unknown = by_name(state.check_state(_GOOD, None, CONTEXT))["state.file_system"]
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
    found = state.look_at_state(_context(place))
    assert (found.exists, found.mode, found.largest_bytes, found.log_bytes) == (True, 0o750, 15, 7)
    missing = state.look_at_state(_context(tmp_path / "no" / "such"))
    assert (missing.exists, missing.above, missing.is_writable) == (False, tmp_path, True)
    assert not (tmp_path / "no").exists()


def _context(place: Path) -> Any:
    return msgspec.structs.replace(CONTEXT, places=msgspec.structs.replace(CONTEXT.places, state=place))


def writable(directory: str) -> bool:
    """Whether whoever calls this could write there."""
    return state.look_at_state(_context(Path(directory))).is_writable


def test_a_directory_that_may_not_be_written_to_is_known() -> None:
    """Nothing is written to find out; root may write anywhere, so another user looks."""
    with shared_directory() as directory:
        assert as_other_user("tests.ctl.doctor.test_state", "writable", str(directory)) is True
        directory.chmod(0o555)
        assert as_other_user("tests.ctl.doctor.test_state", "writable", str(directory)) is False
        directory.chmod(0o755)


_STORE = Store(
    agent="main",
    file="/s/agents/main.sqlite",
    configured=True,
    bytes=4096,
    schema=1,
    known_schema=1,
    files=2,
    chunks=3,
)


_CACHE = Cache(file="/s/embeddings.sqlite", bytes=4096, schema=1, known_schema=1, rows=7)


@pytest.mark.parametrize(
    ("changed", "bad", "says"),
    [
        ({}, set(), "sound: 2 files, 3 chunks, 4.1 kB"),
        ({"exists": False}, set(), "none yet"),
        ({"unchecked": "that takes longer"}, set(), "not checked: that takes longer"),
        ({"closed": "Permission denied"}, {"index"}, "cannot be opened: Permission denied"),
        ({"faults": ("malformed inverted index",)}, {"index"}, "damaged: malformed inverted index"),
        ({"schema": 9}, {"index"}, "schema 9, this one knows 1"),
        ({"damaged": ("main.sqlite.damaged-1",)}, {"damaged"}, "sound"),
        ({"rebuild": "chunking changed"}, set(), "sound"),
        ({"not_utf8": ("memory/a b.md",), "not_utf8_count": 1}, {"encoding"}, "sound"),
        ({"long_front_matter": ("memory/a b.md",), "long_front_matter_count": 1}, {"properties"}, "sound"),
    ],
)
def test_what_is_wrong_with_an_index_is_told(changed: dict[str, Any], bad: set[str], says: str) -> None:
    """That it has to be built anew is said, and is no fault."""
    store = msgspec.structs.replace(_STORE, **changed)
    found = by_name(state.check_store(store, CONTEXT, is_ours=True, knows_config=True))
    assert {name.rpartition(".")[2] for name, one in found.items() if not one.ok} == bad
    assert says in found["agents.main.index"].detail
    assert ("chunking changed" in found["agents.main.fit"].detail) is ("rebuild" in changed)


@pytest.mark.parametrize(("count", "more"), [(2, ""), (5, " and 3 more")])
def test_notes_that_are_not_utf8_are_named(count: int, more: str) -> None:
    """With a command that converts the first."""
    store = msgspec.structs.replace(
        _STORE, not_utf8=("memory/a b.md", "memory/c\x1b.md"), not_utf8_count=count
    )
    one = by_name(state.check_store(store, CONTEXT, is_ours=True, knows_config=True))["agents.main.encoding"]
    assert f"not UTF-8: {count} files (memory/a b.md, memory/c\\x1b.md{more});" in one.detail
    assert "iconv -f WINDOWS-1252 -t UTF-8 'memory/a b.md' > new.md" in one.fix


def test_notes_whose_front_matter_is_too_long_are_named() -> None:
    """With what is possible."""
    store = msgspec.structs.replace(_STORE, long_front_matter=("memory/c\x1b.md",), long_front_matter_count=2)
    one = by_name(state.check_store(store, CONTEXT, is_ours=True, knows_config=True))[
        "agents.main.properties"
    ]
    assert "too long: 2 files (memory/c\\x1b.md and 1 more);" in one.detail
    assert f"{shipped('memd.chunk.note_properties._MOST_LINES'):,} lines" in one.fix
    assert f"{shipped('memd.chunk.note_properties._MOST_CHARS'):,} characters" in one.fix


def test_an_index_of_another_user_is_not_checked() -> None:
    """That the directory is not theirs is told there."""
    store = msgspec.structs.replace(_STORE, closed="Permission denied")
    assert sound(state.check_store(store, CONTEXT, is_ours=False, knows_config=True)[0])


@pytest.mark.parametrize("knows_config", [True, False])
def test_an_index_that_no_agent_has_is_kept(*, knows_config: bool) -> None:
    """It is left over only where the configuration could be read."""
    store = msgspec.structs.replace(_STORE, configured=False)
    index, *_ = state.check_store(store, CONTEXT, is_ours=True, knows_config=knows_config)
    assert sound(index)
    assert ("left over" in index.detail) is knows_config


@pytest.mark.parametrize(
    ("changed", "bad", "says"),
    [
        ({}, set(), "sound: 7 vectors, 4.1 kB"),
        ({"exists": False}, set(), "none yet"),
        ({"faults": ("file is not a database",)}, {"embeddings"}, "file is not a database"),
        ({"schema": 2}, {"embeddings"}, "schema 2"),
        ({"damaged": ("embeddings.sqlite.damaged-1",)}, {"damaged"}, "sound"),
        ({"files": ("openai file-1", "gemini files/x")}, {"batch_files"}, "sound"),
    ],
)
def test_what_is_wrong_with_the_cache_is_told(changed: dict[str, Any], bad: set[str], says: str) -> None:
    """Like an index; it concerns all agents."""
    found = by_name(state.check_cache(msgspec.structs.replace(_CACHE, **changed), CONTEXT, is_ours=True))
    assert {name.removeprefix("state.") for name, one in found.items() if not one.ok} == bad
    assert says in found["state.embeddings"].detail
    for file in changed.get("files", ()):
        assert file in found["state.batch_files"].detail


_KEPT = KeptBackup(name="main.sqlite.before-schema-2", bytes=12_400_000, schema=1, made_at=1.0)


@pytest.mark.parametrize(
    ("configured", "says"), [(True, "daemon deletes it"), (False, "rm /s/agents/main.sqlite.before")]
)
def test_a_copy_that_is_kept_is_told_and_is_no_fault(*, configured: bool, says: str) -> None:
    """With its size, and why it is there."""
    store = msgspec.structs.replace(_STORE, copies=(_KEPT,), configured=configured)
    found = by_name(state.check_store(store, CONTEXT, is_ours=True, knows_config=True))["agents.main.copy"]
    assert found.ok
    assert all(
        word in found.detail for word in (_KEPT.name, "12.4 MB", "before it was brought up to date", says)
    )
    kept = msgspec.structs.replace(_KEPT, name="embeddings.sqlite.before-schema-3")
    cache = by_name(state.check_cache(msgspec.structs.replace(_CACHE, copies=(kept,)), CONTEXT, is_ours=True))
    assert "embeddings.sqlite.before-schema-3" in cache["state.copy"].detail
    assert "agents.main.copy" not in by_name(
        state.check_store(_STORE, CONTEXT, is_ours=True, knows_config=True)
    )


@pytest.mark.parametrize(("schema", "is_way"), [(1, True), (2, False), (0, False)])
def test_the_way_back_from_a_newer_store_is_its_copy(schema: int, *, is_way: bool) -> None:
    """Where this program can read it; else the file is moved away."""
    copy = msgspec.structs.replace(_KEPT, schema=schema)
    store = msgspec.structs.replace(_STORE, schema=2, copies=(copy,))
    fix = by_name(state.check_store(store, CONTEXT, is_ours=True, knows_config=True))["agents.main.index"].fix
    log = "rm -f /s/agents/main.sqlite-wal /s/agents/main.sqlite-shm"
    back = f"{log}; mv /s/agents/main.sqlite.before-schema-2 /s/agents/main.sqlite;"
    assert (back in fix) is is_way
    assert ("main.sqlite.newer" in fix) is not is_way
