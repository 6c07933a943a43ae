import asyncio
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
import pytest

from memd.domain_types import Chunk, ChunkId, Kind, Turn
from memd.store import connections, database_files, migrations, recovery, vector_matrix, vector_table
from memd.store.chunks import StoredChunk, scripts_read
from memd.store.connections import Connections
from memd.store.database import READERS, Database
from memd.store.disk_vectors import DiskVectors
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable
from memd.store.files import FileChange, kind_of
from memd.store.index import Index
from memd.store.meta import Fingerprint, why_rebuild
from memd.store.search_vectors import AT_ONCE
from memd.store.sessions import SessionChange
from memd.text.writing_systems import scripts
from tests.store.conftest import DIMENSIONS, FINGERPRINT, chunk_of, found_file, ranked, vector_of
from tests.wait import until_async

EVERYTHING = frozenset(Kind)
NOTHING: frozenset[bytes] = frozenset()


async def test_replaced_file_is_found_by_its_new_words_only(index: Index) -> None:
    """A changed file is found by what it says now, and not by what it said."""
    file = found_file("memory/a.md")
    await index.replace(file, b"1", [chunk_of("the quick fox")], {}, frozenset())
    await index.replace(file, b"2", [chunk_of("a slow turtle")], {}, frozenset())
    assert await ranked(index, '"fox"', 10, EVERYTHING) == []
    [(chunk_id, match)] = await ranked(index, '"turtle"', 10, EVERYTHING)
    assert match.r > 0
    assert (await index.read(lambda reader: reader.texts([chunk_id])))[chunk_id].text == "a slow turtle"


@pytest.mark.parametrize("text", ["a slow turtle", "慢的乌龟 turtle", "1225", "медленная 乌龟 turtle"])
async def test_a_chunk_is_known_with_its_scripts(index: Index, text: str) -> None:
    """They are what would be counted in its text, to the last bit, and cost no look at it."""
    await index.replace_sessions([transcript(chunk_of(text))], {}, frozenset())
    [place] = (await index.read(lambda reader: reader.places([ChunkId(1)]))).values()
    assert scripts_read(place.scripts) == scripts(text)


def test_scripts_that_were_not_written_so_are_damage() -> None:
    """A chunk that was stored before scripts were has none."""
    assert scripts_read(None) == {}
    for stored in (b"", b"\xff", b"\xa5LATIN", b"\x81\xa1\xff\x01", msgspec.msgpack.encode([1.0])):
        with pytest.raises(StoreDamaged):
            scripts_read(stored)


async def test_a_change_of_files_is_a_new_version(index: Index) -> None:
    """Whoever waits for one is told, also of a removal; what changes nothing is none."""
    waiting = asyncio.create_task(index.changed.since(index.changed.version))
    await index.restamp([found_file("memory/a.md", size=2)])
    await asyncio.sleep(0)
    assert not waiting.done()
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("text")], {}, frozenset())
    await waiting
    before = index.changed.version
    await index.remove(["memory/a.md"])
    await index.changed.since(before)
    assert index.changed.version > before


async def test_unchanged_chunk_keeps_id_and_vector(index: Index) -> None:
    """A chunk that only moved keeps its id and vector, and gets its new lines."""
    kept = chunk_of("kept text", 1)
    file = found_file("memory/a.md")
    await index.replace(file, b"1", [kept], {kept.hash: vector_of(1)}, frozenset())
    (before,) = await ranked(index, '"kept"', 10, EVERYTHING)
    await index.replace(file, b"2", [chunk_of("new first line"), chunk_of("kept text", 2)], {}, frozenset())
    (after,) = await ranked(index, '"kept"', 10, EVERYTHING)
    assert after[0] == before[0]
    assert (await index.read(lambda reader: reader.texts([after[0]])))[after[0]].start_line == 2
    counts = await index.counts()
    assert (counts.done, counts.waiting) == (1, 1)


async def test_same_text_twice_in_a_file_stays_two_chunks(index: Index) -> None:
    """Two chunks of one text stay two, through an edit as well."""
    file = found_file("memory/a.md")
    await index.replace(file, b"1", [chunk_of("same", 1), chunk_of("same", 5)], {}, frozenset())
    await index.replace(
        file, b"2", [chunk_of("same", 1), chunk_of("same", 9), chunk_of("same", 12)], {}, frozenset()
    )
    found = await ranked(index, '"same"', 10, EVERYTHING)
    lines = sorted(
        chunk.start_line
        for chunk in (await index.read(lambda reader: reader.texts([one for one, _ in found]))).values()
    )
    assert lines == [1, 9, 12]


async def test_terms_of_many_files_are_one_segment(index: Index) -> None:
    """FTS5 merges as many segments as there are transactions, not as there are files."""
    changes = [
        FileChange(found_file(f"memory/{n}.md"), b"1", [chunk_of(f"text of file{n}")]) for n in range(20)
    ]
    await index.replace_all(changes, {}, frozenset())
    segments = await index.database.read(
        lambda connection: connection.execute("SELECT count(DISTINCT segid) FROM keywords_idx").get
    )
    assert segments == 1
    assert len(await ranked(index, '"file7"', 10, EVERYTHING)) == 1
    assert len(await ranked(index, '"text"', 50, EVERYTHING)) == 20


async def test_a_file_that_changes_twice_in_one_transaction_has_its_last_words(index: Index) -> None:
    """Words that were never written are not removed either."""
    first = found_file("memory/a.md")
    session = msgspec.structs.replace(first, kind=Kind.SESSION)
    chunks_of = (
        (first, "old", "both"),
        (first, "newer", "both"),
        (session, "other", "both"),  # a file of another kind starts with new chunks
        (first, "last", "both"),
    )
    changes = [FileChange(found, b"1", [*map(chunk_of, texts)]) for found, *texts in chunks_of]
    await index.replace_all(changes, {}, frozenset())
    for word, times in (("old", 0), ("newer", 0), ("other", 0), ("last", 1), ("both", 1)):
        assert len(await ranked(index, f'"{word}"', 10, EVERYTHING)) == times, word
    await index.database.check()


async def test_many_vectors_at_once_arrive_and_go_like_a_few(index: Index) -> None:
    """What is too much for one moment of the event loop is taken in all the same."""
    chunks = [chunk_of(f"text {number}", number + 1) for number in range(AT_ONCE + 50)]
    known = {one.hash: vector_of(number) for number, one in enumerate(chunks)}
    await index.replace(found_file("memory/a.md"), b"1", chunks, known, frozenset())
    query = np.frombuffer(vector_of(7), "<f4")
    rows = index.vectors.snapshot()
    assert rows is not None
    assert len(vector_matrix.nearest(rows, query, 10_000, EVERYTHING)) == len(chunks)
    await index.replace(found_file("memory/a.md"), b"2", chunks[:10], known, frozenset())
    rows = index.vectors.snapshot()
    assert rows is not None
    assert len(vector_matrix.nearest(rows, query, 10_000, EVERYTHING)) == 10


async def test_the_keyword_index_is_put_in_order_step_by_step(index: Index) -> None:
    """Steps come to an end, leave one part of all, and what is found stays what it was."""
    for number in range(60):
        text = f"word{number} common " + " ".join(f"filler{number}x{n}" for n in range(300))
        await index.replace(found_file(f"memory/{number}.md"), b"1", [chunk_of(text)], {}, frozenset())
    await index.remove(["memory/7.md"])
    before = await ranked(index, '"common" OR "word3"', 100, EVERYTHING)
    steps = 1
    more = await index.tidy_keywords(begin=True)
    while more:
        more = await index.tidy_keywords(begin=False)
        steps += 1
    assert 1 < steps < 100
    assert await ranked(index, '"common" OR "word3"', 100, EVERYTHING) == before
    assert len(before) == 59
    assert await ranked(index, '"word7"', 10, EVERYTHING) == []
    connection = apsw.Connection(str(index.file))
    try:
        assert connection.execute("SELECT count(DISTINCT segid) FROM keywords_idx").get == 1
    finally:
        connection.close()


async def test_a_match_tells_which_phrases_it_holds(index: Index) -> None:
    """Each phrase of the expression that stands in the text or its context, in any form of its words."""
    await index.replace(
        found_file("memory/a.md"), b"1", [chunk_of("we painted the old door")], {}, frozenset()
    )
    [(_, match)] = await ranked(
        index, '"blue" OR "paint" OR "door old" OR "old door" OR "😀"', 10, EVERYTHING
    )
    assert list(match.held) == [1, 3]


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        ({"memory/a"}, {"memory/a/b.md", "memory/a/c/d.md"}),
        ({"memory/a/b.md"}, {"memory/a/b.md"}),
        ({"memory/a/", "/x"}, {"memory/a/b.md", "memory/a/c/d.md", "/x/y.md"}),
        ({"memory/none"}, set()),
        ({"/"}, {"/x/y.md"}),
        (set(), set()),
        (
            {""},
            {"memory/a/b.md", "memory/a/c/d.md", "memory/a.md", "memory/a0.md", "memory/a-b.md", "/x/y.md"},
        ),
        (
            None,
            {"memory/a/b.md", "memory/a/c/d.md", "memory/a.md", "memory/a0.md", "memory/a-b.md", "/x/y.md"},
        ),
    ],
)
async def test_known_files_are_found_by_their_place(
    index: Index, within: set[str] | None, expected: set[str]
) -> None:
    """A path stands for itself and for what lies below it, not for what only begins like it."""
    for path in (
        "memory/a/b.md",
        "memory/a/c/d.md",
        "memory/a.md",
        "memory/a0.md",
        "memory/a-b.md",
        "/x/y.md",
    ):
        await index.replace(found_file(path), b"1", [chunk_of(path)], {}, frozenset())
    assert set(await index.known(within)) == expected


async def test_hidden_kinds_take_no_place_among_the_candidates(index: Index) -> None:
    """A chunk that may not be seen does not push out one that may."""
    await index.replace(
        found_file("MEMORY.md", kind=Kind.CURATED),
        b"1",
        [chunk_of("secret secret secret plan")],
        {},
        frozenset(),
    )
    await index.replace(
        found_file("memory/a.md"),
        b"2",
        [chunk_of("a secret handshake among many other words here")],
        {},
        frozenset(),
    )
    [(only, _)] = await ranked(index, '"secret"', 1, frozenset({Kind.NOTE}))
    assert (await index.read(lambda reader: reader.texts([only])))[only].path == "memory/a.md"


async def test_a_late_vector_for_a_chunk_that_is_gone_is_dropped(index: Index) -> None:
    """A vector that arrives after its chunk was replaced is stored nowhere."""
    file = found_file("memory/a.md")
    await index.replace(file, b"1", [chunk_of("old")], {}, frozenset())
    [waiting] = await index.waiting(10)
    await index.replace(file, b"2", [chunk_of("new")], {}, frozenset())
    assert await index.add_vectors([(waiting.id, waiting.hash, vector_of(1))]) == 0
    assert not index.has_vectors


async def test_vectors_of_another_model_have_no_place_beside_those_that_are_there(index: Index) -> None:
    """Nor does what another provider refuses, nor what was known of it when a file is written."""
    ours, other = FINGERPRINT.space, ("fake", "another", "k")
    chunks = [chunk_of("kettle"), chunk_of("heron", 2)]
    known = {one.hash: vector_of(1) for one in chunks}
    change = FileChange(found_file("memory/a.md"), b"1", chunks)
    await index.replace_all([change], known, frozenset(known), other)
    waiting = await index.waiting(10)
    assert {one.hash for one in waiting} == {one.hash for one in chunks}
    rows = [(one.id, one.hash, vector_of(2)) for one in waiting]
    assert await index.add_vectors(rows, other) == 0
    await index.mark_refused(chunks[0].hash, other)
    counts = await index.counts()
    assert (counts.done, counts.waiting) == (0, 2)
    assert await index.add_vectors(rows[:1], ours) == 1
    await index.mark_refused(rows[1][1], ours)
    counts = await index.counts()
    assert (counts.done, counts.waiting) == (1, 0)


async def test_an_index_of_text_alone_has_no_place_for_vectors(tmp_path: Path) -> None:
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",)))
    kettle = chunk_of("kettle")
    await index.replace(found_file("memory/a.md"), b"1", [kettle], {kettle.hash: vector_of(1)}, frozenset())
    ((chunk_id, _),) = await ranked(index, '"kettle"', 10, EVERYTHING)
    assert await index.add_vectors([(chunk_id, kettle.hash, vector_of(1))]) == 0
    assert (await index.waiting(10), await index.waiting_hashes(), await index.embedded()) == ([], [], [])
    await index.close()


async def test_a_close_waits_for_what_is_being_added(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though whoever added it waits no more, and however long it takes to learn that there is no file any more."""
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("text")], {}, frozenset())
    [waiting] = await index.waiting(10)
    begun, closed, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    write_more, close = Database.write_more, Database.close

    async def held(database: Database, *args: Any) -> Any:
        begun.set()
        try:
            return await write_more(database, *args)
        finally:
            await may_end.wait()

    async def told(database: Database) -> None:
        await close(database)
        closed.set()

    monkeypatch.setattr(Database, "write_more", held)
    monkeypatch.setattr(Database, "close", told)
    adding = asyncio.create_task(index.add_vectors([(waiting.id, waiting.hash, vector_of(1))]))
    await begun.wait()
    adding.cancel()
    closing = asyncio.create_task(index.close())
    await closed.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not closing.done()
    may_end.set()
    await closing


async def test_vectors_of_one_who_was_cancelled_are_seen_or_not_there(index: Index) -> None:
    """What is stored for an agent that is served no more is in memory, too, and can be closed in the middle of it."""
    chunks = [chunk_of(f"text {number}") for number in range(2)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    first, second = await index.waiting(10)
    met = threading.Event()

    def wait(times: int) -> bool:
        met.set()
        time.sleep(0.005)
        return times < 40

    await index.database.write(lambda connection: connection.set_busy_handler(wait))
    other = apsw.Connection(str(index.file))
    other.execute("BEGIN IMMEDIATE")
    adding = asyncio.create_task(index.add_vectors([(first.id, first.hash, vector_of(1))]))
    await until_async(met.is_set)
    adding.cancel()
    await asyncio.wait([adding])
    other.execute("ROLLBACK")
    assert await index.add_vectors([(second.id, second.hash, vector_of(2))]) == 1
    assert (await index.counts()).done == 2
    assert {len(part.ids) for part in _resident(index).parts} == {2}
    other.execute("BEGIN IMMEDIATE")
    met.clear()
    adding = asyncio.create_task(index.add_vectors([(first.id, first.hash, vector_of(1))]))
    await until_async(met.is_set)
    adding.cancel()
    await index.close()
    other.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


NEW = chunk_of("new")
FILE = found_file("memory/a.md")


@pytest.mark.parametrize(
    ("step", "change", "left"),
    [
        ("write", lambda index: index.remove([FILE.path]), 0),
        ("write_more", lambda index: index.replace(FILE, b"2", [], {}, frozenset()), 0),
        (
            "write_more",
            lambda index: index.replace(
                FILE, b"2", [NEW, chunk_of("old")], {NEW.hash: vector_of(2)}, frozenset()
            ),
            2,
        ),
        (
            "write_more",
            lambda index: index.replace_sessions([transcript(NEW)], {NEW.hash: vector_of(2)}, frozenset()),
            2,
        ),
    ],
)
async def test_what_is_in_memory_follows_the_file_though_who_changes_it_is_cancelled(
    index: Index,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    change: Callable[[Index], Coroutine[Any, Any, object]],
    left: int,
) -> None:
    """From the moment that the transaction is over; and whoever waits for a change is told of this one."""
    old = chunk_of("old")
    await index.replace(FILE, b"1", [old], {old.hash: vector_of(1)}, frozenset())
    version = index.changed.version
    is_written, may_end = asyncio.Event(), asyncio.Event()
    write = getattr(Database, step)

    async def held(database: Database, *args: Any) -> Any:
        done = await write(database, *args)
        is_written.set()
        await may_end.wait()
        return done

    monkeypatch.setattr(Database, step, held)
    changing = asyncio.create_task(change(index))
    await is_written.wait()
    changing.cancel()
    await asyncio.wait([changing])
    assert not await index.at_rest(0.001)
    may_end.set()
    assert await index.at_rest(20)
    assert (await index.counts()).done == left
    assert index.has_vectors == (left > 0)
    if left:
        assert (
            len(
                vector_matrix.nearest(
                    _resident(index), np.frombuffer(vector_of(1), np.float32), 10, EVERYTHING
                )
            )
            == left
        )
    assert index.changed.version != version


def transcript(chunk: Chunk) -> SessionChange:
    """One of a turn."""
    numbered = msgspec.structs.replace(chunk, numbers=(1,), turn=0)
    return SessionChange(
        found=found_file("sessions/here/a.jsonl", kind=Kind.SESSION),
        hash=b"h" * 32,
        progress=b"p1",
        since=None,
        turns_from=0,
        turns=[Turn("id0", "user", 1.5, 1, 2, chunk.text)],
        chunks_from=0,
        chunks=[numbered],
        resume=0,
        tally={},
    )


def _resident(index: Index) -> vector_matrix.Rows:
    rows = index.vectors.snapshot()
    assert rows is not None
    return rows


async def test_vectors_survive_reopening_and_agree_with_vec0(tmp_path: Path) -> None:
    """What is loaded into memory at start is what vec0 holds, and both rank alike."""
    first = Index(tmp_path / "main.sqlite")
    await first.open()
    await first.adopt(FINGERPRINT)
    for number in range(40):
        one = chunk_of(f"text {number}")
        await first.replace(
            found_file(f"memory/{number}.md"), b"1", [one], {one.hash: vector_of(number)}, frozenset()
        )
    await first.remove([f"memory/{number}.md" for number in range(0, 40, 4)])
    await first.close()
    second = Index(tmp_path / "main.sqlite")
    await second.open()
    await second.adopt(FINGERPRINT)
    rows = second.vectors.snapshot()
    assert rows is not None
    query = np.frombuffer(vector_of(1), "<f4")
    near = vector_matrix.nearest(rows, query, 10, EVERYTHING)
    by_vec0 = await second.database.read(vector_table.nearest, query, 10)
    assert near == [chunk_id for chunk_id, _ in by_vec0]
    assert vector_matrix.cosines(rows, query, np.array(near)) == pytest.approx(
        [cosine for _, cosine in by_vec0], abs=1e-5
    )
    await second.close()


async def test_a_file_that_was_only_touched_keeps_its_text_under_its_new_stamp(index: Index) -> None:
    """So that the next pass need not read it again; where there is none, nothing is written."""
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("words")], {}, frozenset())
    touched = found_file("memory/a.md", mtime_ns=9)
    for found in ([touched], []):
        await index.restamp(found)
        known = await index.find("memory/a.md")
        assert known is not None
        assert (known.stamp, known.hash) == (touched.stamp, b"1")
    assert len(await ranked(index, '"words"', 9, EVERYTHING)) == 1


async def test_an_index_of_text_alone_takes_vectors_of_one_model(tmp_path: Path) -> None:
    """What its text is for stays as it is; nothing is done for a model of unknown size, or where there are vectors."""
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.take_vectors(FINGERPRINT)
    assert index.space is None, "nobody knows what it is built for"
    text = Fingerprint("c1", "t1", ("memory",))
    await index.adopt(text)
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("words")], {}, frozenset())
    await index.take_vectors(msgspec.structs.replace(FINGERPRINT, chunking="c2", dimensions=None))
    assert await index.fingerprint() == text
    for model in ("m", "of another"):
        await index.take_vectors(msgspec.structs.replace(FINGERPRINT, model=model, chunking="c2"))
        assert index.space == FINGERPRINT.space
        assert await index.fingerprint() == FINGERPRINT
    [waiting] = await index.waiting(10)
    assert await index.add_vectors([(waiting.id, waiting.hash, vector_of(1))]) == 1
    await index.close()


async def test_vectors_of_another_model_that_sqlite_vec_left_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, their table could not be deleted when the model changed."""
    chunk, of_four = chunk_of("words"), msgspec.structs.replace(FINGERPRINT, model="of four", dimensions=4)
    vector = np.array([1, 0, 0, 0], "<f4").tobytes()
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    await index.replace(found_file("memory/a.md"), b"1", [chunk], {chunk.hash: vector_of(1)}, frozenset())
    await index.close()
    with monkeypatch.context() as system:
        system.setattr(vector_table, "find_extension", lambda: (None, "there is none"))
        index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(of_four)
    [waiting] = await index.waiting(10)
    assert await index.add_vectors([(waiting.id, waiting.hash, vector)]) == 1
    await index.close()
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(of_four)
    assert await index.vectors_of([chunk.hash]) == {chunk.hash: vector}
    await index.close()


@pytest.mark.parametrize("has_extension", [True, False])
async def test_an_index_that_is_opened_makes_chunks_and_vectors_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_extension: bool
) -> None:
    """A vector without a chunk goes, a chunk without its vector waits for one, and one that has it waits no more."""
    if not has_extension:
        monkeypatch.setattr(vector_table, "find_extension", lambda: (None, "there is none"))
    chunks = [chunk_of(text) for text in ("lost", "waits", "refused", "right", "refused and none")]
    vectors = {chunk.hash: vector_of(n) for n, chunk in enumerate(chunks[:4])}
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    await index.replace(found_file("sessions/s"), b"1", [chunk_of("other")], {}, frozenset())
    await index.replace(found_file("memory/a.md"), b"1", chunks, vectors, frozenset({chunks[4].hash}))
    lost, waits, refused, right, none = range(2, 7)

    def damage(connection: apsw.Connection) -> None:
        table = vector_table.table(connection)
        connection.execute(f"DELETE FROM {table} WHERE chunk_id = ?", (lost,))
        connection.execute("UPDATE chunks SET vector = 0 WHERE id = ?", (waits,))
        connection.execute("UPDATE chunks SET vector = 2 WHERE id = ?", (refused,))
        connection.execute(
            f"INSERT INTO {table} (chunk_id, embedding) VALUES (?, ?)", (none + 1, vector_of(9))
        )

    await index.database.write(damage)
    await index.adopt(FINGERPRINT)

    def look(
        connection: apsw.Connection,
    ) -> tuple[dict[int, int], list[int], DiskVectors | None]:
        states = dict(connection.execute("SELECT id, vector FROM chunks"))
        table = vector_table.table(connection)
        stored = [
            number for (number,) in connection.execute(f"SELECT chunk_id FROM {table} ORDER BY chunk_id")
        ]
        return states, stored, vector_table.shelved(connection, DIMENSIONS)

    states, stored, shelved = await index.database.read(look)
    assert states == {1: 0, lost: 0, waits: 1, refused: 1, right: 1, none: 2}
    assert stored == [waits, refused, right]
    assert shelved is not None
    assert shelved.snapshot().ids.tolist() == stored
    assert shelved.snapshot().kinds.tolist() == [Kind.NOTE] * 3
    await index.close()


async def test_without_sqlite_vec_vectors_are_kept_in_a_table_and_move_back(tmp_path: Path) -> None:
    """An index that is opened without the extension asks for its vectors again, keeps them, and gives them back."""
    kept = chunk_of("kept")

    async def opened(extension: bool) -> Index:
        with pytest.MonkeyPatch.context() as system:
            if not extension:
                system.setattr(vector_table, "find_extension", lambda: (None, "there is none"))
            index = Index(tmp_path / "main.sqlite")
        await index.open()
        await index.adopt(FINGERPRINT)
        return index

    index = await opened(extension=True)
    await index.replace(found_file("memory/a.md"), b"1", [kept], {kept.hash: vector_of(1)}, frozenset())
    await index.close()
    index = await opened(extension=False)
    [waiting] = await index.waiting(10)
    assert await index.add_vectors([(waiting.id, waiting.hash, vector_of(1))]) == 1
    other = chunk_of("other")
    await index.replace(found_file("memory/b.md"), b"1", [other], {other.hash: vector_of(2)}, frozenset())
    await index.remove(["memory/a.md"])
    await index.close()
    index = await opened(extension=True)
    counts = await index.counts()
    assert (counts.done, counts.waiting) == (1, 0)
    rows = index.vectors.snapshot()
    assert rows is not None
    assert len(vector_matrix.nearest(rows, np.frombuffer(vector_of(2), "<f4"), 10, EVERYTHING)) == 1
    await index.close()


async def beside_a_reader(file: Path, work: Coroutine[Any, Any, object], ends_after_s: float) -> object:
    """Do it while somebody else reads the file as it was, for so long."""
    other = apsw.Connection(str(file))
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM chunks").fetchall()
    with closing(other):
        doing = asyncio.create_task(work)
        await asyncio.wait([doing], timeout=ends_after_s)
        other.execute("ROLLBACK")
        return await doing


async def test_what_is_handed_over_is_in_the_file_itself(index: Index) -> None:
    """Also where somebody reads it just then: that is waited for."""

    async def written() -> object:
        await index.replace(found_file("memory/a.md"), b"1", [chunk_of("kettle")], {}, frozenset())
        await index.hand_over()
        with migrations.immutable(index.file) as connection:
            return connection.execute("SELECT path FROM files").fetchall()

    assert await beside_a_reader(index.file, written(), 0.3) == [("memory/a.md",)]


async def test_what_cannot_be_put_into_the_file_itself_is_not_handed_over(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody reads it for too long. The index that would take it over is as it was, and takes it later."""
    await index.replace(found_file("memory/old.md"), b"1", [chunk_of("walrus")], {}, frozenset())
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 20)
    beside = Index(tmp_path / "main.sqlite.next")
    await beside.open()
    await beside.adopt(FINGERPRINT)

    async def swapped() -> None:
        await beside.replace(found_file("memory/a.md"), b"1", [chunk_of("kettle")], {}, frozenset())
        with pytest.raises(StoreUnavailable, match="is read by another process"):
            await index.swap_in(beside)

    await beside_a_reader(beside.file, swapped(), 60)
    assert await ranked(index, '"walrus"', 10, EVERYTHING)
    await index.swap_in(beside)
    assert await ranked(index, '"kettle"', 10, EVERYTHING)


async def test_after_a_swap_nobody_is_waited_for(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is brought into the file as far as searches that go on let it be."""
    folded: list[tuple[Path, bool]] = []
    checkpoint = Database.checkpoint

    async def told(database: Database, *, wait: bool) -> None:
        folded.append((database.file, wait))
        await checkpoint(database, wait=wait)

    monkeypatch.setattr(Database, "checkpoint", told)
    beside = Index(tmp_path / "main.sqlite.next")
    await beside.open()
    await beside.adopt(FINGERPRINT)
    await index.swap_in(beside)
    assert [wait for file, wait in folded if file == index.file] == [False]


async def test_become_swaps_content_and_never_reuses_ids(index: Index, tmp_path: Path) -> None:
    """After a swap the index holds what was built beside it, under ids that were never given before."""
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("old words")], {}, frozenset())
    beside = Index(tmp_path / "main.sqlite.next")
    await beside.open()
    await beside.adopt(FINGERPRINT)
    await beside.start_ids_at(5000)
    built = chunk_of("new words")
    await beside.replace(found_file("memory/b.md"), b"1", [built], {built.hash: vector_of(3)}, frozenset())
    waiting = asyncio.create_task(index.changed.since(index.changed.version))
    await index.swap_in(beside)
    await asyncio.wait_for(waiting, 60)
    assert await ranked(index, '"old"', 10, EVERYTHING) == []
    [(chunk_id, _)] = await ranked(index, '"words"', 10, EVERYTHING)
    assert chunk_id == 5000
    rows = index.vectors.snapshot()
    assert rows is not None
    assert vector_matrix.nearest(rows, np.frombuffer(vector_of(3), "<f4"), 10, EVERYTHING) == [chunk_id]
    await index.replace(found_file("memory/c.md"), b"1", [chunk_of("later words")], {}, frozenset())
    assert len(await ranked(index, '"words"', 10, EVERYTHING)) == 2


async def test_damaged_file_is_set_aside_and_made_anew(tmp_path: Path) -> None:
    """A file that is no database is kept under another name, and the index starts empty."""
    file = tmp_path / "main.sqlite"
    file.write_bytes(b"this is no database at all " * 100)
    index = Index(file)
    await index.open()
    await index.adopt(FINGERPRINT)
    assert (await index.counts()).files == 0
    await index.close()
    assert (tmp_path / "main.sqlite.damaged-1").read_bytes().startswith(b"this is no database")


async def test_two_writes_at_once_both_arrive(index: Index) -> None:
    """Writes wait for each other, whoever sends them."""
    await asyncio.gather(
        *(
            index.replace(found_file(f"memory/{n}.md"), b"1", [chunk_of(f"word{n}")], {}, frozenset())
            for n in range(30)
        )
    )
    counts = await index.counts()
    assert (counts.chunks, counts.held) == (30, 30)


async def test_the_file_is_an_ordinary_database(index: Index) -> None:
    """Anyone with SQLite can read the chunks."""
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("plain")], {}, frozenset())
    connection = sqlite3.connect(index.file)
    try:
        assert connection.execute("SELECT text FROM chunks").fetchall() == [("plain",)]
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("stored", "wanted", "reason"),
    [
        (None, FINGERPRINT, "does not say"),
        (FINGERPRINT, FINGERPRINT, None),
        (FINGERPRINT, Fingerprint("c2", "t1", ("memory",), "fake", "m", "k", DIMENSIONS), "chunking changed"),
        (
            FINGERPRINT,
            Fingerprint("c1", "t2", ("memory",), "fake", "m", "k", DIMENSIONS),
            "tokenizer changed",
        ),
        (
            FINGERPRINT,
            Fingerprint("c1", "t1", ("memory", "sessions"), "fake", "m", "k", DIMENSIONS),
            "sources changed",
        ),
        (
            FINGERPRINT,
            Fingerprint("c1", "t1", ("memory",), "fake", "m2", "k", DIMENSIONS),
            "embedding model changed",
        ),
        (FINGERPRINT, Fingerprint("c1", "t1", ("memory",), "fake", "m", "k", 9), "embedding model changed"),
        (FINGERPRINT, Fingerprint("c1", "t1", ("memory",)), None),
        (Fingerprint("c1", "t1", ("memory",)), FINGERPRINT, None),
    ],
)
def test_what_makes_a_rebuild(stored: Fingerprint | None, wanted: Fingerprint, reason: str | None) -> None:
    """Chunking, tokenizer, sources and model decide; a provider that is missing or new does not."""
    why = why_rebuild(stored, wanted)
    assert (why is None) if reason is None else (why is not None and reason in why)


async def test_index_keeps_its_vectors_while_the_provider_is_missing(tmp_path: Path) -> None:
    """An index that is opened without a provider has its vectors again when the provider is back."""
    one = chunk_of("one")
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    await index.replace(found_file("memory/a.md"), b"1", [one], {one.hash: vector_of(1)}, frozenset())
    await index.close()
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",)))
    assert not index.has_vectors
    assert await index.fingerprint() == FINGERPRINT
    await index.close()
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    assert index.has_vectors
    await index.close()


async def test_mount_points_are_remembered(tmp_path: Path) -> None:
    """Those of the last time, and for the next start."""
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    assert await index.mounts() == []
    for mounts in ([("/media/a", "memory/"), ("/mnt/笔记", "b/")], [("/mnt/c", "c/")]):
        await index.put_mounts(mounts)
        assert await index.mounts() == mounts
    await index.close()
    again = Index(index.file)
    await again.open()
    assert await again.mounts() == [("/mnt/c", "c/")]
    await again.close()


async def test_what_could_not_be_written_at_the_start_is_written_when_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the index serves by its words; and where nothing is left to do, nothing is done."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 20)
    other = msgspec.structs.replace(FINGERPRINT, model="another")
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    await index.finish_opening()
    with closing(apsw.Connection(str(index.file))) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        await index.adopt(other)
        assert not index.has_vectors
        with pytest.raises(StoreUnavailable):
            await index.finish_opening()
        assert await index.fingerprint() == FINGERPRINT
        blocker.execute("ROLLBACK")
    await index.finish_opening()
    assert await index.fingerprint() == other
    await index.adopt(FINGERPRINT)
    await index.finish_opening()  # what was caught up on is not done again
    assert await index.fingerprint() == FINGERPRINT
    await index.close()


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    """Whatever is asked of it; and so does one that has not been opened."""
    database = Database(tmp_path / "main.sqlite", "index")
    await database.open()
    await database.close()
    await database.close()
    for closed in (database, Database(tmp_path / "never.sqlite", "index")):
        works: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda closed=closed: closed.read(id),  # type: ignore[misc]
            lambda closed=closed: closed.write(id),  # type: ignore[misc]
            lambda closed=closed: closed.write_more(1, id),  # type: ignore[misc]
            closed.check,
            closed.shrink,
            closed.truncate_wal,
        )
        for work in works:
            with pytest.raises(StoreClosed):
                await work()
    with pytest.raises(StoreClosed):
        await database.release_pages()


async def test_a_file_that_breaks_in_the_middle_can_be_begun_anew(index: Index) -> None:
    """Damage that shows only in use is set aside too, and what is written afterwards is found."""
    for number in range(50):
        await index.replace(
            found_file(f"memory/{number}.md"), b"1", [chunk_of(f"word{number} " * 200)], {}, frozenset()
        )
    await index.close()
    connection = apsw.Connection(str(index.file))
    try:
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 1")
        roots = [int(str(page)) for (page,) in found]
    finally:
        connection.close()
    with index.file.open("r+b") as file:
        for page in roots:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
    damaged = Index(index.file)
    await damaged.open()
    with pytest.raises(StoreDamaged) as damage:
        await damaged.adopt(FINGERPRINT)
    await damaged.start_over(damage.value)
    await damaged.adopt(FINGERPRINT)
    await damaged.replace(found_file("memory/a.md"), b"1", [chunk_of("whole again")], {}, frozenset())
    assert len(await ranked(damaged, '"whole"', 10, EVERYTHING)) == 1
    await damaged.close()


async def test_a_sound_index_is_never_called_damaged(index: Index) -> None:
    """However often it is looked through, whatever was searched, written and merged in between."""

    async def put(numbers: range) -> None:
        for number in numbers:
            chunk = chunk_of(f"word{number} " * 200)
            await index.replace(found_file(f"memory/{number}.md"), b"", [chunk], {}, frozenset())

    await put(range(20))
    for _ in range(READERS):
        await index.database.check()
        assert await ranked(index, '"word3"', 5, EVERYTHING)
    await put(range(5, 60))
    more = await index.tidy_keywords(begin=True)
    while more:
        more = await index.tidy_keywords(begin=False)
    for _ in range(READERS):
        await index.database.check()


async def test_what_was_written_just_now_is_embedded_first(index: Index) -> None:
    """Also where its stamp is one that equals no other, since it was read within a tick of being written."""
    for path, mtime_ns in (("old", 5), ("fresh", -1), ("new", 9), ("ancient", -7)):
        await index.replace(found_file(path, mtime_ns=mtime_ns), b"1", [chunk_of(path)], {}, frozenset())
    assert [chunk.text for chunk in await index.waiting(10)] == ["fresh", "new", "old", "ancient"]


async def test_how_much_is_to_be_written_is_told_before(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bytes, about: texts, what places them, and the vectors that are known."""
    sizes: list[int] = []
    write_more = index.database.write_more

    async def counting(size_bytes: int, *what: Any) -> Any:
        sizes.append(size_bytes)
        return await write_more(size_bytes, *what)

    monkeypatch.setattr(index.database, "write_more", counting)
    chunks = [chunk_of("12345", context="123"), chunk_of("1234567", 2)]
    vectors = {chunks[0].hash: vector_of(1)}
    await index.replace(found_file("a.md"), b"1", chunks, vectors, frozenset())
    assert sizes == [5 + 3 + 7 + 4 * DIMENSIONS]


async def test_an_index_that_sqlite_opens_for_reading_alone_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so without a word, where the file may not be written."""
    opened = Index(tmp_path / "main.sqlite")
    await opened.open()
    await opened.close()
    connect = Connections.open

    def only_to_read(self: Connections, uri: str, flags: int) -> apsw.Connection:
        flags &= ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        return connect(self, uri, flags | apsw.SQLITE_OPEN_READONLY)

    monkeypatch.setattr(Connections, "open", only_to_read)
    again = Index(tmp_path / "main.sqlite")
    await again.open()
    assert again.database.read_only is not None
    assert "read-only (no permission to write)" in again.database.read_only
    with pytest.raises(StoreUnavailable, match="no permission to write"):
        await again.put_mounts([])
    await again.close()


async def test_what_waits_for_a_vector_is_told(index: Index) -> None:
    """Whether any does, whether there is any vector, and which are missing from the file."""
    assert not await index.any_waits()
    assert not index.has_vectors
    assert index.space == FINGERPRINT.space
    one, other = chunk_of("one"), chunk_of("other", 2)
    await index.replace(found_file("a.md"), b"1", [one, other], {one.hash: vector_of(1)}, frozenset())
    assert (await index.any_waits(), index.has_vectors) == (True, True)
    await index.mark_refused(other.hash, ("another", "m", "k"))
    assert await index.any_waits()
    await index.mark_refused(other.hash, FINGERPRINT.space)
    assert not await index.any_waits()
    assert await index.database.read(vector_table.gaps) == ()
    assert await index.vectors_of([one.hash, other.hash]) == {one.hash: vector_of(1)}
    assert sorted(await index.hashes()) == sorted([one.hash, other.hash])
    assert await index.embedded() == [one.hash]
    assert index.store_bytes == _bytes_of(index)


def _bytes_of(index: Index) -> int:
    return sum(Path(f"{index.file}{end}").stat().st_size for end in ("", "-wal"))


async def test_vectors_that_a_file_does_not_have_are_missed(tmp_path: Path) -> None:
    """In an index that says so of its chunks; one without any place for them lacks none."""
    opened = Index(tmp_path / "main.sqlite")
    await opened.open()
    assert await opened.database.read(vector_table.gaps) == ()
    assert await opened.database.read(vector_table.of_texts, [chunk_of("one").hash]) == {}
    assert await opened.database.read(vector_table.loaded, DIMENSIONS) is None
    assert await opened.database.read(vector_table.shelved, DIMENSIONS) is None
    await opened.adopt(Fingerprint("c1", "t1", ("memory",)))
    await opened.replace(found_file("a.md"), b"1", [chunk_of("one"), chunk_of("two", 2)], {}, frozenset())
    assert opened.store_bytes > 0
    assert not await opened.waiting(9)
    await opened.database.write(
        lambda one: one.execute(f"UPDATE chunks SET vector = {vector_table.DONE}").fetchall()
    )
    assert await opened.database.read(vector_table.gaps) == ("2 vectors are missing",)
    await opened.close()


def test_a_file_of_a_kind_that_there_is_not_is_damage() -> None:
    """It may be what nobody may see."""
    assert kind_of(int(Kind.NOTE)) is Kind.NOTE
    with pytest.raises(StoreDamaged, match="of kind 99"):
        kind_of(99)


@pytest.mark.parametrize(
    ("first_s", "last_s", "when"), [(1, 2, (1, 2)), (None, 2, None), (1, None, None), (0, 0, (0, 0))]
)
def test_when_a_chunk_is(first_s: int | None, last_s: int | None, when: tuple[int, int] | None) -> None:
    """Nothing, where nothing in its file says."""
    chunk = StoredChunk(ChunkId(1), "a.md", Kind.NOTE, 1, 1, "text", "", first_s=first_s, last_s=last_s)
    assert chunk.when == when


async def test_an_index_that_was_handed_over_is_closed_and_all_of_it_is_in_its_file(index: Index) -> None:
    """Another one takes the file: nothing may be written to it any more, nor stand in a log beside it."""
    [chunk] = chunks = [chunk_of("some words")]
    found = found_file("memory/a.md")
    await index.replace(found, b"1", chunks, {chunk.hash: vector_of(1)}, frozenset())
    held = await index.hand_over()
    assert held is not None
    assert len(held) == 1
    with pytest.raises(StoreClosed):
        await index.replace(found, b"2", chunks, {}, frozenset())
    assert database_files.size(index.file.with_name(f"{index.file.name}-wal")) == 0
    connection = sqlite3.connect(index.file)
    try:
        assert connection.execute("SELECT text FROM chunks").fetchall() == [("some words",)]
    finally:
        connection.close()


async def test_an_index_that_was_made_for_other_text_is_not_taken_as_it_is(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot be written just now, one of the same text serves; of other vectors it has none."""

    async def full(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    chunk = chunk_of("kettle")
    await index.replace(found_file("memory/a.md"), b"1", [chunk], {chunk.hash: vector_of(1)}, frozenset())
    monkeypatch.setattr(index.database, "write", full)
    await index.adopt(FINGERPRINT)
    assert index.has_vectors
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await index.adopt(msgspec.structs.replace(FINGERPRINT, chunking="c2"))


async def test_a_file_that_cannot_be_set_aside_is_not_replaced(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wanted it is told, and what was there answers."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("kettle")], {}, frozenset())
    other = Index(tmp_path / "main.sqlite.next")
    await other.open()
    await other.adopt(FINGERPRINT)
    monkeypatch.setattr(recovery, "quarantine", refuse)
    with pytest.raises(StoreUnavailable, match="Read-only file system"):
        await index.swap_in(other, damage="a page cannot be read")
    assert set(await index.known()) == {"memory/a.md"}
    await other.close()


async def test_notes_that_older_rules_could_not_read_are_read_again_once(index: Index) -> None:
    """Only those; they stay found until then, and transcripts are none of them."""
    broken = "\ufffd\ufffd of the week"
    files = {
        found_file("memory/a.md"): broken,
        found_file("memory/b.md"): "all of the week",
        found_file("MEMORY.md", kind=Kind.CURATED): broken,
        found_file("sessions/c.jsonl", kind=Kind.SESSION): broken,
    }
    for file, text in files.items():
        await index.replace(file, b"h", [chunk_of(text)], {}, frozenset())
    await index.adopt(FINGERPRINT)
    assert {one.hash for one in (await index.known()).values()} == {b"h"}
    await index.database.write(
        lambda connection: connection.execute("DELETE FROM meta WHERE key = 'decoding'")
    )
    await index.adopt(FINGERPRINT)
    known = await index.known()
    again = {path for path, one in known.items() if (one.hash, one.stamp.mtime_ns) == (b"", -1)}
    assert again == {"memory/a.md", "MEMORY.md"}
    assert {one.hash for path, one in known.items() if path not in again} == {b"h"}
    assert (
        await index.database.read(lambda connection: connection.execute("SELECT count(*) FROM chunks").get)
        == 4
    )
