"""That no text makes a pattern take more than its share: by the structure of the patterns, and by what they take."""

import base64
import importlib
import pkgutil
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest
from hypothesis import settings

import memd.redact
from memd.config.regex_safety import MANY, REPEATS, has_rival_repeats, ops, parser, parts
from memd.config.settings import Redact
from memd.redact.keys.token_formats import TOKEN_FORMATS, TokenFormat
from memd.redact.redactor import Redactor
from memd.redact.rule_set import RULES
from tests.redact import hostile


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(memd.redact.__path__, "memd.redact."):
        yield importlib.import_module(module.name)


def _patterns(value: object) -> Iterator[tuple[str, int]]:
    match value:
        case re.Pattern():
            yield value.pattern, value.flags & (re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL)
        case TokenFormat():
            yield value.shape, re.ASCII
        case dict():
            for member in value.values():
                yield from _patterns(member)
        case tuple() | list():
            for member in value:
                yield from _patterns(member)
        case _:
            pass


_TABLES = sorted(
    {
        pattern
        for module in _modules()
        for value in vars(module).values()
        if isinstance(value, tuple)
        for pattern, _ in _patterns(value)
    }
)


def _reached(value: object, seen: set[int]) -> Iterator[tuple[str, int]]:
    """The patterns that a function can come to: what it encloses, and the globals that its code names."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, tuple) and any(map(callable, value)):
        for member in value:
            yield from _reached(member, seen)
    elif isinstance(value, MethodType):
        yield from _reached(value.__self__, seen)
    elif isinstance(value, FunctionType) and value.__module__.startswith(memd.redact.__name__):
        for cell in value.__closure__ or ():
            yield from _reached(cell.cell_contents, seen)
        for name in _named(value.__code__):
            yield from _reached(value.__globals__.get(name), seen)
    else:
        yield from _patterns(value)


def _named(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _named(inner)


_OF_RULES = {found for rule in RULES for found in _reached((rule.find, rule.walk), set())} | {
    found for rule in RULES if rule.needs is not None for found in _patterns(rule.needs.pattern)
}
_ALL = sorted(
    _OF_RULES
    | {found for module in _modules() for value in vars(module).values() for found in _patterns(value)}
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
    """All that a rule can come to, or the tests below say nothing of it."""
    for rule in RULES:
        assert list(_reached((rule.find, rule.walk), set())), rule.name
    assert len(_OF_RULES) > 150
    assert {row.shape for row in TOKEN_FORMATS} <= set(_TABLES)


def test_no_repeat_stands_in_another() -> None:
    """Where both could give back what they took, the ways to try would be without number."""
    assert [pattern for pattern, flags in _ALL if _nests(parser.parse(pattern, flags), inside=False)] == []


def test_no_repeats_are_rivals() -> None:
    """Nor do some without a bound compete for the same signs."""
    assert [pattern for pattern, flags in _ALL if has_rival_repeats(parser.parse(pattern, flags))] == []


def test_what_has_no_bound_cannot_fail() -> None:
    """In the tables: a token is read to its end once, however long it is."""
    assert [pattern for pattern in _TABLES if list(_endless(parser.parse(pattern)))] == []


@pytest.mark.parametrize(
    ("pattern", "nests", "competes", "endless"),
    [
        (r"a{1,9}b{2}", False, False, 0),
        (r"(?:a+b)+c", True, False, 2),
        (r"a*b*a*c", False, True, 3),
        (r"ab+", False, False, 0),
        (r"ab++c", False, False, 0),
    ],
)
def test_what_is_looked_for_is_seen(pattern: str, *, nests: bool, competes: bool, endless: int) -> None:
    """In patterns that have it."""
    parsed = parser.parse(pattern)
    assert _nests(parsed, inside=False) is nests
    assert has_rival_repeats(parsed) is competes
    assert len(list(_endless(parsed))) == endless


@pytest.mark.rows(4)
@pytest.mark.parametrize("filler", hostile.FILLERS)
def test_time_grows_with_the_length(filler: str) -> None:
    """Four times the text takes far from sixteen times as long, in one of a few tries at least: others work here, too.

    A find makes further rounds, also where it needs some length: what grows there once does not grow so again.
    """
    redactor = Redactor(Redact())
    known = hostile.anchors()
    chosen = (
        known
        if settings().max_examples > 100
        else [*random.Random(filler).sample(known, 12), "xoxb-", "pass"]
    )
    for anchor in chosen:
        texts = [
            hostile.repeated(filler, anchor, length, numbered=True) for length in (5_000, 20_000, 80_000)
        ]
        tries = (
            hostile.seconds(redactor, long) / hostile.seconds(redactor, short)
            for short, long in pairwise(texts)
            for _ in range(5)
        )
        assert any(growth < 9 for growth in tries), anchor


@pytest.mark.parametrize(
    ("filler", "anchor"),
    [
        ("escaped", "la_password"),
        ("blank", "pwd="),
        ("line", "AGE-SECRET-KEY-1"),
        ("line", "pwd"),
        ("escaped", "key="),
        ("equals", "_secret"),
        ("quote that never closes", "pre-shared key"),
        ("without a blank", "code du wifi"),
        ("without a width", "utente"),
        ("value", "PWD="),
        ("value", "帳號"),
        ("alone", "sk_test_"),
        ("token", "secret_"),
    ],
)
def test_work_grows_with_the_length(filler: str, anchor: str) -> None:
    """Four times one of the slowest texts takes four times as many calls, and a tenth more at most."""
    redactor = Redactor(Redact())
    redactor.redact(hostile.repeated(filler, anchor, 1_000))  # patterns are compiled on first use
    short, long = (hostile.repeated(filler, anchor, length, numbered=True) for length in (4_000, 16_000))
    assert hostile.work(redactor, long) < 4.4 * hostile.work(redactor, short)


@pytest.mark.parametrize(
    ("filler", "anchor"),
    [
        ("blank", "pass phrase"),  # runs of words that wallets draw from
        ("without a blank", "got hacked"),  # words with digits near many remarks on passwords
        ("without a blank", "account locked"),  # the same, of which one is found in each round
        ("without a blank", "network passcode"),
    ],
)
def test_a_crowd_takes_few_calls_a_sign(filler: str, anchor: str) -> None:
    """Where each word is near many anchors, and may be a part of many phrases: no file is read for each, and little is graded."""
    redactor = Redactor(Redact())
    redactor.redact(
        hostile.repeated(filler, anchor, 1_000)
    )  # patterns are compiled, and lists are read, on first use
    text = hostile.repeated(filler, anchor, 4_000, numbered=True)
    assert hostile.work(redactor, text) < 15 * len(text)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n> "])
def test_lines_of_base64_that_encode_no_text_are_read_once(ends: str) -> None:
    """Sixteen times a picture takes far from 256 times as long."""
    redactor = Redactor(Redact())
    rng = random.Random(ends)
    lines = [base64.b64encode(rng.randbytes(54)).decode() for _ in range(6_400)]
    short, long = (ends.join(lines[:count]) for count in (400, 6_400))
    tries = (hostile.seconds(redactor, long) / hostile.seconds(redactor, short) for _ in range(5))
    assert any(growth < 40 for growth in tries)


def test_what_repeats_itself_takes_hardly_longer_than_a_part_of_it() -> None:
    """Twenty times the text takes far from twenty times as long: most of it is only compared."""
    redactor = Redactor(Redact())
    for anchor in ("pass", "密码", "KEY0"):
        short, long = (hostile.repeated("alone", anchor, length) for length in (20_000, 400_000))
        tries = (hostile.seconds(redactor, long) / hostile.seconds(redactor, short) for _ in range(5))
        assert any(growth < 10 for growth in tries), anchor
