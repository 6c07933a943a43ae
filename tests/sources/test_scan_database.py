"""What a scan finds of transcripts in OpenClaw's database: sessions like those in files, each once."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
import pytest

from memd.domain_types import Kind
from memd.sources.scan import scan
from memd.sources.scan_result import BlindReason, Scan, SkipReason
from memd.text.memory_paths import SessionPaths, exclude_of
from tests.sources.homes import UUIDS
from tests.sources.transcripts.openclaw_store import OpenClawStore

ONE = f"sessions/openclaw/{UUIDS[0]}.jsonl"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path)) / "agents"


@pytest.fixture
def store(base: Path) -> Iterator[OpenClawStore]:
    """Of the first agent, with one session."""
    store = OpenClawStore(base / "main/agent/openclaw-agent.sqlite")
    store.start(UUIDS[0])
    store.say(UUIDS[0], "first")
    yield store
    store.close()


@pytest.fixture
def root(base: Path) -> SessionPaths:
    return SessionPaths(base, "openclaw", "openclaw")


def _look(root: SessionPaths, within: Collection[Path] | None = None) -> Scan:
    return scan([root], max_bytes=10, within=within)


def test_each_session_has_the_name_that_its_file_would_have(
    base: Path, root: SessionPaths, store: OpenClawStore
) -> None:
    """An id that a person chose is another one's in another agent."""
    other = OpenClawStore(base / "work/agent/openclaw-agent.sqlite")
    other.start("daily")
    seen = _look(root)
    other.close()
    assert {path: found.entry for path, found in seen.found.items()} == {
        ONE: UUIDS[0],
        "sessions/openclaw/work/daily.jsonl": "daily",
    }
    assert seen.found[ONE].file == store.file
    assert seen.found[ONE].kind is Kind.SESSION
    assert not seen.skipped


def test_a_session_is_as_large_as_it_has_records(root: SessionPaths, store: OpenClawStore) -> None:
    """Whatever they hold."""
    sizes = []
    for text in ("heron", "kestrel " * 1000):
        store.say(UUIDS[0], text)
        sizes.append((_look(root).found[ONE].stamp.size, len(store.records(UUIDS[0]))))
    assert [size - records for size, records in sizes] == [0, 0]
    assert sizes[1][0] - sizes[0][0] == 1


def test_a_session_that_is_in_both_counts_once(base: Path, root: SessionPaths, store: OpenClawStore) -> None:
    """The one in the database: OpenClaw has made it of the file."""
    file = base / "main/sessions" / f"{UUIDS[0]}.jsonl"
    file.parent.mkdir()
    file.write_text("{}")
    seen = _look(root)
    assert {path: found.file for path, found in seen.found.items()} == {ONE: store.file}
    assert list(seen.skipped.values()) == [SkipReason.SAME_SESSION]
    store.delete(UUIDS[0])
    assert _look(root).found[ONE].file == file


def test_a_live_file_goes_before_an_archive_in_the_database(
    base: Path, root: SessionPaths, store: OpenClawStore
) -> None:
    """The session went on there."""
    file = base / "main/sessions" / f"{UUIDS[0]}.jsonl"
    file.parent.mkdir()
    file.write_text("{}")
    store.archive(UUIDS[0])
    assert _look(root).found[ONE].file == file


def test_what_a_group_said_is_of_another_kind(root: SessionPaths, store: OpenClawStore) -> None:
    """Which is not shown where other conversations are."""
    store.start(UUIDS[1], "agent:main:telegram:group:-1", chat_type="group")
    store.say(UUIDS[1], "for the group")
    kinds = {path: found.kind for path, found in _look(root).found.items()}
    assert kinds == {ONE: Kind.SESSION, f"sessions/openclaw/{UUIDS[1]}.jsonl": Kind.SHARED_SESSION}


def test_sessions_of_subagents_are_found_where_they_count(root: SessionPaths, store: OpenClawStore) -> None:
    """By the setting, as those in files."""
    store.start(UUIDS[1], "agent:main:subagent:7")
    store.say(UUIDS[1], "for the other agent")
    assert set(_look(root).found) == {ONE}
    assert len(_look(msgspec.structs.replace(root, subagents=True)).found) == 2


def test_what_is_written_to_the_log_is_looked_for(root: SessionPaths, store: OpenClawStore) -> None:
    """The file itself changes much later; a session that was deleted is gone by the same look."""
    store.start(UUIDS[1])
    log = Path(f"{store.file}-wal")
    seen = _look(root, within=[log])
    assert set(seen.found) == {ONE, f"sessions/openclaw/{UUIDS[1]}.jsonl"}
    assert seen.covers(ONE)
    store.delete(UUIDS[0])
    seen = _look(root, within=[log])
    assert seen.covers(ONE)
    assert ONE not in seen.found


@pytest.mark.parametrize("content", [b"no database", b""])
def test_what_is_indexed_stays_while_the_database_cannot_be_read(
    root: SessionPaths, store: OpenClawStore, content: bytes
) -> None:
    """And the reason is counted."""
    store.close()
    store.file.write_bytes(content)
    seen = _look(root)
    assert not seen.found
    assert seen.blind == {"sessions/openclaw": BlindReason.CLOSED}
    assert list(seen.skipped.values()) == [SkipReason.UNREADABLE]


def test_a_symlink_is_no_database(base: Path, root: SessionPaths, store: OpenClawStore) -> None:
    """It could lead anywhere."""
    store.close()
    elsewhere = base.parent / "elsewhere.sqlite"
    store.file.rename(elsewhere)
    store.file.symlink_to(elsewhere)
    seen = _look(root)
    assert not seen.found
    assert list(seen.skipped.values()) == [SkipReason.SYMLINK]


@pytest.mark.parametrize("glob", ["*.sqlite", "main/agent/", "main/"])
def test_an_excluded_database_is_not_opened(base: Path, store: OpenClawStore, glob: str) -> None:
    """By its name, or with its directory."""
    root = SessionPaths(base, "openclaw", "openclaw", exclude=exclude_of([glob]))
    assert not _look(root).found
    assert store.file.exists()


def test_ids_that_make_no_name_are_passed_over(root: SessionPaths, store: OpenClawStore) -> None:
    """None leads to a place outside."""
    for identity in ("../../x", "a/b", "..", "", "x\ny", ".hidden"):
        store.start(identity)
        store.say(identity, "text")
    assert set(_look(root).found) == {ONE}


def test_other_files_of_the_agent_are_not_opened(
    base: Path, root: SessionPaths, store: OpenClawStore
) -> None:
    """Credentials lie beside it, and what nobody wants to be remembered."""
    for name in ("incognito-openclaw-agent.sqlite", "auth-profiles.json", "other.sqlite"):
        (store.file.parent / name).write_bytes(b"x")
    (base / "openclaw-agent.sqlite").write_bytes(b"x")
    seen = _look(root)
    assert set(seen.found) == {ONE}
    assert not seen.skipped
