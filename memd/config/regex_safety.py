"""Detects regular expressions that may take exponential time, or a high power of the length, to fail. Pure.

It analyses the structure given by Python's own parser. That parser is private: another version may move or change it. So this
module is imported only if there is a pattern to check, and its caller can do without it (memd.config.check_redaction).

Exponential time: each position of the pattern that takes a character is a state, as in Glushkov's automaton. If two different
paths lead from a state back to it over the same characters, every further round doubles the number of ways to match; otherwise
a power of the length bounds it. Source: Weber, Seidl: On the degree of ambiguity of finite automata, 1991.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

__all__ = [
    "MANY",
    "REPEATS",
    "has_rival_repeats",
    "is_ambiguous",
    "looks",
    "ops",
    "parsed",
    "parser",
    "parts",
    "signs",
]

MANY = 100
"""So many repeats are as good as no bound."""
REPEATS = frozenset({ops.MAX_REPEAT, ops.MIN_REPEAT})
"""That give back what they took."""
_LOOKS = frozenset({ops.ASSERT, ops.ASSERT_NOT})

# Characters outside ASCII are treated in three classes: letters and digits, blanks, all others.
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
    """Return the set of characters that a pattern can take, possibly with some that it cannot."""
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
    """Return the structure of a valid pattern, as Python's parser gives it."""
    return parser.parse(pattern)


def looks(parsed: Any) -> Iterator[Any]:
    """Yield the patterns of lookarounds, each of which is matched by itself."""
    for op, arguments in parsed:
        for inside in parts(op, arguments):
            if op in _LOOKS:
                yield inside
            else:
                yield from looks(inside)


def parts(op: Any, arguments: Any) -> list[Any]:
    """Return the patterns inside of an operation of a parsed pattern."""
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


_MOST_STATES = 400
_MOST_STEPS = 200_000  # of the search; a pattern that needs more counts as ambiguous
_MOST_COPIES = 64  # of a part that is repeated a fixed number of times
_FEW = 4  # repeats up to this count are fast, even if each round is ambiguous

_Ways = Mapping[int, int]  # by state: the number of ways to reach it
_TAKES = {ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN, ops.RANGE, ops.CATEGORY}


class _TooMany(Exception):
    """The pattern has too many states, steps or ways."""


class _Part(NamedTuple):
    """A part of the pattern: its first and last states, and the number of ways to match the empty string."""

    empty: int
    first: _Ways
    last: _Ways


_NOTHING = _Part(1, {}, {})


class _States:
    """The states of a pattern, and their successors."""

    def __init__(self) -> None:
        self.signs: list[frozenset[int]] = []
        self.next: Counter[tuple[int, int]] = Counter()
        # The characters that a possessive repeat has taken all of: none of them can follow.
        self._exhausted: dict[int, frozenset[int]] = {}

    def whole(self, structure: Sequence[Any], *, ignores_case: bool, ends: bool = False) -> _Part:
        """Add the parts of a sequence; `ends`: the pattern ends after them."""
        made = _NOTHING
        for at, (op, arguments) in enumerate(structure, 1):
            is_last = ends and at == len(structure)
            made = self._after(made, self._one(op, arguments, ignores_case, ends=is_last))
        return made

    def _one(self, op: Any, arguments: Any, ignores_case: bool, *, ends: bool) -> _Part:
        if op in _TAKES:
            return self._state(signs([(op, arguments)], ignores_case))
        if op in REPEATS or op is ops.POSSESSIVE_REPEAT:
            if ends and op in REPEATS and arguments[0] <= _FEW:
                return self._last(arguments, ignores_case)
            return self._repeat(op, arguments, ignores_case)
        if op is ops.SUBPATTERN:
            ignores_case = ignores_case or bool(arguments[1] & re.IGNORECASE)
            return self.whole(arguments[3], ignores_case=ignores_case, ends=ends)
        if op is ops.ATOMIC_GROUP:
            return self._atomic(arguments, ignores_case)
        if op is ops.BRANCH:
            return self._either(
                self.whole(branch, ignores_case=ignores_case, ends=ends) for branch in arguments[1]
            )
        if op is ops.GROUPREF_EXISTS:
            return self._either(
                self.whole(branch or (), ignores_case=ignores_case) for branch in arguments[1:]
            )
        if op is ops.GROUPREF:
            return self._optional(self.repeated(self._state(signs([(op, arguments)], ignores_case))))
        return _NOTHING  # a lookaround or an anchor

    def _state(self, of: frozenset[int]) -> _Part:
        if len(self.signs) >= _MOST_STATES:
            raise _TooMany
        self.signs.append(of)
        return _Part(0, {len(self.signs) - 1: 1}, {len(self.signs) - 1: 1})

    def _repeat(self, op: Any, arguments: Any, ignores_case: bool) -> _Part:
        least, most, inside = arguments
        narrow, wide = inside.getwidth()
        if most == 0:
            return _NOTHING
        if least > 1 and narrow == 0:
            raise _TooMany  # there are as many ways to choose the empty rounds as there are rounds
        if most == 1:
            made = self.whole(inside, ignores_case=ignores_case)
        elif least == most and narrow == wide and most <= _MOST_COPIES:
            if op in REPEATS and most > _FEW and _doubles(inside, ignores_case):
                raise _TooMany  # bounded, but by two to the power of the number of rounds
            made = _NOTHING
            for _ in range(most):
                made = self._after(made, self.whole(inside, ignores_case=ignores_case))
        else:
            made = self.repeated(self.whole(inside, ignores_case=ignores_case))
            if op is ops.POSSESSIVE_REPEAT and most > MANY:
                self._exhaust(made, inside)
        return made if least else self._optional(made)

    def _last(self, arguments: Any, ignores_case: bool) -> _Part:
        """Add a repeat at the end of the pattern: after the least count, it cannot fail any more."""
        least, _, inside = arguments
        if inside.getwidth()[1] == 0:
            raise _TooMany  # nested loops around an empty match
        made = _NOTHING
        for count in range(max(least, 1), 0, -1):
            made = self._after(made, self.whole(inside, ignores_case=ignores_case, ends=count == 1))
        return made if least else self._optional(made)

    def _atomic(self, inside: Any, ignores_case: bool) -> _Part:
        made = self.whole(inside, ignores_case=ignores_case)
        if len(inside) == 1 and inside[0][0] is ops.MAX_REPEAT and inside[0][1][1] > MANY:
            self._exhaust(made, inside[0][1][2])
        return made

    def _exhaust(self, made: _Part, inside: Any) -> None:
        if len(inside) == 1 and inside[0][0] in _TAKES:
            self._exhausted.update((state, self.signs[state]) for state in made.last)

    def _after(self, one: _Part, other: _Part) -> _Part:
        self._join(one.last, other.first)
        return _Part(
            min(2, one.empty * other.empty),
            _sum(one.first, other.first, one.empty),
            _sum(other.last, one.last, other.empty),
        )

    def repeated(self, part: _Part) -> _Part:
        """Connect a part to itself, since it may be repeated."""
        self._join(part.last, part.first)
        return part

    @staticmethod
    def _optional(part: _Part) -> _Part:
        return _Part(1, part.first, part.last)

    @staticmethod
    def _either(branches: Iterable[_Part]) -> _Part:
        made = _Part(0, {}, {})
        for each in branches:
            made = _Part(
                min(2, made.empty + each.empty),
                _sum(made.first, each.first, 1),
                _sum(made.last, each.last, 1),
            )
        return made

    def _join(self, last: _Ways, first: _Ways) -> None:
        for state, ways in last.items():
            for after, more in first.items():
                if self.signs[after] - self._exhausted.get(state, frozenset()):
                    self.next[state, after] = min(2, self.next[state, after] + ways * more)


def _sum(one: _Ways, other: _Ways, times: int) -> dict[int, int]:
    made = dict(one)
    for state, ways in other.items() if times else ():
        made[state] = min(2, made.get(state, 0) + ways * times)
    return made


def is_ambiguous(structure: Any) -> bool:
    """Return whether the number of ways to match can grow exponentially with the length of a text; True in doubt.

    Args:
        structure: The structure given by Python's parser.
    """
    ignores_case = bool(structure.state.flags & re.IGNORECASE)
    return _is_ambiguous(structure, ignores_case=ignores_case)


def _is_ambiguous(structure: Any, *, ignores_case: bool) -> bool:
    states = _States()
    try:
        states.whole(structure, ignores_case=ignores_case, ends=True)
        if _has_two_ways_around(states):
            return True
    except _TooMany:
        return True
    return any(_is_ambiguous(look, ignores_case=ignores_case) for look in looks(structure))


def _doubles(inside: Any, ignores_case: bool) -> bool:
    """Return whether each further round of a part doubles the number of ways to match."""
    rounds = _States()
    rounds.repeated(rounds.whole(inside, ignores_case=ignores_case))
    return _has_two_ways_around(rounds)


def _has_two_ways_around(states: _States) -> bool:
    after: list[list[int]] = [[] for _ in states.signs]
    for state, other in states.next:
        after[state].append(other)
    if any(ways > 1 and state in _reached(after, other) for (state, other), ways in states.next.items()):
        return True
    steps = [_MOST_STEPS]
    return any(_comes_back(state, states, after, steps) for state in range(len(after)))


def _reached(after: list[list[int]], start: int) -> set[int]:
    reached, waiting = {start}, deque([start])
    while waiting:
        for state in after[waiting.popleft()]:
            if state not in reached:
                reached.add(state)
                waiting.append(state)
    return reached


def _comes_back(start: int, states: _States, after: list[list[int]], steps: list[int]) -> bool:
    """Return whether two paths that diverge at a state, over the same characters, meet there again."""
    home = _reached(after, start)
    reached: set[tuple[int, int, bool]] = {(start, start, False)}
    waiting = deque(reached)
    while waiting:
        one, other, apart = waiting.popleft()
        for first in after[one]:
            for second in after[other]:
                steps[0] -= 1
                if steps[0] < 0:
                    raise _TooMany
                if first not in home or not states.signs[first] & states.signs[second]:
                    continue
                now = (min(first, second), max(first, second), apart or first != second)
                if now == (start, start, True):
                    return True
                if now not in reached:
                    reached.add(now)
                    waiting.append(now)
    return False


def has_rival_repeats(parsed: Any) -> bool:
    """Return whether unbounded repeats that can take the same characters follow each other, and can then fail.

    Two without a required character between them, or more than MOST_APART in all, take time that grows with a high power of the
    length.

    Args:
        parsed: The structure given by Python's parser.
    """
    ignores_case = bool(parsed.state.flags & re.IGNORECASE)
    try:
        _walked(parsed, {_Way()}, ignores_case)
    except _Compete:
        return True
    return any(has_rival_repeats(look) for look in looks(parsed))


MOST_APART = 3
"""So many repeats of the same signs may stand in a pattern, apart: a.*b.*c.*d has three."""
_MOST_WAYS = 64
"""So many ways through a pattern are told apart, by the repeats that could still take more; with more, some may compete."""


class _Open(NamedTuple):
    """An unbounded repeat that could still take more characters."""

    signs: frozenset[int]
    depth: int  # the number of consecutive rivals, including this one
    is_apart: bool  # a required character came since


class _Way(NamedTuple):
    """How a position of the pattern was reached, as far as it matters afterwards."""

    repeats: tuple[_Open, ...] = ()
    is_rival: bool = False  # two repeats compete, and nothing could fail since


class _Compete(Exception):
    """Repeats compete before something that may fail, or there are too many ways."""


def _walked(structure: Any, ways: set[_Way], ignores_case: bool) -> set[_Way]:
    """Return the ways after a part of a pattern.

    Raises:
        _Compete: repeats compete in one of them.
    """
    for op, arguments in structure:
        if op is ops.SUBPATTERN:
            ways = _walked(arguments[3], ways, ignores_case)
        elif op is ops.BRANCH:
            ways = set().union(*(_walked(branch, ways, ignores_case) for branch in arguments[1]))
        elif op in REPEATS and arguments[1] <= MANY:
            is_optional = arguments[0] == 0
            behind = {
                after._replace(is_rival=after.is_rival or way.is_rival)
                for way in ways
                # If an optional part fails, it is skipped.
                for after in _walked(
                    arguments[2], {way._replace(is_rival=way.is_rival and not is_optional)}, ignores_case
                )
            }
            ways = ways | behind if is_optional else behind
        else:
            ways = {_behind(way, op, arguments, ignores_case) for way in ways}
        if len(ways) > _MOST_WAYS:
            raise _Compete
    return ways


def _behind(way: _Way, op: Any, arguments: Any, ignores_case: bool) -> _Way:
    takes_signs = op not in {ops.AT, ops.ASSERT, ops.ASSERT_NOT}
    is_needed = _is_needed(op, arguments)
    if way.is_rival and is_needed:
        raise _Compete
    taken = signs([(op, arguments)], ignores_case) if takes_signs else frozenset()
    repeats = _after(way.repeats, taken) if takes_signs and is_needed else way.repeats
    if op not in REPEATS:
        return way._replace(repeats=repeats)
    rivals = [known for known in way.repeats if known.signs & taken]
    depth = 1 + max((known.depth for known in rivals), default=0)
    is_rival = way.is_rival or depth > MOST_APART or not all(known.is_apart for known in rivals)
    return _Way((*repeats, _Open(taken, depth, is_apart=False)), is_rival)


def _after(repeats: Iterable[_Open], taken: frozenset[int]) -> tuple[_Open, ...]:
    """Return the repeats after a required character: those that cannot take it end, the others are set apart."""
    return tuple(known._replace(is_apart=True) for known in repeats if known.signs & taken)


def _is_needed(op: Any, arguments: Any) -> bool:
    """Return whether an operation takes a character in any case."""
    if op in REPEATS or op is ops.POSSESSIVE_REPEAT:
        return bool(arguments[0])
    if op is ops.ATOMIC_GROUP:
        return any(_is_needed(*part) for part in arguments)
    return op not in {ops.GROUPREF, ops.GROUPREF_EXISTS}
