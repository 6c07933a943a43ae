from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.embed.provider import Calibration
from memd.model import ChunkId, Kind
from memd.search.fuse import Scored
from memd.search.query import Query, parse
from memd.search.rank import IN_A_ROW, Cutoff, hits, verdicts, worth_reading
from memd.search.terms import held
from memd.store.chunks import StoredChunk

OPEN = Cutoff(0.0, Calibration())
DEFAULT = Cutoff(0.35, Calibration(0.7, 0.9))


def found(
    text: str,
    *,
    path: str = "a.md",
    line: int = 1,
    cosine: float | None = 0.8,
    keyword: float = 0.5,
    context: str = "",
    kind: Kind = Kind.NOTE,
) -> tuple[Scored, StoredChunk]:
    """A candidate with its chunk; its score is its cosine, which the order of a test does not depend on."""
    last = line + text.count("\n")
    return (
        Scored(ChunkId(line), path, line, cosine or 0.0, keyword, cosine),
        StoredChunk(ChunkId(line), path, kind, line, last, text, context),
    )


def texts(
    candidates: Sequence[tuple[Scored, StoredChunk]], question: str = "cat", cutoff: Cutoff = OPEN
) -> list[str]:
    asked = parse(question)
    told = [(msgspec.structs.replace(one, held=_held(chunk, asked)), chunk) for one, chunk in candidates]
    return [hit.snippet for hit in hits([told], asked, cutoff, 700)]


def _held(chunk: StoredChunk, asked: Query) -> bytes:
    """What the keyword index tells of a chunk."""
    return bytes(sorted(held((chunk.text, chunk.context), asked.terms)))


def test_a_hit_tells_where_it_stands() -> None:
    """Path, the lines of the window, score, text and source."""
    (hit,) = hits([[found("\nthe cat\nsleeps\n", line=4)]], parse("cat"), OPEN, 700)
    assert (hit.path, hit.start_line, hit.end_line, hit.score, hit.snippet, hit.source) == (
        "a.md", 5, 6, 0.8, "the cat\nsleeps", "memory",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("question", "text", "context", "cosine", "keyword", "kept"),
    [
        ("cat food brand", "nothing of it", "", 0.78, 0.0, True),  # 0.4 calibrated
        ("cat food brand", "nothing of it", "", 0.76, 0.0, False),  # 0.3 calibrated
        ("cat food brand", "the cat eats food", "", 0.60, 0.5, True),
        ("cat food brand", "a cat", "Food", 0.60, 0.5, True),
        ("cat food brand", "a cat", "", 0.60, 0.5, False),
        ("cat food", "a cat", "", 0.60, 0.5, True),
        ("cat", "the cats", "", 0.60, 0.1, True),
        ("cat", "the cats", "", -0.5, 0.1, True),
        ("cat food brand", "a cat", "", None, 0.5, True),  # its vector is not there yet
        ("which day did we close the old ticket PROJ-1234 again", "see PROJ-1234", "", 0.60, 0.5, True),
        ("数据库迁移计划", "数据库迁移", "", 0.60, 0.5, True),
        ("数据库迁移计划", "数据线", "", 0.60, 0.5, False),
        ("小满对哪种食物过敏？", "小满对花生过敏", "", 0.60, 0.5, True),
        ("小满不能吃什么？", "他说了什么", "", 0.60, 0.5, False),  # what asks is no evidence
        ("向量数据库", "向量", "", 0.60, 0.5, False),  # two of five characters
        ("deploy 命令是什么", "the deploy", "", 0.60, 0.5, True),  # a word counts as much as two characters
    ],
)
def test_min_score_cuts_what_keywords_do_not_support(
    question: str, text: str, context: str, cosine: float | None, keyword: float, kept: bool
) -> None:
    """A hit is near by its calibrated cosine, or holds half of the words or a name, or nothing is known of its cosine."""
    one = found(text, cosine=cosine, keyword=keyword, context=context)
    assert bool(texts([one], question, DEFAULT)) is kept


@given(
    st.floats(-1, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(["the cat", "猫在吃东西", "", "a cat, 猫"]),
    st.sampled_from(["cat food brand", "猫吃东西", "dog"]),
)
def test_what_is_not_worth_reading_is_cut(
    cosine: float, keyword: float, min_score: float, text: str, question: str
) -> None:
    """What is given up before its text is read would not be a hit."""
    cutoff = Cutoff(min_score, Calibration(0.7, 0.9))
    asked = parse(question)
    one, chunk = found(text, cosine=cosine, keyword=keyword)
    one = msgspec.structs.replace(one, held=_held(chunk, asked))
    if not worth_reading([one], asked, cutoff):
        assert [verdict.cut for verdict in verdicts([[(one, chunk)]], asked, cutoff, 700)] == ["min_score"]


def test_a_min_score_of_0_cuts_nothing() -> None:
    """Everything that was found may be read."""
    assert texts([found("far away", cosine=-1.0, keyword=0.0)]) == ["far away"]


def test_lines_that_were_shown_are_not_shown_again() -> None:
    """A chunk that overlaps an earlier hit gives its other lines, with their numbers."""
    first = found("one\ntwo\nthree", line=1)
    second = found("three\nfour\nfive", line=3)
    before = found("zero\none", line=0)
    assert [
        (hit.start_line, hit.end_line, hit.snippet)
        for hit in hits([[first, second, before]], parse("x"), OPEN, 700)
    ] == [
        (1, 3, "one\ntwo\nthree"),
        (4, 5, "four\nfive"),
        (0, 0, "zero"),
    ]


def test_a_chunk_whose_lines_were_all_shown_is_left_out() -> None:
    """It would tell nothing new; the same lines of another file would."""
    whole = found("one\ntwo\nthree", line=1)
    part = found("two\n\n", line=2)
    other = found("two", line=2, path="b.md")
    cuts = [verdict.cut for verdict in verdicts([[whole, part, other]], parse("x"), OPEN, 700)]
    assert cuts == [None, "overlap", None]


def test_between_two_runs_of_new_lines_the_one_that_answers_is_shown() -> None:
    """A chunk around an earlier hit shows its better side."""
    shown = found("middle", line=3)
    around = found("long text before it\nmore of it\nmiddle\nthe cat", line=1)
    assert texts([shown, around]) == ["middle", "the cat"]


def test_parts_of_one_long_line_are_told_apart() -> None:
    """Two chunks of the same line are both shown, a part inside a shown one is not."""
    one, two, inside = found("first part", line=3), found("second part", line=3), found("part", line=3)
    assert texts([one, two, inside]) == ["first part", "second part"]


def test_the_same_text_is_shown_once() -> None:
    """A copy in another file is left out, whatever its spacing."""
    one, copy = found("the  cat\nsleeps"), found("the cat\nsleeps", path="b.md")
    verdict = list(verdicts([[one, copy]], parse("cat"), OPEN, 700))[1]
    assert (verdict.hit, verdict.cut) == (None, "duplicate")


def test_a_verdict_tells_why() -> None:
    """The calibrated cosine that min_score was compared with, and the reason."""
    far, unknown = found("far", cosine=0.75, keyword=0.0), found("new cat", line=9, cosine=None)
    verdict, fresh = verdicts([[far, unknown]], parse("cat"), DEFAULT, 700)
    assert verdict.calibrated == pytest.approx(0.25)
    assert (verdict.hit, verdict.cut) == (None, "min_score")
    assert fresh.calibrated is None
    assert fresh.cut is None


def test_candidates_are_read_as_far_as_hits_are_taken() -> None:
    """Nobody fetches what nobody reads."""
    read = []

    def candidates() -> Iterator[tuple[Scored, StoredChunk]]:
        for n in range(100):
            read.append(n)
            yield found(f"text {n}", line=n)

    assert len(list(islice(hits([candidates()], parse("text"), OPEN, 700), 3))) == 3
    assert len(read) == 3


def test_a_copy_of_what_is_shown_goes_on_with_what_is_new() -> None:
    """The lines that a copy shares with a hit are not shown of it either."""
    first, second = found("one\ntwo"), found("two\nthree", line=2)
    copies = [
        found("one\ntwo", path="b.md"),
        found("two\nthree", path="b.md", line=2),
        found("three\nfour", path="b.md", line=3),
    ]
    made = verdicts([[first, copies[0], second, *copies[1:]]], parse("x"), OPEN, 700)
    assert [(one.cut, one.window.text if one.window else None) for one in made] == [
        (None, "one\ntwo"),
        ("duplicate", "one\ntwo"),
        (None, "three"),
        ("duplicate", "three"),
        (None, "four"),
    ]


def lanes(*marks: str) -> list[list[tuple[Scored, StoredChunk]]]:
    """Candidates of notes (n) and sessions (s), the best first; N and S are far from the question."""
    made: dict[str, list[tuple[Scored, StoredChunk]]] = {}
    for place, mark in enumerate("".join(marks)):
        kind = Kind.NOTE if mark in "nN" else Kind.SESSION
        one, chunk = found(f"{mark}{place}", path=mark.lower(), line=place + 1, kind=kind, keyword=0.0)
        cosine = 0.8 if mark.islower() else 0.5
        made.setdefault(mark.lower(), []).append(
            (msgspec.structs.replace(one, score=1 - place / 100, cosine=cosine), chunk)
        )
    return list(made.values())


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ("nnnnss", "n0 n1 s4 n2 n3 s5"),
        ("nnnnnnnn", "n0 n1 n2 n3 n4 n5"),
        ("ssssnss", "s0 s1 n4 s2 s3 s5"),
        ("nsnsns", "n0 s1 n2 s3 n4 s5"),
        ("nnnnSSs", "n0 n1 s6 n2 n3"),  # what is far is no hit, and what comes after it is
        ("nnnSS", "n0 n1 n2"),
        ("ssnnnn", "s0 s1 n2 n3 n4 n5"),
    ],
)
def test_no_source_crowds_out_the_other(candidates: str, expected: str) -> None:
    """After two hits of one the next is of the other, while that has any; one source alone is as ever."""
    found = hits(lanes(candidates), parse("cat"), DEFAULT, 700)
    assert " ".join(hit.snippet for hit in islice(found, 6)) == expected


def test_a_verdict_tells_what_came_before_its_turn() -> None:
    """A hit with better ones behind it owes its place to its source."""
    made = list(verdicts(lanes("nnnns"), parse("cat"), DEFAULT, 700))
    assert [one.hit.snippet for one in made if one.hit and one.owed] == ["s4"]


CANDIDATES = st.lists(
    st.builds(
        lambda text, path, line, cosine, keyword: found(
            text,
            path=path,
            line=line,
            cosine=cosine,
            keyword=keyword,
            kind=Kind.SESSION if path.startswith("sessions/") else Kind.NOTE,
        ),
        st.lists(
            st.sampled_from(["a cat", "the dog", "数据库", "", "long " * 30]), min_size=1, max_size=5
        ).map("\n".join),
        st.sampled_from(["a.md", "b.md", "sessions/a/1.jsonl", "sessions/a/2.jsonl"]),
        st.integers(1, 8),
        st.none() | st.floats(0, 1),
        st.floats(0, 0.9),
    ),
    max_size=12,
)


@given(
    CANDIDATES, st.integers(0, 12), st.sampled_from(["cat", "dog 数据库", "nothing of this"]), st.floats(0, 1)
)
def test_asking_for_more_only_appends(
    candidates: list[tuple[Scored, StoredChunk]], count: int, question: str, min_score: float
) -> None:
    """The first hits of a longer list are the hits of a shorter one; none repeats a line or is blank or too long."""
    asked, cutoff = parse(question), Cutoff(min_score, Calibration(0.5, 1.0))
    by_source = [[one for one in candidates if one[1].kind is kind] for kind in (Kind.SESSION, Kind.NOTE)]
    everything = list(hits(by_source, asked, cutoff, 60))
    assert (
        list(islice(hits([iter(some) for some in by_source], asked, cutoff, 60), count)) == everything[:count]
    )
    shown = set()
    for hit in everything:
        assert hit.snippet.strip()
        assert len(hit.snippet) <= 60
        for number, line in enumerate(hit.snippet.split("\n"), hit.start_line):
            assert (hit.path, number, line) not in shown
            shown.add((hit.path, number, line))
    # Three of one source in a row are its rest: the other has nothing more.
    sources = [hit.source for hit in everything]
    for at in range(len(sources) - IN_A_ROW):
        if len(set(sources[at : at + IN_A_ROW + 1])) == 1:
            assert len(set(sources[at:])) == 1
