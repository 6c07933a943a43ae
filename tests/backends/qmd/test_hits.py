from pathlib import Path

import msgspec
import pytest

from memd.backends.qmd.collections import NOTES, WantedCollection
from memd.backends.qmd.export import IndexedPage
from memd.backends.qmd.export import ManifestEntry as Exported
from memd.backends.qmd.hits import (
    deduplicated,
    locate,
    merged,
    path_of_entry,
    shown_lines,
    similar_path_finder,
    sources_alternating,
)
from memd.backends.qmd.parse import QmdEntry
from memd.domain_types import FoundHit, Kind, Stamp
from memd.store.files import KnownFile
from memd.text.memory_paths import ExtraDirectory, Root, Workspace
from tests.bounds import shipped
from tests.table import table

BASE = Path("/state/main.qmd")
ROOTS: tuple[Root, ...] = (Workspace(Path("/w")), ExtraDirectory(Path("/x")))
COLLECTIONS = {
    "notes": WantedCollection("notes", Path("/w/memory"), "**/*.md", NOTES),
    "extra": WantedCollection("extra", Path("/x"), "**/*.md", NOTES),
    "sessions": WantedCollection(
        "sessions", BASE / "sessions", "**/*.md", frozenset({Kind.SESSION}), exported=True
    ),
}


def entry(collection: str | None, file: str | None, docid: str | None = None) -> QmdEntry:
    return QmdEntry(score=1, collection=collection, file=file, docid=docid)


def made_of(file: Path) -> str | None:
    return "sessions/s/1.jsonl" if file == BASE / "sessions/s/1.md" else None


@table(
    ("given", "name"),
    [
        (entry("notes", "a/My Note.md"), "memory/a/My Note.md"),
        (entry("notes", "/a.md"), "memory/a.md"),
        (
            entry("notes", "cafe\u0301.md"),
            "memory/caf\u00e9.md",
        ),  # as a disk spells it, and as the index does
        (entry("extra", "b.md"), "/x/b.md"),
        (entry(None, "/x/b.md"), "/x/b.md"),
        (entry("sessions", "s/1.md"), "sessions/s/1.jsonl"),
        (entry("sessions", "s/theirs.md"), None),
        (entry("notes", "../MEMORY.md"), None),
        (entry("notes", "a/../../secret.md"), None),
        (entry("notes", ".hidden/a.md"), None),
        (entry("notes", "a.txt"), None),
        (entry("theirs", "a.md"), None),
        (entry(None, "a.md"), None),
        (entry(None, "/etc/passwd"), None),
        (entry("notes", None, "abc123"), None),
    ],
)
def test_a_result_is_one_of_the_agents_files_or_none(given: QmdEntry, name: str | None) -> None:
    """By where it is; nothing outside the roots has a name."""
    assert path_of_entry(given, COLLECTIONS, ROOTS, made_of) == name


def known(path: str, kind: Kind = Kind.NOTE, digest: bytes = b"\xab\xc1\x23") -> KnownFile:
    return KnownFile(path, kind, Stamp(1, 1, 1), digest + bytes(29))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (entry("notes", "my-note-v2.md"), "memory/My Note (v2).md"),
        (entry("notes", "会议-记录.md"), "memory/会议 记录.md"),
        (entry("notes", "twin.md"), None),  # two files may be meant
        (entry("notes", "twin.md", "ffff"), "memory/Twin!.md"),
        (entry("extra", "my-note-v2.md"), None),
        # Of a collection that is not known, the last part of the name alone counts.
        (entry(None, "my-note-v2.md"), "memory/My Note (v2).md"),
        (entry("theirs", "below/my-note-v2.md"), "memory/My Note (v2).md"),
        (entry(None, "twin.md", "ffff"), "memory/Twin!.md"),
        (entry(None, "away.md"), None),  # it is below no root any more
        (entry(None, None, "aaaa"), "/away/Away.md"),
        (entry(None, None, "eeee"), "memory/会议 记录.md"),
        (entry(None, None, "abc1"), None),
        (entry("sessions", "s/a-session.md"), "sessions/s/a session.jsonl"),
        (entry(None, None, "5e55"), "sessions/s/a session.jsonl"),
    ],
)
def test_names_that_qmd_has_changed_are_known_again(given: QmdEntry, name: str | None) -> None:
    """If one file alone can be meant; the hash of its content may tell which."""
    files = [
        known("memory/My Note (v2).md"),
        known("memory/会议 记录.md", digest=b"\xee\xee\x00"),
        known("/away/Away.md", digest=b"\xaa\xaa\x00"),
        known("memory/twin.md"),
        known("memory/Twin!.md", digest=b"\xff\xff\x00"),
        known("sessions/s/a session.jsonl", Kind.SESSION),
    ]
    exported = {"sessions/s/a session.jsonl": Exported("sessions/s/A-Session.md", "1", 3, "5e55ab")}
    assert similar_path_finder(COLLECTIONS, ROOTS, files, exported, BASE)(given) == name


NEAR = shipped("memd.backends.qmd.hits._NEAR")
LINES = tuple(f"line number {n} says {'kestrel' if n == 30 else 'nothing'} today" for n in range(1, 61))


def snippet_entry(
    first: int | None = None, *snippet: str, line: int | None = None, count: int | None = None
) -> QmdEntry:
    return QmdEntry(score=0.5, first=first, count=count, snippet=snippet, line=line)


@table(
    ("given", "place"),
    [
        (snippet_entry(29, *LINES[28:32]), (29, 32)),
        (snippet_entry(29, *LINES[28:31], ""), (29, 31)),
        (snippet_entry(29, LINES[28], LINES[29][:12] + "..."), (29, 30)),
        (snippet_entry(29, *(f"{line}\r" for line in LINES[28:31])), (29, 31)),
        (snippet_entry(1, "\ufeff" + LINES[0], LINES[1]), (1, 2)),
        (snippet_entry(10, *LINES[28:31]), (29, 31)),  # the note has grown above since
        (snippet_entry(900, *LINES[28:31]), (29, 31)),
        (snippet_entry(None, *LINES[28:31]), (29, 31)),
        (snippet_entry(29, "gone since", "and this"), None),
        (snippet_entry(29, LINES[28], "changed since", LINES[30]), (29, 31)),
        (snippet_entry(None, line=30), (30, 30)),
        (snippet_entry(29, count=4), (29, 32)),
        (snippet_entry(59, count=40), (59, 60)),
        (snippet_entry(None, line=60), (60, 60)),
        (snippet_entry(60, count=3), (60, 60)),
        (snippet_entry(None, line=61), None),
        (snippet_entry(), (1, 60)),
        (snippet_entry(None, "", " "), (1, 60)),
    ],
)
def test_the_lines_that_qmd_shows_are_found_in_the_file(
    given: QmdEntry, place: tuple[int, int] | None
) -> None:
    """Where they stand now; what is not there any more is no hit."""
    assert locate(LINES, given) == place


def test_of_lines_that_are_the_same_those_are_meant_that_qmd_names() -> None:
    """Only where it names none, or others by now, the first are taken."""
    lines = ("a heron", "waits") * 3
    assert locate(lines, snippet_entry(3, *lines[:2])) == (3, 4)
    assert locate(lines, snippet_entry(5, *lines[:2])) == (5, 6)
    assert locate(lines, snippet_entry(2, *lines[:2])) == (1, 2)
    assert locate(("title", *lines), snippet_entry(4, *lines[:2])) == (4, 5)
    assert locate(lines, snippet_entry(0, *lines[:2])) == (1, 2)


def test_a_short_line_is_not_looked_for_elsewhere() -> None:
    """It may stand anywhere; where qmd names it, it is taken."""
    shortest = shipped("memd.backends.qmd.hits._SHORTEST")
    for length, place in ((shortest, (2, 2)), (shortest - 1, None)):
        line = "x" * length
        assert locate(("title", line), snippet_entry(1, line)) == place
        assert locate(("title", line), snippet_entry(2, line)) == (2, 2)


def test_an_empty_file_shows_nothing() -> None:
    """Whatever qmd says."""
    assert locate((), snippet_entry()) is None


def test_the_window_is_around_what_is_meant() -> None:
    """At most so many characters, with the words of the question in it, and its own true lines."""
    found = shown_lines(
        IndexedPage(LINES), (29, 32), snippet_entry(29, *LINES[28:32], line=30), ["kestrel"], 200
    )
    assert found is not None
    first, last, text = found
    assert first <= 30 <= last
    assert text == "\n".join(LINES[first - 1 : last])
    assert len(text) <= 200


@pytest.mark.parametrize(
    ("side", "length", "reach", "shown"),
    [
        (-1, 9, 10, (25, 25)),  # with its end, ten of them have a hundred characters
        (1, 9, 10, (25, 25)),
        (-1, 200, 0, (25, 25)),
        (1, 200, 0, (25, 25)),
        (-1, 200, 2, (23, 27)),
        (1, 200, 2, (23, 27)),
        (1, 200, 3, (15, 35)),  # of what qmd shows, three lines are near, however long they are
    ],
)
def test_words_are_looked_for_as_far_as_a_window_reaches(
    side: int, length: int, reach: int, shown: tuple[int, int]
) -> None:
    """A line is the answer as far away as it could be shown with the one that qmd means, and no farther."""
    for away, is_seen in ((reach, True), (reach + 1, False)):
        lines = ["x" * length] * 50
        lines[24 + side * away] = "kestrel " + "x" * (length - 8)
        given = snippet_entry(shown[0], "x", line=25)
        found = shown_lines(IndexedPage(tuple(lines)), shown, given, ["kestrel"], 100)
        assert found is not None
        assert ("kestrel" in found[2]) == is_seen


@pytest.mark.parametrize(
    ("away", "is_seen"), [(-NEAR, True), (-NEAR - 1, False), (NEAR, True), (NEAR + 1, False)]
)
def test_the_line_with_more_of_the_words_is_shown(away: int, is_seen: bool) -> None:
    """Three lines are near the one that is meant, however long they are."""
    lines = ["x" * 200] * 50
    lines[24] = "kestrel " + "x" * 192
    lines[24 + away] = "kestrel nest " + "x" * 187
    found = shown_lines(
        IndexedPage(tuple(lines)), (15, 35), snippet_entry(15, "x", line=25), ["kestrel", "nest"], 100
    )
    assert found is not None
    assert ("nest" in found[2]) is is_seen


def test_what_was_found_by_its_meaning_begins_where_qmd_shows_it() -> None:
    """No word of the question tells where to look."""
    found = shown_lines(IndexedPage(LINES), (40, 43), snippet_entry(40, *LINES[39:43]), ["falcon"], 120)
    assert found is not None
    assert found[0] == 40


def test_a_line_without_end_is_cut_around_the_words() -> None:
    """Its number stays."""
    lines = ("x", "word " * 20_000 + "kestrel " + "word " * 20_000)
    found = shown_lines(IndexedPage(lines), (1, 2), snippet_entry(1, "x", line=2), ["kestrel"], 700)
    assert found is not None
    assert (found[0], found[1]) == (2, 2)
    assert "kestrel" in found[2]
    assert len(found[2]) <= 700


def test_lines_of_a_transcript_are_told_as_they_are_there() -> None:
    """Not those of its export."""
    page = IndexedPage(("# Session", "", "User: kestrel?", "", "Assistant: yes", ""), (7, 7, 7, 7, 9, 9))
    assert shown_lines(page, (3, 5), snippet_entry(3, "User: kestrel?"), ["kestrel"], 700) == (
        7,
        9,
        "# Session\n\nUser: kestrel?\n\nAssistant: yes",
    )


def test_blank_lines_are_no_hit() -> None:
    """Nothing could be read."""
    assert shown_lines(IndexedPage(("", " ", "")), (1, 3), snippet_entry(), [], 700) is None


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
    assert [(one.path, one.start_line) for one in deduplicated(hits)] == [("a", 1), ("a", 10), ("b", 1)]


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
