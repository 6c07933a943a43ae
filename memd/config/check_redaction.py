"""What is wrong with the rules of redaction that a user adds. Pure."""

import re
import warnings
from collections.abc import Iterator

from memd.config.settings import AgentSettings, Redact
from memd.config.toml_lines import Key
from memd.errors import FatalError

_NAME = re.compile(r"[a-z0-9-]{1,40}")
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


def require_faultless(settings: Redact) -> None:
    """Do nothing, unless a rule that a user adds cannot be used.

    Raises:
        BadRule: it says which, and why.
    """
    found = list(faults(settings))
    if found:
        raise BadRule("; ".join(f"redact.extra[{at}].{key} {fault}" for at, key, fault in found))


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
        # Python's parser is private: another version may have none of this name or form. A daemon must start there
        # all the same, and no rule may be left out, for then secrets would stay. So what is plainly bounded is taken.
        return None if is_plainly_bounded(pattern) else _UNREAD


_EMPTY = "matches the empty text, and so everywhere: let it ask for a sign at least"
_UNREAD = "cannot be looked through by memd under this version of Python, and so may have one repeat without a fixed count and repeat no group; write it more simply, or run memd under an earlier Python"


def _structural_fault(pattern: str) -> str | None:
    """What follows from the parsed structure of a pattern.

    Raises:
        ImportError, AttributeError, LookupError, TypeError, ValueError: Python's parser is not what it was.
    """
    from memd.config import regex_safety  # noqa: PLC0415 - of what is private to Python

    structure = regex_safety.parsed(pattern)
    if structure.getwidth()[0] == 0:
        return _EMPTY
    if regex_safety.is_ambiguous(structure):
        return "repeats what can itself be read in several ways, like (a+)+ or (ab|a|b)+, which can take for ever; bound it, let its parts begin differently, or make the inner repeat possessive (a++)"
    if regex_safety.has_rival_repeats(structure):
        return "has repeats without a bound that compete for the same signs, like a*a*b, which can take very long; join them, bound one, or make the first possessive (a*+)"
    return None


# An escape, a set, what follows an opening bracket, a repeat with what qualifies it.
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?|(?P<group>\))?(?P<repeat>[*+?]|\{(?P<least>\d*)(?P<up>,?)(?P<most>\d*)\})[?+]?",
    re.DOTALL,
)


def is_plainly_bounded(pattern: str) -> bool:
    """Whether a pattern, read sign by sign, has so few repeats that none can compete; in doubt, no.

    With one repeat whose count varies, and no group that is repeated, the ways to try grow with the length alone.
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
