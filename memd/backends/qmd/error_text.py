"""What a program said last, fit to be repeated: bounded, printable, and without anything of a question."""

import re
from collections.abc import Iterable

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
