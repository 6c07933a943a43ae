"""A transcript as a page of Markdown, line by line with where each line comes from. Pure."""

from collections.abc import Sequence
from datetime import tzinfo

import msgspec

from memd.model import Turn
from memd.text.turn_header import spoken

VERSION = 1  # of how a page is made: with another one, pages are made anew


class TranscriptPage(msgspec.Struct, frozen=True):
    """Text with the line of its source that each of its lines stands for."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...] | None = None  # None: lines are those of the source

    def number(self, line: int) -> int:
        """The line of the source that a line of the page stands for."""
        return line if self.numbers is None else self.numbers[line - 1]

    def text(self) -> str:
        """What is written to the disk."""
        return "\n".join(self.lines) + "\n"


def page(session: str, turns: Sequence[Turn], zone: tzinfo | None) -> TranscriptPage:
    """The page of a session.

    Args:
        session: Its name.
        turns: All of them, redacted.
        zone: That times are told in; None: UTC.
    """
    first = turns[0].start_line if turns else 1
    lines, numbers = [f"# Session {session}", ""], [first, first]
    for turn in turns:
        told = spoken(turn.role, turn.at, turn.text, zone).split("\n")
        lines += [*told, ""]
        numbers += [turn.start_line] * (len(told) + 1)
    if not turns:
        lines, numbers = [*lines, "(empty)"], [*numbers, first]
    return TranscriptPage(tuple(lines), tuple(numbers))
