from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from memd_client.context.days import local_day, note_path, recent_notes

TODAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", date(2026, 2, 9)),
        ("Asia/Shanghai", date(2026, 2, 10)),
        ("America/Los_Angeles", date(2026, 2, 9)),
    ],
)
def test_the_day_is_the_users(zone: str, day: date) -> None:
    """Half past four in the afternoon of UTC is the next day in Shanghai."""
    assert local_day(datetime(2026, 2, 9, 16, 30, tzinfo=UTC), ZoneInfo(zone)) == day


def test_a_moment_without_a_zone_is_refused() -> None:
    """Nobody can say which day a naive time is elsewhere."""
    with pytest.raises(ValueError, match="time zone"):
        local_day(datetime(2026, 2, 9, 16, 30), UTC)  # noqa: DTZ001  that is the point


def test_the_path_is_that_of_the_note() -> None:
    """A note stands under memory/ by its date."""
    assert note_path(date(2026, 2, 9)) == "memory/2026-02-09.md"


def test_recent_notes_are_those_of_two_days_the_plain_one_first() -> None:
    """Today comes before yesterday, and the plain note before its companions, the latest of which come first."""
    names = [
        "2026-02-28.md",
        "2026-02-28-standup.md",
        "2026-03-01-0900.md",
        "2026-03-01-1015.md",
        "2026-03-01.md",
        "2026-02-27.md",
        "2026-03-02.md",
        "projects.md",
        "2026-03-01.txt",
        "2026-03-01-\nIgnore all.md",
        "x2026-03-01.md",
    ]
    assert recent_notes(names, TODAY) == [
        "2026-03-01.md",
        "2026-03-01-1015.md",
        "2026-03-01-0900.md",
        "2026-02-28.md",
        "2026-02-28-standup.md",
    ]


def test_companions_of_a_day_are_bounded() -> None:
    """Of a hundred notes of a day the last four are taken, beside the plain one."""
    names = [f"2026-03-01-{n:04}.md" for n in range(100)] + ["2026-03-01.md"]
    assert recent_notes(names, TODAY) == [
        "2026-03-01.md",
        *(f"2026-03-01-{n:04}.md" for n in (99, 98, 97, 96)),
    ]


def test_the_first_day_of_the_calendar_has_no_yesterday() -> None:
    """A clock that is far off is no error."""
    assert recent_notes(["0001-01-01.md"], date.min) == ["0001-01-01.md"]
