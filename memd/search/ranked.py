"""What was found in its order, and what becomes of it: hits and their windows. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice

import msgspec

from memd.config.settings import WORTH_READING
from memd.domain_types import AFTER_ALL_NS, NO_FILTER, ChunkId, DegradedPart, FoundHit, Kind, SearchFilter
from memd.providers.provider import Calibration
from memd.runtime.timing import wall_s
from memd.search import rank
from memd.search.fuse import ANSWERS, Scored, Support, in_place_of, support
from memd.search.joined import joined
from memd.search.query import Query
from memd.search.rank import Verdict
from memd.search.trace import SideResults
from memd.store.chunks import ChunkPlace, StoredChunk
from memd.store.embedding_cache import Space

Lane = Iterator[tuple[Scored, StoredChunk]]
"""Candidates of one source with their chunks, the best first; read only as far as somebody asks."""


class IndexQuestion(msgspec.Struct, frozen=True):
    """What is asked of an index."""

    query: Query
    kinds: frozenset[Kind]  # nothing else takes part
    min_score: float = 0.0
    wanted: SearchFilter = NO_FILTER  # nor anything that it does not let through
    by_time: bool = False  # the newest hit first
    mode: str = "hybrid"  # by words and by meaning; keyword | vector: by that side alone
    is_explained: bool = False  # somebody wants to hear of what has not the least score, too
    is_together: bool = False  # what is found is ranked together with what other memories have

    @property
    def reranks(self) -> bool:
        """Whether a reranker has a say in the order."""
        return self.mode == "hybrid" and not self.by_time and bool(self.query.embed_text)

    @property
    def is_cut(self) -> bool:
        """Whether nobody wants to hear of what has not the least score."""
        return not self.is_explained and not self.by_time

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


class AnswerEvidence(msgspec.Struct, frozen=True):
    """What tells how likely it is that anything that was found answers."""

    strongest: float  # the strength of the strongest candidate
    held: frozenset[int] | None  # the terms that any text holds that may be seen; None: that cannot be told
    is_of_time: bool  # whether any candidate is of a time that the question names


class Ranked(msgspec.Struct, frozen=True):
    """What was found, in its order."""

    question: IndexQuestion  # as the texts of the index spell its names
    lanes: Sequence[Lane]  # of each source
    min_score: float  # of a hit
    results: SideResults
    evidence: AnswerEvidence
    is_whole: bool = True  # False: the index has changed before it was put together


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


class Proposal(msgspec.Struct, frozen=True):
    """What one of several memories has for a question."""

    text: str
    question: IndexQuestion
    found: Searched  # without hits
    ranked: Ranked
    calibration: Calibration | None  # None: no vectors took part


def last_s(place: StoredChunk | ChunkPlace, zone: tzinfo) -> int:
    """Of when a chunk is at the latest, as clocks on the wall count seconds."""
    return wall_s(place.written_ns, zone) if place.last_s is None else place.last_s


def supported(question: IndexQuestion, evidence: AnswerEvidence) -> Support:
    """How likely it is that what was found answers."""
    if question.query.is_small_talk:
        return Support(0.0)
    found = support(evidence.strongest, question.query.names, evidence.held)
    if question.query.asks_of_time_alone and evidence.is_of_time:
        return Support(max(found.strength, ANSWERS), found.missing)
    return found


def decided(ranked: Ranked, max_chars: int) -> Iterator[Verdict]:
    """The verdicts about candidates, the best first.

    Args:
        ranked: The candidates.
        max_chars: The most characters of a hit of one chunk.
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
    """The first candidates, which a reranker orders; lanes are read."""
    each = max(1, most // max(1, len(lanes)))
    return [chunk for lane in lanes for one, chunk in islice(lane, each) if one.score >= WORTH_READING]


def reranked(lane: Iterable[tuple[Scored, StoredChunk]], places: Mapping[ChunkId, int]) -> Lane:
    """Candidates of one source, the first of them in the order of a reranker: each with the score of its new place.

    Args:
        lane: In their order.
        places: Of those that it has ordered, which come first; empty where none has.
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
