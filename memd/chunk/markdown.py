"""Cuts Markdown into chunks of whole lines, and keeps sections together where they fit."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from memd.chunk.context import Heading, context_of, dates_of, headings_above, title_of
from memd.chunk.line_index import LineIndex, page_of
from memd.chunk.note_properties import NoteDates
from memd.chunk.split import ChunkSize, end_of, parts_of
from memd.domain_types import Chunk, Document, TextHash, embedded_text

LONGEST = 700  # characters of a chunk; the default of chunking.max_chars

_MIN_TOKENS = 8  # a smaller limit would cut words


class _Held(msgspec.Struct, frozen=True):
    """How a chunk begins."""

    begin: int  # the first unit
    repeated: str = ""  # the end of the previous unit, if that was cut


def chunk(document: Document, tokens: int, overlap: int, longest: int = LONGEST) -> list[Chunk]:
    """Cut a document into chunks of at most `tokens` estimated tokens.

    A chunk is about one topic: a heading of level 1 or 2 begins one. It consists of whole lines, or of a part
    of a line that is longer than a chunk. A section that fits into a chunk is never divided; a longer one is
    cut between lines, and each of its chunks but the first begins with the last lines of the previous one.
    Every line that is not blank is in some chunk.

    Args:
        document: A note, with its lines.
        tokens: The most estimated tokens of a chunk, without its context; below 8 counts as 8.
        overlap: How many estimated tokens of a chunk the next one of the same section repeats: whole lines
            only, and at most half a chunk.
        longest: The most characters of a chunk. The overlap shrinks in proportion.

    Returns:
        The chunks in the order of the file.
    """
    room = ChunkSize(4 * max(_MIN_TOKENS, tokens), max(_MIN_TOKENS, longest))
    carried = min(room.capacity * max(0, overlap) // max(_MIN_TOKENS, tokens), room.capacity // 2)
    title, front = title_of(document)
    dates = dates_of(document)
    page = page_of(document, front, room, carried)
    when = NoteDates(document, page)
    chunks: list[Chunk] = []
    headings: list[Heading] = []
    placed, context = 0, context_of(title, headings, dates)
    for section, held, end in _packed(page, room, carried):
        if section != placed:
            headings = headings_above(document, page, section, headings, placed)
            placed, context = section, context_of(title, headings, dates)
        made = _chunk(page, held, end, context, when)
        chunks += [] if made is None else [made]
    return chunks


def _packed(page: LineIndex, room: ChunkSize, overlap: int) -> Iterator[tuple[int, _Held, int]]:
    """Put sections of one topic together as long as they fit, and cut those that are larger than a chunk.

    Yields:
        For each chunk: the section that gives its context, how it begins, and the unit after its last.
    """
    size = len(page.texts)
    section = 0
    while section < size:
        held = _Held(section)
        after = page.starts.find(1, section + 1)  # the start of the next section
        after = size if after < 0 else after
        while (reach := _reach(page, held, room)) < after:
            yield section, held, reach
            held = _tail(page, held, reach, room, overlap)
        end = size if reach == size else page.starts.rfind(1, after, reach + 1)
        # A title, or another heading without text below it, goes with what follows.
        body = page.body.find(1, section, end)
        topic = page.topics.find(1, max(after, body), end) if body >= 0 else -1
        end = end if topic < 0 else topic
        yield section, held, end
        section = end


def _reach(page: LineIndex, held: _Held, room: ChunkSize) -> int:
    """Return the unit after the last one that fits into a chunk."""
    taken = room.cost(held.repeated) + room.line_end if held.repeated else 0
    costs, begin = page.costs, held.begin
    # Each unit costs at least a line end.
    last = min(len(costs), begin + room.most // room.line_end + 2)
    return bisect_right(costs, costs[begin] + room.most - taken, begin, last) - 1


def _tail(page: LineIndex, held: _Held, end: int, room: ChunkSize, overlap: int) -> _Held:
    """Return what the next chunk repeats: the last lines within the overlap, and one more line if it fits.

    Of a line that was cut, the last sentences or words are repeated.
    """
    costs = page.costs
    total = costs[end]
    most = min(room.capacity // 2, room.most - (costs[end + 1] - total))
    begin = max(
        bisect_left(costs, total - most, held.begin, end),
        bisect_right(costs, total - overlap, held.begin, end + 1) - 1,
    )
    if begin < end:
        return _Held(begin if page.ink.find(1, begin, end) >= 0 else end)
    if page.pieces is not None and page.pieces[end - 1]:
        text = end_of(page.texts[end - 1], min(overlap, most) - room.line_end, room)
        return _Held(end, text if text.strip() else "")
    return _Held(end)


def _chunk(page: LineIndex, held: _Held, end: int, context: str, when: NoteDates) -> Chunk | None:
    """Return the chunk of some units, without blank ones at its ends; None if all are blank, whatever it would repeat."""
    first, last = page.ink.find(1, held.begin, end), page.ink.rfind(1, held.begin, end)
    if first < 0:
        return None
    if held.repeated:
        first = held.begin - 1
        # Pieces of one line stay on one line, so that line n of a chunk is line start_line + n of the file.
        between = "" if page.numbers[first] == page.numbers[held.begin] else "\n"
        text = held.repeated + between + _joined(page, held.begin, last)
    else:
        text = _joined(page, first, last)
    digest = hashlib.sha256(embedded_text(context, text).encode("utf-8", "replace")).digest()
    return Chunk(
        page.numbers[first],
        page.numbers[last],
        text,
        context,
        TextHash(digest),
        parts=parts_of(text),
        when=when.of(first, last),
    )


def _joined(page: LineIndex, first: int, last: int) -> str:
    """Return the text of units, `last` included."""
    texts, numbers = page.texts, page.numbers
    if numbers[last] - numbers[first] == last - first:
        return "\n".join(texts[first : last + 1])
    parts = [texts[first]]
    for unit in range(first + 1, last + 1):
        parts += [texts[unit]] if numbers[unit] == numbers[unit - 1] else ["\n", texts[unit]]
    return "".join(parts)
