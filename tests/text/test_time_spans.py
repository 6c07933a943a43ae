from datetime import date, datetime, timedelta

from memd.text.time_spans import TimeSpan, whole_days

at = datetime.fromisoformat
FIRST, LAST = date(2026, 2, 9), date(2026, 2, 11)


def test_whole_days_go_from_the_first_second_to_the_last() -> None:
    """Both are included, as clocks on the wall count them."""
    days = whole_days(FIRST, LAST)
    assert days == TimeSpan(at("2026-02-09T00:00:00"), at("2026-02-11T23:59:59"))
    assert days.length == timedelta(days=3)
    assert days.as_seconds == (1_770_595_200, 1_770_854_399)


def test_only_a_whole_day_is_a_day() -> None:
    """Neither several, nor a part of one."""
    assert whole_days(FIRST, FIRST).only_day == FIRST
    assert whole_days(FIRST, LAST).only_day is None
    assert TimeSpan(at("2026-02-09T00:00:00"), at("2026-02-09T12:00:00")).only_day is None


def test_an_interval_has_those_within_it() -> None:
    """Itself, too; none that goes beyond it by a second."""
    days, day = whole_days(FIRST, LAST), whole_days(FIRST, FIRST)
    assert days.has(day)
    assert days.has(days)
    assert not day.has(days)
    assert not day.has(TimeSpan(day.first, day.last + timedelta(seconds=1)))
