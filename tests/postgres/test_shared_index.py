"""What a search reads of a server, and when connections are given up."""

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import NO_FILTER, ChunkId, DegradedPart, Kind, SearchFilter
from memd.postgres.connection import SharedUnavailable
from memd.postgres.mirror import Mirror, VectorSpace
from memd.postgres.shared_index import SharedFile, SharedIndex, SharedReader, find_file, matching
from memd.postgres.snapshots import ServerQuery, ServerSnapshot, SharedConnections
from memd.search.protocols import ChunkReader
from memd.search.searcher import Searcher
from memd.store.chunk_parts import ClosestPart
from memd.store.chunks import StoredChunk
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.index import Index
from memd.store.published_files import PublishedChunk, PublishedFile, PublishedPart
from tests.bounds import shipped
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer
from tests.relay import relay
from tests.store.conftest import chunk_of, found_file, ranked
from tests.wait import until_async


def test_a_filter_is_bound_and_not_written() -> None:
    """Whatever it says, it is no SQL."""
    hostile = "x') OR true --"
    wanted = SearchFilter(tags=(hostile,), properties=((hostile, hostile),), since_s=1, since_ns=2)
    condition, values = matching(None, 7, wanted, [Kind.NOTE])  # type: ignore[arg-type]  # it is asked where globs are
    assert hostile not in condition
    assert list(values.values()).count(hostile) == 3
    assert matching(None, 7, NO_FILTER, [Kind.NOTE])[1] == {"tenant": 7, "kinds": [0]}  # type: ignore[arg-type]  # likewise


@pytest.fixture
def connections(admin_dsn: str, tmp_path: Path) -> SharedConnections:
    """Those of bob to a memory that is empty."""
    file = tmp_path / "bob.dsn"
    file.write_text(member(admin_dsn, "bob", "alice/main", may_write=False))
    file.chmod(0o600)
    return SharedConnections(file, "alice/main", 5.0)


async def test_a_server_that_is_silent_keeps_no_thread(
    server: PostgresServer, admin_dsn: str, tmp_path: Path
) -> None:
    """Neither for who waited to the end nor for who has gone; and it is asked again on another connection."""
    file = tmp_path / "bob.dsn"
    file.touch(mode=0o600)
    with relay(server.port) as way:
        dsn = member(admin_dsn, "bob", "alice/main", may_write=False)
        file.write_text(
            " ".join(f"port={way.port}" if one.startswith("port=") else one for one in dsn.split())
        )
        patient = SharedConnections(file, "alice/main", 60.0)
        index = SharedIndex(patient)
        known = await index.refresh()
        way.hold()
        gone = asyncio.create_task(index.refresh())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.shield(gone)
        gone.cancel()
        await asyncio.wait([gone])
        await until_async(lambda: patient.is_idle)
        way.release()
        assert await index.refresh() == known
        way.hold()
        impatient = SharedConnections(file, "alice/main", 0.3)
        with pytest.raises(SharedUnavailable, match=r"has not answered within 0\.3 s"):
            await SharedIndex(impatient).refresh()
        way.release()
        await until_async(lambda: impatient.is_idle)
        patient.close()
        impatient.close()


async def test_tables_that_became_those_of_a_newer_memd_are_left_alone(
    connections: SharedConnections, admin_dsn: str
) -> None:
    """Also on a connection from before, by searches and by get; they are read where the newer ones may be."""
    index = SharedIndex(connections)
    await index.refresh()

    async def read() -> None:
        await index.read(lambda reader: reader.keywords.search('"vault"', 10, [Kind.NOTE], (NO_FILTER,)))

    async def get() -> None:
        await connections.run(lambda snapshot: find_file(snapshot, "alice/main", "memory/a.md"))

    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("UPDATE memd.version SET version = 99")
        await read()
        await get()
        admin.execute("UPDATE memd.version SET least = 99")
    for ask in (read, get):
        with pytest.raises(SharedUnavailable, match=r"of a newer memd \(its tables have version 99"):
            await ask()
    connections.close()


async def test_an_empty_memory_is_searched(connections: SharedConnections) -> None:
    """It has no candidates, and lacks nothing."""
    index = SharedIndex(connections)
    known = await index.refresh()
    assert (known.chunks, known.space, index.has_vectors, await index.any_waits()) == (0, None, False, False)

    def look(reader: Any) -> tuple[Any, dict[Any, StoredChunk]]:
        found = reader.keywords.search('"vault"', 10, [Kind.NOTE], (NO_FILTER,))
        return found, reader.texts([1, 2])

    assert await index.read(look) == ([], {})
    connections.close()


async def test_nothing_is_written_by_who_searches(connections: SharedConnections) -> None:
    """The transaction only reads, though the role might."""
    with pytest.raises(SharedUnavailable, match="read-only transaction"):
        await connections.run(lambda connection: connection.execute("UPDATE memd.memories SET tokens = 1"))
    connections.close()


async def test_nothing_is_kept_in_a_session(connections: SharedConnections) -> None:
    """Behind a pooler the next transaction may be in another one."""
    for _ in range(12):
        await connections.run(
            lambda connection: connection.execute("SELECT name FROM memd.memories WHERE tenant = %s", (1,))
        )
    row = await connections.run(
        lambda connection: connection.execute(
            "SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels())"
        ).fetchone()
    )
    assert row == (0, 0)
    connections.close()


async def test_a_snapshot_is_one_transaction_until_its_last_question(connections: SharedConnections) -> None:
    """What is asked afterwards reads the state of then, and nothing is left open, nor ended twice."""

    def states(snapshot: ServerSnapshot) -> list[str]:
        seen = []
        for asked in (snapshot.ask, partial(snapshot.ask, is_last=True), partial(snapshot.ask, is_last=True)):
            asked(ServerQuery("SELECT 1"))
            seen.append(snapshot._connection.info.transaction_status.name)  # noqa: SLF001 - whether one is open
        snapshot.end()
        return seen

    assert await connections.run(states) == ["INTRANS", "IDLE", "IDLE"]
    connections.close()


async def test_a_statement_that_takes_too_long_is_ended(admin_dsn: str, tmp_path: Path) -> None:
    """Here and at the server, and the next one finds a connection."""
    file = tmp_path / "bob.dsn"
    file.write_text(member(admin_dsn, "bob", "alice/main", may_write=False))
    file.chmod(0o600)
    impatient = SharedConnections(file, "alice/main", 0.3)
    patient = SharedConnections(file, "alice/main", 5.0)
    await patient.run(lambda connection: connection.execute("SELECT 1"))
    with pytest.raises(SharedUnavailable):
        await impatient.run(lambda connection: connection.execute("SELECT pg_sleep(60)"))
    row = await patient.run(lambda connection: connection.execute("SELECT 2").fetchone())
    assert row == (2,)
    impatient.close()
    patient.close()


async def test_so_many_ask_at_a_time(connections: SharedConnections) -> None:
    """The others wait, and no more connections are made than that."""
    most = shipped("memd.postgres.snapshots.AT_ONCE")
    pids = await asyncio.gather(
        *(
            connections.run(
                lambda connection: connection.execute("SELECT pg_backend_pid(), pg_sleep(.01)").fetchone()
            )
            for _ in range(5 * most)
        )
    )
    assert 1 <= len({row[0] for row in pids if row is not None}) <= most
    connections.close()


async def test_a_connection_that_was_ended_meanwhile_costs_no_search(
    connections: SharedConnections, admin_dsn: str
) -> None:
    """As after a restart of the server: another one is made."""
    asked = "SELECT pg_backend_pid()"
    before = await connections.run(lambda snapshot: snapshot.execute(asked).fetchone())
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", before)
    after = await connections.run(lambda snapshot: snapshot.execute(asked).fetchone())
    assert after != before
    connections.close()


TEXTS = (
    "The boiler was repaired by Marchetti on Friday.",
    "Marchetti also looked at the sink.",
    "Lunch with Juliana about the exhibition.",
    "Bring the ladder back. We bring tea.",
)


class _NoProvider:
    """Embeds nothing."""

    provider_name = model_name = "none"

    async def embed_query(self, text: str, space: Space) -> DegradedPart:
        return DegradedPart("vector", "there is none")

    def unavailable(self, space: Space | None) -> None:
        return None


def _trips(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each round trip to the server from now on."""
    trips: list[None] = []
    ask = ServerSnapshot.ask

    def counted(self: ServerSnapshot, *queries: Any, **options: Any) -> Any:
        trips.append(None)
        return ask(self, *queries, **options)

    monkeypatch.setattr(ServerSnapshot, "ask", counted)
    return trips


def _mirror(admin_dsn: str, directory: Path) -> Mirror:
    """Publishes alice's memory."""
    dsn_file = directory / "alice.dsn"
    dsn_file.touch(mode=0o600)
    dsn_file.write_text(member(admin_dsn, "alice", "alice/main"))
    mirror = Mirror(dsn_file, "alice/main", "me")
    mirror.open()
    return mirror


def _publish(admin_dsn: str, directory: Path) -> None:
    """Each text is a note of alice's."""
    mirror = _mirror(admin_dsn, directory)
    for number, text in enumerate(TEXTS):
        chunk = PublishedChunk(1, 1, text, "", bytes([number] * 32), None, None, None, None, None, ())
        file = PublishedFile(f"memory/{number}.md", Kind.NOTE, b"x" * 32, 1, None, (), (chunk,))
        mirror.put(file, [text], file.digests([text], None))
    mirror.close()


def _publish_vectors(mirror: Mirror, space: VectorSpace) -> None:
    """One note, whose second part has the vector 0, 1, ... of a space."""
    mirror.adopt(space)
    first, second = np.eye(space.dimensions, dtype=np.float32)[:2]
    parts = tuple(
        PublishedPart(*span, vector.astype("<f2").tobytes())
        for span, vector in (((0, 4), first), ((5, 9), second))
    )
    chunk = PublishedChunk(
        *(1, 1, "beds and bulb", "", b"b" * 32, None, None, None, None), first.tobytes(), parts
    )
    file = PublishedFile("memory/a.md", Kind.NOTE, b"x" * 32, 1, None, (), (chunk,))
    mirror.put(file, [chunk.text], file.digests([chunk.text], space))


async def test_vectors_are_compared_as_long_as_the_model_of_the_question_made_them(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path
) -> None:
    """With the best part of a chunk. Those of another model, which may be longer, are not looked at."""
    mirror = _mirror(admin_dsn, tmp_path)
    _publish_vectors(mirror, VectorSpace(("hashing", "words", "1"), 2, has_parts=True))
    index = SharedIndex(connections)
    await index.refresh()
    assert index.vectors.current() is not None
    query = np.array([0.6, 0.8], np.float32)

    def look(reader: SharedReader) -> tuple[NearVectors | None, dict[ChunkId, ClosestPart]]:
        found = reader.keywords.search('"bulb"', 10, [Kind.NOTE], (NO_FILTER,))
        known = ListedVector(np.empty(0, np.int64), np.empty(0, np.int8))
        near = reader.nearest(known, query, 10, [Kind.NOTE], [], [None])
        parts = reader.closest_parts([one for one, _ in found], query)
        info = reader._snapshot._connection.info  # noqa: SLF001 - parts are what a search reads last
        assert info.transaction_status.name == "IDLE"
        return near, parts

    near, parts = await index.read(look)
    assert near is not None
    (chunk_id,) = near.chunk_ids
    assert parts[chunk_id].span == (5, 9)
    assert parts[chunk_id].cosine == pytest.approx(0.8, abs=0.001)
    _publish_vectors(mirror, VectorSpace(("hashing", "words", "2"), 3, has_parts=True))
    assert await index.read(look) == (None, {})
    mirror.close()
    connections.close()


async def _there_and_here(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path
) -> tuple[SharedIndex, Index]:
    """Publish the texts, and put them into an index of this machine."""
    _publish(admin_dsn, tmp_path)
    there = SharedIndex(connections)
    await there.refresh()
    here = Index(tmp_path / "main.sqlite")
    await here.open()
    for number, text in enumerate(TEXTS):
        await here.replace(found_file(f"memory/{number}.md"), b"1", [chunk_of(text)], {}, frozenset())
    return there, here


async def test_keywords_have_the_scores_that_they_have_on_this_machine(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path
) -> None:
    """Short texts before long ones, by the same lengths."""
    there, here = await _there_and_here(connections, admin_dsn, tmp_path)
    kinds = frozenset(Kind)
    for match in ('"boiler"', '"friday"', '"tea"'):
        found = await there.read(lambda reader: reader.keywords.search(match, 10, kinds, (NO_FILTER,)))  # noqa: B023
        assert [one.r for _, one in found] == pytest.approx(
            [one.r for _, one in await ranked(here, match, 10, kinds)]
        )
    await here.close()
    connections.close()


async def test_terms_are_held_by_the_chunks_that_hold_them_on_this_machine(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path
) -> None:
    """A word in any form, and a pair of characters; they are read with what is searched for, if that is said before."""
    there, here = await _there_and_here(connections, admin_dsn, tmp_path)
    words = sorted({word for text in TEXTS for word in re.findall(r"[^\W_]+", text) if word.isascii()})
    terms = [*words[:40], "nothing", "锅炉"]

    def held(reader: ChunkReader) -> dict[str, list[str]]:
        places = reader.places(list(map(ChunkId, range(1, 200))))
        ids = np.array(sorted(places))
        found = reader.keywords.holding(terms, ids)
        return {
            term: sorted(places[one].path for one in ids[row].tolist())
            for term, row in zip(terms, found, strict=True)
        }

    def prepared(reader: ChunkReader) -> dict[str, list[str]]:
        reader.keywords.prepare('"boiler"', terms)
        reader.keywords.search('"boiler"', 10, frozenset(Kind), (NO_FILTER,))
        return held(reader)

    expected = await here.read(held)
    assert sum(map(bool, expected.values())) == min(40, len(words))
    assert await there.read(prepared) == expected
    assert await there.read(held) == expected

    def holders(reader: ChunkReader) -> dict[str, list[str]]:
        found = reader.keywords.holders_of(terms, [Kind.NOTE])
        places = reader.places([ChunkId(one) for some in found for one in some.tolist()])
        return {
            term: [places[ChunkId(one)].path for one in some.tolist()]
            for term, some in zip(terms, found, strict=True)
        }

    expected = await here.read(holders)
    assert sum(map(bool, expected.values())) == min(40, len(words))
    assert await there.read(holders) == expected
    assert not any(
        map(len, await there.read(lambda reader: reader.keywords.holders_of(terms, [Kind.SESSION])))
    )
    await here.close()
    connections.close()


async def test_a_note_is_read_as_it_was_published(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path
) -> None:
    """With its kind, which says who may see it."""
    _publish(admin_dsn, tmp_path)
    found = [
        await connections.run(lambda snapshot: find_file(snapshot, "alice/main", path))  # noqa: B023
        for path in ("memory/1.md", "memory/9.md")
    ]
    assert found == [SharedFile(Kind.NOTE, TEXTS[1]), None]
    connections.close()


async def test_a_filter_is_read_once(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a search, beside one that lets all through; what it does not let through is not found."""
    _publish(admin_dsn, tmp_path)
    trips = _trips(monkeypatch)
    index = SharedIndex(connections)
    some, none = SearchFilter(paths=("memory/[12].md",)), SearchFilter(paths=("elsewhere/*",))

    def look(reader: SharedReader) -> tuple[list[list[str]], list[int]]:
        found, counts = [], []
        for wanted in ((some,), (some, NO_FILTER), (none, some), (none,)):
            before = len(trips)
            matches = reader.keywords.search('"marchetti"', 10, [Kind.NOTE], wanted)
            places = reader.places([chunk_id for chunk_id, _ in matches])
            found.append([places[chunk_id].path for chunk_id, _ in matches])
            counts.append(len(trips) - before)
        return found, counts

    found, counts = await index.read(look)
    one, both = "memory/1.md", ["memory/1.md", "memory/0.md"]
    assert found == [[one], both, [one], []]
    assert counts[1:] == [1, 2, 0]  # the places of one more; the paths of another filter, and its chunks
    connections.close()


async def test_a_search_sees_one_state(
    connections: SharedConnections, admin_dsn: str, tmp_path: Path
) -> None:
    """What is taken out between two of its questions is there to its end, and gone in the next."""
    _publish(admin_dsn, tmp_path)
    mirror = _mirror(admin_dsn, tmp_path)
    index = SharedIndex(connections)

    def look(reader: SharedReader) -> list[str]:
        found = reader.keywords.search('"boiler"', 10, [Kind.NOTE], (NO_FILTER,))
        mirror.drop("memory/0.md")
        return [one.text for one in reader.texts([chunk_id for chunk_id, _ in found]).values()]

    assert await index.read(look) == [TEXTS[0]]
    assert await index.read(look) == []
    mirror.close()
    connections.close()


@pytest.mark.parametrize(
    ("question", "word", "more"),
    [
        ("what did Marchetti repair", "marchetti", 0),
        ("what did Marcheti repair", "marchetti", 1),  # the texts that say so are those that answer
        ("what did Juliane and Marcheti see", "juliana", 1),
        ("who repaired the condenser", "condenser", 1),  # no text has a word near it
        ("brine for the boiler", "brine", 2),  # texts have a word near it, which is no name
        ("tea", "tea", 0),
    ],
)
async def test_a_misspelt_name_is_searched_for_as_texts_there_spell_it(
    connections: SharedConnections,
    admin_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    question: str,
    word: str,
    more: int,
) -> None:
    """With so many more round trips, however many words are misspelt."""
    _publish(admin_dsn, tmp_path)
    trips = _trips(monkeypatch)
    index = SharedIndex(connections)
    await index.refresh()
    searcher = Searcher(index, AgentSettings(workspace=tmp_path), _NoProvider())
    every = frozenset(Kind)
    before = len(trips)
    await searcher.search("boiler", kinds=every, max_results=1, min_score=0.0)
    usual = len(trips) - before
    await searcher.search(question, kinds=every, max_results=1, min_score=0.0)
    assert len(trips) == before + 2 * usual + more
    _, trace = await searcher.explain(question, kinds=every, max_results=1, min_score=0.0)
    assert word in trace.terms
    connections.close()
