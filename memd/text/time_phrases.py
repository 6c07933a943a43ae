"""Parses time phrases in English and Chinese as calendar intervals. Pure.

Weeks begin on Monday. A month, quarter, season or weekday without a year, or a day without a month, is the latest one that
has begun; the end of a range is the first one after its beginning. Seasons are those of the northern hemisphere, in whole
months; winter has the year in which it begins.
"""

import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

import msgspec

from memd.text.time_rules import (
    DATES,
    Resolve,
    end_of_period,
    is_fixed,
    names_year,
    period_of,
    resolved,
    rules,
    week_of,
)
from memd.text.time_spans import EPOCH, TimeSpan
from memd.text.time_words import MONTHS
from memd.text.tokens import folded

_MAX_READ_CHARS = 2_000  # of a text; a longer question names its time at its beginning, or not at all
_YEARS = range(1000, 9999)  # no distance from these leaves the range of dates
# Words that may precede a phrase in a text that must be a time; the text is tried without them removed first.
_LEADS = (
    re.compile("(?!)"),
    re.compile(
        "(?:since|from|starting|in|on|during|until|till|through|by|at|as of|自从?|自從|从|從|在|到|至|截至|直到) ?(?:the )?|the "
    ),
)
_PART_OF_DAY = re.compile("的?(?:凌晨|清晨|早晨|早上|上午|中午|下午|傍晚|晚上|夜里|夜裡|半夜)$")
# A text without any of these words has no time phrase; most texts are excluded by this.
_LIKELY = re.compile(
    "[0-9天日周週月年季昨今前春夏秋冬号號]|星期|礼拜|禮拜|day|week|month|year|quarter|half|fortnight|tonight|tomorrow|morning|afternoon|evening"
    rf"|\b(?:last|past|night|ago|spring|summer|autumn|fall|winter|q[1-4]|{'|'.join(MONTHS)}|{'|'.join(one[:3] for one in MONTHS)}|sept)\b"
)


class TimePhrase(msgspec.Struct, frozen=True):
    """A time phrase in a text."""

    span: TimeSpan
    start: int  # the offset in the folded text
    end: int


class UnknownTime(ValueError):
    """A text is not a time; the message quotes it."""


def read_time(text: str, now: datetime, zone: tzinfo | None = None) -> TimeSpan:
    """Parse a text that must be a time phrase and nothing else.

    Args:
        text: Such as 2026-02-09, 2026-02-09T18:30+01:00, 7d, last week, 上周, May 2026, Q3 2025, 2026-W07.
        now: The local wall-clock time.
        zone: The local time zone, for a time that names another zone; None: such a time is taken as written.

    Raises:
        UnknownTime: the text is not a time.
    """
    read = _PART_OF_DAY.sub("", " ".join(folded(text[:_MAX_READ_CHARS]).split()))
    found = _moment(read, zone) or next(
        (span for lead in _LEADS if (span := _whole(lead.sub("", read, 1), now)) is not None), None
    )
    if found is None:
        raise UnknownTime(
            f"{text[:60]!r} is no time that memd knows; write a date (2026-02-09), a time (2026-02-09T18:30), a distance "
            "(7d, 2 weeks ago) or a phrase (last week, May 2026, Q3 2025, 上周, 去年三月)"
        )
    return found


def time_phrases(text: str, now: datetime) -> tuple[TimePhrase, ...]:
    """Return the time phrases in a text, in order; of overlapping ones the longest.

    Two phrases joined by a word such as "to" or 到 are one interval, and so is a phrase after "since", up to now.

    Args:
        text: Folded, see memd.text.tokens.folded.
        now: The local wall-clock time.
    """
    if now.year not in _YEARS or not _LIKELY.search(text[:_MAX_READ_CHARS]):
        return ()
    return tuple(_joined(text, _with_years(text, list(_apart(text[:_MAX_READ_CHARS], now)), now), now))


def dated(text: str, within: TimeSpan | None = None) -> TimeSpan | None:
    """Return the first day, week, month or quarter with its year in a name or heading; None: there is none.

    Args:
        text: Its first 200 characters are read.
        within: Only times in this interval are returned, and the year may be missing.
    """
    if not (_FIGURE if within else _WITH_YEAR).search(text):
        return None
    # Separates the date of an ISO timestamp from its time.
    read = re.sub(r"(?<=\d)t(?=\d\d:)", " ", folded(text[:200]))
    for phrase in _apart(read, within.last if within else EPOCH, DATES):
        words = read[phrase.start : phrase.end]
        if within.has(phrase.span) if within else _WITH_YEAR.search(words):
            return phrase.span
    return None


_FIGURE = re.compile("[0-9一二三四五六七八九十]")
_WITH_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d{3})|[一二][零〇一二三四五六七八九]{3}年")


_LATIN = re.compile("[0-9a-z]")  # without these, no phrase of English
_DAYS = {"week": 7, "month": 28, "year": 365}


class _Found(msgspec.Struct):
    """A match of a rule, and what it means."""

    span: TimeSpan
    start: int
    end: int
    match: re.Match[str]
    resolve: Resolve
    is_fixed: bool  # which week, month or year is meant is told, by itself or by a neighbour
    names_year: bool  # and may be meant for its neighbours

    @property
    def recurs(self) -> str | None:
        """The period in which it comes again, if it does not tell which is meant."""
        return None if self.is_fixed else period_of(self.resolve)

    def latest(self, now: datetime) -> TimeSpan:
        """Return the latest that has begun at another time."""
        return resolved(self.resolve, self.match, now, is_whole=False) or self.span

    def earliest(self, first: datetime) -> TimeSpan:
        """Return the earliest that is not before a time."""
        return self.latest(end_of_period(first.date(), period_of(self.resolve) or "year"))

    def is_shorter_than(self, period: str) -> bool:
        """Return whether it is shorter than a week, month or year."""
        return self.span.length < timedelta(days=_DAYS[period])

    def settle(self, span: TimeSpan, *, names_year: bool) -> None:
        """Set which is meant."""
        self.span, self.is_fixed, self.names_year = span, True, names_year


def _apart(text: str, now: datetime, among: Collection[Resolve] | None = None) -> Iterator[_Found]:
    """Yield phrases that overlap no earlier or longer one; `among`: found by these rules alone."""
    found: list[_Found] = []
    is_latin, is_chinese = _LATIN.search(text) is not None, not text.isascii()
    for rule, resolve in rules():
        is_tried = is_latin if rule.pattern.isascii() else is_chinese
        if among is not None and resolve not in among:
            continue
        for match in rule.finditer(text) if is_tried else ():
            span = resolved(resolve, match, now, is_whole=False)
            if span is not None:
                found.append(_Found(span, *match.span(), match, resolve, is_fixed(match), names_year(match)))
    reached = 0
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if one.start >= reached:
            yield one
            reached = one.end


_BETWEEN = re.compile(r"\s*(?:to|until|till|through|thru|[-–—~到至])\s*|\s*(?P<listed>and|&|和|与|與)\s*")
_LISTED = re.compile(
    r"(?:,|，|、| *(?:, )?(?:and|or)\b| *& *| *(?:和|与|與|及|以及|或|或者|还是|還是)) *(?:(?:in|on)\b *)?(?:the )?"
)
_FROM = re.compile(r"(?:\b(?:between|from)(?: the)?|从|從|在)\s*$")
_SINCE = re.compile(r"(?:\b(?:since|after)(?: the)?|自从?|自從)\s*$")
_ONWARDS = re.compile(r"以来|以來|以后|以後|之后|之後|至今|起")
_UP_TO = re.compile(r"\b(?:before|until|till)(?: the)?\s*$")
_EARLIER = re.compile("[之以]?前(?![天日晚几幾些阵陣])")
_WEEK_OF = re.compile(r"\b(?:the )?week (?:of|beginning|starting)(?: on)?(?: the)?\s*$")
_THAT_WEEK = re.compile("的?(?:那一?|这一?|所在的?|当)(?:个)?(?:周|週|星期|礼拜|禮拜)")


def _with_years(text: str, found: list[_Found], now: datetime) -> list[_Found]:
    """Give phrases the year, month or week that a neighbour tells, in ranges and in lists."""
    for one, after in reversed(list(pairwise(found))):
        if one.recurs is None or after.recurs:
            continue
        is_range = after.is_shorter_than(one.recurs) and _range(text, one, after)
        is_list = after.names_year and one.recurs == period_of(after.resolve) and _is_list(text, one, after)
        if is_range or is_list:
            one.settle(one.latest(after.span.last), names_year=after.names_year)
    for before, one in pairwise(found):
        if one.recurs is None:
            continue
        if _range(text, before, one):
            if before.is_shorter_than(one.recurs):
                one.settle(one.earliest(before.span.first), names_year=before.names_year)
        elif (_is_alike(before, one) or _is_in_month(before, one)) and _is_list(text, before, one):
            span = one.earliest(before.span.first)
            if span.first <= now:
                one.settle(span, names_year=before.names_year)
    return found


def _range(text: str, one: _Found, after: _Found) -> re.Match[str] | None:
    """Return the match of the word between two phrases that makes one interval of them."""
    between = _BETWEEN.fullmatch(text, one.end, after.start)
    is_range = between and (not between["listed"] or _FROM.search(text, max(0, one.start - 30), one.start))
    return between if is_range else None


def _is_alike(before: _Found, one: _Found) -> bool:
    """Return whether a phrase tells the year, month or week that the next one lacks."""
    return before.recurs is None and period_of(before.resolve) == one.recurs


def _is_in_month(before: _Found, one: _Found) -> bool:
    """Return whether a day without its month, such as the second of 3月5号和6号, follows a whole date."""
    return one.recurs == "month" and before.recurs != "month" and before.span.only_day is not None


def _is_list(text: str, one: _Found, after: _Found) -> bool:
    return _LISTED.fullmatch(text, one.end, after.start) is not None


def _joined(text: str, found: list[_Found], now: datetime) -> Iterator[TimePhrase]:
    """Join phrases with the words around them that change the interval, or make one interval of two."""
    at = 0
    while at < len(found):
        span, start, end = found[at].span, found[at].start, found[at].end
        at += 1
        lead = text[max(0, start - 30) : start]
        before = start - len(lead)
        if span.only_day is not None and (week := _WEEK_OF.search(lead)):
            span, start = week_of(span.first.date()), before + week.start()
        elif span.only_day is not None and (week := _THAT_WEEK.match(text, end)):
            span, end = week_of(span.first.date()), week.end()
            found[at - 1].end = end
        if at < len(found) and _range(text, found[at - 1], found[at]):
            begin = _FROM.search(lead)
            whole = _interval(span, found[at].span)
            yield TimePhrase(whole, before + begin.start() if begin else start, found[at].end)
            at += 1
            continue
        if _UP_TO.search(lead) or _EARLIER.match(text, end):
            continue
        if (since := _SINCE.search(lead)) and span.first <= now:
            span, start = TimeSpan(span.first, now), before + since.start()
        elif (since := _ONWARDS.match(text, end)) and span.first <= now:
            span, end = TimeSpan(span.first, now), since.end()
        yield TimePhrase(span, start, end)


def _interval(span: TimeSpan, until: TimeSpan) -> TimeSpan:
    """Return the interval from a span to the end of a later one."""
    first = span.first
    while first > until.last:  # from 29 February 2024 to 3 January 2024
        first = first.replace(year=first.year - 1, day=min(first.day, 28))
    return TimeSpan(first, until.last)


def _whole(text: str, now: datetime) -> TimeSpan | None:
    if now.year not in _YEARS:
        return None
    for rule, resolve in rules():
        match = rule.fullmatch(text)
        if match is not None and (span := resolved(resolve, match, now, is_whole=True)) is not None:
            return span
    phrases = time_phrases(text, now)
    return phrases[0].span if phrases and (phrases[0].start, phrases[0].end) == (0, len(text)) else None


def _moment(text: str, zone: tzinfo | None) -> TimeSpan | None:
    """Parse an ISO 8601 date with a time of day."""
    if ":" not in text:
        return None
    try:
        at = datetime.fromisoformat(text.upper())
        at = (
            at.astimezone(zone).replace(tzinfo=None)
            if at.tzinfo is not None and zone is not None
            else at.replace(tzinfo=None)
        )
    except (ValueError, OverflowError):
        return None
    at = at.replace(microsecond=0)
    # A time given to the minute covers the whole minute.
    return TimeSpan(at, at if text.count(":") > 1 and text[16:17] == ":" else at.replace(second=59))
