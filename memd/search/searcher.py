"""Runs a search: looks up keywords and vectors, fuses the candidates, and cuts them down to hits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

import msgspec

from memd.config.settings import AgentSettings
from memd.domain_types import NO_FILTER, ChunkId, DegradedPart, FoundHit, Kind, SearchFilter, Trace
from memd.providers.provider import Calibration
from memd.runtime.profiling import timed_part
from memd.runtime.threads import beside
from memd.runtime.time_zones import zone_of
from memd.search import query
from memd.search.find_candidates import (
    ComparedVectors,
    EmbeddedQuestion,
    HybridResults,
    NoVectorResults,
    ReplacedVectors,
    VectorResults,
    candidates_per_side,
    keyword_results,
    search_both,
)
from memd.search.make_hits import (
    IndexQuestion,
    Proposal,
    Ranked,
    Searched,
    decided,
    reranked,
    worth_reranking,
)
from memd.search.merge_memories import merge_memories
from memd.search.order_candidates import order_candidates, weights_of
from memd.search.protocols import ChunkReader, QueryEmbedder, Reranker, SearchedIndex
from memd.search.rank import Verdict
from memd.search.trace import TracedSearch, first_hits, traced
from memd.store.chunks import StoredChunk
from memd.store.embedding_cache import Space
from memd.store.search_vectors import REST_S

ATTEMPTS = 3  # to search while the index changes
PROPOSED = 100  # candidates per source that are merged with those of other memories
SPACES = 3  # attempts to embed the question while one index replaces another

T = TypeVar("T")


class _Answer(msgspec.Struct, Generic[T], frozen=True):
    """The results of both sides, and what was made of the ranked candidates."""

    sides: HybridResults
    used: T
    # False: some chunks that keywords found were not there any more: a file was written, or a rebuilt index took its place.
    is_whole: bool
    not_reranked: DegradedPart | None  # why no reranker ordered the candidates


class _QuestionEmbeddings:
    """Embeds one question at most once per vector space, on demand."""

    def __init__(self, embedder: QueryEmbedder, text: str) -> None:
        self._embedder = embedder
        self._text = text
        self._known: dict[Space, EmbeddedQuestion | DegradedPart] = {}

    async def embedded(self, space: Space) -> EmbeddedQuestion | DegradedPart:
        """Return the question embedded for a space, or why it could not be embedded in time."""
        if space not in self._known:
            with timed_part("question's vector"):
                embedded = await self._embedder.embed_query(self._text, space)
            self._known[space] = (
                embedded if isinstance(embedded, DegradedPart) else EmbeddedQuestion(*embedded)
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

        answer = await self._ask(asked, first)
        return self._searched(asked, answer, answer.used)

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
        most = candidates_per_side(self._settings)
        keywords = await self._index.read(lambda reader: keyword_results(reader, asked, most))
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
            search = TracedSearch(
                text, spelt, weights_of(self._settings), calibration, min_score, max_results
            )
            return traced(self._decided(ranked), ranked.results, search)

        answer = await self._ask(asked, explained)
        hits, trace = answer.used
        return self._searched(asked, answer, hits), trace

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

        answer = await self._ask(asked, taken)
        return Proposal(text, asked, self._searched(asked, answer, []), *answer.used)

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
            own.text, asked.query, weights_of(self._settings), own.calibration, asked.min_score, max_results
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

    def _decided(self, ranked: Ranked) -> Iterator[Verdict]:
        return decided(ranked, self._settings.limits.max_snippet_chars)

    async def _ask(
        self,
        asked: IndexQuestion,
        use: Callable[[Ranked, Calibration | None], T],
    ) -> _Answer[T]:
        """Search, and call `use` with the ranked candidates on the thread that reads the index.

        Candidates below min_score are included only if `asked` wants them. The search is repeated while the index changes.
        """
        embeddings = _QuestionEmbeddings(self._embedder, asked.query.embed_text)
        is_at_rest = True
        for _ in range(ATTEMPTS):
            answer = await self._ask_once(asked, embeddings, use)
            if answer.is_whole or not is_at_rest:
                break
            with timed_part("waiting for a change of the index"):
                is_at_rest = await self._index.at_rest(REST_S)
        return answer

    async def _ask_once(
        self,
        asked: IndexQuestion,
        embeddings: _QuestionEmbeddings,
        use: Callable[[Ranked, Calibration | None], T],
    ) -> _Answer[T]:
        """Search once."""
        for _ in range(SPACES):
            compared = await self._compared(asked, embeddings)
            try:
                return await self._ask_with(compared, asked, use)
            except ReplacedVectors:
                if not await self._index.at_rest(REST_S):
                    break
        replaced = NoVectorResults(DegradedPart("rebuild", "one index is taking the place of another"))
        return await self._ask_with(replaced, asked, use)

    async def _compared(
        self, asked: IndexQuestion, embeddings: _QuestionEmbeddings
    ) -> ComparedVectors | NoVectorResults:
        """Embed the question, and return it with the vectors of the same space.

        If another index replaces the current one meanwhile, the question is embedded again for its space.
        """
        for _ in range(SPACES):
            held = self._index.vectors.current()
            if held is None or not asked.query.embed_text:
                return NoVectorResults(await self._why_no_vectors())
            space, _ = held
            question = await embeddings.embedded(space)
            held = self._index.vectors.current()
            if held is None or held[0] != space:
                continue
            if isinstance(question, DegradedPart):
                return NoVectorResults(question)
            return ComparedVectors(space, question, held[1])
        return NoVectorResults(DegradedPart("rebuild", "one index is taking the place of another"))

    async def _why_no_vectors(self) -> DegradedPart | None:
        """Return why there are no vectors to compare with; None: nothing is missing."""
        unavailable = self._embedder.unavailable(self._index.space)
        if unavailable is not None or self._settings.provider == "none" or self._index.has_vectors:
            return unavailable
        # Without any text, nothing is missing.
        return DegradedPart("vector", "no chunk has a vector yet") if await self._index.any_waits() else None

    async def _ask_with(
        self,
        compared: ComparedVectors | NoVectorResults,
        asked: IndexQuestion,
        use: Callable[[Ranked, Calibration | None], T],
    ) -> _Answer[T]:
        """Search by keywords and, if there are any, with the current vectors.

        Keywords and vectors are searched one after the other on one thread: in a small index, a change of threads costs as much as
        one of them.

        Raises:
            ReplacedVectors: the vectors on disk were replaced.
        """
        state = self._index.state
        reranker = self._reranker if asked.reranks and not asked.is_together else None

        def look(reader: ChunkReader) -> tuple[HybridResults, list[StoredChunk], tuple[T, bool] | None]:
            hybrid = search_both(reader, asked, compared, self._settings)
            if reranker is not None:
                with timed_part("ranking"):
                    lanes = self._in_order(reader, hybrid, {}).lanes
                    return hybrid, worth_reranking(lanes, reranker.candidates), None
            return hybrid, [], self._put_together(reader, hybrid, {}, use)

        with timed_part("searching"):
            hybrid, first, found = await self._index.read(look, state)
        if hybrid.keywords.failure is not None and isinstance(hybrid.vectors, NoVectorResults):
            raise hybrid.keywords.failure
        not_reranked, places = None, dict[ChunkId, int]()
        if reranker is not None:
            order = await _order(reranker, asked, first)
            if isinstance(order, DegradedPart):
                not_reranked = order
            else:
                places = order
        if found is None:
            with timed_part("searching"):
                found = await self._index.read(
                    lambda reader: self._put_together(reader, hybrid, places, use), state
                )
        return _Answer(hybrid, *found, not_reranked)

    def _put_together(
        self,
        reader: ChunkReader,
        hybrid: HybridResults,
        places: Mapping[ChunkId, int],
        use: Callable[[Ranked, Calibration | None], T],
    ) -> tuple[T, bool]:
        """Rank the candidates and call `use`; also return whether all chunks that keywords found were still there."""
        with timed_part("ranking"):
            ranked = self._in_order(reader, hybrid, places)
            return use(ranked, hybrid.calibration), ranked.is_whole

    def _in_order(self, reader: ChunkReader, hybrid: HybridResults, places: Mapping[ChunkId, int]) -> Ranked:
        return order_candidates(reader, hybrid, places, self._settings, has_parts=self._index.has_parts)

    def _searched(self, asked: IndexQuestion, answer: _Answer[T], hits: list[FoundHit]) -> Searched:
        keywords, vectors = answer.sides.keywords, answer.sides.vectors
        if isinstance(vectors, VectorResults):
            provider, model, _ = vectors.space
        else:
            provider, model = self._embedder.provider_name, self._embedder.model_name
        mode = self._mode(answer.sides)
        return Searched(
            hits=tuple(hits),
            mode="vector" if asked.mode == "vector" and mode == "hybrid" else mode,
            degraded=_degraded(answer),
            keyword_damage=keywords.damage,
            vector_damage=vectors.damage if isinstance(vectors, NoVectorResults) else None,
            provider=provider,
            model=model,
            space=vectors.space if isinstance(vectors, VectorResults) else None,
        )

    def _mode(self, sides: HybridResults) -> str:
        if isinstance(sides.vectors, NoVectorResults):
            return "keyword"
        by_keywords = sides.keywords.reason is None and self._settings.query.hybrid.enabled
        return "hybrid" if by_keywords else "vector"


def _degraded(answer: _Answer[T]) -> tuple[DegradedPart, ...]:
    keywords, vectors = answer.sides.keywords, answer.sides.vectors
    found: list[DegradedPart] = []
    if keywords.reason is not None:
        found.append(DegradedPart("keyword", keywords.reason))
    if isinstance(vectors, NoVectorResults) and vectors.reason is not None:
        found.append(vectors.reason)
    if answer.sides.not_expanded is not None:
        found.append(answer.sides.not_expanded)
    if answer.not_reranked is not None:
        found.append(answer.not_reranked)
    if not answer.is_whole:
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
