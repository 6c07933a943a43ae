"""What is wrong with the rules of redaction that a user adds. Pure."""

import re
import warnings
from collections.abc import Callable, Iterator
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from memd.config import AgentSettings, Redact
from memd.configfile.statements import Key
from memd.errors import FatalError

_NAME = re.compile(r"[a-z0-9-]{1,40}")
_MANY = 100  # repeats of a repeat, from which on their product is without bound for any practical purpose
_LONGEST = 2000  # signs of a pattern


class BadRule(FatalError):
    """A user's rule cannot be used; the message says which, and why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=78)


def disagreements(settings: AgentSettings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """What is wrong with the rules of an agent; see ``faults``.

    Yields:
        The keys that take part, relative to the agent; a sentence about them.
    """
    for at, key, fault in faults(settings.redact):
        yield (("redact", "extra", at, key), ("redact", "extra")), f"the {key} of a rule {fault}"


def faults(settings: Redact) -> Iterator[tuple[int, str, str]]:
    """What is wrong with the rules that a user adds.

    Yields:
        The place of the rule, from 0; which of its keys; what is wrong with it, as the rest of a sentence.
    """
    seen: set[str] = set()
    for at, rule in enumerate(settings.extra):
        if not _NAME.fullmatch(rule.name):
            yield (
                at,
                "name",
                "must have 1 to 40 of the letters a-z, digits and -: it stands in [REDACTED:name]",
            )
        elif rule.name in seen:
            yield (
                at,
                "name",
                f'stands there twice: "{rule.name}"; join the patterns with |, or take another name',
            )
        seen.add(rule.name)
        fault = _pattern_fault(rule.pattern)
        if fault:
            yield at, "pattern", fault


def _pattern_fault(pattern: str) -> str | None:
    if len(pattern) > _LONGEST:
        return f"has {len(pattern)} signs; {_LONGEST} are the most"
    try:
        with warnings.catch_warnings():
            # A pattern that will mean something else one day is to be mended now.
            warnings.simplefilter("error")
            compiled = re.compile(pattern)
            parsed = parser.parse(pattern)
    except (re.error, OverflowError, Warning) as error:
        return f"is no regular expression of Python: {error}"
    except RecursionError:
        return "is nested too deeply"
    if compiled.search("") or parsed.getwidth()[0] == 0:
        return "matches the empty text, and so everywhere: let it ask for a sign at least"
    if has_nested_repeats(parsed):
        return "repeats what is itself repeated without a bound, like (a+)+, which can take for ever; bound the inner or the outer repeat, or make one possessive (a++)"
    if has_rival_repeats(parsed):
        return "has repeats without a bound that compete for the same signs, like a*a*b, which can take very long; join them, bound one, or make the first possessive (a*+)"
    return None


def has_nested_repeats(parsed: Any) -> bool:
    """Whether a repeat without a bound stands in another, both of which give back what they took.

    Such a pattern may try exponentially many ways.

    Args:
        parsed: What Python's own parser of regular expressions makes of one.
    """
    return _nests(parsed, inside=False)


def _nests(parsed: Any, *, inside: bool) -> bool:
    """Whether a part of a pattern does, given whether it stands inside of such a repeat itself."""
    for op, arguments in parsed:
        is_many = op in _REPEATS and arguments[1] > _MANY
        if is_many and inside:
            return True
        # What is possessive, atomic or looks around gives nothing back once it is over.
        around = False if op in _CLOSED else inside or is_many
        if any(_nests(part, inside=around) for part in _parts(op, arguments)):
            return True
    return False


def has_rival_repeats(parsed: Any) -> bool:
    """Whether repeats without a bound follow each other that could each take what the other takes, and then fail.

    Two with nothing between that must be there, or more than MOST_APART of them in all, take time that grows with a
    high power of the length.

    Args:
        parsed: What Python's own parser of regular expressions makes of one.
    """
    ignores_case = bool(parsed.state.flags & re.IGNORECASE)
    return any(_rivals(way, ignores_case) for way in _ways(parsed))


MOST_APART = 3
"""So many repeats of the same signs may stand in a pattern, apart: a.*b.*c.*d has three."""


def _rivals(way: list[tuple[Any, Any]], ignores_case: bool) -> bool:
    open_repeats: list[
        tuple[frozenset[int], int, bool]
    ] = []  # its signs, how many rivals came before, stands apart
    is_rival = False
    for op, arguments in way:
        if op in _REPEATS and arguments[1] > _MANY:
            signs = _signs(arguments[2], ignores_case=ignores_case)
            rivals = [(depth, apart) for known, depth, apart in open_repeats if known & signs]
            depth = 1 + max((depth for depth, _ in rivals), default=0)
            is_rival = is_rival or depth > MOST_APART or not all(apart for _, apart in rivals)
            if arguments[0] > 0:
                open_repeats = _after(open_repeats, signs)
            open_repeats.append((signs, depth, False))
            continue
        if op in {ops.AT, ops.ASSERT, ops.ASSERT_NOT}:
            if is_rival:
                return True
            continue
        if _least(op, arguments) > 0:
            if is_rival:
                return True
            open_repeats = _after(open_repeats, _signs([(op, arguments)], ignores_case))
    return False


def _after(
    open_repeats: list[tuple[frozenset[int], int, bool]], signs: frozenset[int]
) -> list[tuple[frozenset[int], int, bool]]:
    """Repeats after something that must be there: what they cannot take ends them, else it sets them apart."""
    return [(known, depth, True) for known, depth, _ in open_repeats if known & signs]


_MOST_WAYS = 64


def _ways(parsed: Any) -> list[list[tuple[Any, Any]]]:
    """The sequences that a pattern means, its groups opened and its branches apart, as far as they are not too many."""
    ways: list[list[tuple[Any, Any]]] = [[]]
    for op, arguments in parsed:
        if op is ops.SUBPATTERN:
            more = _ways(arguments[3])
        elif op is ops.BRANCH:
            more = [way for branch in arguments[1] for way in _ways(branch)]
        elif op in _REPEATS and arguments[1] <= _MANY and arguments[0] == 0:
            more = [
                [(ops.MAX_REPEAT, (0, 1, [part]))] if part[0] not in _REPEATS else [part]
                for part in arguments[2]
            ]
            more = [[part for way in more for part in way]]
        elif op in _REPEATS and arguments[1] <= _MANY:
            more = _ways(arguments[2])
        else:
            more = [[(op, arguments)]]
        ways = [way + end for way in ways for end in more][:_MOST_WAYS]
    return ways


def _least(op: Any, arguments: Any) -> int:
    """How many signs an operation takes at least, 0 or 1."""
    if op in _REPEATS or op is ops.POSSESSIVE_REPEAT:
        return 1 if arguments[0] > 0 else 0
    if op is ops.ATOMIC_GROUP:
        return max((_least(*part) for part in arguments), default=0)
    return 0 if op in {ops.GROUPREF, ops.GROUPREF_EXISTS} else 1


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


def _signs(parsed: Any, ignores_case: bool) -> frozenset[int]:
    """Which signs a pattern can take; rather too many than too few."""
    found: set[int] = set()
    for op, arguments in parsed:
        if op is ops.IN:
            negated = arguments[0][0] is ops.NEGATE
            named = _signs(arguments[1:] if negated else arguments, ignores_case)
            found |= (_ALL - named) | _BEYOND_ALL if negated else named
        elif op in _OF_ONE_SIGN:
            found |= _OF_ONE_SIGN[op](arguments)
        elif op in {ops.GROUPREF, ops.GROUPREF_EXISTS}:
            found |= _ALL
        elif op not in {ops.AT, ops.ASSERT, ops.ASSERT_NOT}:
            for part in _parts(op, arguments):
                found |= _signs(part, ignores_case)
    if ignores_case:
        found |= {ord(chr(at).swapcase()) for at in found if at < _BEYOND}
    return frozenset(found)


_REPEATS = frozenset({ops.MAX_REPEAT, ops.MIN_REPEAT})
_CLOSED = frozenset({ops.POSSESSIVE_REPEAT, ops.ATOMIC_GROUP, ops.ASSERT, ops.ASSERT_NOT})


def _parts(op: Any, arguments: Any) -> list[Any]:
    """The patterns inside of an operation of a parsed pattern."""
    if op in _REPEATS or op is ops.POSSESSIVE_REPEAT:
        return [arguments[2]]
    if op is ops.ATOMIC_GROUP:
        return [arguments]
    if op in {ops.ASSERT, ops.ASSERT_NOT}:
        return [arguments[1]]
    if op is ops.SUBPATTERN:
        return [arguments[3]]
    if op is ops.BRANCH:
        return list(arguments[1])
    if op is ops.GROUPREF_EXISTS:
        return [part for part in arguments[1:] if part is not None]
    return []
