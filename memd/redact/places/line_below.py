"""Finds passwords and codes that stand alone on the line below their label: "Contraseña del correo" and then the password.

The line of the label says what the password is for and nothing else, or that it follows below ("the password is on the next line"). The
value is one word that looks like a password, or the digits of a code below a label for one.
"""

import re

from memd.redact.rule import Rule, Span
from memd.redact.values import secret_candidates, secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.below
_PASSWORDS = tuple(dict.fromkeys((*_WORDS.labels, *_WORDS.in_chinese, *SECRET_WORDS.passwords)))
_LABELS = (*_PASSWORDS, *_WORDS.codes)
# What the password is for, in brackets or behind a preposition, and the end of the line.
_OF_IT = rf"(?:[ ]?[(（][^()（）\n]{{1,30}}[)）]|[ ](?:for|of|to|on|{either(SECRET_WORDS.plain.of)}|dell['’]|de[ ]l['’]|d['’])[ ]?[\w.@+'’/ -]{{1,40}}?|[ ](?:wifi|wi-fi|wlan|root|admin))?"
_NEXT_LINE = r"[ ]?[:：]?[*_`]{0,3}[ \t]{0,8}\n(?:[ \t]{0,8}\n)?(?:[ \t>]{0,8}```[a-z]{0,10}\n)?[ \t>]{0,12}(?:[-*•][ ])?[\"'`“「*]{0,3}"
_VALUE = r"(?P<secret>[!-~]{4,64}?)[\"'`”」*]{0,3}[ \t]{0,8}(?=\n|\Z)"
_BELOW = re.compile(
    rf"(?:(?P<code>{either(_WORDS.codes)})|(?:{either(_PASSWORDS)})(?:\w{{1,2}}(?=[ :：\n*]))?)[*_`\"']{{0,3}}{_OF_IT}{_NEXT_LINE}{_VALUE}",
    re.IGNORECASE,
)
# Up to three words before the label, behind the mark of a list or a heading.
_LINE_BEFORE = re.compile(
    r"(?:\A|\n)[ \t>#*•-]{0,10}[*_`]{0,2}(?P<words>(?:[\w.@'’/+-]{1,24}[ ]){0,3}|[一-鿿ぁ-ヿA-Za-z0-9 -]{0,14})\Z"
)


def _below(text: str, at: int) -> Span | None:
    match = _BELOW.match(text, at)
    if match is None:
        return None
    before = _LINE_BEFORE.search(text[max(0, at - 60) : at])
    if before is None or not _WORDS.others.isdisjoint(before["words"].lower().split()):
        return None
    if any(word in before["words"] for word in _OTHERS_IN_CHINESE):
        return None
    said = match["secret"]
    if match["code"] is not None:
        return match.span("secret") if secret_candidates.is_typed_code(said) else None
    return secret_candidates.password_alone(said, match.start("secret"))


# "The password is on the next line, do not forward:": a label before the words that say so, and a remark and the value behind them.
_NEXT, _DOWN = _WORDS.next_line, _WORDS.further_down
_LABEL_BEFORE = re.compile(
    rf"(?:(?<![A-Za-z])|(?<=[^\x00-\x7f]))(?:{either((*_PASSWORDS, *_WORDS.short))})s?[^\n.:;!?。：；！？\d]{{0,20}}\Z",
    re.IGNORECASE,
)
_SAID_BELOW = re.compile(
    rf"(?:(?P<line>{either(_NEXT)})|{either(_DOWN)})(?![a-z])(?:[ ]?[,，(（][^\n:：\d]{{0,40}})?[ ]?[:：.。]?[*_`]{{0,3}}[ \t]{{0,8}}\n"
    rf"(?:[ \t]{{0,8}}\n)?[ \t>]{{0,12}}[\"'`“「*]{{0,3}}{_VALUE}",
    re.IGNORECASE,
)


def _said_below(text: str, at: int) -> Span | None:
    match = _SAID_BELOW.match(text, at) if text.find("\n", at, at + 90) >= 0 else None
    if match is None or _LABEL_BEFORE.search(text[max(0, at - 50) : at]) is None:
        return None
    said = match["secret"]
    # Where a sentence says that it is the next line, a weaker word is one, too.
    if match["line"] and not secret_values.is_statement(said):
        return secret_values.strong_span(text, *match.span("secret"))
    return secret_candidates.password_alone(said, match.start("secret"))


_OTHERS_IN_CHINESE = tuple(word for word in _WORDS.others if not word.isascii() and not word[0].islower())

RULES = (
    Rule("password-below", "password", shortest_anchors(_LABELS), _below),
    Rule("password-said-below", "password", shortest_anchors((*_NEXT, *_DOWN)), _said_below),
)
"""What is below a label alone, and below a sentence that says so."""
