"""The time zone of this machine, as it is on each day of the year."""

from datetime import UTC, datetime, timedelta, tzinfo


class LocalZone(tzinfo):
    """What the system says of each moment: summer time or not, and whatever the law was in its year.

    The zone that Python gives for a moment is a fixed distance from UTC, and wrong for half of the others.
    """

    def fromutc(self, when: datetime) -> datetime:
        """A moment in UTC as this zone has it."""
        local = when.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=None)
        # Of the hour that comes twice in autumn, it is the second one if the first has another distance from UTC.
        return wall.replace(tzinfo=self, fold=int(wall.astimezone().utcoffset() != local.utcoffset()))

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        """How far the zone is from UTC."""
        return None if when is None else when.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, _: datetime | None) -> timedelta | None:
        """How much of that is summer time: it is not told apart."""
        return None

    def tzname(self, when: datetime | None) -> str | None:
        """What people call it."""
        return None if when is None else when.replace(tzinfo=None).astimezone().tzname()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalZone)

    def __hash__(self) -> int:
        return hash(LocalZone)
