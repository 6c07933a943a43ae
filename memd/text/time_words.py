"""What times are called in English and Chinese: words, patterns of them, and the numbers that they mean. Pure.

All text is folded, see memd.text.tokens.folded.
"""

import re
from datetime import datetime

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
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
ORDINALS = {
    word: number
    for number, words in enumerate(("", "first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th"))
    for word in words.split()
} | {"last": -1, "final": -1}
_DIGITS = {"〇": 0, "零": 0, "两": 2, "兩": 2, "几": 3, "幾": 3} | {
    one: n for n, one in enumerate("一二三四五六七八九", 1)
}
# Of a month or a year: 0 for its beginning, 1 for its middle, 2 for its end.
PARTS = {
    "early": 0, "beginning": 0, "start": 0, "初": 0, "上旬": 0,
    "mid": 1, "middle": 1, "中": 1, "中旬": 1,
    "late": 2, "end": 2, "底": 2, "末": 2, "下旬": 2,
}  # fmt: skip
# Each with its first month.
SEASONS = {
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
# How many days each is back; 昨 and 今 stand for all words that begin so.
NEAR_DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "yesterday": 1,
    "last night": 1, "yesterday morning": 1, "yesterday evening": 1, "the day before yesterday": 2,
    "day before yesterday": 2, "tomorrow": -1, "the day after tomorrow": -2, "day after tomorrow": -2,
    "大前天": 3, "前天": 2, "前日": 2, "前晚": 2, "昨": 1, "今": 0, "明天": -1, "明日": -1, "明晚": -1, "后天": -2, "後天": -2,
    "大后天": -3, "大後天": -3,
}  # fmt: skip
# How many days each is back from the same day of another week, month or year.
SAME_DAYS = {
    "today": 0, "yesterday": 1, "tomorrow": -1,
    "今天": 0, "今日": 0, "这天": 0, "這天": 0, "这一天": 0, "這一天": 0, "同一天": 0, "昨天": 1, "明天": -1,
}  # fmt: skip
# How many weeks, months, quarters or years each is from the current one.
RELATIVE = {
    "last": -1, "previous": -1, "this": 0, "the current": 0, "current": 0, "next": 1,
    "上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "当": 0, "當": 0, "下": 1, "下下": 2,
    "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2, "後年": 2,
    "last year": -1, "this year": 0, "next year": 1,
}  # fmt: skip

# Patterns of English, with the groups that the rules of memd.text.time_rules read.
NUMBER = rf"(?P<n>\d{{1,4}}|{'|'.join(_NUMBERS)})"
WEEKDAY = rf"(?P<wd>{'|'.join(WEEKDAYS)})"
SHORT_WEEKDAY = rf"(?P<wd>{'|'.join(WEEKDAYS)}|mon|tues?|wed|thur?s?|fri|sat|sun)"
MONTH = rf"(?P<mon>{'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
YEAR = r"(?P<year>(?:1[0-9]|2[01])\d\d|(?:last|this|next) year)"
RELATION = r"(?P<rel>last|previous|this|the current|current|next)"
# Months: "last month", "May", "May 2025", "last May", "May of last year".
MONTH_PHRASE = rf"(?:the )?(?:{RELATION} month|(?:(?P<which>last|this|next) )?{MONTH}(?:,? (?:of )?{YEAR})?)"
PART_OF = r"(?P<part>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)[- ]"

# Patterns of Chinese.
CHINESE_NUMBER = "(?P<n>[0-9]{1,4}|[一二三四五六七八九十两兩几幾]{1,3})"
CHINESE_WEEK = "(?:周|週|星期|礼拜|禮拜)"
CHINESE_WEEKDAY = "(?P<wd>[一二三四五六日天])"
CHINESE_RELATION = "(?P<rel>上上|上|这|這|本|当|當|下下|下)"
CHINESE_YEAR = (
    "(?P<year>[0-9]{4} ?年|[一二三四五六七八九〇零]{4}年|大前年|前年|去年|今年|本年|明年|后年|後年)"
)
SAME_DAY = f"(?P<day>{'|'.join(word for word in SAME_DAYS if not word.isascii())})(?![气氣])"
NO_CHINESE_NUMBER = "(?<![0-9一二三四五六七八九十百千几幾两兩.个個])"
# 25年 is a year only where a month, quarter, half or season follows; otherwise it may be a length.
CHINESE_YEAR_OF = CHINESE_YEAR.replace(
    "大前年",
    # What precedes is looked at last: a pattern that begins with characters is found faster.
    "(?:[0-9]{2}|[一二三四五六七八九〇零]{2})(?<![第0-9一二三四五六七八九十百千几幾两兩.个個].{2}) ?年|大前年",
    1,
)
CHINESE_MONTH = f"(?:{CHINESE_RELATION}(?:个|個)?月|(?:{CHINESE_YEAR_OF} ?的? ?)?{NO_CHINESE_NUMBER}(?P<mon>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]) ?月)(?:份|分)?"
CHINESE_PART = " ?的?月?(?P<part>初|上旬|中旬|下旬|底|末)"


def read_number(text: str) -> int:
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


def least_and_most(text: str) -> tuple[int, int]:
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
        return read_number(text), read_number(text)
    numbers = read_number(text[:begin] + least + text[end:]), read_number(text[:begin] + most + text[end:])
    if numbers[0] >= numbers[1] or len(most) > 1:
        raise ValueError(text)
    return numbers


def read_weekday(text: str) -> int:
    """Return the number of a weekday, 0 for Monday."""
    if len(text) == 1:
        return "一二三四五六日".index(text.replace("天", "日"))
    return next(n for n, name in enumerate(WEEKDAYS) if name[:3] == text[:3])


def read_year(text: str | None, now: datetime) -> int | None:
    """Return the named year; None: none is named."""
    if text is None:
        return None
    if text in RELATIVE:
        return now.year + RELATIVE[text]
    year = text.removesuffix("年").strip()
    if len(year) > 2:
        return read_number(year)
    return read_number(year) + (2000 if read_number(year) < 70 else 1900)
