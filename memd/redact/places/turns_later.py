"""Finds passwords and codes that a conversation tells two to four turns after it asked for them.

The turn that asks names what it asks for; the one that tells says nothing else: "what's the pin?", "which one?", "the blue one", "7741".
"""

import re

from memd.redact.rule import LEAD_IN, Rule, Span, in_lower_case, line_start
from memd.redact.values import secret_candidates
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.below
_LABELS = tuple(
    dict.fromkeys((*_WORDS.labels, *_WORDS.in_chinese, *SECRET_WORDS.passwords, *_WORDS.codes, *_WORDS.asked))
)
_SPEAKER = r"[ \t>*-]{0,6}[*_]{0,2}[^\W\d_][\w .-]{0,20}[*_]{0,2}[:：][*_]{0,2}[ ]{0,2}"
# The rest of the turn that asks, one to three turns between, and one that is the answer and nothing else.
_LATER = re.compile(
    rf"(?:{either(_LABELS)})(?P<asks>[^\n]{{0,80}})(?P<between>(?:\n{_SPEAKER}[^\n]{{1,100}}){{1,3}}?)\n{_SPEAKER}"
    rf"(?P<lead>{LEAD_IN}(?:ah[ ,]{{1,2}}right,?[ ]|oh[ ,]{{1,2}})?)[\"'`“「]?(?P<secret>[!-~]{{3,64}}?)[\"'`”」]?(?:[.!。]?[ \t]{{0,4}}(?=\n|\Z)|(?=[,，][ ]?[^\W\d])(?P<more>))",
    re.IGNORECASE,
)
# Of a line in lower case.
_ASKS = re.compile(rf"[?？؟]|{either(SECRET_WORDS.context.asks)}|remember|save|remind|记|merk|запомни")
_SPEAKER_FIRST = re.compile(_SPEAKER)
_IS_CODE = re.compile(
    rf"(?:{either((*_WORDS.codes, *_WORDS.asked))})|{either(SECRET_WORDS.below.in_chinese)}", re.IGNORECASE
)
_SETTLED = re.compile(r"[0-9]{3}|\b(?:port|version|polic|long|digits)\b|位", re.IGNORECASE)


def _later(text: str, at: int) -> Span | None:
    if text[at - 1 : at].isascii() and text[at - 1 : at].isalnum() and text[at].isascii():
        return None
    end = text.find("\n", at, at + 100)
    # Most lines with a label ask for nothing.
    if (
        end < 0
        or _SPEAKER_FIRST.match(text, end + 1) is None
        or _ASKS.search(in_lower_case(text[line_start(text, at, 100) : end])) is None
    ):
        return None
    match = _LATER.match(text, at)
    if match is None or (match["more"] is not None and not match["lead"]):
        return None
    if _SETTLED.search(match["between"]) or _SETTLED.search(match["asks"]):
        return None
    said = match["secret"]
    if secret_candidates.is_typed_code(said):
        return match.span("secret") if _IS_CODE.match(text, at) else None
    return secret_candidates.password_alone(said, match.start("secret"))


RULES = (Rule("told-turns-later", "password", shortest_anchors(_LABELS), _later),)
