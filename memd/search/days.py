"""Days that a question names by how far they are from the day on which it is asked."""

import re
from datetime import date, timedelta

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10,
    "一": 1, "两": 2, "兩": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "十": 10,
}  # fmt: skip
_MOST_BACK = 3_650  # days or weeks
_FIRST_YEAR = 1000  # from which on no distance leaves the range of dates

_NUMBER = rf"(?<![-0-9a-z一二两兩三四五六七八九十百千])(\d{{1,4}}|{'|'.join(_NUMBERS)})"
_WEEKDAY = f"({'|'.join(_WEEKDAYS)})"
_NEAR = re.compile(r"\b(?:(the day before )?yesterday|today)\b|大前天|[前昨今]天|昨[晚日]|今[晚日]")
_AGO = re.compile(
    rf"\b{_NUMBER} (day|week|{'|'.join(_WEEKDAYS)})s? ago\b|{_NUMBER} ?(天|日|个?星期|周|週)(?:以|之)?前"
)
_LAST = re.compile(rf"\blast {_WEEKDAY}\b")
_CHINESE_WEEKDAY = re.compile("(上上|上|这|這|本)(?:个|個)?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])")
_BACK = {"大前天": 3, "前天": 2, "昨天": 1, "昨晚": 1, "昨日": 1}
_WEEKS = {"上上": 2, "上": 1}


def days_named(text: str, today: date) -> tuple[date, ...]:
    """The days, each once, in the order of the text.

    "Last Thursday" is the latest one before today; 上周四 is that of the week before, which begins on Monday.

    Args:
        text: Folded.
        today: The day on which it is asked.
    """
    found: dict[int, date] = {}
    if not _FIRST_YEAR <= today.year < date.max.year:
        return ()
    for match in _NEAR.finditer(text):
        said = match[0]
        back = 2 if match[1] else 1 if said == "yesterday" else _BACK.get(said, 0)
        found[match.start()] = today - timedelta(days=back)
    for match in _AGO.finditer(text):
        number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
        count = int(number) if number.isdecimal() else _NUMBERS[number]
        if count > _MOST_BACK:
            continue
        if unit in _WEEKDAYS:
            found[match.start()] = _latest(unit, today) - timedelta(weeks=count - 1)
        else:
            found[match.start()] = today - timedelta(days=count * (1 if unit in {"day", "天", "日"} else 7))
    for match in _LAST.finditer(text):
        found[match.start()] = _latest(match[1], today)
    for match in _CHINESE_WEEKDAY.finditer(text):
        monday = today - timedelta(days=today.weekday(), weeks=_WEEKS.get(match[1], 0))
        found[match.start()] = monday + timedelta(days="一二三四五六日".find(match[2].replace("天", "日")))
    return tuple(dict.fromkeys(found[at] for at in sorted(found)))


def _latest(weekday: str, today: date) -> date:
    """The latest one before a day."""
    return today - timedelta(days=(today.weekday() - _WEEKDAYS.index(weekday) - 1) % 7 + 1)
