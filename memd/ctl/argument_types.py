"""Converts the values of memd-ctl's options; each function raises argparse.ArgumentTypeError for an invalid text."""

import argparse
import math
from typing import get_args

_MAX_RESULTS = 50
_LONGEST_TIMEOUT_S = 9_000_000_000  # the limit of timers on all platforms


def non_empty(text: str) -> str:
    """Return the text, which must not be empty."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def presets(text: str) -> tuple[str, ...]:
    """Return the presets that a comma-separated list names."""
    import difflib  # noqa: PLC0415 - a hook waits for other commands

    from memd.config.settings import PresetName  # noqa: PLC0415 - likewise

    known = get_args(PresetName)
    named = tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}{hint}")
    if not named:
        raise argparse.ArgumentTypeError(f"names no agent; there are {', '.join(known)}")
    return named


def key_value(text: str) -> tuple[str, str]:
    """Return (key, value) of `key=value`."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise argparse.ArgumentTypeError(f"{text} is not like status=done")
    return key, value


def seconds(text: str) -> float:
    """Return a timeout in seconds."""
    number = _number(text)
    if not 0 < number <= _LONGEST_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"{text} is no time that could be waited; give seconds, such as 30")
    return number


def share(text: str) -> float:
    """Return a number from 0 to 1."""
    number = _number(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def max_results(text: str) -> int:
    """Return a number of hits."""
    return _whole(text, 1, _MAX_RESULTS)


def line_number(text: str) -> int:
    """Return the number of a line, from 1."""
    # The line from which a long turn continues is a number far above the lines of a file.
    return _whole(text, 1, 2**53)


def line_count(text: str) -> int:
    """Return a number of lines, from 1."""
    return _whole(text, 1, 2**31)


def port(text: str) -> int:
    """Return a TCP port; 0: any that is free."""
    return _whole(text, 0, 65_535)


def count(text: str) -> int:
    """Return a number from 0."""
    return _whole(text, 0, 2**31)


def _whole(text: str, least: int, most: int) -> int:
    # int() refuses thousands of digits with an error of its own.
    if text.isascii() and text.isdecimal() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {most}")
