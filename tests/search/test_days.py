from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.search.days import days_named
from memd.search.query import parse
from tests.bounds import shipped

WEDNESDAY = date(2026, 2, 11)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did i eat today", [11]),
        ("who called yesterday?", [10]),
        ("the day before yesterday's firing", [9]),
        ("three days ago", [8]),
        ("2 days ago or yesterday", [9, 10]),
        ("one week ago", [4]),
        ("last wednesday", [4]),
        ("last tuesday", [10]),
        ("last thursday's rehearsal", [5]),
        ("two sundays ago", [1]),
        ("one monday ago", [9]),
        ("昨天的会", [10]),
        ("前天买的", [9]),
        ("大前天", [8]),
        ("今天和昨晚", [11, 10]),
        ("三天前", [8]),
        ("3 天以前", [8]),
        ("一周前", [4]),
        ("两个星期前", [-3]),
        ("上周日量的", [8]),
        ("上星期三", [4]),
        ("上个礼拜天", [8]),
        ("上上周五", [-1]),
        ("这周一", [9]),
        ("本周日", [15]),
        ("yesterday and yesterday", [10]),
        ("on tuesdays", []),
        ("the train on friday", []),
        ("last week", []),
        ("lasting mondays", []),
        ("99999 days ago", []),
        ("九百天前", []),
        ("二十天前", []),
        ("我三天前买的", [8]),
        ("twenty-two days ago", []),
    ],
)
def test_a_day_is_told_from_the_day_of_the_question(text: str, expected: list[int]) -> None:
    """On a Wednesday. English weekdays are the latest before it, Chinese ones those of a week from Monday on."""
    days = [WEDNESDAY + timedelta(days=day - 11) for day in expected]
    assert list(days_named(text, WEDNESDAY)) == days


def test_a_question_asks_for_the_date_of_a_day_that_it_names() -> None:
    """Besides its words, by which notes are found that say "yesterday" themselves; what is embedded stays as it is."""
    asked = parse("Who called Yesterday?", WEDNESDAY)
    assert asked.phrases == ("2026 02 10",)
    assert "yesterday" in asked.words
    assert asked.embed_text == "Who called Yesterday?"
    assert parse("Who called Yesterday?").phrases == ()
    assert parse("昨天", WEDNESDAY).phrases == ("2026 02 10",)


def test_days_out_of_the_range_of_dates_are_not_named() -> None:
    """Whatever day a client says that it is."""
    for today in (date.min, date.max):
        assert days_named("yesterday, last friday, 一周前, 本周日", today) == ()


def test_a_distance_has_an_end() -> None:
    """No question of a memory goes further back."""
    most = shipped("memd.search.days._MOST_BACK")
    for today in (WEDNESDAY, date(1000, 1, 1)):
        assert days_named(f"{most} weeks ago", today) == (today - timedelta(weeks=most),)
        assert days_named(f"{most + 1} days ago", today) == ()


@given(
    st.text("0123456789 天日周前上这大个星期礼拜一二agoweks daythremn", max_size=40),
    st.dates(date(1900, 1, 1)),
)
def test_any_text_on_any_day_names_days(text: str, today: date) -> None:
    """Each once, and none out of the range of dates."""
    days = days_named(text, today)
    assert len(set(days)) == len(days)
    assert all(abs(day - today) <= timedelta(days=30_000) for day in days)
