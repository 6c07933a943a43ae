"""Searches one published memory on its server through the same interface as a local index."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import AFTER_ALL_NS, ChunkId, Kind, LabelKind, SearchFilter
from memd.postgres.connection import TABLES, SharedRefused, SharedUnavailable, check_tables
from memd.postgres.keyword_index import (
    BUCKETS,
    SEGMENTS,
    AskedPhrases,
    FoundTerm,
    FoundTerms,
    SegmentRow,
    bucket_values,
    found_terms,
)
from memd.postgres.nearest import PLACE, NearestQuery
from memd.postgres.packed_postings import term_id
from memd.postgres.snapshots import ServerQuery, ServerSnapshot, SharedConnections
from memd.store.chunk_parts import ClosestPart, closest_of
from memd.store.chunks import ChunkPlace, StoredChunk, numbers_read, scripts_read, typed
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.keywords import Match, phrases_of
from memd.store.labels import paths_matching
from memd.store.postings import ChunkFacts
from memd.store.published_files import TERMS_VERSION, term_reader
from memd.store.vector_matrix import Floats, Ids, places_among
from memd.text.writing_systems import ScriptShares

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")


class SharedFile(msgspec.Struct, frozen=True):
    """A note on the server."""

    kind: Kind
    content: str


class SharedMemoryState(msgspec.Struct, frozen=True):
    """The state of a memory, as read before a search."""

    tenant: int
    chunks: int
    tokens: int
    space: Space | None
    has_parts: bool
    indexed: int | None = None  # dimensions of the vectors that an index has; None: none has them


class SharedReader:
    """Reads chunks in one snapshot of a memory, with three round trips for a usual search.

    These are for the keywords; for the vectors, with the places of all candidates; and for the parts of the best, with
    their texts. A question with a word that no text holds takes one more, and where texts hold words one letter away from
    it, another one for these texts.
    """

    def __init__(self, snapshot: ServerSnapshot, index: "SharedIndex", before: "SharedMemoryState") -> None:
        """Create the reader; the first query begins the snapshot.

        Args:
            snapshot: The snapshot to read.
            index: The index of the memory.
            before: The state for which the question was embedded.
        """
        self._snapshot = snapshot
        self._index = index
        self._before = before
        self._now: SharedMemoryState | None = None
        self._places: dict[ChunkId, ChunkPlace] = {}
        self._texts: dict[ChunkId, StoredChunk] = {}
        self._allowed: dict[SearchFilter, Ids] = {}
        self._terms = term_reader()  # of this thread
        self._prepared: AskedPhrases | None = None  # of a search that follows in this snapshot
        self._segments: Sequence[SegmentRow] | None = None
        self._found: dict[int, FoundTerm] = {}

    def _ask(self, *queries: ServerQuery, is_last: bool = False) -> "list[psycopg.Cursor[Any]]":
        """Run queries in one round trip; the first one also reads the state of the memory."""
        if self._now is not None:
            return self._snapshot.ask(*queries, is_last=is_last)
        state, *found = self._snapshot.ask(self._index.state_query, *queries, is_last=is_last)
        self._now = self._index.learn(state.fetchone())
        if self._now.tenant != self._before.tenant:
            raise SharedUnavailable(f"{self._index.connections.memory} has just been made anew: search again")
        return found

    @property
    def _state(self) -> "SharedMemoryState":
        assert self._now is not None  # read by the first query
        return self._now

    @contextmanager
    def isolating_failures(self) -> Iterator[None]:
        """See IndexReader.isolating_failures; a failed statement ends the whole transaction of a server, so nothing is isolated."""
        yield

    @property
    def keywords(self) -> "SharedReader":
        """See IndexReader.keywords."""
        return self

    def prepare(self, match: str, terms: Sequence[str] = ()) -> None:
        """See KeywordReader.prepare."""
        self._prepared = AskedPhrases((*self._phrases(match).phrases, *self._single(terms).phrases))

    def search(
        self, match: str, limit: int, kinds: Collection[Kind], wanted: Sequence[SearchFilter]
    ) -> list[tuple[ChunkId, Match]]:
        """See KeywordReader.search; bm25 uses the statistics of this memory alone."""
        asked, prepared = self._phrases(match), self._prepared
        found = FoundTerms(asked, self._postings(asked.terms, prepared or asked))
        self._prepared = None
        chunks, tokens = self._state.chunks, self._state.tokens
        return found.best(limit, kinds, chunks, tokens / max(1, chunks) or 1.0, self.allowed(wanted, kinds))

    def holding(self, terms: Sequence[str], chunk_ids: Ids) -> NDArray[np.bool_]:
        """See KeywordReader.holding."""
        asked = self._single(terms)
        found = self._postings(asked.terms, asked)
        return np.stack(
            [places_among(found[term].postings.chunk_ids, chunk_ids)[1] for ((_, term),) in asked.phrases]
        )

    @property
    def chunks(self) -> int:
        """See KeywordReader.chunks; known once anything was read."""
        return self._state.chunks

    def holders_of(self, terms: Sequence[str], kinds: Collection[Kind]) -> list[Ids]:
        """See KeywordReader.holders_of."""
        asked = self._single(terms)
        found = self._postings(asked.terms, asked)
        return [found[term].of_kinds(kinds) for ((_, term),) in asked.phrases]

    def _single(self, terms: Sequence[str]) -> AskedPhrases:
        """Return words and pairs of CJK characters, each as one term."""
        return AskedPhrases.of([self._terms.stems(term) for term in terms])

    def _phrases(self, match: str) -> AskedPhrases:
        return AskedPhrases.of([self._terms.stems(phrase) for phrase in phrases_of(match) or []])

    def _postings(self, terms: Collection[int], asked: AskedPhrases) -> dict[int, FoundTerm]:
        """Return the chunks that hold each of some terms; the terms of `asked` are read in the same round trip."""
        unread = sorted({*terms, *asked.terms} - self._found.keys())
        if unread or self._segments is None:
            values = bucket_values(self._before.tenant, unread, has_sequences=asked.has_sequences)
            segments = () if self._segments is not None else (ServerQuery(SEGMENTS, values),)
            *first, buckets = self._ask(*segments, ServerQuery(BUCKETS, values, binary=True))
            if first:
                self._segments = first[0].fetchall()
            self._found |= found_terms(unread, self._segments or (), buckets.fetchall())
        return {term: self._found[term] for term in terms}

    def allowed(self, wanted: Sequence[SearchFilter], kinds: Collection[Kind]) -> list[Ids | None]:
        """See KeywordReader.allowed."""
        unread = [one for one in wanted if not one.is_empty and one not in self._allowed]
        if unread:
            queries = []
            for one in unread:
                condition, values = matching(self._snapshot, self._before.tenant, one, kinds)
                queries.append(ServerQuery(f"SELECT c.id {condition} ORDER BY c.id", values, binary=True))
            for one, rows in zip(unread, self._ask(*queries), strict=True):
                self._allowed[one] = np.array([chunk_id for (chunk_id,) in rows.fetchall()], np.int64)
        return [None if one.is_empty else self._allowed[one] for one in wanted]

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> dict[str, Sequence[ChunkId]]:
        """See KeywordReader.holders."""
        terms = list(map(term_id, self._terms.stems_of_words(words)))
        found = self._postings(terms, self._prepared or AskedPhrases(()))
        held = {word: found[term].first(kinds, most) for word, term in zip(words, terms, strict=True)}
        return {word: ids for word, ids in held.items() if ids}

    def nearest(
        self,
        known: ListedVector,  # noqa: ARG002  the server knows
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        also: Collection[ChunkId],
        among: Sequence[Ids | None],
    ) -> NearVectors | None:
        """See IndexReader.nearest."""
        asked = NearestQuery(self._before.tenant, query, limit, kinds, also, among, self._before.indexed)
        if self._now is not None and not self._is_same_space:
            return None
        *_, rows = self._ask(*asked.statements(self._index.connections.vector_schema))
        if not self._is_same_space:
            return None
        found, places = asked.read(rows.fetchall())
        self._places |= {one.id: one for one in places}
        return found

    @property
    def _is_same_space(self) -> bool:
        return self._state.space is not None and self._state.space == self._before.space

    def facts(self, chunk_ids: Ids) -> ChunkFacts:
        """See IndexReader.facts."""
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        there = (places.get(one) for one in wanted)
        return ChunkFacts.of([None if one is None else (one.kind, one.first_s, one.last_s) for one in there])

    def foreign(self, chunk_ids: Ids, question: Mapping[str, float]) -> NDArray[np.float64]:
        """See IndexReader.foreign."""
        wanted = [ChunkId(one) for one in chunk_ids.tolist()]
        places = self.places(wanted)
        self.texts(wanted)  # it is these that are read next
        return ScriptShares.of([scripts_read(places[one].scripts) for one in wanted]).foreign_to(question)

    def places(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, ChunkPlace]:
        """See IndexReader.places."""
        unread = [one for one in chunk_ids if one not in self._places]
        if unread:
            [rows] = self._ask(
                ServerQuery(
                    f"SELECT {PLACE} FROM memd.chunks c JOIN memd.files f ON f.tenant = c.tenant AND f.id = c.file_id"
                    " WHERE c.tenant = %s AND c.id = ANY(%s)",
                    (self._before.tenant, unread),
                )
            )
            self._places |= {one.id: one for one in typed(rows.fetchall(), list[ChunkPlace])}
        return self._places

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
        """See IndexReader.texts."""
        unread = [one for one in chunk_ids if one not in self._texts]
        if unread:
            [rows] = self._ask(self._texts_query(unread), is_last=self._prepared is None)
            self._keep_texts(rows)
        return {one: self._texts[one] for one in chunk_ids if one in self._texts}

    def _texts_query(self, chunk_ids: Sequence[ChunkId]) -> ServerQuery:
        return ServerQuery(
            "SELECT c.id, f.path, c.kind, c.start_line, c.end_line, c.text, c.context, c.numbers, c.first_s, c.last_s,"
            " f.written_ns, f.superseded FROM memd.chunks c JOIN memd.files f ON f.tenant = c.tenant AND f.id = c.file_id"
            " WHERE c.tenant = %s AND c.id = ANY(%s)",
            (self._before.tenant, list(chunk_ids)),
        )

    def _keep_texts(self, rows: "psycopg.Cursor[Any]") -> None:
        found = [(*row[:7], numbers_read(row[7]), *row[8:]) for row in rows.fetchall()]
        self._texts |= {chunk.id: chunk for chunk in typed(found, list[StoredChunk])}

    def closest_parts(self, chunk_ids: Sequence[ChunkId], query: Floats) -> dict[ChunkId, ClosestPart]:
        """See IndexReader.closest_parts."""
        parts, texts = self._ask(
            ServerQuery(
                "SELECT chunk_id, first, last, vector FROM memd.parts WHERE tenant = %s AND chunk_id = ANY(%s)"
                " AND length(vector) = %s ORDER BY chunk_id, seq",
                (self._before.tenant, list(chunk_ids), 2 * len(query)),
                binary=True,
            ),
            self._texts_query(chunk_ids),
            is_last=True,
        )
        self._keep_texts(texts)
        return closest_of(parts.fetchall(), query)

    def newest(self, limit: int, wanted: SearchFilter, kinds: Collection[Kind]) -> list[ChunkId]:
        """See IndexReader.newest."""
        condition, values = matching(self._snapshot, self._before.tenant, wanted, kinds)
        rows = self._snapshot.execute(
            f"SELECT c.id {condition} ORDER BY coalesce(c.last_s, f.written_ns / 1000000000) DESC, c.id LIMIT %(most)s",
            values | {"most": limit},
        )
        return [ChunkId(chunk_id) for (chunk_id,) in rows]


class SharedVectors:
    """The vectors of a memory, which stay on the server."""

    def __init__(self, index: "SharedIndex") -> None:
        """Create the view of an index's vectors."""
        self._index = index

    def current(self) -> tuple[Space, ListedVector] | None:
        """See SearchVectors.current."""
        known = self._index.known
        if known is None or known.space is None or not known.chunks:
            return None
        return known.space, ListedVector(np.empty(0, np.int64), np.empty(0, np.int8))


class SharedIndex:
    """A memory on a server, with the interface that a search expects of an index."""

    def __init__(self, connections: SharedConnections) -> None:
        """Create the index; `refresh` reads the state of the memory.

        Args:
            connections: The connections to the memory's server.
        """
        self.connections = connections
        self.known: SharedMemoryState | None = None
        self.vectors = SharedVectors(self)

    async def refresh(self) -> SharedMemoryState:
        """Return the known state if it has vectors, else read the current one; `read` checks it again in its snapshot.

        Raises:
            SharedUnavailable: it cannot be searched.
        """
        return self.known if self.known is not None and self.has_vectors else await self.look()

    async def look(self) -> SharedMemoryState:
        """Read the current state of the memory.

        Raises:
            SharedUnavailable: it cannot be searched.
        """
        return await self.connections.run(
            lambda snapshot: self.learn(snapshot.ask(self.state_query, is_last=True)[0].fetchone())
        )

    @property
    def state_query(self) -> ServerQuery:
        """The query for the state of the memory; see `learn`."""
        return ServerQuery(
            "SELECT tenant, chunks, tokens, provider, model, space_key, has_parts, terms,"
            " (SELECT min(i.dimensions) FROM memd.vector_indexes i WHERE i.tenant = memories.tenant"
            f"  AND i.dimensions = memories.dimensions), {TABLES} FROM memd.memories WHERE name = %s",
            (self.connections.memory,),
        )

    def learn(self, row: tuple[Any, ...] | None) -> SharedMemoryState:
        """Store and return the state, given the row that state_query returned.

        Raises:
            SharedUnavailable: it cannot be searched.
        """
        if row is None:
            self.known = None
            raise not_granted(self.connections.memory)
        tenant, chunks, tokens, provider, model, key, has_parts, terms, indexed, *tables = row
        check_tables(*tables)
        if terms not in {None, TERMS_VERSION}:
            raise SharedRefused(
                f"{self.connections.memory} was published by another version of memd, whose words are not those of this one:"
                " use the same version on both machines"
            )
        space = None if provider is None else (provider, model, key)
        self.known = SharedMemoryState(tenant, chunks, tokens, space, has_parts, indexed)
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
        """Return None: nothing read here is reused by a later search, so no change can make it outdated."""
        return None

    async def any_waits(self) -> bool:
        """See Index.any_waits."""
        return self.known is not None and self.known.chunks > 0

    async def at_rest(self, most_s: float) -> bool:  # noqa: ARG002  each look at the server sees one state
        """Read the state again, and return True: a snapshot never shows a change halfway."""
        await self.look()
        return True

    async def read(self, use: "Callable[[SharedReader], T]", state: int | None = None) -> T:  # noqa: ARG002  see state
        """See Index.read.

        Raises:
            SharedUnavailable.
        """
        before = await self.refresh()
        return await self.connections.run(lambda snapshot: use(SharedReader(snapshot, self, before)))


def not_granted(memory: str) -> SharedRefused:
    """Create the error for a role that may not read a memory."""
    return SharedRefused(
        f"{memory} is not granted to this role: an administrator runs `memd-ctl shared grant`"
    )


def matching(
    snapshot: ServerSnapshot,
    tenant: int,
    wanted: SearchFilter,
    kinds: Collection[Kind],
    names: str = "",
) -> tuple[str, dict[str, Any]]:
    """Return the SQL from FROM on that selects the chunks which pass a filter, and its bound values by name.

    Args:
        snapshot: Used to read the paths, if the filter has globs.
        tenant: The id of the memory.
        wanted: The filter.
        kinds: The visible kinds of files.
        names: A prefix of all names, so that several filters fit into one statement.
    """
    values: dict[str, Any] = {f"{names}tenant": tenant, f"{names}kinds": [int(kind) for kind in kinds]}
    conditions = [f"c.tenant = %({names}tenant)s", f"c.kind = ANY(%({names}kinds)s)"]
    if wanted.paths:
        rows = snapshot.execute(
            "SELECT id, path FROM memd.files WHERE tenant = %s AND kind = ANY(%s)",
            (tenant, [int(kind) for kind in kinds]),
        ).fetchall()
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


def find_file(snapshot: ServerSnapshot, memory: str, path: str) -> SharedFile | None:
    """Return a note of a memory; None: there is no note of this path.

    Raises:
        SharedRefused: the memory is not granted, or the tables are of a newer memd.
    """
    known, found = snapshot.ask(
        ServerQuery(f"SELECT {TABLES} FROM memd.memories WHERE name = %s", (memory,)),
        ServerQuery(
            "SELECT f.kind, f.content FROM memd.files f JOIN memd.memories m ON m.tenant = f.tenant"
            " WHERE m.name = %s AND md5(f.path) = md5(%s) AND f.path = %s",
            (memory, path, path),
        ),
        is_last=True,
    )
    tables = known.fetchone()
    if tables is None:
        raise not_granted(memory)
    check_tables(*tables)
    row = found.fetchone()
    return None if row is None else SharedFile(Kind(row[0]), row[1])
