"""Time zones: finds one by its name, checks that of this process, and converts Unix time to local clock time."""

import re
import time
from collections.abc import MutableMapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# A zone as POSIX writes it: an abbreviation and the hours to UTC, such as CET-1CEST or <+03>-3.
_POSIX_ZONE = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)[+-]?\d")


def zone_of(name: str) -> tzinfo:
    """Return the time zone of a name such as Europe/Berlin; for an empty name that of this machine.

    Raises:
        ValueError: this machine knows no such zone.
    """
    if not name:
        return LocalZone()
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError) as error:
        raise ValueError(
            f"{name!r} is no time zone that this machine knows, such as Europe/Berlin"
        ) from error


def replace_unusable_zone(environ: MutableMapping[str, str]) -> str | None:
    """Set TZ to UTC if this process cannot use the zone that TZ names; return why it cannot, None: it can.

    The system takes UTC for a name that it does not know, and 24 hours for a larger offset, which `datetime` refuses. Call it before
    other threads run: it changes the zone of the whole process.

    Args:
        environ: The environment of this process.
    """
    given = environ.get("TZ", "")
    if not _is_known(given):
        reason = f"TZ is {given!r}, which is no time zone that this machine knows"
    elif not _is_within_a_day():
        reason = f"TZ is {given!r}, which is 24 hours or more from UTC"
    else:
        return None
    environ["TZ"] = "UTC0"
    time.tzset()
    return reason


def _is_known(name: str) -> bool:
    """Return whether the system knows a value of TZ, or may know it: a rule or the path of a file."""
    zone = name.removeprefix(":")
    if zone in {"", "UTC", "GMT"} or _POSIX_ZONE.match(zone):
        return True
    if zone.startswith("/"):
        return Path(zone).is_file()
    try:
        zone_of(zone)
    except ValueError:
        return False
    return True


def _is_within_a_day() -> bool:
    """Return whether `datetime` can compute with the local zone in each month of this year."""
    try:
        for month in range(1, 13):
            datetime(datetime.now(UTC).year, month, 1).astimezone()
    except ValueError:
        return False
    return True


def wall_now(zone: tzinfo) -> datetime:
    """Return the local clock time now, without a zone."""
    # The zone of this machine needs no conversion, which takes thirty times as long.
    return datetime.now(None if isinstance(zone, LocalZone) else zone).replace(tzinfo=None)


def wall_s(unix_ns: int, zone: tzinfo) -> int:
    """Convert Unix time in ns to seconds since 1970 of local clock time, clamped to the range of the calendar."""
    try:
        # Without a zone it is that of this machine, in a fifth of the time.
        given = None if isinstance(zone, LocalZone) else zone
        at = datetime.fromtimestamp(unix_ns / 1e9, given).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        at = datetime.min if unix_ns < 0 else datetime.max  # noqa: DTZ901 - as clocks on the wall show it
    return int((at - datetime(1970, 1, 1)).total_seconds())  # noqa: DTZ001 - likewise


class LocalZone(tzinfo):
    """The local time zone, with summer time and the rules of each year.

    The zone that `datetime.astimezone()` gives is a fixed distance from UTC, which is wrong for half of the year.
    """

    def fromutc(self, when: datetime) -> datetime:
        """Convert a moment in UTC to this zone."""
        local = when.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=None)
        # In the hour that occurs twice in autumn, fold is 1 if the first occurrence has another UTC offset.
        return wall.replace(tzinfo=self, fold=int(wall.astimezone().utcoffset() != local.utcoffset()))

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        """Return the zone's offset from UTC."""
        return None if when is None else when.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, _: datetime | None) -> timedelta | None:
        """Return None: the share of summer time is unknown."""
        return None

    def tzname(self, when: datetime | None) -> str | None:
        """Return the abbreviation of the zone, such as CET."""
        return None if when is None else when.replace(tzinfo=None).astimezone().tzname()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalZone)

    def __hash__(self) -> int:
        return hash(LocalZone)
