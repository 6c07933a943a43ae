"""What the lines of a document are."""

import pytest

from memd.chunk.line_index import BLANK, ENTRY, TEXT, heading_of, page_of
from memd.chunk.split import ChunkSize
from memd.domain_types import Document, Kind

ROOM = ChunkSize(quarters=32, chars=30)  # 8 tokens, 30 characters


def lines(*texts: str) -> Document:
    return Document("MEMORY.md", Kind.CURATED, texts)


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("# Title", (1, "Title")),
        ("   ###### Deep\t", (6, "Deep")),
        ("#", (1, "")),
        ("##  ", (2, "")),
        ("# Closed ##", (1, "Closed")),
        ("# C#", (1, "C#")),
        ("# a # b #", (1, "a # b")),
        ("# ##", (1, "##")),
        ("#\ttab #\t", (1, "tab")),
        ("#word", None),
        ("####### seven", None),
        ("    # code", None),
        ("", None),
    ],
)
def test_headings(text: str, heading: tuple[int, str] | None) -> None:
    """A heading is told from text as CommonMark does it, with its closing hashes taken off."""
    assert heading_of(text) == heading


def test_what_lines_are() -> None:
    """Headings and entries begin sections, but not in front matter or code; a topic's heading is no body."""
    document = lines("---", "# no", "---", "# A", "", "- b", "```", "# c", "\t```", "### d", "\u3000")
    page = page_of(document, 3, ROOM, 0)
    assert list(page.marks) == [TEXT, TEXT, TEXT, 1, BLANK, ENTRY, TEXT, TEXT, TEXT, 3, BLANK]
    assert list(page.starts) == [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0]
    assert list(page.topics) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert list(page.body) == [1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0]
    assert list(page.ink) == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0]
    assert page.texts == document.lines
    assert list(page.numbers) == list(range(1, 12))
    assert page.pieces is None


def test_long_lines_become_pieces() -> None:
    """A line that no chunk holds stands as several units of one number; what is before and after it stays whole."""
    page = page_of(lines("# A", "word " * 20, "- end"), 0, ROOM, 0)
    assert "".join(page.texts[1:-1]) == "word " * 20
    assert all(ROOM.cost(text) <= ROOM.capacity for text in page.texts)
    parts = len(page.texts) - 2
    assert parts > 2
    assert list(page.numbers) == [1, *[2] * parts, 3]
    assert page.pieces == b"\0" + b"\1" * parts + b"\0"
    assert list(page.marks) == [1, *[TEXT] * parts, ENTRY]
    assert page.costs[-1] == sum(ROOM.cost(text) + ROOM.line_end for text in page.texts)


def test_a_long_heading_begins_one_section() -> None:
    """Of the pieces of a heading only the first is one."""
    page = page_of(lines("## " + "long " * 20), 0, ROOM, 0)
    assert list(page.marks) == [2, *[TEXT] * (len(page.texts) - 1)]
