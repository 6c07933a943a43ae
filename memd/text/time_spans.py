"""Intervals of local clock time. Pure.

They are separate from the phrases that name them, so that a program that only shows times need not compile
the phrases.
"""

from datetime import date, datetime, time, timedelta

import msgspec

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of a clock on the wall
_SECOND = timedelta(seconds=1)


class TimeSpan(msgspec.Struct, frozen=True, order=True):
    """An interval from one second to another, both included, in local clock time."""

    first: datetime  # without a zone
    last: datetime

    @property
    def length(self) -> timedelta:
        """The duration from the beginning of the first second to the end of the last."""
        return self.last - self.first + _SECOND

    @property
    def only_day(self) -> date | None:
        """The day that the span covers exactly; None if it is not one whole day."""
        day = self.first.date()
        return day if self == whole_days(day, day) else None

    @property
    def as_seconds(self) -> tuple[int, int]:
        """Both ends in seconds since 1970 of local clock time."""
        return _seconds(self.first), _seconds(self.last)

    def has(self, other: "TimeSpan") -> bool:
        """Return whether the span contains another one."""
        return self.first <= other.first and other.last <= self.last


def _seconds(at: datetime) -> int:
    return int((at - EPOCH).total_seconds())


def whole_days(first: date, last: date) -> TimeSpan:
    """Return the span from the beginning of one day to the end of another."""
    return TimeSpan(datetime.combine(first, time()), datetime.combine(last, time(23, 59, 59)))
