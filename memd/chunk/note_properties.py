"""The properties of a note: front matter, tags, links, and the times of its lines.

Tags and properties are those of Obsidian: ``tags:`` in the front matter, and ``#tag`` in the text at the
start of a word, with at least one character that is not a digit, outside of code.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any

import msgspec

from memd.chunk.line_index import LineIndex, heading_of
from memd.domain_types import Document, Label, LabelKind
from memd.text.time_phrases import dated
from memd.text.time_spans import TimeSpan
from memd.text.tokens import folded

_MOST_LINES = 2_000  # lines of front matter
_MOST_CHARS = 200_000  # characters of front matter
# Of one property in front matter that is longer: a picture or a summary, beside which the others still count.
_MOST_PROPERTY_CHARS = 20_000
_MOST_LINK_CHARS = 1_000  # words that YAML reads where a link without quotes stands
_MOST_LABELS = 2_000  # per note
_MOST_VALUE_CHARS = 200
# A property with the lines that belong to it.
_PROPERTY = re.compile(
    r"^(?P<key>\w[\w .-]*):(?:[ \t]+(?P<value>\S.*)|[ \t]*)(?P<more>(?:\n(?!\w[\w .-]*:(?:\s|$)).*)*)$",
    re.MULTILINE,
)
_ENDS = frozenset({"---", "..."})
# What may stand at the beginning of a line of front matter.
_BELONGS = re.compile(r"\w[\w .-]*:(?:\s|$)|[\s#-]|$")
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})[^\[\]\n]{0,400}\]\]")
_CODE = re.compile(r"`[^`]*`")
_FENCES = ("```", "~~~")
# Keys with the time of the note, which override its headings; and keys with the time of its creation or
# change, which count only if nothing else gives a time.
_DATE_KEYS = ("date", "day", "日期")
_MADE_KEYS = ("created", "created_at", "updated", "updated_at", "modified", "lastmod")
_NAME = re.compile(
    r"(?:^|(?<=[-_ ]))(?P<y>(?:19|20)\d\d)(?:(?P<sep>[-_.]?)(?P<m>\d\d)(?P=sep)(?P<d>\d\d)|-?[wW](?P<w>\d\d)|[-_.](?P<month>\d\d)(?![-_.]\d))(?!\d)"
)
# 2026年10月5日, 2026年10月, 2026年第40周; between the parts there may be directories.
_IN_CHINESE = re.compile(
    r"(?<!\d)(?P<y>(?:19|20)\d\d|二[〇零][〇零一二三四五六七八九]{2})(?:年-?|[-_.])"
    r"(?:第?(?P<w>[\d一二三四五六七八九十]{1,3})[周週]"
    r"|(?P<m>[\d一二三四五六七八九十]{1,3})月份?(?:-?(?P<d>[\d一二三四五六七八九十]{1,3})[日号號])?)"
)
_YEAR_LAST = re.compile(r"(?<![\d.])\d{1,2}(?P<sep>[-.])\d{1,2}(?P=sep)(?:19|20)\d\d(?!\d)")
_PART_OF_DATE = re.compile(r"\d+|\d{1,2}月|(?:\d{1,2}月)?\d{1,2}[日号號]")


class FrontMatter(msgspec.Struct, frozen=True):
    """The properties between the two lines of dashes at the beginning of a note."""

    lines: int  # number of lines, including the two of dashes; 0: there is no front matter
    values: Mapping[str, Any] = {}  # strings, and lists and mappings of them
    is_cut: bool = False  # it has properties that are not read, since it is too long


def front_matter(document: Document) -> FrontMatter:
    """Return the front matter of a note; of a broken one, the properties that can be read one by one.

    What has more than `_MOST_LINES` lines is text. Of what has more than `_MOST_PROPERTY_CHARS` characters, properties that alone are
    longer are left out, and the first others are read, `_MOST_CHARS` characters of them.
    """
    lines = document.lines
    number = front_lines(lines)
    if not number:
        return FrontMatter(0, is_cut=_has_more_lines(lines))
    text, is_cut = _short_properties("\n".join(lines[1 : number - 1]))
    return FrontMatter(number, _values(text), is_cut)


def front_lines(lines: Sequence[str]) -> int:
    """Return how many lines of a note are front matter, including the two of dashes; 0: none."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number for number, text in enumerate(lines[1:_MOST_LINES], 2) if text.rstrip() in _ENDS), 0)


def _has_more_lines(lines: Sequence[str]) -> bool:
    """Return whether a note begins with front matter that has too many lines: all that is looked at belongs to it, and it ends."""
    return (
        len(lines) > _MOST_LINES
        and lines[0].rstrip() == "---"
        and all(map(_BELONGS.match, lines[1:_MOST_LINES]))
        and any(text.rstrip() in _ENDS for text in islice(lines, _MOST_LINES, None))
    )


def _short_properties(text: str) -> tuple[str, bool]:
    """Return the part of a long front matter that is read, and whether short properties are left out."""
    if len(text) <= _MOST_PROPERTY_CHARS:
        return text, False
    kept: list[str] = []
    room = _MOST_CHARS
    for one in _PROPERTY.finditer(text):
        if one.end() - one.start() <= _MOST_PROPERTY_CHARS:
            room -= one.end() - one.start() + 1
            if room < -1:
                return "\n".join(kept), True
            kept.append(one[0])
    return "\n".join(kept), False


@lru_cache(maxsize=1)  # the labels and the dates of a note are read one after the other
def _values(text: str) -> Mapping[str, Any]:
    return _parsed(text)


def _parsed(text: str) -> Mapping[str, Any]:
    import yaml  # noqa: PLC0415 - 15 ms, for notes that have front matter alone

    # This loader returns every value as the string in the file, not as a date, number or object.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        values = yaml.load(text, Loader=loader)  # noqa: S506 - see above
    except (yaml.YAMLError, RecursionError, ValueError):
        apart = list(_PROPERTY.finditer(text))
        if [one[0] for one in apart] != [text]:
            return {key: value for one in apart for key, value in _parsed(one[0]).items()}
        # Such as `title: Decision: heron`, which people write and YAML does not allow.
        return {one["key"]: one["value"] for one in apart if not one["more"].strip()}
    return {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}


def labels_of(document: Document) -> tuple[Label, ...]:
    """Return the tags, links and properties of a note, each once, up to a limit."""
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
    """Yield kind, name as written, and value (properties only) of each label in the front matter."""
    # A long list takes no room from what has one value.
    for key, value in sorted(front.values.items(), key=lambda one: isinstance(one[1], list)):
        for text in _texts(value):
            yield LabelKind.PROPERTY, key, folded(text).strip()[:_MOST_VALUE_CHARS]
            if folded(key) in {"tags", "tag"}:
                # Obsidian reads "a, b" and "a b" alike. Brackets are in a list that is not closed.
                for tag in re.split(r"[,，\s\[\]]+", text):
                    yield LabelKind.TAG, tag.removeprefix("#").strip("/"), ""
            for name in _LINK.findall(text):
                yield LabelKind.LINK, name, ""


def _of_text(lines: Sequence[str], front: int) -> Iterator[tuple[LabelKind, str, str]]:
    """Yield the same for tags and links in the text below the front matter, outside of code."""
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
    """Return a property's value or, of a list, its values, each once."""
    values = value if isinstance(value, list) and _unquoted_link(value) is None else [value]
    # In a list of aliases, a long text may be there very often.
    return dict.fromkeys(
        one for given in values if isinstance(one := _unquoted_link(given) or given, str) and one.strip()
    )


def _unquoted_link(value: object) -> str | None:
    """Return the link that YAML reads as a list in a list, as it is written: [[name]]; None: it is none."""
    match value:
        case [[*words]] if words and all(isinstance(one, str) for one in words):
            if sum(len(str(one)) for one in words) > _MOST_LINK_CHARS:
                return None
            return f"[[{', '.join(map(str, words))}]]"
        case _:
            return None


# --- when --------------------------------------------------------------------------------------------------------


class NoteDates:
    """The times of the lines of one note.

    The time comes from the note's name, else from its front matter, else from the heading above a line; a
    heading may also name the day of the month or week that the note is about. A creation or change date in
    the front matter is used only if nothing else gives a time.
    """

    def __init__(self, document: Document, page: LineIndex) -> None:
        """Read the name, the front matter and the headings of a note."""
        front = front_matter(document)
        own = named_time(document.path) or _time_in(front, _DATE_KEYS)
        made = _time_in(front, _MADE_KEYS)
        self._otherwise = own or made
        # The units at which the time given by headings changes, and the new times.
        self._starts: list[int] = []
        self._spans: list[TimeSpan | None] = []
        if own is None or own.only_day is None:
            for unit, span in _headings(document, page, own):
                self._starts.append(unit)
                self._spans.append(span)

    def of(self, first: int, last: int) -> TimeSpan | None:
        """Return the time span of some units, `last` included; None if it is unknown."""
        at = bisect_right(self._starts, first)
        end = bisect_right(self._starts, last)
        said = [span for span in self._spans[max(0, at - 1) : end] if span is not None]
        if not said:
            return self._otherwise
        return TimeSpan(min(span.first for span in said), max(span.last for span in said))


def _headings(
    document: Document, page: LineIndex, own: TimeSpan | None
) -> Iterator[tuple[int, TimeSpan | None]]:
    """Yield the units at which the time given by headings changes, and the new time."""
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
    """Return the time in a note's name: 2026-02-09.md, 2026-W07.md, review-2026-02.md, 2026/02/09.md, 2026年2月9日.md; else None."""
    parts = PurePosixPath(path).with_suffix("").parts
    name = "-".join(parts[-3:]) if _PART_OF_DATE.fullmatch(parts[-1]) else parts[-1]
    for said, match in _dates_in(name):
        if (match.start() == 0 or match.end() == len(name)) and (span := dated(said)) is not None:
            return span
    return None


def _dates_in(name: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield what may be a date in a name, as `dated` reads it."""
    for match in _IN_CHINESE.finditer(name):
        day = f"{match['d']}日" if match["d"] else ""
        yield f"{match['y']}年" + (f"第{match['w']}周" if match["w"] else f"{match['m']}月{day}"), match
    for match in _NAME.finditer(name):
        day = f"{match['m']}-{match['d']}" if match["d"] else match["month"] or f"W{match['w']}"
        yield f"{match['y']}-{day}", match
    for match in _YEAR_LAST.finditer(name):
        yield match[0], match
