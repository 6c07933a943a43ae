"""Finds answers to security questions: names behind a label for them, in a dozen languages."""

import re

from memd.redact import secret_values
from memd.redact.rule import Rule, Span
from memd.redact.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.answers
_NAME = r"(?-i:[A-ZÀ-ÞА-ЯЁ])[^\W\d_][\w'’-]{1,24}(?:[ ](?-i:[A-ZÀ-ÞА-ЯЁ])[\w'’-]{1,24}){0,2}"
# Behind what is asked for only a colon: "my first pet was Rex" is a memory like any other. A word for the question itself has
# more behind it, what is asked for or a word for the answer, and then a colon or a verb.
_ANSWER = re.compile(
    rf"(?:(?:(?:{either(_WORDS.people)})[^\n:：=?？!.;]{{0,40}}|first[ ]pet)[:：=]"
    rf"|(?:{either(_WORDS.questions)})[^\n:：=?？!.;]{{2,40}}(?:[:：=]|[ ](?:is|was|ist|war|est|es|é|è|это)(?=[ ])))[ \u3000]{{0,3}}"
    rf"[\"“„«「『]?(?P<secret>{_NAME}|[一-鿿々ぁ-ヿ가-힣]{{2,8}})[\"”»」』]?[.。]?[ \t]{{0,4}}(?=\n|\Z)",
    re.IGNORECASE,
)


def _answered(text: str, at: int) -> Span | None:
    match = _ANSWER.match(text, at)
    if match is None:
        return None
    said = match["secret"].lower()
    is_none = (
        not {said, *said.split()}.isdisjoint(secret_values.HARMLESS_WORDS)
        or said.split()[0] in _WORDS.asks
        or said.startswith(_WORDS.asks_joined)
        or secret_values.is_about_passwords(said)
    )
    return None if is_none else match.span("secret")


RULES = (Rule("answer-abroad", "password", ("first pet", *_WORDS.people, *_WORDS.questions), _answered),)
"""One rule."""
