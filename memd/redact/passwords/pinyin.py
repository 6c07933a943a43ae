"""Finds passwords of Chinese words in Latin letters behind a label: "wifi 密码 jintianyehenkaixin", "pw 还是 woaixuexi_zhende".

A word of another language may consist of syllables of Chinese, too ("database"). So a password has at least four of them, or five in
parts, and nearly as many letters for each as Chinese has on average. Behind a label that is written so, too, it may be any password.
"""

import re

from memd.redact.rule import Nearby, Rule, Span
from memd.redact.values import secret_values
from memd.redact.words.chinese_syllables import CHINESE_SOUNDS, fewest_syllables

# The fewest syllables and letters.
_OF_ONE_WORD, _OF_PARTS, _BEHIND_ILOVE, _AT_END = (4, 12), (5, 10), (2, 6), (4, 11)
_LETTERS_OF_SYLLABLE = 2.5  # on average; words of other languages are divided into shorter ones
# What forms, variables and rows of settings call a password, a user and what to do with them.
_ABOUT_PASSWORDS = re.compile(
    r"(?:mima|kouling|miyao|yanzhengma)\Z|\Amima|shuru|qingtian|yonghu|denglu|zhanghao|huoqu|shezhi|xiugai"
)
# What parts of programs are called.
_OF_PROGRAMS = re.compile(
    "zujian|mokuai|fuwu|jiekou|huanjing|bianliang|canshu|peizhi|xitong|guanli|jiami|jiemi|wangji|chongzhi|qiehuan|gongju|ceshi|shuju|wenjian|xiangmu"
)

_IN_CAPITALS = re.compile("[a-z][A-Z]")  # two words of a name in a program

_LABEL = r"(?:密码|密碼|口令|(?<![A-Za-z0-9_.-])(?:pw|pwd)(?![A-Za-z0-9_.=-]))"
_WORD = r"(?P<secret>[A-Za-z]{3,32}(?:[_.-][A-Za-z]{2,20}){0,3})"
_ENDS = r"(?![\w@=/\\(:-]|[.][\w])"
# Behind "pw" the text must be Chinese.
_BEHIND = re.compile(
    rf"{_LABEL}(?:(?<=[码碼令])[*_`]{{0,2}}[^\n。；;!?？！A-Za-z0-9<>(){{}}\[\]=/|]{{0,14}}?|[^\n。；;!?？！A-Za-z0-9<>(){{}}\[\]=/|]{{0,8}}[一-鿿][^\n。；;!?？！A-Za-z0-9<>(){{}}\[\]=/|]{{0,8}}?)[\"'`“「]?{_WORD}{_ENDS}",
    re.IGNORECASE,
)
# A turn or a line that asks for it, and one below with the answer alone.
_ASKED = re.compile(
    rf"{_LABEL}[^\n]{{0,60}}\n[ \t>]{{0,8}}(?:[\w.-]{{1,16}}[:：][ ]?)?{_WORD}[ \t]{{0,4}}[。.]?(?=\n|\Z)",
    re.IGNORECASE,
)
_ASKS = re.compile("请|提供|输入|告诉|什么|多少|发我|给我|[?？]")


def is_pinyin(word: str, *, at_end: bool = False) -> bool:
    """Return whether a word is a sentence of Chinese in Latin letters, maybe in parts or behind "ilove".

    Args:
        word: Letters, maybe with a sign between parts.
        at_end: Whether it is all that stands between its label and the end of the clause: two words suffice then.
    """
    parts = re.split("[_.-]", word.lower().removeprefix("ilove"))
    letters = "".join(parts)
    if len(letters) < len(word) - len(parts) + 1:
        least, least_letters = _BEHIND_ILOVE
    else:
        least, least_letters = _OF_ONE_WORD if len(parts) == 1 else _AT_END if at_end else _OF_PARTS
        if len(parts) == 1 and _IN_CAPITALS.search(word) is not None:
            return False
    if len(parts) > 1 and CHINESE_SOUNDS.search(letters) is None:
        return False
    if len(letters) < least_letters or _ABOUT_PASSWORDS.search(letters) is not None:
        return False
    counts = [fewest_syllables(part) for part in parts]
    return all(counts) and sum(counts) >= least and len(letters) >= _LETTERS_OF_SYLLABLE * sum(counts)


def _behind(text: str, at: int) -> Span | None:
    match = _BEHIND.match(text, at)
    if match is None:
        match = _ASKED.match(text, at) if text.find("\n", at, at + 70) >= 0 else None
        if match is None or _ASKS.search(text, max(0, at - 30), match.start("secret")) is None:
            return None
    said = match["secret"]
    if not said.isalpha() and _OF_PROGRAMS.search(said.lower()) is not None:
        return None
    is_one = is_pinyin(said, at_end=_ALONE.match(text, at) is not None)
    return match.span("secret") if is_one else None


# Only a blank or a verb before it, and the end of a clause behind.
_ALONE = re.compile(
    r"(?:密码|密碼|口令)[ ]?(?:[:：]|[是为為])?[ ]?[a-z]{4,16}[-_.][a-z]{4,16}(?=[ ]?(?:[，。；！)）]|[ \t]{0,4}(?:\n|\Z)))"
)
_LETTERS = re.compile("[A-Za-z]{3}")


# --- "wo de mima shi huahua0611": the Chinese word in Latin letters

_PINYIN = re.compile(
    r"(?<![a-z])(?:mi[ ]?ma|kou[ ]?ling)[ ]?(?:shi|wei|:|：|=|gai[ ]?cheng|gai[ ]?le|huan[ ]?cheng)[ ]{0,2}[\"'`]?(?P<secret>[!-~]{5,40}?)(?=[\"'`]?[.,;!?)]?(?:\s|\Z)|[，。])",
    re.IGNORECASE,
)


def _in_pinyin(text: str, at: int) -> Span | None:
    match = _PINYIN.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    return match.span("secret") if secret_values.is_strong(match["secret"]) else None


RULES = (
    Rule("password-pinyin", "password", ("密码", "密碼", "口令"), _behind, needs=Nearby(_LETTERS, 0, 90, 3)),
    Rule("password-pinyin-pw", "password", ("pw",), _behind, needs=Nearby(re.compile("[一-鿿]"), 0, 16)),
)
"""One rule for Chinese labels, and one for those in Latin letters."""
LABELS_IN_PINYIN = (
    Rule("password-in-pinyin", "password", ("mima", "mi ma", "kouling", "kou ling"), _in_pinyin),
)
"""Any password behind a label in Latin letters."""
