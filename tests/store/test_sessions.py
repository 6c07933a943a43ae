"""Transcripts in an index."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import apsw
import msgspec
import pytest
import sqlite_vec

from memd.domain_types import Chunk, FoundFile, Kind, Turn
from memd.store import migrations, read_only
from memd.store.errors import StoreDamaged, StoreRefused
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.sessions import SessionChange, StoredSession
from memd.text.tokens import fts_text
from tests.daemon.contents import contents, differences
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, ranked, vector_of

PATH = "sessions/here/a.jsonl"
EVERYTHING = frozenset(Kind)
NONE: frozenset[bytes] = frozenset()


async def stored_session(index: Index, path: str) -> StoredSession | None:
    return (await index.stored_sessions([path])).get(path)


def _file(path: str = PATH, *, kind: Kind = Kind.SESSION) -> FoundFile:
    return found_file(path, kind=kind)


def _turns(first: int, *texts: str) -> list[Turn]:
    return [
        Turn(f"id{n}", "user" if n % 2 == 0 else "assistant", 1.5 * n, 2 * n + 1, 2 * n + 2, text)
        for n, text in enumerate(texts, first)
    ]


def _cut(turns: Sequence[Turn], first: int) -> list[Chunk]:
    """A chunk a turn."""
    return [
        msgspec.structs.replace(chunk_of(turn.text, turn.start_line), numbers=(turn.start_line,), turn=seq)
        for seq, turn in enumerate(turns, first)
    ]


def _change(
    first: int, *texts: str, path: str = PATH, since: bytes | None = None, progress: bytes = b"p1"
) -> SessionChange:
    turns = _turns(first, *texts)
    return SessionChange(
        found=_file(path),
        hash=b"h" * 32,
        progress=progress,
        since=since,
        turns_from=first,
        turns=turns,
        chunks_from=first,
        chunks=_cut(turns, first),
        resume=first,
        tally={"redacted.token": 2, "lines.broken": 0},
    )


async def _texts(index: Index) -> list[tuple[int, str, tuple[int, ...] | None]]:
    """(id, text, numbers) of all chunks."""
    connection = apsw.Connection(str(index.file))
    try:
        ids = [chunk_id for (chunk_id,) in connection.execute("SELECT id FROM chunks ORDER BY id")]
    finally:
        connection.close()
    found = await index.read(lambda reader: reader.texts(ids))
    return [(chunk_id, chunk.text, chunk.numbers) for chunk_id, chunk in sorted(found.items())]


async def test_a_transcript_comes_back_as_it_was_put(index: Index) -> None:
    """With its turns, its chunks, how far it was read and what was counted."""
    change = _change(0, "one fox", "two\nhens", "三只鸡")
    change = msgspec.structs.replace(
        change, turns=[*change.turns[:2], msgspec.structs.replace(change.turns[2], at=None, id="")]
    )
    [done] = await index.replace_sessions([change], {}, frozenset())
    assert done is not None
    assert (done.added, done.removed) == (3, ())
    assert await stored_session(index, PATH) == StoredSession(b"p1", 3, 0)
    assert await index.turns(PATH) == change.turns
    assert await index.turns(PATH, 2) == change.turns[2:]
    assert await index.turns(PATH, 3) == []
    assert await index.tallies() == {"redacted.token": 2}
    [(chunk_id, _)] = await ranked(index, '"fox"', 10, frozenset({Kind.SESSION}))
    chunk = (await index.read(lambda reader: reader.texts([chunk_id])))[chunk_id]
    assert (chunk.path, chunk.kind, chunk.numbers, chunk.start_line) == (PATH, Kind.SESSION, (1,), 1)
    known = (await index.known())[PATH]
    assert (known.kind, known.hash) == (Kind.SESSION, b"h" * 32)
    assert await index.find(PATH) == known


async def test_turns_are_found_by_the_lines_they_stand_on(index: Index) -> None:
    """Those that stand on one of them in part, too; of that transcript alone."""
    await index.replace_sessions(
        [_change(0, "a", "b", "c", "d"), _change(0, "x", path="sessions/here/b.jsonl")], {}, frozenset()
    )
    assert [turn.text for turn in await index.turns_at(PATH, 4, 5)] == ["b", "c"]
    assert [turn.text for turn in await index.turns_at(PATH, 1, 10_000)] == ["a", "b", "c", "d"]
    assert await index.turns_at(PATH, 9, 20) == []
    assert await index.turns_at("sessions/here/none.jsonl", 1, 9) == []
    assert await index.last_turn_line(PATH) == 8
    assert await index.last_turn_line("sessions/here/none.jsonl") == 0
    assert await stored_session(index, "sessions/here/none.jsonl") is None


@pytest.mark.parametrize(
    ("start_line", "lines", "most_chars", "found", "next_line"),
    [
        (1, 2, 99, "a", 3),
        (1, 3, 99, "ab", 10),
        (2, 1, 99, "a", 3),  # which goes on there
        (5, 2, 99, "b", 10),
        (4, 7, 99, "bcd", 12),
        (7, 2, 99, "cd", 12),  # nothing is said on these lines: it begins at the next turn
        (7, 3, 99, "cde", None),
        (7, 6, 99, "cde", None),
        (12, 1, 99, "e", None),
        (13, 5, 99, "", None),
        (1, 99, 1, "a", 3),
        (1, 99, 2, "ab", 10),
        (2, 99, 1, "a", 3),
        (9, 99, 1, "cd", 12),  # of one line
        (1, 99, 99, "abcde", None),
    ],
)
async def test_a_stretch_has_the_turns_that_begin_on_its_lines_and_says_where_the_next_one_does(
    index: Index, start_line: int, lines: int, most_chars: int, found: str, next_line: int | None
) -> None:
    """And the one that goes on there; of another transcript, none."""
    places = {"a": (1, 2), "b": (3, 6), "c": (10, 11), "d": (10, 10), "e": (12, 12)}
    turns = [Turn(text, "user", 1.0, begin, end, text) for text, (begin, end) in places.items()]
    change = msgspec.structs.replace(_change(0), turns=turns, chunks=_cut(turns, 0))
    await index.replace_sessions([change, _change(0, "x", path="sessions/b.jsonl")], {}, frozenset())
    told = await index.stretch(PATH, start_line, lines, most_chars)
    assert ("".join(turn.text for turn in told.turns), told.next_line) == (found, next_line)


async def test_growth_replaces_only_what_it_names(index: Index) -> None:
    """Chunks before it keep their ids and vectors, those that are cut again to the same text do so too."""
    first = _change(0, "a", "b", "c")
    await index.replace_sessions(
        [first], {chunk.hash: vector_of(n) for n, chunk in enumerate(first.chunks)}, frozenset()
    )
    before = await _texts(index)
    grown = _change(1, "b", "C", "d", since=b"p1", progress=b"p2")
    moved = msgspec.structs.replace(grown.chunks[0], start_line=7, end_line=8, numbers=(7, 8))
    [done] = await index.replace_sessions(
        [msgspec.structs.replace(grown, chunks=[moved, *grown.chunks[1:]], resume=2)], {}, frozenset()
    )
    assert done is not None
    assert (done.added, done.removed) == (2, (before[2][0],))
    after = await _texts(index)
    assert after[:2] == [before[0], (before[1][0], "b", (7, 8))]
    assert [text for _, text, _ in after] == ["a", "b", "C", "d"]
    assert [turn.text for turn in await index.turns(PATH)] == ["a", "b", "C", "d"]
    assert await stored_session(index, PATH) == StoredSession(b"p2", 4, 2)
    counts = await index.counts()
    assert (counts.done, counts.waiting) == (2, 2)


async def test_a_whole_reading_replaces_everything(index: Index) -> None:
    """Turns, chunks and tallies; the same texts keep their chunks."""
    await index.replace_sessions([_change(0, "a", "b", "c", "d")], {}, frozenset())
    before = await _texts(index)
    whole = msgspec.structs.replace(_change(0, "b", "a"), tally={"lines.broken": 1})
    await index.replace_sessions([whole], {}, frozenset())
    assert {one[0] for one in await _texts(index)} == {before[0][0], before[1][0]}
    assert [turn.text for turn in await index.turns(PATH)] == ["b", "a"]
    assert await index.tallies() == {"lines.broken": 1}


async def test_a_chunk_that_only_begins_at_another_turn_goes_by_that(index: Index) -> None:
    """A whole reading that knows of one more turn on the same lines: what grows is then cut from the right chunk on."""
    await index.replace_sessions([_change(0, "a", "b", "c")], {}, frozenset())
    before = await _texts(index)
    whole = _change(0, "a", "b", "c")
    later = [msgspec.structs.replace(chunk, turn=turn) for turn, chunk in enumerate(whole.chunks, 1)]
    await index.replace_sessions([msgspec.structs.replace(whole, chunks=later)], {}, frozenset())
    assert await _texts(index) == before
    await index.replace_sessions([_change(2, "B", "d", since=b"p1", progress=b"p2")], {}, frozenset())
    assert [text for _, text, _ in await _texts(index)] == ["a", "B", "d"]


async def test_what_was_read_from_another_state_is_not_taken(index: Index) -> None:
    """Where somebody else has read the transcript since, or it is gone, nothing changes, and the caller is told."""
    await index.replace_sessions([_change(0, "a", "b")], {}, frozenset())
    newer = _change(2, "c", since=b"p1", progress=b"p2")
    older = _change(2, "x", since=b"p1", progress=b"p3")
    other = _change(5, "y", since=b"p1", path="sessions/here/b.jsonl")
    done = await index.replace_sessions([newer, older, other], {}, frozenset())
    assert [one is None for one in done] == [False, True, True]
    assert [turn.text for turn in await index.turns(PATH)] == ["a", "b", "c"]
    assert set(await index.known()) == {PATH}
    assert await ranked(index, '"x" OR "y"', 10, EVERYTHING) == []


async def test_a_change_that_fails_leaves_the_transcript_as_it_was(index: Index) -> None:
    """All of a file is one transaction."""
    await index.replace_sessions([_change(0, "a", "b")], {}, frozenset())
    before = contents(index.file)
    bad = _change(1, "B", since=b"p1", progress=b"p2")
    twice = msgspec.structs.replace(
        bad, chunks=[*bad.chunks, msgspec.structs.replace(bad.chunks[0], start_line=None)]
    )
    with pytest.raises(StoreRefused):
        await index.replace_sessions([twice], {}, frozenset())
    assert contents(index.file) == before
    assert await stored_session(index, PATH) == StoredSession(b"p1", 2, 0)


async def test_nothing_is_left_of_a_transcript_that_is_removed(index: Index) -> None:
    """Neither turns nor counts nor progress; of the others, everything."""
    other = "sessions/here/b.jsonl"
    await index.replace_sessions([_change(0, "a", "b"), _change(0, "c", path=other)], {}, frozenset())
    await index.remove([PATH])
    assert await stored_session(index, PATH) is None
    assert await index.turns(PATH) == []
    assert await index.tallies() == {"redacted.token": 2}
    assert [turn.text for turn in await index.turns(other)] == ["c"]
    await index.remove([other])
    connection = apsw.Connection(str(index.file))
    try:
        for table in ("files", "chunks", "sessions", "turns", "tallies"):
            assert connection.execute(f"SELECT count(*) FROM {table}").get == 0, table
    finally:
        connection.close()


async def test_transcripts_and_their_turns_are_counted(index: Index) -> None:
    """Notes are none, and one in which nothing was said is one."""
    assert await index.session_counts() == (0, 0)
    await index.replace_all(
        [FileChange(found_file("memory/a.md"), b"1", [chunk_of("note")])], {}, frozenset()
    )
    changes = [_change(0, "a", "b", "c"), _change(0, path="sessions/here/b.jsonl")]
    await index.replace_sessions(changes, {}, frozenset())
    assert await index.session_counts() == (2, 3)
    await index.replace_sessions([_change(1, "B", since=b"p1")], {}, frozenset())
    assert await index.session_counts() == (2, 2)


async def test_notes_are_embedded_before_transcripts(index: Index) -> None:
    """However new these are: there are many more of them."""
    await index.replace_sessions([_change(0, "said")], {}, frozenset())
    old = found_file("memory/a.md", mtime_ns=0)
    await index.replace_all([FileChange(old, b"1", [chunk_of("noted")])], {}, frozenset())
    assert [chunk.text for chunk in await index.waiting(9)] == ["noted", "said"]


async def test_what_was_taken_out_of_notes_is_counted_too(index: Index) -> None:
    """Beside that of transcripts; each reading of a file replaces its own."""
    await index.replace_sessions([_change(0, "a")], {}, frozenset())
    for n in (5, 3):
        note = FileChange(found_file("memory/a.md"), b"1", [chunk_of("note")], {"redacted.token": n})
        await index.replace_all([note], {}, frozenset())
    assert await index.tallies() == {"redacted.token": 5}


async def test_a_transcript_that_becomes_a_note_is_one(index: Index) -> None:
    """Whoever sees the one may not see the other: no chunk is kept, and no turn."""
    await index.replace_sessions([_change(0, "same text")], {}, frozenset())
    before = await _texts(index)
    note = FileChange(_file(kind=Kind.NOTE), b"1", [chunk_of("same text")])
    await index.replace_all([note], {}, frozenset())
    after = await _texts(index)
    assert [one[0] for one in after] != [one[0] for one in before]
    assert after[0][2] is None
    assert await stored_session(index, PATH) is None
    assert await index.turns(PATH) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE turns SET text = x'61' WHERE seq = 1",
        "UPDATE turns SET role = 'nobody' WHERE seq = 1",
        "UPDATE turns SET at = 'yesterday' WHERE seq = 1",
        "UPDATE turns SET start_line = x'00' WHERE seq = 1",
        "UPDATE turns SET text = CAST(x'ff' AS TEXT) WHERE seq = 1",
        "DROP TABLE turns",
    ],
)
async def test_a_damaged_turn_is_told_as_damage(index: Index, damage: str) -> None:
    """Of whatever kind, without quoting it."""
    await index.replace_sessions([_change(0, "a", "secret")], {}, frozenset())
    _execute(index, damage)
    with pytest.raises(StoreDamaged) as told:
        await index.turns(PATH)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM turns WHERE seq = 0",
        "UPDATE sessions SET progress = 'text'",
        "UPDATE sessions SET resume = 'x'",
        "DROP TABLE sessions",
    ],
)
async def test_a_damaged_session_is_told_as_damage(index: Index, damage: str) -> None:
    """A gap among its turns, too: nothing could be read on behind it."""
    await index.replace_sessions([_change(0, "a", "b")], {}, frozenset())
    _execute(index, damage)
    with pytest.raises(StoreDamaged):
        await stored_session(index, PATH)


@pytest.mark.parametrize("numbers", ["'text'", "7", "x'c1'", "x'93a16101'", "x'a3616263'"])
async def test_damaged_numbers_are_told_as_damage(index: Index, numbers: str) -> None:
    """Whatever stands in their place."""
    await index.replace_sessions([_change(0, "a")], {}, frozenset())
    _execute(index, f"UPDATE chunks SET numbers = {numbers}")
    with pytest.raises(StoreDamaged):
        await _texts(index)


async def test_a_damaged_count_is_told_as_damage(index: Index) -> None:
    """A name or a number that is none."""
    await index.replace_sessions([_change(0, "a")], {}, frozenset())
    _execute(index, "UPDATE tallies SET n = 'x', name = x'00'")
    with pytest.raises(StoreDamaged):
        await index.tallies()


def _execute(index: Index, sql: str) -> None:
    connection = apsw.Connection(str(index.file))
    try:
        connection.execute(sql)
    finally:
        connection.close()


async def test_a_look_at_an_index_finds_turns_that_are_missing(index: Index) -> None:
    """SQLite does not know that they should be there."""
    await index.replace_sessions([_change(0, "a", "b")], {}, frozenset())
    file = index.file
    assert read_only.look_at_index(file, 60).faults == ()
    _execute(index, "DELETE FROM turns WHERE seq = 0")
    assert read_only.look_at_index(file, 60).faults == ("turns are missing in 1 transcripts",)


async def test_an_index_takes_over_the_transcripts_of_another(index: Index, tmp_path: Path) -> None:
    """A rebuild: with turns, counts and progress, and ids above all old ones."""
    await index.replace_sessions([_change(0, "old")], {}, frozenset())
    beside = Index(tmp_path / "next.sqlite")
    await beside.open()
    await beside.adopt(FINGERPRINT)
    await beside.start_ids_at(1000)
    await beside.replace_sessions([_change(0, "new", "newer", progress=b"p9")], {}, frozenset())
    built = contents(beside.file)
    await index.swap_in(beside)
    assert differences(contents(index.file), built) == []
    assert await stored_session(index, PATH) == StoredSession(b"p9", 2, 0)
    assert [one[0] for one in await _texts(index)] == [1000, 1001]


# --- an index from before


def _first_schema(file: Path) -> None:
    """An index with a note and its vector, as it was before there were transcripts."""
    sql = resources.files("memd.store") / "sql" / "index" / "001_files_chunks_keywords.sql"
    chunk = chunk_of("the old fox")
    connection = apsw.Connection(str(file))
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.pragma("journal_mode", "wal")
        connection.execute(sql.read_text("utf-8"))
        connection.pragma("user_version", 1)
        connection.execute(
            "INSERT INTO meta VALUES ('fingerprint', ?)", (msgspec.json.encode(FINGERPRINT).decode(),)
        )
        connection.execute("INSERT INTO files VALUES (3, 'memory/a.md', 0, 1, 1, 7, x'00')")
        connection.execute(
            "INSERT INTO chunks (id, file_id, start_line, end_line, text, context, hash, cjk, vector)"
            " VALUES (41, 3, 1, 1, ?, '', ?, 0.0, 1)",
            (chunk.text, chunk.hash),
        )
        connection.execute(
            "INSERT INTO keywords (rowid, text, context) VALUES (41, ?, '')", (fts_text(chunk.text),)
        )
        connection.execute(
            "CREATE VIRTUAL TABLE vectors"
            " USING vec0(chunk_id INTEGER PRIMARY KEY, embedding FLOAT[8] distance_metric=cosine)"
        )
        connection.execute("INSERT INTO vectors VALUES (41, ?)", (vector_of(1),))
    finally:
        connection.close()


async def test_an_index_of_the_first_schema_goes_on(tmp_path: Path) -> None:
    """In its place: what it holds stays, with ids and vectors, and transcripts come beside it."""
    file = tmp_path / "main.sqlite"
    _first_schema(file)
    index = Index(file)
    await index.open()
    assert await index.fingerprint() == FINGERPRINT
    await index.adopt(FINGERPRINT)
    assert await _texts(index) == [(41, "the old fox", None)]
    counts = await index.counts()
    assert (counts.files, counts.done, counts.waiting) == (1, 1, 0)
    assert await index.tallies() == {}
    await index.replace_sessions([_change(0, "a young fox")], {}, frozenset())
    found = {chunk_id for chunk_id, _ in await ranked(index, '"fox"', 10, EVERYTHING)}
    assert found == {41, 42}
    await index.replace(found_file("memory/a.md"), b"2", [chunk_of("the old fox", 5)], {}, frozenset())
    assert (await _texts(index))[0][0] == 41
    await index.close()
    connection = apsw.Connection(str(file))
    try:
        assert connection.pragma("user_version") == migrations.newest("index")
    finally:
        connection.close()


def test_an_index_of_the_first_schema_can_be_looked_at(tmp_path: Path) -> None:
    """Before a daemon has brought it up to date."""
    _first_schema(tmp_path / "main.sqlite")
    seen = read_only.look_at_index(tmp_path / "main.sqlite", 60)
    assert (seen.schema, seen.faults, seen.files, seen.chunks) == (1, (), 1, 1)
