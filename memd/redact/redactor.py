"""Redacts secrets in a text."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from memd.config.check_redaction import require_faultless
from memd.config.settings import Redact
from memd.redact import (
    answers,
    assignments,
    codes,
    command_line,
    crowds,
    headers,
    keys_in_sentences,
    line_below,
    lock_codes,
    lock_forms,
    logins,
    passphrases,
    password_columns,
    personal_numbers,
    plain_passwords,
    private_keys,
    prose_english,
    prose_other_languages,
    recovery_codes,
    secret_lists,
    secrets_in_context,
    spoken_numbers,
    token_formats,
    tool_output,
    turns_later,
    urls,
    user_pairs,
    wallets,
)
from memd.redact.normalise import (
    REPEATS_KEPT,
    NormalisedText,
    Repeat,
    base64_texts,
    decoded,
    folded,
    without_repeats,
)
from memd.redact.rule import EDGE, GOES_ON, AnchorIndex, Covered, Nearby, Rule, Runs, Span, runs_of
from memd.redact.user_rules import custom

# Ordered by certainty: where finds overlap, the kind of the first rule is printed.
RULES: tuple[Rule, ...] = (
    *private_keys.RULES,
    *token_formats.RULES,
    *headers.RULES,
    *urls.RULES,
    *wallets.RULES,
    *assignments.RULES,
    *prose_english.RULES,
    *codes.RULES,
    *logins.RULES,
    *prose_other_languages.RULES,
    *plain_passwords.RULES,
    *user_pairs.RULES,
    *answers.RULES,
    *lock_codes.RULES,
    *lock_forms.RULES,
    *passphrases.RULES,
    *spoken_numbers.RULES,
    *recovery_codes.RULES,
    *line_below.RULES,
    *turns_later.RULES,
    *command_line.RULES,
    *tool_output.RULES,
    *keys_in_sentences.RULES,
    *secrets_in_context.RULES,
)
"""All built-in rules."""

_REASONS: Mapping[str, str] = {
    rule.name: reason
    for rules, reason in (
        (private_keys.RULES, "a block of a private key"),
        ((token_formats.APPLICATION,), "the number of an application of Meta, and its secret"),
        (token_formats.HASHES, "a password as a system keeps it, to try others on"),
        (headers.RULES, "a header that carries credentials"),
        (urls.RULES, "credentials in a URL"),
        (wallets.RULES, "words or keys of a wallet"),
        (assignments.RULES, "the value of a key that says what it holds"),
        (prose_english.RULES, "a sentence that tells it"),
        (logins.RULES, "a password where a text speaks of logging in"),
        (codes.RULES, "a code behind what it opens or confirms"),
        (prose_other_languages.RULES, "a sentence that tells it"),
        (
            plain_passwords.RULES,
            "a word in quotes or at the end of a line behind a label",
        ),
        (user_pairs.RULES, "a password beside a user"),
        (answers.RULES, "the answer to a security question"),
        (lock_codes.RULES, "a code behind what it opens"),
        (lock_forms.RULES, "a number in the form of a code beside a lock, or behind a verb for opening it"),
        (spoken_numbers.RULES, "a code in words, behind a word for codes"),
        (line_below.RULES, "a value alone on the line below its label"),
        (turns_later.RULES, "a turn that says nothing else, after one that asked for it"),
        (recovery_codes.RULES, "a code that opens an account when everything else is lost, behind its name"),
        (passphrases.RULES, "words as a passphrase has them, behind a label"),
        (command_line.RULES, "an argument of a command that is a password or a token"),
        (keys_in_sentences.RULES, "a key that its sentence tells"),
        (secrets_in_context.RULES, "a value that the words around it tell"),
        (tool_output.RULES, "a place that a tool, a device or an export has for a secret"),
    )
    for rule in rules
} | {
    row.kind: f"the form that {'many issuers give' if row.vendor == 'any' else f'{row.vendor} gives'} its tokens"
    for row in token_formats.TOKEN_FORMATS
}
Ranked = tuple[tuple[int, Rule], ...]


def _by_anchor(*, in_token: bool) -> dict[str, Ranked]:
    """Return the rules by anchor, each with its rank; an anchor that rules share is searched once."""
    found: dict[str, Ranked] = {}
    for rank, rule in enumerate(RULES):
        if rule.in_token is in_token and rule.walk is None:
            for anchor in rule.anchors:
                found[anchor] = (*found.get(anchor, ()), (rank, rule))
    return found


class _TokenRules(msgspec.Struct, frozen=True):
    """The rules of an anchor of tokens, divided by whether they say what begins at the anchor."""

    beginning: Ranked
    others: Ranked
    pattern: str  # matches wherever one of the rules `beginning` finds something
    at_edge: bool


def _token_rules(rules: Ranked) -> _TokenRules:
    beginning = tuple((rank, rule) for rank, rule in rules if rule.begins)
    return _TokenRules(
        beginning,
        tuple((rank, rule) for rank, rule in rules if not rule.begins),
        "|".join(dict.fromkeys(f"(?:{pattern})" for _, rule in beginning for pattern in rule.begins)),
        all(rule.at_edge for _, rule in rules),
    )


_IN_TOKENS = {anchor: _token_rules(rules) for anchor, rules in _by_anchor(in_token=True).items()}
_TOKEN_INDEX = AnchorIndex(_IN_TOKENS)
# So many places of an anchor of tokens in a text make it worthwhile to compile one pattern for all of its rules.
_CROWD = 8
_ANYWHERE = _by_anchor(in_token=False)
_WALKED = tuple((rank, rule) for rank, rule in enumerate(RULES) if rule.walk is not None)
_WALKED_AT: Mapping[str, tuple[int, ...]] = {
    anchor: tuple(rank for rank, rule in _WALKED if anchor in rule.anchors)
    for anchor in dict.fromkeys(anchor for _, rule in _WALKED for anchor in rule.anchors)
}
_RANK_OF_SIGNED = RULES.index(secrets_in_context.RULES[0])
_INDEX = AnchorIndex(
    dict.fromkeys(
        (*_ANYWHERE, *(anchor for _, rule in _WALKED for anchor in rule.anchors), *secret_lists.ANCHORS)
    )
)


_HEADINGS = frozenset(password_columns.ANCHORS)
_LIST_NAMES = frozenset(secret_lists.ANCHORS)


class _Divided(msgspec.Struct, frozen=True):
    """The rules of an anchor, divided by whether they find something at a word of a sentence that continues."""

    anywhere: Ranked
    not_in_prose: Ranked


_APART_FROM_PROSE = {
    anchor: _Divided(
        tuple((rank, rule) for rank, rule in rules if not rule.skips_prose),
        tuple((rank, rule) for rank, rule in rules if rule.skips_prose),
    )
    for anchor, rules in _ANYWHERE.items()
    if any(rule.skips_prose for _, rule in rules)
}


_MARK = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
# A label, an assignment, and the mark of a redacted value.
_VALUE_GONE = re.compile(
    r"[A-Za-z]{1,16}[\"'`*]{0,3}[ \t]{0,4}(?:=>|:=|[:=]|[ ]is[ ])[ \t]{0,4}[\"'`*]{0,3}\[REDACTED:"
)
_LOW_MARK = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
# A redacted text is searched again, since a secret may have hidden another one: the result contains none. Each round removes
# at least one, so that few rounds suffice for any text that is not constructed to need more.
_ROUNDS = 8
# Later rounds search only this close to what was redacted: further away, nearly all rules would find the same again. Some
# rules find values of up to 16,384 characters; the first round, which searches everywhere, finds those.
_REACH = 768


class Redacted(msgspec.Struct, frozen=True):
    """A redacted text."""

    text: str  # with the same number of line ends
    counts: Mapping[str, int]  # by kind: how many secrets were redacted


class SecretSpan(msgspec.Struct, frozen=True, gc=False):
    """A secret in a text."""

    start: int
    end: int
    kind: str
    rank: int


def explained(find: SecretSpan) -> tuple[str, str]:
    """Return the name of the rule that found a secret, and the reason; nothing of the value."""
    if find.rank < len(RULES):
        name = RULES[find.rank].name
        return name, _REASONS[name]
    if find.rank > len(RULES):
        return find.kind, "a rule in redact.extra"
    if find.kind == password_columns.KIND:
        return "table-or-list", "a cell of a column, or an item of a list, that is named like a secret"
    if find.kind == "private-key":
        return "private-key-middle", "lines of base64 and nothing else, as keys have them"
    if find.kind == "key":
        return "key-by-word", "a value drawn by chance beside a word for a key"
    if find.kind.endswith("-key") and find.kind != "private-key":
        return (
            "vendor-word",
            f"the form that the keys of {find.kind.removesuffix('-key')} have, and the name beside it",
        )
    return find.kind, "a number of a kind in redact.kinds"


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
        answer = prose_english.answer(asked, text) if asked else None
        if answer is not None and text[slice(*answer)] not in self._allowed:
            text, _ = _replaced(text, [SecretSpan(*answer, "password", len(RULES))])
            return Redacted(text, {"password": 1})
        counts: Counter[str] = Counter()
        finds = self.finds(text)
        for _ in range(_ROUNDS - 1):
            if not finds:
                break
            text, changed = _replaced(text, finds)
            counts.update(find.kind for find in finds)
            finds = self._finds(text, changed)
        if finds:
            text, _ = _replaced(text, finds)
            counts.update(find.kind for find in finds)
        return Redacted(text, dict(sorted(counts.items())))

    def finds(self, text: str) -> list[SecretSpan]:
        """Return the secrets in a text, in order and disjoint, without the marks of earlier redactions."""
        return self._finds(text, None)

    def _finds(self, text: str, changed: Sequence[Span] | None) -> list[SecretSpan]:
        """Return the secrets in a text; if it was searched before, only near the spans that changed since."""
        shorter, repeats = without_repeats(text)
        if repeats:
            # Each of its pieces is kept: little is left of them, so that nothing needs to go as one.
            finds = self._finds_of(shorter.text, [(0, len(shorter.text))])
            return _merged(list(_repeated(finds, shorter, repeats)))
        return self._finds_of(text, changed)

    def _finds_of(self, text: str, changed: Sequence[Span] | None) -> list[SecretSpan]:
        found = [
            find for find in self._found(text, changed) if text[find.start : find.end] not in self._allowed
        ]
        if not found:
            return []
        marks = [match.span() for match in _MARK.finditer(text)]
        return _merged(_outside(found, marks) if marks else found)

    def _found(self, text: str, changed: Sequence[Span] | None) -> Iterator[SecretSpan]:
        plain = folded(text)
        near: Sequence[Span] = ((0, len(plain.text)),)
        if changed is not None:
            near = _near(plain.inner(changed), len(plain.text))
        runs = runs_of(plain.text, near)
        known = _built_in(plain.text, runs, near, self._allowed if changed is None else None)
        for find in chain(known, _in_base64(plain.text, runs)):
            if plain.text is text:
                yield find
            else:
                start, end = plain.place(find.start), plain.place(find.end - 1) + 1
                yield SecretSpan(start, end, find.kind, find.rank)
        yield from _escaped(text, ((0, len(text)),) if changed is None else _near(changed, len(text)))
        for kind in self._numbers:
            for start, end in personal_numbers.spans(text, kind):
                yield SecretSpan(start, end, kind, len(RULES))
        for rank, rule_of_user in enumerate(self._custom, len(RULES) + 1):
            for start, end in rule_of_user.spans(text):
                yield SecretSpan(start, end, rule_of_user.kind, rank)


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
        for find in _all_built_in(plain.text):
            start, end = plain.span(find.start, find.end)
            yield SecretSpan(offset + start, offset + end, find.kind, find.rank)


def _in_base64(text: str, runs: Runs) -> Iterator[SecretSpan]:
    """Yield each piece of base64 that encodes a secret."""
    for start, end, said in base64_texts(text, runs):
        first = min(_all_built_in(said), key=lambda find: find.rank, default=None)
        if first is not None:
            yield SecretSpan(start, end, first.kind, first.rank)


def _all_built_in(text: str) -> Iterator[SecretSpan]:
    everywhere = ((0, len(text)),)
    return _built_in(text, runs_of(text, everywhere), everywhere)


def _built_in(
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
    standing = _INDEX.places(lowered)
    found: list[Span] = []
    if allowed is not None and (full := list(_full_of_secrets(text, standing, allowed))):
        yield from full
        found += [(find.start, find.end) for find in full]
        # The last labels in it may have their values behind it.
        edges = [0, *(edge for find in full for edge in (find.start, find.end - _REACH)), len(text)]
        near = tuple(zip(edges[::2], edges[1::2], strict=True))
        runs = runs_of(text, near)
    for find in chain(_in_runs(text, lowered, runs), _at_anchors(text, standing, near)):
        found.append((find.start, find.end))
        yield find
    yield from _walked(text, standing, near, Covered(found))


def _full_of_secrets(
    text: str, standing: Mapping[str, list[int]], allowed: Collection[str]
) -> Iterator[SecretSpan]:
    """Yield the parts of a text that are full of labels and secrets, without their ends, in order and disjoint.

    Args:
        text: The whole text.
        standing: The offsets of each anchor in it.
        allowed: What is not secret; a part that has some of it is not yielded.
    """
    for start, end in crowds.parts_full_of_labels(standing.values(), len(text)):
        last = end - crowds.KEPT_CHARS
        samples = [
            _merged(list(_all_built_in(text[begin : begin + crowds.SAMPLE_CHARS])))
            for begin in (start, last - crowds.SAMPLE_CHARS)
        ]
        if all(crowds.is_full_of_secrets([find.start for find in finds]) for finds in samples) and not any(
            text.find(one, start, end) >= 0 for one in allowed
        ):
            first = samples[0][0]
            yield SecretSpan(start + first.start, last, first.kind, first.rank)


def _in_runs(text: str, lowered: str, runs: Runs) -> Iterator[SecretSpan]:
    """Yield tokens of known forms, keys beside a word for them, and a text that is the middle of a key."""
    for anchor, places in _TOKEN_INDEX.places(runs.text).items():
        # Where pieces of the text overlap, a place is found twice.
        inside = sorted(set(map(runs.place, places)))
        rules = _IN_TOKENS[anchor]
        if rules.at_edge:
            inside = [at for at in inside if EDGE.match(text, at)]
        yield from _around(inside, rules.others, text)
        if len(inside) >= _CROWD:
            inside = token_formats.where_one_begins(rules.pattern, inside, text)
        yield from _around(inside, rules.beginning, text)
    for (start, end), kind in token_formats.keys_by_name(text, lowered, runs):
        yield SecretSpan(start, end, kind, len(RULES))
    block = private_keys.middle(text)
    if block is not None:
        yield SecretSpan(*block, "private-key", len(RULES))


def _at_anchors(text: str, standing: Mapping[str, list[int]], near: Sequence[Span]) -> Iterator[SecretSpan]:
    """Yield what the rules with a `find` function find, and what a table or a list names.

    Args:
        text: The whole text.
        standing: The offsets of each anchor in it.
        near: The parts to search.
    """
    named: list[int] = []
    listed: list[int] = []
    for anchor, places in standing.items():
        if anchor in _LIST_NAMES:
            listed += places
        rules = _ANYWHERE.get(anchor)
        if rules is None:
            continue
        is_block = rules[0][0] < len(private_keys.RULES)
        inside = places if is_block else _within(places, near)
        apart = _APART_FROM_PROSE.get(anchor)
        telling = places
        if apart is None:
            yield from _around(inside, rules, text)
        else:
            yield from _around(inside, apart.anywhere, text)
            telling = [at for at in places if GOES_ON.match(text, at) is None]
            yield from _around(_within(telling, near), apart.not_in_prose, text)
        if anchor in _HEADINGS:
            named += telling
    yield from _named_before(text, sorted(named), sorted(listed))


def _walked(
    text: str, standing: Mapping[str, list[int]], near: Sequence[Span], known: Covered
) -> Iterator[SecretSpan]:
    """Yield what the rules with a `walk` function find, and passwords that have no anchor.

    Args:
        text: The whole text.
        standing: The offsets of each anchor in it.
        near: The parts to search.
        known: What other rules found.
    """
    places_of: dict[int, set[int]] = {}
    for anchor, places_of_anchor in standing.items():
        for rank in _WALKED_AT.get(anchor, ()):
            places_of.setdefault(rank, set()).update(places_of_anchor)
    for rank, rule in _WALKED:
        places = sorted(places_of.get(rank, ()))
        if places and rule.walk is not None:
            for start, end in rule.walk(text, _within(places, near), known):
                yield SecretSpan(start, end, rule.kind, rank)
    for start, end in secrets_in_context.signed(text, near, known):
        yield SecretSpan(start, end, "password", _RANK_OF_SIGNED)


def _named_before(text: str, headings: list[int], names: list[int]) -> Iterator[SecretSpan]:
    """Yield the cells of tables and the items of lists whose heading or name is a word for secrets."""
    for start, end in password_columns.spans(text, headings):
        yield SecretSpan(start, end, password_columns.KIND, len(RULES))
    for (start, end), kind in secret_lists.spans(text, names):
        yield SecretSpan(start, end, kind, len(RULES))


def _near(changed: Sequence[Span], length: int) -> list[Span]:
    """Return the parts of a text within _REACH of its changed spans, ascending and disjoint."""
    near: list[Span] = []
    for first, last in changed:
        start, end = max(0, first - _REACH), min(length, last + _REACH)
        near.append((near.pop()[0] if near and start <= near[-1][1] else start, end))
    return near


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
    lowered = text.replace("İ", "i").lower()  # the only capital letter whose lower case has two characters
    if "[redacted:" in lowered:
        lowered = _LOW_MARK.sub(lambda mark: "\0" * len(mark[0]), lowered)
    return lowered


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


def _merged(finds: list[SecretSpan]) -> list[SecretSpan]:
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
