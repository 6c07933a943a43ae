"""Markdown into chunks: whole lines, sections kept together where they fit."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import pairwise
from pathlib import PurePosixPath

import msgspec

from memd.model import Chunk, Document, Kind, TextHash, embedded_text
from memd.text import cut, is_mostly_cjk, quarter_tokens, safe_end

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_FRONT_TITLE = re.compile(r"""title:\s*["']?(.*?)["']?\s*$""")
_DATED = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:-.+)?")
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[。！？；…][”’」』）】]?|[.!?][\"')\]]?(?=\s)")
# What an agent reads of one hit. A chunk of 1,600 characters under that window hides its answer one time in two, and its
# vector tells less of each of its parts.
LONGEST = 700

_MIN_TOKENS = 8  # a smaller limit would cut words apart
_ENTRY_LEVEL = 7  # below every heading
# Headings down to this level set topics: each begins a chunk. Deeper ones divide a topic, whose parts may share one.
_TOPIC_LEVEL = 2
_HEADING_CHARS = 100  # a heading longer than this places a chunk no better
_CONTEXT_CHARS = 240
_LANGUAGE_LINES, _LANGUAGE_CHARS = 100, 2000  # what the language of a note is told from
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class _Room(msgspec.Struct, frozen=True):
    """How much a chunk holds: so many tokens, and so many characters, as one sum of both.

    The cost of a text is the share of a chunk it takes by whichever limit is nearer. Costs add up over lines, and a sum
    of costs within the capacity keeps both limits.
    """

    quarters: int  # of a token
    chars: int

    @property
    def capacity(self) -> int:
        return self.quarters * self.chars

    @property
    def line_end(self) -> int:
        """What a line end takes; no character takes less."""
        return max(self.quarters, self.chars)

    def cost(self, text: str) -> int:
        """The share of the capacity that a text takes."""
        return max(quarter_tokens(text) * self.chars, len(text) * self.quarters)


class _Line(msgspec.Struct, frozen=True):
    """One line, or a piece of one that is too long for a chunk."""

    number: int
    text: str
    cost: int  # with a line end
    piece: bool = False


class _Section(msgspec.Struct, frozen=True):
    """Lines that belong together: a heading and its text, or one entry of a curated file."""

    lines: list[_Line]
    cost: int
    context: str
    has_topic: bool  # it begins with a heading that sets a topic of its own


def chunk(document: Document, tokens: int, overlap: int, longest: int = LONGEST) -> list[Chunk]:
    """Cut a document into chunks of at most so many estimated tokens.

    A chunk is about one topic: a heading of the first two levels begins one. It is whole
    lines, or has a part of a line that is longer than a chunk. A section that fits in a chunk is never
    divided; one that does not is cut between lines, and each of its chunks but the first begins with the last lines of
    the one before. Every line that is not blank is in some chunk.

    Args:
        document: The text.
        tokens: The most estimated tokens of a chunk, without its context; below 8 counts as 8.
        overlap: How many estimated tokens of a chunk the next one of the same section repeats, up to the end of a line: a
            line is repeated whole or not at all, and never more than half a chunk.
        longest: The most characters of a chunk. The overlap shrinks in proportion.

    Returns:
        The chunks in the order of the file.
    """
    quarters = 4 * max(_MIN_TOKENS, tokens)
    room = _Room(quarters, max(_MIN_TOKENS, longest))
    carried = min(room.capacity * max(0, overlap) // max(_MIN_TOKENS, tokens), room.capacity // 2)
    packed = _packed(_sections(document, room, carried), room, carried)
    return [made for context, lines in packed if (made := _chunk(context, lines)) is not None]


def _packed(sections: Iterable[_Section], room: _Room, overlap: int) -> Iterator[tuple[str, list[_Line]]]:
    """Put sections of one topic together while they fit; cut the ones that are larger than a chunk."""
    most = room.capacity + room.line_end  # no line end after the last line
    held: list[_Line] = []
    context, cost = "", 0
    has_body = False  # a title, or another heading with nothing below it, goes with what follows
    for section in sections:
        if held and (cost + section.cost > most or (section.has_topic and has_body)):
            yield context, held
            held = []
            has_body = False
        has_body = has_body or any(line.text.strip() for line in section.lines[section.has_topic :])
        if not held:
            context, cost = section.context, 0
        for line in section.lines:
            if cost + line.cost > most:
                yield context, held
                held, cost = _tail(held, overlap, min(room.capacity // 2, most - line.cost), room)
            held.append(line)
            cost += line.cost
    if held:
        yield context, held


def _tail(lines: list[_Line], overlap: int, most: int, room: _Room) -> tuple[list[_Line], int]:
    """What the next chunk repeats: the last lines up to the overlap, and one line more than that where it fits.

    Of a line that was cut, the last sentences or words.
    """
    kept: list[_Line] = []
    cost = 0
    for line in reversed(lines):
        if cost >= overlap or cost + line.cost > most:
            break
        kept.append(line)
        cost += line.cost
    if not kept and lines[-1].piece:
        text = _end_of(lines[-1].text, min(overlap, most) - room.line_end, room)
        kept = [_Line(lines[-1].number, text, room.cost(text) + room.line_end, piece=True)] if text else []
        cost = sum(line.cost for line in kept)
    kept.reverse()
    return (kept, cost) if any(line.text.strip() for line in kept) else ([], 0)


def _end_of(text: str, most: int, room: _Room) -> str:
    """The end of a text within a cost: from the beginning of a sentence, else of a word, else nothing."""
    start = max(0, len(text) - max(0, most) // room.line_end)
    while start < len(text) and room.cost(text[start:]) > most:
        start += max(1, (len(text) - start) // 8)
    sentence = _SENTENCE_END.search(text, start)
    space = text.find(" ", start)
    if sentence and sentence.end() < len(text):
        return text[sentence.end() :].lstrip()
    return text[space + 1 :] if space >= 0 else ""


def _piece_end(text: str, start: int, most: int, room: _Room) -> int:
    """Where a piece of a long line ends: after a sentence in its second half, else at a space, else where it must."""
    low, high = start + 1, min(len(text), start + max(1, most // room.line_end))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if room.cost(text[start:middle]) <= most else (low, middle - 1)
    if low == len(text):
        return low
    half = start + (low - start) // 2
    end = max((found.end() for found in _SENTENCE_END.finditer(text, half, low)), default=0)
    if not end:
        end = text.rfind(" ", half, low) + 1
    if end <= start:
        end = safe_end(text, low)
    return end if end > start else low


def _chunk(context: str, lines: list[_Line]) -> Chunk | None:
    """The chunk of some lines, without blank ones at its ends; None where all are blank."""
    first, last = 0, len(lines)
    while first < last and not lines[first].text.strip():
        first += 1
    while first < last and not lines[last - 1].text.strip():
        last -= 1
    if first == last:
        return None
    parts = [lines[first].text]
    for before, line in pairwise(lines[first:last]):
        # Two pieces of one line stay one line: the n-th line of a chunk is line start_line + n of the file.
        parts.append(line.text if line.number == before.number else f"\n{line.text}")
    text = "".join(parts)
    digest = hashlib.sha256(embedded_text(context, text).encode("utf-8", "replace")).digest()
    return Chunk(lines[first].number, lines[last - 1].number, text, context, TextHash(digest))


def _sections(document: Document, room: _Room, overlap: int) -> Iterator[_Section]:
    """Divide a document at its headings, and a curated one at its entries too."""
    title, front = _title(document)
    dates = _dates_of(document)
    headings: list[tuple[int, str]] = []
    context = _context(title, headings, dates)
    lines: list[_Line] = []
    cost = 0
    has_topic = False
    for number, (text, start) in enumerate(_marked(document, front), 1):
        if start is not None and lines:
            yield _Section(lines, cost, context, has_topic)
            lines, cost = [], 0
        if start is not None:
            # A heading stands in its own chunk: only those above it tell where that is.
            level, words = start
            has_topic = level <= _TOPIC_LEVEL
            headings = [(depth, above) for depth, above in headings if depth < level]
            context = _context(title, headings, dates)
            headings += [(level, words)] if words else []
        for line in _fitting(_Line(number, text, room.cost(text) + room.line_end), cost, room, overlap):
            lines.append(line)
            cost += line.cost
    if lines:
        yield _Section(lines, cost, context, has_topic)


def _marked(document: Document, front: int) -> Iterator[tuple[str, tuple[int, str] | None]]:
    """Each line, with the level and the words of the heading it is; a curated entry is one of the lowest level."""
    fence = ""
    for number, text in enumerate(document.lines, 1):
        start = None
        if fence:
            closing = text.strip()
            if closing.startswith(fence) and not closing.strip(fence[0]):
                fence = ""
        elif number <= front:
            pass
        elif opened := _FENCE.match(text):
            fence = opened[1]
        elif "#" in text[:4] and (heading := _HEADING.match(text)):
            start = len(heading[1]), cut((heading[2] or "").strip(), _HEADING_CHARS)
        elif document.kind is Kind.CURATED and text.startswith("- "):
            start = _ENTRY_LEVEL, ""
        yield text, start


def _fitting(line: _Line, before: int, room: _Room, overlap: int) -> Iterator[_Line]:
    """A line, in pieces if it is longer than a chunk.

    The first shares its chunk with what stands before it in its section, if that is short, such as a heading; the others
    leave room for the overlap.
    """
    if line.cost <= room.capacity + room.line_end:
        yield line
        return
    most = room.capacity - (before if 4 * before <= room.capacity else overlap)
    at = 0
    while at < len(line.text):
        end = _piece_end(line.text, at, most, room)
        text = line.text[at:end]
        yield _Line(line.number, text, room.cost(text) + room.line_end, piece=True)
        at, most = end, room.capacity - overlap


def _title(document: Document) -> tuple[str, int]:
    """What a document calls itself, with the number of its lines that are front matter.

    The first heading of level 1, else the title of the front matter, else the name of the file.
    """
    front = 0
    named = ""
    if document.lines and document.lines[0].rstrip() == "---":
        for number, text in enumerate(document.lines[1:200], 2):
            if text.rstrip() in {"---", "..."}:
                front = number
                break
            if not named and (found := _FRONT_TITLE.match(text)):
                named = found[1]
        if not front:
            named = ""
    for text in document.lines[front : front + 200]:
        if not text.strip():
            continue
        heading = _HEADING.match(text)
        if heading and len(heading[1]) == 1 and heading[2]:
            return cut(heading[2].strip(), _HEADING_CHARS), front
        break
    return cut(named or PurePosixPath(document.path).stem, _HEADING_CHARS), front


def _dates_of(document: Document) -> tuple[str, ...]:
    """The day a note's name tells: as the name has it, and as people ask for it in the language of the note."""
    named = _DATED.fullmatch(PurePosixPath(document.path).stem)
    if not named:
        return ()
    try:
        day = date(int(named[1]), int(named[2]), int(named[3]))
    except ValueError:
        return ()
    if is_mostly_cjk("\n".join(document.lines[:_LANGUAGE_LINES])[:_LANGUAGE_CHARS]):
        spoken = f"{day.year}年{day.month}月{day.day}日"
    else:
        spoken = f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
    return day.isoformat(), spoken


def _context(title: str, headings: list[tuple[int, str]], dates: tuple[str, ...]) -> str:
    """The line that places a chunk: title, the headings above it, the day."""
    above = [words for level, words in headings if words and words != title]
    place = " > ".join([title, *above[-3:]])
    told = set(_WORD.findall(place))
    new = ", ".join(day for day in dates if not told.issuperset(_WORD.findall(day)))
    return cut(f"{place} ({new})" if new else place, _CONTEXT_CHARS)
