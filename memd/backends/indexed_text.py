"""What an agent reads of an indexed file: a note from the disk, turns from the index, some lines at a time."""

import asyncio
import time
from collections.abc import Sequence
from datetime import tzinfo
from itertools import groupby

from memd.backends.backend import MAX_CHARS, Excerpt
from memd.domain_types import Turn
from memd.errors import TransientError
from memd.indexing.rules import IndexingRules
from memd.runtime.profiling import spent
from memd.runtime.threads import Threads
from memd.sources import notes
from memd.store.sessions import TurnSpan
from memd.text.tokens import safe_end
from memd.text.turn_header import spoken

READ_S = 5.0  # a file that has not been read by then is on a disk that does not answer

# A line of a note, or what is said on one line of a transcript, may be too long for one excerpt. Where to read on is then
# the number of characters that were read, times this, plus the line: no file has so many lines, and a double holds the
# product for all that one line may hold.
PARTS_FROM = 1_000_000_000
_BETWEEN = "\n\n"


class FilesBlocked(TransientError):
    """A file that is indexed, and may be there, cannot be read for now."""


async def read_note(path: str, rules: IndexingRules, threads: Threads) -> Sequence[str]:
    """All lines of a note as it is on the disk now, without what is secret.

    Args:
        path: Its name in the index.
        rules: Of its agent.
        threads: To read on.

    Raises:
        FilesBlocked: the disk does not answer.
        SourceError: there is no such note, or it may not be read.
    """
    try:
        with spent("disk"):
            async with asyncio.timeout(READ_S):
                read = await threads.run(
                    notes.read_note,
                    path,
                    rules.roots,
                    max_bytes=rules.max_bytes,
                    now_ns=time.time_ns(),
                    redactor=rules.notes_redactor,
                )
    except TimeoutError as timeout:
        raise FilesBlocked(
            f"the file was not read within {READ_S:g} s: is a network mount down?"
        ) from timeout
    return read.document.lines


def line_of(start_line: int) -> int:
    """The line at which a reader wants to begin."""
    return start_line % PARTS_FROM


def note_excerpt(text: Sequence[str], start_line: int, lines: int, max_chars: int = MAX_CHARS) -> Excerpt:
    """Some lines, as many as were asked for and fit; of one line that alone is too long a part.

    Who reads on from next_line to the end gets everything once.

    Args:
        text: All lines of a file.
        start_line: The first that is wanted, from 1; or a place within one, as next_line gave it.
        lines: How many, at most.
        max_chars: Of the text.
    """
    begin, first = divmod(start_line, PARTS_FROM)
    wanted = text[max(first - 1, 0) : max(first - 1, 0) + lines] if first else []
    if not wanted:
        return Excerpt("", start_line, 0, None)
    if begin or len(wanted[0]) > max_chars:
        line = wanted[0]
        end = part_end(line, min(begin, len(line)), max_chars)
        following = first + 1 if first < len(text) else None
        after = following if end == len(line) else PARTS_FROM * end + first
        return Excerpt(line[begin:end], first, first if begin < len(line) else 0, after)
    chosen: list[str] = []
    room = max_chars
    for line in wanted:
        if chosen and len(line) > room:
            break
        chosen.append(line)
        room -= len(line) + 1
    end_line = first - 1 + len(chosen)
    return Excerpt("\n".join(chosen), first, end_line, end_line + 1 if end_line < len(text) else None)


def turns_excerpt(found: TurnSpan, start_line: int, max_chars: int, zone: tzinfo | None) -> Excerpt:
    """What is said on some lines, as much as fits; who reads on from next_line to the end gets everything once.

    Args:
        found: Turns from line_of(start_line) on.
        start_line: As it was asked for: a line, or a place within one.
        max_chars: Of the text.
        zone: That times are told in; None: UTC.
    """
    blocks = [list(turns) for _, turns in groupby(found.turns, lambda turn: turn.start_line)]
    texts = [_BETWEEN.join(_as_text(turn, zone) for turn in block) for block in blocks]
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


def _as_text(turn: Turn, zone: tzinfo | None) -> str:
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
