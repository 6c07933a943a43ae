"""Whether repeats of a regular expression compete for the same signs, so that failing takes a high power of the length."""

import re
from typing import Any

from memd.config.regex_safety.char_sets import MANY, REPEATS, looks, ops, signs


def has_rival_repeats(parsed: Any) -> bool:
    """Whether repeats without a bound follow each other that could each take what the other takes, and then fail.

    Two with nothing between that must be there, or more than MOST_APART of them in all, take time that grows with a
    high power of the length.

    Args:
        parsed: What Python's own parser of regular expressions makes of one.
    """
    ignores_case = bool(parsed.state.flags & re.IGNORECASE)
    if any(_rivals(way, ignores_case) for way in _ways(parsed)):
        return True
    return any(has_rival_repeats(look) for look in looks(parsed))


MOST_APART = 3
"""So many repeats of the same signs may stand in a pattern, apart: a.*b.*c.*d has three."""


def _rivals(way: list[tuple[Any, Any]], ignores_case: bool) -> bool:
    open_repeats: list[
        tuple[frozenset[int], int, bool]
    ] = []  # its signs, how many rivals came before, stands apart
    is_rival = False
    for op, arguments in way:
        if op in REPEATS and arguments[1] > MANY:
            taken = signs(arguments[2], ignores_case=ignores_case)
            rivals = [(depth, apart) for known, depth, apart in open_repeats if known & taken]
            depth = 1 + max((depth for depth, _ in rivals), default=0)
            is_rival = is_rival or depth > MOST_APART or not all(apart for _, apart in rivals)
            if arguments[0] > 0:
                open_repeats = _after(open_repeats, taken)
            open_repeats.append((taken, depth, False))
            continue
        if op in {ops.AT, ops.ASSERT, ops.ASSERT_NOT}:
            if is_rival:
                return True
            continue
        if _least(op, arguments) > 0:
            if is_rival:
                return True
            open_repeats = _after(open_repeats, signs([(op, arguments)], ignores_case))
    return False


def _after(
    open_repeats: list[tuple[frozenset[int], int, bool]], taken: frozenset[int]
) -> list[tuple[frozenset[int], int, bool]]:
    """Repeats after something that must be there: what they cannot take ends them, else it sets them apart."""
    return [(known, depth, True) for known, depth, _ in open_repeats if known & taken]


_MOST_WAYS = 64


def _ways(parsed: Any) -> list[list[tuple[Any, Any]]]:
    """The sequences that a pattern means, its groups opened and its branches apart, as far as they are not too many."""
    ways: list[list[tuple[Any, Any]]] = [[]]
    for op, arguments in parsed:
        if op is ops.SUBPATTERN:
            more = _ways(arguments[3])
        elif op is ops.BRANCH:
            more = [way for branch in arguments[1] for way in _ways(branch)]
        elif op in REPEATS and arguments[1] <= MANY and arguments[0] == 0:
            more = [
                [(ops.MAX_REPEAT, (0, 1, [part]))] if part[0] not in REPEATS else [part]
                for part in arguments[2]
            ]
            more = [[part for way in more for part in way]]
        elif op in REPEATS and arguments[1] <= MANY:
            more = _ways(arguments[2])
        else:
            more = [[(op, arguments)]]
        ways = [way + end for way in ways for end in more][:_MOST_WAYS]
    return ways


def _least(op: Any, arguments: Any) -> int:
    """How many signs an operation takes at least, 0 or 1."""
    if op in REPEATS or op is ops.POSSESSIVE_REPEAT:
        return 1 if arguments[0] > 0 else 0
    if op is ops.ATOMIC_GROUP:
        return max((_least(*part) for part in arguments), default=0)
    return 0 if op in {ops.GROUPREF, ops.GROUPREF_EXISTS} else 1
