"""Searches one published memory on its server as an index of this machine is searched: the same candidates, facts and texts."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import AFTER_ALL_NS, ChunkId, Kind, LabelKind, SearchFilter
from memd.runtime.threads import Threads
from memd.shared.connection import (
    SharedUnavailable,
    check,
    connect,
    driver,
    errors_told,
    find_state,
    read_dsn,
)
from memd.shared.keyword_index import BUCKETS, SEGMENTS, AskedPhrases, FoundTerms
from memd.shared.publication import use_vectors, vector_binary
from memd.store.chunk_parts import ClosestPart, closest_of
from memd.store.chunks import ChunkPlace, StoredChunk, numbers_read, scripts_read, typed
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.keywords import Match, phrases_of
from memd.store.labels import paths_matching
from memd.store.postings import ChunkFacts
from memd.store.publication import TERMS_VERSION, term_reader
from memd.store.vector_matrix import Floats, Ids, MatrixBlock, Rows
from memd.text.writing_systems import ScriptShares

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

AT_ONCE = 4  # connections of one searched memory


class SharedFile(msgspec.Struct, frozen=True):
    """A note on the server."""

    kind: Kind
    content: str


class SharedMemoryState(msgspec.Struct, frozen=True):
    """What is known of a memory before it is searched."""

    tenant: int
    chunks: int
    tokens: int
    space: Space | None
    has_parts: bool


class SharedConnections:
    """A few connections to one memory, each of which one thread uses at a time; one that fails is given up."""

    def __init__(self, dsn_file: Path, memory: str, timeout_s: float) -> None:
        """Nothing is connected yet.

        Args:
            dsn_file: Where the DSN of the member stands.
            memory: Its name on the server.
            timeout_s: For which an answer is waited for.
        """
        self.memory = memory
        self._dsn_file = dsn_file
        self._timeout_s = timeout_s
        self._idle: list[psycopg.Connection[Any]] = []
        self._threads = Threads(AT_ONCE, f"memd-shared-{memory}")
        self._is_closed = False
        self.vector: type[bytes] = bytes
        self.vector_schema = ""

    async def run(self, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """What work returns, done on a thread in a transaction that only reads, and sees one state.

        Raises:
            SharedUnavailable: the server does not answer, not in time, or refuses.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._threads.run(self._work, work)
        except TimeoutError as late:
            raise SharedUnavailable(f"the server has not answered within {self._timeout_s:g} s") from late

    def _work(self, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        with self._lent() as connection, errors_told(), connection.transaction():
            connection.execute(
                "SELECT set_config('statement_timeout', %s, true)", (f"{round(1000 * self._timeout_s)}ms",)
            )
            return work(connection)

    @contextmanager
    def _lent(self) -> "Iterator[psycopg.Connection[Any]]":
        connection = self._idle.pop() if self._idle else self._made()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _made(self) -> "psycopg.Connection[Any]":
        connection = connect(read_dsn(self._dsn_file))
        try:
            state = find_state(connection)
            check(state)
            self.vector_schema = state.vector_schema
            with errors_told():
                self.vector = use_vectors(connection, state.vector_schema)
                connection.commit()
                connection.isolation_level = driver().IsolationLevel.REPEATABLE_READ
                connection.read_only = True
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Give up the connections that nobody uses; the others are given up when their work ends."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()


class SharedReader:
    """Reads chunks of one state of a memory."""

    def __init__(
        self,
        connection: "psycopg.Connection[Any]",
        index: "SharedIndex",
        before: "SharedMemoryState | None",
        now: "SharedMemoryState",
    ) -> None:
        """Read by a connection that sees one state.

        Args:
            connection: In a transaction.
            index: What is read.
            before: What was known of it when the question was embedded.
            now: How it is.
        """
        self._connection = connection
        self._index = index
        self._before = before
        self._now = now
        self._tenant = now.tenant
        self._places: dict[ChunkId, ChunkPlace] = {}
        self._allowed: dict[SearchFilter, Ids] = {}

    @contextmanager
    def side(self) -> Iterator[None]:
        """See Reader.side: after a failure a transaction is good for nothing, so all fails."""
        yield

    @property
    def keywords(self) -> "SharedReader":
        """See Reader.keywords."""
        return self

    def search(
        self, match: str, limit: int, kinds: Collection[Kind], wanted: Sequence[SearchFilter]
    ) -> list[tuple[ChunkId, Match]]:
        """See KeywordReader.search: bm25 with the numbers of this memory alone."""
        reader = term_reader()  # of this thread
        asked = AskedPhrases.of([reader.stems(phrase) for phrase in phrases_of(match) or []])
        values = {"tenant": self._tenant, "terms": asked.terms, "has_sequences": asked.has_sequences}
        segments = self._connection.execute(SEGMENTS, values).fetchall()
        buckets = self._connection.execute(BUCKETS, values, binary=True).fetchall()
        found = FoundTerms.of(asked, segments, buckets)
        average = self._now.tokens / max(1, self._now.chunks) or 1.0
        return found.best(limit, kinds, self._now.chunks, average, self.allowed(wanted, kinds))

    def allowed(self, wanted: Sequence[SearchFilter], kinds: Collection[Kind]) -> list[Ids | None]:
        """See KeywordReader.allowed."""
        return [None if one.is_empty else self._let_through(one, kinds) for one in wanted]

    def _let_through(self, one: SearchFilter, kinds: Collection[Kind]) -> Ids:
        if one not in self._allowed:
            condition, values = matching(self._connection, self._tenant, one, kinds)
            rows = self._connection.execute(f"SELECT c.id {condition} ORDER BY c.id", values).fetchall()
            self._allowed[one] = np.array([chunk_id for (chunk_id,) in rows], np.int64)
        return self._allowed[one]

    def nearest(
        self,
        known: ListedVector,  # noqa: ARG002  the server knows
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        also: Collection[ChunkId],
        among: Sequence[Ids | None],
    ) -> NearVectors | None:
        """See Reader.nearest: exact, since each vector of the memory is compared."""
        if self._before is None or self._now.space != self._before.space or self._now.space is None:
            return None
        connections = self._index.connections
        return _nearest(self._connection, connections, self._tenant, query, limit, kinds, also, among)

    def facts(self, chunk_ids: Ids) -> ChunkFacts:
        """See Reader.facts."""
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        there = (places.get(one) for one in wanted)
        return ChunkFacts.of([None if one is None else (one.kind, one.first_s, one.last_s) for one in there])

    def foreign(self, chunk_ids: Ids, question: Mapping[str, float]) -> NDArray[np.float64]:
        """See Reader.foreign."""
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        return ScriptShares.of([scripts_read(places[one].scripts) for one in wanted]).foreign_to(question)

    def places(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, ChunkPlace]:
        """See Reader.places."""
        unread = [one for one in chunk_ids if one not in self._places]
        if unread:
            rows = self._connection.execute(
                "SELECT c.id, f.path, c.kind, c.start_line, c.scripts, c.first_s, c.last_s, f.written_ns FROM memd.chunks c"
                " JOIN memd.files f ON f.tenant = c.tenant AND f.id = c.file_id WHERE c.tenant = %s AND c.id = ANY(%s)",
                (self._tenant, unread),
            ).fetchall()
            self._places |= {one.id: one for one in typed(rows, list[ChunkPlace])}
        return self._places

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
        """See Reader.texts."""
        rows = self._connection.execute(
            "SELECT c.id, f.path, c.kind, c.start_line, c.end_line, c.text, c.context, c.numbers, c.first_s, c.last_s,"
            " f.written_ns, f.superseded FROM memd.chunks c JOIN memd.files f ON f.tenant = c.tenant AND f.id = c.file_id"
            " WHERE c.tenant = %s AND c.id = ANY(%s)",
            (self._tenant, list(chunk_ids)),
        ).fetchall()
        found = [(*row[:7], numbers_read(row[7]), *row[8:]) for row in rows]
        return {chunk.id: chunk for chunk in typed(found, list[StoredChunk])}

    def newest(self, limit: int, wanted: SearchFilter, kinds: Collection[Kind]) -> list[ChunkId]:
        """See Reader.newest."""
        condition, values = matching(self._connection, self._tenant, wanted, kinds)
        rows = self._connection.execute(
            f"SELECT c.id {condition} ORDER BY coalesce(c.last_s, f.written_ns / 1000000000) DESC, c.id LIMIT %(most)s",
            values | {"most": limit},
        )
        return [ChunkId(chunk_id) for (chunk_id,) in rows]

    def closest_parts(self, chunk_ids: Sequence[ChunkId], query: Floats) -> dict[ChunkId, ClosestPart]:
        """See Reader.closest_parts."""
        rows = self._connection.execute(
            "SELECT chunk_id, first, last, vector FROM memd.parts WHERE tenant = %s AND chunk_id = ANY(%s)"
            " AND length(vector) = %s ORDER BY chunk_id, seq",
            (self._tenant, list(chunk_ids), 2 * len(query)),
            binary=True,
        ).fetchall()
        return closest_of(rows, query)


class SharedVectors:
    """The vectors of a memory, which stay on the server."""

    def __init__(self, index: "SharedIndex") -> None:
        """Those of an index."""
        self._index = index

    def current(self) -> tuple[Space, ListedVector] | None:
        """See SearchVectors.current."""
        known = self._index.known
        if known is None or known.space is None or not known.chunks:
            return None
        return known.space, ListedVector(np.empty(0, np.int64), np.empty(0, np.int8))


class SharedIndex:
    """One memory on a server, as a search sees an index."""

    def __init__(self, connections: SharedConnections) -> None:
        """Nothing is known of it before refresh.

        Args:
            connections: To its server.
        """
        self.connections = connections
        self.known: SharedMemoryState | None = None
        self.vectors = SharedVectors(self)

    async def refresh(self) -> SharedMemoryState:
        """Look how the memory is now.

        Raises:
            SharedUnavailable: it cannot be searched.
        """
        return await self.connections.run(self.look)

    def look(self, connection: "psycopg.Connection[Any]") -> SharedMemoryState:
        """The same, on a connection.

        Raises:
            SharedUnavailable: it cannot be searched.
        """
        row = connection.execute(
            "SELECT tenant, chunks, tokens, provider, model, space_key, has_parts, terms FROM memd.memories WHERE name = %s",
            (self.connections.memory,),
        ).fetchone()
        if row is None:
            raise SharedUnavailable(
                f"{self.connections.memory} is not granted to this role: an administrator runs `memd-ctl shared grant`"
            )
        tenant, chunks, tokens, provider, model, key, has_parts, terms = row
        if terms not in {None, TERMS_VERSION}:
            raise SharedUnavailable(
                f"{self.connections.memory} was published by another version of memd, whose words are not those of this one:"
                " use the same version on both machines"
            )
        space = None if provider is None else (provider, model, key)
        self.known = SharedMemoryState(tenant, chunks, tokens, space, has_parts)
        return self.known

    @property
    def space(self) -> Space | None:
        """See Index.space."""
        return None if self.known is None else self.known.space

    @property
    def has_parts(self) -> bool:
        """See Index.has_parts."""
        return self.known is not None and self.known.has_parts

    @property
    def has_vectors(self) -> bool:
        """See Index.has_vectors; one that has a model and chunks is taken to have some."""
        return self.vectors.current() is not None

    @property
    def state(self) -> int | None:
        """Nothing is kept here that a change could make wrong."""
        return None

    async def any_waits(self) -> bool:
        """See Index.any_waits."""
        return self.known is not None and self.known.chunks > 0

    async def at_rest(self, most_s: float) -> bool:  # noqa: ARG002  each look at the server sees one state
        """Look again; whether nothing is under way."""
        await self.refresh()
        return True

    async def read(self, use: "Callable[[SharedReader], T]", state: int | None = None) -> T:  # noqa: ARG002  see state
        """See Index.read.

        Raises:
            SharedUnavailable.
        """
        before = self.known

        def look(connection: "psycopg.Connection[Any]") -> T:
            return use(SharedReader(connection, self, before, self.look(connection)))

        return await self.connections.run(look)


def _nearest(
    connection: "psycopg.Connection[Any]",
    connections: SharedConnections,
    tenant: int,
    query: Floats,
    limit: int,
    kinds: Collection[Kind],
    also: Collection[ChunkId],
    among: Sequence[Ids | None],
) -> NearVectors:
    schema = '"' + connections.vector_schema.replace('"', '""') + '"'
    values: dict[str, Any] = {
        "tenant": tenant,
        "kinds": [int(kind) for kind in kinds],
        "query": connections.vector(vector_binary(query.astype("<f4").tobytes())),
        "limit": limit,
    }
    best = []
    for number, some in enumerate(among):
        if some is not None:
            values[f"among{number}"] = some.tolist()
        condition = "" if some is None else f"WHERE chunk_id = ANY(%(among{number})s)"
        best.append(
            f"(SELECT chunk_id, near FROM scanned {condition} ORDER BY near DESC, chunk_id LIMIT %(limit)s)"
        )
    rows = connection.execute(
        f"WITH scanned AS MATERIALIZED (SELECT chunk_id, -(vector OPERATOR({schema}.<#>) %(query)s) AS near"
        " FROM memd.vectors WHERE tenant = %(tenant)s AND kind = ANY(%(kinds)s))"
        f" SELECT chunk_id, near, NULL FROM ({' UNION '.join(best)}) AS best"
        " UNION ALL SELECT NULL, coalesce(avg(near), 0), count(*) FROM scanned",
        values,
    ).fetchall()
    [(_, mean, count)] = [row for row in rows if row[0] is None]
    near = sorted((-cosine, chunk_id) for chunk_id, cosine, _ in rows if chunk_id is not None)
    ids = [ChunkId(chunk_id) for _, chunk_id in near]
    stored = connection.execute(
        f"SELECT chunk_id, kind, {schema}.vector_send(vector) FROM memd.vectors WHERE tenant = %s AND chunk_id = ANY(%s)"
        " AND kind = ANY(%s) ORDER BY chunk_id",
        (tenant, sorted({*ids, *also}), values["kinds"]),
        binary=True,
    ).fetchall()
    vectors = [np.frombuffer(vector, ">f4", offset=4) for _, _, vector in stored]
    matrix = np.array(vectors, np.float32).reshape(-1, len(query))
    block = MatrixBlock(
        matrix,
        np.array([row[0] for row in stored], np.int64),
        np.array([row[1] for row in stored], np.int8),
    )
    return NearVectors(ids, Rows((block,)), (float(mean), int(count)))


def matching(
    connection: "psycopg.Connection[Any]",
    tenant: int,
    wanted: SearchFilter,
    kinds: Collection[Kind],
    names: str = "",
) -> tuple[str, dict[str, Any]]:
    """The end of a SELECT of c.id, from FROM on, of the chunks that a filter lets through, with what it binds by name.

    Args:
        connection: Tells the paths, where globs are to match them.
        tenant: The memory.
        wanted: The filter.
        kinds: Of files that may be seen at all.
        names: What the names begin with.
    """
    values: dict[str, Any] = {f"{names}tenant": tenant, f"{names}kinds": [int(kind) for kind in kinds]}
    conditions = [f"c.tenant = %({names}tenant)s", f"c.kind = ANY(%({names}kinds)s)"]
    if wanted.paths:
        rows = connection.execute("SELECT id, path FROM memd.files WHERE tenant = %s", (tenant,)).fetchall()
        values[f"{names}files"] = paths_matching(rows, wanted.paths)
        conditions.append(f"c.file_id = ANY(%({names}files)s)")
    has = (
        "EXISTS (SELECT 1 FROM memd.labels l WHERE l.tenant = c.tenant AND l.file_id = c.file_id AND l.kind ="
    )
    for number, tag in enumerate(wanted.tags):
        values |= {f"{names}tag{number}": tag, f"{names}below{number}": f"{tag}/"}
        conditions.append(
            f"{has} {int(LabelKind.TAG)} AND (l.name = %({names}tag{number})s OR starts_with(l.name, %({names}below{number})s)))"
        )
    for number, (key, value) in enumerate(wanted.properties):
        values |= {f"{names}key{number}": key, f"{names}value{number}": value}
        conditions.append(
            f"{has} {int(LabelKind.PROPERTY)} AND l.name = %({names}key{number})s AND l.value = %({names}value{number})s)"
        )
    for bound, bound_ns, column, compared in (
        (wanted.since_s, wanted.since_ns, "last_s", ">="),
        (wanted.until_s, wanted.until_ns, "first_s", "<="),
    ):
        if bound is not None:
            values |= {
                f"{names}{column}": bound,
                f"{names}{column}_ns": AFTER_ALL_NS if bound_ns is None else bound_ns,
            }
            conditions.append(
                f"CASE WHEN c.{column} IS NOT NULL THEN c.{column} {compared} %({names}{column})s"
                f" ELSE f.written_ns {compared} %({names}{column}_ns)s END"
            )
    return (
        "FROM memd.chunks c JOIN memd.files f ON f.tenant = c.tenant AND f.id = c.file_id WHERE "
        + " AND ".join(conditions),
        values,
    )


def find_file(connection: "psycopg.Connection[Any]", tenant: int, path: str) -> SharedFile | None:
    """One note; None: there is none of that path."""
    row = connection.execute(
        "SELECT kind, content FROM memd.files WHERE tenant = %s AND md5(path) = md5(%s) AND path = %s",
        (tenant, path, path),
    ).fetchone()
    return None if row is None else SharedFile(Kind(row[0]), row[1])
