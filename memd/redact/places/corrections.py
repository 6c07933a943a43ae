"""Finds what corrects a password or a code that stood right before: "B: 4471", "B: 错了,4417"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span
from memd.redact.values import secret_candidates
from memd.redact.words.secret_words import SECRET_WORDS, either

_CORRECTS = SECRET_WORDS.below.corrects
_CORRECTED = re.compile(
    rf"(?:{either(_CORRECTS)})[^\nA-Za-z0-9\[]{{0,16}}?[\"'`“「]?(?P<secret>[A-Za-z0-9#*][!-~]{{3,63}}?)[\"'`”」]?(?=[,，。；、]|[ \t]{{0,4}}(?:\n|\Z)|[ ]?[^\x00-\x7f])"
)
# What was found before is marked in a text that is searched again.
_MARK = re.compile(r"\[REDACTED:(?:password|code)\][^\n]{0,24}(?:\n[^\n]{0,40})?\Z")
_CHARS_OF_MARK = 90


def _corrected(text: str, at: int) -> Span | None:
    match = _CORRECTED.match(text, at)
    if match is None or _MARK.search(text, max(0, at - _CHARS_OF_MARK), at) is None:
        return None
    said = match["secret"]
    if secret_candidates.is_typed_code(said):
        return match.span("secret")
    return secret_candidates.password_alone(said, match.start("secret"))


RULES = (Rule("corrected", "password", _CORRECTS, _corrected, needs=Nearby(DIGIT, 0, 60)),)
