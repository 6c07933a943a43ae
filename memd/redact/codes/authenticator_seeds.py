"""Finds seeds of authenticators: the base32 key that somebody types in, from which one-time codes are computed."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span
from memd.redact.values import randomness

# In groups, as they are typed, or as one word with a digit.
_SEED = re.compile(
    r"(?<![A-Za-z0-9/+=-])(?:(?P<groups>(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{2,4}|(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{2,4})"
    r"|(?P<word>(?=[A-Z]{0,40}[2-7])[A-Z2-7]{16,104}={0,6}))(?![A-Za-z0-9/+-])"
)
_CHARS_OF_SEED = 110  # characters after the anchor in which a seed begins


# "enter JBSW Y3DP EHPK 3PXP by hand in the authenticator"
_SEED_BEFORE = re.compile(
    r"(?<![A-Za-z0-9/+=-])(?P<secret>(?=[A-Z -]{0,40}[2-7])[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15})(?![A-Za-z0-9/+-])[^\n]{0,40}\Z"
)


def _seed(text: str, at: int) -> Span | None:
    return _seed_behind(text, at) or _seed_before(text, at)


def _seed_before(text: str, at: int) -> Span | None:
    left = max(0, at - _CHARS_OF_SEED)
    match = _SEED_BEFORE.search(text[left:at])
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


def _seed_behind(text: str, at: int) -> Span | None:
    end = text.find("\n", text.find("\n", at, at + _CHARS_OF_SEED) + 1 or at, at + _CHARS_OF_SEED)
    match = _SEED.search(text, at, at + 2 * _CHARS_OF_SEED if end < 0 else end)
    if match is None or match.start() > at + _CHARS_OF_SEED:
        return None
    said = match["groups"]
    if said is None or DIGIT.search(said) is not None:
        return match.span()
    return match.span() if randomness.is_jumble(said.replace(" ", "").replace("-", "").lower()) else None


RULES = (
    Rule(
        "authenticator-seed",
        "code",
        (
            "authenticator", "authy", "seed", "setup key", "secret key", "this key", "key instead", "key in your app", "manual entry", "totp", "2fa", "mfa", "otp", "two-factor",
            "二次验证", "两步验证", "双重验证", "双因素", "验证器", "动态口令",
        ),
        _seed,
        needs=Nearby(_SEED, _CHARS_OF_SEED, _CHARS_OF_SEED, 112),
    ),
)  # fmt: skip
