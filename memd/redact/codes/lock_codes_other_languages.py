"""Finds codes of locks outside English: digits behind a word for codes beside the door, the alarm, the card or the locker it opens."""

import re

from memd.redact.rule import Nearby, Rule, Span
from memd.redact.values import secret_candidates
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.lock_codes
_GAP = r"[^\n\d:：=.,;!?()]{0,20}?"
# What announces the digits, and the digits at the end of a clause.
_DIGITS = (
    rf"{_GAP}(?:[ ]?[4-8四六八][ ]?(?:자리|位数?|桁))?(?:[ ]?[:：=][ ]{{0,3}}|[ ](?:{either(_WORDS.says)}|[-–—])[ ]|(?<=[はは는은是])[ ]?|[ ]|(?<=[码碼]))"
    r"(?P<secret>[0-9]{3,8}[#*]?|[A-ZА-Я][0-9]{3,6}|[0-9]{2,4}[A-ZА-Я][0-9]{0,6}|[0-9]{1,2}(?:[ ]?-[ ]?[0-9]{1,2}){2,3}|[0-9](?:[ ][0-9]){2,5})"
    rf"(?=[#*]?(?:[,;](?!\w)|[,;](?=[一-鿿])|[)，。、]|[ ](?:{either(SECRET_WORDS.context.goes_on)})[ ]|[.!](?!\w)|[ \t]{{0,4}}(?:\n|\Z)|[ ]?[(（]|です|입니다|이에요))"
)
_CODE = rf"(?:{either(_WORDS.codes)})"
_LOCK = rf"(?:{either(_WORDS.locks)})"
_OF_LOCK = re.compile(rf"{_CODE}{_GAP}{_LOCK}{_DIGITS}", re.IGNORECASE)
_LOCK_BEFORE = re.compile(rf"(?<![A-Za-z]){_LOCK}{_GAP}\Z", re.IGNORECASE)
_BEHIND_LOCK = re.compile(_CODE + _DIGITS, re.IGNORECASE)
_IN_ONE = re.compile(rf"(?:{either(_WORDS.in_one)})\w{{0,4}}{_DIGITS}", re.IGNORECASE)
_OTHERS = re.compile(either(_WORDS.others), re.IGNORECASE)
_ANNOUNCES = (":", "：", "=", *(f" {word}" for word in _WORDS.says if len(word) > 1))
# "の番号" and "번호" are the number of a door or a room, too; of a safe they are its code.
_NUMBER = re.compile("の番号|번호")
_SAFE = re.compile("金庫|キーボックス|鍵ボックス|オートロック|ダイヤル|금고|도어락")
# The words for a code of a lock that no word for codes begins.
_IN_ONE_WORD = tuple(word for word in _WORDS.in_one if not word.startswith(_WORDS.codes))


def _opening(text: str, at: int) -> Span | None:
    is_inside = text[at].isascii() and text[at - 1 : at].isalpha() and text[at - 1 : at].isascii()
    match = None if is_inside else _IN_ONE.match(text, at) or _OF_LOCK.match(text, at)
    if match is None:
        match = _BEHIND_LOCK.match(text, at)
        if match is None or _LOCK_BEFORE.search(text[max(0, at - 40) : at]) is None:
            return None
    begin = max(0, text.rfind("\n", 0, at) + 1, at - 40)
    said = text[begin : match.start("secret")]
    is_year = secret_candidates.is_year(match["secret"]) and not said.rstrip().endswith(_ANNOUNCES)
    is_number = _NUMBER.match(text, at) is not None and _SAFE.search(said) is None
    return None if is_year or is_number or _OTHERS.search(said) else match.span("secret")


# Digits after what they unlock or confirm: "锁屏是135792", "验证码收到了，是 781622".
_CHINESE = re.compile(
    r"(?:锁屏|门锁|智能锁|电子锁|大门|房门|保险[箱柜]|门禁|密码锁|验证码|驗證碼|校验码|保安[编編][码碼]|主持人密[钥鑰]|(?<![a-z])(?:pin|puk|pim)2?)"
    r"(?P<middle>[ ]?[一-鿿，, ]{0,16}?(?:[是为係按输成]|改为|[:：])了?|[ ]?[:：])[ ，,「]{0,2}"
    r"(?P<secret>[0-9]{3,8})(?![0-9A-Za-z%]|[.:/-][0-9]|,[0-9]{3}(?![0-9])|[ ]{0,2}[年月日元块个分楼号秒位次条米毫字])",
    re.IGNORECASE,
)
_OF_ERRORS = re.compile("不能|不可|错误|长度|有效|次数|位数|超时|时间|端口|编号|价格|尺寸|宽|高")


def _chinese(text: str, at: int) -> Span | None:
    match = _CHINESE.match(text, at)
    return None if match is None or _OF_ERRORS.search(match["middle"]) else match.span("secret")


CHINESE = (
    Rule(
        "code-of-lock-chinese",
        "code",
        (
            "锁屏", "门锁", "智能锁", "电子锁", "大门", "房门", "保险箱", "保险柜", "门禁", "密码锁", "验证码", "驗證碼", "校验码",
            "保安编码", "保安編碼", "主持人密钥", "主持人密鑰", "pin", "puk", "pim",
        ),
        _chinese,
        needs=Nearby(re.compile("[:：是为係按输成了，, 「](?=[0-9])"), 0, 28, 2, has_digit=True),
    ),
)  # fmt: skip
"""One rule, which finds what confirms a login, too."""
RULES = (
    Rule(
        "code-of-lock-abroad",
        "code",
        (*_WORDS.codes, *_IN_ONE_WORD),
        _opening,
        needs=Nearby(re.compile("[0-9]{2}|[0-9][ ]?-|[A-ZА-Я][0-9]"), 0, 70, 3, has_digit=True),
    ),
)
