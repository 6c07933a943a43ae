"""Finds passphrases of words: four or more of the words that wallets and generators draw from, behind a label in any language."""

import re

from memd.redact import secret_values
from memd.redact.rule import Nearby, Rule, Span
from memd.redact.secret_words import SECRET_WORDS, either
from memd.redact.wallets import words_of

_LABELS = (*SECRET_WORDS.context.passwords, "passphrase")
# From a label to the words: what it is for, and what announces them. Behind a label in another script, a blank is enough.
_PHRASE = re.compile(
    rf"(?:{either(_LABELS)})[^\n.;:：。；!?？]{{0,48}}?"
    r"(?:[ ]?[:：=][ ]{0,2}|[ ](?:is|was|ist|lautet|est|es|è|é|är|er|jest|это|là)[ ](?:(?:now|jetzt|maintenant|ahora|ora|agora|nu|teraz|теперь)[ ])?|[是为成用]了?[ ：:]{0,2}|(?<=[^\x00-\x7f])[ ])"
    r"[\"'`“「]?(?P<secret>[a-z]{3,8}(?:[ ][a-z]{3,8}){3,11}|[a-z]{3,8}(?:-[a-z]{3,8}){3,11})"
    r"(?=[\"'`”」]?(?:[ ]?[,.;)，。；、）!！]|[ \t]{0,4}(?:\n|\Z)|[ ]?[^\x00-\x7f]))",
    re.IGNORECASE,
)


_FOUR_WORDS = Nearby(
    re.compile(r"(?<![A-Za-z])[a-z]{3,8}(?P<gap>[ -])(?:[a-z]{3,8}(?P=gap)){2}[a-z]{3,8}(?![A-Za-z])"),
    0,
    80,
    36,
)


def _worded(text: str, at: int) -> Span | None:
    match = _PHRASE.match(text, at)
    if match is None or match["secret"] != match["secret"].lower():
        return None
    said = re.split("[ -]", match["secret"])
    words = frozenset(said)
    if (
        len(words) < len(said)
        or not words.isdisjoint(secret_values.SENTENCE_WORDS)
        or not words.isdisjoint(secret_values.HARMLESS_WORDS)
    ):
        return None
    # A sentence in English, or in a language with such words, has others among them.
    return match.span("secret") if words <= words_of("english") else None


RULES = (
    Rule(
        "passphrase-of-words",
        "password",
        tuple(dict.fromkeys(_LABELS)),
        _worded,
        needs=_FOUR_WORDS,
    ),
)
"""One rule."""
