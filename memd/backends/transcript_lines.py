"""Turns of a transcript as a reader gets them, a stretch of lines at a time."""

from collections.abc import Sequence
from datetime import tzinfo
from itertools import groupby

from memd.backends.backend import Excerpt
from memd.model import Turn
from memd.store.sessions import TurnSpan
from memd.text.tokens import safe_end
from memd.text.turn_header import spoken

# A line of a note, or what is said on one line of a transcript, may be too long for one excerpt. Where to read on is then
# the number of characters that were read, times this, plus the line: no file has so many lines, and a double holds the
# product for all that one line may hold.
PARTS_FROM = 1_000_000_000
_BETWEEN = "\n\n"


def line_of(start_line: int) -> int:
    """The line at which a reader wants to begin."""
    return start_line % PARTS_FROM


def excerpt(found: TurnSpan, start_line: int, max_chars: int, zone: tzinfo | None) -> Excerpt:
    """What is said on some lines, as much as fits; who reads on from next_line to the end gets everything once.

    Args:
        found: Turns from line_of(start_line) on.
        start_line: As it was asked for: a line, or a place within one.
        max_chars: Of the text.
        zone: That times are told in; None: UTC.
    """
    blocks = [list(turns) for _, turns in groupby(found.turns, lambda turn: turn.start_line)]
    texts = [_BETWEEN.join(_told(turn, zone) for turn in block) for block in blocks]
    if not blocks:
        return Excerpt("", start_line, 0, None)
    begin, line = divmod(start_line, PARTS_FROM)
    if begin and line != blocks[0][0].start_line:
        return Excerpt("", start_line, 0, None)
    if begin or len(texts[0]) > max_chars:
        return _part(texts[0], begin, blocks[0], _after(blocks, 1, found), max_chars)
    count, room = 0, max_chars
    for text in texts:
        if count and len(text) > room:
            break
        room -= len(text) + len(_BETWEEN)
        count += 1
    return Excerpt(
        _BETWEEN.join(texts[:count]),
        blocks[0][0].start_line,
        max(map(_end_line, blocks[:count])),
        _after(blocks, count, found),
    )


def _part(text: str, begin: int, block: Sequence[Turn], next_line: int | None, max_chars: int) -> Excerpt:
    """A part of what is said on one line; next_line is where the next line begins on which something is."""
    line = block[0].start_line
    if begin >= len(text):
        return Excerpt("", line, 0, next_line)
    end = part_end(text, begin, max_chars)
    after = next_line if end == len(text) else PARTS_FROM * end + line
    return Excerpt(text[begin:end], line, _end_line(block), after)


def _told(turn: Turn, zone: tzinfo | None) -> str:
    return spoken(turn.role, turn.at, turn.text, zone)


def _end_line(turns: Sequence[Turn]) -> int:
    return max(turn.end_line for turn in turns)


def _after(blocks: Sequence[Sequence[Turn]], count: int, found: TurnSpan) -> int | None:
    """Where the first line begins that is not given."""
    return blocks[count][0].start_line if count < len(blocks) else found.next_line


def part_end(text: str, begin: int, most: int) -> int:
    """Where a part of a text ends that is too long for one: at the end of a line, or at a space, if there is one near."""
    end = min(len(text), begin + most)
    if end == len(text):
        return end
    half = begin + most // 2
    near = max(text.rfind("\n", half, end), 0) or text.rfind(" ", half, end)
    end = near + 1 if near > 0 else safe_end(text, end)
    return end if end > begin else begin + most
