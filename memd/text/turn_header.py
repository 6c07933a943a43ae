"""Formats turns of a transcript for people: time, speaker, text."""

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
    """The header of a turn: ``2026-03-02 09:02 User: ``.

    Args:
        role: Of the speaker.
        at: Unix time; None, or a time outside of the calendar, is left out.
        zone: The time zone of the header; None: UTC.
    """
    when = _when(at, zone)
    return f"{when:%Y-%m-%d %H:%M} {role.title()}: " if when else f"{role.title()}: "


def spoken(role: str, at: float | None, text: str, zone: tzinfo | None) -> str:
    """A turn with its header."""
    return header(role, at, zone) + set_off(text)


def set_off(text: str) -> str:
    """A text in which each line that looks like the header of a turn is quoted, such as in a pasted mail or log.

    So each header in the text of a transcript is one that memd wrote.
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


def local_time(at: float | None, zone: tzinfo | None) -> datetime | None:
    """What clocks on the wall showed at a moment, to the second; None where day_of has no day."""
    when = _when(at, zone)
    return when.replace(tzinfo=None, microsecond=0, fold=0) if when else None


def _when(at: float | None, zone: tzinfo | None) -> datetime | None:
    if at is None:
        return None
    try:
        when = datetime.fromtimestamp(at, UTC).astimezone(zone or UTC)
    except (OverflowError, ValueError, OSError):
        return None
    # Years of fewer digits are written in as many ways as there are systems; nobody said anything then.
    return when if when.year >= 1000 else None
