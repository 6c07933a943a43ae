"""Finds codes whose digits are written as words: "the PIN is four seven one nine", "密码是三七二一五六"."""

import re

from memd.redact.rule import Rule, Span
from memd.redact.secret_words import SECRET_WORDS, either

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


def _spoken(text: str, at: int) -> Span | None:
    match = _SPOKEN.match(text, at) or _IN_CHINESE.match(text, at)
    if match is None or _NO_CODE.search(text, max(0, at - 16), match.start("secret")) is not None:
        return None
    return match.span("secret")


RULES = (Rule("code-spoken", "code", _LABELS, _spoken),)
"""One rule."""
