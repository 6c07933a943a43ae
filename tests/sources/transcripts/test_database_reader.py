"""Sessions in OpenClaw's database, as they grow, and as they are rewritten, rewound and archived."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable
from memd.sources.transcripts import database_file, database_reader
from memd.sources.transcripts.database_file import ShortRead
from memd.sources.transcripts.database_reader import entry_growth, list_sessions
from memd.sources.transcripts.openclaw_database import Event, events_from
from memd.text.memory_paths import SessionPaths
from tests.bounds import shipped
from tests.sources.transcripts.openclaw_store import OpenClawStore
from tests.sources.transcripts.transcripts import EntryFollower, Hidden, Hider

PARTS = ("main", "agent", "openclaw-agent.sqlite")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def store(base: Path) -> Iterator[OpenClawStore]:
    """Of one agent, open in its program."""
    store = OpenClawStore(base.joinpath(*PARTS))
    yield store
    store.close()


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the events that are fetched."""
    fetched: list[int] = []
    fetch = events_from

    def counted(*given: Any) -> Iterator[Event]:
        for event in fetch(*given):
            fetched.append(event.seq)
            yield event

    monkeypatch.setattr(database_reader, "events_from", counted)
    return fetched


def _talk(store: OpenClawStore, session: str = "one", **columns: str) -> list[str]:
    store.start(session, **columns)
    return [store.say(session, "first"), store.say(session, "second", "assistant")]


def test_what_comes_is_read_once(base: Path, store: OpenClawStore, rows: list[int]) -> None:
    """One more event costs one more row, however many there were."""
    _talk(store)
    follower = EntryFollower(base, "one")
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first", "second"]
    assert follower.progress is not None
    assert follower.progress.learnt.cwd == "/home/li/app"
    assert rows == [1, 2]
    rows.clear()
    assert follower.read() == "UnchangedTranscript"
    assert rows == []
    store.say("one", "third")
    assert follower.read() == "GrownTranscript"
    assert follower.texts == ["first", "second", "third"]
    assert rows == [3]
    assert [turn.start_line for turn in follower.turns] == [2, 3, 4]  # the header is the first line


def test_the_stamp_of_a_reading_is_that_of_a_listing(base: Path, store: OpenClawStore) -> None:
    """Else what was just read would seem to have changed."""
    _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    assert [
        one.stamp for one in list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions
    ] == [follower.stamp]
    store.say("one", "third")
    (now,) = list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions
    assert now.stamp != follower.stamp
    follower.read()
    assert now.stamp == follower.stamp


def test_packed_events_are_unpacked(base: Path, store: OpenClawStore) -> None:
    """OpenClaw packs events of some size."""
    store.start("one")
    store.say("one", "long " * 1000)
    assert (
        store.connection.execute("SELECT count(*) FROM transcript_events WHERE event_json IS NULL").get == 1
    )
    follower = EntryFollower(base, "one")
    follower.read()
    assert follower.texts == [("long " * 1000).strip()]


@pytest.mark.parametrize("packed", [b"\x28\xb5\x2f\xfdgarbage", b"no frame", b"\0"])
def test_a_damaged_event_is_counted_and_the_others_are_read(
    base: Path, store: OpenClawStore, packed: bytes
) -> None:
    """As a line that is too long is."""
    store.start("one")
    store.say("one", "long " * 1000)
    store.say("one", "after")
    store.connection.execute(
        "UPDATE transcript_events SET event_zstd = ? WHERE event_json IS NULL", (packed,)
    )
    follower = EntryFollower(base, "one")
    follower.read()
    assert follower.texts == ["after"]
    assert follower.progress is not None
    assert follower.progress.tally == {"lines.too_long": 1}


def test_an_event_that_is_longer_than_a_line_may_be_is_not_fetched(base: Path, store: OpenClawStore) -> None:
    """Nothing that large is speech."""
    store.start("one")
    store.say("one", "after")
    longest = shipped("memd.sources.transcripts.read_position.MAX_LINE_BYTES")
    store.connection.execute(
        "UPDATE transcript_events SET event_json = '{' || hex(zeroblob(?)) || '}' WHERE seq = 1",
        (longest // 2 + 1,),
    )
    follower = EntryFollower(base, "one")
    follower.read()
    assert follower.progress is not None
    assert follower.progress.tally == {"lines.too_long": 1}


def test_only_the_living_branch_counts(base: Path, store: OpenClawStore, rows: list[int]) -> None:
    """What was taken back is not even fetched."""
    first, _ = _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    store.rewind("one", "instead", first)
    rows.clear()
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first", "instead"]
    assert rows == [1, 3]


def test_while_the_branch_is_not_listed_the_last_event_tells_it(base: Path, store: OpenClawStore) -> None:
    """OpenClaw lists it anew some time after a rewind, and never if it was killed."""
    first, _ = _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    store.say("one", "instead", after=first)
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first", "instead"]
    store.say("one", "and on")
    assert follower.read() == "GrownTranscript"
    assert follower.texts == ["first", "instead", "and on"]
    store.list_branch("one")
    follower.read()
    assert follower.texts == ["first", "instead", "and on"]
    assert follower.read() == "UnchangedTranscript"


def test_a_rewritten_session_is_read_anew(base: Path, store: OpenClawStore) -> None:
    """Its generation says so, be it as long as it was."""
    _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    records = store.records("one")
    records[1]["message"]["content"] = "other"
    store.rewrite("one", records)
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["other", "second"]


def test_redaction_is_that_of_files(base: Path, store: OpenClawStore) -> None:
    """Before anything else has a text."""
    _talk(store)
    follower = EntryFollower(base, "one", redactor=Hider("second"))
    follower.read()
    assert follower.texts == ["first", "[REDACTED:word]"]
    assert follower.kept is not None
    assert b"second" not in follower.kept


@pytest.mark.parametrize(
    "columns",
    [
        {"key": "agent:main:subagent:7"},
        {"key": "agent:main:acp:7", "spawned_by": "agent:main:main"},
    ],
)
def test_a_subagents_session_is_hidden_unless_those_count(
    base: Path, store: OpenClawStore, columns: dict[str, str]
) -> None:
    """And is read when the settings change, and goes when they change back."""
    _talk(store, **columns)
    follower = EntryFollower(base, "one")
    assert follower.read() == "WholeTranscript"
    assert follower.texts == []
    assert follower.progress is not None
    assert follower.progress.tally == {"sessions.subagent": 1}
    assert follower.progress.learnt.subagent
    store.say("one", "third")
    assert follower.read() == "UnchangedTranscript"
    follower.subagents = True
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first", "second", "third"]
    assert "sessions.subagent" not in follower.progress.tally
    follower.subagents = False
    follower.read()
    assert follower.texts == []


@pytest.mark.parametrize("pack", [True, False])
def test_an_archive_in_the_database_is_read(base: Path, store: OpenClawStore, pack: bool) -> None:
    """Of a session that was reset, until OpenClaw has made a file of it."""
    first, _ = _talk(store)
    store.rewind("one", "instead", first)
    follower = EntryFollower(base, "one")
    follower.read()
    store.archive("one", pack=pack)
    (listed,) = list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions
    assert listed.archived
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first", "instead"]
    assert follower.stamp == listed.stamp
    assert follower.read() == "UnchangedTranscript"


def test_a_session_that_grew_cold_is_read(base: Path, store: OpenClawStore) -> None:
    """Its events are one blob then, here one of several pieces."""
    store.start("one")
    texts = [f"{number} {Random(number).randbytes(40_000).hex()}" for number in range(40)]
    for text in texts:
        store.say("one", text)
    store.cool("one")
    size = list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions[0].stamp.size
    assert size > shipped("memd.sources.transcripts.database_file.READ_BYTES")
    follower = EntryFollower(base, "one")
    follower.read()
    assert follower.texts == texts


def test_a_deleted_session_is_gone(base: Path, store: OpenClawStore) -> None:
    """Its archive is there so that a person may take the deletion back; it is not memory."""
    _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    store.archive("one", reason="deleted")
    assert list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions == ()
    with pytest.raises(FileMissing):
        follower.read()


def test_a_newer_version_is_read_as_far_as_its_tables_are_known(base: Path, store: OpenClawStore) -> None:
    """And an older one: neither archives, nor marks, nor a list of the branch are needed."""
    first, _ = _talk(store)
    store.rewind("one", "instead", first)
    store.connection.pragma("user_version", 99)
    store.connection.execute("ALTER TABLE session_windows ADD COLUMN mood TEXT")
    for table in (
        "session_transcript_archives",
        "session_transcript_cold_archives",
        "transcript_rewrite_watermarks",
        "session_transcript_active_events",
        "session_transcript_index_state",
    ):
        store.connection.execute(f"DROP TABLE {table}")
    listing = list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS)
    assert (listing.version, len(listing.sessions)) == (99, 1)
    follower = EntryFollower(base, "one")
    follower.read()
    assert follower.texts == ["first", "instead"]


def test_tables_that_are_not_known_are_named(base: Path, store: OpenClawStore) -> None:
    """What is indexed stays; doctor shows the message."""
    _talk(store)
    store.connection.execute("ALTER TABLE transcript_events RENAME TO happenings")
    with pytest.raises(FileUnreadable, match="no transcripts in tables that memd knows"):
        list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS)
    with pytest.raises(FileUnreadable, match="version 23"):
        EntryFollower(base, "one").read()


def test_rows_of_other_types_are_no_session(base: Path, store: OpenClawStore) -> None:
    """Each by itself: the others are read."""
    _talk(store)
    _talk(store, "two")
    store.connection.execute("DROP TABLE transcript_rewrite_watermarks")
    store.connection.execute("CREATE TABLE transcript_rewrite_watermarks (session_id, generation)")
    store.connection.execute("INSERT INTO transcript_rewrite_watermarks VALUES ('one', x'00ff')")
    assert [one.id for one in list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions] == [
        "two"
    ]


@pytest.mark.parametrize(
    ("columns", "is_shared"),
    [
        ({}, False),
        ({"key": "agent:main:telegram:direct:4711", "chat_type": "direct"}, False),
        ({"chat_type": "group"}, True),
        ({"chat_type": "channel"}, True),
        ({"session_scope": "group"}, True),
        ({"key": "agent:main:telegram:group:-1"}, True),
        ({"key": "agent:main:discord:channel:7:thread:1"}, True),
        ({"key": "agent:main:subagent:7", "spawned_by": "agent:main:telegram:group:-1"}, True),
    ],
)
def test_a_session_says_whose_it_is(
    base: Path, store: OpenClawStore, columns: dict[str, str], is_shared: bool
) -> None:
    """By what is written down of its chat, and by its key."""
    _talk(store, **columns)
    (session,) = list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions
    assert session.is_shared is is_shared


def test_growth_is_counted_in_what_came(base: Path, store: OpenClawStore) -> None:
    """By the rules of a file: bytes and lines since the last reading; all of it if it was rewritten."""
    _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    assert _growth(follower) == (0, 0)
    store.say("one", "long " * 1000)
    size, events = _growth(follower)
    assert events == 1
    assert size > 5000
    store.rewrite("one", store.records("one"))
    assert _growth(follower)[1] == 4


def test_an_archive_is_all_that_came(base: Path, store: OpenClawStore) -> None:
    """It is over, and nobody counts its lines; of a session that is gone nothing can be told."""
    _talk(store)
    follower = EntryFollower(base, "one")
    store.archive("one")
    (listed,) = list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions
    assert _growth(follower) == (listed.stamp.size, 0)
    store.connection.execute("DELETE FROM session_transcript_archives")
    with pytest.raises(FileMissing, match="not in the database any more"):
        _growth(follower)


def test_no_more_events_are_counted_than_matter(base: Path, store: OpenClawStore) -> None:
    """A session of any length is counted at once."""
    _talk(store)
    most = shipped("memd.sources.transcripts.database_reader.MOST_COUNTED")
    with store.connection:
        store.connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO transcript_events (session_id, seq, event_json, created_at) SELECT 'one', i, '{}', 0 FROM n",
            (most + 10,),
        )
    follower = EntryFollower(base, "one")
    assert _growth(follower)[1] == most
    assert [_growth(follower, at_most)[1] for at_most in (0, 1, 2)] == [1, 1, 2]


def _growth(follower: EntryFollower, at_most: int = 10**9) -> tuple[int, int]:
    growth = entry_growth(follower.found, follower.roots, follower.progress, at_most=at_most)
    return growth.bytes, growth.lines


def test_no_transaction_is_open_while_text_is_worked_on(base: Path, store: OpenClawStore) -> None:
    """Redaction takes longest: at each text the writer can cut its log."""
    store.start("one")
    for number in range(20):
        store.say("one", f"turn {number}")
    cut: list[int] = []

    class Cutter:
        def redact(self, text: str, asked: str = "") -> Hidden:
            busy, _, _ = store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            cut.append(int(busy))  # type: ignore[arg-type]  # a row is any tuple
            return Hidden(text, {})

    follower = EntryFollower(base, "one", redactor=Cutter())
    follower.read()
    assert len(follower.texts) == 20
    assert set(cut) == {0}


def test_rows_are_fetched_in_many_short_transactions(
    base: Path, store: OpenClawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all, in one each; what comes meanwhile is read as well."""
    monkeypatch.setattr(database_file, "READ_S", 0.0)
    store.start("one")
    for number in range(10):
        store.say("one", f"turn {number}")
    begun: list[ShortRead] = []

    class Counted(ShortRead):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            begun.append(self)
            if len(begun) == 6:
                store.say("one", "late")

    monkeypatch.setattr(database_file, "ShortRead", Counted)
    follower = EntryFollower(base, "one")
    follower.read()
    assert follower.texts == [*(f"turn {number}" for number in range(10)), "late"]
    assert len(begun) > 11


def test_a_session_that_is_rewritten_in_the_middle_is_read_anew(
    base: Path, store: OpenClawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reading has turns of two generations; one that is rewritten all the time is read later."""
    monkeypatch.setattr(database_file, "READ_S", 0.0)
    _talk(store)
    rewritten: list[int] = []
    most = 1

    class Rewriter:
        def redact(self, text: str, asked: str = "") -> Hidden:
            if "first" in text and len(rewritten) < most:
                rewritten.append(1)
                records = store.records("one")
                for record in records[1:]:
                    record["message"]["content"] = f"first again {len(rewritten)}"
                store.rewrite("one", records)
            return Hidden(text, {})

    follower = EntryFollower(base, "one", redactor=Rewriter())
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first again 1", "first again 1"]
    most = 10**9
    rewritten.clear()
    store.rewrite("one", store.records("one"))
    with pytest.raises(FileHeld):
        follower.read()
    assert len(rewritten) == shipped("memd.sources.transcripts.database_reader.TRIES")


@pytest.mark.rows(4)
@pytest.mark.parametrize("seed", range(12))
def test_after_any_history_it_is_as_if_read_for_the_first_time(
    base: Path, store: OpenClawStore, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns, and the stamp that tells whether they have changed."""
    rng = Random(seed)
    if seed % 3 == 0:
        monkeypatch.setattr(database_file, "READ_S", 0.0)
    ids = _talk(store)
    follower = EntryFollower(base, "one")
    for step in range(60):
        _change(store, ids, step, rng)
        if rng.random() < 0.6:
            follower.read()
            fresh = EntryFollower(base, "one")
            fresh.read()
            assert follower.turns == fresh.turns
            assert follower.stamp == fresh.stamp
            assert [
                one.stamp for one in list_sessions(SessionPaths(base, "openclaw", "openclaw"), PARTS).sessions
            ] == [fresh.stamp]
    assert len(follower.turns) > 0


def _change(store: OpenClawStore, ids: list[str], step: int, rng: Random) -> None:
    """One event of a history."""
    match rng.choice(["say", "say", "say", "custom", "rewind", "unlisted", "list", "rewrite", "reopen"]):
        case "say":
            text = f"{step} " * rng.choice([1, 600])
            ids.append(store.say("one", text, rng.choice(["user", "assistant"])))
        case "custom":
            ids.append(store.append("one", {"type": "custom", "customType": "x", "data": "y"}))
        case "rewind":
            ids.append(store.rewind("one", f"{step} instead", rng.choice(ids)))
        case "unlisted":
            ids.append(store.say("one", f"{step} beside", after=rng.choice(ids)))
        case "list":
            store.list_branch("one")
        case "rewrite":
            records = store.records("one")
            for record in records:
                if "message" in record:
                    record["message"]["content"] = f"rewritten {step}"
            store.rewrite("one", records)
        case "reopen":
            store.close()
            store.connection = OpenClawStore(store.file).connection
        case _:
            raise AssertionError


def test_reading_goes_on_while_the_program_writes(base: Path, store: OpenClawStore) -> None:
    """From another thread, as from another process: each reading holds what was there, without a gap."""
    store.start("one")
    store.say("one", "turn 0")
    ended = threading.Event()

    def write() -> None:
        for number in range(1, 200):
            store.say("one", f"turn {number}")
            if number % 20 == 0:
                store.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    follower, readings = EntryFollower(base, "one"), 0
    while not ended.is_set():
        follower.read()
        readings += 1
        assert follower.texts == [f"turn {number}" for number in range(len(follower.texts))]
    writer.join()
    follower.read()
    assert len(follower.texts) == 200
    assert readings > 0


def test_a_closed_database_is_followed_as_well(base: Path, store: OpenClawStore) -> None:
    """Between two lives of its program, and during them."""
    _talk(store)
    follower = EntryFollower(base, "one")
    follower.read()
    store.say("one", "third")
    store.close()
    assert [each.name for each in store.file.parent.iterdir()] == [store.file.name]
    assert follower.read() == "GrownTranscript"
    assert follower.texts == ["first", "second", "third"]
    assert [each.name for each in store.file.parent.iterdir()] == [store.file.name]
    store.connection = OpenClawStore(store.file).connection
    store.say("one", "fourth")
    assert follower.read() == "GrownTranscript"
    assert follower.texts[-1] == "fourth"


def test_a_session_that_is_in_no_root_is_not_read(base: Path, store: OpenClawStore) -> None:
    """Whatever a name or a path says."""
    _talk(store)
    follower = EntryFollower(base, "one")
    found = follower.found
    for other in (
        msgspec.structs.replace(found, path="sessions/openclaw/two.jsonl"),
        msgspec.structs.replace(found, location=str(found.file.with_name("other.sqlite"))),
        msgspec.structs.replace(found, location="/etc/openclaw-agent.sqlite"),
    ):
        follower.found = other
        with pytest.raises(FileMissing, match="in no root"):
            follower.read()
