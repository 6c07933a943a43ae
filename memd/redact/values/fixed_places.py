"""Reads what stands in a place for a secret: in quotes or bare, and whether it is the name of something or a reference instead."""

import re

from memd.redact.rule import DIGIT, Find, Span
from memd.redact.values import secret_values

QUOTED_OR_BARE = (
    r"(?P<quote>[\"'])(?P<quoted>[^\"'\n$]{4,120})(?P=quote)|(?P<bare>[^\s\"'|<>;&$-][^\s\"'|<>;&$]{3,120})"
)
"""An argument, in the group "quoted" or "bare"."""


def quoted_or_bare(match: re.Match[str]) -> tuple[str, Span]:
    """Return the argument that QUOTED_OR_BARE matches in a pattern, and its span."""
    group = "bare" if match["quoted"] is None else "quoted"
    return match[group], match.span(group)


# A word with a number or a date is the name of something: "oauth2", "stream-01", "Session-2024".
_NAMED = re.compile(
    r"[A-Za-z]+(?:[-_][a-z]+)?[-_]?v?[0-9]{1,4}(?:-[0-9]{1,4}){0,2}[a-z]{0,3}|[0-9]{1,4}[A-Za-z]{1,8}",
    re.ASCII,
)
_NAMES_OTHER = re.compile(r"author|timeout|length|type|method|count|keyb|passenger", re.IGNORECASE)


def with_digit(pattern: re.Pattern[str]) -> Find:
    """Return a Find for the group "secret" of a pattern, if it has a letter and a digit and is neither a name nor a reference."""

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        is_one = (
            match is not None
            and DIGIT.search(match["secret"]) is not None
            and re.search("[A-Za-z]", match["secret"]) is not None
            and _NAMED.fullmatch(match["secret"]) is None
            and _NAMES_OTHER.search(text, at, match.start("secret")) is None
            and not secret_values.is_reference(match["secret"])
        )
        return match.span("secret") if match is not None and is_one else None

    return find


def in_place(written: str, *, strong: bool = False) -> Find:
    """Return a Find for the group "secret" of a pattern; references to secrets are left out.

    Args:
        written: The pattern.
        strong: Whether the secret must have letters and digits, since a word may be at that position.
    """
    pattern = re.compile(written, re.IGNORECASE)

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        if match is None or secret_values.is_reference(match["secret"]):
            return None
        if strong:
            return secret_values.strong_span(text, *match.span("secret"))
        return match.span("secret")

    return find
