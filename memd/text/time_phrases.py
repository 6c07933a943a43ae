"""Parses time phrases in English and Chinese as calendar intervals. Pure.

Weeks begin on Monday. A month, quarter, season or weekday without a year is the latest one that has begun. Seasons are those
of the northern hemisphere, in whole months; winter has the year in which it begins.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import cache

import msgspec

from memd.text.time_spans import EPOCH, TimeSpan, whole_days
from memd.text.tokens import folded

_MAX_READ_CHARS = 2_000  # of a text; a longer question names its time at its beginning, or not at all
_MOST_BACK = 3_650  # of any unit
_YEARS = range(1000, 9999)  # no distance from these leaves the range of dates


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
    read = " ".join(folded(text[:_MAX_READ_CHARS]).split())
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
    return tuple(_joined(text, list(_apart(text[:_MAX_READ_CHARS], now)), now))


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
    dates = {_date, _year_and_month, _week_of_year, _quarter, _whole_month, _day_of_month}
    for phrase in _apart(read, within.last if within else EPOCH, dates):
        words = read[phrase.start : phrase.end]
        if within.has(phrase.span) if within else _WITH_YEAR.search(words):
            return phrase.span
    return None


_FIGURE = re.compile("[0-9一二三四五六七八九十]")
_WITH_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d{3})|[一二][零〇一二三四五六七八九]{3}年")


def _apart(text: str, now: datetime, among: Collection["Resolve"] | None = None) -> Iterator[TimePhrase]:
    """Yield phrases that overlap no earlier or longer one; `among`: found by these rules alone."""
    found: list[tuple[int, int, TimeSpan]] = []
    for rule, resolve in _rules():
        for match in rule.finditer(text) if among is None or resolve in among else ():
            span = _resolved(resolve, match, now, is_whole=False)
            if span is not None:
                found.append((match.start(), -match.end(), span))
    reached = 0
    for start, end, span in sorted(found, key=lambda one: one[:2]):
        if start >= reached:
            yield TimePhrase(span, start, -end)
            reached = -end


_BETWEEN = re.compile(r"\s*(?:to|until|till|through|thru|[-–—~到至])\s*|\s*(?P<listed>and|和|与|與)\s*")
_FROM = re.compile(r"(?:\b(?:between|from)(?: the)?|从|從|在)\s*$")
_SINCE = re.compile(r"(?:\b(?:since|after)(?: the)?|自从?|自從)\s*$")
_ONWARDS = re.compile(r"以来|以來|以后|以後|之后|之後|至今|起")
_UP_TO = re.compile(r"\b(?:before|until|till)(?: the)?\s*$")
_EARLIER = re.compile(r"(?:之|以)前")
_WEEK_OF = re.compile(r"\b(?:the )?week (?:of|beginning|starting)(?: on)?(?: the)?\s*$")
_THAT_WEEK = re.compile("的?(?:那一?|这一?|所在的?|当)(?:个)?(?:周|週|星期|礼拜|禮拜)")


def _joined(text: str, found: list[TimePhrase], now: datetime) -> Iterator[TimePhrase]:
    """Join phrases with the words around them that change the interval, or make one interval of two."""
    at = 0
    while at < len(found):
        span, start, end = found[at].span, found[at].start, found[at].end
        at += 1
        lead = text[max(0, start - 30) : start]
        before = start - len(lead)
        if span.only_day is not None and (week := _WEEK_OF.search(lead)):
            span, start = _week(span.first.date()), before + week.start()
        elif span.only_day is not None and (week := _THAT_WEEK.match(text, end)):
            span, end = _week(span.first.date()), week.end()
        if at < len(found) and (between := _BETWEEN.fullmatch(text, end, found[at].start)):
            begin = _FROM.search(lead)
            if begin or not between["listed"]:
                first, last = span.first, found[at].span.last
                while first > last:  # March to May 2025
                    first = first.replace(year=first.year - 1, day=min(first.day, 28))
                yield TimePhrase(
                    TimeSpan(first, last), before + begin.start() if begin else start, found[at].end
                )
                at += 1
                continue
        if _UP_TO.search(lead) or _EARLIER.match(text, end):
            continue
        if (since := _SINCE.search(lead)) and span.first <= now:
            span, start = TimeSpan(span.first, now), before + since.start()
        elif (since := _ONWARDS.match(text, end)) and span.first <= now:
            span, end = TimeSpan(span.first, now), since.end()
        yield TimePhrase(span, start, end)


def _whole(text: str, now: datetime) -> TimeSpan | None:
    if now.year not in _YEARS:
        return None
    for rule, resolve in _rules():
        match = rule.fullmatch(text)
        if match is not None and (span := _resolved(resolve, match, now, is_whole=True)) is not None:
            return span
    phrases = time_phrases(text, now)
    return phrases[0].span if phrases and (phrases[0].start, phrases[0].end) == (0, len(text)) else None


# --- the calendar ------------------------------------------------------------------------------------------------


def _week(day: date) -> TimeSpan:
    monday = day - timedelta(days=day.weekday())
    return whole_days(monday, monday + timedelta(days=6))


def _months(year: int, month: int, count: int = 1) -> TimeSpan:
    """Return consecutive months as an interval; month may be outside of 1 to 12."""
    years, place = divmod(month - 1, 12)
    to_years, to_place = divmod(month + count - 2, 12)
    last = date(year + to_years, to_place + 1, monthrange(year + to_years, to_place + 1)[1])
    return whole_days(date(year + years, place + 1, 1), last)


def _part_of_month(span: TimeSpan, part: str) -> TimeSpan:
    """Return the beginning of a month (up to the 10th), its middle, or its end (from the 21st on)."""
    first, last = span.first.date(), span.last.date()
    if _PARTS[part] == 0:
        return whole_days(first, first.replace(day=10))
    return (
        whole_days(first.replace(day=11), first.replace(day=20))
        if _PARTS[part] == 1
        else whole_days(first.replace(day=21), last)
    )


def _begun(spans: Callable[[int], TimeSpan], now: datetime) -> TimeSpan:
    """Return the latest of a yearly interval that has begun."""
    span = spans(now.year)
    return span if span.first <= now else spans(now.year - 1)


# --- words -------------------------------------------------------------------------------------------------------

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "",
            "a an one",
            "two couple",
            "three few several",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        )
    )
    for word in words.split()
}
_ORDINALS = {
    word: number
    for number, words in enumerate(("", "first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th"))
    for word in words.split()
} | {"last": -1, "final": -1}
_DIGITS = {"〇": 0, "零": 0, "两": 2, "兩": 2, "几": 3, "幾": 3} | {
    one: n for n, one in enumerate("一二三四五六七八九", 1)
}
_PARTS = {
    "early": 0, "beginning": 0, "start": 0, "初": 0, "上旬": 0,
    "mid": 1, "middle": 1, "中": 1, "中旬": 1,
    "late": 2, "end": 2, "底": 2, "末": 2, "下旬": 2,
}  # fmt: skip
_SEASONS = {
    "spring": 3,
    "春": 3,
    "summer": 6,
    "夏": 6,
    "autumn": 9,
    "fall": 9,
    "秋": 9,
    "winter": 12,
    "冬": 12,
}
_BACK = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "yesterday": 1,
    "last night": 1, "yesterday morning": 1, "yesterday evening": 1, "the day before yesterday": 2,
    "tomorrow": -1, "the day after tomorrow": -2,
    "大前天": 3, "前天": 2, "前日": 2, "前晚": 2, "昨": 1, "今": 0, "明天": -1, "明日": -1, "明晚": -1, "后天": -2, "後天": -2,
    "大后天": -3, "大後天": -3,
}  # fmt: skip
_RELATIVE = {
    "last": -1, "previous": -1, "this": 0, "the current": 0, "current": 0, "next": 1,
    "上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "当": 0, "當": 0, "下": 1, "下下": 2,
    "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2, "後年": 2,
    "last year": -1, "this year": 0, "next year": 1,
}  # fmt: skip

# Words that may precede a phrase in a text that must be a time; the text is tried without them removed first.
_LEADS = (
    re.compile("(?!)"),
    re.compile(
        "(?:since|from|starting|in|on|during|until|till|through|by|at|as of|自从?|自從|从|從|在|到|至|截至|直到) ?(?:the )?|the "
    ),
)
# A text without any of these words has no time phrase; most texts are excluded by this.
_LIKELY = re.compile(
    "[0-9天日周週月年季昨今前春夏秋冬号號]|星期|礼拜|禮拜|day|week|month|year|quarter|half|fortnight|tonight|tomorrow|morning|afternoon|evening"
    rf"|\b(?:last|past|night|ago|spring|summer|autumn|fall|winter|q[1-4]|{'|'.join(_MONTHS)}|{'|'.join(one[:3] for one in _MONTHS)}|sept)\b"
)

_N = rf"(?P<n>\d{{1,4}}|{'|'.join(_NUMBERS)})"
_WD = rf"(?P<wd>{'|'.join(_WEEKDAYS)})"
_WD_SHORT = rf"(?P<wd>{'|'.join(_WEEKDAYS)}|mon|tues?|wed|thur?s?|fri|sat|sun)"
_MON = rf"(?P<mon>{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
_YEAR = r"(?P<year>(?:1[0-9]|2[01])\d\d|(?:last|this|next) year)"
_REL = r"(?P<rel>last|previous|this|the current|current|next)"
# Months: "last month", "May", "May 2025", "last May", "May of last year".
_EN_MONTH = rf"(?:the )?(?:{_REL} month|(?:(?P<which>last|this|next) )?{_MON}(?:,? (?:of )?{_YEAR})?)"
_PART = r"(?P<part>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)[- ]"

_ZN = "(?P<n>[0-9]{1,4}|[一二三四五六七八九十两兩几幾]{1,3})"
_ZWEEK = "(?:周|週|星期|礼拜|禮拜)"
_ZDAY = "(?P<wd>[一二三四五六日天])"
_ZREL = "(?P<rel>上上|上|这|這|本|当|當|下下|下)"
_ZYEAR = "(?P<year>[0-9]{4} ?年|[一二三四五六七八九〇零]{4}年|大前年|前年|去年|今年|本年|明年|后年|後年)"
_NO_NUMBER = "(?<![0-9一二三四五六七八九十百千几幾两兩.个個])"
_ZMONTH = f"(?:{_ZREL}(?:个|個)?月|(?:{_ZYEAR} ?的? ?)?{_NO_NUMBER}(?P<mon>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]) ?月)(?:份|分)?"
_ZPART = " ?的?(?P<part>初|上旬|中旬|下旬|底|末)"


def _number(text: str) -> int:
    """Parse a number of at most two digits, as Chinese or English words or as figures.

    Raises:
        ValueError: it is none, such as 十十.
    """
    if text.isdecimal():
        return int(text)
    if text in _NUMBERS:
        return _NUMBERS[text]
    if "十" in text:
        tens, _, ones = text.partition("十")
        if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
            raise ValueError(text)
        return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)
    return int("".join(str(_DIGITS[one]) for one in text))


def _numbers(text: str) -> tuple[int, int]:
    """Return the least and the most that a number means: 2 and 3 for 两三, 20 and 30 for 二三十, 11 and 19 for 十几, 5 and 5 for 5.

    Raises:
        ValueError: it is none, such as 三二.
    """
    if text in {"few", "several", "几", "幾"}:
        return 2, 7
    if open_digit := re.search("[几幾]", text):
        least, most = ("二" if text.endswith("十") else "一"), "九"
        begin, end = open_digit.span()
    elif in_doubt := re.search("[一二两兩三四五六七八九]{2,}", text):
        begin, end = in_doubt.span()
        least, most = text[begin], text[begin + 1 : end]
    else:
        return _number(text), _number(text)
    numbers = _number(text[:begin] + least + text[end:]), _number(text[:begin] + most + text[end:])
    if numbers[0] >= numbers[1] or len(most) > 1:
        raise ValueError(text)
    return numbers


def _weekday(text: str) -> int:
    """Return the number of a weekday, 0 for Monday."""
    if len(text) == 1:
        return "一二三四五六日".index(text.replace("天", "日"))
    return next(n for n, name in enumerate(_WEEKDAYS) if name[:3] == text[:3])


def _year(text: str | None, now: datetime) -> int | None:
    """Return the named year; None: none is named."""
    if text is None:
        return None
    if text in _RELATIVE:
        return now.year + _RELATIVE[text]
    return _number(text.removesuffix("年").strip())


def _month(match: re.Match[str], now: datetime) -> TimeSpan:
    """Return the month matched by _EN_MONTH or _ZMONTH."""
    named = match.groupdict()
    if named.get("rel"):
        return _months(now.year, now.month + _RELATIVE[named["rel"]])
    mon = named["mon"].rstrip(".")
    at = next((n for n, name in enumerate(_MONTHS, 1) if name[:3] == mon[:3]), 0) or _number(mon)
    year = _year(named.get("year"), now)
    if year is not None:
        return _months(year, at)
    which = named.get("which")
    begun = _begun(lambda one: _months(one, at), now)
    if which == "next":
        return _months(begun.first.year + 1, at)
    is_now = begun.last >= now
    return _months(begun.first.year - (which == "last" and is_now), at)


# --- rules -------------------------------------------------------------------------------------------------------

Resolve = Callable[[re.Match[str], datetime, bool], TimeSpan | None]
_PATTERNS: list[tuple[str, Resolve]] = []

_INTRODUCED = re.compile(
    r"(?:^|[^a-z])(?:in|during|since|of|from|to|and|until|till|throughout|by|before|after|between|this|last|every) (?:the )?$"
)
_UNITS = {
    "d": "day",
    "w": "week",
    "y": "year",
    "h": "hour",
    "天": "day",
    "日": "day",
    "年": "year",
    "小": "hour",
}


def _rule(*patterns: str) -> Callable[[Resolve], Resolve]:
    """Register a function for matches of some patterns; it is passed whether the match is the whole text."""

    def added(resolve: Resolve) -> Resolve:
        _PATTERNS.extend((pattern, resolve) for pattern in patterns)
        return resolve

    return added


@cache
def _rules() -> Sequence[tuple[re.Pattern[str], Resolve]]:
    """Return all rules. Compiling them takes 50 ms, so it is done on first use."""
    return [(re.compile(pattern), resolve) for pattern, resolve in _PATTERNS]


def _resolved(resolve: Resolve, match: re.Match[str], now: datetime, *, is_whole: bool) -> TimeSpan | None:
    """Apply a rule to a match; None if the match is a part of a word, no date, or outside of all dates."""
    text, start, end = match.string, match.start(), match.end()
    if _is_letter(text, start - 1) and _is_letter(text, start):
        return None
    if _is_letter(text, end - 1) and _is_letter(text, end):
        return None
    try:
        return resolve(match, now, is_whole)
    except (ValueError, OverflowError):
        return None


def _is_letter(text: str, at: int) -> bool:
    """Return whether an ASCII letter, a digit or an underscore is at an offset."""
    return 0 <= at < len(text) and text[at].isascii() and (text[at].isalnum() or text[at] == "_")


def _is_introduced(match: re.Match[str]) -> bool:
    """Return whether a word such as "in" precedes a match: otherwise "may" and "2026" are ambiguous."""
    return _INTRODUCED.search(match.string, 0, match.start()) is not None


@_rule(
    r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})",
    r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})",
    r"(?P<y>\d{4})\.(?P<m>\d{1,2})\.(?P<d>\d{1,2})",
    r"(?P<y>(?:19|20)\d\d)(?P<m>\d\d)(?P<d>\d\d)",
)
def _date(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    day = date(int(match["y"]), int(match["m"]), int(match["d"]))
    return (
        whole_days(day, day)
        if is_whole or len(match[0]) > len("20260209") or not match[0].isdecimal()
        else None
    )


@_rule(r"(?P<y>\d{4})-(?P<m>\d\d)(?!-?\d)", r"(?P<m>\d\d)/(?P<y>\d{4})")
def _year_and_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    return _months(int(match["y"]), int(match["m"])) if 1 <= int(match["m"]) <= 12 else None


@_rule(
    r"(?P<year>\d{4})-?w(?P<week>\d{1,2})",
    rf"(?:calendar )?week (?P<week>\d{{1,2}})(?:,? (?:of )?{_YEAR})?",
    r"w(?P<week>\d{1,2})",
)
@_rule(f"(?:{_ZYEAR} ?的? ?)?第 ?(?P<week>[0-9]{{1,2}}|[一二三四五六七八九十]{{1,3}}) ?(?:个|個)?{_ZWEEK}")
def _week_of_year(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, number = _year(match.groupdict().get("year"), now), _number(match["week"])
    if year is None and not is_whole:
        return None  # the second week of a course, or of a month

    def week(one: int) -> TimeSpan:
        return _week(date.fromisocalendar(one, number, 1))

    return _begun(week, now) if year is None else week(year)


@_rule(rf"q(?P<q>[1-4])(?:[ /-]*(?:of )?{_YEAR})?", r"(?P<year>\d{4})[ /-]?q(?P<q>[1-4])")
@_rule(rf"(?:the )?(?P<q>first|second|third|fourth|[1-4](?:st|nd|rd|th)) quarter(?: (?:of )?{_YEAR})?")
@_rule(f"(?:{_ZYEAR} ?的? ?)?第? ?(?P<q>[1-4一二三四]) ?季度")
def _quarter(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, number = _year(match["year"], now), _ORDINALS.get(match["q"]) or _number(match["q"][0])

    def quarter(one: int) -> TimeSpan:
        return _months(one, 3 * number - 2, 3)

    return _begun(quarter, now) if year is None else quarter(year)


@_rule(rf"(?:the )?{_REL} quarter", f"{_ZREL}(?:一|个|個)?季度?")
def _relative_quarter(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    return _months(now.year, 3 * ((now.month - 1) // 3 + _RELATIVE[match["rel"]]) + 1, 3)


@_rule(rf"h(?P<half>[12])[ /-]*{_YEAR}", rf"(?:the )?(?P<half>first|second) half of (?:{_YEAR}|the year)")
@_rule(f"(?:{_ZYEAR} ?的? ?)?(?P<half>上|下)半年")
def _half(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, begin = _year(match["year"], now), 1 if match["half"] in {"1", "first", "上"} else 7

    def half(one: int) -> TimeSpan:
        return _months(one, begin, 6)

    return _begun(half, now) if year is None else half(year)


@_rule(r"(?P<year>(?:19|20)\d\d)", r"(?:the )?(?P<year>(?:last|this|next) year)", _ZYEAR)
def _whole_year(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year = _year(match["year"], now)
    if year is None or (match["year"].isdecimal() and not is_whole and not _is_introduced(match)):
        return None
    return _months(year, 1, 12)


@_rule(
    rf"{_PART}(?:{_YEAR}|the year)",
    "(?:(?P<year>[0-9]{4} ?年|大前年|前年|去年|今年|明年)年?|(?<![0-9一二三四五六七八九十每两兩几半多])年)(?P<part>初|底|末)",
)
def _part_of_year(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, part = _year(match["year"], now), _PARTS[match["part"].removeprefix("the ").removesuffix(" of")]
    begin, count = ((1, 3), (5, 4), (10, 3))[part]

    def months(one: int) -> TimeSpan:
        return _months(one, begin, count)

    return _begun(months, now) if year is None else months(year)


@_rule(
    rf"(?:the )?(?:(?P<which>last|this|next) )?(?P<season>spring|summer|autumn|fall|winter)(?:,? (?:of )?{_YEAR})?"
)
@_rule(f"(?:{_ZYEAR} ?的? ?)?(?P<season>[春夏秋冬])(?:天|季)")
def _season(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, which = _year(match["year"], now), match.groupdict().get("which")
    begin = _SEASONS[match["season"]]

    def season(one: int) -> TimeSpan:
        return _months(one, begin, 3)

    if year is not None:
        return season(year)
    if which is None and not is_whole and match["season"].isascii() and not _is_introduced(match):
        return None  # a spring, a fall, winter tyres
    begun = _begun(season, now)
    if which == "next" or (which == "this" and begun.last < now):
        return season(begun.first.year + 1)
    return season(begun.first.year - 1) if which == "last" and begun.last >= now else begun


@_rule(_EN_MONTH, _ZMONTH)
def _whole_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    named = match.groupdict()
    mon = (named["mon"] or "").rstrip(".")
    # A verb or the name of a person: such a word is a month only with a sign of that.
    is_vague = (
        bool(mon) and (mon in {"may", "march"} or mon not in _MONTHS) and mon.isascii() and mon.isalpha()
    )
    is_said = is_whole or named.get("which") or named.get("year") or _is_introduced(match)
    return _month(match, now) if is_said or not is_vague else None


@_rule(rf"{_PART}{_EN_MONTH}", r"(?:the )?(?P<part>beginning|start|middle|end) of (?P<rel>the) month")
@_rule(f"{_ZMONTH}{_ZPART}", f"{_NO_NUMBER}(?<!每)(?P<rel>月){_ZPART}")
def _part_of_a_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    part = match["part"].removeprefix("the ").removesuffix(" of")
    if match["rel"] not in {"the", "月"}:
        return _part_of_month(_month(match, now), part)
    begun = _part_of_month(_months(now.year, now.month), part)
    return begun if begun.first <= now else _part_of_month(_months(now.year, now.month - 1), part)


@_rule(rf"(?:the )?(?P<nth>{'|'.join(_ORDINALS)}) {_WD} (?:of|in) {_EN_MONTH}")
@_rule(f"{_ZMONTH} ?的? ?(?:第 ?(?P<nth>[1-5一二三四五]) ?|最后一?|最後一?)(?:个|個)?{_ZWEEK}{_ZDAY}")
def _weekday_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    month = _month(match, now)
    nth = -1 if match["nth"] is None else _ORDINALS.get(match["nth"]) or _number(match["nth"])
    days = (month.first.date() + timedelta(days=n) for n in range(month.last.day))
    day = [day for day in days if day.weekday() == _weekday(match["wd"])][nth - (nth > 0)]
    return whole_days(day, day)


@_rule(rf"(?:the )?(?P<nth>{'|'.join(_ORDINALS)}) week (?:of|in) {_EN_MONTH}")
@_rule(f"{_ZMONTH} ?的? ?(?:第 ?(?P<nth>[1-5一二三四五]) ?|最后一?|最後一?)(?:个|個)?{_ZWEEK}")
def _week_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    month, nth = _month(match, now), match["nth"]
    number = -1 if nth is None else _ORDINALS.get(nth) or _number(nth)
    first, last = month.first.date(), month.last.date()
    begin = last - timedelta(days=6) if number < 0 else first + timedelta(days=7 * number - 7)
    return whole_days(begin, min(begin + timedelta(days=6), last))


@_rule(
    rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_EN_MONTH}",
    rf"{_MON} (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? {_YEAR})?",
    f"{_ZMONTH} ?(?P<day>[0-9]{{1,2}}|[一二三四五六七八九十]{{1,3}}) ?(?:日|号|號)",
)
def _day_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    named, number = match.groupdict(), _number(match["day"])
    if named.get("rel") or named.get("year") or named.get("which"):
        day = _month(match, now).first.date().replace(day=number)
        return whole_days(day, day)
    month = _month(match, now).first.month
    years = [year for year in range(now.year, now.year - 5, -1) if number <= monthrange(year, month)[1]]
    past = [date(year, month, number) for year in years if date(year, month, number) <= now.date()]
    return whole_days(past[0], past[0]) if past else None


@_rule(rf"(?:the )?{_REL} week", f"{_ZREL}(?:一|个|個)?{_ZWEEK}", r"(?:the )?week before (?P<rel>last)")
def _relative_week(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    weeks = -2 if "before" in match[0] else _RELATIVE[match["rel"]]
    return _week(now.date() + timedelta(weeks=weeks))


@_rule(
    r"(?:the )?(?P<rel>last|past|this|next|over the|at the|on the) weekend",
    f"(?:{_ZREL}(?:个|個)?)?(?:周|週)末",
    "weekend",
)
def _weekend(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    rel, today = match.groupdict().get("rel"), now.date()
    if match[0] == "weekend" and not is_whole:
        return None
    if rel in {"this", "next"} or (rel is not None and not rel.isascii()):
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=_RELATIVE[rel])
        return whole_days(monday + timedelta(days=5), monday + timedelta(days=6))
    back = (today.weekday() - 5) % 7
    saturday = today - timedelta(days=back + 7 * (rel in {"last", "past"} and back < 2))
    return whole_days(saturday, saturday + timedelta(days=1))


@_rule(
    rf"(?P<rel>last|this past|past|this|next) {_WD_SHORT}",
    rf"{_WD_SHORT}(?: of|'s)? (?P<rel>last|this|next) week",
    rf"(?P<rel>last|this|next) week(?:'s| on)? {_WD_SHORT}",
    rf"(?P<on>on )?{_WD}(?P<rel>'s| morning| afternoon| evening| night)?",
    rf"{_WD} (?P<rel>before last)",
)
def _weekday_named(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve a weekday: "last Thursday" is the latest one before today, "Thursday last week" that of the previous week."""
    rel, today, place = match["rel"], now.date(), _weekday(match["wd"])
    if "week" in match[0] or rel == "this":
        day = today + timedelta(days=place - today.weekday(), weeks=_RELATIVE[rel])
    elif rel == "next":
        day = today + timedelta(days=(place - today.weekday() - 1) % 7 + 1)
    elif rel in {"last", "past", "this past", "before last"}:
        day = _latest(place, today) - timedelta(weeks=rel == "before last")
    elif is_whole or rel or match["on"]:
        day = _latest(place, today + timedelta(days=1))
    else:
        return None
    return whole_days(day, day)


@_rule(f"(?:(?P<rel>上上|上|这|這|本|下下|下)(?:一|个|個)?)?{_ZWEEK}{_ZDAY}")
def _chinese_weekday(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 上周四: the weekday of the previous week, which begins on Monday."""
    today, place = now.date(), _weekday(match["wd"])
    before = match.string[max(0, match.start() - 1) : match.start()]
    if match["rel"] is None and before and before in "每毎个個0123456789一二三四五六七八九十两兩几幾多半第":
        return None  # 每周一, 两周一次
    if match["rel"] is None:
        day = _latest(place, today + timedelta(days=1))
    else:
        day = today + timedelta(days=place - today.weekday(), weeks=_RELATIVE[match["rel"]])
    return whole_days(day, day)


@_rule("|".join(sorted((word for word in _BACK if word.isascii()), key=len, reverse=True)))
@_rule(
    "大前天|(?<![以之目提])前[天日晚]|昨(?:天|日|晚|夜|儿|兒|早)|今(?:天|日|晚|夜|儿|兒|早)|大?[后後]天|明[天日晚]"
)
def _near_day(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    back = _BACK[match[0]] if match[0] in _BACK else _BACK[match[0][0]]
    day = now.date() - timedelta(days=back)
    return whole_days(day, day)


@_rule(
    rf"(?<!-)(?:an? )?{_N}(?: of)? (?P<unit>day|week|fortnight|month|year|hour|minute|{'|'.join(_WEEKDAYS)})s? ago",
    r"(?P<n>half) an? (?P<unit>year|month) ago",
    rf"(?<![百千])(?:差不多|大约|大概)?{_ZN} ?(?:个|個)?(?P<unit>天|日|{_ZWEEK}|月|年|小时|小時|分钟|分鐘)(?:多)?(?:以|之)?前",
    "(?P<n>半)(?:个|個)?(?P<unit>年|月)(?:多)?(?:以|之)?前",
)
def _ago(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    unit, today = _unit(match["unit"]), now.date()
    if match["n"] in {"half", "半"}:
        return (
            _back(now, "month", 6)
            if unit == "year"
            else whole_days(today - timedelta(days=18), today - timedelta(days=12))
        )
    least, most = _numbers(match["n"])
    if most > _MOST_BACK:
        return None
    if unit in _WEEKDAYS:
        latest = _latest(_WEEKDAYS.index(unit), today)
        return whole_days(latest - timedelta(weeks=most - 1), latest - timedelta(weeks=least - 1))
    span = _back(now, unit, most)
    if least < most:
        return TimeSpan(span.first, _back(now, unit, least).last)
    return TimeSpan(span.first, span.first) if is_whole and unit in {"hour", "minute"} else span


@_rule(
    r"(?P<n>\d{1,4}) ?(?P<unit>days?|d|weeks?|wks?|w|months?|mo|years?|yrs?|y|hours?|hrs?|h|minutes?|mins?)"
)
@_rule(
    f"(?P<n>[0-9]{{1,4}}) ?(?:(?:个|個)?(?P<unit>天|{_ZWEEK}|年|小时|小時|分钟|分鐘)|(?:个|個)(?P<months>月))"
)
def _distance(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 7d: the day seven days ago."""
    unit, count = _unit(match["unit"] or "month"), int(match["n"])
    if not is_whole or count > _MOST_BACK:
        return None
    if unit in {"hour", "minute"}:
        at = _back(now, unit, count).first
        return TimeSpan(at, at)
    return whole_days(_day_back(now.date(), unit, count), _day_back(now.date(), unit, count))


@_rule(
    rf"(?:the |these |in the |over the |within the )?(?:last|past|previous) (?:{_N}(?: of)? )?(?P<unit>day|week|fortnight|month|year|hour)s?",
    f"(?:过去|過去|最近|近|这|這|(?<![以之目])前)(?:的)?{_ZN} ?(?:个|個)?(?P<unit>天|日|{_ZWEEK}|月|年|小时|小時)(?:以内|以來|以来|之内|内|里|裡|来|來)?",
)
def _lately(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    unit, said = _unit(match["unit"]), match["n"]
    if (
        said is None
        and unit != "fortnight"
        and not (
            "past" in match[0] and (is_whole or match[0].startswith(("the ", "in ", "over ", "within ")))
        )
    ):
        return None  # "last week" is a calendar week, and "past day" is ambiguous
    count = 3 if said in {"few", "several", "几", "幾"} and unit != "day" else _numbers(said or "1")[1]
    if count > _MOST_BACK:
        return None
    today_ends = whole_days(now.date(), now.date()).last
    if unit == "hour":
        return TimeSpan(_back(now, unit, count).first, now)
    return TimeSpan(whole_days(_day_back(now.date(), unit, count), now.date()).first, today_ends)


@_rule(
    "recently|lately|recent|最近|近来|近來|近期|近日|前几天|前幾天|前些天|前阵子|前陣子|the other day|these days|这几天|這幾天|这些天|這些天"
)
def _of_late(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve "recently" to the last two weeks; in a question, such a word only means that something is over."""
    return whole_days(now.date() - timedelta(days=14), now.date()) if is_whole else None


def _latest(weekday: int, today: date) -> date:
    """Return the latest weekday before a day."""
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def _unit(text: str) -> str:
    """Return the English name of a unit; a weekday is returned unchanged."""
    if text in _WEEKDAYS:
        return text
    if text[0] in "周週星礼禮":
        return "week"
    if text[0] == "月" or text.startswith("mo"):
        return "month"
    if text[0] == "分" or text.startswith("min"):
        return "minute"
    return "fortnight" if text.startswith("f") else _UNITS[text[0]]


def _day_back(day: date, unit: str, count: int) -> date:
    """Return the day `count` units before; in a month without such a day, its last day."""
    if unit in {"month", "year"}:
        month = _months(day.year, day.month - count * (12 if unit == "year" else 1)).last.date()
        return month.replace(day=min(day.day, month.day))
    return day - timedelta(days=count * {"day": 1, "week": 7, "fortnight": 14}[unit])


def _back(now: datetime, unit: str, count: int) -> TimeSpan:
    """Return the calendar day, week, month or year `count` units before; for shorter units, the interval since then."""
    if unit in {"hour", "minute"}:
        length = timedelta(hours=1) if unit == "hour" else timedelta(minutes=1)
        return TimeSpan(now - count * length, now - (count - 1) * length)
    day = _day_back(now.date(), unit, count)
    match unit:
        case "day":
            return whole_days(day, day)
        case "month":
            return _months(day.year, day.month)
        case "year":
            return _months(day.year, 1, 12)
        case _:
            return _week(day)


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
