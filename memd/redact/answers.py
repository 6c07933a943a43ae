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


# A word that somebody says on the telephone: "my magic word for the phone bank is marmalade".
_SAID_ALOUD = re.compile(
    rf"(?:{either(_WORDS.words)})(?:[ ](?:for|with|at|of|bei|für|der|de|del|para|du|di|da|для|от|в)[ ][^\n:：=.,;!?\"“]{{2,40}}?)?"
    rf"(?:[ ]?[:：=]|[ ](?:is|was|ist|lautet|est|es|é|è)(?=[ ])|[是为は])[ ]{{0,3}}[\"“„«「'‘]?(?P<secret>[^\W\d_]{{4,24}}|[一-鿿]{{2,8}})[\"”“»」'’]?(?=[,;.，。；、](?!\w)|[ \t]{{0,4}}(?:\n|\Z))",
    re.IGNORECASE,
)


def _said_aloud(text: str, at: int) -> Span | None:
    match = (
        None if text[at - 1 : at].isascii() and text[at - 1 : at].isalnum() else _SAID_ALOUD.match(text, at)
    )
    if match is None:
        return None
    said = match["secret"].lower()
    is_none = (
        said in secret_values.HARMLESS_WORDS
        or said in _WORDS.no_words
        or said in SECRET_WORDS.plain.function_words
        or secret_values.is_about_passwords(said)
    )
    return None if is_none else match.span("secret")


# 秘密の質問「母の旧姓」の答えはいわさき: the question in brackets, and the answer behind a word for it.
_OF_QUESTION = re.compile(
    rf"(?:{either(_WORDS.questions)})[^\n。；;!！]{{0,30}}?(?:(?:答え|回答|答案|답)(?:[はは是为은는]|[：:])[ ]?[「“\"『]?)(?P<secret>[一-鿿々ぁ-ゖァ-ヶー가-힣A-Za-z0-9]{{2,12}}?)(?=[」”\"』]|に(?:して|設定)|で(?:す|した)|だ|입니다|이야|[，。、,.\s]|\Z)"
)


def _of_question(text: str, at: int) -> Span | None:
    match = _OF_QUESTION.match(text, at)
    if (
        match is None
        or match["secret"].startswith(_WORDS.asks_joined)
        or secret_values.is_about_passwords(match["secret"])
    ):
        return None
    return match.span("secret")


RULES = (
    Rule("word-said-aloud", "password", _WORDS.words, _said_aloud),
    Rule("answer-in-sentence", "password", _WORDS.questions, _of_question),
    Rule("answer-abroad", "password", ("first pet", *_WORDS.people, *_WORDS.questions), _answered),
)
"""Answers behind a colon, in a sentence, and words that are said on the telephone."""
