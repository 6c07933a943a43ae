"""Time zones, and the time that clocks on the wall show."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from memd.runtime.time_zones import LocalZone, wall_s, zone_of


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("moment", "local", "name"),
    [
        (datetime(2026, 1, 15, 23, 30, tzinfo=UTC), "2026-01-16 00:30", "CET"),
        (datetime(2026, 7, 15, 22, 30, tzinfo=UTC), "2026-07-16 00:30", "CEST"),
        (datetime(2026, 3, 29, 0, 59, tzinfo=UTC), "2026-03-29 01:59", "CET"),
        (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), "2026-03-29 03:00", "CEST"),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "2026-10-25 02:30", "CEST"),
        (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "2026-10-25 02:30", "CET"),
    ],
)
def test_each_moment_is_told_as_clocks_on_the_wall_had_it(moment: datetime, local: str, name: str) -> None:
    """In summer and in winter, whatever it is now, and where the clock is set."""
    told = moment.astimezone(LocalZone())
    assert f"{told:%Y-%m-%d %H:%M}" == local
    assert told.tzname() == name
    assert told.utcoffset() is not None
    assert told.astimezone(UTC) == moment


def test_two_of_them_are_one() -> None:
    """A value like any other."""
    assert LocalZone() == LocalZone()
    assert len({LocalZone(), LocalZone()}) == 1
    zone = LocalZone()
    assert (zone.utcoffset(None), zone.dst(None), zone.tzname(None)) == (None, None, None)


def test_a_zone_has_a_name() -> None:
    """An empty one is that of the machine; others must be known."""
    assert zone_of("") == LocalZone()
    assert str(zone_of("Europe/Berlin")) == "Europe/Berlin"
    for name in ("Middle/Earth", "../etc/passwd", "/etc/passwd", "\0", "Europe"):
        with pytest.raises(ValueError, match="is no time zone that this machine knows"):
            zone_of(name)


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-03-29T00:59:59+00:00", "01:59:59"),
        ("2026-03-29T01:00:00+00:00", "03:00:00"),
        ("2026-10-25T01:00:00+00:00", "02:00:00"),
    ],
)
def test_seconds_are_those_of_the_wall(moment: str, shown: str) -> None:
    """Over the changes to summer time and back."""
    at = datetime.fromisoformat(moment)
    seconds = wall_s(int(at.timestamp()) * 10**9, zone_of("Europe/Berlin"))
    assert f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}" == f"{moment[:10]} {shown}"


def test_a_moment_beyond_all_calendars_is_the_nearest() -> None:
    """A stamp of a file may say anything."""
    assert wall_s(-(2**63) * 10, zone_of("UTC")) < 0 < wall_s(2**63 * 100, zone_of("UTC"))
