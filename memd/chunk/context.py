"""The context of a chunk: the title of its document, the headings above it, and the date of the note."""

import re
from collections.abc import Collection, Iterable
from datetime import date
from pathlib import PurePosixPath

from memd.chunk.line_index import LineIndex, heading_of
from memd.chunk.note_properties import front_lines, named_time
from memd.domain_types import Document
from memd.text.tokens import is_mostly_cjk
from memd_client.context.truncate import head

Heading = tuple[int, str]  # level, words

_WORD = re.compile(r"\w+")
_FRONT_TITLE = "title:"
_QUOTES = frozenset("\"'")
_HEAD_LINES = 200  # longest distance of a title from the front matter
_HEADING_CHARS = 100  # more of a heading adds nothing
_CONTEXT_CHARS = 240
_LANGUAGE_LINES, _LANGUAGE_CHARS = 100, 2000  # how much of a note is used to detect its language
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def title_of(document: Document) -> tuple[str, int]:
    """Return the title of a document, and the number of lines of its front matter.

    The title is the first heading of level 1, else the title in the front matter, else the file's name.
    """
    front = front_lines(document.lines)
    named = next(filter(None, map(_front_title, document.lines[1 : max(1, front - 1)])), "")
    for text in document.lines[front : front + _HEAD_LINES]:
        if not text.strip():
            continue
        level, words = heading_of(text) or (0, "")
        if level == 1 and words:
            return head(words.strip(), _HEADING_CHARS), front
        break
    return head(named or PurePosixPath(document.path).stem, _HEADING_CHARS), front


def _front_title(text: str) -> str:
    if not text.startswith(_FRONT_TITLE):
        return ""
    title = text.removeprefix(_FRONT_TITLE).strip()
    title = title[1:] if title[:1] in _QUOTES else title
    return title[:-1] if title[-1:] in _QUOTES else title


def headings_above(
    document: Document, page: LineIndex, section: int, above: Iterable[Heading], since: int
) -> list[Heading]:
    """Return the headings above a section, highest level first, without the section's own heading, which is in its text.

    Args:
        document: The whole note.
        page: The index of the document's lines.
        section: The first unit of the section.
        above: The headings above an earlier section.
        since: The first unit of that section.
    """
    level = page.marks[section] if page.starts[section] else 0
    found: list[Heading] = []
    reached, at = level, section
    while reached > 1:
        # The nearest heading of a higher level; sections of those in between have ended.
        at = max(page.marks.rfind(rank, since, at) for rank in range(1, reached))
        if at < 0:
            break
        reached = page.marks[at]
        words = _words(document.lines[page.numbers[at] - 1])
        found += [(reached, words)] if words else []
    return [heading for heading in above if heading[0] < reached] + found[::-1]


def _words(text: str) -> str:
    heading = heading_of(text)
    return head(heading[1].strip(), _HEADING_CHARS) if heading else ""


def dates_of(document: Document) -> tuple[str, ...]:
    """Return the date in the name of a note, as in the name and in words in the note's language."""
    named = named_time(document.path)
    day = None if named is None else named.only_day
    if day is None:
        return ()
    return day_names(day, "\n".join(document.lines[:_LANGUAGE_LINES])[:_LANGUAGE_CHARS])


def day_names(day: date, text: str) -> tuple[str, str]:
    """Return a date in figures, and in words in the language of a text."""
    if is_mostly_cjk(text):
        return day.isoformat(), f"{day.year}年{day.month}月{day.day}日"
    return day.isoformat(), f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def context_of(title: str, headings: Iterable[Heading], dates: Collection[str]) -> str:
    """Return the context line of a chunk: title, the headings above it, the date."""
    above = [words for _, words in headings if words != title]
    place = " > ".join([title, *above[-3:]])
    if not dates:
        return head(place, _CONTEXT_CHARS)
    place_words = set(_WORD.findall(place))
    new = ", ".join(day for day in dates if not place_words.issuperset(_WORD.findall(day)))
    return head(f"{place} ({new})" if new else place, _CONTEXT_CHARS)
