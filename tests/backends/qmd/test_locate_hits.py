import msgspec
import pytest

from memd.backends.qmd.locate_hits import located, merged, once, shown, sources_alternating
from memd.backends.qmd.page import IndexedPage
from memd.backends.qmd.parse import QmdEntry
from memd.model import FoundHit

LINES = tuple(f"line number {n} says {'kestrel' if n == 30 else 'nothing'} today" for n in range(1, 61))


def entry(
    first: int | None = None, *snippet: str, line: int | None = None, count: int | None = None
) -> QmdEntry:
    return QmdEntry(score=0.5, first=first, count=count, snippet=snippet, line=line)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (entry(29, *LINES[28:32]), (29, 32)),
        (entry(29, *LINES[28:31], ""), (29, 31)),
        (entry(29, LINES[28], LINES[29][:12] + "..."), (29, 30)),
        (entry(29, *(f"{line}\r" for line in LINES[28:31])), (29, 31)),
        (entry(1, "\ufeff" + LINES[0], LINES[1]), (1, 2)),
        (entry(10, *LINES[28:31]), (29, 31)),  # the note has grown above since
        (entry(900, *LINES[28:31]), (29, 31)),
        (entry(None, *LINES[28:31]), (29, 31)),
        (entry(29, "gone since", "and this"), None),
        (entry(29, LINES[28], "changed since", LINES[30]), (29, 31)),
        (entry(None, line=30), (30, 30)),
        (entry(29, count=4), (29, 32)),
        (entry(59, count=40), (59, 60)),
        (entry(None, line=61), None),
        (entry(), (1, 60)),
        (entry(None, "", " "), (1, 60)),
    ],
)
def test_the_lines_that_qmd_shows_are_found_in_the_file(
    given: QmdEntry, place: tuple[int, int] | None
) -> None:
    """Where they stand now; what is not there any more is no hit."""
    assert located(LINES, given) == place


def test_an_empty_file_shows_nothing() -> None:
    """Whatever qmd says."""
    assert located((), entry()) is None


def test_the_window_is_around_what_is_meant() -> None:
    """At most so many characters, with the words of the question in it, and its own true lines."""
    found = shown(IndexedPage(LINES), (29, 32), entry(29, *LINES[28:32], line=30), ["kestrel"], 200)
    assert found is not None
    first, last, text = found
    assert first <= 30 <= last
    assert text == "\n".join(LINES[first - 1 : last])
    assert len(text) <= 200


def test_what_was_found_by_its_meaning_begins_where_qmd_shows_it() -> None:
    """No word of the question tells where to look."""
    found = shown(IndexedPage(LINES), (40, 43), entry(40, *LINES[39:43]), ["falcon"], 120)
    assert found is not None
    assert found[0] == 40


def test_a_line_without_end_is_cut_around_the_words() -> None:
    """Its number stays."""
    lines = ("x", "word " * 20_000 + "kestrel " + "word " * 20_000)
    found = shown(IndexedPage(lines), (1, 2), entry(1, "x", line=2), ["kestrel"], 700)
    assert found is not None
    assert (found[0], found[1]) == (2, 2)
    assert "kestrel" in found[2]
    assert len(found[2]) <= 700


def test_lines_of_a_transcript_are_told_as_they_are_there() -> None:
    """Not those of its export."""
    page = IndexedPage(("# Session", "", "User: kestrel?", "", "Assistant: yes", ""), (7, 7, 7, 7, 9, 9))
    assert shown(page, (3, 5), entry(3, "User: kestrel?"), ["kestrel"], 700) == (
        7,
        9,
        "# Session\n\nUser: kestrel?\n\nAssistant: yes",
    )


def test_blank_lines_are_no_hit() -> None:
    """Nothing could be read."""
    assert shown(IndexedPage(("", " ", "")), (1, 3), entry(), [], 700) is None


def hit(path: str, first: int, last: int, text: str, *, session: bool = False) -> FoundHit:
    return FoundHit(path, first, last, 0.5, text, "sessions" if session else "memory")


def test_sources_alternate() -> None:
    """Beginning with that of the best hit; what is left of one comes at the end."""
    hits = [hit("a", 1, 1, "1"), hit("b", 1, 1, "2"), hit("c", 1, 1, "3"), hit("s", 1, 1, "4", session=True)]
    assert [one.path for one in sources_alternating(hits)] == ["a", "s", "b", "c"]
    assert sources_alternating([]) == []


def test_nothing_is_shown_twice() -> None:
    """Neither the same lines nor the same text."""
    hits = [
        hit("a", 1, 5, "1"),
        hit("a", 5, 9, "2"),
        hit("a", 10, 12, "3"),
        hit("b", 1, 5, "3"),
        hit("b", 1, 5, "4"),
    ]
    assert [(one.path, one.start_line) for one in once(hits)] == [("a", 1), ("a", 10), ("b", 1)]


@pytest.mark.parametrize("scores", [(0.9, 0.02), (0.02, 0.9), (0.0, 0.0)])
def test_hits_of_two_backends_are_merged_by_their_places(scores: tuple[float, float]) -> None:
    """The scores of qmd and of the built-in index are on different scales: no order follows from them."""
    of_qmd = [msgspec.structs.replace(hit(name, 1, 1, name), score=scores[0]) for name in ("q1", "q2", "q3")]
    of_builtin = [msgspec.structs.replace(hit(name, 1, 1, name), score=scores[1]) for name in ("b1", "q2")]
    assert [one.path for one in merged(of_qmd, of_builtin)] == ["q1", "b1", "q2", "q3"]


def test_transcripts_of_one_backend_alternate_with_the_notes_of_the_other() -> None:
    """Where qmd has notes alone, and the built-in index the transcripts."""
    notes = [hit(name, 1, 1, name) for name in ("n1", "n2", "n3")]
    talks = [hit(name, 1, 1, name, session=True) for name in ("s1", "s2")]
    assert [one.path for one in merged(notes, talks)] == ["n1", "s1", "n2", "s2", "n3"]
    assert [one.path for one in merged([], talks)] == ["s1", "s2"]
