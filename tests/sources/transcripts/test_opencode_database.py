"""Sessions in opencode's database, as they grow, are changed in place, and are taken back."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd.sources.safe_open import FileMissing, FileUnreadable
from memd.sources.transcripts.database_file import OpenDatabase, ShortRead
from memd.sources.transcripts.database_reader import entry_growth, list_sessions
from memd.sources.transcripts.open_transcript import Growth
from memd.text.memory_paths import SessionPaths
from tests.bounds import shipped
from tests.sources.transcripts.opencode_store import OpenCodeStore
from tests.sources.transcripts.transcripts import EntryFollower, Hider

FILE = "opencode.db"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def store(base: Path) -> Iterator[OpenCodeStore]:
    """With one session, open in its program."""
    store = OpenCodeStore(base / FILE)
    store.start("ses_1")
    yield store
    store.close()


def _follower(
    base: Path, *, word: str = "kelpie", subagents: bool = False, entry: str = "ses_1"
) -> EntryFollower:
    return EntryFollower(base, entry, file=FILE, layout="opencode", redactor=Hider(word), subagents=subagents)


def _root(base: Path) -> SessionPaths:
    return SessionPaths(base, "opencode", "opencode")


def test_what_comes_is_read_on_from_where_it_was(base: Path, store: OpenCodeStore) -> None:
    """Only what was said: no tool, no thought, no file, nothing that a plugin or a command put in."""
    store.say("ses_1", "first")
    follower = _follower(base)
    assert follower.read() == "WholeTranscript"
    assert follower.read() == "UnchangedTranscript"
    assert follower.progress is not None
    assert follower.progress.learnt.cwd == "/home/li/shop"
    answer = store.message("ses_1", "assistant")
    store.part(answer, "reasoning", text="a thought")
    store.part(answer, "tool", tool="bash", state={"output": "an output"})
    store.part(answer, "text", text="second")
    question = store.message("ses_1", "user", summary={"diffs": []})
    store.part(question, text="third")
    store.part(question, text="what a plugin adds", synthetic=True)
    store.part(question, text="what the model does not see", ignored=True)
    store.part(question, "file", filename="x.md", source={"text": {"value": "a file"}})
    assert follower.read() == "GrownTranscript"
    assert [(turn.role, turn.text) for turn in follower.turns] == [
        ("user", "first"),
        ("assistant", "second"),
        ("user", "third"),
    ]
    progress = follower.progress
    assert progress is not None
    assert (progress.learnt.session_id, progress.learnt.cwd) == ("ses_1", "/home/li/shop")
    assert progress.learnt.started_at == 1_790_000_001.0
    assert follower.turns[0].at == 1_790_000_002.0


def test_parts_of_a_message_are_one_turn(base: Path, store: OpenCodeStore) -> None:
    """With a tool between them; and a message without a text is none."""
    message = store.message("ses_1", "assistant")
    store.part(message, text="I look.")
    store.part(message, "tool", tool="read", state={})
    store.part(message, text="It is so.")
    store.part(store.message("ses_1", "assistant"), text=" \n")
    store.part(store.message("ses_1", "system"), text="a prompt")  # type: ignore[arg-type]  # of a newer version
    follower = _follower(base)
    follower.read()
    assert follower.texts == ["I look.\n\nIt is so."]


def test_an_answer_that_is_being_written_is_read_when_it_is_there(base: Path, store: OpenCodeStore) -> None:
    """Its row is there first; a text that has grown is read again from the beginning."""
    store.say("ses_1", "question")
    answer = store.message("ses_1", "assistant")
    part = store.part(answer, text="")
    follower = _follower(base)
    follower.read()
    assert follower.texts == ["question"]
    store.change(part, text="half")
    assert follower.read() == "GrownTranscript"
    store.change(part, text="half and half, kelpie")
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["question", "half and half, [REDACTED:word]"]
    assert follower.kept is not None
    assert b"kelpie" not in follower.kept


def test_what_is_taken_back_goes_and_comes_again(base: Path, store: OpenCodeStore) -> None:
    """From a message on, or from a part of one on; the next prompt deletes it for good."""
    store.say("ses_1", "first")
    answer = store.message("ses_1", "assistant")
    store.part(answer, text="second")
    later = store.part(answer, text="later")
    third = store.say("ses_1", "third")
    fourth = store.say("ses_1", "fourth", "assistant")
    follower = _follower(base)
    follower.read()
    store.take_back("ses_1", third)
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["first", "second\n\nlater"]
    store.take_back("ses_1", answer, later)
    follower.read()
    assert follower.texts == ["first", "second"]
    store.redo("ses_1")
    follower.read()
    assert follower.texts == ["first", "second\n\nlater", "third", "fourth"]
    store.take_back("ses_1", third)
    store.delete(third, fourth)
    store.redo("ses_1")
    store.say("ses_1", "instead")
    follower.read()
    assert follower.texts == ["first", "second\n\nlater", "instead"]


def test_a_summary_of_what_was_said_is_no_speech(base: Path, store: OpenCodeStore) -> None:
    """The conversation goes on behind it."""
    store.say("ses_1", "first")
    store.part(store.message("ses_1", "user"), "compaction", auto=True)
    store.part(store.message("ses_1", "assistant", summary=True), text="They spoke of the first.")
    store.say("ses_1", "second")
    follower = _follower(base)
    follower.read()
    assert follower.texts == ["first", "second"]


def test_what_a_subagent_was_told_is_hidden_unless_it_counts(base: Path, store: OpenCodeStore) -> None:
    """As in files."""
    store.say("ses_1", "see which tables there are")
    store.start("ses_2", "ses_1")
    store.say("ses_2", "count the tables")
    follower = _follower(base, entry="ses_2")
    assert follower.read() == "WholeTranscript"
    assert follower.texts == []
    assert follower.read() == "UnchangedTranscript"
    follower.subagents = True
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["count the tables"]
    assert follower.progress is not None
    assert (follower.progress.learnt.cwd, follower.progress.tally) == ("/home/li/shop", {})
    assert {one.id: one.is_subagent for one in list_sessions(_root(base), (FILE,)).sessions} == {
        "ses_1": False,
        "ses_2": True,
    }


def test_each_change_is_another_stamp(base: Path, store: OpenCodeStore) -> None:
    """Whatever is changed: a scan decides by it."""

    def stamp() -> object:
        (listed,) = list_sessions(_root(base), (FILE,)).sessions
        return listed.stamp

    assert list_sessions(_root(base), (FILE,)).sessions == ()
    store.say("ses_1", "before")
    seen = [stamp()]
    first = store.say("ses_1", "first")
    seen.append(stamp())
    part = store.part(first, text="more")
    seen.append(stamp())
    store.change(part, text="MORE")
    seen.append(stamp())
    store.take_back("ses_1", first)
    seen.append(stamp())
    store.redo("ses_1")
    seen.append(stamp())
    store.delete(first)
    seen.append(stamp())
    assert len(set(seen)) == len(seen)
    assert stamp() == seen[-1]


def test_an_older_version_is_read_without_events(base: Path, store: OpenCodeStore) -> None:
    """The last part says whether something came; a table that is not known says nothing."""
    store.connection.execute("DROP INDEX message_session_time_created_id_idx")
    store.connection.execute("ALTER TABLE session DROP COLUMN revert")
    first = store.say("ses_1", "first")
    store.connection.execute("DROP TABLE event_sequence")
    follower = _follower(base)
    follower.read()
    assert follower.texts == ["first"]
    before = follower.stamp
    store.connection.execute(
        "INSERT INTO part SELECT 'prt_z', message_id, session_id, 0, 0, data FROM part WHERE message_id = ?",
        (first,),
    )
    follower.read()
    assert follower.texts == ["first\n\nfirst"]
    assert follower.stamp != before


def test_tables_that_are_not_known_are_named(base: Path, store: OpenCodeStore) -> None:
    """What is indexed stays."""
    store.connection.execute("ALTER TABLE message RENAME TO session_message")
    with pytest.raises(FileUnreadable, match="no transcripts in tables that memd knows"):
        list_sessions(_root(base), (FILE,))


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        ("no JSON", ["first", "last"]),
        ('{"type":"text","text":5}', ["first", "last"]),
        ('{"type":"text","text":"half \\ud800 of a pair"}', ["first", "half � of a pair", "last"]),
        ('{"type":"text","text":"a\\u0000b\\r\\nc"}', ["first", "ab\nc", "last"]),
        ("[" * 5000, ["first", "last"]),
    ],
)
def test_odd_parts_are_passed_over(base: Path, store: OpenCodeStore, data: str, texts: list[str]) -> None:
    """They cost no other turn."""
    store.say("ses_1", "first")
    part = store.part(store.message("ses_1", "assistant"), text="x")
    store.say("ses_1", "last")
    store.connection.execute("UPDATE part SET data = ? WHERE id = ?", (data, part))
    follower = _follower(base)
    follower.read()
    assert follower.texts == texts


@pytest.mark.parametrize("data", ["no JSON", "{}", '{"role": 5}', '{"role": ["user"]}', "[" * 5000, '"user"'])
def test_odd_messages_are_passed_over(base: Path, store: OpenCodeStore, data: str) -> None:
    """They are counted, and cost no other turn."""
    store.say("ses_1", "first")
    odd = store.say("ses_1", "odd")
    store.say("ses_1", "last")
    store.connection.execute("UPDATE message SET data = ? WHERE id = ?", (data, odd))
    follower = _follower(base)
    follower.read()
    assert follower.texts == ["first", "last"]
    assert follower.progress is not None
    assert follower.progress.tally == {"lines.unknown": 1}


def test_a_part_that_is_longer_than_a_line_may_be_is_not_fetched(base: Path, store: OpenCodeStore) -> None:
    """It is counted, and costs no other turn, nor another part of the same one."""
    message = store.message("ses_1", "assistant")
    store.part(message, text="before")
    long = store.part(message, text="x")
    store.part(message, text="behind")
    store.say("ses_1", "last")
    store.connection.execute(
        """UPDATE part SET data = '{"type":"text","text":"' || hex(zeroblob(?)) || '"}' WHERE id = ?""",
        (shipped("memd.sources.transcripts.read_position.MAX_LINE_BYTES") // 2, long),
    )
    follower = _follower(base)
    follower.read()
    assert follower.texts == ["before\n\nbehind", "last"]
    assert follower.progress is not None
    assert follower.progress.tally == {"lines.too_long": 1}


@pytest.mark.parametrize(("column", "value"), [("revert", "no JSON"), ("revert", "[]"), ("directory", b"\0")])
def test_rows_of_other_types_are_no_session(
    base: Path, store: OpenCodeStore, column: str, value: object
) -> None:
    """Each by itself: the others are listed."""
    store.start("ses_2")
    for session in ("ses_1", "ses_2"):
        store.say(session, "first")
    store.connection.execute(f"UPDATE session SET {column} = ? WHERE id = 'ses_1'", (value,))
    assert [one.id for one in list_sessions(_root(base), (FILE,)).sessions] == ["ses_2"]


def test_a_session_that_is_gone_is_missing(base: Path, store: OpenCodeStore) -> None:
    """It leaves the index."""
    store.say("ses_1", "first")
    follower = _follower(base)
    follower.read()
    store.connection.execute("DELETE FROM session")
    assert list_sessions(_root(base), (FILE,)).sessions == ()
    with pytest.raises(FileMissing):
        follower.read()


def test_a_long_session_is_read_in_short_transactions(
    base: Path, store: OpenCodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one whose one message has many parts; and no file is left beside the database."""
    message = store.message("ses_1", "assistant")
    for number in range(50):
        store.part(message, text=f"part {number}")
        store.say("ses_1", f"message {number}")
    rows: list[int] = []
    transaction = OpenDatabase.transaction

    @contextmanager
    def counted(opened: OpenDatabase) -> Iterator[ShortRead]:
        with transaction(opened) as read:
            rows.append(0)
            yield read

    def enough(read: ShortRead, size: int = 0) -> bool:
        rows[-1] += 1
        return rows[-1] >= 7

    monkeypatch.setattr(OpenDatabase, "transaction", counted)
    monkeypatch.setattr(ShortRead, "is_enough", enough)
    follower = _follower(base)
    follower.read()
    assert follower.texts[0] == "\n\n".join(f"part {number}" for number in range(50))
    assert follower.texts[1:] == [f"message {number}" for number in range(50)]
    assert max(rows) == 7
    assert {each.name for each in base.iterdir()} == {FILE, f"{FILE}-wal", f"{FILE}-shm"}
    store.close()
    assert {each.name for each in base.iterdir()} == {FILE}
    follower.read()
    assert {each.name for each in base.iterdir()} == {FILE}


def test_growth_counts_messages_since_the_last_reading(base: Path, store: OpenCodeStore) -> None:
    """With the bytes of their parts, also of those without a text."""
    store.say("ses_1", "first")
    follower = _follower(base)
    follower.read()

    def growth(at_most: int = 1000) -> Growth:
        return entry_growth(follower.found, follower.roots, follower.progress, at_most=at_most)

    assert growth() == Growth(0, 0)
    message = store.message("ses_1", "assistant")
    store.part(message, "tool", output="x" * 100)
    assert growth().lines == 1
    assert 100 < growth().bytes < 200
    assert follower.read() == "GrownTranscript"
    assert growth() == Growth(0, 0)
    for _ in range(5):
        store.say("ses_1", "more")
    assert [growth(at_most=most).lines for most in (0, 1, 2, 3)] == [1, 1, 2, 3]
