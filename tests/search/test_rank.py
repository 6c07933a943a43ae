from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import ChunkId, FoundHit, Kind
from memd.search.fuse_scores import Scored
from memd.search.query import Query, parse
from memd.search.question_echoes import QuestionEchoes
from memd.search.rank import AHEAD, IN_A_ROW, MAX_TOLD, Found, verdicts
from memd.store.chunks import StoredChunk
from memd.text.turn_header import CONTINUED, brief
from tests.bounds import shipped

OPEN = 0.0
DEFAULT = 0.35


def found(
    text: str,
    *,
    path: str = "a.md",
    line: int = 1,
    score: float = 0.8,
    kind: Kind = Kind.NOTE,
) -> tuple[Scored, StoredChunk]:
    """A candidate with its chunk."""
    last = line + text.count("\n")
    return (
        Scored(ChunkId(line), path, line, score, score, 0.0, 0.0, None, None, 0.0),
        StoredChunk(
            ChunkId(line),
            path,
            kind,
            line,
            last,
            text,
            "",
            tuple(range(line, last + 1)) if kind.is_session else None,
        ),
    )


def hits(lanes: Sequence[Found], query: Query, min_score: float, max_chars: int) -> Iterator[FoundHit]:
    """Yield the hits as they are decided about."""
    return (one.hit for one in verdicts(lanes, query, min_score, max_chars) if one.hit is not None)


def texts(
    candidates: Sequence[tuple[Scored, StoredChunk]], question: str = "cat", min_score: float = OPEN
) -> list[str]:
    return [hit.snippet for hit in hits([candidates], parse(question), min_score, 700)]


def test_a_hit_tells_where_it_stands() -> None:
    """Path, the lines of the window, score, text and source."""
    (hit,) = hits([[found("\nthe cat\nsleeps\n", line=4)]], parse("cat"), OPEN, 700)
    assert (hit.path, hit.start_line, hit.end_line, hit.score, hit.snippet, hit.source) == (
        "a.md", 5, 6, 0.8, "the cat\nsleeps", "memory",
    )  # fmt: skip


@pytest.mark.parametrize(("score", "kept"), [(0.35, True), (0.349, False), (1.0, True), (0.0, False)])
def test_min_score_cuts_what_scores_less(score: float, kept: bool) -> None:
    """The number that is printed is the number that is compared, whichever side it comes from."""
    one = found("the cat", score=score)
    assert bool(texts([one], min_score=DEFAULT)) is kept


def test_a_min_score_of_0_cuts_nothing() -> None:
    """Everything that was found may be read."""
    assert texts([found("far away", score=0.0)]) == ["far away"]


ASKED = "2026-11-20 10:01 User: which cat?"
TOLD = "2026-11-20 10:02 Assistant: the black cat"
LATER = "2026-11-21 10:01 User: which cat?"


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ([ASKED, TOLD], [ASKED, TOLD, LATER], 2),
        ([ASKED, TOLD, LATER], [ASKED, TOLD], 1),
        ([ASKED, TOLD], [TOLD], 1),
        ([ASKED], [LATER], 2),
        ([ASKED, TOLD], [ASKED, LATER], 2),
    ],
    ids=["it goes on", "it goes on and is better", "a part of it", "asked again", "another answer"],
)
def test_a_turn_of_several_sessions_is_shown_once(one: list[str], other: list[str], shown: int) -> None:
    """A session that was forked begins with the turns of another: the same was said by the same at the same time."""
    first = found("\n".join(one), path="sessions/x/1.jsonl", kind=Kind.SESSION)
    second = found("\n".join(other), path="sessions/x/2.jsonl", score=0.7, kind=Kind.SESSION)
    assert len(texts([first, second])) == shown


def test_a_turn_that_two_hits_have_shown_is_shown_no_third_time() -> None:
    """All that a fork repeats was said, though no hit before it says all of it."""
    hits_before = [
        found(turn, path="sessions/x/1.jsonl", line=number, score=0.9, kind=Kind.SESSION)
        for number, turn in ((1, ASKED), (5, TOLD))
    ]
    fork = found(f"{ASKED}\n{TOLD}", path="sessions/x/2.jsonl", kind=Kind.SESSION)
    assert texts([*hits_before, fork]) == [ASKED, TOLD]


def test_notes_may_share_lines() -> None:
    """Of notes, only one that says nothing else is left out: what stands around a line may be what matters."""
    both = [found("the cat\nis black"), found("the cat", path="b.md", score=0.7)]
    assert texts(both) == ["the cat\nis black", "the cat"]


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
    """What was cut, and by what."""
    verdict, fresh = verdicts([[found("far", score=0.2), found("cat", line=9)]], parse("cat"), DEFAULT, 700)
    assert (verdict.hit, verdict.cut) == (None, "min_score")
    assert fresh.cut is None


def test_candidates_are_read_as_far_as_hits_are_taken() -> None:
    """Nobody fetches what nobody reads."""
    read = []

    def candidates() -> Iterator[tuple[Scored, StoredChunk]]:
        for n in range(100):
            read.append(n)
            yield found(f"text {n}", line=n)

    assert len(list(islice(hits([candidates()], parse("text"), OPEN, 700), 3))) == 3
    assert len(read) == 3 + AHEAD  # which are compared with the hits


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
        one, chunk = found(f"{mark}{place}", path=mark.lower(), line=place + 1, kind=kind)
        score = 0.9 - place / 100 if mark.islower() else 0.3 - place / 100
        made.setdefault(mark.lower(), []).append(
            (msgspec.structs.replace(one, score=score, meaning=1 - place / 100), chunk)
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


def test_after_so_many_hits_of_a_source_it_is_the_turn_of_another() -> None:
    """However many better ones the first has."""
    in_a_row = shipped("memd.search.rank.IN_A_ROW")
    found = hits(lanes("n" * 9 + "s"), parse("cat"), DEFAULT, 700)
    assert [hit.snippet[0] for hit in found].index("s") == in_a_row


def test_a_verdict_tells_what_came_before_its_turn() -> None:
    """A hit with better ones behind it owes its place to its source."""
    made = list(verdicts(lanes("nnnns"), parse("cat"), DEFAULT, 700))
    assert [one.hit.snippet for one in made if one.hit and one.owed] == ["s4"]


STATED = "The spare key of the studio is with Odile, second floor, ring twice."


def dated(text: str, path: str, day: int, score: float, kind: Kind = Kind.NOTE) -> tuple[Scored, StoredChunk]:
    """A candidate that is of a day."""
    one, chunk = found(text, path=path, line=day, score=score, kind=kind)
    return one, msgspec.structs.replace(chunk, first_s=day * 86400, last_s=day * 86400 + 86399)


def shown_of(
    candidates: Sequence[tuple[Scored, StoredChunk]], min_score: float = OPEN, *, latest: bool = True
) -> list[tuple[str, float, tuple[str, ...]]]:
    asked = parse("where is the spare key")
    found = verdicts([candidates], asked, 0.0, 700, least=min_score, latest=latest)
    return [(hit.path, hit.score, hit.copies) for one in found if (hit := one.hit) is not None]


@pytest.mark.parametrize(
    "copy",
    [
        STATED,
        "the spare key of studio is with ODILE: second floor - ring twice",
        f"---\ncreated: 2026-01-09\n---\n{STATED}",
        f"- {STATED} Yes!",
    ],
    ids=["equal", "marks and articles", "front matter", "a word more"],
)
def test_the_latest_copy_takes_the_place_of_the_best(copy: str) -> None:
    """What says the same takes one place, and the hit tells where else it stands."""
    candidates = [
        dated(STATED, "old.md", 1, 0.9),
        dated("Odile paints.", "b.md", 2, 0.8),
        dated(copy, "new.md", 3, 0.7),
    ]
    last = 3 + copy.count("\n")
    assert candidates[2][1].end_line == last
    assert shown_of(candidates) == [("new.md", 0.9, ("old.md#L1-L1",)), ("b.md", 0.8, ())]


def test_who_asks_for_what_was_gets_the_best_copy() -> None:
    """It may be the only one of that time."""
    candidates = [dated(STATED, "old.md", 1, 0.9), dated(STATED, "new.md", 3, 0.7)]
    assert shown_of(candidates, latest=False) == [("old.md", 0.9, ("new.md#L3-L3",))]


@pytest.mark.parametrize(
    "other",
    [
        STATED.replace("second", "third"),
        STATED.replace("is with", "is not with"),
        STATED.replace("Odile", "Oda"),
        STATED.replace("is with", "was with"),
        f"{STATED} The spare key of the cellar is in the blue tin.",
        "工作室的备用钥匙不在欧迪尔那里。",
    ],
    ids=["a number", "a negation", "a name", "tense", "it goes on", "Chinese"],
)
def test_what_is_nearly_alike_is_no_copy(other: str) -> None:
    """A word may be what matters: both are shown."""
    this = STATED if other.isascii() else "工作室的备用钥匙在欧迪尔那里。"
    candidates = [dated(this, "old.md", 1, 0.9), dated(other, "new.md", 3, 0.7)]
    assert shown_of(candidates) == [("old.md", 0.9, ()), ("new.md", 0.7, ())]


def test_what_says_more_takes_the_place_only_of_what_it_covers() -> None:
    """Where the later copy lacks something, the earlier one is shown for it; the later one is then a copy of that."""
    more = f"{STATED} Mondays too."
    candidates = [dated(more, "old.md", 1, 0.9), dated(STATED, "new.md", 3, 0.7)]
    assert shown_of(candidates) == [("old.md", 0.9, ("new.md#L3-L3",))]


def test_a_question_that_is_asked_again_with_its_answer_takes_one_place() -> None:
    """The time of a turn is no difference; another answer is."""
    turns = "2026-01-{day} 10:00 User: Where do we keep the spare key of the studio?\n2026-01-{day} 10:01 Assistant: {told}"
    candidates = [
        dated(turns.format(day="01", told="With Odile."), "sessions/1.jsonl", 1, 0.9, Kind.SESSION),
        dated(turns.format(day="02", told="With Odile."), "sessions/2.jsonl", 2, 0.8, Kind.SESSION),
        dated(turns.format(day="03", told="In the blue tin."), "sessions/3.jsonl", 3, 0.7, Kind.SESSION),
    ]
    assert shown_of(candidates) == [
        ("sessions/2.jsonl", 0.9, ("sessions/1.jsonl#L1-L2",)),
        ("sessions/3.jsonl", 0.7, ()),
    ]


def test_a_copy_among_many_is_told_as_far_as_there_is_room() -> None:
    """A hundred copies of a template do not fill a reply, nor do they come as hits of their own."""
    candidates = [dated(STATED, f"{n}.md", n, 0.9 - n / 1000) for n in range(1, 101)]
    ((path, _, copies),) = shown_of(candidates)
    assert path == f"{1 + AHEAD}.md"
    assert len(copies) == MAX_TOLD


@pytest.mark.parametrize("least", [0.5, 0.8])
def test_a_higher_least_score_changes_no_hit(least: float) -> None:
    """The latest copy is shown with the score of the best, whatever its own."""
    candidates = [
        dated(STATED, "old.md", 1, 0.9),
        dated("Odile paints.", "b.md", 2, 0.4),
        dated(STATED, "new.md", 3, 0.37),
    ]
    assert shown_of(candidates, min_score=least) == [("new.md", 0.9, ("old.md#L1-L1",))]


CANDIDATES = st.lists(
    st.builds(
        lambda text, path, line, score: found(
            text,
            path=path,
            line=line,
            score=score,
            kind=Kind.SESSION if path.startswith("sessions/") else Kind.NOTE,
        ),
        st.lists(
            st.sampled_from(["a cat", "the dog", "数据库", "", "long " * 30]), min_size=1, max_size=5
        ).map("\n".join),
        st.sampled_from(["a.md", "b.md", "sessions/a/1.jsonl", "sessions/a/2.jsonl"]),
        st.integers(1, 8),
        st.floats(0, 1),
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
    asked = parse(question)
    by_source = [[one for one in candidates if one[1].kind is kind] for kind in (Kind.SESSION, Kind.NOTE)]
    everything = list(hits(by_source, asked, min_score, 60))
    assert (
        list(islice(hits([iter(some) for some in by_source], asked, min_score, 60), count))
        == everything[:count]
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


QUESTION = "Which database did we pick for the ledger?"
SAID = f"2026-11-20 10:01 User: {QUESTION}"
AGAIN = "2026-11-21 10:01 User: which database did we pick for the  ledger"
ANSWER = "2026-11-20 10:02 Assistant: PostgreSQL."
OTHER = "2026-11-20 09:58 Assistant: All tests are green."
NEAR = "2026-11-20 09:58 User: Which database did we pick for the mirror?"


@pytest.mark.parametrize(
    ("turns", "repeats"),
    [
        ([SAID], True),
        ([AGAIN], True),
        ([SAID, AGAIN], True),
        ([OTHER, SAID], True),
        ([SAID, ANSWER], False),
        ([SAID, ANSWER, AGAIN], False),
        ([SAID + " PostgreSQL"], False),
        ([NEAR], False),
        (["2026-11-20 10:02 Assistant: We picked a database for the ledger.", SAID], False),
        (["2026-11-20 10:02 User: We did pick the database for the ledger"], False),
    ],
)
def test_what_only_repeats_the_question_comes_after_what_may_answer_it(
    turns: list[str], *, repeats: bool
) -> None:
    """A turn is closest to its own words, and tells nothing; one that is answered, or says more, keeps its place."""
    talk = found("\n".join(turns), path="sessions/x/1.jsonl", score=0.9, kind=Kind.SESSION)
    note = found("# Ledger\n\nPostgreSQL", path="memory/a.md", score=0.4)
    other = found(
        "2026-11-19 10:01 User: about ledgers",
        line=9,
        path="sessions/x/2.jsonl",
        score=0.5,
        kind=Kind.SESSION,
    )
    made = list(hits([[talk, other], [note]], parse(QUESTION), DEFAULT, 700))
    assert len(made) == 3
    assert (made[-1].path == "sessions/x/1.jsonl") is repeats
    assert made[-1 if repeats else 0].score == (DEFAULT if repeats else 0.9)
    assert made[-1 if repeats else 0].snippet == brief("\n".join(turns))
    # Nor does it take the turn of its source, and nobody who asks for better hits has it.
    notes = [found(f"note {number}", line=number, score=0.4) for number in range(4)]
    alone = list(hits([[talk], notes], parse(QUESTION), DEFAULT, 700))
    assert [hit.path for hit in alone].index("sessions/x/1.jsonl") == (4 if repeats else 0)
    assert bool(list(hits([[talk]], parse(QUESTION), 0.6, 700))) is not repeats


def test_a_long_question_is_repeated_in_parts() -> None:
    """A turn that was cut is a part of it in each chunk; few of its words in a row may be an answer."""
    question = " ".join(f"word{number}" for number in range(60))
    parts = [
        f"2026-11-20 10:01 User: {CONTINUED}" + " ".join(question.split()[at : at + 20]) for at in (0, 20, 40)
    ]
    short = "2026-11-20 10:01 Assistant: " + " ".join(question.split()[3:8])
    repeats = QuestionEchoes(parse(question))

    def only(text: str, kind: Kind = Kind.SESSION) -> bool:
        return repeats.only_repeats(found(text, kind=kind)[1])

    assert all(map(only, parts))
    assert not only(short)
    assert not only(parts[0] + " and more")
    assert not only(question, Kind.NOTE)
    assert not QuestionEchoes(parse("?")).only_repeats(found("User: ?", kind=Kind.SESSION)[1])


@pytest.mark.parametrize(("score", "is_one"), [(0.35, True), (0.349, False)])
def test_a_copy_is_looked_for_among_what_is_worth_reading(score: float, is_one: bool) -> None:
    """What scores less is found by chance, and nothing else is said of a copy than what it is one of."""
    best, other = dated(STATED, "old.md", 1, 0.9), dated(STATED, "new.md", 3, score)
    hit, copy = verdicts([[best, other]], parse("where is the spare key"), OPEN, 700)
    assert hit.hit is not None
    assert hit.hit.copies == (("old.md#L1-L1",) if is_one else ())
    assert copy.cut == "duplicate"
    assert copy.copy_of == (hit.chunk.id if is_one else None)
    assert (copy.owed, copy.repeats, copy.superseded) == (False, False, False)


@pytest.mark.parametrize(
    ("own", "other", "is_one"),
    [
        ({}, {}, True),
        ({"share": 0.0}, {"share": 0.2}, True),
        ({"share": 0.6}, {"share": 0.81}, False),
        ({"share": 0.81}, {"share": 0.6}, False),
        ({"cosine": 0.0}, {"cosine": 0.1}, True),
        ({"cosine": 0.7}, {"cosine": 0.81}, False),
        ({"cosine": 0.7}, {}, True),
        ({"cosine": 0.7, "part": 0.0}, {"cosine": 0.9, "part": 0.03}, True),
        ({"cosine": 0.7, "part": 0.8}, {"cosine": 0.7, "part": 0.84}, False),
        ({"cosine": 0.7, "part": 0.8}, {"cosine": 0.7}, True),
        ({"cosine": 0.7, "part": 0.8}, {"cosine": 0.9}, False),
    ],
)
def test_texts_are_compared_where_both_are_about_as_close_to_the_question(
    own: dict[str, float], other: dict[str, float], *, is_one: bool
) -> None:
    """By their words and by their parts, or as a whole; all others would take long to read."""
    text = "The spare key of the studio is with Odile, second floor, ring twice."
    (best, chunk), (second, copy) = found(text), found(text, path="b.md", score=0.7)
    pairs = [
        (msgspec.structs.replace(best, **{"cosine": None, "part": None, "share": 0.0} | own), chunk),
        (msgspec.structs.replace(second, **{"cosine": None, "part": None, "share": 0.0} | other), copy),
    ]
    _, told = verdicts([pairs], parse("where is the spare key"), OPEN, 700)
    assert (told.copy_of is not None) is is_one


def test_a_turn_of_so_many_words_of_a_question_repeats_it() -> None:
    """One of fewer words may be the answer."""
    many = shipped("memd.search.question_echoes._WORDS_OF_ECHO")
    words = [f"word{number}" for number in range(2 * many)]
    repeats = QuestionEchoes(parse(" ".join(words)))
    for count, is_repeated in ((many - 1, False), (many, True)):
        said = found("2026-11-20 10:01 User: " + " ".join(words[:count]), kind=Kind.SESSION)[1]
        assert repeats.only_repeats(said) is is_repeated
