import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from memd.runtime.local_time import LocalZone


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
