"""Redacts secrets in a text."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from memd.config.check_redaction import require_faultless
from memd.config.settings import Redact
from memd.redact import personal_numbers
from memd.redact.find_secrets import REACH, secrets_in, secrets_near, without_overlaps
from memd.redact.normalise import (
    REPEATS_KEPT,
    NormalisedText,
    Repeat,
    base64_texts,
    decoded,
    folded,
    without_repeats,
)
from memd.redact.passwords import sentences_english
from memd.redact.rule import Runs, SecretSpan, Span, runs_of
from memd.redact.rule_set import NO_RULE
from memd.redact.user_rules import custom

_MARK = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
# A redacted text is searched again, since a secret may have hidden another one: the result contains none. Each round removes
# at least one, so that few rounds suffice for any text that is not constructed to need more.
_ROUNDS = 8


class Redacted(msgspec.Struct, frozen=True):
    """A redacted text."""

    text: str  # with the same number of line ends
    counts: Mapping[str, int]  # by kind: how many secrets were redacted


class Redactor:
    """Replaces secrets by ``[REDACTED:kind]``.

    It is pure: the same text and settings give the same result, and redacting a redacted text changes nothing. The number of
    line ends is kept, so that lines keep their numbers. The work is linear in the length of the text, except for rules that
    a user adds; see ``memd.redact.user_rules``.

    Args:
        settings: ``extra`` adds rules to the built-in ones, and ``kinds`` enables personal numbers. ``allow`` lists texts that
            are not secret: a find that equals one of them, including case, is kept. It has no patterns, and a find that merely
            contains such a text is redacted. ``mode`` is ignored; the caller decides which texts are redacted.

    Raises:
        BadRule: a user's pattern is invalid. Checking the configuration reports that too.
    """

    def __init__(self, settings: Redact) -> None:
        require_faultless(settings)
        self._custom = tuple(map(custom, settings.extra))
        self._allowed = frozenset(settings.allow)
        self._numbers = settings.kinds

    def redact(self, text: str, asked: str = "") -> Redacted:
        """Redact a text.

        Args:
            text: Of any length, with line feeds as line ends.
            asked: The turn directly before it, redacted or not: the text may be a password in answer to it.
        """
        answer = sentences_english.answer(asked, text) if asked else None
        if answer is not None and text[slice(*answer)] not in self._allowed:
            text, _ = _replaced(text, [SecretSpan(*answer, "password", NO_RULE)])
            return Redacted(text, {"password": 1})
        counts: Counter[str] = Counter()
        finds = self.finds(text)
        for _ in range(_ROUNDS - 1):
            if not finds:
                break
            text, changed = _replaced(text, finds)
            counts.update(find.kind for find in finds)
            finds = self._finds_near(text, changed)
        if finds:
            text, _ = _replaced(text, finds)
            counts.update(find.kind for find in finds)
        return Redacted(text, dict(sorted(counts.items())))

    def finds(self, text: str) -> list[SecretSpan]:
        """Return the secrets in a text, in order and disjoint, without the marks of earlier redactions."""
        return self._finds_near(text, None)

    def _finds_near(self, text: str, changed: Sequence[Span] | None) -> list[SecretSpan]:
        """Return the secrets in a text; if it was searched before, only near the spans that changed since."""
        shorter, repeats = without_repeats(text)
        if repeats:
            # Each of its pieces is kept: little is left of them, so that nothing needs to go as one.
            finds = self._finds_unrepeated(shorter.text, [(0, len(shorter.text))])
            return without_overlaps(list(_repeated(finds, shorter, repeats)))
        return self._finds_unrepeated(text, changed)

    def _finds_unrepeated(self, text: str, changed: Sequence[Span] | None) -> list[SecretSpan]:
        """Return the same of a text without long repetitions."""
        found = [
            find
            for find in self._candidates(text, changed)
            if text[find.start : find.end] not in self._allowed
        ]
        if not found:
            return []
        found += _again(text, found)
        marks = [match.span() for match in _MARK.finditer(text)]
        return without_overlaps(_outside(found, marks) if marks else found)

    def _candidates(self, text: str, changed: Sequence[Span] | None) -> Iterator[SecretSpan]:
        """Yield what may be secret, in any order: spans may overlap, be allowed, or have marks in them."""
        plain = folded(text)
        near: Sequence[Span] = ((0, len(plain.text)),)
        if changed is not None:
            near = _near(plain.inner(changed), len(plain.text))
        runs = runs_of(plain.text, near)
        known = secrets_near(plain.text, runs, near, self._allowed if changed is None else None)
        for find in chain(known, _in_base64(plain.text, runs)):
            if plain.text is text:
                yield find
            else:
                start, end = plain.place(find.start), plain.place(find.end - 1) + 1
                yield SecretSpan(start, end, find.kind, find.rank)
        yield from _escaped(text, ((0, len(text)),) if changed is None else _near(changed, len(text)))
        for kind in self._numbers:
            for start, end in personal_numbers.spans(text, kind):
                yield SecretSpan(start, end, kind, NO_RULE)
        for rank, rule_of_user in enumerate(self._custom, NO_RULE + 1):
            for start, end in rule_of_user.spans(text):
                yield SecretSpan(start, end, rule_of_user.kind, rank)


_SAID_AGAIN = re.compile(r"(?=[^0-9]{0,200}[0-9])(?=[^A-Za-z]{0,200}[A-Za-z])[!-~]{8,200}")


def _again(text: str, found: Sequence[SecretSpan]) -> list[SecretSpan]:
    """Return the other places of secrets that were found: where one stands without a word for it, it is no less secret.

    A secret counts if it is one word of eight characters or more, with a letter and a digit, and stands between other characters
    than letters and digits. Where there are more than sixteen, none counts.
    """
    standing = Counter(text[find.start : find.end] for find in found)
    said = {
        text[find.start : find.end]: find
        for find in found
        if find.rank <= NO_RULE and _SAID_AGAIN.fullmatch(text, find.start, find.end) is not None
    }
    if len(said) > 16:  # a list of secrets, each of which would be sought in all of the text
        return []
    more: list[SecretSpan] = []
    for word, find in said.items():
        at = text.find(word) if text.count(word) > standing[word] else -1
        while at >= 0:
            end = at + len(word)
            if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
                more.append(SecretSpan(at, end, find.kind, find.rank))
            at = text.find(word, end)
    return more


def _repeated(
    finds: Sequence[SecretSpan], shorter: NormalisedText, repeats: Sequence[Repeat]
) -> Iterator[SecretSpan]:
    """Map finds in a shortened text to the original, and add those in the removed repetitions."""
    ends = [repeat.gap - repeat.period for repeat in repeats]
    for find in finds:
        start, size = shorter.place(find.start), find.end - find.start
        # A find longer than the kept part continues for the whole repetition.
        end = start + size if size <= REPEATS_KEPT else shorter.place(find.end - 1) + 1
        yield SecretSpan(start, end, find.kind, find.rank)
        last = bisect_left(ends, find.end) - 1
        if last >= 0 and find.start < repeats[last].gap:
            period, times = repeats[last].period, repeats[last].times
            for more in range(period, period * times + 1, period):
                yield SecretSpan(start + more, start + more + size, find.kind, find.rank)


def _escaped(text: str, near: Sequence[Span]) -> Iterator[SecretSpan]:
    """Yield the secrets in the decoded lines of a text, as spans of the text; an escape is included entirely."""
    for offset, plain in decoded(text, near):
        for find in secrets_in(plain.text):
            start, end = plain.span(find.start, find.end)
            yield SecretSpan(offset + start, offset + end, find.kind, find.rank)


def _in_base64(text: str, runs: Runs) -> Iterator[SecretSpan]:
    """Yield each piece of base64 that encodes a secret."""
    for start, end, said in base64_texts(text, runs):
        first = min(secrets_in(said), key=lambda find: find.rank, default=None)
        if first is not None:
            yield SecretSpan(start, end, first.kind, first.rank)


def _near(changed: Sequence[Span], length: int) -> list[Span]:
    """Return the parts of a text within REACH of its changed spans, ascending and disjoint."""
    near: list[Span] = []
    for first, last in changed:
        start, end = max(0, first - REACH), min(length, last + REACH)
        near.append((near.pop()[0] if near and start <= near[-1][1] else start, end))
    return near


def _outside(finds: list[SecretSpan], marks: list[Span]) -> list[SecretSpan]:
    """Return the parts of finds that are outside of marks."""
    parts: list[SecretSpan] = []
    finds.sort(key=lambda find: find.start)
    first = 0
    for find in finds:
        while first < len(marks) and marks[first][1] <= find.start:
            first += 1
        start, at = find.start, first
        while at < len(marks) and marks[at][0] < find.end:
            if marks[at][0] > start:
                parts.append(SecretSpan(start, marks[at][0], find.kind, find.rank))
            start = max(start, marks[at][1])
            at += 1
        if start < find.end:
            parts.append(SecretSpan(start, find.end, find.kind, find.rank))
    return parts


def _replaced(text: str, finds: list[SecretSpan]) -> tuple[str, list[Span]]:
    """Replace finds by marks; also return the spans of the marks."""
    pieces: list[str] = []
    changed: list[Span] = []
    at = grown = 0
    for find in finds:
        mark = f"[REDACTED:{find.kind}]" + "\n" * text.count("\n", find.start, find.end)
        pieces += (text[at : find.start], mark)
        start = find.start + grown
        changed.append((start, start + len(mark)))
        at = find.end
        grown = start + len(mark) - at
    pieces.append(text[at:])
    return "".join(pieces), changed
