"""Defines what a redaction rule is, and finds the anchors of rules in a text."""

import re
import string
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from memd.config.settings import Redact

try:
    from ahocorasick_rs import AhoCorasick, Implementation

    HAS_AUTOMATON = True
except ImportError:  # it has no wheel for musl
    HAS_AUTOMATON = False

VERSION = 23
"""Of the rules. It is in the fingerprint of an index: with another number, what is indexed is redacted anew."""

WORD = string.ascii_letters + string.digits + "_-"

Span = tuple[int, int]
"""Where something secret begins and ends in a text."""

Find = Callable[[str, int], Span | None]
"""Given a text and where an anchor stands in it, what is secret there. Its work has a bound that no text moves."""


class SecretSpan(msgspec.Struct, frozen=True, gc=False):
    """A secret in a text, and what found it."""

    start: int
    end: int
    kind: str
    rank: int  # of the rule that found it, see memd.redact.rule_set; where secrets overlap, the lowest counts


class Covered:
    """The parts of a text that are known to be secret."""

    def __init__(self, spans: Iterable[Span]) -> None:
        """Put overlapping spans together.

        Args:
            spans: In any order.
        """
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def has(self, start: int, end: int) -> bool:
        """Whether one of the parts has all of a span."""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._ends[at]


Walk = Callable[[str, Sequence[int], Covered], Iterable[Span]]
"""Given a text, all places of the anchors in it, in order, and what other rules found, what else is secret near the places. No
part of the text is read twice."""


class Nearby(msgspec.Struct, frozen=True, eq=False):
    """A pattern that must match near an anchor for a rule to be tried there, such as a digit within a hundred characters.

    It is equal to itself alone: to hash a pattern for each rule of an anchor takes long.
    """

    pattern: re.Pattern[str]
    before: int  # the most characters from the match to the anchor behind it
    behind: int  # the most characters from the anchor to the match behind it
    width: int = 1  # the most characters of a match, lookarounds included
    has_digit: bool = False  # True: it matches nothing in a text without a digit

    def beside(self, places: Sequence[int], text: str) -> list[int]:
        """Return those of some ascending places that have a match near.

        No part of the text is searched twice, however close together the places are.
        """
        having: list[int] = []
        search, before, behind, width = self.pattern.search, self.before, self.behind, self.width
        number, count = 0, len(places)
        searched = 0  # no match that begins before it is near a further place
        while number < count:
            at = places[number]
            start = max(searched, at - before)
            last = at + behind
            # What the next places reach is searched at the same time, but not the text to a place that is far.
            if number + 1 < count and places[number + 1] - at < _AHEAD:
                is_crowd = number + _CROWD < count and places[number + _CROWD] - at < _FAR_AHEAD
                last = min(last + (_FAR_AHEAD if is_crowd else _AHEAD), places[-1] + behind)
            found = search(text, start, last + width)
            if found is None or found.start() > last:
                searched = last + 1
                number = bisect_left(places, searched - behind, number + 1)
                continue
            match = found.start()
            searched = match + 1
            number = bisect_left(places, match - behind, number)
            following = bisect_right(places, match + before, number)
            having += places[number:following]
            number = following
        return having


# Characters that Nearby searches beyond what a place reaches, if another place follows as soon, or if so many places do.
_AHEAD, _FAR_AHEAD, _CROWD = 64, 512, 16
DIGIT = re.compile("[0-9]")
"""A digit of ASCII: the only ones that are meant where rules speak of digits."""


class Rule(msgspec.Struct, frozen=True):
    """A rule that finds one kind of secret.

    A rule is only tried at its anchors, so it costs nothing in texts without them. Each rule must have some.
    """

    name: str  # unique
    kind: str  # is printed in [REDACTED:kind]; several rules may share it
    anchors: tuple[str, ...]  # strings at which the rule is tried
    find: Find | None = None
    walk: Walk | None = None  # instead of find: called once with the places of all anchors
    # True: the anchor is part of a token, within a run of at least LEAST_RUN token characters, and is case-sensitive. False: it
    # may be anywhere in any case, and is given in lower case.
    in_token: bool = False
    at_edge: bool = False  # True: no letter or digit precedes it
    # Patterns (re.ASCII), one of which matches at the anchor wherever the rule finds something; none: nothing is known of that.
    begins: tuple[str, ...] = ()
    skips_prose: bool = False  # True: the rule is not tried at a word that GOES_ON matches
    needs: Nearby | None = None  # the rule is tried only where this matches nearby
    reads_value: bool = (
        False  # True: it finds the value behind an anchor, which is read once for all such rules
    )
    has_digit: bool = False  # True: it finds nothing in a text without a digit

    @property
    def needs_digit(self) -> bool:
        """Whether it is tried only in a text with a digit."""
        needs = self.needs
        return self.has_digit or (needs is not None and (needs.has_digit or needs.pattern is DIGIT))


def rules_key(settings: Redact) -> str:
    """Return the version of the rules with a digest of the user's settings: texts redacted with the same key are equal."""
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
"""Matches an anchor in prose: a word that is followed by another ordinary word or by the end of its sentence, so that no value follows it."""

LEAD_IN = (
    r"(?:(?:it['’]?s|it[ ]is|its|that['’]?s|that[ ]is|that[ ]would[ ]be|it[ ]should[ ]be|should[ ]be|yes|yep|yeah|sure|ok(?:ay)?|here(?:[ ]you[ ]go)?|try|use"
    r"|probably|still|i[ ]think|just|now|is|here[ ]it[ ]is|就?是|就是|应该是|还是|给你|答|用|试试|네|はい|sí|oui|ja|да|это|c['’]est|es|sim)[ ]?[,:：，-]?[ ]{0,2}){0,4}"
)
"""What an answer begins with before it says what was asked for; matched in any case."""

SPEAKER_AND_TIME = (
    r"[ \t>*]{0,6}[^\n:：。！？!?]{1,30}?[ ,(（\[—·]{1,3}(?:[0-9]{1,4}[./年-][0-9]{1,2}[./月-][0-9]{1,4}日?,?[ ]{1,2})?"
    r"(?:(?:上午|下午|晚上|早上|中午|凌晨|今天|昨天|오전|오후|午前|午後|today(?: at)?|yesterday(?: at)?)[ ]?)?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:[ ]?[AP]M)?[\])）]?[ \t]{0,4}"
)
"""The line that a copied chat writes before what somebody says: who, and when."""

LEAST_RUN = 14
"""The fewest characters of a run. A token whose anchor stands in a shorter word is not found."""


def matching(pattern: str | re.Pattern[str], flags: int = 0, *, before: int = 0, signs: str = WORD) -> Find:
    """Return a Find that returns the span of a pattern's group "secret", or else of the whole match.

    Args:
        pattern: A regular expression.
        flags: Flags of the pattern if it is a string; re.ASCII is added.
        before: 0: the pattern is matched at the anchor. Otherwise: at the beginning of the word that contains the anchor, at
            most this many characters before it.
        signs: The characters of such a word.
    """
    compiled = re.compile(pattern, flags | re.ASCII) if isinstance(pattern, str) else pattern
    group: str | int = "secret" if "secret" in compiled.groupindex else 0

    def find(text: str, at: int) -> Span | None:
        start = at - len(stem(text, at, before, signs)) if before else at
        match = compiled.match(text, start)
        if match is None or match.end() <= at:
            return None
        # In a pattern with alternatives, the group may belong to another one.
        return match.span(group if match.start(group) >= 0 else 0)

    return find


def within_reach(places: Sequence[int], before: int, behind: int) -> Iterator[Span]:
    """Yield the disjoint spans of a text that are near some places, in order.

    Args:
        places: Ascending.
        before: How many characters before each place to include.
        behind: How many characters behind each place to include.
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
    """Return a Walk that yields the spans of a pattern's matches near anchors: of its group "secret", or else the whole match.

    Args:
        pattern: A regular expression with bounded matches.
        behind: The most characters from the anchor to a match behind it.
        width: The most characters of a match, lookarounds included.
        before: The most characters from a match to the anchor behind it.
        is_one: Decides whether a matched text is secret; None: all are.
    """
    group: str | int = "secret" if "secret" in pattern.groupindex else 0

    def walk(text: str, places: Sequence[int], _: Covered) -> Iterator[Span]:
        for start, end in within_reach(places, before, behind):
            for match in pattern.finditer(text, start, end + width):
                if match.start() <= end and (is_one is None or is_one(match[group])):
                    yield match.span(group)

    return walk


def in_lower_case(text: str) -> str:
    """Return a text in lower case, with unchanged offsets."""
    return text.replace("İ", "i").lower()  # the only capital letter whose lower case has two characters


def line_start(text: str, at: int, most: int) -> int:
    """Return where the line of a place begins, at most so many characters before the place."""
    left = max(0, at - most)
    return text.rfind("\n", left, at) + 1 or left


def line_end(text: str, at: int, most: int) -> int:
    """Return where the line of a place ends, at most so many characters behind the place."""
    end = text.find("\n", at, at + most)
    return min(len(text), at + most) if end < 0 else end


def stem(text: str, at: int, most: int, signs: str = WORD) -> str:
    """Return the characters directly before a place, as far as they are among `signs`; at most `most`."""
    left = text[max(0, at - most) : at]
    return left[len(left.rstrip(signs)) :]


# Starts at a word boundary: trying each position inside of short words would take half as long again.
_RUN = re.compile(rf"\b[\w./+=:~$%&?@#*-]{{{LEAST_RUN},}}+", re.ASCII)
_PIECE, _SHARED = 262_144, 128  # characters


EDGE = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrt])")
"""Where a token may begin. An escaped line end or tab before it is no part of it, though it ends in a letter."""

BREAK = re.compile(
    r"""[*`]{1,3}|["'][ ]?[+.][ ]?["']|[ ]{0,2}["'|]?[ ]?[+.\\=]?\r?\n[ \t]{0,16}(?:[>|][ \t]{0,2}){0,3}["']?"""
)
"""What may part a token: emphasis, two strings of a program, a line end with the marks of a quotation or a table."""
# The characters of a break, and of a part of a token.
_OF_BREAK, _OF_PART = " \t\r\n\"'|>`*+.=\\", WORD + "+/=.~"
_LEAST_PART = 4
# The first part of a broken token, too short for a run.
_FIRST_PART = re.compile(
    rf"(?<![\w./+=:~$%&?@#*-])(?P<part>[\w+/=.~-]{{{_LEAST_PART},{LEAST_RUN - 1}}})(?:{BREAK.pattern})\Z",
    re.ASCII,
)
_BEHIND_BREAK = frozenset("\n`\"'>| \t")
_BREAK_AND_PART = 48  # the most characters of a break with such a part


class Runs(msgspec.Struct, frozen=True):
    """The runs of a text: long words, which may be or contain tokens."""

    text: str  # all runs, one per line
    begins: tuple[int, ...]  # the offset of each run in `text`
    starts: tuple[int, ...]  # the offset of each run in the searched text

    def place(self, at: int) -> int:
        """Convert an offset in `text` to one in the searched text."""
        run = bisect_right(self.begins, at) - 1
        return self.starts[run] + at - self.begins[run]


def runs_of(text: str, near: Sequence[Span]) -> Runs:
    """Return the runs in some disjoint ascending spans of a text.

    The text is searched in pieces, since one search of millions of characters would block all other threads. Pieces overlap, so
    that each anchor is in a piece with all context that it needs.
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
    """Return the part of a token before a break that directly precedes a run, if it is too short for a run, and its offset."""
    left = max(0, at - _BREAK_AND_PART)
    if text[at - 1] not in "`\"'" and text.find("\n", left, at) < 0:
        return None
    before = text[left:at]
    word = before.rstrip(_OF_BREAK)
    parted = len(before) - len(word)
    part = len(word) - len(word.rstrip(_OF_PART))
    # Most breaks are behind a word that is too long or too short.
    if parted <= _LEAST_PART and (part >= LEAST_RUN or part + parted <= _LEAST_PART):
        return None
    found = _FIRST_PART.search(before)
    return None if found is None else (found["part"], left + found.start())


class AnchorIndex:
    """Finds all occurrences of many anchors in one pass over a text.

    It uses an Aho-Corasick automaton: 160 anchors take 8 ms a megabyte, separate searches 66 ms. Its compact form takes 1 MB
    for 3,300 anchors, the one that is fastest alone 21 MB, most of which is not in the processor's cache when the next text
    comes: redaction takes as long with either. Where ahocorasick_rs has no wheel, each anchor is searched separately.

    Args:
        anchors: Strings that are not empty.
    """

    def __init__(self, anchors: Iterable[str]) -> None:
        self._anchors = tuple(anchors)
        self._longest = max(map(len, self._anchors))
        self._automaton = (
            AhoCorasick(self._anchors, implementation=Implementation.ContiguousNFA) if HAS_AUTOMATON else None
        )

    def places(self, text: str) -> dict[str, list[int]]:
        """Return the ascending offsets of each anchor that occurs in a text; occurrences may overlap.

        The text is searched in pieces, since one search of millions of characters would block all other threads.
        """
        if self._automaton is None:
            return _searched(self._anchors, text)
        found: defaultdict[int, list[int]] = defaultdict(list)
        if len(text) <= _PIECE:  # most texts are chunks and turns
            for number, start, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
                found[number].append(start)
            return {self._anchors[number]: places for number, places in found.items()}
        for begin in range(0, len(text), _PIECE):
            piece = text[begin : begin + _PIECE + self._longest - 1]
            for number, start, _ in self._automaton.find_matches_as_indexes(piece, overlapping=True):
                # Occurrences that begin in the next piece are found there.
                if start < _PIECE:
                    found[number].append(begin + start)
        # The automaton yields occurrences by their end, and those of one anchor are equally long.
        return {self._anchors[number]: places for number, places in found.items()}


def _searched(anchors: Iterable[str], text: str) -> dict[str, list[int]]:
    """Return the same as AnchorIndex.places, by a search for each anchor."""
    found: dict[str, list[int]] = {}
    for anchor in anchors:
        at = text.find(anchor)
        while at >= 0:
            found.setdefault(anchor, []).append(at)
            at = text.find(anchor, at + 1)
    return found
