"""Rules that find nothing in a text without a digit are not tried there: that changes nothing."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from memd.config.regex_safety import ops, parser
from memd.config.settings import Redact
from memd.redact import find_secrets
from memd.redact.places.scored_context import value_in
from memd.redact.redactor import Redactor
from memd.redact.rule import DIGIT
from memd.redact.rule_set import RULES, RULES_ANYWHERE, RULES_WITHOUT_DIGITS, WALKS_AT

_REDACTOR = Redactor(Redact())
_DIGITS = frozenset(map(ord, "0123456789"))


def _has_digit(parsed: Any) -> bool:
    """Whether whatever a pattern matches has a digit, in it or beside it."""
    for op, arguments in parsed:
        match op:
            case ops.LITERAL:
                has_one = arguments in _DIGITS
            case ops.IN:
                has_one = all(
                    value in _DIGITS
                    if kind is ops.LITERAL
                    else kind is ops.RANGE and _DIGITS.issuperset({*value})
                    for kind, value in arguments
                )
            case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
                has_one = arguments[0] > 0 and _has_digit(arguments[2])
            case ops.SUBPATTERN:
                has_one = _has_digit(arguments[3])
            case ops.ATOMIC_GROUP:
                has_one = _has_digit(arguments)
            case ops.ASSERT:
                has_one = _has_digit(arguments[1])
            case ops.BRANCH:
                has_one = all(map(_has_digit, arguments[1]))
            case _:
                has_one = False
        if has_one:
            return True
    return False


def _patterns(find: Any) -> list[re.Pattern[str]]:
    """The patterns that a function encloses, or else that it names."""
    enclosed = [cell.cell_contents for cell in find.__closure__ or ()]
    named = [find.__globals__.get(name) for name in find.__code__.co_names]
    for values in (enclosed, named):
        if found := [value for value in values if isinstance(value, re.Pattern)]:
            return found
    return []


def test_what_a_rule_matches_has_the_digit_that_it_says() -> None:
    """Near its anchor, or in what it finds."""
    for one in RULES:
        patterns = [] if one.needs is None or not one.needs.has_digit else [one.needs.pattern]
        if one.has_digit and one.find is not None:
            patterns.append(_patterns(one.find)[0])
        for pattern in patterns:
            assert _has_digit(parser.parse(pattern.pattern, pattern.flags)), one.name


@pytest.mark.parametrize(
    ("pattern", "has_one"),
    [
        ("a[0-9]", True),
        ("a[0-9a]", False),
        ("(?:a|b1)", False),
        ("(?:a1|b[23]{2})", True),
        ("[0-9]{0,2}", False),
        ("a(?=[4-9])", True),
        ("a(?![4-9])", False),
        (r"\d", False),
    ],
)
def test_a_digit_in_a_pattern_is_seen(pattern: str, *, has_one: bool) -> None:
    """Of ASCII: other digits are no digits of codes."""
    assert _has_digit(parser.parse(pattern)) is has_one


def test_without_digits_the_same_is_found_with_all_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """In secrets and harmless texts whose digits are letters."""
    lines = [
        DIGIT.sub("x", line)
        for file in sorted(Path(__file__).parent.glob("*.txt"))
        for line in file.read_text().splitlines()
    ]
    texts = ["\n".join(lines[at : at + 8]) for at in range(0, len(lines), 8)]
    found = [_REDACTOR.finds(text) for text in texts]
    assert sum(map(len, found)) > 100
    monkeypatch.setattr(find_secrets, "RULES_WITHOUT_DIGITS", RULES_ANYWHERE)
    monkeypatch.setattr(find_secrets, "WALKS_WITHOUT_DIGITS", WALKS_AT)
    assert [_REDACTOR.finds(text) for text in texts] == found


def test_many_rules_are_not_tried_without_digits() -> None:
    """Neither where another rule has the same anchor."""
    assert "tan" not in RULES_WITHOUT_DIGITS
    tried = RULES_WITHOUT_DIGITS["pin"]
    assert not any(one.needs_digit for _, one in (*tried.also_in_prose, *tried.not_in_prose))
    assert any(one.needs_digit for _, one in RULES_ANYWHERE["pin"].not_in_prose)


@pytest.mark.parametrize("seed", range(20))
def test_a_digit_beside_a_letter_begins_a_value_as_the_letter_does(seed: int) -> None:
    """Whatever part of a text is searched: also where it begins or ends between the two."""
    plain = re.compile(
        r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z!#&%~@$^*+])|[!#&%~@$^*+?=_.-](?=[A-Za-z0-9])(?<=[A-Za-z0-9].)"
    )
    rng = random.Random(seed)
    for _ in range(500):
        text = "".join(rng.choices("aZ09!._ \n+é", k=rng.choice([10, 12, 140])))
        start = rng.randint(0, len(text))
        end = rng.randint(start, len(text))
        expected, found = plain.search(text, start, end), value_in(text, start, end)
        assert (expected is None) == (found is None)
        if expected is not None and found is not None:
            assert found.start() == expected.start() + expected[0].isalpha()
