"""The nearest vectors of a large memory come from an index of its own, within its policies, and are nearly all that are nearest."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from memd.domain_types import ChunkId, Kind
from memd.postgres import administration
from memd.postgres.binary_vectors import use_vectors, vector_binary
from memd.postgres.connection import connect
from memd.postgres.nearest import NearestQuery
from memd.store.disk_vectors import NearVectors
from memd.store.vector_matrix import Floats
from tests.bounds import shipped
from tests.postgres.conftest import member

DIMENSIONS, MANY = 24, 4_000


class _Large:
    """A memory of many vectors, and another one."""

    def __init__(self, admin_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(administration, "MOST_COMPARED", MANY - 1)
        self.dsn = member(admin_dsn, "alice", "alice/main")
        member(admin_dsn, "mallory", "mallory/main")
        self.random = np.random.default_rng(3)
        vectors = self.random.standard_normal((2 * MANY, DIMENSIONS))
        self.vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        with psycopg.connect(admin_dsn) as connection:
            for number, (name, of_kind) in enumerate((("alice/main", 0), ("mallory/main", 0))):
                some = self.vectors[number * MANY : (number + 1) * MANY]
                connection.execute(
                    "UPDATE memd.memories SET chunks = %s, dimensions = %s WHERE name = %s",
                    (MANY - number, DIMENSIONS, name),
                )
                values = {
                    "name": name,
                    "kind": of_kind,
                    "last": MANY,
                    "texts": [str(one.tolist()) for one in some],
                }
                tenant = "(SELECT tenant FROM memd.memories WHERE name = %(name)s)"
                connection.execute(
                    f"INSERT INTO memd.files VALUES ({tenant}, 0, 'a.md', %(kind)s, 0, NULL, '', '')", values
                )
                connection.execute(
                    "INSERT INTO memd.chunks (tenant, id, file_id, kind, start_line, end_line, text, context, hash, tokens)"
                    f" SELECT {tenant}, n, 0, %(kind)s, 1, 1, '', '', '', 1 FROM generate_series(1, %(last)s) AS n",
                    values,
                )
                connection.execute(
                    f"INSERT INTO memd.vectors SELECT {tenant}, n, %(kind)s, one::memd.vector"
                    " FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS each (one, n)",
                    values,
                )
            row = connection.execute("SELECT tenant FROM memd.memories WHERE name = 'alice/main'").fetchone()
            assert row is not None
            self.tenant: int = row[0]
        with connect(admin_dsn) as connection:
            self.steps = [step.what for step in administration.carry_out(connection)]
            self.steps_again = administration.carry_out(connection)
        with psycopg.connect(admin_dsn, autocommit=True) as connection:
            connection.execute("ANALYZE memd.vectors")

    def near(
        self,
        query: Floats,
        indexed: int | None,
        *,
        among: list[int] | None = None,
        kinds: Sequence[Kind] = (Kind.NOTE,),
    ) -> tuple[NearVectors, str]:
        """What a member finds, and how its server looks for it."""
        with psycopg.connect(self.dsn) as connection:
            use_vectors(connection, "memd")
            row = connection.execute("SELECT tenant FROM memd.memories").fetchone()
            assert row is not None
            some = None if among is None else np.array(among, np.int64)
            asked = NearestQuery(row[0], query, 20, kinds, [ChunkId(7)], [some], indexed)
            *settings, statement = asked.statements("memd")
            for one in settings:
                connection.execute(one.sql)
            plan = connection.execute("EXPLAIN ANALYZE " + statement.sql, statement.values).fetchall()
            rows: list[tuple[Any, ...]] = connection.execute(
                statement.sql, statement.values, binary=True
            ).fetchall()
        return asked.read(rows)[0], "\n".join(line for (line,) in plan)

    def queries(self) -> Iterator[Floats]:
        """Some questions."""
        for one in self.random.standard_normal((20, DIMENSIONS)).astype(np.float32):
            yield one / np.linalg.norm(one)


@pytest.fixture
def large(admin_dsn: str, monkeypatch: pytest.MonkeyPatch) -> _Large:
    """Its index is made."""
    return _Large(admin_dsn, monkeypatch)


@pytest.mark.long
def test_an_administrator_makes_the_index_of_a_large_memory(large: _Large) -> None:
    """Once, and of no smaller one."""
    assert large.steps == [
        "index the vectors of alice/main, some 4,000, which takes a while",
        "note the mean of the vectors of alice/main",
    ]
    assert large.steps_again == []


def test_which_memories_get_an_index(admin_dsn: str) -> None:
    """Those of more vectors than are compared one by one, if an index takes vectors of so many dimensions."""
    member(admin_dsn, "alice", "alice/main")
    most = (
        shipped("memd.postgres.nearest.MOST_COMPARED"),
        shipped("memd.postgres.administration._MOST_DIMENSIONS"),
    )
    assert most == (50_000, 2_000)
    with connect(admin_dsn) as connection:
        for chunks, dimensions, steps in ((0, 0, 2), (-1, 0, 0), (0, 1, 0)):
            connection.execute(
                "UPDATE memd.memories SET chunks = %s, dimensions = %s",
                (most[0] + 1 + chunks, most[1] + dimensions),
            )
            assert len(administration.plan(connection)) == steps
        connection.rollback()


def test_the_index_is_used_by_a_member_and_finds_nearly_all(large: _Large) -> None:
    """With the vectors of what was found and of what was asked for besides, and with the mean of all."""
    found = 0
    for query in large.queries():
        exact, compared = large.near(query, None)
        near, plan = large.near(query, DIMENSIONS)
        by_index = f"using vectors_{large.tenant}_{DIMENSIONS} "
        assert (by_index in plan, by_index in compared) == (True, False)
        found += len({*exact.chunk_ids} & {*near.chunk_ids})
        assert near.mean_cosine == pytest.approx(exact.mean_cosine, abs=1e-5)
        cosines = large.vectors[:MANY] @ query
        assert exact.chunk_ids == (np.argsort(-cosines)[:20] + 1).tolist()
    assert found >= 0.95 * 20 * 20


@pytest.mark.long
def test_what_a_filter_lets_through_is_compared_one_by_one(large: _Large) -> None:
    """The nearest of them are found, however far they are."""
    for query in large.queries():
        cosines = large.vectors[:MANY] @ query
        farthest = sorted((np.argsort(cosines)[:50] + 1).tolist())
        near, _ = large.near(query, DIMENSIONS, among=farthest)
        assert near.chunk_ids == (np.argsort(cosines)[:50][::-1][:20] + 1).tolist()


def test_the_only_vector_of_a_memory_is_the_nearest(admin_dsn: str) -> None:
    """And their mean."""
    dsn = member(admin_dsn, "alice", "alice/main")
    with psycopg.connect(dsn) as connection:
        use_vectors(connection, "memd")
        row = connection.execute("SELECT tenant FROM memd.memories").fetchone()
        assert row is not None
        for insert in (
            "files VALUES (%s, 0, 'a.md', 0, 0, NULL, '', '')",
            "chunks VALUES (%s, 5, 0, 0, 1, 1, '', '', '', NULL, NULL, NULL, NULL, 1)",
            "vectors VALUES (%s, 5, 0, '[0.6, 0.8, 0]'::memd.vector)",
        ):
            connection.execute(f"INSERT INTO memd.{insert}", row)
        query = np.array([1, 0, 0], np.float32)
        asked = NearestQuery(row[0], query, 20, (Kind.NOTE,), [], [None], None)
        [statement] = asked.statements("memd")
        near, _ = asked.read(connection.execute(statement.sql, statement.values, binary=True).fetchall())
    assert near.chunk_ids == [5]
    mean, count = near.mean_cosine
    assert (round(mean, 3), count) == (0.6, 1)


def test_each_connection_sends_vectors(admin_dsn: str) -> None:
    """Also when another one has been made since."""
    dsn = member(admin_dsn, "alice", "alice/main")
    with psycopg.connect(dsn) as one, psycopg.connect(dsn) as other:
        for connection in (one, other):
            use_vectors(connection, "memd")
        sent = vector_binary(np.array([3, 4], "<f4").tobytes())
        for connection in (one, other):
            assert connection.execute("SELECT memd.vector_norm(%s)", (sent,)).fetchone() == (5.0,)


def _segments(admin_dsn: str, tenant: int, sessions: Sequence[int]) -> None:
    """Have some chunks be of transcripts, and say so as the keyword index does."""
    with psycopg.connect(admin_dsn) as connection:
        connection.execute(
            "UPDATE memd.vectors SET kind = %s WHERE tenant = %s AND chunk_id = ANY(%s)",
            (int(Kind.SESSION), tenant, list(sessions)),
        )
        for kind, first, chunks in (
            (Kind.NOTE, 1, MANY - len(sessions)),
            *((Kind.SESSION, one, 1) for one in sessions),
        ):
            connection.execute(
                "INSERT INTO memd.segments (tenant, kind, first, last, bits, chunks) VALUES (%s, %s, %s, %s, 0, %s)",
                (tenant, int(kind), first, MANY if kind is Kind.NOTE else first, chunks),
            )


@pytest.mark.parametrize("sessions", [pytest.param([], marks=pytest.mark.long), [3, 1000, 2000, 3999]])
def test_a_source_with_few_vectors_is_not_looked_for_in_the_index(
    large: _Large, admin_dsn: str, sessions: list[int]
) -> None:
    """Whose vectors are nearly all of others: it would be gone through to its end, and some of the few would be missed."""
    _segments(admin_dsn, large.tenant, sessions)
    query = next(large.queries())
    near, plan = large.near(query, DIMENSIONS, kinds=[Kind.NOTE, Kind.SESSION])
    found = [one for one in near.chunk_ids if one in sessions]
    assert found == sorted(sessions, key=lambda one: -float(large.vectors[one - 1] @ query))
    assert len(near.chunk_ids) == 20 + len(sessions)
    by_index = [line for line in plan.splitlines() if f"using vectors_{large.tenant}_{DIMENSIONS} " in line]
    assert [("never executed" in line) for line in by_index] == [False, True]
