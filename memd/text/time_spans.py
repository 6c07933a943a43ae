"""Intervals of the calendar, as clocks on the wall show them. Pure.

They stand apart from the phrases that say them: a program that only shows times need not compile what reads them.
"""

from datetime import date, datetime, time, timedelta

import msgspec

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of a clock on the wall
_SECOND = timedelta(seconds=1)


class TimeSpan(msgspec.Struct, frozen=True, order=True):
    """From one second to another, both included, as clocks on the wall show them."""

    first: datetime  # without a zone
    last: datetime

    @property
    def length(self) -> timedelta:
        """From the beginning of the first second to the end of the last."""
        return self.last - self.first + _SECOND

    @property
    def only_day(self) -> date | None:
        """The day that it is; None where it is no whole day, or several."""
        day = self.first.date()
        return day if self == whole_days(day, day) else None

    @property
    def as_seconds(self) -> tuple[int, int]:
        """Both ends in seconds from 1970, as clocks on the wall count them."""
        return _seconds(self.first), _seconds(self.last)

    def has(self, other: "TimeSpan") -> bool:
        """Whether it contains another one."""
        return self.first <= other.first and other.last <= self.last


def _seconds(at: datetime) -> int:
    return int((at - EPOCH).total_seconds())


def whole_days(first: date, last: date) -> TimeSpan:
    """From the beginning of one day to the end of another."""
    return TimeSpan(datetime.combine(first, time()), datetime.combine(last, time(23, 59, 59)))
