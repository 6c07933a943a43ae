"""Formats turns of a transcript for people: time, speaker, text."""

import re
from datetime import UTC, date, datetime, tzinfo

CONTINUED = "… "  # put in front of a part that begins in the middle of a turn

_HEADER = re.compile(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d )?(?:User|Assistant): ")
# A line that looks like a header, after any character that ends a line somewhere.
_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LIKE_HEADER = re.compile(
    rf"(?<=[{_ENDS}])(?=[^\S{_ENDS}]*(?:\d{{4}}-\d\d-\d\d \d\d:\d\d )?[^\S{_ENDS}]*(?:user|assistant)[^\S{_ENDS}]*[:：])",
    re.IGNORECASE,
)
_QUOTED = "> "
# The time of a header, at the beginning of a line: its day and hour are the group.
_TIME = re.compile(r"^(\d{4}-\d\d-\d\d \d\d):\d\d (?=(?:User|Assistant): )", re.MULTILINE)


def header(role: str, at: float | None, zone: tzinfo | None) -> str:
    """Return the header of a turn: ``2026-03-02 09:02 User: ``.

    Args:
        role: The speaker's role.
        at: Unix time; None, or a time outside of the calendar, is left out.
        zone: The time zone of the header; None: UTC.
    """
    when = _when(at, zone)
    return f"{when:%Y-%m-%d %H:%M} {role.title()}: " if when else f"{role.title()}: "


def with_header(role: str, at: float | None, text: str, zone: tzinfo | None) -> str:
    """Return a turn with its header."""
    return header(role, at, zone) + quote_headers(text)


def quote_headers(text: str) -> str:
    """Return a text in which each line that looks like a turn's header, for example of a pasted mail or log, is quoted.

    So every header in the text of a transcript was written by memd.
    """
    text = text.strip()
    return _LIKE_HEADER.sub(_QUOTED, text) if ":" in text or "：" in text else text


def header_in(line: str) -> str:
    """Return the header that a line begins with; empty if there is none."""
    found = _HEADER.match(line)
    return found[0] if found else ""


def brief(text: str) -> str:
    """Return turns as they are shown: a header of the same hour as the last one with a time has only the speaker.

    Args:
        text: Turns with their headers, or a part of such a text.
    """
    hour = ""

    def kept(found: re.Match[str]) -> str:
        nonlocal hour
        before, hour = hour, found[1]
        return "" if hour == before else found[0]

    return _TIME.sub(kept, text)


def day_of(at: float | None, zone: tzinfo | None) -> date | None:
    """Return the day of a time, as in the header; None if it has none."""
    when = _when(at, zone)
    return when.date() if when else None


def local_time(at: float | None, zone: tzinfo | None) -> datetime | None:
    """Return the local time, without a zone, to the second; None if day_of returns None."""
    when = _when(at, zone)
    return when.replace(tzinfo=None, microsecond=0, fold=0) if when else None


def _when(at: float | None, zone: tzinfo | None) -> datetime | None:
    if at is None:
        return None
    try:
        when = datetime.fromtimestamp(at, UTC).astimezone(zone or UTC)
    except (OverflowError, ValueError, OSError):
        return None
    # Systems format years of fewer digits differently, and no transcript is that old.
    return when if when.year >= 1000 else None
