"""Reads excerpts of indexed files: of notes from the disk, of transcripts from the index."""

import asyncio
import time
from collections.abc import Sequence
from datetime import tzinfo
from itertools import groupby

from memd.backends.backend import MAX_CHARS, Excerpt
from memd.domain_types import Turn
from memd.errors import TransientError
from memd.indexing.rules import IndexingRules
from memd.runtime.profiling import timed_part
from memd.runtime.threads import Threads
from memd.sources import notes
from memd.store.sessions import TurnSpan
from memd.text.turn_header import with_header
from memd_client.context.truncate import safe_end

READ_S = 5.0  # longer than this, the disk counts as not answering

# A line of a note, or the turns on one line of a transcript, may be too long for one excerpt. Then next_line
# encodes where to read on: characters already read * PARTS_FROM + line. No file has so many lines, and a
# double holds the product exactly for any line.
PARTS_FROM = 1_000_000_000
_BETWEEN = "\n\n"


class FilesBlocked(TransientError):
    """An indexed file cannot be read now, though it may exist."""


class FilesRefused(FilesBlocked):
    """Likewise, until somebody changes a setting or a right."""

    needs_person = True


def blocked(path: str, reason: str, *, needs_person: bool) -> FilesBlocked:
    """Return the error for a file of a memory that does not answer.

    Args:
        path: Its path, as requested.
        reason: Why the memory does not answer.
        needs_person: As in TransientError.
    """
    if needs_person:
        return FilesRefused(f"{path} cannot be read: {reason}.")
    return FilesBlocked(f"{path} cannot be read just now: {reason}.")


async def read_note(path: str, rules: IndexingRules, threads: Threads) -> Sequence[str]:
    """Return all lines of a note as it is on disk now, redacted.

    Args:
        path: Its path in the index.
        rules: The agent's indexing rules.
        threads: Where the read runs.

    Raises:
        FilesBlocked: the disk does not answer within READ_S.
        SourceError: there is no such note, or it may not be read.
    """
    try:
        with timed_part("disk"):
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
    """Return the line of a start_line that may encode a position within it."""
    return start_line % PARTS_FROM


def note_excerpt(text: Sequence[str], start_line: int, lines: int, max_chars: int = MAX_CHARS) -> Excerpt:
    """Return as many of the wanted lines as fit, or a part of a single line that is too long.

    A caller that follows next_line to the end gets all text exactly once.

    Args:
        text: All lines of the file.
        start_line: The first line wanted, from 1, or a next_line of an earlier excerpt.
        lines: The most lines to return.
        max_chars: The most characters to return.
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
    """Return the turns from start_line on, as many as fit; following next_line yields all text exactly once.

    Args:
        found: The turns from line_of(start_line) on.
        start_line: A line, or a next_line of an earlier excerpt.
        max_chars: The most characters to return.
        zone: The time zone of the times in turn headers; None: UTC.
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
    """Return a part of the turns on one line; next_line is the next line that has a turn."""
    line = block[0].start_line
    if begin >= len(text):
        return Excerpt("", line, 0, next_line)
    end = part_end(text, begin, max_chars)
    after = next_line if end == len(text) else PARTS_FROM * end + line
    return Excerpt(text[begin:end], line, _end_line(block), after)


def _as_text(turn: Turn, zone: tzinfo | None) -> str:
    return with_header(turn.role, turn.at, turn.text, zone)


def _end_line(turns: Sequence[Turn]) -> int:
    return max(turn.end_line for turn in turns)


def _after(blocks: Sequence[Sequence[Turn]], count: int, found: TurnSpan) -> int | None:
    """Return the line of the first turn that was left out; None: there is none."""
    return blocks[count][0].start_line if count < len(blocks) else found.next_line


def part_end(text: str, begin: int, most: int) -> int:
    """Return where to cut a text that is too long: after a line end or space in its second half, if there is one."""
    end = min(len(text), begin + most)
    if end == len(text):
        return end
    half = begin + most // 2
    near = max(text.rfind("\n", half, end), 0) or text.rfind(" ", half, end)
    end = near + 1 if near > 0 else safe_end(text, end)
    return end if end > begin else begin + most
