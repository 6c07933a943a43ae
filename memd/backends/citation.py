"""Where a hit stands, as an agent cites it."""

from typing import Literal

from memd.model import FoundHit

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
