"""What a rule of redaction is: where to look, and how to tell what is secret there."""

import re
import string
from collections.abc import Callable

import msgspec

WORD = string.ascii_letters + string.digits + "_-"

Span = tuple[int, int]
"""Where something secret begins and ends in a text."""

Find = Callable[[str, int], Span | None]
"""Given a text and where an anchor stands in it, what is secret there. Its work has a bound that no text moves."""


class Rule(msgspec.Struct, frozen=True):
    """One thing that may be secret, and how it is found.

    A rule costs nothing where none of its anchors stands. That is why all have some.
    """

    name: str  # unique among the rules
    kind: str  # stands in [REDACTED:kind]; rules for the same thing in different clothes share it
    anchors: tuple[str, ...]  # the text is looked at only where one of them stands
    find: Find
    # True: an anchor is part of a token, so that it stands among LEAST_RUN signs that tokens are made of, written as it
    # is here. False: it stands anywhere, in small or capital letters, and is given here in small ones.
    in_token: bool = False
    at_edge: bool = False  # True: no letter and no digit stands before it


LEAST_RUN = 14
"""So many signs of a token stand together at least, the anchor among them."""


def matching(pattern: str, flags: int = 0, *, before: int = 0, signs: str = WORD) -> Find:
    """Finds what a pattern matches: its group "secret", or else all of it.

    Args:
        pattern: A regular expression.
        flags: Its flags; letters and digits are those of ASCII in any case.
        before: 0: it is matched at the anchor. Else: where the word that holds the anchor begins, at most so many
            signs before it.
        signs: What such a word is made of.
    """
    compiled = re.compile(pattern, flags | re.ASCII)
    group: str | int = "secret" if "secret" in compiled.groupindex else 0

    def find(text: str, at: int) -> Span | None:
        start = at - len(stem(text, at, before, signs)) if before else at
        match = compiled.match(text, start)
        if match is None or match.end() <= at:
            return None
        # Where a pattern has several forms, the group may belong to another one.
        return match.span(group if match.start(group) >= 0 else 0)

    return find


def stem(text: str, at: int, most: int, signs: str = WORD) -> str:
    """What stands right before a place in a text without a gap, as far as it is made of some signs."""
    left = text[max(0, at - most) : at]
    return left[len(left.rstrip(signs)) :]
