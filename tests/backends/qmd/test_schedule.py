import pytest

from memd.backends.qmd.schedule import (
    REST,
    ScheduleSettings,
    TaskHistory,
    began,
    clean_at,
    embed_at,
    ended,
    hurried_at,
    noticed,
    update_at,
)
from tests.bounds import shipped

PACE = ScheduleSettings(interval_s=300, debounce_s=15, embed_s=3600)


@pytest.mark.parametrize(
    ("past", "pace", "at"),
    [
        (TaskHistory(), PACE, 0.0),  # at the start
        (TaskHistory(unseen=90), PACE, 0.0),
        (TaskHistory(ended=100), PACE, 400),
        (TaskHistory(ended=100, unseen=120), PACE, 135),
        (TaskHistory(ended=100, unseen=395), PACE, 400),
        (TaskHistory(ended=100), ScheduleSettings(0, 15, 0), None),  # without a timer
        (TaskHistory(ended=100, unseen=120), ScheduleSettings(0, 15, 0), 135),
        (TaskHistory(ended=100, failures=1, passing=True), PACE, 100.5),  # a lock: three tries
        (TaskHistory(ended=100, failures=2, passing=True), PACE, 101),
        (TaskHistory(ended=100, failures=3, passing=True), PACE, 400),
        (TaskHistory(ended=100, failures=1), PACE, 400),
        (TaskHistory(ended=100, failures=1, unseen=101), ScheduleSettings(0, 15, 0), 160),
    ],
)
def test_an_update_is_due(past: TaskHistory, pace: ScheduleSettings, at: float | None) -> None:
    """At the start, after a while, after changes, and again after a failure that may pass."""
    assert update_at(past, pace) == at


def test_many_changes_are_taken_in_together() -> None:
    """The first one counts, so that changes that never cease are no reason to wait for ever."""
    past = TaskHistory(ended=100.0)
    for now in (110.0, 115.0, 120.0):
        past = noticed(past, now)
    assert update_at(past, PACE) == 125


def test_a_change_during_an_update_waits_for_the_next() -> None:
    """What came after the beginning may not have been seen."""
    past = noticed(began(noticed(TaskHistory(), 1.0)), 6.0)
    past = ended(past, 7.0, took_s=2.0, failed=False)
    assert update_at(past, PACE) == 21


def test_a_success_forgets_failures() -> None:
    """And a failure is counted."""
    past = ended(TaskHistory(), 1.0, took_s=1.0, failed=True, passing=True)
    past = ended(past, 2.0, took_s=1.0, failed=True)
    assert (past.failures, past.passing) == (2, False)
    assert ended(past, 3.0, took_s=1.0, failed=False).failures == 0


@pytest.mark.parametrize(
    ("past", "at"),
    [
        (TaskHistory(), 0.0),
        (TaskHistory(ended=100, took_s=0.25), 101.0),
        (TaskHistory(ended=100, took_s=60), 340),
        (TaskHistory(ended=0, took_s=1), REST),
        (TaskHistory(ended=100, failures=1, passing=True), 100.5),
        (TaskHistory(ended=100, failures=1), 400),
    ],
)
def test_searches_do_not_keep_qmd_busy(past: TaskHistory, at: float) -> None:
    """They begin an update only when the last one is over for four times as long as it took, and none that fails."""
    assert hurried_at(past, PACE) == at


@pytest.mark.parametrize(
    ("past", "pace", "at"),
    [
        (TaskHistory(), PACE, 0.0),
        (TaskHistory(ended=10.0), PACE, 3610),
        (TaskHistory(ended=10.0), ScheduleSettings(300, 15, 0), None),  # once
        (TaskHistory(ended=10.0, failures=1), PACE, 70),
        (TaskHistory(ended=10.0, failures=2), PACE, 130),
        (TaskHistory(ended=10.0, failures=6), PACE, 10 + 1920),
        (TaskHistory(ended=10.0, failures=7), PACE, 3610),
        (TaskHistory(ended=10.0, failures=500), ScheduleSettings(300, 15, 0), 3610),
    ],
)
def test_embedding_is_due(past: TaskHistory, pace: ScheduleSettings, at: float | None) -> None:
    """At once, then every so often; after a failure in a minute, and twice as long each time, up to an hour."""
    assert embed_at(past, pace) == at


def test_one_success_ends_the_backoff() -> None:
    """The next failure begins with a minute again."""
    past = ended(ended(TaskHistory(), 1.0, failed=True), 2.0, failed=True)
    assert past.failures == 2
    assert ended(past, 3.0, failed=False) == TaskHistory(ended=3.0)


@pytest.mark.parametrize(
    ("past", "searched", "at"),
    [
        (TaskHistory(), 100, None),
        (TaskHistory(unseen=100), 100, 130),  # when nobody has searched for a while
        (TaskHistory(unseen=100), 3000, 3030),
        (TaskHistory(unseen=100), 3690, 3700),  # or at the latest
        (TaskHistory(unseen=100, ended=90), 100, 690),  # and not again at once
        (TaskHistory(unseen=100, ended=90, failures=1), 100, 3690),
        (TaskHistory(unseen=100, ended=90, failures=3), 100, 10890),
    ],
)
def test_a_cleaning_is_due(past: TaskHistory, searched: float, at: float | None) -> None:
    """While something is gone: in a quiet moment, now and then, and seldom where it fails."""
    assert clean_at(past, PACE, searched) == at


def test_what_goes_during_a_cleaning_is_for_the_next() -> None:
    """One that went well leaves nothing to do but that; one that failed leaves everything."""
    under_way = began(noticed(TaskHistory(), 100))
    assert ended(under_way, 110, failed=False) == TaskHistory(ended=110)
    assert ended(noticed(under_way, 105), 110, failed=False) == TaskHistory(unseen=105, ended=110)
    assert noticed(ended(under_way, 110, failed=True), 110) == TaskHistory(unseen=110, ended=110, failures=1)


def test_failures_are_tried_again_in_seconds_first_and_in_an_hour_at_last() -> None:
    """A lock, at once and twice as late each time; else in a minute; an embedding and a cleaning in an hour at most."""
    tries, first_s = (
        shipped("memd.backends.qmd.schedule.BOOT_TRIES"),
        shipped("memd.backends.qmd.schedule.FIRST_RETRY_S"),
    )
    retry_s, longest_s = (
        shipped("memd.backends.qmd.schedule.RETRY_S"),
        shipped("memd.backends.qmd.schedule.LONGEST_RETRY_S"),
    )
    seldom = ScheduleSettings(interval_s=1e9, debounce_s=15, embed_s=0)
    waits = [
        update_at(TaskHistory(ended=0.0, failures=failures, passing=True), seldom)
        for failures in range(1, tries + 2)
    ]
    assert waits == [*[first_s * 2**n for n in range(tries - 1)], 10 * retry_s, 10 * retry_s]
    often = ScheduleSettings(interval_s=1, debounce_s=1, embed_s=0)
    assert update_at(TaskHistory(ended=0.0, failures=1), often) == retry_s
    embedded_at = [
        embed_at(TaskHistory(ended=0.0, failures=failures), seldom) for failures in (1, 2, 6, 7, 900)
    ]
    assert embedded_at == [retry_s, 2 * retry_s, 32 * retry_s, longest_s, longest_s]
    cleaned_at = clean_at(TaskHistory(unseen=0.0, ended=0.0, failures=1), seldom, searched=0.0)
    assert cleaned_at == longest_s
