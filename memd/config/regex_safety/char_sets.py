"""What the parts of a regular expression take, as Python's own parser gives them. Pure.

The parser is private to Python: another version may keep it elsewhere, or give it another form. So nothing imports this
before there is a pattern to look through, and whoever does can do without (memd.config.check_redaction).
"""

from collections.abc import Callable, Iterator
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

__all__ = ["MANY", "REPEATS", "looks", "ops", "parsed", "parser", "parts", "signs"]

MANY = 100
"""So many repeats are as good as no bound."""
REPEATS = frozenset({ops.MAX_REPEAT, ops.MIN_REPEAT})
"""That give back what they took."""
_LOOKS = frozenset({ops.ASSERT, ops.ASSERT_NOT})

# Signs that are not ASCII stand together: letters and digits, blanks, all others.
_BEYOND, _WORD, _BLANK, _OTHER = 128, 128, 129, 130
_BEYOND_ALL = frozenset({_WORD, _BLANK, _OTHER})
_ALL = frozenset(range(_BEYOND)) | _BEYOND_ALL
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    ops.CATEGORY_DIGIT: str.isdecimal,
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_WORD: lambda sign: sign.isalnum() or sign == "_",
    ops.CATEGORY_NOT_DIGIT: lambda sign: not sign.isdecimal(),
    ops.CATEGORY_NOT_SPACE: lambda sign: not sign.isspace(),
    ops.CATEGORY_NOT_WORD: lambda sign: not (sign.isalnum() or sign == "_"),
}


def _kind(sign: str) -> int:
    return _WORD if sign.isalnum() else _BLANK if sign.isspace() else _OTHER


def _of_range(bounds: tuple[int, int]) -> frozenset[int]:
    low, high = bounds
    return frozenset(range(low, min(high + 1, _BEYOND))) | (_BEYOND_ALL if high >= _BEYOND else frozenset())


def _of_category(category: Any) -> frozenset[int]:
    is_one = _CATEGORIES[category]
    beyond = ((_WORD, "é"), (_WORD, "٣"), (_BLANK, "\u3000"), (_OTHER, "。"))
    return frozenset(at for at in range(_BEYOND) if is_one(chr(at))) | frozenset(
        kind for kind, sign in beyond if is_one(sign)
    )


_OF_ONE_SIGN: dict[Any, Callable[[Any], frozenset[int]]] = {
    ops.LITERAL: lambda sign: frozenset({sign if sign < _BEYOND else _kind(chr(sign))}),
    ops.NOT_LITERAL: lambda sign: _ALL - {sign},
    ops.ANY: lambda _: _ALL - {ord("\n")},
    ops.RANGE: _of_range,
    ops.CATEGORY: _of_category,
}


def signs(parsed: Any, ignores_case: bool) -> frozenset[int]:
    """Which signs a pattern can take; rather too many than too few."""
    found: set[int] = set()
    for op, arguments in parsed:
        if op is ops.IN:
            negated = arguments[0][0] is ops.NEGATE
            named = signs(arguments[1:] if negated else arguments, ignores_case)
            found |= (_ALL - named) | _BEYOND_ALL if negated else named
        elif op in _OF_ONE_SIGN:
            found |= _OF_ONE_SIGN[op](arguments)
        elif op in {ops.GROUPREF, ops.GROUPREF_EXISTS}:
            found |= _ALL
        elif op is not ops.AT and op not in _LOOKS:
            for part in parts(op, arguments):
                found |= signs(part, ignores_case)
    if ignores_case:
        found |= {ord(chr(at).swapcase()) for at in found if at < _BEYOND}
    return frozenset(found)


def parsed(pattern: str) -> Any:
    """What Python's own parser makes of a pattern, which is known to be one."""
    return parser.parse(pattern)


def looks(parsed: Any) -> Iterator[Any]:
    """What is looked for around places, which is a pattern of its own each time."""
    for op, arguments in parsed:
        for inside in parts(op, arguments):
            if op in _LOOKS:
                yield inside
            else:
                yield from looks(inside)


def parts(op: Any, arguments: Any) -> list[Any]:
    """The patterns inside of an operation of a parsed pattern."""
    if op in REPEATS or op is ops.POSSESSIVE_REPEAT:
        return [arguments[2]]
    if op is ops.ATOMIC_GROUP:
        return [arguments]
    if op in _LOOKS:
        return [arguments[1]]
    if op is ops.SUBPATTERN:
        return [arguments[3]]
    if op is ops.BRANCH:
        return list(arguments[1])
    if op is ops.GROUPREF_EXISTS:
        return [part for part in arguments[1:] if part is not None]
    return []
