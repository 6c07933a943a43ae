"""How hits are shown: cut to fit an agent's context window, or dropped, and with where they stand. Pure."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from memd.model import FoundHit
from memd.text.tokens import safe_end

STUMP_CHARS = 40  # less than this of a snippet tells nothing


def clamp(hits: Iterable[FoundHit], most: int, footer: Callable[[FoundHit], str]) -> list[FoundHit]:
    """The first hits that have room, the last of them cut where it must be.

    A hit that would be a stump is dropped, with all that come after it: a larger number of hits only appends. One that has no
    room because its footer is long keeps no other out.

    Args:
        hits: The best first.
        most: Characters (code points) of all snippets with their footers.
        footer: What stands below the snippet of a hit.

    Returns:
        Hits whose last line is that of what is left of their snippet.
    """
    kept: list[FoundHit] = []
    for hit in hits:
        room = most - len(footer(hit))
        if len(hit.snippet) > room and room < STUMP_CHARS <= most:
            continue
        if len(hit.snippet) > room:
            short = _cut(hit, room)
            return kept if short is None else [*kept, short]
        kept.append(hit)
        most = room - len(hit.snippet)
    return kept


def _cut(hit: FoundHit, room: int) -> FoundHit | None:
    """The hit with as much of its snippet as has room, at the end of a line where that keeps half; None for a stump."""
    if room < STUMP_CHARS:
        return None
    text = hit.snippet[: safe_end(hit.snippet, room)]
    line_end = text.rfind("\n")
    if 2 * line_end >= len(text) and line_end >= STUMP_CHARS:
        text = text[:line_end]
    text = text.rstrip()
    if len(text) < STUMP_CHARS:
        return None
    end_line = _end_line(hit, text)
    return msgspec.structs.replace(hit, snippet=text, end_line=end_line)


def _end_line(hit: FoundHit, text: str) -> int:
    """The line that a shorter snippet ends on; of a transcript, whose turns may have many lines, the hit's own."""
    if hit.source == "sessions":
        return hit.end_line
    return min(hit.end_line, hit.start_line + text.count("\n"))


Mode = Literal["auto", "on", "off"]


def is_cited(mode: Mode, *, direct: bool) -> bool:
    """Whether hits say where they stand: auto means in direct chats, and for the owner."""
    return mode == "on" or (mode == "auto" and direct)


def citation(hit: FoundHit) -> str:
    """`path#L3-L9`, or `path#L3` for one line."""
    lines = f"L{hit.start_line}" if hit.start_line == hit.end_line else f"L{hit.start_line}-L{hit.end_line}"
    return f"{hit.path}#{lines}"


def footer(hit: FoundHit) -> str:
    """What the tools put below a snippet."""
    return f"\n\nSource: {citation(hit)}"
