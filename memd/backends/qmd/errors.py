"""What can go wrong with qmd, and what of its own words may be repeated."""

import re
from collections.abc import Iterable

from memd.errors import TransientError


class QmdFailed(TransientError):
    """qmd did not do what it was asked for; the message is for people and holds no memory."""


class QmdUnavailable(QmdFailed):
    """qmd cannot be used here just now: it is not found, does not start, or refuses to prepare its collections.

    Args:
        reason: What is wrong, and how to mend it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QmdTimedOut(QmdFailed):
    """It was killed because it did not end in time."""


class UnknownOption(QmdFailed):
    """This qmd does not know an option or a command that it was given."""


class CollectionMissing(QmdFailed):
    """This qmd does not know a collection that it was asked for."""


class AlreadyExists(QmdFailed):
    """A collection of that name, or of that directory and pattern, is there."""


class QmdBroken(QmdFailed):
    """Its database is not what it should be."""


class Locked(QmdFailed):
    """Its database is busy; the same may go well in a moment."""


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
_TROUBLE = re.compile(
    r"error|fail|cannot|can't|unable|not found|no such|denied|locked|busy|missing|invalid", re.IGNORECASE
)
# Where in its own code a program stumbled tells a user nothing.
_PLACE = re.compile(r"at |file://|throw |\^+$|node\.js v\d", re.IGNORECASE)
_MOST_LINES = 200
_MOST_CHARS = 200


def last_words(said: str, unsaid: Iterable[str] = ()) -> str:
    """The line that tells best what went wrong: the last that speaks of trouble, or else the last one.

    Args:
        said: What the program wrote to stderr.
        unsaid: Words that are memory. A line that holds one is passed over: programs quote what they were asked.

    Returns:
        At most 200 characters, without control characters; empty where nothing can be repeated.
    """
    secret = [word.lower() for word in unsaid]
    lines = [
        line
        for line in map(plain, said.split("\n")[-_MOST_LINES:])
        if line and not _PLACE.match(line) and not any(word in line.lower() for word in secret)
    ]
    telling = [line for line in lines if _TROUBLE.search(line)] or lines
    return telling[-1][:_MOST_CHARS] if telling else ""


def plain(line: str) -> str:
    """A line as it would look on paper: without colours, cursor movements and other control characters."""
    return " ".join(_CONTROL.sub(" ", _ESCAPE.sub("", line)).split())
