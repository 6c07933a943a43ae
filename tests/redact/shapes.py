"""Values that a regular expression describes, drawn by chance."""

import random
import re
import string
from functools import cache
from typing import Any, Final

from memd.config.regex_safety import ops, parser

_ANY: Final = string.ascii_letters + string.digits
_MORE: Final = 20  # signs beyond the least, where a repeat has no bound or a far one
_TRIES: Final = 2000
_OF_CATEGORY: Final = {
    ops.CATEGORY_WORD: _ANY + "_",
    ops.CATEGORY_DIGIT: string.digits,
    ops.CATEGORY_SPACE: " ",
}


def drawn(shape: str, rng: random.Random) -> str:
    """A text that matches a shape as a whole; what looks around in it is met by trying again."""
    parsed, compiled = _read(shape)
    for _ in range(_TRIES):
        text = _text(parsed, rng)
        if compiled.fullmatch(text):
            return text
    raise AssertionError(f"nothing was found that matches {shape}")


@cache
def _read(shape: str) -> tuple[Any, re.Pattern[str]]:
    return parser.parse(shape, re.ASCII), re.compile(shape, re.ASCII)


def _text(parsed: Any, rng: random.Random) -> str:
    return "".join(_part(op, arguments, rng) for op, arguments in parsed)


def _part(op: Any, arguments: Any, rng: random.Random) -> str:
    if op is ops.LITERAL:
        return chr(arguments)
    if op is ops.IN:
        return rng.choice(_signs(tuple(arguments)))
    if op is ops.BRANCH:
        return _text(rng.choice(arguments[1]), rng)
    if op is ops.SUBPATTERN:
        return _text(arguments[3], rng)
    if op in {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}:
        low, high, inner = arguments
        count = rng.randint(low, min(high, low + _MORE if low > 1 else max(low, min(high, 8))))
        return "".join(_text(inner, rng) for _ in range(count))
    if op in {ops.ASSERT, ops.ASSERT_NOT, ops.AT}:
        return ""
    raise AssertionError(f"{op} is not drawn")


@cache
def _signs(members: tuple[Any, ...]) -> str:
    """The signs of a class, letters and digits where it excludes some."""
    found: set[str] = set()
    excludes = False
    for op, arguments in members:
        if op is ops.NEGATE:
            excludes = True
        elif op is ops.LITERAL:
            found.add(chr(arguments))
        elif op is ops.RANGE:
            found.update(map(chr, range(arguments[0], arguments[1] + 1)))
        elif op is ops.CATEGORY:
            assert arguments in _OF_CATEGORY or excludes, arguments
            found.update(_OF_CATEGORY.get(arguments, " "))
    return "".join(sorted(set(_ANY) - found if excludes else found))
