"""Where a text stands in its document."""

import pytest

from memd.chunk.context import context_of, dates_of, headings_above, title_of
from memd.chunk.line_index import page_of
from memd.chunk.split import ChunkSize
from memd.domain_types import Document, Kind
from tests.bounds import shipped

ROOM = ChunkSize(quarters=1600, chars=700)


def note(*lines: str) -> Document:
    return Document("memory/topic.md", Kind.NOTE, lines)


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (("", "# Head ##", "text"), ("Head", 0)),
        (("text", "# Head"), ("topic", 0)),
        (("## Two",), ("topic", 0)),
        (("#", "# Second"), ("topic", 0)),
        (("---", "title: 'It''s'", "---"), ("It''s", 3)),
        (("---", 'title: "a" ', "..."), ("a", 3)),
        (("---", "title:", "title: late", "---"), ("late", 4)),
        (("---", "title: x", "---", "# Head"), ("Head", 3)),
        (("---", "title: never closed"), ("topic", 0)),
        ((), ("topic", 0)),
    ],
)
def test_titles(lines: tuple[str, ...], title: tuple[str, int]) -> None:
    """The first heading, else what the front matter says, else the name of the file."""
    assert title_of(note(*lines)) == title


def test_headings_above() -> None:
    """A section stands under the nearest heading of each higher level, told from any section before it."""
    document = note("# A", "## B", "### C", "#### D", "### E", "## F", "###", "#### G", "# H", "### I")
    page = page_of(document, 0, ROOM, 0)
    above = {
        0: [], 1: ["A"], 2: ["A", "B"], 3: ["A", "B", "C"], 4: ["A", "B"],
        5: ["A"], 6: ["A", "F"], 7: ["A", "F"], 8: [], 9: ["H"],
    }  # fmt: skip
    for since in range(10):
        known = headings_above(document, page, since, [], 0)
        assert [words for _, words in known] == above[since]
        for section in range(since, 10):
            found = headings_above(document, page, section, known, since)
            assert [words for _, words in found] == above[section]


def test_a_context_is_short() -> None:
    """However long the headings, the line that places a chunk is not."""
    most = shipped("memd.chunk.context._CONTEXT_CHARS")
    assert len(context_of("t" * most, (), ())) == most
    assert len(context_of("t" * (most + 1), (), ())) == most
    assert len(context_of("t" * 100, [(n, "h" * 100) for n in range(1, 7)], ("2026-02-09",))) == most


def test_a_title_is_short_and_stands_near_the_beginning() -> None:
    """A front matter that does not end soon is none, and what is far below is no title."""
    most, lines = shipped("memd.chunk.context._HEADING_CHARS"), shipped("memd.chunk.context._HEAD_LINES")
    assert title_of(note(f"# {'x' * most}")) == ("x" * most, 0)
    assert title_of(note(f"# {'x' * (most + 1)}")) == ("x" * most, 0)
    for blank, title in ((lines - 1, "Head"), (lines, "topic")):
        assert title_of(note(*[""] * blank, "# Head")) == (title, 0)
    front_lines = shipped("memd.chunk.note_properties._MOST_LINES")
    for inside, front in ((front_lines - 2, front_lines), (front_lines - 1, 0)):
        assert title_of(note("---", *["x: y"] * inside, "---"))[1] == front


def test_the_language_of_a_note_is_that_of_its_first_lines() -> None:
    """However long it is, so many lines of it are looked at."""
    most = shipped("memd.chunk.context._LANGUAGE_LINES")
    for blank, told in ((most - 1, "2026年2月9日"), (most, "9 February 2026")):
        document = Document("memory/2026-02-09.md", Kind.NOTE, (*[""] * blank, "数据库迁移"))
        assert dates_of(document) == ("2026-02-09", told)


def test_the_language_of_a_note_is_that_of_its_first_signs() -> None:
    """Of one that has long lines, too."""
    most = shipped("memd.chunk.context._LANGUAGE_CHARS")
    for blank, told in ((most - 1, "2026年2月9日"), (most, "9 February 2026")):
        document = Document("memory/2026-02-09.md", Kind.NOTE, (" " * blank + "数据库迁移",))
        assert dates_of(document) == ("2026-02-09", told)


@pytest.mark.parametrize(
    ("headings", "place"),
    [
        ([], "Title"),
        ([(2, "a"), (3, "b"), (4, "c")], "Title > a > b > c"),
        ([(2, "a"), (3, "b"), (4, "c"), (5, "d")], "Title > b > c > d"),
        ([(1, "Title"), (2, "a"), (3, "b"), (4, "c")], "Title > a > b > c"),
    ],
)
def test_a_chunk_stands_below_its_nearest_three_headings(headings: list[tuple[int, str]], place: str) -> None:
    """The title is said once."""
    assert context_of("Title", headings, ()) == place
