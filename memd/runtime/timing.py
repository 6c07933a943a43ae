"""Periodic timers, debouncing, backoff after failures, and time zones. The caller passes the time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Clock = Callable[[], float]
"""A clock that is injected: seconds, monotonic or Unix time, as its parameter says."""

ClockNs = Callable[[], int]
"""Likewise, in nanoseconds."""

LONGEST_WAIT_S = 30.0
"""Between two attempts of what shows in an answer while it fails: a pass, a rebuild, the start of an agent."""

# Event loops count in milliseconds, so a timer that rounds may fire just before its tick. The rest of the
# wait would round to zero, and be repeated until the tick has passed.
_RESOLUTION_S = 0.001


def until_next_tick_s(now: float, period_s: float) -> float:
    """Return the seconds until the next multiple of a period: more than a millisecond, and at most about one period.

    Timers with the same period wake at the same moment, so the processor can sleep in between.

    Args:
        now: Seconds of a clock that all timers share.
        period_s: The period in seconds; more than a few milliseconds.
    """
    left_s = period_s - now % period_s
    return left_s if left_s > _RESOLUTION_S else left_s + period_s


class Debouncer:
    """Computes when work is due after a burst of marks.

    Args:
        quiet_s: The work is due so many seconds after the last mark,
        cap_s: and at the latest so many seconds after the first one.
    """

    def __init__(self, *, quiet_s: float, cap_s: float) -> None:
        self._quiet_s = quiet_s
        self._cap_s = cap_s
        self._first: float | None = None
        self._last = 0.0

    def mark(self, now: float) -> None:
        """Add a mark at this time, in seconds of a monotonic clock."""
        if self._first is None:
            self._first = now
        self._last = now

    def due_at(self) -> float | None:
        """Return when the work is due; None if there was no mark since clear()."""
        return None if self._first is None else min(self._last + self._quiet_s, self._first + self._cap_s)

    def clear(self) -> None:
        """Forget the marks: the work begins, and later marks are another burst."""
        self._first = None


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


def wall_s(unix_ns: int, zone: tzinfo) -> int:
    """Convert Unix time in ns to seconds since 1970 of local clock time, clamped to the range of the calendar."""
    try:
        at = datetime.fromtimestamp(unix_ns / 1e9, zone).replace(tzinfo=None)
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


def delay_s(failures: int, rng: Random, *, first_s: float = 1.0, cap_s: float = 60.0) -> float:
    """Return the wait of an exponential backoff, in seconds.

    The full wait doubles with each failure up to the cap; a random part of its upper half is used, so that
    clients do not retry at the same time ("equal jitter", M. Brooker, Exponential Backoff And Jitter, AWS
    Architecture Blog, 2015).

    Args:
        failures: Consecutive failures, 1 or more.
        rng: Source of the jitter.
        first_s: The full wait after the first failure.
        cap_s: The longest full wait.
    """
    full = min(cap_s, first_s * 2.0 ** min(failures - 1, 30))
    return full / 2 + rng.uniform(0, full / 2)


class Backoff:
    """Counts consecutive failures of one piece of work."""

    def __init__(self, rng: Random, *, first_s: float = 1.0, cap_s: float = 60.0) -> None:
        """See delay_s for the parameters."""
        self._rng = rng
        self._first_s = first_s
        self._cap_s = cap_s
        self.failures = 0  # consecutive failures

    def failed(self) -> float:
        """Count one more failure; return the seconds to wait before the next attempt."""
        self.failures += 1
        return delay_s(self.failures, self._rng, first_s=self._first_s, cap_s=self._cap_s)

    def reset(self) -> None:
        """Reset the count, because the work has succeeded."""
        self.failures = 0
