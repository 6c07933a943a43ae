"""How long the last searches took."""

import pytest

from memd.runtime.timing import TimeTrace, spent
from memd.server.latencies import LAST, WORTH_S, Latencies
from tests.clock import Clock


def took(seconds: float) -> TimeTrace:
    """The account of a search that took so long."""
    clock = Clock()
    with TimeTrace(clock) as account, spent("ranking"):
        clock.run(seconds)
    return account


def test_nothing_is_told_before_the_first() -> None:
    """There is no middle of nothing."""
    assert Latencies().report() is None


def test_the_middle_and_the_slowest_are_told() -> None:
    """With the moment of the latter, and where its time went."""
    latencies = Latencies()
    for number, seconds in enumerate((0.004, 0.006, 1.9, 0.005, 0.007)):
        latencies.note(took(seconds), 100.0 + number)
    report = latencies.report()
    assert report is not None
    assert (report.count, report.median_ms) == (5, 6)
    assert (report.slowest.at, report.slowest.took_ms) == (102, 1900)
    assert report.slowest.parts == {"ranking": 1900}


def test_a_quick_one_has_no_parts_worth_telling() -> None:
    """Nobody asks where six milliseconds went."""
    latencies = Latencies()
    latencies.note(took(0.006), 100.0)
    report = latencies.report()
    assert report is not None
    assert (report.slowest.took_ms, report.slowest.parts) == (6, {})


def test_what_was_slow_long_ago_is_forgotten() -> None:
    """The last hundred count."""
    latencies = Latencies()
    latencies.note(took(30.0), 1.0)
    for number in range(LAST):
        latencies.note(took(0.01), 2.0 + number)
    report = latencies.report()
    assert report is not None
    assert (report.count, report.slowest.took_ms) == (LAST, 10)


@pytest.mark.parametrize(("took_s", "is_worth"), [(WORTH_S, True), (WORTH_S - 0.001, False)])
def test_where_time_went_is_told_from_a_length_on(took_s: float, is_worth: bool) -> None:
    """What is shorter is nobody's question."""
    clock, last = Clock(), Latencies()
    clock.now = 0.0
    with TimeTrace(clock) as account, spent("keywords"):
        clock.run(took_s)
    last.note(account, 1.0)
    report = last.report()
    assert report is not None
    assert bool(report.slowest.parts) is is_worth
