"""What a rule of redaction is: where to look, and how to tell what is secret there; and where the anchors of tokens stand."""

import re
import string
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from memd.config.settings import Redact

try:
    from ahocorasick_rs import AhoCorasick, Implementation

    HAS_AUTOMATON = True
except ImportError:  # it has no wheel for musl
    HAS_AUTOMATON = False

VERSION = 12
"""Of the rules. It is in the fingerprint of an index: with another number, what is indexed is redacted anew."""

WORD = string.ascii_letters + string.digits + "_-"

Span = tuple[int, int]
"""Where something secret begins and ends in a text."""

Find = Callable[[str, int], Span | None]
"""Given a text and where an anchor stands in it, what is secret there. Its work has a bound that no text moves."""

Walk = Callable[[str, Sequence[int]], Iterable[Span]]
"""Given a text and all places of the anchors in it, in order, what is secret near them. No part of the text is read twice."""


class Nearby(msgspec.Struct, frozen=True):
    """What begins near an anchor wherever a rule finds something there: a digit within a hundred signs behind it, say."""

    pattern: re.Pattern[str]
    before: int  # so many signs before the anchor's beginning at most
    behind: int  # so many behind it at most
    width: int = 1  # signs that a match has at most, those that it looks at included

    def beside(self, places: Sequence[int], text: str) -> list[int]:
        """Those of some places, in order, that have it near.

        No part of the text is searched twice, however close together the places are.
        """
        having: list[int] = []
        search, before, behind, width = self.pattern.search, self.before, self.behind, self.width
        searched, reached = 0, -1  # the last hit is near all places up to the second
        for at in places:
            if at > reached:
                last = at + behind
                if searched > last:
                    continue
                found = search(text, max(searched, at - before), last + width)
                if found is None or found.start() > last:
                    searched = last + 1
                    continue
                searched = found.start() + 1
                reached = found.start() + before
            having.append(at)
        return having


DIGIT = re.compile("[0-9]")


class Rule(msgspec.Struct, frozen=True):
    """One thing that may be secret, and how it is found.

    A rule costs nothing where none of its anchors stands. That is why all have some.
    """

    name: str  # unique among the rules
    kind: str  # stands in [REDACTED:kind]; rules for the same thing in different clothes share it
    anchors: tuple[str, ...]  # the text is looked at only where one of them stands
    find: Find | None = None
    walk: Walk | None = None  # instead of find: it is asked once, with the places of all its anchors
    # True: an anchor is part of a token, so that it stands among LEAST_RUN signs that tokens are made of, written as it
    # is here. False: it stands anywhere, in small or capital letters, and is given here in small ones.
    in_token: bool = False
    at_edge: bool = False  # True: no letter and no digit stands before it
    skips_prose: bool = False  # True: it finds nothing at a word of a sentence that GOES_ON matches
    needs: Nearby | None = None  # where it does not stand near an anchor, the rule is not asked
    reads_value: bool = (
        False  # True: it finds the value behind an anchor, which is read once for all such rules
    )


def rules_key(settings: Redact) -> str:
    """What decides how a text is redacted: the version of the rules, and a digest of what the user adds to them."""
    written = msgspec.json.encode(
        [
            [(rule.name, rule.pattern) for rule in settings.extra],
            sorted(set(settings.allow)),
            sorted(set(settings.kinds)),
        ]
    )
    return f"{VERSION}:{sha256(written).hexdigest()[:16]}"


GOES_ON = re.compile(
    r"(?<![^ \n])[a-z]{1,40}+(?:[ ](?!(?:is|are|was|will|should|equals|remains|has|have|got|gets|now|set|changed|reset|updated|rotated"
    r"|switched|for|to|of|or|on|at|in|from|one|part|half|itself|string|str|value|content|default|code|number|below|here|follows)\b)[a-z]{1,20}+"
    r"(?=[ \n]|[,.;?!)](?:\s|\Z)|\Z)|[.!](?=\s|\Z))"
)
"""A word with what follows it, where a sentence goes on or ends without saying anything of it: most words do so."""

LEAD_IN = (
    r"(?:(?:it['’]?s|it[ ]is|its|that['’]?s|that[ ]is|that[ ]would[ ]be|it[ ]should[ ]be|should[ ]be|yes|yep|yeah|sure|ok(?:ay)?|here(?:[ ]you[ ]go)?|try|use"
    r"|probably|still|i[ ]think|just|now|is|here[ ]it[ ]is|就?是|就是|应该是|还是|给你|答|用|试试|네|はい|sí|oui|ja|да|это|c['’]est|es|sim)[ ]?[,:：，-]?[ ]{0,2}){0,4}"
)
"""What an answer begins with before it says what was asked for; matched in any case."""

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


def within_reach(places: Sequence[int], before: int, behind: int) -> Iterator[Span]:
    """The parts of a text that are near some places, in order and apart.

    Args:
        places: In order.
        before: So many signs before a place belong to a part.
        behind: So many behind it.
    """
    start = end = -1
    for at in places:
        if at - before > end:
            if end >= 0:
                yield start, end
            start = max(0, at - before)
        end = at + behind
    if end >= 0:
        yield start, end


def sought(
    pattern: re.Pattern[str],
    *,
    behind: int,
    width: int,
    before: int = 0,
    is_one: Callable[[str], bool] | None = None,
) -> Walk:
    """Finds what a pattern matches near an anchor: its group "secret", or else all of it.

    Args:
        pattern: A regular expression, with an end.
        behind: It begins so many signs behind the anchor at most.
        width: Signs that a match has at most, those that it looks at included.
        before: It begins so many signs before the anchor at most.
        is_one: Tells whether such a text is secret, where its form alone does not say so.
    """
    group: str | int = "secret" if "secret" in pattern.groupindex else 0

    def walk(text: str, places: Sequence[int]) -> Iterator[Span]:
        for start, end in within_reach(places, before, behind):
            for match in pattern.finditer(text, start, end + width):
                if match.start() <= end and (is_one is None or is_one(match[group])):
                    yield match.span(group)

    return walk


def stem(text: str, at: int, most: int, signs: str = WORD) -> str:
    """What stands right before a place in a text without a gap, as far as it is made of some signs."""
    left = text[max(0, at - most) : at]
    return left[len(left.rstrip(signs)) :]


# It begins where a word does: to try each place inside of words that are too short would take half as long again.
_RUN = re.compile(rf"\b[\w./+=:~$%&?@#*-]{{{LEAST_RUN},}}+", re.ASCII)
_PIECE, _SHARED = 262_144, 128  # signs


EDGE = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrt])")
"""Where a token may begin. An escaped line end or tab before it is no part of it, though it ends in a letter."""

BREAK = re.compile(
    r"""[*`]{1,3}|["'][ ]?[+.][ ]?["']|[ ]{0,2}["'|]?[ ]?[+.\\=]?\r?\n[ \t]{0,16}(?:[>|][ \t]{0,2}){0,3}["']?"""
)
"""What may part a token: emphasis, two strings of a program, a line end with the marks of a quotation or a table."""
# Too short for a run, but the first part of a token that goes on with one.
_FIRST_PART = re.compile(
    rf"(?<![\w./+=:~$%&?@#*-])(?P<part>[\w+/=.~-]{{4,{LEAST_RUN - 1}}})(?:{BREAK.pattern})\Z", re.ASCII
)
_BEHIND_BREAK = frozenset("\n`\"'>| \t")
_BREAK_AND_PART = 48  # signs: no break with such a part has more


class Runs(msgspec.Struct, frozen=True):
    """Whatever may be a token or hold one."""

    text: str  # all of them, a line each
    begins: tuple[int, ...]  # where each begins in that text
    starts: tuple[int, ...]  # where it stands in the text that was looked through

    def place(self, at: int) -> int:
        """Where a sign of the runs stands in the text that was looked through."""
        run = bisect_right(self.begins, at) - 1
        return self.starts[run] + at - self.begins[run]


def runs_of(text: str, near: Sequence[Span]) -> Runs:
    """The runs of parts of a text, which are in order and apart.

    One look at millions of signs would stop every other thread. So the text is looked at in pieces, which share enough
    for each anchor to stand in one of them with what it needs around it.
    """
    said: list[str] = []
    begins: list[int] = []
    starts: list[int] = []
    begin = 0
    pieces = [
        (piece, min(piece + _PIECE + _SHARED, end))
        for start, end in near
        for piece in range(start, end, _PIECE)
    ]
    for start, end in pieces:
        for match in _RUN.finditer(text, start, end):
            run, at = match[0], match.start()
            if text[at - 1 : at] in _BEHIND_BREAK and (part := _part_before(text, at)) is not None:
                said.append(part[0])
                begins.append(begin)
                starts.append(part[1])
                begin += len(part[0]) + 1
            said.append(run)
            begins.append(begin)
            starts.append(at)
            begin += len(run) + 1
    return Runs("\n".join(said), tuple(begins), tuple(starts))


def _part_before(text: str, at: int) -> tuple[str, int] | None:
    """What is too short for a run, before a break that is right before a run; and where it begins."""
    left = max(0, at - _BREAK_AND_PART)
    if text[at - 1] not in "`\"'" and text.find("\n", left, at) < 0:
        return None
    found = _FIRST_PART.search(text[left:at])
    return None if found is None else (found["part"], left + found.start())


class AnchorIndex:
    """Finds where any of many anchors stands, however many there are, in one pass over a text.

    An automaton (Aho and Corasick) does it: 160 anchors take 8 ms a megabyte, and one search for each takes 66. Where
    ahocorasick_rs has no wheel, the anchors are searched for one by one.

    Args:
        anchors: None is empty.
    """

    def __init__(self, anchors: Iterable[str]) -> None:
        self._anchors = tuple(anchors)
        self._longest = max(map(len, self._anchors))
        self._automaton = (
            AhoCorasick(self._anchors, implementation=Implementation.DFA) if HAS_AUTOMATON else None
        )

    def places(self, text: str) -> dict[str, list[int]]:
        """Where each anchor that occurs in a text stands in it, in order; places may overlap.

        A text is looked at in pieces, since one look at millions of signs would stop every other thread.
        """
        if self._automaton is None:
            return _searched(self._anchors, text)
        found: dict[int, list[int]] = {}
        for begin in range(0, len(text), _PIECE):
            piece = text[begin : begin + _PIECE + self._longest - 1]
            for number, start, _ in self._automaton.find_matches_as_indexes(piece, overlapping=True):
                # What begins in the next piece is found there.
                if start < _PIECE:
                    found.setdefault(number, []).append(begin + start)
        return {self._anchors[number]: sorted(places) for number, places in found.items()}


def _searched(anchors: Iterable[str], text: str) -> dict[str, list[int]]:
    """The same places as AnchorIndex finds, by a search for each anchor."""
    found: dict[str, list[int]] = {}
    for anchor in anchors:
        at = text.find(anchor)
        while at >= 0:
            found.setdefault(anchor, []).append(at)
            at = text.find(anchor, at + 1)
    return found
