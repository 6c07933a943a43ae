"""What was said, as people read it: when, who, what."""

import re
from datetime import UTC, date, datetime, tzinfo

CONTINUED = "… "  # stands where a part of a turn begins in its middle

_HEADER = re.compile(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d )?(?:User|Assistant): ")
# A line that a reader may take for one, after whatever ends a line somewhere.
_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LIKE_HEADER = re.compile(
    rf"(?<=[{_ENDS}])(?=[^\S{_ENDS}]*(?:\d{{4}}-\d\d-\d\d \d\d:\d\d )?[^\S{_ENDS}]*(?:user|assistant)[^\S{_ENDS}]*[:：])",
    re.IGNORECASE,
)
_QUOTED = "> "


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
    """A turn with its header."""
    return header(role, at, zone) + set_off(text)


def set_off(text: str) -> str:
    """What was said, with each line quoted that looks like the header of a turn: a pasted mail or log says who spoke, too.

    So of all lines of a transcript as it is told, those that are headers are memd's own.
    """
    text = text.strip()
    return _LIKE_HEADER.sub(_QUOTED, text) if ":" in text or "：" in text else text


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
