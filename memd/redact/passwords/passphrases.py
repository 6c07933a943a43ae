"""Finds passphrases of words: four or more of the words that wallets and generators draw from, behind a label in any language.

Behind a word for passphrases, in quotes or from a colon to the end of the line, any three or more words are one that are no sentence.
"""

import re

from memd.redact.rule import Nearby, Rule, Span
from memd.redact.values import secret_values
from memd.redact.words.bip39 import words_of
from memd.redact.words.secret_words import SECRET_WORDS, either

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


_OF_ANY_WORDS = SECRET_WORDS.plain.phrases
_ANY_WORDS = re.compile(
    rf"(?P<label>{either(_OF_ANY_WORDS)})[^\n:：=\"'“„«「]{{0,30}}?(?P<by>[ ]?[:：=]|[ ](?:ist|lautet|est|es|é|è|is|это)(?=[ ])|[はは](?=[「『])|(?=[ ][\"“„«]))[ ]{{0,3}}(?:(?:(?<=[:：])|(?<=[:：][ ]))\n[ \t>*-]{{0,6}})?"
    r"(?:[\"“„«][ \u00a0]?(?P<quoted>[^\W\d_]{2,14}(?:[ -][^\W\d_]{1,14}){2,9})[ \u00a0]?[\"”“»]|[「『](?P<kana>[一-鿿々ぁ-ヿー]{5,20})[」』]"
    r"|(?P<bare>[^\W\d_]{3,14}(?:[ ][^\W\d_]{2,14}){2,7})(?=[.]?[ \t]{0,4}(?:\n|\Z)))",
    re.IGNORECASE,
)


_OF_IT = re.compile(
    r"[*_`]{0,2}(?:[ ](?:for|of|to|für|vom|von|zu|zum|zur|der|des|du|de|del|do|da|di|van|voor|от|для|к)[ ].{1,28})?[ ]?"
)


def _of_any_words(text: str, at: int) -> Span | None:
    match = _ANY_WORDS.match(text, at)
    if match is None:
        return None
    if match["kana"]:
        return match.span("kana")
    group = "bare" if match["quoted"] is None else "quoted"
    said = re.split("[ -]", match[group].lower())
    if len(frozenset(said)) < len(said) or not secret_values.SENTENCE_WORDS.isdisjoint(said):
        return None
    if group == "bare" and _OF_IT.fullmatch(text, match.end("label"), match.start("by")) is None:
        return None
    of_sentences = [word in SECRET_WORDS.plain.function_words for word in said]
    if of_sentences[0] or sum(of_sentences) > 2:
        return None
    if group == "quoted":
        return (
            match.span(group) if secret_values.is_phrase(match[group]) or not match[group].isascii() else None
        )
    # English has more words that speak of passwords; so two of three must be those that phrases are drawn from.
    is_english = len(words_of("english") & frozenset(said)) * 2 >= len(said)
    is_one = secret_values.HARMLESS_WORDS.isdisjoint(said) and len(said) - sum(of_sentences) >= (
        3 if is_english else 4 - (sum(of_sentences) > 1)
    )
    return match.span(group) if is_one else None


# 'pw for the zip is "the quick brown otter"': words in quotes behind any word for a password.
_QUOTED_WORDS = re.compile(
    rf"(?:{either(_LABELS)})(?:(?<=pass)(?:word|phrase|code|wd)?s?(?![a-z])|(?<!pass))(?![a-z]{{0,8}}[ ](?:prompt|field|hint|dialog|box|polic|manager))[^\n\"“„«「.;:：=?!<>]{{0,56}}?(?:[ ]?[:：=?]|[ ](?:{either((*SECRET_WORDS.plain.says, 'is', 'was', 'now', 'to'))})(?=[ ])|[是为は])[ ]{{0,2}}"
    r"[\"“„«「'‘][ \u00a0]?(?P<secret>[^\W\d_]{1,14}(?:[ ][^\W\d_]{1,14}){2,7})[!.]?[ \u00a0]?[\"”“»」'’](?![ ]?[:=({]|\w)",
    re.IGNORECASE,
)
# Words of sentences that phrases may have, too.
_OF_PHRASES_TOO = frozenset(
    {
        "the",
        "a",
        "an",
        "of",
        "in",
        "on",
        "and",
        "at",
        "for",
        "with",
        "to",
        "my",
        "is",
        "are",
        "under",
        "over",
        "one",
        "two",
        "all",
        "old",
        "new",
        "big",
    }
)


def _quoted_words(text: str, at: int) -> Span | None:
    if text[at - 1 : at].isalpha() and text[at - 1 : at].isascii():
        return None
    match = _QUOTED_WORDS.match(text, at)
    if match is None:
        return None
    said = [word for word in match["secret"].lower().split() if word not in _OF_PHRASES_TOO]
    speaks = (
        not secret_values.SENTENCE_WORDS.isdisjoint(said)
        or not secret_values.HARMLESS_WORDS.isdisjoint(said)
        or not SECRET_WORDS.plain.function_words.isdisjoint(said)
        or len(frozenset(said)) < len(said)
        or any(word.startswith(_SPEAKS_OF_PASSWORDS) for word in said)
    )
    return None if speaks or len(said) < 3 else match.span("secret")


_SPEAKS_OF_PASSWORDS = ("pass", "kennw", "contras", "senha", "wachtw", "hasł", "парол", "charact", "zeichen")

RULES = (
    Rule(
        "passphrase-in-quotes",
        "password",
        tuple(dict.fromkeys(_LABELS)),
        _quoted_words,
        needs=Nearby(re.compile("[\"“„«「'‘]"), 0, 90),
    ),
    Rule("passphrase-of-any-words", "password", _OF_ANY_WORDS, _of_any_words),
    Rule(
        "passphrase-of-words",
        "password",
        tuple(dict.fromkeys(_LABELS)),
        _worded,
        needs=_FOUR_WORDS,
    ),
)
"""Words that wallets draw from behind any label, and any words behind a label for passphrases."""
