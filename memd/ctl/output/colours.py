"""Colours, for a terminal that wants them. Pure."""

from collections.abc import Callable, Mapping
from typing import Literal

Look = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
Paint = Callable[[str, Look], str]

_CODES: dict[Look, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


def plain(text: str, _look: Look) -> str:
    """The text as it is."""
    return text


def ansi(text: str, look: Look) -> str:
    """The text between the codes that set a look and take it back."""
    return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if text else text


def choose(environ: Mapping[str, str], *, terminal: bool, wanted: bool) -> Paint:
    """How to paint on a stream.

    Args:
        environ: NO_COLOR (https://no-color.org) and TERM are looked at.
        terminal: Whether the stream is one.
        wanted: False where the command line says --no-color.
    """
    if terminal and wanted and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb":
        return ansi
    return plain
