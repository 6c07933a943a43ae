"""Validates redaction rules that a user adds. Pure."""

import re
import warnings
from collections.abc import Iterator

from memd.config.settings import AgentSettings, Redact
from memd.config.toml_lines import Key
from memd.errors import FatalError

_NAME = re.compile(r"[a-z0-9-]{1,40}")
_LONGEST = 2000  # characters of a pattern


class BadRule(FatalError):
    """A user's rule is invalid; the message names it and the reason."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=78)


def disagreements(settings: AgentSettings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Validate the redaction rules of an agent; see ``faults``.

    Yields:
        The keys concerned, relative to the agent, and a sentence about them.
    """
    for at, key, fault in faults(settings.redact):
        yield (("redact", "extra", at, key), ("redact", "extra")), f"the {key} of a rule {fault}"


def require_faultless(settings: Redact) -> None:
    """Raise if any rule that a user adds is invalid.

    Raises:
        BadRule: names the rule and the reason.
    """
    found = list(faults(settings))
    if found:
        raise BadRule("; ".join(f"redact.extra[{at}].{key} {fault}" for at, key, fault in found))


def faults(settings: Redact) -> Iterator[tuple[int, str, str]]:
    """Validate the rules that a user adds.

    Yields:
        The index of the rule, from 0; its key; and what is wrong with it, as the rest of a sentence.
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
                f'occurs twice: "{rule.name}"; join the patterns with |, or take another name',
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
            # A pattern that a future version of Python will read differently is rejected now.
            warnings.simplefilter("error")
            compiled = re.compile(pattern)
    except (re.error, OverflowError, Warning) as error:
        return f"is no regular expression of Python: {error}"
    except RecursionError:
        return "is nested too deeply"
    if compiled.search(""):
        return _EMPTY
    try:
        return _structural_fault(pattern)
    except RecursionError:
        return "is nested too deeply"
    except (ImportError, AttributeError, LookupError, TypeError, ValueError):
        # Python's parser is private, and another version may differ. The daemon must start there all the same, and no rule may be
        # dropped, since secrets would then be stored. So patterns that are plainly bounded are accepted.
        return None if is_plainly_bounded(pattern) else _UNREAD


_EMPTY = "matches the empty text, and so everywhere: let it ask for a sign at least"
_UNREAD = "cannot be looked through by memd under this version of Python, and so may have one repeat without a fixed count and repeat no group; write it more simply, or run memd under an earlier Python"


def _structural_fault(pattern: str) -> str | None:
    """Return the fault found in the parsed structure of a pattern; None if there is none.

    Raises:
        ImportError, AttributeError, LookupError, TypeError, ValueError: Python's private parser has changed.
    """
    from memd.config import regex_safety  # noqa: PLC0415 - of what is private to Python

    structure = regex_safety.parsed(pattern)
    if structure.getwidth()[0] == 0:
        return _EMPTY
    if regex_safety.is_ambiguous(structure):
        return "repeats what can itself be read in several ways, like (a+)+ or (ab|a|b)+, which can take unlimited time; bound it, let its parts begin differently, or make the inner repeat possessive (a++)"
    if regex_safety.has_rival_repeats(structure):
        return "has repeats without a bound that compete for the same signs, like a*a*b, which can take very long; join them, bound one, or make the first possessive (a*+)"
    return None


# An escape, a set, the characters after an opening bracket, or a repeat with its modifier.
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?|(?P<group>\))?(?P<repeat>[*+?]|\{(?P<least>\d*)(?P<up>,?)(?P<most>\d*)\})[?+]?",
    re.DOTALL,
)


def is_plainly_bounded(pattern: str) -> bool:
    """Return whether a pattern has so few repeats that none can compete; False in doubt.

    With one repeat of variable count, and no repeated group, the number of ways to match grows linearly with the text.
    """
    varying = 0
    for piece in _PIECE.finditer(pattern):
        if piece["repeat"] is None:
            continue
        if piece["group"] is not None:
            return False
        is_fixed = piece["least"] is not None and piece["up"] == ""
        varying += not is_fixed
    return varying <= 1
