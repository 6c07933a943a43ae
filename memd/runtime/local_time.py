"""The time zone of this machine, with its rules for each moment."""

from datetime import UTC, datetime, timedelta, tzinfo


class LocalZone(tzinfo):
    """The local time zone, with summer time and the rules of each year.

    The zone that `datetime.astimezone()` gives is a fixed distance from UTC, which is wrong for half of the year.
    """

    def fromutc(self, when: datetime) -> datetime:
        """Convert a moment in UTC to this zone."""
        local = when.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=None)
        # Of the hour that comes twice in autumn, it is the second one if the first has another distance from UTC.
        return wall.replace(tzinfo=self, fold=int(wall.astimezone().utcoffset() != local.utcoffset()))

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        """How far the zone is from UTC."""
        return None if when is None else when.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, _: datetime | None) -> timedelta | None:
        """None: the share of summer time is not known."""
        return None

    def tzname(self, when: datetime | None) -> str | None:
        """The abbreviation of the zone, such as CET."""
        return None if when is None else when.replace(tzinfo=None).astimezone().tzname()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalZone)

    def __hash__(self) -> int:
        return hash(LocalZone)
