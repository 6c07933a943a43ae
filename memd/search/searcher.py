"""Runs a search: looks up keywords and vectors, fuses the candidates, and cuts them down to hits."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from memd.config.settings import WORTH_READING, AgentSettings
from memd.domain_types import (
    NO_FILTER,
    ChunkId,
    DegradedPart,
    FoundHit,
    Kind,
    SearchFilter,
    Trace,
)
from memd.errors import TransientError
from memd.providers.provider import Calibration, Vector
from memd.runtime.profiling import timed_part
from memd.runtime.threads import beside
from memd.runtime.time_zones import zone_of
from memd.search import query, spelling
from memd.search.fuse_scores import (
    POOL,
    Candidates,
    Dated,
    Fused,
    FusionWeights,
    Ints,
    Scored,
    background,
    fuse,
    later_first,
    place_in_order,
    strength,
)
from memd.search.make_hits import (
    AnswerEvidence,
    IndexQuestion,
    Lane,
    Proposal,
    Ranked,
    Searched,
    decided,
    last_s,
    reranked,
    supported,
    worth_reranking,
)
from memd.search.merge_memories import merge_memories
from memd.search.query import Query
from memd.search.rank import Verdict
from memd.search.superseded import stated_replacements
from memd.search.trace import SideResults, TracedSearch, first_hits, traced
from memd.store import vector_matrix
from memd.store.chunk_parts import ClosestPart
from memd.store.chunks import ChunkPlace, StoredChunk
from memd.store.disk_vectors import ListedVector, NearVectors
from memd.store.embedding_cache import Space
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.keywords import Match
from memd.store.postings import ChunkFacts
from memd.store.search_vectors import REST_S
from memd.store.vector_matrix import DEAD, Doubles, Floats, Ids, Rows
from memd.text.writing_systems import scripts

CANDIDATES = 200  # per side and source
MAX_RESULTS = 50
BATCH = 16  # candidates whose text is read in one query
ATTEMPTS = 3  # to search while the index changes
# The best candidates, whose parts and scripts are read: 10 µs each, mostly for reading.
EXAMINED = 100
STRONGEST = 30  # the first candidates by fusion, among which the strongest is looked for
PROPOSED = 100  # candidates per source that are merged with those of other memories
SPACES = 3  # attempts to embed the question while one index replaces another

T = TypeVar("T")


class QueryEmbedder(Protocol):
    """Embeds questions into the vector space of an agent's index."""

    @property
    def provider_name(self) -> str:
        """The name of the provider that embeds new text."""
        ...

    @property
    def model_name(self) -> str:
        """The name of that provider's model."""
        ...

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """Embed a question within a bounded time.

        Args:
            text: The question.
            space: The vector space of the index.

        Returns:
            The vector and the calibration of the model, or the reason why there is none.
        """
        ...

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """Return why no provider can embed questions for a space; None: one can, or none is configured.

        Args:
            space: The vector space of the index; None: it has no vectors.
        """
        ...


class ChunkFinder(Protocol):
    """Looks up chunks by keywords; see store.search_keywords.KeywordReader."""

    def search(
        self, match: str, limit: int, kinds: Collection[Kind], wanted: Sequence[SearchFilter]
    ) -> list[tuple[ChunkId, Match]]:
        """Return the best matches of each filter, best first."""
        ...

    def allowed(self, wanted: Sequence[SearchFilter], kinds: Collection[Kind]) -> list[Ids | None]:
        """Return for each filter the ascending ids of the chunks that it lets through; None: all."""
        ...

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> Mapping[str, Sequence[ChunkId]]:
        """Return the words that occur in any chunk, each with the ids of the first chunks that hold it."""
        ...

    def prepare(self, match: str) -> None:
        """Say what will be searched for, so that it may be read together with what is read before."""
        ...


class ChunkReader(Protocol):
    """Reads one snapshot of an index; see store.index.Reader."""

    @property
    def keywords(self) -> ChunkFinder:
        """The keyword index."""
        ...

    def isolating_failures(self) -> AbstractContextManager[None]:
        """Return a context in which a failure does not fail the whole search."""
        ...

    def nearest(
        self,
        known: ListedVector,
        query: Floats,
        limit: int,
        kinds: Collection[Kind],
        also: Collection[ChunkId],
        among: Sequence[Ids | None],
    ) -> NearVectors | None:
        """Return the nearest of the vectors on disk; None: they belong to another index by now."""
        ...

    def facts(self, chunk_ids: Ids) -> ChunkFacts:
        """Return the kinds and times of chunks."""
        ...

    def foreign(self, chunk_ids: Ids, question: Mapping[str, float]) -> Doubles:
        """Return for each chunk the part of its text, 0..1, in other scripts than the question."""
        ...

    def places(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, ChunkPlace]:
        """Return the positions of chunks, possibly of others too; deleted ones are left out."""
        ...

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
        """Return chunks with their text; deleted ones are left out."""
        ...

    def newest(self, limit: int, wanted: SearchFilter, kinds: Collection[Kind]) -> list[ChunkId]:
        """Return the ids of the newest chunks, approximately in order."""
        ...

    def closest_parts(self, chunk_ids: Sequence[ChunkId], query: Floats) -> dict[ChunkId, ClosestPart]:
        """Return for each chunk that has parts the one closest to the question."""
        ...


class SearchedVectors(Protocol):
    """The vectors of an index; see store.search_vectors.SearchVectors."""

    def current(self) -> tuple[Space, Rows | ListedVector] | None:
        """Return the current vectors in memory, or a description of those on disk; None: there are none."""
        ...


class SearchedIndex(Protocol):
    """What is searched: a local index, or a memory on a server."""

    @property
    def vectors(self) -> SearchedVectors:
        """The vectors of the index."""
        ...

    @property
    def space(self) -> Space | None:
        """The vector space; None: the index has none."""
        ...

    @property
    def has_parts(self) -> bool:
        """Whether parts of chunks have vectors too."""
        ...

    @property
    def has_vectors(self) -> bool:
        """Whether the index has any vector."""
        ...

    @property
    def state(self) -> int | None:
        """A value that differs whenever the index may have changed; None: unknown."""
        ...

    async def read(self, use: Callable[[ChunkReader], T], state: int | None = None) -> T:
        """Run `use` on a thread over one snapshot, and return its result."""
        ...

    async def any_waits(self) -> bool:
        """Return whether any chunk has no vector yet."""
        ...

    async def at_rest(self, most_s: float) -> bool:
        """Wait at most `most_s` seconds for a running change to end; return whether none is running."""
        ...


class Reranker(Protocol):
    """Orders texts by how well they answer a question."""

    candidates: int  # how many candidates of a question it is given

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:
        """Order texts within a bounded time.

        Returns:
            The indexes of the texts, best first, or the reason why there is no order.
        """
        ...

    async def close(self) -> None:
        """Cancel running requests."""
        ...


class _KeywordResults(msgspec.Struct, frozen=True):
    matches: dict[ChunkId, Match]  # best first
    damage: str | None = None  # why the keyword index is damaged
    failure: TransientError | None = None  # why it cannot be read now
    is_whole: bool = True  # False: the index changed before the candidates were fused
    not_reranked: DegradedPart | None = None  # why no reranker ordered the candidates

    @property
    def reason(self) -> str | None:
        """Why there are no matches; None: there is no reason."""
        return self.damage if self.failure is None else str(self.failure)


class _EmbeddedQuestion(msgspec.Struct, frozen=True):
    """A question embedded by one model."""

    vector: Vector
    calibration: Calibration  # of the model


class _VectorResults(msgspec.Struct, frozen=True):
    """The candidates from the vectors of one space."""

    space: Space
    question: _EmbeddedQuestion
    rows: Rows
    near: tuple[ChunkId, ...]  # nearest first
    # Chunk ids, ascending, and their cosines; the cosines of other chunks are computed from `rows`.
    cosines: tuple[Ids, Doubles]
    subtracted: float  # from every cosine, see fuse.background


class _NoVectorResults(msgspec.Struct, frozen=True):
    """Why vectors take no part; both None: the index has no text or no provider."""

    reason: DegradedPart | None = None
    damage: str | None = None  # why the vectors on disk are damaged


class _HybridResults(msgspec.Struct, frozen=True):
    """The results of keywords and of vectors."""

    asked: IndexQuestion  # with the spelling of names that the index has
    keywords: _KeywordResults
    vectors: _VectorResults | _NoVectorResults

    @property
    def known(self) -> Calibration | None:
        """The calibration of the model whose vectors took part."""
        return self.vectors.question.calibration if isinstance(self.vectors, _VectorResults) else None


class _Compared(msgspec.Struct, frozen=True):
    """An embedded question, and the vectors of the same space."""

    space: Space
    question: _EmbeddedQuestion
    held: Rows | ListedVector


class _OtherVectors(Exception):
    """The vectors on disk belong to another index by now."""


class _QuestionEmbeddings:
    """Embeds one question at most once per vector space, on demand."""

    def __init__(self, embedder: QueryEmbedder, text: str) -> None:
        self._embedder = embedder
        self._text = text
        self._known: dict[Space, _EmbeddedQuestion | DegradedPart] = {}

    async def embedded(self, space: Space) -> _EmbeddedQuestion | DegradedPart:
        """Return the question embedded for a space, or why it could not be embedded in time."""
        if space not in self._known:
            with timed_part("question's vector"):
                embedded = await self._embedder.embed_query(self._text, space)
            self._known[space] = (
                embedded if isinstance(embedded, DegradedPart) else _EmbeddedQuestion(*embedded)
            )
        return self._known[space]


class Searcher:
    """Searches one agent's index."""

    def __init__(
        self,
        index: SearchedIndex,
        settings: AgentSettings,
        embedder: QueryEmbedder,
        reranker: Reranker | None = None,
    ) -> None:
        """Create a searcher.

        Args:
            index: The index to search.
            settings: The settings of its agent.
            embedder: Embeds questions.
            reranker: Reorders the first candidates; None: their order stays.
        """
        self._reranker = reranker
        self._index = index
        self._settings = settings
        self._embedder = embedder
        hybrid = settings.query.hybrid
        self._weights = FusionWeights(hybrid.vector_weight, hybrid.text_weight)
        # The same for each search: if it grew with max_results, a larger max_results would reorder the hits.
        self._candidates = max(CANDIDATES, MAX_RESULTS * hybrid.candidate_multiplier)

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
        """Search for chunks that answer a question.

        If keywords or vectors fail, the other side answers, and `degraded` names what is missing. The search fails only if
        keywords cannot be read now and there are no vectors either.

        Args:
            text: The question.
            kinds: The kinds of files that take part.
            max_results: The most hits. A larger number only appends to the hits of a smaller one.
            min_score: 0..1, the least score of a hit.
            now: The local wall-clock time, by which relative times are resolved; None: they are not.
            mode: "hybrid", "keyword" or "vector".
            wanted: The filter that chunks must pass.
            by_time: Sort hits by time, the newest first; if none has the least score, return the newest chunks of all.

        Raises:
            TransientError: the index cannot be read now.
        """
        parsed = query.restricted(query.parse(text, now), mode)
        asked = IndexQuestion(parsed, kinds, min_score, wanted, by_time, mode)

        def first(ranked: Ranked, _: Calibration | None) -> list[FoundHit]:
            return first_hits(self._decided(ranked), max_results)

        keywords, vectors, hits = await self._ask(asked, first)
        return self._searched(asked, keywords, vectors, hits)

    async def close(self) -> None:
        """Cancel the reranker's running requests."""
        if self._reranker is not None:
            await self._reranker.close()

    async def warm(self) -> str | None:
        """Read the keyword index as the first search would; return why it is damaged, or None.

        Raises:
            TransientError: it cannot be read now.
        """
        asked = IndexQuestion(query.parse("memory"), frozenset(Kind))
        keywords = await self._index.read(lambda reader: self._keyword_results(reader, asked))
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
        """Search as `search` does, and explain how each of the first candidates came to its place."""
        asked = IndexQuestion(query.parse(text, now), kinds, min_score, wanted, by_time, is_explained=True)

        def explained(ranked: Ranked, calibration: Calibration | None) -> tuple[list[FoundHit], Trace]:
            spelt = ranked.question.query
            search = TracedSearch(text, spelt, self._weights, calibration, min_score, max_results)
            return traced(self._decided(ranked), ranked.results, search)

        keywords, vectors, (hits, trace) = await self._ask(asked, explained)
        return self._searched(asked, keywords, vectors, hits), trace

    def _decided(self, ranked: Ranked) -> Iterator[Verdict]:
        return decided(ranked, self._settings.limits.max_snippet_chars)

    async def propose(
        self,
        text: str,
        *,
        kinds: frozenset[Kind],
        min_score: float,
        now: datetime | None = None,
        mode: str = "hybrid",
        wanted: SearchFilter = NO_FILTER,
        by_time: bool = False,
        is_explained: bool = False,
    ) -> Proposal:
        """Return the best candidates, to be merged with those of other memories; for the parameters see `search`.

        Raises:
            TransientError: the index cannot be read now.
        """
        parsed = query.restricted(query.parse(text, now), mode)
        asked = IndexQuestion(parsed, kinds, min_score, wanted, by_time, mode, is_explained, is_together=True)

        def taken(ranked: Ranked, calibration: Calibration | None) -> tuple[Ranked, Calibration | None]:
            lanes = [iter(list(islice(lane, PROPOSED))) for lane in ranked.lanes]
            return msgspec.structs.replace(ranked, lanes=lanes), calibration

        keywords, vectors, (ranked, calibration) = await self._ask(asked, taken)
        return Proposal(text, asked, self._searched(asked, keywords, vectors, []), ranked, calibration)

    async def search_together(
        self, own: Proposal, included: Mapping[str, Proposal], max_results: int
    ) -> Searched:
        """Merge the candidates of several memories, and return the hits.

        Args:
            own: The proposal of this index; each proposal can be used once only.
            included: The proposals of other memories, by name.
            max_results: The most hits.
        """
        ranked, found = await self._together(own, included)
        hits = await beside(lambda: first_hits(self._decided(ranked), max_results))
        return msgspec.structs.replace(found, hits=tuple(hits))

    async def explain_together(
        self, own: Proposal, included: Mapping[str, Proposal], max_results: int
    ) -> tuple[Searched, Trace]:
        """Merge and explain; values that concern a whole index are those of this one."""
        ranked, found = await self._together(own, included)
        asked = ranked.question
        search = TracedSearch(
            own.text, asked.query, self._weights, own.calibration, asked.min_score, max_results
        )
        hits, trace = await beside(lambda: traced(self._decided(ranked), ranked.results, search))
        return msgspec.structs.replace(found, hits=tuple(hits)), trace

    async def _together(self, own: Proposal, included: Mapping[str, Proposal]) -> tuple[Ranked, Searched]:
        """Merge the candidates of several memories, and rerank them if there is a reranker."""
        ranked = merge_memories(own, included, zone_of(self._settings.timezone))
        degraded = [*own.found.degraded]
        for name, one in included.items():
            degraded += [DegradedPart("included", f"{name}: {part.reason}") for part in one.found.degraded]
        if self._reranker is not None and own.question.reranks:
            lanes = [list(lane) for lane in ranked.lanes]
            first = worth_reranking(list(map(iter, lanes)), self._reranker.candidates)
            order = await _order(self._reranker, own.question, first)
            if isinstance(order, DegradedPart):
                degraded.append(order)
                order = {}
            ranked = msgspec.structs.replace(ranked, lanes=[reranked(lane, order) for lane in lanes])
        return ranked, msgspec.structs.replace(own.found, degraded=tuple(degraded))

    async def _ask(
        self,
        asked: IndexQuestion,
        use: Callable[[Ranked, Calibration | None], T],
    ) -> tuple[_KeywordResults, _VectorResults | _NoVectorResults, T]:
        """Search, and call `use` with the ranked candidates on the thread that reads the index.

        Candidates below min_score are included only if `asked` wants them. The search is repeated while the index changes.
        """
        embeddings = _QuestionEmbeddings(self._embedder, asked.query.embed_text)
        is_at_rest = True
        for _ in range(ATTEMPTS):
            keywords, vectors, used, is_whole = await self._ask_once(asked, embeddings, use)
            if is_whole or not is_at_rest:
                break
            with timed_part("waiting for a change of the index"):
                is_at_rest = await self._index.at_rest(REST_S)
        return msgspec.structs.replace(keywords, is_whole=is_whole), vectors, used

    async def _ask_once(
        self,
        asked: IndexQuestion,
        embeddings: _QuestionEmbeddings,
        use: Callable[[Ranked, Calibration | None], T],
    ) -> tuple[_KeywordResults, _VectorResults | _NoVectorResults, T, bool]:
        """Search once; the last value is whether all chunks that keywords found were still there.

        They are not if the index changed meanwhile: a file was written, or a rebuilt index took its place.
        """
        for _ in range(SPACES):
            compared = await self._compared(embeddings, asked)
            try:
                return await self._ask_of(compared, asked, use)
            except _OtherVectors:
                if not await self._index.at_rest(REST_S):
                    break
        replaced = _NoVectorResults(DegradedPart("rebuild", "one index is taking the place of another"))
        return await self._ask_of(replaced, asked, use)

    async def _ask_of(
        self,
        compared: _Compared | _NoVectorResults,
        asked: IndexQuestion,
        use: Callable[[Ranked, Calibration | None], T],
    ) -> tuple[_KeywordResults, _VectorResults | _NoVectorResults, T, bool]:
        """Search with the current vectors, like `_ask_once`.

        Keywords and vectors are searched one after the other on one thread: in a small index, a change of threads costs as much as
        one of them.

        Raises:
            _OtherVectors: the vectors on disk were replaced.
        """
        state = self._index.state
        reranker = self._reranker if asked.reranks and not asked.is_together else None

        def look(reader: ChunkReader) -> tuple[_HybridResults, list[StoredChunk], tuple[T, bool] | None]:
            hybrid = self._search_both(reader, asked, compared)
            if reranker is not None:
                with timed_part("ranking"):
                    lanes = self._ranked(reader, hybrid, {}).lanes
                    return hybrid, worth_reranking(lanes, reranker.candidates), None
            return hybrid, [], self._put_together(reader, hybrid, {}, use)

        with timed_part("searching"):
            hybrid, first, found = await self._index.read(look, state)
        keywords, places = hybrid.keywords, dict[ChunkId, int]()
        if keywords.failure is not None and isinstance(hybrid.vectors, _NoVectorResults):
            raise keywords.failure
        if reranker is not None:
            order = await _order(reranker, asked, first)
            if isinstance(order, DegradedPart):
                keywords = msgspec.structs.replace(keywords, not_reranked=order)
            else:
                places = order
        if found is None:
            with timed_part("searching"):
                found = await self._index.read(
                    lambda reader: self._put_together(reader, hybrid, places, use), state
                )
        return keywords, hybrid.vectors, *found

    def _search_both(
        self, reader: ChunkReader, asked: IndexQuestion, compared: _Compared | _NoVectorResults
    ) -> _HybridResults:
        """Search by keywords and by vectors.

        Raises:
            _OtherVectors: the vectors on disk were replaced.
        """
        asked = self._spelt(reader, asked)
        keywords = self._keyword_results(reader, asked)
        vectors = (
            compared
            if isinstance(compared, _NoVectorResults)
            else self._vector_results(reader, asked, compared, keywords)
        )
        if isinstance(vectors, _VectorResults) and not self._settings.query.hybrid.enabled:
            keywords = msgspec.structs.replace(keywords, matches={})
        return _HybridResults(asked, keywords, vectors)

    def _put_together(
        self,
        reader: ChunkReader,
        hybrid: _HybridResults,
        places: Mapping[ChunkId, int],
        use: Callable[[Ranked, Calibration | None], T],
    ) -> tuple[T, bool]:
        """Rank the candidates and call `use`; also return whether all chunks that keywords found were still there."""
        with timed_part("ranking"):
            ranked = self._ranked(reader, hybrid, places)
            return use(ranked, hybrid.known), ranked.is_whole

    def _ranked(self, reader: ChunkReader, hybrid: _HybridResults, places: Mapping[ChunkId, int]) -> Ranked:
        """Fuse and order the candidates; those with a reranked place come first."""
        asked = hybrid.asked
        vectors, calibration = hybrid.vectors, hybrid.known or Calibration()
        near = vectors.near if isinstance(vectors, _VectorResults) else ()
        subtracted = vectors.subtracted if isinstance(vectors, _VectorResults) else 0.0
        found, is_whole = _candidates(reader, asked, hybrid.keywords.matches, vectors)
        examined: Candidates = found
        parts: Mapping[ChunkId, ClosestPart] = {}
        if isinstance(vectors, _VectorResults):
            whole = fuse(
                found,
                self._weights,
                calibration,
                subtracted,
                asks_of_time_alone=asked.query.asks_of_time_alone,
            )
            first = whole.order(reader.places, EXAMINED, sets=(STRONGEST, EXAMINED))
            found, parts = self._with_parts_and_scripts(reader, found, first, asked.query, vectors)
            examined = found.some(first[:STRONGEST])
        strongest = float(strength(examined, calibration).max(initial=0.0))
        evidence = AnswerEvidence(strongest, self._held(hybrid.keywords), bool(found.within.any()))
        fused = fuse(
            found, self._weights, calibration, subtracted, asks_of_time_alone=asked.query.asks_of_time_alone
        )
        # Independent of min_score up to WORTH_READING, so that a higher min_score only drops hits.
        least = min(asked.min_score, WORTH_READING) if asked.is_cut else 0.0
        order = fused.order(reader.places, least=least)
        min_score = asked.min_score
        if asked.by_time:
            newest, min_score = self._newest_first(reader, fused.scored(order, reader.places), asked)
            lanes = [_with_text(reader, newest)]
        else:
            lanes = [
                reranked(_with_text(reader, _lane(reader, fused, rows, asked.query, vectors, parts)), places)
                for rows in _by_source(fused, order)
            ]
        results = SideResults(
            hybrid.keywords.matches, near, fused, order, subtracted, supported(asked, evidence)
        )
        return Ranked(asked, lanes, min_score, results, evidence, is_whole)

    def _held(self, keywords: _KeywordResults) -> frozenset[int] | None:
        """Return the terms that any visible text holds; None: keywords take no part."""
        if keywords.reason is not None or not self._settings.query.hybrid.enabled:
            return None
        return frozenset(b"".join([match.held for match in keywords.matches.values()]))

    def _searched(
        self,
        asked: IndexQuestion,
        keywords: _KeywordResults,
        vectors: _VectorResults | _NoVectorResults,
        hits: list[FoundHit],
    ) -> Searched:
        if isinstance(vectors, _VectorResults):
            provider, model, _ = vectors.space
        else:
            provider, model = self._embedder.provider_name, self._embedder.model_name
        mode = self._mode(keywords, vectors)
        return Searched(
            hits=tuple(hits),
            mode="vector" if asked.mode == "vector" and mode == "hybrid" else mode,
            degraded=self._degraded(keywords, vectors),
            keyword_damage=keywords.damage,
            vector_damage=vectors.damage if isinstance(vectors, _NoVectorResults) else None,
            provider=provider,
            model=model,
            space=vectors.space if isinstance(vectors, _VectorResults) else None,
        )

    def _newest_first(
        self, reader: ChunkReader, ordered: list[Scored], asked: IndexQuestion
    ) -> tuple[list[Scored], float]:
        """Return the candidates by time, newest first, and the least score of a hit.

        If no candidate has min_score, the question asks for nothing but recency: the newest chunks of all are added.
        """
        least, scored = asked.min_score, {one.id: one for one in ordered}
        if all(one.score < least for one in ordered):
            least = 0.0
            newest_ids = reader.newest(self._candidates, asked.wanted, asked.kinds)
            places = reader.places(newest_ids)
            newest = [
                Scored(one, places[one].path, places[one].start_line, 0.0, 0.0, 0.0) for one in newest_ids
            ]
            scored = {one.id: one for one in newest} | scored
        places, zone = reader.places(list(scored)), zone_of(self._settings.timezone)
        return sorted(
            scored.values(), key=lambda one: (-last_s(places[one.id], zone), place_in_order(one))
        ), least

    def _with_parts_and_scripts(
        self, reader: ChunkReader, found: Candidates, first: Ints, asked: Query, vectors: _VectorResults
    ) -> tuple[Candidates, Mapping[ChunkId, ClosestPart]]:
        """Read the closest parts and the scripts of some candidates; return the candidates with them, and the parts."""
        ids: list[ChunkId] = found.ids[first].tolist()
        parts = reader.closest_parts(ids, vectors.question.vector) if self._index.has_parts else {}
        part_of, foreign_of = found.part.copy(), found.foreign.copy()
        foreign_of[first] = reader.foreign(found.ids[first], scripts(asked.embed_text))
        part_of[first] = [parts[one].cosine if one in parts else np.nan for one in ids]
        closest = {row: parts[one].span for row, one in zip(first.tolist(), ids, strict=True) if one in parts}
        return msgspec.structs.replace(found, part=part_of, foreign=foreign_of, closest=closest), parts

    def _spelt(self, reader: ChunkReader, asked: IndexQuestion) -> IndexQuestion:
        """Return the question with misspelt names corrected; unchanged if the keyword index cannot be read."""
        try:
            with timed_part("spelling"), reader.isolating_failures():
                if asked.query.match is not None:
                    reader.keywords.prepare(asked.query.match)
                spelt = spelling.spelt(asked.query, reader, asked.kinds)
        except (StoreDamaged, TransientError):
            return asked  # _keyword_results reports it
        return asked if spelt is asked.query else msgspec.structs.replace(asked, query=spelt)

    def _keyword_results(self, reader: ChunkReader, asked: IndexQuestion) -> _KeywordResults:
        match = asked.query.match
        if match is None:
            return _KeywordResults({})
        try:
            with timed_part("keywords"), reader.isolating_failures():
                return _KeywordResults(
                    dict(reader.keywords.search(match, self._candidates, asked.kinds, asked.among))
                )
        except StoreDamaged as damage:
            return _KeywordResults({}, str(damage))
        except StoreClosed:
            raise  # the search is repeated with the index that replaced this one
        except TransientError as failure:
            return _KeywordResults({}, failure=failure)

    async def _compared(
        self, embeddings: _QuestionEmbeddings, asked: IndexQuestion
    ) -> _Compared | _NoVectorResults:
        """Embed the question, and return it with the vectors of the same space.

        If another index replaces the current one meanwhile, the question is embedded again for its space.
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
            return _Compared(space, question, held[1])
        return _NoVectorResults(DegradedPart("rebuild", "one index is taking the place of another"))

    def _vector_results(
        self, reader: ChunkReader, asked: IndexQuestion, compared: _Compared, keywords: _KeywordResults
    ) -> _VectorResults | _NoVectorResults:
        """Return the chunks nearest to the question, or why vectors take no part.

        Raises:
            _OtherVectors: the vectors on disk were replaced.
        """
        try:
            with timed_part("vectors"), reader.isolating_failures():
                return self._nearest(reader, asked, compared, keywords)
        except StoreDamaged as damage:
            return _NoVectorResults(DegradedPart("vector", str(damage)), str(damage))
        except StoreClosed:
            raise
        except TransientError as failure:
            return _NoVectorResults(DegradedPart("vector", str(failure)))

    def _nearest(
        self, reader: ChunkReader, asked: IndexQuestion, compared: _Compared, keywords: _KeywordResults
    ) -> _VectorResults:
        question, held = compared.question, compared.held
        # The visible chunks, and those of any time named in the question.
        among, *of_times = reader.keywords.allowed(asked.among, asked.kinds)
        times = [ids for ids in of_times if ids is not None]
        sought = [among, vector_matrix.distinct(np.concatenate(times))] if times else [among]
        if isinstance(held, Rows):
            scanned = vector_matrix.scan(held, question.vector, self._candidates, asked.kinds, sought)
            rows, mean, cosines = held, scanned.mean_cosine(), scanned.nearest_cosines()
            near = scanned.nearest()
        else:
            # The vectors of the chunks that keywords found are included, so that all vectors are read once.
            found = reader.nearest(
                held, question.vector, self._candidates, asked.kinds, keywords.matches.keys(), sought
            )
            if found is None:
                raise _OtherVectors
            rows, near, mean = found.rows, found.chunk_ids, found.mean_cosine
            cosines = np.empty(0, np.int64), np.empty(0)
        subtracted = background(*mean, question.calibration)
        return _VectorResults(compared.space, question, rows, tuple(near), cosines, subtracted)

    async def _why_no_vectors(self) -> DegradedPart | None:
        """Return why there are no vectors to compare with; None: nothing is missing."""
        unavailable = self._embedder.unavailable(self._index.space)
        if unavailable is not None or self._settings.provider == "none" or self._index.has_vectors:
            return unavailable
        # Without any text, nothing is missing.
        return DegradedPart("vector", "no chunk has a vector yet") if await self._index.any_waits() else None

    def _mode(self, keywords: _KeywordResults, vectors: _VectorResults | _NoVectorResults) -> str:
        if isinstance(vectors, _NoVectorResults):
            return "keyword"
        by_keywords = keywords.reason is None and self._settings.query.hybrid.enabled
        return "hybrid" if by_keywords else "vector"

    def _degraded(
        self, keywords: _KeywordResults, vectors: _VectorResults | _NoVectorResults
    ) -> tuple[DegradedPart, ...]:
        found: list[DegradedPart] = []
        if keywords.reason is not None:
            found.append(DegradedPart("keyword", keywords.reason))
        if isinstance(vectors, _NoVectorResults) and vectors.reason is not None:
            found.append(vectors.reason)
        if keywords.not_reranked is not None:
            found.append(keywords.not_reranked)
        if not keywords.is_whole:
            found.append(
                DegradedPart("store", "the index changed while it was searched: some hits may be missing")
            )
        return tuple(found)


async def _order(
    reranker: Reranker, asked: IndexQuestion, first: Sequence[StoredChunk]
) -> dict[ChunkId, int] | DegradedPart:
    """Return the places that a reranker gives to some chunks, or why it gives none."""
    if len(first) < 2:
        return {}
    with timed_part("reranker"):
        order = await reranker.order(asked.query.embed_text, [one.text for one in first])
    if isinstance(order, DegradedPart):
        return order
    return {first[n].id: place for place, n in enumerate(order)}


def _candidates(
    reader: ChunkReader,
    asked: IndexQuestion,
    matches: Mapping[ChunkId, Match],
    vectors: _VectorResults | _NoVectorResults,
) -> tuple[Candidates, bool]:
    """Return the visible candidates of keywords and of vectors, and whether all of them are still there."""
    by_words = np.fromiter(matches, np.int64, len(matches))
    near = np.array(vectors.near if isinstance(vectors, _VectorResults) else (), np.int64)
    ids = vector_matrix.distinct(np.concatenate((by_words, near)))
    r, share = np.full(len(ids), np.nan), np.zeros(len(ids))
    at = ids.searchsorted(by_words)
    r[at] = [match.r for match in matches.values()]
    share[at] = [match.share for match in matches.values()]
    cosine = np.full(len(ids), np.nan)
    if isinstance(vectors, _VectorResults):
        known, cosines = vectors.cosines
        known_at, is_known = vector_matrix.places_among(known, ids)
        cosine[is_known] = cosines[known_at[is_known]]
        cosine[~is_known] = vector_matrix.cosines(vectors.rows, vectors.question.vector, ids[~is_known])
    facts = reader.facts(ids)
    within = np.zeros(len(ids))
    for time in asked.query.times:
        within = np.maximum(within, facts.within(*time.as_seconds))
    is_there = facts.kinds != DEAD
    # While one index replaces another, its chunks are there a moment before its vectors.
    is_of_now = 2 * np.count_nonzero(is_there[ids.searchsorted(near)]) >= len(near)
    is_whole = bool(is_there[at].all() and is_of_now)
    nothing = np.full(len(ids), np.nan)
    found = Candidates(ids, facts.kinds, facts.times, r, cosine, share, within, nothing, np.zeros(len(ids)))
    return found.some(np.flatnonzero(vector_matrix.lookup(asked.kinds)[facts.kinds])), is_whole


def _by_source(fused: Fused, order: Ints) -> Iterator[Ints]:
    """Yield the rows of each source, in order."""
    kinds = fused.candidates.kinds[order]
    here = [Kind(kind) for kind in np.flatnonzero(np.bincount(kinds)).tolist()]
    for source in sorted({kind.source for kind in here}):
        of_source = [kind for kind in here if kind.source == source]
        yield order if of_source == here else order[vector_matrix.lookup(of_source)[kinds]]


def _lane(
    reader: ChunkReader,
    fused: Fused,
    rows: Ints,
    asked: Query,
    vectors: _VectorResults | _NoVectorResults,
    parts: Mapping[ChunkId, ClosestPart],
) -> Iterator[Scored]:
    """Yield the candidates of one source in order; a later text that says the same comes before what it replaces."""
    first = rows[: min(POOL, fused.count_from(rows, WORTH_READING))]
    # Texts are read together with the positions: those of nearly all of these are asked for next.
    ids: list[ChunkId] = fused.candidates.ids[first].tolist()
    texts = reader.texts(ids)
    head = fused.scored(first, lambda _: texts)
    if asked.tense != "past":
        stated = stated_replacements([(texts[one.id], one.closest) for one in head])
        head = _later_first(head, fused.candidates.times[first], asked, vectors, parts, stated)
    yield from head
    for start in range(len(first), len(rows), BATCH):
        yield from fused.scored(rows[start : start + BATCH], reader.texts)


def _later_first(
    head: list[Scored],
    times: Ints,
    asked: Query,
    vectors: _VectorResults | _NoVectorResults,
    parts: Mapping[ChunkId, ClosestPart],
    stated: Collection[tuple[ChunkId, ChunkId]],
) -> list[Scored]:
    asks_now = asked.tense == "present"
    if isinstance(vectors, _NoVectorResults):
        return later_first(head, {}, Calibration(), asks_now=asks_now, stated=stated)
    ids = [one.id for one in head]
    first_s, last_s = (times[:, 0].tolist(), times[:, 1].tolist())
    when = {
        one: (first, last) for one, first, last in zip(ids, first_s, last_s, strict=True) if first <= last
    }
    if len(when) < 2 and not stated:
        return head
    of_chunks = vector_matrix.vectors_of(vectors.rows, [one for one in ids if one not in parts])
    dated = {
        one: Dated(vector, *when.get(one, (None, None)))
        for one in ids
        if (vector := parts[one].vector if one in parts else of_chunks.get(one)) is not None
    }
    return later_first(head, dated, vectors.question.calibration, asks_now=asks_now, stated=stated)


def _with_text(reader: ChunkReader, ordered: Iterable[Scored]) -> Lane:
    """Yield candidates with their chunks; the text is read lazily, a few chunks at a time."""
    left = iter(ordered)
    while some := list(islice(left, BATCH)):
        with timed_part("reading text"):
            chunks = reader.texts([one.id for one in some])
        yield from ((one, chunks[one.id]) for one in some if one.id in chunks)
