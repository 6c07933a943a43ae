"""A question to hits: both sides asked at once, put together, and cut down to what answers."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from memd.config import AgentSettings
from memd.embed.choose import Choice
from memd.embed.provider import Calibration, EmbedUnavailable, Vector
from memd.model import Candidate, ChunkId, Degraded, Hit, Kind, Trace
from memd.search import query, rank
from memd.search.fuse import Candidate as Found
from memd.search.fuse import Scored, Weights, fuse
from memd.search.query import Query
from memd.search.rank import Verdict
from memd.search.terms import held
from memd.store import matrix
from memd.store.chunks import Place, StoredChunk
from memd.store.database import StoreDamaged
from memd.store.index import Index, Reader
from memd.store.keywords import Match
from memd.store.matrix import Rows
from memd.text import cjk_share

CANDIDATES = 200  # a side
MAX_RESULTS = 50
EXPLAINED = 100  # candidates that are explained
BATCH = 16  # candidates whose text is read at once
ATTEMPTS = 3  # at a search that the index changes under
QUERY_TIMEOUT_S = 2.0  # for the vector of a question; after that, keywords answer alone


T = TypeVar("T")


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The hits for a question, and what they were found with."""

    hits: tuple[Hit, ...]
    mode: str  # hybrid | keyword | vector
    degraded: tuple[Degraded, ...]
    keyword_trouble: str | None  # the keyword index is broken


class _Keywords(msgspec.Struct, frozen=True):
    matches: dict[ChunkId, Match]  # best first
    trouble: str | None = None


class _Meaning(msgspec.Struct, frozen=True):
    vector: Vector | None
    trouble: Degraded | None = None
    rows: Rows | None = None  # the vectors that it was compared with
    near: tuple[ChunkId, ...] = ()  # nearest first


class _Sides(msgspec.Struct, frozen=True):
    """What each side proposed, best first."""

    keywords: dict[ChunkId, Match]
    near: tuple[ChunkId, ...]


class Searcher:
    """Searches one agent's index."""

    def __init__(self, index: Index, settings: AgentSettings, choice: Choice) -> None:
        self._index = index
        self._settings = settings
        self._provider = choice.provider
        self._no_provider = choice.reason
        hybrid = settings.query.hybrid
        self._weights = Weights(hybrid.vector_weight, hybrid.text_weight)
        # One number for every search: were it to grow with max_results, a larger max_results would reorder the hits.
        self._candidates = max(CANDIDATES, MAX_RESULTS * hybrid.candidate_multiplier)

    @property
    def provider_name(self) -> str:
        """The embedding provider, or none."""
        return "none" if self._provider is None else self._provider.identity.provider

    @property
    def model_name(self) -> str:
        """The embedding model, or nothing."""
        return "" if self._provider is None else self._provider.identity.model

    async def search(
        self, text: str, *, kinds: frozenset[Kind], max_results: int, min_score: float
    ) -> Searched:
        """Find what answers a question.

        No side fails the search: the other answers, and what is missing is named.

        Args:
            text: The question.
            kinds: What may be seen; nothing else takes part.
            max_results: How many hits at most. A larger number only appends to the hits of a smaller one.
            min_score: 0..1, against the calibrated cosine of hits that keywords do not support.
        """
        asked = query.parse(text)

        def first(verdicts: Iterator[Verdict], _: _Sides) -> list[Hit]:
            return list(islice((verdict.hit for verdict in verdicts if verdict.hit is not None), max_results))

        keywords, meaning, hits = await self._ask(asked, kinds, min_score, first, with_cut=False)
        return self._searched(keywords, meaning, hits)

    async def explain(
        self, text: str, *, kinds: frozenset[Kind], max_results: int, min_score: float
    ) -> tuple[Searched, Trace]:
        """The same, and how each of the first candidates came to its place."""
        asked = query.parse(text)

        def told(verdicts: Iterator[Verdict], sides: _Sides) -> tuple[list[Hit], list[Candidate]]:
            return _told(islice(verdicts, EXPLAINED), sides, asked, max_results)

        keywords, meaning, (hits, candidates) = await self._ask(asked, kinds, min_score, told, with_cut=True)
        trace = Trace(
            terms=asked.terms,
            match=asked.match or "",
            vector_weight=self._weights.vector,
            text_weight=self._weights.text,
            min_score=min_score,
            candidates=tuple(candidates),
        )
        return self._searched(keywords, meaning, hits), trace

    async def _ask(
        self,
        asked: Query,
        kinds: frozenset[Kind],
        min_score: float,
        use: Callable[[Iterator[Verdict], _Sides], T],
        *,
        with_cut: bool,
    ) -> tuple[_Keywords, _Meaning, T]:
        """Ask both sides at once, then give the verdicts about their candidates, the best first, to use.

        Those that min_score is sure to cut are among them only where somebody wants to hear of them.
        """
        provider_asked = asyncio.create_task(self._ask_provider(asked))
        try:
            for _ in range(ATTEMPTS):
                keywords, meaning, used, is_whole = await self._ask_once(
                    asked, kinds, min_score, provider_asked, use, with_cut=with_cut
                )
                if is_whole:
                    break
        finally:
            provider_asked.cancel()
        return keywords, meaning, used

    async def _ask_once(
        self,
        asked: Query,
        kinds: frozenset[Kind],
        min_score: float,
        provider_asked: asyncio.Task[_Meaning],
        use: Callable[[Iterator[Verdict], _Sides], T],
        *,
        with_cut: bool,
    ) -> tuple[_Keywords, _Meaning, T, bool]:
        """As _ask, and whether all that keywords found was still there when it was put together.

        Where it was not, the index has changed in between: a file was written, or a rebuild put another index in place.
        """
        keywords, meaning = await asyncio.gather(
            self._ask_keywords(asked, kinds), self._ask_vectors(provider_asked, kinds)
        )
        if meaning.vector is not None and not self._settings.query.hybrid.enabled:
            keywords = _Keywords({}, keywords.trouble)
        cutoff = rank.Cutoff(
            min_score, Calibration() if self._provider is None else self._provider.calibration
        )

        question_cjk = cjk_share(asked.embed_text)

        def level(place: Place, cosine: float | None) -> float | None:
            return None if cosine is None else cutoff.calibration.level(cosine, question_cjk, place.cjk)

        def put_together(reader: Reader) -> tuple[T, bool]:
            chunk_ids = list(dict.fromkeys([*keywords.matches, *meaning.near]))
            cosines: dict[ChunkId, float] = {}
            if meaning.rows is not None and meaning.vector is not None:
                cosines = matrix.cosines(meaning.rows, meaning.vector, chunk_ids)
            places = reader.places(chunk_ids)
            ordered = fuse(
                (
                    _found(place, keywords.matches.get(place.id), level(place, cosines.get(place.id)))
                    for place in places
                    if place.kind in kinds
                ),
                self._weights,
            )
            if not with_cut:
                ordered = rank.worth_reading(ordered, asked, cutoff)
            verdicts = rank.verdicts(
                _with_text(reader, ordered), asked, cutoff, self._settings.limits.max_snippet_chars
            )
            is_whole = keywords.matches.keys() <= {place.id for place in places}
            return use(verdicts, _Sides(keywords.matches, meaning.near)), is_whole

        return keywords, meaning, *await self._index.read(put_together)

    def _searched(self, keywords: _Keywords, meaning: _Meaning, hits: list[Hit]) -> Searched:
        return Searched(
            hits=tuple(hits),
            mode=self._mode(keywords, meaning),
            degraded=self._degraded(keywords, meaning),
            keyword_trouble=keywords.trouble,
        )

    async def _ask_keywords(self, asked: Query, kinds: frozenset[Kind]) -> _Keywords:
        if asked.match is None:
            return _Keywords({})
        try:
            return _Keywords(dict(await self._index.keywords(asked.match, self._candidates, kinds)))
        except StoreDamaged as damage:
            return _Keywords({}, str(damage))

    async def _ask_vectors(self, provider_asked: asyncio.Task[_Meaning], kinds: frozenset[Kind]) -> _Meaning:
        """The chunks nearest to the question; on a thread, so that keywords are looked for meanwhile."""
        meaning = await provider_asked
        rows = self._index.snapshot()
        if rows is None or meaning.vector is None:
            return meaning
        near = await asyncio.to_thread(matrix.nearest, rows, meaning.vector, self._candidates, kinds)
        return msgspec.structs.replace(meaning, rows=rows, near=tuple(near))

    async def _ask_provider(self, asked: Query) -> _Meaning:
        """The vector of the question, if it is there in time."""
        if self._provider is None or not self._index.has_vectors or not asked.embed_text:
            return _Meaning(None)
        try:
            async with asyncio.timeout(QUERY_TIMEOUT_S):
                return _Meaning(await self._provider.embed_query(asked.embed_text))
        except TimeoutError:
            return _Meaning(
                None, Degraded("query_embedding", f"the question had no vector after {QUERY_TIMEOUT_S:g} s")
            )
        except EmbedUnavailable as failure:
            return _Meaning(None, Degraded("query_embedding", str(failure)))

    def _mode(self, keywords: _Keywords, meaning: _Meaning) -> str:
        if meaning.vector is None:
            return "keyword"
        by_keywords = keywords.trouble is None and self._settings.query.hybrid.enabled
        return "hybrid" if by_keywords else "vector"

    def _degraded(self, keywords: _Keywords, meaning: _Meaning) -> tuple[Degraded, ...]:
        found: list[Degraded] = []
        if keywords.trouble is not None:
            found.append(Degraded("keyword", keywords.trouble))
        if self._provider is None and self._settings.provider != "none":
            found.append(Degraded("provider", self._no_provider or "there is no embedding provider"))
        elif self._provider is not None and not self._index.has_vectors:
            found.append(Degraded("vector", "no chunk has a vector yet"))
        if meaning.trouble is not None:
            found.append(meaning.trouble)
        return tuple(found)


def _found(place: Place, match: Match | None, cosine: float | None) -> Found:
    if match is None:
        return Found(place.id, place.path, place.start_line, None, cosine)
    return Found(place.id, place.path, place.start_line, match.r, cosine, match.held)


def _with_text(reader: Reader, ordered: list[Scored]) -> Iterator[tuple[Scored, StoredChunk]]:
    """Candidates with their chunks, read a few at a time and only as far as somebody asks."""
    for start in range(0, len(ordered), BATCH):
        some = ordered[start : start + BATCH]
        chunks = reader.texts([one.id for one in some])
        yield from ((one, chunks[one.id]) for one in some if one.id in chunks)


def _told(
    verdicts: Iterable[Verdict], sides: _Sides, asked: Query, max_results: int
) -> tuple[list[Hit], list[Candidate]]:
    """The hits that are returned, and what is told about every candidate."""
    keyword_rank = {chunk_id: place for place, chunk_id in enumerate(sides.keywords, 1)}
    vector_rank = {chunk_id: place for place, chunk_id in enumerate(sides.near, 1)}
    hits: list[Hit] = []
    candidates: list[Candidate] = []
    for verdict in verdicts:
        cut, hit, chunk = verdict.cut, verdict.hit, verdict.chunk
        if hit is not None and len(hits) < max_results:
            hits.append(hit)
        elif hit is not None:
            cut = "max_results"
        shown = chunk.text if hit is None else hit.snippet
        candidates.append(
            Candidate(
                path=chunk.path,
                start_line=chunk.start_line,
                end_line=chunk.end_line,
                score=verdict.scored.score,
                cosine=verdict.scored.cosine,
                calibrated=verdict.calibrated,
                keyword=None if (match := sides.keywords.get(chunk.id)) is None else match.r,
                keyword_rank=keyword_rank.get(chunk.id),
                vector_rank=vector_rank.get(chunk.id),
                terms=tuple(asked.terms[number] for number in sorted(held([shown], asked.terms))),
                window=None if hit is None else (hit.start_line, hit.end_line),
                cut=cut,
            )
        )
    return hits, candidates
