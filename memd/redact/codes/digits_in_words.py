"""Finds codes whose digits are written as words: "the PIN is four seven one nine", "密码是三七二一五六"."""

import re

from memd.redact.rule import Rule, Span
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.spoken_numbers
# A code has four to ten digits.
_DIGIT = rf"(?:{either(_WORDS.digits)})(?!\w)"
_LABELS = (*_WORDS.labels, *_WORDS.labels_in_chinese)
_NO_CODE = re.compile(either(SECRET_WORDS.lock_codes.others), re.IGNORECASE)
_SPOKEN = re.compile(
    rf"(?:{either(_WORDS.labels)})(?![a-z])[^\n.:;?!=\d]{{0,40}}?(?:[ ](?:{either(_WORDS.says)})[ :,]|[ ]?[:：=,])[ ]{{0,2}}(?:u[hm][ ]?,[ ])?[\"“]?"
    rf"(?P<secret>{_DIGIT}(?:[ ,-]{{1,2}}{_DIGIT}){{3,9}})",
    re.IGNORECASE,
)
_IN_CHINESE = re.compile(
    rf"(?:{either(_WORDS.labels_in_chinese)})[^\n。；，,:：0-9]{{0,8}}?(?:[是为為成]了?[ :：]?|[:：は]|[ ])[ 　“「]{{0,2}}"
    rf"(?P<secret>[{_WORDS.digits_in_chinese}]{{4,10}})(?![一-鿿])"
)


# Letters, digits and symbols as they are read out: "大K小x三三井号八", "えー・びー・さん", "에이 케이 공삼".
_READ = rf"(?>{either((*_WORDS.spelled_letters, *_WORDS.spelled_signs))}|[A-Za-z0-9])"
_READ_OUT = re.compile(
    rf"(?:{either(_WORDS.spelled_labels)})[^\n。；;!?！？]{{0,16}}?(?:[是为為は는은成打输念]了?[ :：]?|[:：,，]|[ ])[ 　“「\"]{{0,2}}"
    rf"(?P<secret>{_READ}(?:[・· 、-]?{_READ}){{3,23}}+)(?![A-Za-z0-9])"
)
_LEAST_READ = 2  # digits or symbols
_DIGITS_READ = re.compile(
    rf"(?:ぜろ|ゼロ|れい|まる|いち|に|さん|よん|し|ご|ろく|なな|しち|はち|きゅう|きゅー|く|영|공|일|이|삼|사|오|육|칠|팔|구)(?:[・· 、-](?:{either(_WORDS.spelled_signs)})){{3,11}}"
)
_LETTER_READ = re.compile(rf"{either(_WORDS.spelled_letters)}|[A-Za-z]")
_SIGN_OR_DIGIT = re.compile(either(_WORDS.spelled_signs))
_ENDS_READING = re.compile(
    r"[”」\"]?[ ]?(?:[,，。.;；!！、（(]|\s|\Z|です|입니다|야|전부|전체|这|你|没|沒|全部)"
)


def _read_out(text: str, at: int) -> Span | None:
    match = _READ_OUT.match(text, at)
    if match is None or _ENDS_READING.match(text, match.end()) is None:
        return None
    said = match["secret"]
    is_read = _LETTER_READ.search(said) is not None and len(_SIGN_OR_DIGIT.findall(said)) >= _LEAST_READ
    return match.span("secret") if is_read or _DIGITS_READ.fullmatch(said) is not None else None


def _spoken(text: str, at: int) -> Span | None:
    match = _SPOKEN.match(text, at) or _IN_CHINESE.match(text, at)
    if match is None or _NO_CODE.search(text, max(0, at - 16), match.start("secret")) is not None:
        return None
    return match.span("secret")


RULES = (
    Rule("code-spoken", "code", _LABELS, _spoken),
    Rule("password-read-out", "password", _WORDS.spelled_labels, _read_out),
)
"""Codes of digits, and passwords that are read out letter by letter."""
