"""Finds secrets in a plain text: tries the built-in rules at their anchors, and looks for keys, tables and lists that have none."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from memd.redact import parts_full_of_secrets
from memd.redact.keys import private_keys, token_formats, vendor_keys
from memd.redact.places import lists, scored_context, tables
from memd.redact.rule import (
    DIGIT,
    EDGE,
    GOES_ON,
    Covered,
    Nearby,
    Runs,
    SecretSpan,
    Span,
    in_lower_case,
    runs_of,
)
from memd.redact.rule_set import (
    ANCHORS,
    NO_RULE,
    RANK_OF_SIGNED,
    RULES,
    RULES_ANYWHERE,
    RULES_IN_TOKENS,
    RULES_WITHOUT_DIGITS,
    TOKEN_ANCHORS,
    WALKS_AT,
    WALKS_WITHOUT_DIGITS,
    Ranked,
)

REACH = 768
"""Characters around a part of a text that was redacted, within which it is searched again: further away, nearly all rules would
find the same again. Some rules find values of up to 16,384 characters; the first search, which is everywhere, finds those."""
# So many places of an anchor of tokens in a text make it worthwhile to compile one pattern for all of its rules.
_CROWD = 8
_LIST_NAMES = frozenset(lists.ANCHORS)
_LOW_MARK = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
# A label, an assignment, and the mark of a redacted value.
_VALUE_GONE = re.compile(
    r"[A-Za-z]{1,16}[\"'`*]{0,3}[ \t]{0,4}(?:=>|:=|[:=]|[ ]is[ ])[ \t]{0,4}[\"'`*]{0,3}\[REDACTED:"
)


def secrets_in(text: str) -> Iterator[SecretSpan]:
    """Yield what is found in a whole text, in any order; spans may overlap."""
    everywhere = ((0, len(text)),)
    return secrets_near(text, runs_of(text, everywhere), everywhere)


def secrets_near(
    text: str, runs: Runs, near: Sequence[Span], allowed: Collection[str] | None = None
) -> Iterator[SecretSpan]:
    """Yield what the built-in rules find in parts of a text. Key blocks and tables, which have no bound, are searched everywhere.

    Args:
        text: The whole text.
        runs: The runs of the parts.
        near: The parts, ascending and disjoint.
        allowed: What is not secret, if they are the whole text and what is full of secrets may be taken out as one.
    """
    lowered = _lowered(text)
    standing = ANCHORS.places(lowered)
    found: list[Span] = []
    if allowed is not None and (full := list(_full_of_secrets(text, standing, allowed))):
        yield from full
        found += [(find.start, find.end) for find in full]
        # The last labels in it may have their values behind it.
        edges = [0, *(edge for find in full for edge in (find.start, find.end - REACH)), len(text)]
        near = tuple(zip(edges[::2], edges[1::2], strict=True))
        runs = runs_of(text, near)
    has_digits = DIGIT.search(text) is not None
    at_anchors = _at_anchors(text, standing, near, has_digits=has_digits)
    for find in chain(_in_runs(text, lowered, runs), at_anchors):
        found.append((find.start, find.end))
        yield find
    yield from _walked(text, standing, near, Covered(found), has_digits=has_digits)


def _full_of_secrets(
    text: str, standing: Mapping[str, list[int]], allowed: Collection[str]
) -> Iterator[SecretSpan]:
    """Yield the parts of a text that are full of labels and secrets, without their ends, in order and disjoint.

    Args:
        text: The whole text.
        standing: The offsets of each anchor in it.
        allowed: What is not secret; a part that has some of it is not yielded.
    """
    for start, end in parts_full_of_secrets.parts_full_of_labels(standing.values(), len(text)):
        last = end - parts_full_of_secrets.KEPT_CHARS
        samples = [
            without_overlaps(list(secrets_in(text[begin : begin + parts_full_of_secrets.SAMPLE_CHARS])))
            for begin in (start, last - parts_full_of_secrets.SAMPLE_CHARS)
        ]
        if all(
            parts_full_of_secrets.is_full_of_secrets([find.start for find in finds]) for finds in samples
        ) and not any(text.find(one, start, end) >= 0 for one in allowed):
            first = samples[0][0]
            yield SecretSpan(start + first.start, last, first.kind, first.rank)


def _in_runs(text: str, lowered: str, runs: Runs) -> Iterator[SecretSpan]:
    """Yield tokens of known forms, keys beside a word for them, and a text that is the middle of a key."""
    for anchor, places in TOKEN_ANCHORS.places(runs.text).items():
        # Where pieces of the text overlap, a place is found twice.
        inside = sorted(set(map(runs.place, places)))
        rules = RULES_IN_TOKENS[anchor]
        if rules.at_edge:
            inside = [at for at in inside if EDGE.match(text, at)]
        yield from _around(inside, rules.others, text)
        if len(inside) >= _CROWD:
            inside = token_formats.where_one_begins(rules.pattern, inside, text)
        yield from _around(inside, rules.beginning, text)
    for (start, end), kind in vendor_keys.keys_by_name(text, lowered, runs):
        yield SecretSpan(start, end, kind, NO_RULE)
    block = private_keys.middle(text)
    if block is not None:
        yield SecretSpan(*block, "private-key", NO_RULE)


def _at_anchors(
    text: str, standing: Mapping[str, list[int]], near: Sequence[Span], *, has_digits: bool
) -> Iterator[SecretSpan]:
    """Yield what the rules with a `find` function find, and what a table or a list names.

    Args:
        text: The whole text.
        standing: The offsets of each anchor in it.
        near: The parts to search.
        has_digits: Whether the text has a digit.
    """
    named: list[int] = []
    listed: list[int] = []
    rules_at = RULES_ANYWHERE if has_digits else RULES_WITHOUT_DIGITS
    for anchor, places in standing.items():
        if anchor in _LIST_NAMES:
            listed += places
        rules = rules_at.get(anchor)
        if rules is None:
            continue
        if rules.also_in_prose:
            inside = places if rules.is_key_block else _within(places, near)
            yield from _around(inside, rules.also_in_prose, text)
        telling = places
        if rules.not_in_prose or (rules.names_table and not rules.names_in_prose):
            telling = [at for at in places if GOES_ON.match(text, at) is None]
            if telling:
                yield from _around(_within(telling, near), rules.not_in_prose, text)
        if rules.names_table:
            named += telling
    yield from _named_before(text, sorted(named), sorted(listed))


def _walked(
    text: str, standing: Mapping[str, list[int]], near: Sequence[Span], known: Covered, *, has_digits: bool
) -> Iterator[SecretSpan]:
    """Yield what the rules with a `walk` function find, and passwords that have no anchor.

    Args:
        text: The whole text.
        standing: The offsets of each anchor in it.
        near: The parts to search.
        known: What other rules found.
        has_digits: Whether the text has a digit.
    """
    walks_at = WALKS_AT if has_digits else WALKS_WITHOUT_DIGITS
    places_of: dict[int, list[int]] = {}
    for anchor, places_of_anchor in standing.items():
        for rank in walks_at.get(anchor, ()):
            if rank in places_of:
                places_of[rank] += places_of_anchor
            else:
                places_of[rank] = places_of_anchor.copy()
    for rank in sorted(places_of):
        rule = RULES[rank]
        inside = _within(sorted(set(places_of[rank])), near)
        if inside and rule.walk is not None:
            for start, end in rule.walk(text, inside, known):
                yield SecretSpan(start, end, rule.kind, rank)
    for start, end in scored_context.signed(text, near, known):
        yield SecretSpan(start, end, "password", RANK_OF_SIGNED)


def _named_before(text: str, headings: list[int], names: list[int]) -> Iterator[SecretSpan]:
    """Yield the cells of tables and the items of lists whose heading or name is a word for secrets."""
    for start, end in tables.spans(text, headings):
        yield SecretSpan(start, end, tables.KIND, NO_RULE)
    for (start, end), kind in lists.spans(text, names):
        yield SecretSpan(start, end, kind, NO_RULE)


def _within(places: list[int], near: Sequence[Span]) -> list[int]:
    """Return those of some ascending places that are in parts of a text."""
    if len(near) == 1 and places and near[0][0] <= places[0] and places[-1] < near[0][1]:
        return places
    within: list[int] = []
    for start, end in near:
        within += places[bisect_left(places, start) : bisect_left(places, end)]
    return within


def _around(places: Sequence[int], rules: Ranked, text: str) -> list[SecretSpan]:
    """Return what rules find at the places of an anchor that they share."""
    found: list[SecretSpan] = []
    if not places:
        return found
    near: dict[Nearby, list[int]] = {}
    unread: list[int] | None = None
    for rank, rule in rules:
        find, needs, asked = rule.find, rule.needs, places
        if find is None:
            continue
        if rule.reads_value:
            asked = unread = _unread(places, text) if unread is None else unread
        elif needs is not None:
            asked = near[needs] if needs in near else near.setdefault(needs, needs.beside(places, text))
        told: set[int] = set()
        after = 0  # places within an earlier find are skipped
        for at in asked:
            if at >= after and (span := find(text, at)) is not None:
                told.add(at)
                after = span[1]
                found.append(SecretSpan(span[0], after, rule.kind, rank))
        if told and rule.reads_value:
            unread = [at for at in asked if at not in told]
    return found


def _unread(places: Sequence[int], text: str) -> list[int]:
    """Return the places that are not followed by the mark of a redacted value."""
    if "[REDACTED:" not in text:
        return list(places)
    return [at for at in places if _VALUE_GONE.match(text, at) is None]


def _lowered(text: str) -> str:
    """Return the text in lower case with unchanged offsets, and with marks blanked out."""
    lowered = in_lower_case(text)
    if "[redacted:" in lowered:
        lowered = _LOW_MARK.sub(lambda mark: "\0" * len(mark[0]), lowered)
    return lowered


def without_overlaps(finds: list[SecretSpan]) -> list[SecretSpan]:
    """Merge overlapping finds, and sort them."""
    merged: list[SecretSpan] = []
    for find in sorted(finds, key=lambda find: (find.start, -find.end)):
        last = merged[-1] if merged else None
        if last is None or find.start >= last.end:
            merged.append(find)
        else:
            first = min(last, find, key=lambda one: one.rank)
            merged[-1] = SecretSpan(last.start, max(last.end, find.end), first.kind, first.rank)
    return merged
