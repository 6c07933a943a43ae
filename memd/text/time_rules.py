"""The rules for time phrases: for each form of a phrase its patterns, and the function that tells the interval it means. Pure."""

import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache

from memd.text.time_spans import TimeSpan, whole_days
from memd.text.time_words import (
    CHINESE_MONTH,
    CHINESE_NUMBER,
    CHINESE_PART,
    CHINESE_RELATION,
    CHINESE_WEEK,
    CHINESE_WEEKDAY,
    CHINESE_YEAR,
    CHINESE_YEAR_OF,
    MONTH,
    MONTH_PHRASE,
    MONTHS,
    NEAR_DAYS,
    NO_CHINESE_NUMBER,
    NUMBER,
    ORDINALS,
    PART_OF,
    PARTS,
    RELATION,
    RELATIVE,
    SAME_DAY,
    SAME_DAYS,
    SEASONS,
    SHORT_WEEKDAY,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    least_and_most,
    read_number,
    read_weekday,
    read_year,
)

_MOST_BACK = 3_650  # of any unit

Resolve = Callable[[re.Match[str], datetime, bool], TimeSpan | None]
"""Given a match of a pattern, the local wall-clock time, and whether the match is the whole text: the interval; None: it is none."""
_PATTERNS: list[tuple[str, Resolve]] = []

_INTRODUCED = re.compile(
    r"(?:^|[^a-z])(?:in|during|since|of|from|to|and|until|till|throughout|by|before|after|between|this|last|every) (?:the )?$"
)
# 五月之前 is before May; five months ago is 五个月前.
_IS_MONTH = re.compile("(?:[0-9]+|[一三四五六七八九十]+) ?月")
_UNITS = {
    "d": "day",
    "w": "week",
    "y": "year",
    "h": "hour",
    "天": "day",
    "日": "day",
    "年": "year",
    "小": "hour",
    "钟": "hour",
    "鐘": "hour",
}


def _rule(*patterns: str) -> Callable[[Resolve], Resolve]:
    """Register a function for matches of some patterns."""

    def added(resolve: Resolve) -> Resolve:
        _PATTERNS.extend((pattern, resolve) for pattern in patterns)
        return resolve

    return added


@cache
def rules() -> Sequence[tuple[re.Pattern[str], Resolve]]:
    """Return all rules. Compiling them takes 50 ms, so it is done on first use.

    A pattern in ASCII matches ASCII letters or figures, and any other one Chinese, except for what must be the whole text.
    """
    return [(re.compile(pattern), resolve) for pattern, resolve in _PATTERNS]


def resolved(resolve: Resolve, match: re.Match[str], now: datetime, *, is_whole: bool) -> TimeSpan | None:
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


_LISTED_WEEKDAYS = re.compile(
    rf"(?:^|\W)(?:(?:on|from|between) (?:{'|'.join(WEEKDAYS)})(?:, (?:{'|'.join(WEEKDAYS)}))*(?:,? (?:and|&|or|to|until|till|through) |, )"
    "|(?:since|from|between|after) )$"
)


def _up_to(match: re.Match[str], group: str | int = 0) -> tuple[int, int]:
    """Return the offsets of the text shortly before a match, or a group of it."""
    return max(0, match.start(group) - 100), match.start(group)


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
    """Resolve a date in figures, whose year comes first."""
    day = date(int(match["y"]), int(match["m"]), int(match["d"]))
    return (
        whole_days(day, day)
        if is_whole or len(match[0]) > len("20260209") or not match[0].isdecimal()
        else None
    )


@_rule(
    r"(?<![-/.\d])(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<y>(?:19|20)\d\d)(?![-/.]?\d)",
)
def _date_year_last(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 24.11.2026, 24/11/2026 and 11/24/2026; where either number may be the month, only a dot says which."""
    day, month = int(match["a"]), int(match["b"])
    if match["sep"] != ".":
        if day <= 12 and month <= 12 and day != month:
            return None
        day, month = max(day, month), min(day, month)
    only = date(int(match["y"]), month, day)
    return whole_days(only, only)


@_rule(
    r"(?P<y>\d{4})-(?P<m>\d\d)(?!-?\d)",
    r"(?<![/\d])(?P<m>\d\d)/(?P<y>\d{4})",
    r"(?P<y>(?:19|20)\d\d)/(?P<m>0[1-9]|1[0-2])(?!/?\d)",
)
def _year_and_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    return _months(int(match["y"]), int(match["m"])) if 1 <= int(match["m"]) <= 12 else None


@_rule(
    r"(?P<year>\d{4})-?w(?P<week>\d{1,2})",
    rf"(?:calendar )?week (?P<week>\d{{1,2}})(?:,? (?:of )?{YEAR})?",
    r"w(?P<week>\d{1,2})",
)
@_rule(
    f"(?:{CHINESE_YEAR} ?的? ?)?第 ?(?P<week>[0-9]{{1,2}}|[一二三四五六七八九十]{{1,3}}) ?(?:个|個)?{CHINESE_WEEK}"
)
def _week_of_year(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, number = read_year(match.groupdict().get("year"), now), read_number(match["week"])
    if year is None and not is_whole:
        return None  # the second week of a course, or of a month

    def week(one: int) -> TimeSpan:
        return week_of(date.fromisocalendar(one, number, 1))

    return _begun(week, now) if year is None else week(year)


@_rule(rf"q(?P<q>[1-4])(?:[ /-]*(?:of )?{YEAR})?", r"(?P<year>\d{4})[ /-]?q(?P<q>[1-4])")
@_rule(rf"(?:the )?(?P<q>first|second|third|fourth|[1-4](?:st|nd|rd|th)) quarter(?: (?:of )?{YEAR})?")
@_rule(f"(?:{CHINESE_YEAR_OF} ?的? ?)?第? ?(?P<q>[1-4一二三四]) ?季度")
def _quarter(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, number = read_year(match["year"], now), ORDINALS.get(match["q"]) or read_number(match["q"][0])

    def quarter(one: int) -> TimeSpan:
        return _months(one, 3 * number - 2, 3)

    return _begun(quarter, now) if year is None else quarter(year)


@_rule(rf"(?:the )?{RELATION} quarter", f"{CHINESE_RELATION}(?:一|个|個)?季度?")
def _relative_quarter(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    return _months(now.year, 3 * ((now.month - 1) // 3 + RELATIVE[match["rel"]]) + 1, 3)


@_rule(rf"h(?P<half>[12])[ /-]*{YEAR}", rf"(?:the )?(?P<half>first|second) half of (?:{YEAR}|the year)")
@_rule(f"(?:{CHINESE_YEAR_OF} ?的? ?)?(?P<half>上|下)半年")
def _half(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, begin = read_year(match["year"], now), 1 if match["half"] in {"1", "first", "上"} else 7

    def half(one: int) -> TimeSpan:
        return _months(one, begin, 6)

    return _begun(half, now) if year is None else half(year)


@_rule(r"(?P<year>(?:19|20)\d\d)", r"(?:the )?(?P<year>(?:last|this|next) year)", CHINESE_YEAR)
def _whole_year(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year = read_year(match["year"], now)
    if year is None or (match["year"].isdecimal() and not is_whole and not _is_introduced(match)):
        return None
    return _months(year, 1, 12)


@_rule(
    rf"{PART_OF}(?:{YEAR}|the year)",
    "(?:(?P<year>[0-9]{4} ?年|[0-9]{2}(?<![第0-9].{2}) ?年|大前年|前年|去年|今年|明年)年?|(?<![0-9一二三四五六七八九十每两兩几半多])年)(?P<part>初|底|末)",
)
def _part_of_year(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, part = read_year(match["year"], now), PARTS[match["part"].removeprefix("the ").removesuffix(" of")]
    begin, count = ((1, 3), (5, 4), (10, 3))[part]

    def months(one: int) -> TimeSpan:
        return _months(one, begin, count)

    return _begun(months, now) if year is None else months(year)


@_rule(
    rf"(?:the )?(?:(?P<which>last|this past|past|this|next) )?(?P<season>spring|summer|autumn|fall|winter)(?:,? (?:of )?{YEAR})?"
)
@_rule(f"(?:{CHINESE_YEAR_OF} ?的? ?)?(?P<season>[春夏秋冬])(?:天|季)")
def _season(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    year, which = read_year(match["year"], now), match.groupdict().get("which")
    begin = SEASONS[match["season"]]

    def season(one: int) -> TimeSpan:
        return _months(one, begin, 3)

    if year is not None:
        return season(year)
    if which is None and not is_whole and match["season"].isascii() and not _is_introduced(match):
        return None  # a spring, a fall, winter tyres
    return _chosen(season, which, now)


@_rule(MONTH_PHRASE, CHINESE_MONTH)
def _whole_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    named = match.groupdict()
    mon = (named["mon"] or "").rstrip(".")
    # A verb or the name of a person: such a word is a month only with a sign of that.
    is_vague = (
        bool(mon) and (mon in {"may", "march"} or mon not in MONTHS) and mon.isascii() and mon.isalpha()
    )
    is_said = is_whole or named.get("which") or named.get("year") or _is_introduced(match)
    return _month(match, now) if is_said or not is_vague else None


@_rule(rf"{PART_OF}{MONTH_PHRASE}", r"(?:the )?(?P<part>beginning|start|middle|end) of (?P<rel>the) month")
@_rule(f"{CHINESE_MONTH}{CHINESE_PART}", f"{NO_CHINESE_NUMBER}(?<!每)(?P<rel>月){CHINESE_PART}")
def _part_of_a_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    part = match["part"].removeprefix("the ").removesuffix(" of")
    if match["rel"] not in {"the", "月"}:
        return _part_of_month(_month(match, now), part)
    begun = _part_of_month(_months(now.year, now.month), part)
    return begun if begun.first <= now else _part_of_month(_months(now.year, now.month - 1), part)


@_rule(rf"(?:the )?(?P<nth>{'|'.join(ORDINALS)}) {WEEKDAY} (?:of|in) {MONTH_PHRASE}")
@_rule(
    f"{CHINESE_MONTH} ?的? ?(?:第 ?(?P<nth>[1-5一二三四五]) ?|最后一?|最後一?)(?:个|個)?{CHINESE_WEEK}{CHINESE_WEEKDAY}"
)
def _weekday_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    month = _month(match, now)
    nth = -1 if match["nth"] is None else ORDINALS.get(match["nth"]) or read_number(match["nth"])
    days = (month.first.date() + timedelta(days=n) for n in range(month.last.day))
    day = [day for day in days if day.weekday() == read_weekday(match["wd"])][nth - (nth > 0)]
    return whole_days(day, day)


@_rule(rf"(?:the )?(?P<nth>{'|'.join(ORDINALS)}) week (?:of|in) {MONTH_PHRASE}")
@_rule(f"{CHINESE_MONTH} ?的? ?(?:第 ?(?P<nth>[1-5一二三四五]) ?|最后一?|最後一?)(?:个|個)?{CHINESE_WEEK}")
def _week_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    month, nth = _month(match, now), match["nth"]
    number = -1 if nth is None else ORDINALS.get(nth) or read_number(nth)
    first, last = month.first.date(), month.last.date()
    begin = last - timedelta(days=6) if number < 0 else first + timedelta(days=7 * number - 7)
    return whole_days(begin, min(begin + timedelta(days=6), last))


@_rule(
    rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {MONTH_PHRASE}",
    rf"{MONTH} (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? {YEAR})?",
    f"{CHINESE_MONTH} ?的? ?(?P<day>[0-9]{{1,2}}|[一二三四五六七八九十]{{1,3}}) ?(?:日|号|號)",
)
def _day_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    named, number = match.groupdict(), read_number(match["day"])
    if named.get("rel") or named.get("year") or named.get("which"):
        day = _month(match, now).first.date().replace(day=number)
        return whole_days(day, day)
    month = _month(match, now).first.month
    years = [year for year in range(now.year, now.year - 5, -1) if number <= monthrange(year, month)[1]]
    past = [date(year, month, number) for year in years if date(year, month, number) <= now.date()]
    return whole_days(past[0], past[0]) if past else None


# What may follow a day without its month: 3号楼, "1号和2号服务器" and "the 5th floor" are none.
_CHINESE_NTH = " ?(?:[0-9]{1,2}|[一二三四五六七八九十]{1,3}) ?[号號]"
_AFTER_CHINESE_NTH = (
    r" ?(?:$|[^\w 、]|[上中下]午|上[线線]|大家|[凌早傍晚夜那当當这這我你您他她它咱谁誰有没沒做干幹在去是说說讲講聊谈談写寫决決讨討起]"
    "|[发發](?!动|動)|[开開](?!关|關)|[之以]?[前后後]|以[来來]|的(?!人|楼|门))"
)
_LISTED_NTH = "[和与與跟到至及、]"
_AFTER_DAY = (
    f"(?={_AFTER_CHINESE_NTH}"
    f"|{_LISTED_NTH}(?!{_CHINESE_NTH}(?:{_LISTED_NTH}{_CHINESE_NTH}){{0,5}}(?!{_AFTER_CHINESE_NTH}|{_LISTED_NTH})))"
)
_DAY_LEAD = re.compile(
    r"(?:^|\W)(?:on (?:the )?|(?:since|from|until|till|through|to|by|before|after|between) the "
    r"|the \d{1,2}(?:st|nd|rd|th)(?:,? (?:and|or|to|until|till|through) |, | ?[-–] ?)(?:the )?)$|(?:[在从從自至于於到]|[日号號][、和与與及])$"
)
_AFTER_NTH = (
    r"(?! ?-?\w)|(?= (?:and|or|to|until|till|through|at|in|with|by|for|about|from|after|before|i|we|you|he|she|they|it|who|what|which"
    r"|when|where|why|how|did|was|were|is|had|that|this|because|morning|afternoon|evening|night)\b)"
)


@_rule(
    rf"(?:the )?(?P<day>\d{{1,2}})(?P<nth>st|nd|rd|th)(?:{_AFTER_NTH})",
    rf"(?<![第月每同0-9一二三四五六七八九十百千几幾两兩.个個])(?<!月的)(?P<day>[0-9]{{1,2}}|[一二三四五六七八九十]{{1,3}}) ?[号號]{_AFTER_DAY}",
    f"(?P<day>[0-9]{{1,2}}) ?(?P<nth>日)(?![之以]?[前后後内]){_AFTER_DAY}",
)
def _day_alone(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 26号 and "on the 26th": the latest such day that is not in the future."""
    is_in_doubt = bool(match.groupdict().get("nth"))  # the 26th, 26日
    if is_in_doubt and not is_whole and not _DAY_LEAD.search(match.string, *_up_to(match, "day")):
        return None
    number = read_number(match["day"])
    months = (_months(now.year, now.month - back).last.date() for back in range(3))
    days = (last.replace(day=number) for last in months if number <= last.day)
    day = next((day for day in days if day <= now.date()), None)
    return None if day is None else whole_days(day, day)


_NTH = r"(?:the )?(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?"
_DAY, _UNTIL = _NTH.format("day"), _NTH.format("until")
_TO = r" ?[-\u2013\u2014~] ?| (?:to|until|till|through|thru) "
_NO_HOUR = r"(?! ?(?:[ap]m\b|o'clock)|[:.]\d)"
_CHINESE_DAY = "(?P<{}>[0-9]{{1,2}}|[一二三四五六七八九十]{{1,3}})"


@_rule(
    rf"(?:from )?{_DAY}(?:{_TO}){_UNTIL}(?: of)? {MONTH_PHRASE}",
    rf"between {_DAY} and {_UNTIL}(?: of)? {MONTH_PHRASE}",
    rf"(?:from )?{MONTH} {_DAY}(?:{_TO}){_UNTIL}{_NO_HOUR}(?:,? {YEAR})?",
    rf"between {MONTH} {_DAY} and {_UNTIL}{_NO_HOUR}(?:,? {YEAR})?",
    f"[从從]?{CHINESE_MONTH} ?{_CHINESE_DAY.format('day')} ?[日号號]? ?[-–—~到至] ?{_CHINESE_DAY.format('until')} ?[日号號]",
)
def _days_of_month(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve "March 5 to 8": the latest of which the first day is past."""
    begin = _day_of_month(match, now, is_whole)
    if begin is None:
        return None
    first = begin.first.date()
    last = first.replace(day=read_number(match["until"]))
    return whole_days(first, last) if first <= last else None


@_rule(
    rf"(?:the )?{RELATION} week",
    f"{CHINESE_RELATION}(?:一|个|個)?{CHINESE_WEEK}",
    r"(?:the )?week before (?P<rel>last)",
)
def _relative_week(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    weeks = -2 if "before" in match[0] else RELATIVE[match["rel"]]
    return week_of(now.date() + timedelta(weeks=weeks))


@_rule(
    r"(?:the )?(?P<rel>last|past|this|next|over the|at the|on the) weekend",
    f"(?:{CHINESE_RELATION}(?:个|個)?)?(?:周|週)末",
    "weekend",
)
def _weekend(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    rel, today = match.groupdict().get("rel"), now.date()
    if match[0] == "weekend" and not is_whole:
        return None
    if rel in {"this", "next"} or (rel is not None and not rel.isascii()):
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=RELATIVE[rel])
        return whole_days(monday + timedelta(days=5), monday + timedelta(days=6))
    back = (today.weekday() - 5) % 7
    saturday = today - timedelta(days=back + 7 * (rel in {"last", "past"} and back < 2))
    return whole_days(saturday, saturday + timedelta(days=1))


@_rule(
    rf"(?P<rel>last|this past|past|this|next) {SHORT_WEEKDAY}",
    rf"{SHORT_WEEKDAY}(?: of|'s)? (?P<rel>last|this|next) week",
    rf"(?P<rel>last|this|next) week(?:'s| on)? {SHORT_WEEKDAY}",
    rf"(?P<on>on )?{WEEKDAY}(?P<more>'s| morning| afternoon| evening| night)?",
    rf"{WEEKDAY} (?P<rel>before last)",
)
def _weekday_named(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve a weekday: "last Thursday" is the latest one before today, "Thursday last week" that of the previous week."""
    named, today, place = match.groupdict(), now.date(), read_weekday(match["wd"])
    rel = named.get("rel") or ""
    if "week" in match[0] or rel == "this":
        day = today + timedelta(days=place - today.weekday(), weeks=RELATIVE[rel])
    elif rel == "next":
        day = today + timedelta(days=(place - today.weekday() - 1) % 7 + 1)
    elif rel in {"last", "past", "this past", "before last"}:
        day = _latest(place, today) - timedelta(weeks=rel == "before last")
    elif is_whole or named["on"] or named["more"] or _LISTED_WEEKDAYS.search(match.string, *_up_to(match)):
        day = _latest(place, today + timedelta(days=1))
    else:
        return None
    return whole_days(day, day)


@_rule(f"(?:(?P<rel>上上|上|这|這|本|下下|下)(?:一|个|個)?)?{CHINESE_WEEK}{CHINESE_WEEKDAY}")
def _chinese_weekday(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 上周四: the weekday of the previous week, which begins on Monday."""
    today, place = now.date(), read_weekday(match["wd"])
    before = match.string[max(0, match.start() - 1) : match.start()]
    if match["rel"] is None and before and before in "每毎个個0123456789一二三四五六七八九十两兩几幾多半第":
        return None  # 每周一, 两周一次
    if match["rel"] is None:
        day = _latest(place, today + timedelta(days=1))
    else:
        day = today + timedelta(days=place - today.weekday(), weeks=RELATIVE[match["rel"]])
    return whole_days(day, day)


@_rule("|".join(sorted((word for word in NEAR_DAYS if word.isascii()), key=len, reverse=True)))
@_rule(
    "大前天|(?<![以之目提])前[天日晚]|昨(?:天|日|晚|夜|儿|兒|早)|今(?:天|日|晚|夜|儿|兒|早)|大?[后後]天|明[天日晚]"
)
def _near_day(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    back = NEAR_DAYS[match[0]] if match[0] in NEAR_DAYS else NEAR_DAYS[match[0][0]]
    day = now.date() - timedelta(days=back)
    return whole_days(day, day)


@_rule(
    rf"(?<![-.])(?:an? )?{NUMBER}(?: of)? (?P<unit>day|week|fortnight|month|year|hour|minute|{'|'.join(WEEKDAYS)})s? ago",
    r"(?<!\.)(?P<n>\d{1,4}) ?(?P<unit>d|w|wks?|mo|y|yrs?|h|hrs?|mins?) ago",
    r"(?P<n>half) an? (?P<unit>year|month|hour) ago",
    rf"(?<![百千.])(?:差不多|大约|大概)?{CHINESE_NUMBER} ?(?:个|個)?(?P<unit>天|日|{CHINESE_WEEK}|月|年|小时|小時|分钟|分鐘)(?:多)?(?:以|之)?前",
    "(?<![个個])(?P<n>半)(?:个|個)?(?P<unit>年|月|小时|小時|钟头|鐘頭)(?:多)?(?:以|之)?前",
)
def _ago(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    unit, today = _unit(match["unit"]), now.date()
    if match["n"] in {"half", "半"}:
        if unit == "hour":
            at = now - timedelta(minutes=30)
            return TimeSpan(at, at if is_whole else now)
        return (
            _back(now, "month", 6)
            if unit == "year"
            else whole_days(today - timedelta(days=18), today - timedelta(days=12))
        )
    least, most = least_and_most(match["n"])
    if most > _MOST_BACK or _IS_MONTH.match(match[0]):
        return None
    if unit in WEEKDAYS:
        latest = _latest(WEEKDAYS.index(unit), today)
        return whole_days(latest - timedelta(weeks=most - 1), latest - timedelta(weeks=least - 1))
    span = _back(now, unit, most)
    if least < most:
        return TimeSpan(span.first, _back(now, unit, least).last)
    return TimeSpan(span.first, span.first) if is_whole and unit in {"hour", "minute"} else span


@_rule(
    rf"{NUMBER} and a half (?P<unit>week|month|year|hour)s? ago",
    r"(?:an?|one) (?P<unit>week|month|year|hour) and a half ago",
    r"(?P<n>\d{1,3})\.5 (?P<unit>week|month|year|hour)s? ago",
    f"{CHINESE_NUMBER} ?(?:个|個)半(?P<unit>{CHINESE_WEEK}|月|小时|小時|钟头|鐘頭)(?:多)?(?:以|之)?前",
    f"{CHINESE_NUMBER} ?(?P<unit>{CHINESE_WEEK}|年)半(?:多)?(?:以|之)?前",
    f"(?P<n>[0-9]{{1,3}})\\.5 ?(?:个|個)?(?P<unit>{CHINESE_WEEK}|月|年|小时|小時)(?:以|之)?前",
)
def _ago_and_a_half(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 两个半月前: so many units and a half back, and half a unit around that, but of a year the month."""
    unit, at = _unit(match["unit"]), _halves_back(match, now)
    if at is None:
        return None
    if unit == "hour":
        return TimeSpan(at, at if is_whole else at + timedelta(hours=1))
    if unit == "year":
        return _months(at.year, at.month)
    around = timedelta(days=7 if unit == "month" else 2)
    return whole_days(at.date() - around, at.date() + around)


_HALF_ALONE = re.compile("past half|last half|半")  # without a number
_WITHIN = "(?:the |in the |over the |within the )?(?:last|past) "
_WITHIN_CHINESE = "(?:过去|過去|最近|(?<![附接将將靠])近|这|這)的?"


@_rule(
    rf"{_WITHIN}{NUMBER} and a half (?P<unit>week|month|year|hour)s?",
    rf"{_WITHIN}(?P<unit>week|month|year|hour) and a half",
    rf"{_WITHIN}(?P<n>\d{{1,3}})\.5 (?P<unit>week|month|year|hour)s?",
    rf"{_WITHIN}half(?: an?| of an?)? (?P<unit>month|year|hour)",
    f"{_WITHIN_CHINESE}(?:{CHINESE_NUMBER} ?(?:个|個))?半(?:个|個)?(?P<unit>{CHINESE_WEEK}|年|月|小时|小時|钟头|鐘頭)(?:以|之)?[内来來里裡]?",
    f"{_WITHIN_CHINESE}{CHINESE_NUMBER} ?(?P<unit>{CHINESE_WEEK}|年)半(?:以|之)?[内来來里裡]?",
)
def _lately_and_a_half(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve 最近半年 and "the last month and a half"."""
    at = _halves_back(match, now)
    if at is None:
        return None
    return TimeSpan(at, now) if _unit(match["unit"]) == "hour" else whole_days(at.date(), now.date())


def _halves_back(match: re.Match[str], now: datetime) -> datetime | None:
    """Return the time some units and half a unit back; None: how many is in doubt."""
    unit, said = _unit(match["unit"]), match.groupdict().get("n")
    least, count = least_and_most(said) if said else (0, 0) if _HALF_ALONE.search(match[0]) else (1, 1)
    if least < count or count > _MOST_BACK:
        return None
    if unit == "hour":
        return now - timedelta(minutes=60 * count + 30)
    day = (
        _day_back(now.date(), "month", 12 * count + 6)
        if unit == "year"
        else _day_back(now.date(), unit, count)
    )
    return whole_days(day - timedelta(days={"month": 15, "week": 4}.get(unit, 0)), day).first


@_rule(
    rf"(?:an? )?{NUMBER} (?P<unit>week|month|year)s? ago (?P<day>today|yesterday|tomorrow)",
    rf"(?P<day>today|yesterday|tomorrow) (?:an? )?{NUMBER} (?P<unit>week|month|year)s? ago",
    r"(?:on )?(?:this|the same|this same|this very) day (?P<last>last) (?P<unit>week|month|year)",
    r"(?P<day>today) (?P<last>last) (?P<unit>week|month|year)",
    rf"(?:on )?(?:this|the same|this same|this very) day (?:an? )?{NUMBER} (?P<unit>week|month|year)s? ago",
    f"{CHINESE_NUMBER} ?(?:个|個)?(?P<unit>年|月|{CHINESE_WEEK})(?:以|之)?前的?{SAME_DAY}",
    f"(?:{CHINESE_YEAR}|(?P<rel>上上|上)(?:一|个|個)?(?P<unit>月|{CHINESE_WEEK}))的?{SAME_DAY}",
)
def _same_day(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve "a year ago today" and 去年的今天: that one day."""
    named = match.groupdict()
    unit, year = _unit(named.get("unit") or "year"), read_year(named.get("year"), now)
    back = -RELATIVE[named.get("rel") or "last"] if year is None else now.year - year
    least, count = least_and_most(named["n"]) if named.get("n") else (back, back)
    if least < count or count > _MOST_BACK:
        return None
    day = _day_back(now.date(), unit, count) - timedelta(days=SAME_DAYS[named.get("day") or "today"])
    return whole_days(day, day)


@_rule(
    rf"in (?:an? )?{NUMBER} ?(?P<unit>days?|d|weeks?|wks?|w|months?|mo|years?|yrs?|y|hours?|hrs?|h|minutes?|mins?)",
    rf"(?:an? )?{NUMBER} (?P<unit>day|week|month|year|hour|minute)s? (?:from now|from today|later)",
    f"{CHINESE_NUMBER} ?(?:个|個)?(?P<unit>天|日|{CHINESE_WEEK}|月|年|小时|小時|分钟|分鐘)(?:以|之)?[后後]",
)
def _ahead(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    """Resolve "in 3 days"; in a question, that is as often a length, or counts from another day."""
    unit, count = _unit(match["unit"]), least_and_most(match["n"])[1]
    if not is_whole or count > _MOST_BACK:
        return None
    if unit in {"hour", "minute"}:
        at = _back(now, unit, -count).first
        return TimeSpan(at, at)
    return whole_days(_day_back(now.date(), unit, -count), _day_back(now.date(), unit, -count))


@_rule(r"(?:the )?(?P<unit>month|year) before last")
def _before_last(match: re.Match[str], now: datetime, is_whole: bool) -> TimeSpan | None:
    return _back(now, match["unit"], 2)


@_rule(
    r"(?P<n>\d{1,4}) ?(?P<unit>days?|d|weeks?|wks?|w|months?|mo|years?|yrs?|y|hours?|hrs?|h|minutes?|mins?)"
)
@_rule(
    f"(?P<n>[0-9]{{1,4}}) ?(?:(?:个|個)?(?P<unit>天|{CHINESE_WEEK}|年|小时|小時|分钟|分鐘)|(?:个|個)(?P<months>月))"
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
    rf"(?:the |these |in the |over the |within the )?(?:last|past|previous) (?:{NUMBER}(?: of)? )?(?P<unit>day|week|fortnight|month|year|hour)s?",
    f"(?:过去|過去|最近|近|这|這|(?<![以之目])前)(?:的)?{CHINESE_NUMBER} ?(?:个|個)?(?P<unit>天|日|{CHINESE_WEEK}|月|年|小时|小時)(?:以内|以來|以来|之内|内|里|裡|来|來)?",
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
    count = 3 if said in {"few", "several", "几", "幾"} and unit != "day" else least_and_most(said or "1")[1]
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


DATES = frozenset(
    {_date, _date_year_last, _year_and_month, _week_of_year, _quarter, _whole_month, _day_of_month}
)
"""The functions for a day, a week, a month or a quarter that is named."""


_PERIODS: Mapping[Resolve, str] = {
    **dict.fromkeys((_weekday_named, _chinese_weekday), "week"),
    _day_alone: "month",
    **dict.fromkeys(
        (
            _date, _date_year_last, _year_and_month, _quarter, _half, _part_of_year, _season, _whole_month, _part_of_a_month,
            _weekday_of_month, _week_of_month, _day_of_month, _days_of_month,
        ),
        "year",
    ),
}  # fmt: skip


def period_of(resolve: Resolve) -> str | None:
    """Return the period in which what a rule names comes again: "week", "month" or "year"; None: it has none."""
    return _PERIODS.get(resolve)


def is_fixed(match: re.Match[str]) -> bool:
    """Return whether a match tells which week, month or year is meant."""
    named = match.groupdict()
    return any(named.get(group) for group in ("y", "year", "rel", "which"))


def names_year(match: re.Match[str]) -> bool:
    """Return whether a match tells a year or week in words that may be meant for others beside it."""
    named = match.groupdict()
    return bool(named.get("y") or named.get("year") or "week" in match[0])


# --- the calendar ------------------------------------------------------------------------------------------------


def week_of(day: date) -> TimeSpan:
    """Return the week of a day."""
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
    if PARTS[part] == 0:
        return whole_days(first, first.replace(day=10))
    return (
        whole_days(first.replace(day=11), first.replace(day=20))
        if PARTS[part] == 1
        else whole_days(first.replace(day=21), last)
    )


def _begun(spans: Callable[[int], TimeSpan], now: datetime) -> TimeSpan:
    """Return the latest of a yearly interval that has begun."""
    span = spans(now.year)
    return span if span.first <= now else spans(now.year - 1)


def _chosen(spans: Callable[[int], TimeSpan], which: str | None, now: datetime) -> TimeSpan:
    """Return that of a yearly interval which "last", "this" or "next" means; None: the latest that has begun."""
    begun = _begun(spans, now)
    is_now = begun.last >= now
    if which == "this":
        return begun if is_now else spans(now.year)
    return spans(
        begun.first.year
        + {"last": -is_now, "past": -is_now, "this past": -is_now, "next": 1}.get(which or "", 0)
    )


def _month(match: re.Match[str], now: datetime) -> TimeSpan:
    """Return the month matched by MONTH_PHRASE or CHINESE_MONTH."""
    named = match.groupdict()
    if named.get("rel"):
        return _months(now.year, now.month + RELATIVE[named["rel"]])
    mon = named["mon"].rstrip(".")
    at = next((n for n, name in enumerate(MONTHS, 1) if name[:3] == mon[:3]), 0) or read_number(mon)
    year = read_year(named.get("year"), now)
    if year is not None:
        return _months(year, at)
    return _chosen(lambda one: _months(one, at), named.get("which"), now)


def _latest(weekday: int, today: date) -> date:
    """Return the latest weekday before a day."""
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def _unit(text: str) -> str:
    """Return the English name of a unit; a weekday is returned unchanged."""
    if text in WEEKDAYS:
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


def end_of_period(day: date, unit: str) -> datetime:
    """Return the end of the week, month or year that begins with a day: "month" of 5 March ends with 4 April."""
    later = _day_back(day, unit, -1)
    # After 31 January, 28 February is the last of its month.
    is_again = unit == "week" or later.day == day.day
    return whole_days(later, later - timedelta(days=is_again)).last


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
            return week_of(day)
