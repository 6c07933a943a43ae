"""Finds keys and tokens without a form of their own in sentences in Chinese, Japanese and Korean: "appsecret 抄给你 7Kx-Qm20-vLpZ9"."""

import re
from typing import Final

from memd.redact.rule import Nearby, Rule, Span
from memd.redact.values import pinyin_and_korean, randomness, secret_candidates, secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS: Final = SECRET_WORDS.keys
_EAST: Final = r"一-鿿ぁ-ヿ가-힣"
_LATIN: Final = ("key", "token", "secret", "appcode", "psk", "salt", "cookie", "hmac")
_ANCHORS: Final = (*_LATIN, *_WORDS.labels_east)
# The label, which may be the end of a name ("localKey"), what is said of it, and a word that follows a blank, a quote or another script.
_TOLD: Final = re.compile(
    rf"(?:{either(_ANCHORS)})(?:[AB](?=[ {_EAST}]))?(?P<between>[\"'`”」]?[ ,:：]?(?:[^\n.。；;!?！？|<>=(){{}}!-~]|[,:]|(?<=[ {_EAST}])[A-Za-z]{{1,12}}(?=[ {_EAST}])){{0,40}}?)"
    rf"(?<![!-+.-9;-~\-])[\"'`“「]{{0,2}}(?P<secret>[A-Za-z0-9][!-~]{{7,120}})",
    re.IGNORECASE,
)
_SOMETHING_ELSE: Final = re.compile(
    rf"(?<![A-Za-z])(?:{either((*_WORDS.others, 'redis', 'count', 'i18n', 'kafka', 'map'))})(?![A-Za-z])|{either((*_WORDS.others_in_chinese, *_WORDS.others_east))}",
    re.IGNORECASE,
)
_IN_EAST: Final = re.compile(f"[{_EAST}]")
_CHARS_BEFORE: Final = 16
_VERB: Final = re.compile(rf"(?:{either(_WORDS.tells_east)})[的了]?[ ]?[:：,，]?[ ]?[\"'`“「]{{0,2}}\Z")
_VERB_BEHIND: Final = re.compile(
    rf"[\"'`”」]{{0,2}}[ ]?(?:{either(SECRET_WORDS.context.typed_behind)}|[をにでは을를로은는이]|です)"
)
_LETTERS_OF_CODE: Final = re.compile("[a-z]{16}")  # as mail providers issue them
_SERIES: Final = re.compile(r"(?=(?:[A-Z]*[0-9]){4})(?=(?:[0-9]*[A-Z]){4})[0-9A-Z]{12,64}")
_HEXADECIMAL: Final = re.compile("(?=(?:[0-9]*[a-f]){4})[0-9a-f]{16,64}")
_WORD_AND_NUMBER: Final = re.compile(r"[A-Za-z]+[_.-]?[0-9]+")


def _is_key(said: str) -> bool:
    """Return whether a word behind a label and a verb is a key: drawn by chance, or as people make passwords."""
    if _LETTERS_OF_CODE.fullmatch(said) is not None:
        return randomness.is_jumble(said)
    if (
        secret_values.is_reference(said)
        or secret_candidates.names_thing(said)
        or not any(map(str.isdigit, said))
    ):
        return False
    if (
        _SERIES.fullmatch(said) is not None
        or _HEXADECIMAL.fullmatch(said) is not None
        or randomness.is_scrambled(said)
    ):
        return True
    found = secret_candidates.password(said, 0)
    if found is None or found.said != said:
        return False
    if _WORD_AND_NUMBER.fullmatch(said) is not None:
        return randomness.mixes(said) and randomness.is_unlike_words(said, most=0.45)
    return found.grade in {"sure", "mixed"} or (
        found.grade == "likely" and ("-" in said or "_" in said or pinyin_and_korean.is_romanised(said))
    )


def _told(text: str, at: int) -> Span | None:
    match = _TOLD.match(text, at)
    if match is None:
        return None
    start = match.start("secret")
    said = match["secret"]
    said = re.split(r"[,;](?=[^!-~]|\Z)|[\"'`)](?=[^\w]|\Z)|,(?=[A-Za-z]+\b)", said)[0].rstrip(".,;:!?)\"'`")
    left = max(0, at - _CHARS_BEFORE)
    around = text[left : start + len(said) + 8]
    if _IN_EAST.search(around) is None or _SOMETHING_ELSE.search(text, left, start) is not None:
        return None
    end = start + len(said)
    is_told = (
        _VERB.search(match["between"]) is not None
        or not match["between"].strip(" ,:：\"'`”」")
        or _VERB_BEHIND.match(text, end) is not None
    )
    return (start, end) if is_told and _is_key(said) else None


# --- "token 的 secret 写死在 yml 里：ahkamnvzuahsfpnhqihslgvegb": small letters that are no words, behind a word for a key

_JUMBLED = re.compile(
    r"(?:secret|token|密钥|密匙|秘钥|私钥|签名|盐|salt)[^\nA-Za-z]{0,8}(?:[A-Za-z]{1,8})?[^\nA-Za-z]{0,16}[:：=是为][ ]?[\"'`“]?(?P<secret>[a-z]{18,40})(?![\w./-])",
    re.IGNORECASE,
)
_HAN = re.compile("[一-鿿]")


def _jumbled(text: str, at: int) -> Span | None:
    match = _JUMBLED.match(text, at)
    is_one = (
        match is not None
        and randomness.is_jumble(match["secret"])
        and _HAN.search(text, at, match.start("secret"))
    )
    return match.span("secret") if match is not None and is_one else None


RULES: Final = (
    Rule(
        "key-east-asian",
        "key",
        _ANCHORS,
        _told,
        needs=Nearby(_IN_EAST, _CHARS_BEFORE, 40),
    ),
)
OF_LETTERS = (
    Rule("key-of-letters-chinese", "key", ("secret", "token", "密钥", "密匙", "秘钥", "私钥", "签名", "盐", "salt"), _jumbled, needs=Nearby(re.compile("[一-鿿]"), 0, 40)),
)  # fmt: skip
"""Keys of small letters alone."""
