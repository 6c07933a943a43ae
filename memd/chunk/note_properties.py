"""What a note says of itself beside its text: front matter, tags, links, and of when its lines are.

Tags and properties are those of Obsidian: ``tags:`` in the front matter and ``#tag`` in the text, which begins a word, has
a character that is no digit, and stands in no code.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any

import msgspec

from memd.chunk.line_index import LineIndex, heading_of
from memd.domain_types import Document, Label, LabelKind
from memd.text.time_phrases import dated
from memd.text.time_spans import TimeSpan
from memd.text.tokens import folded

_MOST_LINES = 200  # of front matter
_MOST_CHARS = 20_000  # likewise
_MOST_LABELS = 500  # of a note
_MOST_VALUE_CHARS = 200
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})[^\[\]\n]{0,400}\]\]")
_CODE = re.compile(r"`[^`]*`")
_FENCES = ("```", "~~~")
# Of when a note is, whatever its headings say; and when it was made or changed, where nothing else says anything.
_DATE_KEYS = ("date", "day", "日期")
_MADE_KEYS = ("created", "created_at", "updated", "updated_at", "modified", "lastmod")
_NAME = re.compile(
    r"(?:^|(?<=[-_ ]))(?P<y>(?:19|20)\d\d)(?:(?P<sep>[-_.]?)(?P<m>\d\d)(?P=sep)(?P<d>\d\d)|-?[wW](?P<w>\d\d)|[-_.](?P<month>\d\d)(?![-_.]\d))(?!\d)"
)


class FrontMatter(msgspec.Struct, frozen=True):
    """The properties between the lines of dashes that a note begins with."""

    lines: int  # how many lines of the note it takes, these two included; 0: there is none
    values: Mapping[str, Any] = {}  # texts, and lists and mappings of them; empty where they cannot be read


def front_matter(document: Document) -> FrontMatter:
    """The front matter of a note; one that is broken is text like any other, and has no properties."""
    lines = document.lines
    if not lines or lines[0].rstrip() != "---":
        return FrontMatter(0)
    for number, text in enumerate(lines[1:_MOST_LINES], 2):
        if text.rstrip() in {"---", "..."}:
            return FrontMatter(number, _parsed("\n".join(lines[1 : number - 1])))
    return FrontMatter(0)


def _parsed(text: str) -> Mapping[str, Any]:
    import yaml  # noqa: PLC0415 - 15 ms, for notes that have front matter alone

    # Of this one each value is the text that stands there, with neither dates nor numbers nor objects made of it.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    if len(text) > _MOST_CHARS:
        return {}
    try:
        values = yaml.load(text, Loader=loader)  # noqa: S506 - see above
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}


def labels_of(document: Document) -> tuple[Label, ...]:
    """The tags, links and properties of a note, each once, as far as there are not too many."""
    front = front_matter(document)
    found: dict[tuple[LabelKind, str, str], Label] = {}
    for kind, written, value in chain(_of_properties(front), _of_text(document.lines, front.lines)):
        name = folded(written).strip()
        if name and len(name) <= _MOST_VALUE_CHARS and len(found) < _MOST_LABELS:
            is_property = kind is LabelKind.PROPERTY
            key = (kind, name, value if is_property else "")
            found.setdefault(key, Label(kind, name, value if is_property else written.strip()))
    return tuple(found.values())


def _of_properties(front: FrontMatter) -> Iterator[tuple[LabelKind, str, str]]:
    """Of each label its kind, its name as it is written, and the value of a property."""
    for key, value in front.values.items():
        for text in _texts(value):
            yield LabelKind.PROPERTY, key, folded(text).strip()[:_MOST_VALUE_CHARS]
            if folded(key) in {"tags", "tag"}:
                # Obsidian reads "a, b" and "a b" alike.
                for tag in re.split(r"[,，\s]+", text):
                    yield LabelKind.TAG, tag.removeprefix("#").strip("/"), ""
            for name in _LINK.findall(text):
                yield LabelKind.LINK, name, ""


def _of_text(lines: Sequence[str], front: int) -> Iterator[tuple[LabelKind, str, str]]:
    """The same of what is no code, below so many lines of front matter."""
    fence = ""
    for line in islice(lines, front, None):
        if "#" in line or "[[" in line or "`" in line or "~" in line:
            mark = line.lstrip()[:3]
            if mark in _FENCES:
                fence = "" if fence == mark else fence or mark
            elif not fence:
                words = _CODE.sub(" ", line)
                for tag in _TAG.findall(words):
                    if not tag.replace("/", "").isdecimal():
                        yield LabelKind.TAG, tag.strip("/"), ""
                for name in _LINK.findall(words):
                    yield LabelKind.LINK, name, ""


def _texts(value: object) -> Iterable[str]:
    """A property's value, or those of a list."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str) and one.strip()]


# --- when --------------------------------------------------------------------------------------------------------


class NoteDates:
    """Of when the lines of one note are.

    Its name says so, then its front matter, then the heading above a line; a heading also says which day of the month or the
    week it is that the note is of. What was made or changed on a day, by its front matter, is of that day where nothing
    else is said.
    """

    def __init__(self, document: Document, page: LineIndex) -> None:
        """Read the name, the front matter and the headings of a note."""
        front = front_matter(document)
        own = named_time(document.path) or _time_in(front, _DATE_KEYS)
        made = _time_in(front, _MADE_KEYS)
        self._otherwise = own or made
        # The units from which on another heading counts, with what that one says.
        self._starts: list[int] = []
        self._spans: list[TimeSpan | None] = []
        if own is None or own.only_day is None:
            for unit, span in _headings(document, page, own):
                self._starts.append(unit)
                self._spans.append(span)

    def of(self, first: int, last: int) -> TimeSpan | None:
        """From when to when some units are, the last one included; None where nothing says."""
        at = bisect_right(self._starts, first)
        end = bisect_right(self._starts, last)
        said = [span for span in self._spans[max(0, at - 1) : end] if span is not None]
        if not said:
            return self._otherwise
        return TimeSpan(min(span.first for span in said), max(span.last for span in said))


def _headings(
    document: Document, page: LineIndex, own: TimeSpan | None
) -> Iterator[tuple[int, TimeSpan | None]]:
    """Where what is said by headings changes, and to what."""
    above: list[tuple[int, TimeSpan | None]] = []
    unit = page.starts.find(1)
    while unit >= 0:
        heading = heading_of(document.lines[page.numbers[unit] - 1])
        if heading is not None:
            level, words = heading
            before = above[-1][1] if above else None
            while above and above[-1][0] >= level:
                above.pop()
            inherited = above[-1][1] if above else None
            span = dated(words, own) or inherited
            above.append((level, span))
            if span != before:
                yield unit, span
        unit = page.starts.find(1, unit + 1)


def _time_in(front: FrontMatter, keys: Sequence[str]) -> TimeSpan | None:
    values = {folded(key): value for key, value in front.values.items()}
    found = (dated(text) for key in keys for text in _texts(values.get(key)))
    return next((span for span in found if span is not None), None)


def named_time(path: str) -> TimeSpan | None:
    """Of when a note is by its name: 2026-02-09.md, 2026-W07.md, review-2026-02.md, 2026/02/09.md; None if it does not say."""
    parts = PurePosixPath(path).with_suffix("").parts
    name = parts[-1] if not parts[-1].isdecimal() else "-".join(parts[-3:])
    for match in _NAME.finditer(name):
        if match.start() == 0 or match.end() == len(name):
            day = f"{match['m']}-{match['d']}" if match["d"] else match["month"] or f"W{match['w']}"
            if (span := dated(f"{match['y']}-{day}")) is not None:
                return span
    return None
