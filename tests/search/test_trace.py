import math
from collections.abc import Sequence
from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import Candidate, ChunkId, FoundHit, Kind, Trace
from memd.providers.provider import Calibration
from memd.search.fuse_scores import PART, FusionWeights
from memd.search.query import Query, parse
from memd.search.rank import verdicts
from memd.search.terms import held
from memd.search.trace import EXPLAINED, SideResults, TracedSearch, traced
from memd.store.chunks import StoredChunk
from memd.store.keywords import Match
from tests.search.rows import Row, ordered

CALIBRATION = Calibration(0.7, 0.9)
USUAL = 0.02


class Chunk(msgspec.Struct, frozen=True):
    """A chunk, and what the two sides say of it."""

    text: str
    path: str = "a.md"
    line: int = 1
    r: float | None = None
    cosine: float | None = 0.85
    part: float | None = None
    foreign: float = 0.0
    closest: tuple[int, int] | None = None
    within: float = 0.0
    expanded: float = 0.0
    alternatives: float = 0.0


def share_of(text: str, query: Query) -> float:
    """Of the terms, the share that a text holds."""
    return len(held([text], query.terms)) / len(query.terms)


def explained(
    chunks: Sequence[Chunk],
    question: str = "black cat",
    *,
    weights: FusionWeights | None = None,
    min_score: float = 0.35,
    max_results: int = 6,
    max_chars: int = 700,
) -> tuple[list[FoundHit], Trace]:
    """What is told of a search that these chunks are the candidates of."""
    query, weights = parse(question), weights or FusionWeights()
    stored = {
        ChunkId(number): StoredChunk(
            ChunkId(number), one.path, Kind.NOTE, one.line, one.line + one.text.count("\n"), one.text, ""
        )
        for number, one in enumerate(chunks, 1)
    }
    shares = {number: share_of(one.text, query) for number, one in stored.items()}
    each = list(zip(stored, chunks, strict=True))
    matches = {number: Match(one.r, b"", shares[number]) for number, one in each if one.r is not None}
    found = [
        Row(
            number,
            one.path,
            one.line,
            one.r,
            one.cosine,
            shares[number] if number in matches else 0.0,
            one.part,
            one.foreign,
            one.closest,
            one.within,
            one.expanded,
            one.alternatives,
        )
        for number, one in each
    ]
    of_both = ordered(found, weights, CALIBRATION, USUAL)
    lane = [(one, stored[one.id]) for one in of_both.scored()]
    cosines = {number: one.cosine for number, one in each if one.cosine is not None}
    sides = SideResults(
        dict(sorted(matches.items(), key=lambda item: -item[1].r)),
        sorted(cosines, key=lambda number: -cosines[number]),
        of_both.fused,
        of_both.fused.order(lambda _: of_both.places),
        USUAL,
    )
    asked = TracedSearch(question, query, weights, CALIBRATION, min_score, max_results)
    return traced(verdicts([lane], query, min_score, max_chars), sides, asked)


def recomputed(one: Candidate, trace: Trace) -> float:
    """The score of a candidate, as the page of the protocol computes it from what is told."""
    close = trace.assumed_cosine if one.cosine is None else one.cosine
    if one.cosine is not None and one.part is not None:
        close = (1 - PART) * one.cosine + PART * one.part
    low, high = trace.calibration or (0.0, 1.0)
    meaning = (
        0.0
        if close is None
        else trace.vector_share * max(0.0, (close - trace.background - low) / (high - low))
    )
    assert one.of_time == (one.within > 0) == (one.time_factor > 1)
    assert one.meaning == pytest.approx(one.time_factor * meaning, abs=1e-12)
    towards = min(1.0, one.taken + trace.translations_weight * one.expanded)
    share = one.share + (1 - one.foreign) * trace.synonyms_weight * one.alternatives
    share += one.foreign * max(0.0, towards - one.share)
    assert one.by_words == pytest.approx(
        one.time_factor * trace.text_share * trace.share_weight * share, abs=1e-12
    )
    return math.tanh(one.meaning + one.by_words)


chunks = st.lists(
    st.builds(
        Chunk,
        text=st.sampled_from(["a black cat", "a white cat", "nothing of it", "black\n\ncat and dog"]),
        path=st.sampled_from(["a.md", "b.md"]),
        line=st.integers(1, 4),
        r=st.none() | st.floats(0, 30),
        cosine=st.none() | st.floats(-0.2, 1),
        part=st.none() | st.floats(-0.2, 1),
        foreign=st.floats(0, 1),
        within=st.sampled_from([0.0, 0.25, 1.0]),
        expanded=st.floats(0, 1),
        alternatives=st.floats(0, 1),
    ),
    max_size=150,
)


@given(chunks, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 50))
def test_every_figure_follows_from_its_parts(
    given_chunks: list[Chunk], vector: float, text: float, min_score: float, max_results: int
) -> None:
    """The score, and what min_score cut, can be recomputed from what is told."""
    weights = FusionWeights(vector, text if vector + text else 1.0)
    _, trace = explained(given_chunks, weights=weights, min_score=min_score, max_results=max_results)
    assert trace.considered == len(given_chunks)
    for one in trace.candidates:
        assert one.score == pytest.approx(recomputed(one, trace), abs=0.0006)
        assert (one.cut == "min_score") == (one.score < min_score)


@given(chunks, st.integers(1, 50))
def test_each_side_tells_its_own_place(given_chunks: list[Chunk], max_results: int) -> None:
    """From 1, in the order of that side; none where it did not find the chunk."""
    _, trace = explained(given_chunks, max_results=max_results)
    for rank, figure in (("keyword_rank", "keyword"), ("vector_rank", "cosine")):
        ranked = [one for one in trace.candidates if getattr(one, rank) is not None]
        ranked.sort(key=lambda one: getattr(one, rank))
        assert all(getattr(one, figure) is not None for one in ranked)
        if len(trace.candidates) == len(given_chunks):
            assert [getattr(one, rank) for one in ranked] == [*range(1, len(ranked) + 1)]


@given(chunks, st.floats(0, 1), st.integers(1, 50))
def test_the_hits_are_those_of_the_search(
    given_chunks: list[Chunk], min_score: float, max_results: int
) -> None:
    """However many candidates min_score cuts, explaining a search finds what the search finds."""
    hits, trace = explained(given_chunks, min_score=min_score, max_results=max_results)
    query = parse("black cat")
    stored = [
        StoredChunk(
            ChunkId(number), one.path, Kind.NOTE, one.line, one.line + one.text.count("\n"), one.text, ""
        )
        for number, one in enumerate(given_chunks, 1)
    ]
    found = ordered(
        (
            Row(
                chunk.id,
                one.path,
                one.line,
                one.r,
                one.cosine,
                0.0 if one.r is None else share_of(one.text, query),
                one.part,
                one.foreign,
                within=one.within,
                expanded=one.expanded,
                alternatives=one.alternatives,
            )
            for chunk, one in zip(stored, given_chunks, strict=True)
        ),
        FusionWeights(),
        CALIBRATION,
        USUAL,
    )
    kept = [(one, stored[one.id - 1]) for one in found.scored(min_score)]
    hit = (one.hit for one in verdicts([kept], query, min_score, 700) if one.hit is not None)
    assert hits == list(islice(hit, max_results))
    assert [(one.path, one.window) for one in trace.candidates if one.cut is None] == [
        (hit.path, (hit.start_line, hit.end_line)) for hit in hits
    ]


def test_hits_after_many_that_are_cut_are_told_of() -> None:
    """The place of each is that among all candidates."""
    copies = [Chunk("nothing of it", f"{number}.md", cosine=0.9) for number in range(EXPLAINED + 20)]
    others = [Chunk(f"black cat {number}", f"cat{number}.md", cosine=0.8) for number in range(3)]
    hits, trace = explained([*copies, *others])
    assert [hit.path for hit in hits] == ["0.md", "cat0.md", "cat1.md", "cat2.md"]
    assert [one.place for one in trace.candidates][-4:] == [EXPLAINED, 121, 122, 123]


def test_a_text_that_is_shown_already_names_where() -> None:
    """The same text in another file, and in one that is beyond max_results too."""
    texts = [("a.md", 0.9), ("b.md", 0.88), ("c.md", 0.86), ("d.md", 0.84)]
    same = [Chunk("a black  cat" if path in "a.mdc.md" else "its nap", path, cosine=c) for path, c in texts]
    _, trace = explained(same, max_results=1)
    assert [(one.cut, one.others) for one in trace.candidates] == [
        (None, ()),
        ("max_results", ()),
        ("duplicate", (1,)),
        ("duplicate", (2,)),
    ]


def test_lines_that_are_shown_already_name_where() -> None:
    """A chunk that has other lines shows those; one that has none is cut."""
    _, trace = explained(
        [
            Chunk("one\ntwo\nthree", line=1, cosine=0.9),
            Chunk("three\nfour\ncat", line=3, cosine=0.88),
            Chunk("two\nthree\nfour", line=2, cosine=0.86),
            Chunk("three\nfour\ncat", "b.md", line=3, cosine=0.84),
        ]
    )
    assert [(one.cut, one.window, one.chosen, one.others) for one in trace.candidates] == [
        (None, (1, 3), "whole", ()),
        (None, (4, 5), "rest", (1,)),
        ("overlap", None, None, (1, 2)),
        (None, (3, 5), "whole", ()),
    ]


def test_a_window_is_told_with_the_words_that_chose_it() -> None:
    """The terms with their lines; without any it is the closest part, or the beginning where none is known."""
    filling = "x" * 60
    long = f"{filling}\n{filling}\nthe black\nor white cat\n{filling}"
    _, trace = explained(
        [
            Chunk(long, line=10, r=1.0),
            Chunk(f"{filling}\n{filling}", "b.md"),
            Chunk(f"{filling}\n\n{filling} at the end", "c.md", cosine=0.84, closest=(62, 133)),
        ],
        max_chars=80,
    )
    first, second, third = trace.candidates
    assert (first.chosen, first.places) == ("terms", {"black": (12,), "cat": (13,)})
    assert first.window is not None
    assert first.window[0] <= 12
    assert first.window[1] >= 13
    assert (second.chosen, second.places, second.window) == ("beginning", {}, (1, 1))
    assert (third.chosen, third.places, third.window) == ("part", {}, (3, 3))


def test_the_reading_of_the_question_is_told() -> None:
    """Phrases, words and what is left out, in two languages."""
    _, trace = explained([Chunk("cat")], 'which 猫 did "the black cat" chase in retry.max_attempts? 为什么')
    assert trace.phrases == ("the black cat", "retry max attempts")
    assert trace.terms[2:] == ("猫", "black", "cat", "chase", "retry", "max", "attempts")
    assert set(trace.left_out) == {"为什么", "which", "did", "the", "in"}


@pytest.mark.parametrize("question", ["", "?!", "   ", "——"])
def test_a_question_without_words_is_told_of(question: str) -> None:
    """Nothing is looked for by words."""
    _, trace = explained([], question)
    assert (trace.terms, trace.left_out, trace.match, trace.candidates) == ((), (), "", ())


@pytest.mark.parametrize("time", ["", "2026-03-02 09:02 "])
def test_a_session_is_told_of_by_the_lines_of_its_transcript(time: str) -> None:
    """Where terms begin, what is shown, and what others show of it, though the time of a line is shown once an hour."""
    query, weights = parse("black cat"), FusionWeights()
    turns = f"{time}User: a black bird\n{time}User: no cat\n{time}Assistant: the end"
    rest = f"{time}Assistant: the end\n{time}User: another black cat"
    stored = [
        StoredChunk(ChunkId(1), "sessions/a/1.jsonl", Kind.SESSION, 4, 31, turns, "", (4, 11, 30)),
        StoredChunk(ChunkId(2), "sessions/a/1.jsonl", Kind.SESSION, 30, 52, rest, "", (30, 50)),
        StoredChunk(ChunkId(3), "sessions/b/2.jsonl", Kind.SESSION, 4, 31, turns, "", (4, 11, 30)),
    ]
    found = [Row(one.id, one.path, one.start_line, 1.0, 0.9 - one.id / 100, 1.0) for one in stored]
    of_both = ordered(found, weights, CALIBRATION)
    lane = [(one, stored[one.id - 1]) for one in of_both.scored()]
    asked = TracedSearch("black cat", query, weights, CALIBRATION, 0.35, 6)
    hits, trace = traced(
        verdicts([lane], query, 0.35, 700),
        SideResults({}, [], of_both.fused, of_both.fused.order(lambda _: of_both.places)),
        asked,
    )
    assert [(hit.path, hit.start_line, hit.end_line) for hit in hits] == [
        ("sessions/a/1.jsonl", 4, 31),
        ("sessions/a/1.jsonl", 50, 52),
    ]
    first, copy, second = trace.candidates
    assert (first.places, first.window, first.chosen) == ({"black": (4,), "cat": (11,)}, (4, 31), "whole")
    assert (second.places, second.chosen, second.others) == ({"black": (50,), "cat": (50,)}, "rest", (1,))
    assert (copy.cut, copy.others) == ("duplicate", (1,))
