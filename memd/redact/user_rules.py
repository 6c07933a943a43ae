"""Rules added by the user, with a bound on their running time.

A user's pattern may be slow on some lines. So it is applied to one line at a time, without its line end, and to pieces of at
most LONGEST characters of a long line, cut at a blank if possible. Patterns cannot match across lines. Their cost is bounded
by that length, and patterns that take exponential time, or a high power of the length, are rejected when the configuration
is read (memd.config.check_redaction).
"""

import re
from collections.abc import Iterator

import msgspec

from memd.config.settings import UserRule
from memd.redact.rule import Span

LONGEST = 500
"""The most characters of a line that a pattern is applied to at a time."""
_SHARED = 200  # characters that two pieces share, so that a match across a cut is whole in one of them


class UserPattern(msgspec.Struct, frozen=True):
    """A compiled rule of the user."""

    kind: str
    pattern: re.Pattern[str]
    group: str | int

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the non-empty spans that the pattern finds, piece by piece."""
        for start, end in _pieces(text):
            for match in self.pattern.finditer(text[start:end]):
                at, till = match.span(self.group)
                if till <= at:  # the group did not participate in the match
                    at, till = match.span()
                if till > at:
                    yield start + at, start + till


def custom(rule: UserRule) -> UserPattern:
    """Compile a user's rule whose pattern was validated."""
    pattern = re.compile(rule.pattern)
    group: str | int = "secret" if "secret" in pattern.groupindex else min(pattern.groups, 1)
    return UserPattern(rule.name, pattern, group)


def _pieces(text: str) -> Iterator[Span]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        while end - start > LONGEST:
            cut = text.rfind(" ", start + LONGEST - _SHARED, start + LONGEST)
            yield start, start + LONGEST if cut < 0 else cut
            start = start + LONGEST - _SHARED if cut < 0 else cut
        if end > start:
            yield start, end
        start = end + 1
