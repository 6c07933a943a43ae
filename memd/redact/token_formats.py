"""Tokens that their own form gives away: the rows of token_formats.toml, and how one is found."""

import math
import re
import string
import tomllib
from collections import Counter
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib import resources

import msgspec

from memd.redact.rule import WORD, Rule, Span, stem

_LETTERS = string.ascii_letters + string.digits
_SIGNS: Mapping[str, str] = {
    "words": WORD,
    "digits": string.digits,
    "base64": _LETTERS + "+/",
    "client-secret": WORD + ".~",
}
# An escaped line end or tab before a token is no part of it, though it ends in a letter.
_EDGE = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrt])")
# Where a token has no edge before it, as after "%3D" or the colour of a terminal, so many signs stand there at most.
_GLUED = 3
# What begins like a token behind one of these is the digest of a file in a list of them.
_DIGESTS = ("sha1-", "sha256=", "sha256:", "sha256-", "sha384-", "sha512-", "md5-", "h1:")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_GLUED_ENTROPY = 3.0  # bits a sign; words put together have fewer, or no digit


class TokenFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table; its head says what the columns are."""

    kind: str
    vendor: str
    anchors: tuple[str, ...]
    shape: str
    source: str
    looked_up: date | None = None
    before: int = 0
    signs: str = "words"
    entropy: float = 0.0
    glued: bool = False
    edge: bool = True

    def find(self, text: str, at: int) -> Span | None:
        """The token that has an anchor at a place of a text."""
        start = at - len(stem(text, at, self.before, _SIGNS[self.signs])) if self.before else at
        is_glued = self.edge and _EDGE.match(text, start) is None
        if is_glued and not (self.glued and len(stem(text, start, _GLUED + 1, _LETTERS)) <= _GLUED):
            return None
        if text.endswith(_DIGESTS, max(0, start - 8), start):
            return None
        match = _compiled(self.shape).match(text, start)
        if match is None and self.before:
            # The sign before it may be another's: the n of an escaped line end, the + of a difference.
            match = _compiled(self.shape).match(text, start + 1)
        if match is None or match.end() <= at:
            return None
        # Where a shape has several forms, the group may belong to another one.
        named = "secret" in match.re.groupindex and match.start("secret") >= 0
        span = match.span("secret" if named else 0)
        said = text[slice(*span)]
        if is_glued and not any(is_random(run, _GLUED_ENTROPY) for run in _RUN.findall(said)):
            return None
        return span if not self.entropy or is_random(said, self.entropy) else None


@cache
def _compiled(shape: str) -> re.Pattern[str]:
    """A shape, made ready when it is first needed: most texts need none of them."""
    return re.compile(shape, re.ASCII)


def is_random(text: str, entropy: float) -> bool:
    """Whether a text has a digit, and at least so many bits a sign (Shannon, of the counts of its signs)."""
    counts = Counter(text)
    bits = -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
    return bits >= entropy and not counts.keys().isdisjoint(string.digits)


def _read() -> tuple[TokenFormat, ...]:
    written = resources.files(__package__).joinpath("token_formats.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(written)["formats"], tuple[TokenFormat, ...])


TOKEN_FORMATS = _read()

RULES = tuple(
    Rule(row.kind, row.kind, row.anchors, row.find, in_token=True, at_edge=row.edge and not row.before)
    for row in TOKEN_FORMATS
)
"""One of each row."""
