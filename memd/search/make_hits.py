"""Turns ranked candidates into hits with their windows. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice

import msgspec

from memd.config.settings import WORTH_READING
from memd.domain_types import AFTER_ALL_NS, NO_FILTER, ChunkId, DegradedPart, FoundHit, Kind, SearchFilter
from memd.providers.provider import Calibration
from memd.runtime.time_zones import wall_s
from memd.search import rank
from memd.search.adjacent_hits import joined
from memd.search.answer_strength import ANSWERS, Support, support
from memd.search.fuse_scores import Scored, in_place_of
from memd.search.query import Query
from memd.search.rank import Verdict
from memd.search.trace import SideResults
from memd.store.chunks import ChunkPlace, StoredChunk
from memd.store.embedding_cache import Space

Lane = Iterator[tuple[Scored, StoredChunk]]
"""Candidates of one source with their chunks, the best first; read only as far as somebody asks."""


class IndexQuestion(msgspec.Struct, frozen=True):
    """The parameters of a search in one index."""

    query: Query
    kinds: frozenset[Kind]  # only these take part
    min_score: float = 0.0
    wanted: SearchFilter = NO_FILTER  # only what it lets through takes part
    by_time: bool = False  # sort hits by time, the newest first
    mode: str = "hybrid"  # hybrid | keyword | vector
    is_explained: bool = False  # candidates below min_score are wanted, too
    is_together: bool = False  # the candidates are ranked together with those of other memories

    @property
    def reranks(self) -> bool:
        """Whether a reranker may change the order."""
        return self.mode == "hybrid" and not self.by_time and bool(self.query.embed_text)

    @property
    def is_cut(self) -> bool:
        """Whether candidates below min_score can be dropped early."""
        return not self.is_explained and not self.by_time

    @property
    def among(self) -> tuple[SearchFilter, ...]:
        """The filter, and for each time named in the question the filter limited to it: the best of each are looked up."""
        of_times = (_within(self.wanted, *time.as_seconds) for time in self.query.times)
        return (self.wanted, *of_times)


def _within(wanted: SearchFilter, first_s: int, last_s: int) -> SearchFilter:
    """Limit a filter to a time; the mtime of a file is ignored, since it does not date the content."""
    since_s, until_s = wanted.since_s, wanted.until_s
    return msgspec.structs.replace(
        wanted,
        since_s=first_s if since_s is None else max(since_s, first_s),
        until_s=last_s if until_s is None else min(until_s, last_s),
        since_ns=AFTER_ALL_NS,
        until_ns=AFTER_ALL_NS,
    )


class AnswerEvidence(msgspec.Struct, frozen=True):
    """What the estimate of whether any candidate answers is based on."""

    strongest: float  # the strength of the strongest candidate
    held: frozenset[int] | None  # the terms that any visible text holds; None: unknown
    is_of_time: bool  # whether any candidate dates from a time named in the question


class Ranked(msgspec.Struct, frozen=True):
    """Candidates in order, not yet cut down to hits."""

    question: IndexQuestion  # with the spelling of names that the index has
    lanes: Sequence[Lane]  # one per source
    min_score: float  # the least score of a hit
    results: SideResults
    evidence: AnswerEvidence
    is_whole: bool = True  # False: the index changed during the search


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The hits of a question, and which providers and sides took part."""

    hits: tuple[FoundHit, ...]
    mode: str  # hybrid | keyword | vector: the sides that took part
    degraded: tuple[DegradedPart, ...]
    keyword_damage: str | None  # why the keyword index is damaged; None: it is not
    vector_damage: str | None  # why the vectors on disk are damaged; None: they are not
    provider: str  # of the vectors that took part or, without any, the configured one
    model: str
    space: Space | None  # of the vectors that took part; None: none did


class Proposal(msgspec.Struct, frozen=True):
    """The candidates of one memory, to be merged with those of others."""

    text: str
    question: IndexQuestion
    found: Searched  # without hits
    ranked: Ranked
    calibration: Calibration | None  # None: no vectors took part


def last_s(place: StoredChunk | ChunkPlace, zone: tzinfo) -> int:
    """Return the latest second (local wall-clock time) that a chunk's content dates from, or else its file's mtime."""
    return wall_s(place.written_ns, zone) if place.last_s is None else place.last_s


def supported(question: IndexQuestion, evidence: AnswerEvidence) -> Support:
    """Return how likely the candidates answer the question."""
    if question.query.is_small_talk:
        return Support(0.0)
    found = support(evidence.strongest, question.query.names, evidence.held)
    if question.query.asks_of_time_alone and evidence.is_of_time:
        return Support(max(found.strength, ANSWERS), found.missing)
    return found


def decided(ranked: Ranked, max_chars: int) -> Iterator[Verdict]:
    """Yield a verdict about each candidate, the best first.

    Args:
        ranked: The candidates.
        max_chars: The most characters of a hit that shows one chunk.
    """
    question = ranked.question
    verdicts = rank.verdicts(
        ranked.lanes,
        question.query,
        ranked.min_score,
        max_chars,
        weak=ranked.results.support.is_weak,
        least=question.min_score if question.is_cut else 0.0,
        latest=question.query.tense != "past" and not question.by_time,
    )
    return joined(verdicts, max_chars)


def worth_reranking(lanes: Sequence[Lane], most: int) -> list[StoredChunk]:
    """Return the first candidates worth reading, at most `most`, evenly from all lanes; consumes the lanes."""
    each = max(1, most // max(1, len(lanes)))
    return [chunk for lane in lanes for one, chunk in islice(lane, each) if one.score >= WORTH_READING]


def reranked(lane: Iterable[tuple[Scored, StoredChunk]], places: Mapping[ChunkId, int]) -> Lane:
    """Yield the candidates of one source, the first ones in a reranker's order, with the scores of their new places.

    Args:
        lane: The candidates in order.
        places: The reranked place of each chunk, a prefix of the lane; empty: the order stays.
    """
    rest = iter(lane)
    head: list[tuple[Scored, StoredChunk]] = []
    after: list[tuple[Scored, StoredChunk]] = []
    for pair in rest if places else ():
        (head if pair[0].id in places else after).append(pair)
        if after:
            break
    for (at, _), (one, chunk) in zip(head, sorted(head, key=lambda pair: places[pair[0].id]), strict=True):
        yield (one if one is at else in_place_of(one, at)), chunk
    yield from after
    yield from rest
