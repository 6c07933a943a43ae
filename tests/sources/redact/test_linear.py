"""That no text makes a pattern take more than its share, by the structure of the patterns."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import memd.sources.redact
from memd.configfile.repeats import has_rival_repeats
from memd.configfile.signs import MANY, REPEATS, ops, parser, parts
from memd.sources.redact.rule import Token


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(memd.sources.redact.__path__):
        yield importlib.import_module(f"memd.sources.redact.{module.name}")


def _patterns(value: object) -> Iterator[tuple[str, int]]:
    match value:
        case re.Pattern():
            yield value.pattern, value.flags & (re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL)
        case Token():
            yield value.pattern, re.ASCII
        case dict():
            for member in value.values():
                yield from _patterns(member)
        case tuple() | list():
            for member in value:
                yield from _patterns(member)
        case _:
            pass


_ALL = sorted(
    {found for module in _modules() for value in vars(module).values() for found in _patterns(value)}
)


def _endless(parsed: Any, *, last: bool = True) -> Iterator[str]:
    """The repeats without a bound that may fail after a long way: neither possessive, nor the end of the pattern."""
    for place, (op, arguments) in enumerate(parsed):
        ends = last and place == len(parsed) - 1
        if op in {ops.MAX_REPEAT, ops.MIN_REPEAT}:
            if arguments[1] is ops.MAXREPEAT and not ends:
                yield repr(op)
            yield from _endless(arguments[2], last=False)
        elif op is ops.SUBPATTERN:
            yield from _endless(arguments[3], last=ends)
        elif op is ops.BRANCH:
            for branch in arguments[1]:
                yield from _endless(branch, last=ends)


def _nests(parsed: Any, *, inside: bool) -> bool:
    """Whether a repeat without a bound stands in another, both of which give back what they took."""
    for op, arguments in parsed:
        is_many = op in REPEATS and arguments[1] > MANY
        if is_many and inside:
            return True
        # What is possessive, atomic or looks around gives nothing back once it is over.
        around = False if op in _CLOSED else inside or is_many
        if any(_nests(part, inside=around) for part in parts(op, arguments)):
            return True
    return False


_CLOSED = frozenset({ops.POSSESSIVE_REPEAT, ops.ATOMIC_GROUP, ops.ASSERT, ops.ASSERT_NOT})


def test_the_patterns_are_seen() -> None:
    """All of them, or the tests below say nothing."""
    assert len(_ALL) > 150


@pytest.mark.parametrize(("pattern", "flags"), _ALL)
def test_no_repeat_stands_in_another(pattern: str, flags: int) -> None:
    """Where both could give back what they took, the ways to try would be without number."""
    assert not _nests(parser.parse(pattern, flags), inside=False)


@pytest.mark.parametrize(("pattern", "flags"), _ALL)
def test_no_repeats_are_rivals(pattern: str, flags: int) -> None:
    """Nor do some without a bound compete for the same signs."""
    assert not has_rival_repeats(parser.parse(pattern, flags))


@pytest.mark.parametrize(
    "pattern",
    [
        pattern
        for module in _modules()
        for value in vars(module).values()
        for pattern, _ in _patterns(value)
        if isinstance(value, tuple)
    ],
)
def test_what_has_no_bound_cannot_fail(pattern: str) -> None:
    """In the tables: a token is read to its end once, however long it is."""
    assert list(_endless(parser.parse(pattern))) == []
