"""A line of the daemon's log, for a person. Pure."""

from typing import Any

import msgspec

from memd.ctl.output.humanize import visible
from memd.ctl.output.screen import Look, Paint

_LOOKS: dict[str, Look] = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red"}
_APART = frozenset({"timestamp", "level", "event", "exception"})


def readable(line: str, paint: Paint) -> str:
    """Time, level, event and values of a line that is JSON; any other line as it is."""
    event = _find_event(line)
    if event is None:
        return visible(line)
    level = visible(str(event.get("level", "")))
    values = " ".join(f"{name}={_value(value)}" for name, value in event.items() if name not in _APART)
    head = " ".join(
        (
            paint(visible(_time(event.get("timestamp"))), "dim"),
            paint(level.ljust(7), _LOOKS[level]) if level in _LOOKS else level.ljust(7),
            paint(visible(str(event["event"])), "bold"),
        )
    )
    trace = "".join(f"\n  {visible(part)}" for part in str(event.get("exception", "")).splitlines())
    return f"{head} {visible(values)}".rstrip() + trace


def _find_event(line: str) -> dict[str, Any] | None:
    try:
        event = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return event if "event" in event else None


def _time(timestamp: object) -> str:
    """An ISO 8601 time to the second, in UTC as it was written."""
    return str(timestamp or "").partition(".")[0].replace("T", " ").removesuffix("Z")


def _value(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()
