"""Time zones, and the time that clocks on the wall show."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memd.runtime.time_zones import LocalZone, replace_unusable_zone, wall_now, wall_s, zone_of


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


@pytest.fixture
def local_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sets TZ; the zone of this process is what it was afterwards."""
    monkeypatch.setenv("TZ", "UTC0")
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


def _replaced(given: str, local_zone: pytest.MonkeyPatch) -> str | None:
    local_zone.setenv("TZ", given)
    time.tzset()
    return replace_unusable_zone(os.environ)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("XXX-25", "24 hours or more from UTC"),
        ("XXX25", "24 hours or more from UTC"),
        ("XXX-24", "24 hours or more from UTC"),
        (":XXX-167:59", "24 hours or more from UTC"),
        ("AAA0BBB-25,M3.5.0,M10.5.0", "24 hours or more from UTC"),
        ("Europe/Berlni", "no time zone that this machine knows"),
        ("Middle", "no time zone that this machine knows"),
        ("../etc/passwd", "no time zone that this machine knows"),
        ("/nowhere/zone", "no time zone that this machine knows"),
        ("+02:00", "no time zone that this machine knows"),
        ("时区", "no time zone that this machine knows"),
    ],
)
def test_a_zone_that_cannot_be_used_gives_way_to_utc(
    given: str, reason: str, local_zone: pytest.MonkeyPatch
) -> None:
    """With the reason; times can be told then."""
    told = _replaced(given, local_zone)
    assert told is not None
    assert told.startswith(f"TZ is {given!r}, which is ")
    assert reason in told
    noon = datetime(2026, 7, 15, 12, tzinfo=UTC)
    assert f"{noon.astimezone(LocalZone()):%Y-%m-%d %H:%M}" == "2026-07-15 12:00"
    assert wall_s(int(noon.timestamp()) * 10**9, zone_of("")) == noon.timestamp()
    assert replace_unusable_zone(os.environ) is None


@pytest.mark.parametrize(
    "given",
    ["", ":", "UTC", "UTC0", "GMT", "CET-1CEST,M3.5.0,M10.5.0/3", "<+0545>-5:45", "XXX-23:59", "XXX23"],
)
def test_a_zone_that_can_be_used_stays(given: str, local_zone: pytest.MonkeyPatch) -> None:
    """As a rule, and as a name that needs no file."""
    assert _replaced(given, local_zone) is None
    assert os.environ["TZ"] == given


def test_a_zone_by_name_or_file_stays(tmp_path: Path, local_zone: pytest.MonkeyPatch) -> None:
    """What the system makes of a file is not looked at."""
    (tmp_path / "zone").write_bytes(b"")
    for given in ("Europe/Berlin", ":Europe/Berlin", str(tmp_path / "zone")):
        assert _replaced(given, local_zone) is None
        assert os.environ["TZ"] == given


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


@pytest.mark.parametrize("name", ["", "Asia/Tokyo"])
def test_it_is_now_what_clocks_on_the_wall_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the zone of this machine, and in another one."""
    monkeypatch.setenv("TZ", "JST-9" if not name else "UTC0")
    time.tzset()
    try:
        told = wall_now(zone_of(name))
    finally:
        monkeypatch.undo()
        time.tzset()
    in_tokyo = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=9)
    assert told.tzinfo is None
    assert abs(in_tokyo - told) < timedelta(hours=1)
