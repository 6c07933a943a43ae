"""Puts the candidates of a question in order: fuses the evidence of keywords and vectors, and looks closer at the best."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

import msgspec
import numpy as np

from memd.config.settings import WORTH_READING, AgentSettings
from memd.domain_types import ChunkId, Kind
from memd.errors import TransientError
from memd.providers.provider import Calibration
from memd.runtime.profiling import timed_part
from memd.runtime.time_zones import zone_of
from memd.search.answer_strength import strength
from memd.search.find_candidates import (
    HybridResults,
    KeywordResults,
    NoVectorResults,
    VectorResults,
    candidates_per_side,
    joined_candidates,
)
from memd.search.fuse_scores import Candidates, Fused, FusionWeights, Ints, Scored, fuse, place_in_order
from memd.search.later_first import POOL, Dated, later_first
from memd.search.make_hits import AnswerEvidence, IndexQuestion, Lane, Ranked, last_s, reranked, supported
from memd.search.protocols import ChunkReader
from memd.search.query import Query
from memd.search.query_expansion import Expansion
from memd.search.superseded import stated_replacements
from memd.search.trace import SideResults
from memd.store import vector_matrix
from memd.store.chunk_parts import ClosestPart
from memd.store.errors import StoreClosed, StoreDamaged
from memd.text.writing_systems import scripts

BATCH = 16  # candidates whose text is read in one query
# The best candidates, whose parts and scripts are read: 10 µs each, mostly for reading.
EXAMINED = 100
STRONGEST = 30  # the first candidates by fusion, among which the strongest is looked for


def weights_of(settings: AgentSettings) -> FusionWeights:
    """Return the weights of meaning and words."""
    hybrid = settings.query.hybrid
    return FusionWeights(hybrid.vector_weight, hybrid.text_weight)


def order_candidates(
    reader: ChunkReader,
    hybrid: HybridResults,
    places: Mapping[ChunkId, int],
    settings: AgentSettings,
    *,
    has_parts: bool,
) -> Ranked:
    """Fuse and order the candidates.

    Args:
        reader: The index.
        hybrid: The results of both sides.
        places: The places that a reranker gave to chunks: these come first.
        settings: The settings of the agent.
        has_parts: Whether parts of chunks have vectors too.
    """
    asked, vectors = hybrid.asked, hybrid.vectors
    found, is_whole = joined_candidates(reader, hybrid)
    parts: Mapping[ChunkId, ClosestPart] = {}
    if isinstance(vectors, VectorResults):
        first = _fused(found, hybrid, settings).order(reader.places, EXAMINED, sets=(STRONGEST, EXAMINED))
        if has_parts:
            parts = reader.closest_parts(found.ids[first].tolist(), vectors.question.vector)
        found = _with_parts_and_scripts(reader, found, first, asked.query, parts)
        if hybrid.expanded is not None:
            # The shares of those without a vector are known, if these were looked for.
            unknown = first if hybrid.synonyms is None else first[~np.isnan(found.cosine[first])]
            found = _with_expanded_shares(reader, found, unknown, hybrid.expanded)
    elif hybrid.synonyms is not None:
        first = _fused(found, hybrid, settings).order(reader.places, EXAMINED, sets=(EXAMINED,))
        found = _with_parts_and_scripts(reader, found, first, asked.query, parts)
    strengths = strength(found, hybrid.calibration or Calibration())
    if isinstance(vectors, VectorResults):
        strengths = strengths[first[:STRONGEST]]
    strongest = float(strengths.max(initial=0.0))
    evidence = AnswerEvidence(strongest, _held(hybrid.keywords, settings), bool(found.within.any()))
    fused = _fused(found, hybrid, settings)
    # Independent of min_score up to WORTH_READING, so that a higher min_score only drops hits.
    least = min(asked.min_score, WORTH_READING) if asked.is_cut else 0.0
    order = fused.order(reader.places, least=least)
    min_score = asked.min_score
    if asked.by_time:
        newest, min_score = _newest_first(reader, fused.scored(order, reader.places), asked, settings)
        lanes = [_with_text(reader, newest)]
    else:
        lanes = [
            reranked(_with_text(reader, _lane(reader, fused, rows, asked.query, vectors, parts)), places)
            for rows in _by_source(fused, order)
        ]
    results = SideResults(
        hybrid.keywords.matches,
        hybrid.near,
        fused,
        order,
        hybrid.subtracted,
        supported(asked, evidence),
        hybrid.expanded,
        0 if hybrid.synonyms is None else len(hybrid.synonyms.proposed),
    )
    return Ranked(asked, lanes, min_score, results, evidence, is_whole)


def _fused(found: Candidates, hybrid: HybridResults, settings: AgentSettings) -> Fused:
    return fuse(
        found,
        weights_of(settings),
        hybrid.calibration or Calibration(),
        hybrid.subtracted,
        asks_of_time_alone=hybrid.asked.query.asks_of_time_alone,
    )


def _with_parts_and_scripts(
    reader: ChunkReader,
    found: Candidates,
    first: Ints,
    asked: Query,
    parts: Mapping[ChunkId, ClosestPart],
) -> Candidates:
    """Return the candidates with the closest parts and the scripts of the rows `first`."""
    foreign_of = found.foreign.copy()
    foreign_of[first] = reader.foreign(found.ids[first], scripts(asked.text))
    if not parts:
        return msgspec.structs.replace(found, foreign=foreign_of)
    ids: list[ChunkId] = found.ids[first].tolist()
    part_of = found.part.copy()
    part_of[first] = [parts[one].cosine if one in parts else np.nan for one in ids]
    closest = {row: parts[one].span for row, one in zip(first.tolist(), ids, strict=True) if one in parts}
    return msgspec.structs.replace(found, part=part_of, foreign=foreign_of, closest=closest)


def _with_expanded_shares(
    reader: ChunkReader, found: Candidates, first: Ints, expanded: Expansion
) -> Candidates:
    """Return the candidates with the shares of the expanded question that the rows `first` hold."""
    of_all, of_alternatives = found.expanded.copy(), found.alternatives.copy()
    try:
        with timed_part("synonyms"), reader.isolating_failures():
            held = reader.keywords.holding(expanded.terms, found.ids[first])
    except StoreClosed:
        raise  # the search is repeated with the index that replaced this one
    except (StoreDamaged, TransientError):
        return found  # without keywords, as the search for them has reported
    of_all[first], of_alternatives[first] = expanded.shares(held)
    return msgspec.structs.replace(found, expanded=of_all, alternatives=of_alternatives)


def _held(keywords: KeywordResults, settings: AgentSettings) -> frozenset[int] | None:
    """Return the terms that any visible text holds; None: keywords take no part."""
    if keywords.reason is not None or not settings.query.hybrid.enabled:
        return None
    return frozenset(b"".join([match.held for match in keywords.matches.values()]))


def _newest_first(
    reader: ChunkReader, ordered: list[Scored], asked: IndexQuestion, settings: AgentSettings
) -> tuple[list[Scored], float]:
    """Return the candidates by time, newest first, and the least score of a hit.

    If no candidate has min_score, the question asks for nothing but recency: the newest chunks of all are added.
    """
    least, scored = asked.min_score, {one.id: one for one in ordered}
    if all(one.score < least for one in ordered):
        least = 0.0
        newest_ids = reader.newest(candidates_per_side(settings), asked.wanted, asked.kinds)
        places = reader.places(newest_ids)
        newest = [Scored(one, places[one].path, places[one].start_line, 0.0, 0.0, 0.0) for one in newest_ids]
        scored = {one.id: one for one in newest} | scored
    places, zone = reader.places(list(scored)), zone_of(settings.timezone)
    return sorted(
        scored.values(), key=lambda one: (-last_s(places[one.id], zone), place_in_order(one))
    ), least


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
    vectors: VectorResults | NoVectorResults,
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
    vectors: VectorResults | NoVectorResults,
    parts: Mapping[ChunkId, ClosestPart],
    stated: Collection[tuple[ChunkId, ChunkId]],
) -> list[Scored]:
    asks_now = asked.tense == "present"
    if isinstance(vectors, NoVectorResults):
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
