"""Indexes the lines of a document in flat arrays, in which ten million lines take seconds."""

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import msgspec

from memd.chunk.split import ChunkSize, piece_end
from memd.domain_types import Document, Kind

# The kind of a line: blank, a heading of level 1 to 6, an entry of a curated file, or other text.
BLANK, ENTRY, TEXT = 0, 7, 8
# Headings of these levels begin a topic, and each topic begins a chunk. Sections of deeper headings may share
# a chunk.
_TOPICS = frozenset({1, 2})
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_MARKED = frozenset("#`~- ")  # first characters that need a closer look; all other lines are text


class LineIndex(msgspec.Struct, frozen=True):
    """A document in units: its lines, or the pieces of lines that are longer than a chunk."""

    texts: Sequence[str]
    numbers: Sequence[int]  # line number of each unit, from 1
    costs: Sequence[int]  # costs[n]: cost of the first n units, each with a line end
    marks: bytes  # BLANK, the level of a heading, ENTRY or TEXT
    # Derived from the marks, 1 for yes, so that bytes.find scans them at the speed of memory.
    ink: bytes  # not blank
    starts: bytes  # a section begins: a heading with the text below it, or an entry
    topics: bytes  # a topic begins
    body: bytes  # neither blank nor the heading of a topic
    pieces: bytes | None  # a part of a line; None: all units are whole lines


def heading_of(text: str) -> tuple[int, str] | None:
    """Return level and words of a heading line; None for other lines."""
    found = _HEADING.match(text)
    if found is None:
        return None
    words = text[found.end() :].strip(" \t")
    open_ended = words.rstrip("#")
    # Trailing hashes close a heading, unless there is nothing else.
    if open_ended and open_ended[-1] in " \t":
        words = open_ended.rstrip(" \t")
    return len(found[1]), words


def page_of(document: Document, front: int, room: ChunkSize, overlap: int) -> LineIndex:
    """Index the lines of a document.

    Args:
        document: A note, with its lines.
        front: The number of lines of its front matter.
        room: The capacity of a chunk.
        overlap: The cost that pieces of a long line leave free, for the end of the previous piece.
    """
    texts: Sequence[str] = document.lines
    numbers: Sequence[int] = range(1, len(texts) + 1)
    marks: bytes = bytes(_marks(document, front))
    costs = _running(texts, room)
    most = room.most
    long = [line for line, (before, after) in enumerate(pairwise(costs)) if after - before > most]
    pieces = None
    if long:
        texts, numbers, marks, pieces = _divided(texts, costs, marks, long, room, overlap)
        costs = _running(texts, room)
    return LineIndex(
        texts,
        numbers,
        costs,
        marks,
        ink=marks.translate(_INK),
        starts=marks.translate(_STARTS),
        topics=marks.translate(_TOPIC),
        body=marks.translate(_BODY),
        pieces=pieces,
    )


def _running(texts: Sequence[str], room: ChunkSize) -> Sequence[int]:
    unit = room.line_end
    each = ((len(text) + 1) * unit if text.isascii() else room.cost(text) + unit for text in texts)
    return array("q", accumulate(each, initial=0))


def _marks(document: Document, front: int) -> bytearray:
    """Return the kind of each line."""
    lines, has_entries = document.lines, document.kind is Kind.CURATED
    marks = bytearray(len(lines))
    fence = ""
    for line, text in enumerate(lines):
        if not text or text.isspace():
            continue
        marks[line] = TEXT
        if fence:
            if (text[0] == fence[0] or text[0].isspace()) and _closes(text, fence):
                fence = ""
        elif text[0] not in _MARKED or line < front:
            pass
        elif opened := _FENCE.match(text):
            fence = opened[1]
        elif found := _HEADING.match(text):
            marks[line] = len(found[1])
        elif has_entries and text.startswith("- "):
            marks[line] = ENTRY
    return marks


def _closes(text: str, fence: str) -> bool:
    closing = text.strip()
    return closing.startswith(fence) and not closing.strip(fence[0])


def _divided(
    lines: Sequence[str],
    costs: Sequence[int],
    marks: bytes,
    long: Sequence[int],
    room: ChunkSize,
    overlap: int,
) -> tuple[list[str], list[int], bytes, bytes]:
    """Return the texts, numbers and marks of all units, and which units are pieces."""
    starts = marks.translate(_STARTS)
    texts: list[str] = []
    numbers: list[int] = []
    unit_marks, pieces = bytearray(), bytearray()
    done = before = 0  # before: cost of the section up to the line `done`
    for line in [*long, len(lines)]:
        texts += lines[done:line]
        numbers += range(done + 1, line + 1)
        unit_marks += marks[done:line]
        pieces += bytes(line - done)
        if line == len(lines):
            break
        start = starts.rfind(1, done, line + 1)
        before = costs[line] - costs[start] if start >= 0 else before + costs[line]
        parts = list(_parts(lines[line], before, room, overlap))
        texts += parts
        numbers += [line + 1] * len(parts)
        unit_marks += bytes(TEXT if part.strip() else BLANK for part in parts)
        if marks[line] != TEXT:
            unit_marks[-len(parts)] = marks[line]
        pieces += b"\1" * len(parts)
        before = room.capacity  # a long line fills more than that
        done = line + 1
    return texts, numbers, bytes(unit_marks), bytes(pieces)


def _parts(text: str, before: int, room: ChunkSize, overlap: int) -> Iterator[str]:
    """Yield the pieces of a line.

    The first shares its chunk with the preceding text of its section, such as a heading, if that is short;
    the others leave room for the overlap.
    """
    most = room.capacity - (before if 4 * before <= room.capacity else overlap)
    at = 0
    while at < len(text):
        end = piece_end(text, at, most, room)
        yield text[at:end]
        at, most = end, room.capacity - overlap


def _table(values: range | frozenset[int]) -> bytes:
    return bytes(value in values for value in range(256))


_INK = _table(range(1, TEXT + 1))
_STARTS = _table(range(1, ENTRY + 1))
_TOPIC = _table(_TOPICS)
_BODY = _table(frozenset(range(1, TEXT + 1)) - _TOPICS)
