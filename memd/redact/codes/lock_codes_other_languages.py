"""Finds codes of locks outside English: digits behind a word for codes beside the door, the alarm, the card or the locker it opens.

In Chinese, they may stand right behind what is locked, or behind a word for passwords.
"""

import re

from memd.redact.rule import Nearby, Rule, Span, line_end, line_start
from memd.redact.values import secret_candidates
from memd.redact.values.code_numbers import may_be_code
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


# --- "家长管控密码 7689", "登录密码 442993a": digits, or digits with a letter or two, behind a password of one thing

_DIGITS_IN_CHINESE = re.compile(
    r"(?:(?P<of>(?<=管控)|(?<=家长)|(?<=监护)|(?<=少年)|(?<=模式)|(?<=童锁)|(?<=儿童)|(?<=支付)|(?<=付款)|(?<=交易)|(?<=取款)|(?<=查询)|(?<=锁屏)|(?<=开机)|(?<=用锁)|(?<=隐私)|(?<=电话)|(?<=服务)|(?<=卡)|(?<=手机)|(?<=平板)|(?<=习机)|(?<=电视)|(?<=顶盒)|(?<=由器)|(?<=印机)|(?<=锁)|(?<=门禁)|(?<=险箱)|(?<=险柜)|(?<=李箱)|(?<=车库)|(?<=无线)))?"
    r"(?:密码|密碼|口令)[ ]?(?:[:：=,，]|就?是|为|改成了?|设成了?|换成了?)?[ ]{0,2}(?P<secret>[0-9]{4,10}[a-z]{1,4}|[a-z]{1,3}[0-9]{5,10}|(?P<digits>[0-9]{4,6}))"
    r"(?![\w%.:/-])(?![ ]?[位个個次年月日天分秒元块条种项页字])"
)
_ENDS_DIGITS = re.compile(r"[，。；！）,;)](?![0-9])|[ \t]{0,4}(?:\n|\Z)|[ ]?[（(#]")
_UNIT = re.compile(
    "[0-9]+(?:bits?|byte|px|ms|mb|gb|kb|hz|mhz|kg|km|cm|mm|min|h|s|x|v|w|p|k|th|st|nd|rd|am|pm)"
)
_ASKS_NUMBER = re.compile("错误|失败|最多|至少|长度|超过|不足|尝试|返回|报错|状态码|端口|第|用户数|泄露了?$")


def _digits_in_chinese(text: str, at: int) -> Span | None:
    match = _DIGITS_IN_CHINESE.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    if match["digits"] is not None:
        is_apart = (
            text[match.start("secret") - 1] in " ：:" and _ENDS_DIGITS.match(text, match.end()) is not None
        )
        if not may_be_code(said) or (match["of"] is None and not is_apart):
            return None
    if _UNIT.fullmatch(said) is not None or (
        said[-1].isdecimal() and not said[0].isdecimal() and len(said) < 7
    ):
        return None
    is_other = _ASKS_NUMBER.search(text, max(0, at - 12), match.start("secret")) is not None
    return None if is_other else match.span("secret")


# --- "萤石摄像头 序列号 E53907217 验证码 PCGLYX": six capitals on the label of a camera

_OF_CAMERA = re.compile(r"验证码[ ]?[:：]?[ ]?(?P<secret>[A-Z]{6})(?![A-Za-z0-9])")
_CAMERA = re.compile("序列号|萤石|海康|摄像头|摄像机|录像机|门铃|机身|SN", re.IGNORECASE)


def _of_camera(text: str, at: int) -> Span | None:
    match = _OF_CAMERA.match(text, at)
    is_one = match is not None and _CAMERA.search(text, max(0, at - 60), at) is not None
    return match.span("secret") if match is not None and is_one else None


# --- "童锁 3807", "锁屏 198503，支付 770213": what is locked, and the digits at once

_LOCKED = re.compile(
    r"(?:童锁|儿童锁|锁屏|支付|取款|付款|屏锁|门锁|门禁|保险柜|保险箱|应用锁|密码锁|电子锁|指纹锁|撤防)(?:密码|码)?[ :：]{1,2}(?P<secret>[0-9]{4,6}[#*]?)(?=[，。,;；）)\n]|\Z|[ ](?![0-9个個次元块条种项人]))"
)
_COUNTS = re.compile(
    "元|块|￥|¥|金额|订单|花了|扣|收|退|合计|总|钻|级|关|岁|月|日|点|号楼|次|分钟|小时|排|名|人"
)


def _locked(text: str, at: int) -> Span | None:
    match = _LOCKED.match(text, at)
    if match is None or not may_be_code(match["secret"].rstrip("#*")) or match["secret"].endswith("00"):
        return None
    is_counted = _COUNTS.search(text, line_start(text, at, 20), line_end(text, match.end(), 12)) is not None
    return None if is_counted else match.span("secret")


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
LOCKED_CHINESE = (
    Rule("code-locked-chinese", "code", ("童锁", "儿童锁", "锁屏", "支付", "取款", "付款", "屏锁", "门锁", "门禁", "保险柜", "保险箱", "应用锁", "密码锁", "电子锁", "指纹锁", "撤防"), _locked, needs=Nearby(re.compile("[0-9]{4}"), 0, 9, 4, has_digit=True)),
)  # fmt: skip
"""Digits right behind what is locked."""
PASSWORDS_OF_DIGITS_CHINESE = (
    Rule("password-of-digits-chinese", "password", ("密码", "密碼", "口令"), _digits_in_chinese, needs=Nearby(re.compile("[0-9]{4}"), 0, 12, 4, has_digit=True)),
    Rule("code-of-camera", "code", ("验证码",), _of_camera, needs=Nearby(re.compile("[A-Z]{6}"), 0, 8, 6)),
)  # fmt: skip
"""Digits behind a word for passwords, and the code on the label of a camera."""
