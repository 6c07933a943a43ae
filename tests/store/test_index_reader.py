"""What a search reads of one state of an index: the same, whether postings in memory tell it or the file."""

import apsw
import msgspec
import numpy as np
import pytest

from memd.domain_types import ChunkId, Kind
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.index_reader import IndexReader
from memd.store.search_keywords import KeywordReader
from memd.store.vector_matrix import DEAD
from memd.text.time_phrases import dated
from memd.text.writing_systems import scripts
from tests.store.conftest import chunk_of, found_file, ranked
from tests.wait import until_async

KINDS = frozenset(Kind)


async def filled(index: Index) -> list[ChunkId]:
    """A dated note in Chinese, a transcript in English, a note of both; and one id more, whose chunk is gone."""
    day = dated("2026-02-09")
    assert day is not None
    said = [
        ("memory/a.md", Kind.NOTE, msgspec.structs.replace(chunk_of("我们选了数据库"), when=day)),
        ("sessions/s.jsonl", Kind.SESSION, chunk_of("which database did we pick")),
        ("memory/c.md", Kind.NOTE, chunk_of("数据库 database")),
        ("memory/gone.md", Kind.NOTE, chunk_of("nothing")),
    ]
    for path, kind, chunk in said:
        await index.replace(found_file(path, kind=kind), b"1", [chunk], {}, frozenset())
    await index.remove(["memory/gone.md"])
    return [ChunkId(n) for n in range(1, 5)]


@pytest.mark.parametrize("in_memory", [False, True])
async def test_facts_of_chunks_are_those_of_the_file(
    index: Index, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool
) -> None:
    """Their kinds, and when they are; a chunk that is gone is of no kind and of no time."""
    monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
    ids = await filled(index)
    if in_memory:
        await ranked(index, '"database"', 1, KINDS)
        await until_async(lambda: index.postings.is_ready)
    state = index.state
    assert state is not None
    facts = await index.read(lambda reader: reader.facts(np.array(ids, np.int64)), state)
    assert facts.kinds.tolist() == [Kind.NOTE, Kind.SESSION, Kind.NOTE, DEAD]
    day = dated("2026-02-09")
    assert day is not None
    first_s, last_s = day.as_seconds
    for since, until, of_first in (
        (first_s, last_s, True),
        (last_s, last_s + 9, True),
        (last_s + 1, last_s + 9, False),
        (0, first_s - 1, False),
    ):
        assert facts.are_of(since, until).tolist() == [of_first, False, False, False]
    other = await index.read(lambda reader: reader.facts(np.array(ids, np.int64)), None)
    assert (other.kinds == facts.kinds).all()
    assert (other.times[:3] == facts.times[:3]).all()


async def test_facts_are_not_told_by_postings_that_a_change_has_overtaken(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index may change between a search's looking up postings and the beginning of its transaction."""
    monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
    await filled(index)
    await ranked(index, '"database"', 1, KINDS)
    await until_async(lambda: index.postings.is_ready)
    before, state = index.postings.asked(), index.state
    assert before is not None
    assert state is not None
    await index.replace(found_file("memory/new.md"), b"1", [chunk_of("database again")], {}, frozenset())
    monkeypatch.setattr(index.postings, "asked", lambda: before)
    facts = await index.read(lambda reader: reader.facts(np.array([5], np.int64)), state)
    assert facts.kinds.tolist() == [Kind.NOTE]


@pytest.mark.parametrize("in_memory", [False, True])
async def test_how_foreign_chunks_are_is_told_by_their_scripts(
    index: Index, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool
) -> None:
    """Not at all in the script of the question, wholly in another one, and in part where a chunk has both."""
    monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
    ids = (await filled(index))[:3]
    if in_memory:
        await ranked(index, '"database"', 1, KINDS)
        await until_async(lambda: index.postings.is_ready)
    asked = scripts("which database")
    chinese, english, both = (
        await index.read(lambda reader: reader.foreign(np.array(ids, np.int64), asked), index.state)
    ).tolist()
    assert (chinese, english) == (1.0, 0.0)
    assert 0 < both < 1


async def test_what_a_search_can_do_without_may_fail_and_the_rest_is_read(index: Index) -> None:
    """Also where SQLite has ended the transaction by itself; what is read afterwards is of one state again."""
    [first, *_] = await filled(index)

    def look(connection: apsw.Connection) -> tuple[list[str], bool]:
        reader = IndexReader(
            connection,
            index.database,
            index.vectors,
            KeywordReader(connection, index.postings.asked()),
            None,
        )

        def fail(*, ends: bool) -> None:
            with reader.isolating_failures():
                if ends:
                    connection.execute("ROLLBACK")
                raise apsw.IOError("disk I/O error")

        for ends in (False, True):
            with pytest.raises(StoreUnavailable):
                fail(ends=ends)
        return [one.text for one in reader.texts([first]).values()], connection.in_transaction

    assert await index.database.read(look) == (["我们选了数据库"], True)


async def test_places_of_chunks_are_told_with_those_that_were_read_before(index: Index) -> None:
    """Those of what is gone are left out."""
    ids = await filled(index)
    some, every, again = await index.read(
        lambda reader: [[one.path for one in reader.places(few).values()] for few in (ids[1:2], ids, ids[:1])]
    )
    assert some == ["sessions/s.jsonl"]
    assert sorted(every) == sorted(again) == ["memory/a.md", "memory/c.md", "sessions/s.jsonl"]
