"""Which texts a publisher asks its server for, and how often, without a server: what it would answer is in a dict."""

from collections.abc import AsyncIterator, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from memd.agent.published_vectors import LEFT_ALONE_S, ServerVectors
from memd.config.settings import Publish
from memd.domain_types import Kind
from memd.postgres.connection import SharedUnavailable
from memd.postgres.snapshots import SharedConnections
from memd.postgres.vectors_by_text import StoredVectors
from memd.store import published_files
from memd.store.embedding_cache import Space
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.backends.qmd.bench import Bench, indexing
from tests.bounds import shipped

SPACE: Space = ("hashing", "words-and-pairs", "1")
VECTOR = np.array([1, 0, 0, 0], "<f4").tobytes()


class FakeSnapshot:
    """Has vectors of all texts, or fails."""

    def __init__(self) -> None:
        self.asked: list[set[bytes]] = []
        self.trouble: str | None = None
        self.is_other_model = False
        self.parts: dict[tuple[bytes, int, int], bytes] = {}

    def vectors(self, hashes: Collection[bytes]) -> StoredVectors | None:
        self.asked.append(set(hashes))
        if self.trouble is not None:
            raise SharedUnavailable(self.trouble)
        return None if self.is_other_model else StoredVectors(dict.fromkeys(hashes, VECTOR), self.parts)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> FakeSnapshot:
    """The server."""
    made = FakeSnapshot()

    async def run(_: SharedConnections, work: object) -> object:
        assert callable(work)
        return work(made)

    monkeypatch.setattr("memd.postgres.snapshots.SharedConnections.run", run)
    monkeypatch.setattr(
        "memd.agent.published_vectors.stored_vectors",
        lambda snapshot, _memory, _space, hashes, _schema: snapshot.vectors(hashes),
    )
    monkeypatch.setattr(
        "tests.backends.qmd.bench.FINGERPRINT",
        Fingerprint("c1", "t1", ("memory",), *SPACE, 4),
    )
    return made


@pytest.fixture
async def bench(tmp_path: Path, there: FakeSnapshot) -> AsyncIterator[Bench]:
    """An index of five notes and of MEMORY.md."""
    assert not there.asked
    async with indexing(tmp_path, "qmd") as made:
        made.write("MEMORY.md", "Alice's own.\n")
        for number in range(5):
            made.write(f"memory/{number}.md", f"Note {number}.\n")
        await made.settle()
        yield made


class Clock:
    """Stands still."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def _vectors(clock: Clock) -> ServerVectors:
    return ServerVectors("main", Publish(to="team", memory="alice/main", dsn_file="/nowhere"), clock)


async def _all(vectors: ServerVectors, bench: Bench) -> int:
    """Ask until nothing is left; how many were found."""
    count = 0
    while (found := await vectors.next_found(bench.index, SPACE)) is not None:
        count += await bench.index.add_vectors(found, SPACE)
    return count


async def test_each_published_text_is_asked_for_once(
    bench: Bench, there: FakeSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few at a time; the owner's own file, which is published nowhere, is not named there even by its hash."""
    monkeypatch.setattr("memd.agent.published_vectors.AT_ONCE", 2)
    vectors = _vectors(Clock())
    assert await _all(vectors, bench) == vectors.taken == 5
    assert [len(one) for one in there.asked] == [2, 2, 1]
    [own] = await bench.index.waiting(10)
    assert "Alice's own" in own.text
    assert own.hash not in set().union(*there.asked)
    assert await _all(vectors, bench) == 0
    assert len(there.asked) == 3
    bench.write("memory/new.md", "A new note.\n")
    await bench.settle()
    assert await _all(vectors, bench) == 1
    assert [len(one) for one in there.asked[3:]] == [1]


async def test_parts_have_those_vectors_that_are_there(
    tmp_path: Path, there: FakeSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are embedded here."""
    monkeypatch.setattr(
        "tests.backends.qmd.bench.FINGERPRINT", Fingerprint("c1", "t1", ("memory",), *SPACE, 4, parts=True)
    )
    async with indexing(tmp_path, "qmd") as made:
        made.write(
            "memory/a.md", "\n".join(f"Line {number} of a long note about the mill." for number in range(40))
        )
        await made.settle()
        chunks, _ = await made.index.database.read(
            published_files.lacking, 0, 10, {Kind.NOTE}, with_parts=True
        )
        expected: list[tuple[int, bytes, bytes]] = [(one.id, one.hash, VECTOR) for one in chunks]
        for one in chunks:
            _, *others = one.parts
            assert others
            expected += [(part.id, part.hash, np.array([0, 1, 0, 0], "<f4").tobytes()) for part in others]
            there.parts |= {
                (one.hash, part.first, part.last): np.array([0, 1, 0, 0], "<f2").tobytes() for part in others
            }
        found = await _vectors(Clock()).next_found(made.index, SPACE)
        assert found is not None
        assert sorted(found) == sorted(expected)


async def test_with_another_model_all_texts_are_asked_for_again(tmp_path: Path, there: FakeSnapshot) -> None:
    """From the first chunk on."""
    async with indexing(tmp_path, "qmd") as made:
        made.write("memory/a.md", "The only note.\n")
        await made.settle()
        [only] = await made.index.waiting(10)
        assert only.id == 1
        vectors = _vectors(Clock())
        other = Fingerprint("c1", "t1", ("memory",), "hashing", "words-and-pairs", "2", 4)
        for space in (SPACE, other.space):
            assert space is not None
            found = await vectors.next_found(made.index, space)
            assert found is not None
            assert [one for one, *_ in found] == [1]
            assert await vectors.next_found(made.index, space) is None
            await made.index.adopt(other)
    assert there.asked == [{only.hash}] * 2


@pytest.mark.parametrize("is_other_model", [False, True])
async def test_a_server_that_cannot_tell_is_left_alone_for_a_while(
    bench: Bench, there: FakeSnapshot, *, is_other_model: bool
) -> None:
    """And then asked for what it was not asked for; nothing fails."""
    clock = Clock()
    vectors = _vectors(clock)
    there.is_other_model = is_other_model
    there.trouble = None if is_other_model else "it is away"
    for _ in range(3):
        assert await _all(vectors, bench) == 0
    assert len(there.asked) == 1
    there.is_other_model, there.trouble = False, None
    clock.now += LEFT_ALONE_S - 1
    assert await _all(vectors, bench) == 0
    clock.now += 1
    assert await _all(vectors, bench) == 5


async def test_its_connections_end_with_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those to the server that it asks."""
    closed: list[SharedConnections] = []

    def close(connections: SharedConnections) -> None:
        closed.append(connections)

    monkeypatch.setattr(SharedConnections, "close", close)
    vectors = _vectors(Clock())
    assert await _all(vectors, bench) == 5
    assert not closed
    vectors.close()
    assert len(closed) == 1


async def test_what_is_wanted_anew_is_not_asked_for(bench: Bench, there: FakeSnapshot) -> None:
    """By a forced reindex."""
    vectors = _vectors(Clock())
    vectors.leave_out()
    assert await _all(vectors, bench) == 0
    assert there.asked == []


async def test_vectors_of_another_space_than_the_index_has_are_not_asked_for(
    bench: Bench, there: FakeSnapshot
) -> None:
    """They would have no place."""
    assert await _vectors(Clock()).next_found(bench.index, ("another", "model", "1")) is None
    assert there.asked == []


async def test_what_is_lacking_is_asked_for_some_at_a_time() -> None:
    """Of many chunks no more are read from the index; a server is left alone for a minute."""
    limits: list[int] = []

    async def read(_: object, __: int, limit: int, *___: object, **____: object) -> tuple[list[object], int]:
        limits.append(limit)
        return [], 0

    async def fingerprint() -> Fingerprint:
        return Fingerprint("c1", "t1", ("memory",), *SPACE, 4)

    index = SimpleNamespace(fingerprint=fingerprint, database=SimpleNamespace(read=read))
    assert await _vectors(Clock()).next_found(cast(Index, index), SPACE) is None
    assert limits == [shipped("memd.agent.published_vectors.AT_ONCE")]
    assert LEFT_ALONE_S == 60


def test_embedding_waits_for_a_server_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction of a publisher may take longer."""
    timeouts_s: list[float] = []
    monkeypatch.setattr(
        "memd.agent.published_vectors.SharedConnections",
        lambda _file, _memory, timeout_s: timeouts_s.append(timeout_s),
    )
    _vectors(Clock())
    assert timeouts_s == [shipped("memd.agent.published_vectors.TIMEOUT_S")]
