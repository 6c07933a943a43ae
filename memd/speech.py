"""What was said, as people read it: when, who, what."""

import re
from datetime import UTC, date, datetime, tzinfo

CONTINUED = "… "  # stands where a part of a turn begins in its middle

_HEADER = re.compile(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d )?(?:User|Assistant): ")


def header(role: str, at: float | None, zone: tzinfo | None) -> str:
    """What stands before a turn: ``2026-03-02 09:02 User: ``.

    Args:
        role: Of the speaker.
        at: Unix time; None, or one that no calendar has, is not told.
        zone: That the time is told in; None: UTC.
    """
    when = _when(at, zone)
    return f"{when:%Y-%m-%d %H:%M} {role.title()}: " if when else f"{role.title()}: "


def spoken(role: str, at: float | None, text: str, zone: tzinfo | None) -> str:
    """A turn with its header; its other lines are as they are."""
    return header(role, at, zone) + text.strip()


def header_in(line: str) -> str:
    """The header that a line begins with; empty where it begins with none."""
    found = _HEADER.match(line)
    return found[0] if found else ""


def day_of(at: float | None, zone: tzinfo | None) -> date | None:
    """The day of a moment, as header has it."""
    when = _when(at, zone)
    return when.date() if when else None


def _when(at: float | None, zone: tzinfo | None) -> datetime | None:
    if at is None:
        return None
    try:
        when = datetime.fromtimestamp(at, UTC).astimezone(zone or UTC)
    except (OverflowError, ValueError, OSError):
        return None
    # Years of fewer digits are written in as many ways as there are systems; nobody said anything then.
    return when if when.year >= 1000 else None
