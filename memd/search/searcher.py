"""A question to hits: both sides asked at once, put together, and cut down to what answers."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from memd.config.settings import WORTH_READING, AgentSettings
from memd.domain_types import (
    AFTER_ALL_NS,
    NO_FILTER,
    ChunkId,
    DegradedPart,
    FoundHit,
    Kind,
    SearchFilter,
    Source,
    Trace,
)
from memd.errors import TransientError
from memd.providers.provider import Calibration, Vector
from memd.runtime.profiling import spent
from memd.runtime.threads import Threads
from memd.runtime.timing import wall_s, zone_of
from memd.search import query, rank
from memd.search.fuse import (
    POOL,
    Dated,
    FusionWeights,
    Scored,
    Support,
    background,
    best,
    fuse,
    later_first,
    place_in_order,
    support,
)
from memd.search.fuse import ScoredCandidate as Found
from memd.search.query import Query
from memd.search.rank import Verdict
from memd.search.trace import SideResults, TracedSearch, traced
from memd.store import vector_matrix
from memd.store.chunk_parts import ClosestPart
from memd.store.chunks import ChunkPlace, StoredChunk, scripts_read
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.index import Index, Reader
from memd.store.keywords import Match
from memd.store.search_vectors import REST_S
from memd.store.vector_matrix import Ids, Rows
from memd.text.writing_systems import foreign, scripts

CANDIDATES = 200  # a side, of each source
MAX_RESULTS = 50
BATCH = 16  # candidates whose text is read at once
ATTEMPTS = 3  # at a search that the index changes under
# Candidates, the best by all else, whose parts and scripts are read: 10 µs each, most of it reading.
EXAMINED = 100
STRONGEST = 30  # of them, one of which is the strongest
SPACES = 3  # whose vectors a search asks for, while one index takes the place of another

T = TypeVar("T")


class QueryEmbedder(Protocol):
    """Embeds questions for the vectors of an agent's index."""

    @property
    def provider_name(self) -> str:
        """Of the provider that is used for what is written now."""
        ...

    @property
    def model_name(self) -> str:
        """Of its model."""
        ...

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """The vector of a question among those of a space, with the calibration of its model; or why there is none.

        It takes a bounded time.
        """
        ...

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """Why no provider embeds questions for the vectors of a space; None: one does, or none is to.

        Args:
            space: Of the vectors in the index; None: it has none.
        """
        ...


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The hits for a question, and what they were found with."""

    hits: tuple[FoundHit, ...]
    mode: str  # hybrid | keyword | vector
    degraded: tuple[DegradedPart, ...]
    keyword_trouble: str | None  # the keyword index is broken
    vector_trouble: str | None  # the vectors on disk are
    provider: str  # whose vectors took part; where none did, whose are wanted
    model: str
    space: Space | None  # of the vectors that took part


class _Asked(msgspec.Struct, frozen=True):
    """What is asked of an index."""

    query: Query
    kinds: frozenset[Kind]  # nothing else takes part
    min_score: float = 0.0
    wanted: SearchFilter = NO_FILTER  # nor anything that it does not let through
    by_time: bool = False  # the newest hit first

    @property
    def among(self) -> tuple[SearchFilter, ...]:
        """All that takes part, and of it what is of each time that the question names: the best of each is looked for."""
        of_times = (_within(self.wanted, *time.as_seconds) for time in self.query.times)
        return (self.wanted, *of_times)


def _within(wanted: SearchFilter, first_s: int, last_s: int) -> SearchFilter:
    """What a filter lets through of a time; when a file was written is no sign of what it is about."""
    since_s, until_s = wanted.since_s, wanted.until_s
    return msgspec.structs.replace(
        wanted,
        since_s=first_s if since_s is None else max(since_s, first_s),
        until_s=last_s if until_s is None else min(until_s, last_s),
        since_ns=AFTER_ALL_NS,
        until_ns=AFTER_ALL_NS,
    )


class _KeywordResults(msgspec.Struct, frozen=True):
    matches: dict[ChunkId, Match]  # best first
    damage: str | None = None  # of the keyword index
    failure: TransientError | None = None  # it cannot be read just now
    is_whole: bool = True  # False: the index has changed before they were put together with the rest

    @property
    def trouble(self) -> str | None:
        """Why there are no matches."""
        return self.damage if self.failure is None else str(self.failure)


class _EmbeddedQuestion(msgspec.Struct, frozen=True):
    """A question as one model has it."""

    vector: Vector
    calibration: Calibration  # of that model


class _VectorResults(msgspec.Struct, frozen=True):
    """What the vectors of an index gave for a question that the same model embedded."""

    space: Space
    question: _EmbeddedQuestion
    rows: Rows
    near: tuple[ChunkId, ...]  # nearest first
    subtracted: float  # from every cosine, see fuse.background


class _NoVectorResults(msgspec.Struct, frozen=True):
    """Why a search goes by keywords alone; both None: there is nothing to compare."""

    trouble: DegradedPart | None = None
    damage: str | None = None  # of the vectors on disk


class _QuestionEmbeddings:
    """The vectors of one question: each model embeds it once, when vectors of its space are searched."""

    def __init__(self, embedder: QueryEmbedder, text: str) -> None:
        self._embedder = embedder
        self._text = text
        self._asked: dict[Space, asyncio.Task[_EmbeddedQuestion | DegradedPart]] = {}

    async def embedded(self, space: Space) -> _EmbeddedQuestion | DegradedPart:
        """The question as the model of a space has it, if that is there in time."""
        if space not in self._asked:
            self._asked[space] = asyncio.create_task(self._ask(space))
        return await self._asked[space]

    def close(self) -> None:
        """Cancel the embeddings that are still awaited."""
        for asked in self._asked.values():
            asked.cancel()

    async def _ask(self, space: Space) -> _EmbeddedQuestion | DegradedPart:
        with spent("question's vector"):
            embedded = await self._embedder.embed_query(self._text, space)
        return embedded if isinstance(embedded, DegradedPart) else _EmbeddedQuestion(*embedded)


class Searcher:
    """Searches one agent's index."""

    def __init__(
        self, index: Index, settings: AgentSettings, embedder: QueryEmbedder, computing: Threads
    ) -> None:
        """Search one index by the settings of its agent.

        Args:
            index: What to search.
            settings: Of the agent.
            embedder: Embeds questions.
            computing: Threads for computations without I/O, shared by all agents.
        """
        self._index = index
        self._settings = settings
        self._embedder = embedder
        hybrid = settings.query.hybrid
        self._weights = FusionWeights(hybrid.vector_weight, hybrid.text_weight)
        # One number for every search: were it to grow with max_results, a larger max_results would reorder the hits.
        self._candidates = max(CANDIDATES, MAX_RESULTS * hybrid.candidate_multiplier)
        self._computing = computing

    async def search(
        self,
        text: str,
        *,
        kinds: frozenset[Kind],
        max_results: int,
        min_score: float,
        now: datetime | None = None,
        mode: str = "hybrid",
        wanted: SearchFilter = NO_FILTER,
        by_time: bool = False,
    ) -> Searched:
        """Find what answers a question.

        No side fails the search: the other answers, and what is missing is named. Only where keywords cannot be looked
        for just now and there are no vectors either, the search fails.

        Args:
            text: The question.
            kinds: What may be seen; nothing else takes part.
            max_results: How many hits at most. A larger number only appends to the hits of a smaller one.
            min_score: 0..1, the least score of a hit.
            now: What clocks on the wall show when it is asked; None: nobody knows.
            mode: hybrid, or keyword or vector: by that side alone.
            wanted: What it lets through takes part, and nothing else.
            by_time: The newest hit first; where none has the least score, the newest of all.

        Raises:
            TransientError: the index cannot be read just now.
        """
        parsed = query.restricted(query.parse(text, now), mode)
        asked = _Asked(parsed, kinds, min_score, wanted, by_time=by_time)

        def first(verdicts: Iterator[Verdict], _: SideResults, __: Calibration | None) -> list[FoundHit]:
            return list(islice((verdict.hit for verdict in verdicts if verdict.hit is not None), max_results))

        keywords, vectors, hits = await self._ask(asked, first, with_cut=False)
        found = self._searched(keywords, vectors, hits)
        return (
            msgspec.structs.replace(found, mode=mode) if (mode, found.mode) == ("vector", "hybrid") else found
        )

    async def warm(self) -> str | None:
        """Read the keyword index, as the first search would; what is wrong with it, or None.

        Raises:
            TransientError: it cannot be read just now.
        """
        keywords = await self._keyword_results(_Asked(query.parse("memory"), frozenset(Kind)))
        if keywords.failure is not None:
            raise keywords.failure
        return keywords.damage

    async def explain(
        self,
        text: str,
        *,
        kinds: frozenset[Kind],
        max_results: int,
        min_score: float,
        now: datetime | None = None,
        wanted: SearchFilter = NO_FILTER,
        by_time: bool = False,
    ) -> tuple[Searched, Trace]:
        """The same, and how each of the first candidates came to its place."""
        asked = _Asked(query.parse(text, now), kinds, min_score, wanted, by_time=by_time)

        def explained(
            verdicts: Iterator[Verdict], sides: SideResults, calibration: Calibration | None
        ) -> tuple[list[FoundHit], Trace]:
            search = TracedSearch(text, asked.query, self._weights, calibration, min_score, max_results)
            return traced(verdicts, sides, search)

        keywords, vectors, (hits, trace) = await self._ask(asked, explained, with_cut=True)
        return self._searched(keywords, vectors, hits), trace

    async def _ask(
        self,
        asked: _Asked,
        use: Callable[[Iterator[Verdict], SideResults, Calibration | None], T],
        *,
        with_cut: bool,
    ) -> tuple[_KeywordResults, _VectorResults | _NoVectorResults, T]:
        """Ask both sides at once, then give the verdicts about their candidates, the best first, to use.

        Those that min_score is sure to cut are among them only where somebody wants to hear of them.
        """
        embeddings = _QuestionEmbeddings(self._embedder, asked.query.embed_text)
        try:
            is_at_rest = True
            for _ in range(ATTEMPTS):
                keywords, vectors, used, is_whole = await self._ask_once(
                    asked, embeddings, use, with_cut=with_cut
                )
                if is_whole or not is_at_rest:
                    break
                with spent("waiting for a change of the index"):
                    is_at_rest = await self._index.at_rest(REST_S)
        finally:
            embeddings.close()
        return msgspec.structs.replace(keywords, is_whole=is_whole), vectors, used

    async def _ask_once(
        self,
        asked: _Asked,
        embeddings: _QuestionEmbeddings,
        use: Callable[[Iterator[Verdict], SideResults, Calibration | None], T],
        *,
        with_cut: bool,
    ) -> tuple[_KeywordResults, _VectorResults | _NoVectorResults, T, bool]:
        """As _ask, and whether all that keywords found was still there when it was put together.

        Where it was not, the index has changed in between: a file was written, or a rebuild put another index in place.
        """
        asking = asyncio.create_task(self._keyword_results(asked))
        keywords, vectors = await asyncio.gather(asking, self._vector_results(embeddings, asked, asking))
        if keywords.failure is not None and isinstance(vectors, _NoVectorResults):
            raise keywords.failure
        known = vectors.question.calibration if isinstance(vectors, _VectorResults) else None
        calibration = known or Calibration()
        near = vectors.near if isinstance(vectors, _VectorResults) else ()
        subtracted = vectors.subtracted if isinstance(vectors, _VectorResults) else 0.0
        if isinstance(vectors, _VectorResults) and not self._settings.query.hybrid.enabled:
            keywords = msgspec.structs.replace(keywords, matches={})

        times = [time.as_seconds for time in asked.query.times]

        def put_together(reader: Reader) -> tuple[T, bool]:
            chunk_ids = list(dict.fromkeys([*keywords.matches, *near]))
            cosines: dict[ChunkId, float] = {}
            parts: Mapping[ChunkId, ClosestPart] = {}
            if isinstance(vectors, _VectorResults):
                cosines = vector_matrix.cosines(vectors.rows, vectors.question.vector, chunk_ids)
            places = reader.places(chunk_ids)
            found = [
                _found(
                    place,
                    keywords.matches.get(place.id),
                    cosines.get(place.id),
                    is_of_time=_is_of_time(place, times),
                )
                for place in places
                if place.kind in asked.kinds
            ]
            examined = found
            if isinstance(vectors, _VectorResults):
                first = best(found, self._weights, calibration, subtracted, EXAMINED)
                scripts_of = {place.id: place.scripts for place in places}
                parts = reader.closest_parts(first, vectors.question.vector) if self._index.has_parts else {}
                scripts_first = {one: scripts_of[one] for one in first}
                found = _with_parts_and_scripts(found, scripts_first, asked.query, parts)
                strongest = set(first[:STRONGEST])
                examined = [one for one in found if one.id in strongest]
            supported = support(examined, calibration, asked.query.names, self._held(keywords))
            if asked.query.is_small_talk:
                supported = Support(0.0)
            # By the same candidates whatever the least score is, so that a higher one only leaves out.
            is_cut = not with_cut and not asked.by_time
            least = min(asked.min_score, WORTH_READING) if is_cut else 0.0
            ordered = fuse(found, self._weights, calibration, subtracted, least)
            kind_of = {place.id: place.kind for place in places}
            lanes: dict[Source | None, list[Scored]] = {}
            min_score = asked.min_score
            if asked.by_time:
                lanes[None], min_score = self._newest_first(reader, ordered, asked)
            else:
                for one in ordered:
                    lanes.setdefault(kind_of[one.id].source, []).append(one)
                lanes = {
                    source: _later_first(reader, some, asked.query, vectors, parts)
                    for source, some in lanes.items()
                }
            verdicts = rank.verdicts(
                [_with_text(reader, some) for some in lanes.values()],
                asked.query,
                min_score,
                self._settings.limits.max_snippet_chars,
                weak=supported.is_weak,
                least=asked.min_score if is_cut else 0.0,
                latest=asked.query.tense != "past" and not asked.by_time,
            )
            there = kind_of.keys()
            # While one index takes the place of another, its chunks are there a moment before its vectors.
            is_of_now = 2 * len(there & set(near)) >= len(near)
            is_whole = keywords.matches.keys() <= there and is_of_now
            return use(
                verdicts, SideResults(keywords.matches, near, found, subtracted, supported), known
            ), is_whole

        with spent("ranking"):
            return keywords, vectors, *await self._index.read(put_together)

    def _held(self, keywords: _KeywordResults) -> frozenset[int] | None:
        """The terms of the question that any text holds that may be seen; None: keywords take no part."""
        if keywords.trouble is not None or not self._settings.query.hybrid.enabled:
            return None
        return frozenset().union(*{match.held for match in keywords.matches.values()})

    def _searched(
        self,
        keywords: _KeywordResults,
        vectors: _VectorResults | _NoVectorResults,
        hits: list[FoundHit],
    ) -> Searched:
        if isinstance(vectors, _VectorResults):
            provider, model, _ = vectors.space
        else:
            provider, model = self._embedder.provider_name, self._embedder.model_name
        return Searched(
            hits=tuple(hits),
            mode=self._mode(keywords, vectors),
            degraded=self._degraded(keywords, vectors),
            keyword_trouble=keywords.damage,
            vector_trouble=vectors.damage if isinstance(vectors, _NoVectorResults) else None,
            provider=provider,
            model=model,
            space=vectors.space if isinstance(vectors, _VectorResults) else None,
        )

    def _newest_first(
        self, reader: Reader, ordered: list[Scored], asked: _Asked
    ) -> tuple[list[Scored], float]:
        """Candidates by when they are, and the least score of a hit.

        Where none has the score that was asked for, the question says no more than that: the newest of all.
        """
        least, scored = asked.min_score, {one.id: one for one in ordered}
        if all(one.score < least for one in ordered):
            least = 0.0
            places = reader.places(reader.newest(self._candidates, asked.wanted, asked.kinds))
            newest = [Scored(place.id, place.path, place.start_line, 0.0, 0.0, 0.0) for place in places]
            scored = {one.id: one for one in newest} | scored
        last = {place.id: self._last_s(place) for place in reader.places(list(scored))}
        there = [one for one in scored.values() if one.id in last]
        return sorted(there, key=lambda one: (-last[one.id], place_in_order(one))), least

    def _last_s(self, place: ChunkPlace) -> int:
        """Of when a chunk is at the latest, as clocks on the wall count seconds."""
        if place.last_s is not None:
            return place.last_s
        return wall_s(place.written_ns, zone_of(self._settings.timezone))

    async def _keyword_results(self, asked: _Asked) -> _KeywordResults:
        match = asked.query.match
        if match is None:
            return _KeywordResults({})
        try:
            with spent("keywords"):
                found = await self._index.keywords(match, self._candidates, asked.kinds, asked.among)
                return _KeywordResults(dict(found))
        except StoreDamaged as damage:
            return _KeywordResults({}, str(damage))
        except StoreClosed:
            raise  # another index takes the place of this one, and answers
        except TransientError as failure:
            return _KeywordResults({}, failure=failure)

    async def _vector_results(
        self,
        embeddings: _QuestionEmbeddings,
        asked: _Asked,
        keywords: asyncio.Task[_KeywordResults],
    ) -> _VectorResults | _NoVectorResults:
        """As _search_vectors; where a disk or a thread cannot be had just now, keywords answer alone."""
        try:
            return await self._search_vectors(embeddings, asked, keywords)
        except StoreClosed:
            raise
        except TransientError as failure:
            return _NoVectorResults(DegradedPart("vector", str(failure)))

    async def _search_vectors(
        self,
        embeddings: _QuestionEmbeddings,
        asked: _Asked,
        keywords: asyncio.Task[_KeywordResults],
    ) -> _VectorResults | _NoVectorResults:
        """The chunks nearest to the question; on a thread, so that keywords are looked for meanwhile.

        Vectors are compared with a question of their own space only. Where another index has taken its place while the
        question was embedded, it is embedded for that one.
        """
        for _ in range(SPACES):
            held = self._index.vectors.current()
            if held is None or not asked.query.embed_text:
                return _NoVectorResults(await self._why_no_vectors())
            space, _ = held
            question = await embeddings.embedded(space)
            held = self._index.vectors.current()
            if held is None or held[0] != space:
                continue
            if isinstance(question, DegradedPart):
                return _NoVectorResults(question)
            among = await self._among(asked)
            if isinstance(held[1], ListedVector):
                try:
                    found = await self._search_vectors_on_disk(
                        held[1], question, asked.kinds, keywords, among
                    )
                except StoreDamaged as damage:
                    return _NoVectorResults(DegradedPart("vector", str(damage)), str(damage))
                if found is None:
                    if await self._index.at_rest(REST_S):
                        continue
                    break
                subtracted = background(*found.mean_cosine, question.calibration)
                return _VectorResults(space, question, found.rows, tuple(found.chunk_ids), subtracted)
            with spent("vectors"):
                scanned = await self._computing.run(
                    vector_matrix.scan, held[1], question.vector, self._candidates, asked.kinds, among
                )
            subtracted = background(*scanned.mean_cosine(), question.calibration)
            return _VectorResults(space, question, held[1], tuple(scanned.nearest()), subtracted)
        return _NoVectorResults(DegradedPart("rebuild", "one index is taking the place of another"))

    async def _search_vectors_on_disk(
        self,
        known: ListedVector,
        question: _EmbeddedQuestion,
        kinds: frozenset[Kind],
        keywords: asyncio.Task[_KeywordResults],
        among: Sequence[Ids | None],
    ) -> NearVectors | None:
        """The same where vectors stay on disk; None: another index has taken the place of theirs.

        After the keywords: the vectors of what these found are taken along, so that all are read once.
        """
        also = (await keywords).matches.keys()
        with spent("vectors"):
            return await self._index.vectors.nearest(
                known, question.vector, self._candidates, kinds, also, among
            )

    async def _among(self, asked: _Asked) -> list[Ids | None]:
        """The ids, ascending, of the chunks that may be found, and of those of any time that the question names; None: all."""
        among, *of_times = await self._index.allowed(asked.among, asked.kinds)
        times = [ids for ids in of_times if ids is not None]
        return [among, np.unique(np.concatenate(times))] if times else [among]

    async def _why_no_vectors(self) -> DegradedPart | None:
        """What is missing, where there are no vectors to compare with or no question; None: nothing is."""
        unavailable = self._embedder.unavailable(self._index.space)
        if unavailable is not None or self._settings.provider == "none" or self._index.has_vectors:
            return unavailable
        # An index without any text lacks nothing.
        return DegradedPart("vector", "no chunk has a vector yet") if await self._index.any_waits() else None

    def _mode(self, keywords: _KeywordResults, vectors: _VectorResults | _NoVectorResults) -> str:
        if isinstance(vectors, _NoVectorResults):
            return "keyword"
        by_keywords = keywords.trouble is None and self._settings.query.hybrid.enabled
        return "hybrid" if by_keywords else "vector"

    def _degraded(
        self, keywords: _KeywordResults, vectors: _VectorResults | _NoVectorResults
    ) -> tuple[DegradedPart, ...]:
        found: list[DegradedPart] = []
        if keywords.trouble is not None:
            found.append(DegradedPart("keyword", keywords.trouble))
        if isinstance(vectors, _NoVectorResults) and vectors.trouble is not None:
            found.append(vectors.trouble)
        if not keywords.is_whole:
            found.append(
                DegradedPart("store", "the index changed while it was searched: some hits may be missing")
            )
        return tuple(found)


def _is_of_time(place: ChunkPlace, times: list[tuple[int, int]]) -> bool:
    """Whether a chunk is of one of some times, each from one second to another."""
    if place.first_s is None or place.last_s is None:
        return False
    return any(place.first_s <= last and place.last_s >= first for first, last in times)


def _found(place: ChunkPlace, match: Match | None, cosine: float | None, *, is_of_time: bool) -> Found:
    r, share = (None, 0.0) if match is None else (match.r, match.share)
    return Found(place.id, place.path, place.start_line, r, cosine, share, is_of_time=is_of_time)


def _with_parts_and_scripts(
    found: list[Found],
    first: Mapping[ChunkId, bytes | None],
    asked: Query,
    parts: Mapping[ChunkId, ClosestPart],
) -> list[Found]:
    """Candidates, the first ones with their best parts and with how foreign they are to the question.

    Args:
        found: All candidates.
        first: Those to look at, each with its scripts as they are stored.
        asked: The question.
        parts: Of the first ones, as far as they have any.
    """
    asked_in = scripts(asked.embed_text)
    foreign_by = {stored: foreign(asked_in, scripts_read(stored)) for stored in set(first.values())}
    return [
        one
        if one.id not in first
        else msgspec.structs.replace(
            one,
            part=parts[one.id].cosine if one.id in parts else None,
            foreign=foreign_by[first[one.id]],
            closest=parts[one.id].span if one.id in parts else None,
        )
        for one in found
    ]


def _later_first(
    reader: Reader,
    ordered: list[Scored],
    asked: Query,
    vectors: _VectorResults | _NoVectorResults,
    parts: Mapping[ChunkId, ClosestPart],
) -> list[Scored]:
    """Candidates of one source, what says the same later before what it replaces."""
    if isinstance(vectors, _NoVectorResults) or asked.tense == "past":
        return ordered
    worth_reading = [one for one in ordered if one.score >= WORTH_READING]
    first = [one.id for one in worth_reading[:POOL]]
    times = reader.times(first)
    if len(times) < 2:
        return ordered
    of_chunks = vector_matrix.vectors_of(vectors.rows, [one for one in first if one not in parts])
    dated = {
        one: Dated(vector, *times.get(one, (None, None)))
        for one in first
        if (vector := parts[one].vector if one in parts else of_chunks.get(one)) is not None
    }
    placed = later_first(
        worth_reading, dated, vectors.question.calibration, asks_now=asked.tense == "present"
    )
    return placed + ordered[len(placed) :]


def _with_text(reader: Reader, ordered: list[Scored]) -> Iterator[tuple[Scored, StoredChunk]]:
    """Candidates with their chunks, read a few at a time and only as far as somebody asks."""
    for start in range(0, len(ordered), BATCH):
        some = ordered[start : start + BATCH]
        with spent("reading text"):
            chunks = reader.texts([one.id for one in some])
        yield from ((one, chunks[one.id]) for one in some if one.id in chunks)
