"""Explains a search: how each candidate came to its place. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from memd.domain_types import Candidate, ChunkId, FoundHit, Trace, Window
from memd.providers.provider import Calibration
from memd.search import query as questions
from memd.search.answer_strength import ANSWERS, Support
from memd.search.fuse_scores import SYNONYMS, WORDS, Fused, FusionWeights, Ints
from memd.search.query import Query
from memd.search.query_expansion import Expansion
from memd.search.rank import Verdict
from memd.search.snippet import ShownPart
from memd.search.terms import occurrences
from memd.store.chunks import StoredChunk
from memd.store.keywords import Match

EXPLAINED = 100  # candidates that are explained, hits or not; after them, only hits are


class SideResults(msgspec.Struct, frozen=True):
    """The candidates of keywords and of vectors, each best first, and their fusion."""

    keywords: Mapping[ChunkId, Match]
    near: Sequence[ChunkId]
    fused: Fused  # the fused candidates
    order: Ints  # rows of `fused`, the best first
    subtracted: float = 0.0  # from each cosine, see fuse.background
    support: Support = Support(0.0)
    expanded: Expansion | None = (
        None  # the question with its synonyms and translations; None: they took no part
    )
    by_synonyms: int = 0  # candidates without a vector that synonyms and translations proposed


class TracedSearch(msgspec.Struct, frozen=True):
    """The parameters of a search."""

    text: str
    query: Query
    weights: FusionWeights
    calibration: Calibration | None  # None: no provider
    min_score: float
    max_results: int


class _Shown(msgspec.Struct, frozen=True):
    """The part of a chunk that a hit shows."""

    place: int  # the rank of the candidate, from 1
    path: str
    part: ShownPart


class _Ranks(msgspec.Struct, frozen=True):
    """The ranks of candidates, from 1."""

    all: dict[ChunkId, int]  # among all
    by_keywords: dict[ChunkId, int]
    by_vectors: dict[ChunkId, int]


def first_hits(verdicts: Iterable[Verdict], most: int) -> list[FoundHit]:
    """Return at most `most` hits, in order."""
    return list(islice((verdict.hit for verdict in verdicts if verdict.hit is not None), most))


def traced(
    verdicts: Iterable[Verdict], sides: SideResults, asked: TracedSearch
) -> tuple[list[FoundHit], Trace]:
    """Return the hits, and how each candidate came to its place.

    Args:
        verdicts: The verdicts about candidates, the best first.
        sides: The candidates of each side, and their fusion.
        asked: The parameters of the search.
    """
    ids = sides.fused.candidates.ids[sides.order].tolist()
    ranks = _Ranks(_ranked(map(ChunkId, ids)), _ranked(sides.keywords), _ranked(sides.near))
    hits: list[FoundHit] = []
    shown: list[_Shown] = []
    candidates: list[Candidate] = []
    for number, verdict in enumerate(verdicts, 1):
        cut, chunk = verdict.cut, verdict.chunk
        # Chunks listed as newest are new here.
        place = ranks.all.setdefault(chunk.id, len(ranks.all) + 1)
        if verdict.hit is not None and len(hits) < asked.max_results:
            hits.append(verdict.hit)
        elif verdict.hit is not None:
            cut = "max_results"
        if number > EXPLAINED and len(hits) == asked.max_results:
            break
        if number > EXPLAINED and cut is not None:
            continue
        before = verdict.copy_of if verdict.joined_to is None else verdict.joined_to
        others = _others(verdict, shown) if before is None else (ranks.all[before],)
        candidates.append(_candidate(verdict, cut, others, ranks, sides, asked.query))
        if verdict.part is not None and (verdict.hit is not None or others):
            # A copy shows nothing, but its lines count as shown: the text is visible in the other hit.
            shown.append(_Shown(place if verdict.hit is not None else others[0], chunk.path, verdict.part))
    return hits, _trace(sides, asked, candidates)


def _ranked(ids: Iterable[ChunkId]) -> dict[ChunkId, int]:
    return {chunk_id: rank for rank, chunk_id in enumerate(ids, 1)}


def _candidate(
    verdict: Verdict,
    cut: str | None,
    others: tuple[int, ...],
    ranks: _Ranks,
    sides: SideResults,
    query: Query,
) -> Candidate:
    """Return what is told of a candidate.

    Args:
        verdict: The verdict about it.
        cut: Why it is no hit.
        others: The ranks of earlier hits that show its text or lines.
        ranks: The ranks of all candidates.
        sides: The candidates of each side.
        query: The question.
    """
    chunk, scored = verdict.chunk, verdict.scored
    held = _places(chunk if verdict.window is None else verdict.window, query.terms)
    match = sides.keywords.get(chunk.id)
    return Candidate(
        place=ranks.all[chunk.id],
        path=chunk.path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        score=scored.score,
        cosine=scored.cosine,
        part=scored.part,
        meaning=scored.meaning,
        by_words=scored.words,
        keyword=None if match is None else match.r,
        keyword_rank=ranks.by_keywords.get(chunk.id),
        vector_rank=ranks.by_vectors.get(chunk.id),
        share=scored.share,
        expanded=scored.expanded,
        alternatives=scored.alternatives,
        taken=scored.taken,
        foreign=scored.foreign,
        of_time=scored.within > 0,
        within=scored.within,
        time_factor=scored.time_factor,
        terms=tuple(held),
        places=held,
        window=_lines(verdict.window),
        chosen=_chosen(verdict, query, has_terms=bool(held), is_shared=bool(others)),
        cut=cut,
        others=others,
        owed=verdict.owed,
        repeats=verdict.repeats,
        superseded=verdict.superseded,
        older=None if scored.older is None else ranks.all[scored.older.id],
    )


def _trace(sides: SideResults, asked: TracedSearch, candidates: Sequence[Candidate]) -> Trace:
    fused, calibration = sides.fused, asked.calibration
    return Trace(
        terms=asked.query.terms,
        phrases=asked.query.phrases,
        left_out=questions.left_out(asked.text),
        match=asked.query.match or "",
        vector_weight=asked.weights.vector,
        text_weight=asked.weights.text,
        vector_share=fused.vector_share,
        text_share=fused.text_share,
        share_weight=WORDS,
        synonyms_weight=SYNONYMS,
        translations_weight=fused.translations_weight,
        assumed_cosine=fused.assumed,
        background=sides.subtracted,
        share_taken=float(fused.taken.max(initial=0.0)),
        alternatives={} if sides.expanded is None else sides.expanded.alternatives,
        calibration=None if calibration is None else (calibration.low, calibration.high),
        min_score=asked.min_score,
        strength=round(sides.support.strength, 3),
        answers_from=ANSWERS,
        missing=tuple(asked.query.terms[n] for n in sides.support.missing),
        max_results=asked.max_results,
        by_words=len(sides.keywords),
        by_meaning=len(sides.near),
        by_synonyms=sides.by_synonyms,
        considered=len(fused.candidates),
        candidates=tuple(candidates),
    )


def _lines(window: Window | None) -> tuple[int, int] | None:
    return None if window is None else (window.start_line, window.end_line)


def _places(part: StoredChunk | Window, terms: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the terms that occur in a text, each with the file's line numbers on which it begins."""
    numbers = _numbers(part)
    lines: dict[int, dict[int, None]] = {}
    for one in occurrences(part.text, terms):
        line = numbers[part.text.count("\n", 0, one.start)]
        lines.setdefault(one.term, {})[line] = None
    return {terms[number]: tuple(lines[number]) for number in sorted(lines)}


def _numbers(part: StoredChunk | Window) -> Sequence[int]:
    """Return the file's line number of each line of a text."""
    if part.numbers is not None:
        return part.numbers
    return range(part.start_line, part.start_line + part.text.count("\n") + 1)


def _chosen(verdict: Verdict, query: Query, *, has_terms: bool, is_shared: bool) -> str | None:
    """Return why the window is this part of the chunk: "whole", "rest" (others show some of it), "terms", "part", "synonyms", "beginning"."""
    part, chunk = verdict.part, verdict.chunk
    if part is None:
        return None
    if "\n".join(part.lines).strip() == chunk.text.strip():
        return "whole"
    if is_shared:
        return "rest"
    if has_terms:
        return "terms"
    if verdict.scored.closest is not None:
        return "part"
    return "synonyms" if occurrences(part.window.text, query.synonyms) else "beginning"


def _others(verdict: Verdict, shown: Sequence[_Shown]) -> tuple[int, ...]:
    """Return the ranks of earlier hits that show the candidate's text or lines of its chunk."""
    chunk = verdict.chunk
    if verdict.cut == "min_score":
        return ()
    if verdict.cut == "duplicate" and verdict.window is not None:
        text = _plain(verdict.window.text)
        return _once(one.place for one in shown if _plain(one.part.window.text) == text)
    lines = list(zip(_numbers(chunk), chunk.text.split("\n"), strict=True))
    return _once(one.place for one in shown if one.path == chunk.path and _shows(one.part, lines))


def _once(places: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(places))


def _shows(part: ShownPart, lines: Iterable[tuple[int, str]]) -> bool:
    """Return whether one of some lines is shown or, of a long line, the same part."""
    texts: dict[int, list[str]] = {}
    for number, line in zip(_numbers(part.window), part.lines, strict=True):
        texts.setdefault(number, []).append(line)
    return any(line.strip() and any(line in text for text in texts.get(number, ())) for number, line in lines)


def _plain(text: str) -> str:
    return " ".join(text.split())
