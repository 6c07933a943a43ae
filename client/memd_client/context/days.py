"""Which daily notes belong to a day, as the user's clock has it."""

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta, tzinfo

DIRECTORY = "memory"

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(-[^/\\]+)?\.md", re.ASCII)


def local_day(now: datetime, zone: tzinfo) -> date:
    """The day that it is where the user lives.

    Args:
        now: A moment; it must know its own time zone.
        zone: The time zone of the user.

    Raises:
        ValueError: the moment has no time zone, so nobody can say which day it is elsewhere.
    """
    if now.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(timezone.utc)")
    return now.astimezone(zone).date()


def note_name(day: date) -> str:
    """The file name of a day's note: ``2026-02-09.md``."""
    return f"{day.isoformat()}.md"


def note_path(day: date) -> str:
    """The path of a day's note in the workspace: ``memory/2026-02-09.md``."""
    return f"{DIRECTORY}/{note_name(day)}"


def recent_notes(names: Iterable[str], today: date, *, days: int = 2, slugged: int = 4) -> list[str]:
    """The notes of the last days, the newest day first.

    Args:
        names: The file names in memory/.
        today: The day to begin with.
        days: How many days, today included.
        slugged: How many notes like ``2026-02-09-standup.md`` a day may have beside the plain one; the last by
            name, which for ``-0930`` and the like are the latest.
    """
    by_day: dict[str, list[str]] = {}
    for name in names:
        # A name is shown in the prompt: one with a line break in it could pretend to be something else.
        if name.isprintable() and (dated := _DATED.fullmatch(name)):
            by_day.setdefault(dated[1], []).append(name)
    chosen: list[str] = []
    for back in range(min(days, today.toordinal())):
        day = today - timedelta(days=back)
        of_day = by_day.get(day.isoformat(), [])
        plain = note_name(day)
        chosen += [plain] * (plain in of_day)
        chosen += sorted((name for name in of_day if name != plain), reverse=True)[: max(0, slugged)]
    return chosen
