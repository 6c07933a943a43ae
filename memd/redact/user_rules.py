"""Rules that the owner of a memory adds, kept from taking all the time there is.

A pattern of a user may be slow on some line. So it sees one line at a time, without its end, and of a long line pieces of
LONGEST signs, cut at a blank where there is one. It cannot match across lines. Whatever it costs, it costs for so many
signs at most, and what takes exponential time, or a high power of the length, is refused when the configuration is read
(memd.config.check_redaction).
"""

import re
from collections.abc import Iterator

import msgspec

from memd.config.settings import UserRule
from memd.redact.rule import Span

LONGEST = 500
"""Signs of a line that a pattern sees at a time."""
_SHARED = 200  # of them in the next piece too: what stands across a cut is whole in one of the two


class UserPattern(msgspec.Struct, frozen=True):
    """A user's rule, ready to use."""

    kind: str
    pattern: re.Pattern[str]
    group: str | int

    def spans(self, text: str) -> Iterator[Span]:
        """Where it finds something, in order of pieces; none is empty."""
        for start, end in _pieces(text):
            for match in self.pattern.finditer(text[start:end]):
                at, till = match.span(self.group)
                if till <= at:  # the group took no part
                    at, till = match.span()
                if till > at:
                    yield start + at, start + till


def custom(rule: UserRule) -> UserPattern:
    """A user's rule, its pattern being known to be right."""
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
