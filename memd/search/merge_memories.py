"""Merges the candidates of several memories for one question into one order. Pure.

Each memory is searched by itself, with its own keyword statistics and its own background cosine. Evidence has the same
scale in each, so candidates are sorted by it.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

import msgspec
import numpy as np

from memd.domain_types import ChunkId
from memd.search.fuse_scores import Candidates, Fused, Scored, place_in_order
from memd.search.make_hits import AnswerEvidence, Lane, Proposal, Ranked, last_s, supported
from memd.search.trace import SideResults
from memd.store.chunks import StoredChunk

# The distance between the chunk ids of two memories; no memory has as many chunks.
_APART = 1 << 48


def merge_memories(own: Proposal, included: Mapping[str, Proposal], zone: tzinfo) -> Ranked:
    """Merge the candidates of several memories.

    Args:
        own: The candidates of the agent's own memory.
        included: The candidates of other memories by name; the name becomes the prefix of their paths.
        zone: The time zone in which an mtime is read as a date.
    """
    each = [own.ranked, *(_named(one.ranked, name, n) for n, (name, one) in enumerate(included.items(), 1))]
    by_source: dict[str, list[list[tuple[Scored, StoredChunk]]]] = {}
    for ranked in each:
        for lane in map(list, ranked.lanes):
            if lane:
                source = "" if own.question.by_time else lane[0][1].kind.source
                by_source.setdefault(source, []).append(lane)

    def place(pair: tuple[Scored, StoredChunk]) -> tuple[object, ...]:
        newest = -last_s(pair[1], zone) if own.question.by_time else 0
        return newest, place_in_order(pair[0])

    held = [one.evidence.held for one in each]
    known = [one for one in held if one is not None]
    evidence = AnswerEvidence(
        max(one.evidence.strongest for one in each),
        frozenset().union(*known) if len(known) == len(held) else None,
        is_of_time=any(one.evidence.is_of_time for one in each),
    )
    results = _joined_results([one.results for one in each])
    return Ranked(
        own.ranked.question,
        [heapq.merge(*by_source[source], key=place) for source in sorted(by_source)],
        # If one memory has no candidate of the least score, its newest chunks are no hits if another memory has some.
        max(one.min_score for one in each),
        msgspec.structs.replace(results, support=supported(own.question, evidence)),
        evidence,
    )


def _named(ranked: Ranked, name: str, number: int) -> Ranked:
    """Return candidates with ids and paths that are unique among all memories."""
    apart = number * _APART

    def scored(one: Scored) -> Scored:
        return msgspec.structs.replace(
            one,
            id=ChunkId(one.id + apart),
            path=f"{name}/{one.path}",
            older=None if one.older is None else scored(one.older),
        )

    def lane(pairs: Lane) -> Iterator[tuple[Scored, StoredChunk]]:
        for one, chunk in pairs:
            yield (
                scored(one),
                msgspec.structs.replace(
                    chunk, id=ChunkId(chunk.id + apart), path=f"{name}/{chunk.path}", memory=name
                ),
            )

    results, found = ranked.results, ranked.results.fused.candidates
    return msgspec.structs.replace(
        ranked,
        lanes=list(map(lane, ranked.lanes)),
        results=msgspec.structs.replace(
            results,
            keywords={ChunkId(one + apart): match for one, match in results.keywords.items()},
            near=[ChunkId(one + apart) for one in results.near],
            fused=msgspec.structs.replace(
                results.fused, candidates=msgspec.structs.replace(found, ids=found.ids + apart)
            ),
        ),
    )


def _joined_results(each: Sequence[SideResults]) -> SideResults:
    """Merge the candidates of all memories; values that concern a whole index are those of the first."""
    first = each[0]
    found = [one.fused.candidates for one in each]
    starts = np.cumsum([0, *map(len, found)])
    columns = {
        name: np.concatenate([getattr(one, name) for one in found])
        for name in Candidates.__struct_fields__
        if name != "closest"
    }
    closest = {
        row + start: span
        for start, one in zip(starts.tolist(), found, strict=False)
        for row, span in one.closest.items()
    }
    fused: Fused = msgspec.structs.replace(
        first.fused,
        candidates=Candidates(**columns, closest=closest),
        meaning=np.concatenate([one.fused.meaning for one in each]),
        words=np.concatenate([one.fused.words for one in each]),
    )
    order = np.concatenate([one.order + start for one, start in zip(each, starts.tolist(), strict=False)])
    order = order[np.argsort(-(fused.meaning + fused.words)[order], kind="stable")]
    cosines = dict(zip(fused.candidates.ids.tolist(), fused.candidates.cosine.tolist(), strict=True))
    matches = [pair for one in each for pair in one.keywords.items()]
    near = [chunk_id for one in each for chunk_id in one.near]
    return SideResults(
        dict(sorted(matches, key=lambda pair: -pair[1].r)),
        sorted(near, key=lambda one: -cosines.get(one, 0.0)),
        fused,
        order,
        first.subtracted,
        expanded=next((one.expanded for one in each if one.expanded is not None), None),
        by_synonyms=sum(one.by_synonyms for one in each),
    )
