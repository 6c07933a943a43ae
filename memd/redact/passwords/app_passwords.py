"""Finds passwords that a provider or a program draws in groups of four, or as sixteen letters: "the app specific one, xuyz-jxbz-mvok-brty"."""

import re

from memd.redact.rule import Nearby, Rule, Span, line_end
from memd.redact.values import randomness, secret_values
from memd.redact.words.bip39 import words_of
from memd.redact.words.secret_words import SECRET_WORDS

# --- "the app specific one, xuyz-jxbz-mvok-brty": sixteen letters that a provider of mail drew

_MAIL = (
    "app specific", "app-specific", "app pass", "apppass", "application password", "application-specific", "thunderbird", "imap", "smtp", "icloud",
    "授权码", "授權碼", "应用专用", "app专用", "专用密码", "應用程式密碼", "アプリパスワード", "앱 비밀번호", "anwendungsspezifisch", "app-passwort", "mot de passe d'application", "contraseña de aplicación",
)  # fmt: skip
_FOURS = re.compile(
    r"(?<![A-Za-z-])(?P<secret>[a-z]{4}(?P<by>[ -])[a-z]{4}(?:(?P=by)[a-z]{4}){2})(?![A-Za-z-])"
)
_SIXTEEN = re.compile(r"(?<![A-Za-z0-9_./@-])(?P<secret>[a-z]{16})(?![A-Za-z0-9_./@-])")
_TELLS = re.compile(r"(?:[:：=]|->|→|是|(?<![a-z])(?:is|it['’]?s))[ ]{0,2}[\"'“`]?\Z")


def _of_mail(text: str, at: int) -> Span | None:
    fours = _FOURS.search(text, at, min(len(text), at + 160))
    if fours is not None and randomness.is_unlike_words(re.sub("[ -]", "", fours["secret"])):
        words = frozenset(re.split("[ -]", fours["secret"]))
        if words.isdisjoint(_FOUR_LETTERS) and len(words & words_of("english")) < 2:
            return fours.span("secret")
    sixteen = _SIXTEEN.search(text, at, line_end(text, at, 140))
    if sixteen is None or text[at].isascii():
        return None
    is_told = _TELLS.search(text, max(0, sixteen.start() - 8), sixteen.start()) is not None
    is_word = sixteen["secret"] in secret_values.HARMLESS_WORDS
    return sixteen.span("secret") if is_told and not is_word else None


_FOUR_LETTERS = frozenset((
    "that", "this", "with", "have", "from", "your", "they", "will", "what", "when", "then", "than", "them",
    "were", "been", "some", "just", "like", "into", "only", "also", "more", "need", "make", "take", "know",
    "good", "here", "each", "does", "must", "over", "such", "very", "mail", "imap", "smtp", "port", "name",
    "user", "pass", "code", "last", "sync", "send", "sent", "home", "work",
))  # fmt: skip


# --- groups of four of a password that a program drew: "jotted: wN4t hh0E zzK1"

_GROUPS_OF_FOUR = re.compile(
    r"(?<![\w-])(?P<secret>[A-Za-z0-9]{4}(?:[ ][A-Za-z0-9]{4}){2,7})(?![\w-])", re.ASCII
)
_MIXED = re.compile(
    r"(?=[A-Za-z]{0,3}[0-9])(?=[0-9]{0,3}[A-Za-z])[A-Za-z0-9]{4}|[a-z]{1,3}[A-Z][A-Za-z]{0,2}"
)


_IS_TOLD = re.compile(r"(?:[:=]|[ ](?:is|was))[ ]{1,3}[\"'“]?\Z")


def _in_fours(text: str, at: int) -> Span | None:
    end = line_end(text, at, 90)
    for match in _GROUPS_OF_FOUR.finditer(text, at, end):
        groups = match["secret"].split()
        if (
            _IS_TOLD.search(text[at : match.start()])
            and re.search("[a-z]", match["secret"])
            and 2 * len([group for group in groups if _MIXED.fullmatch(group)]) > len(groups)
        ):
            return match.span("secret")
    return None


LETTERS = (
    Rule("letters-of-mail", "password", _MAIL, _of_mail, needs=Nearby(re.compile("[a-z]{4}[ -][a-z]{4}[ -][a-z]{4}[ -][a-z]{4}|[a-z]{16}"), 0, 140, 19)),
)  # fmt: skip
"""Sixteen letters."""
FOURS = (
    Rule("password-in-fours", "password", SECRET_WORDS.app_passwords.fours, _in_fours, needs=Nearby(re.compile("[A-Za-z0-9]{4} [A-Za-z0-9]{4} [A-Za-z0-9]{4}"), 0, 80, 14)),
)  # fmt: skip
"""Letters and digits in groups of four."""
