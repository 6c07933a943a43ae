"""How long requests take, and which of them are logged."""

import asyncio

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from memd.runtime.profiling import TimeTrace, timed_part
from memd.server.request_times import LAST, WORTH_S, RequestTimes, SearchTimes, What
from tests.bounds import shipped
from tests.clock import Clock


class Bench:
    """Requests that take as long as the test wants."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.slow = RequestTimes(clock=self.clock, now=lambda: 5.0)

    def ask(self, seconds: float, *, what: What = "search", agent: str | None = "main") -> list[EventDict]:
        """Answer one; what was logged of it."""
        with capture_logs() as logs, self.slow.timed(what, question_chars=7) as timed:
            timed.agent = agent
            with timed_part("question's vector"):
                self.clock.run(seconds)
            timed.facts["hits"] = 3
        return logs


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_slow_search_is_told_once_with_where_its_time_went(bench: Bench) -> None:
    """In one line, with counts."""
    assert bench.ask(1.9) == [
        {
            "event": "search.was_slow",
            "log_level": "warning",
            "agent": "main",
            "took_ms": 1900,
            "parts": {"question's vector": 1900},
            "ended": "answered",
            "question_chars": 7,
            "hits": 3,
            "left_out": 0,
        }
    ]


def test_a_quick_one_is_not(bench: Bench) -> None:
    """Some time is no wonder."""
    slow_s = shipped("memd.server.request_times.SLOW_S")
    for seconds, lines in ((0.0, 0), (0.3, 0), (slow_s, 0), (slow_s + 0.01, 1)):
        assert len(bench.ask(seconds)) == lines


def test_a_flood_is_one_line_in_ten_seconds(bench: Bench) -> None:
    """The next line says how many there were in between; other agents and other requests have lines of their own."""
    told = [one for _ in range(20) for one in bench.ask(1.5)]
    assert [one["left_out"] for one in told] == [0, 6, 6]
    assert bench.ask(1.5, agent="work")[0]["left_out"] == 0
    assert bench.ask(1.5, what="get")[0]["event"] == "get.was_slow"
    bench.clock.run(60)
    assert [one["left_out"] for one in bench.ask(2.0)] == [5]


def test_a_clock_that_is_set_makes_nothing_slow() -> None:
    """Neither forwards nor backwards: what is told is measured by one that nobody sets."""
    hours = iter((0.0, 7200.0, -7200.0))
    clock = Clock()
    slow = RequestTimes(clock=clock, now=lambda: next(hours))
    with capture_logs() as logs:
        for _ in range(3):
            with slow.timed("search") as timed:
                timed.agent = "main"
                clock.run(0.2)
    assert logs == []
    report = slow.searches("main")
    assert report is not None
    assert report.slowest.took_ms == 200


def test_a_slow_failure_is_told_as_one(bench: Bench) -> None:
    """A disk that does not answer takes its time, too."""

    def fail() -> None:
        with bench.slow.timed("get"), timed_part("disk"):
            bench.clock.run(5)
            raise TimeoutError

    with capture_logs() as logs, pytest.raises(TimeoutError):
        fail()
    assert [(one["event"], one["ended"], one["parts"]) for one in logs] == [
        ("get.was_slow", "failed", {"disk": 5000})
    ]
    assert bench.slow.searches("main") is None


async def test_a_search_that_somebody_gave_up_is_told(bench: Bench) -> None:
    """Nobody waited for its end, which may be just because it was slow."""

    async def hang() -> None:
        with bench.slow.timed("search") as timed, timed_part("qmd"):
            timed.agent = "main"
            await asyncio.Event().wait()

    with capture_logs() as logs:
        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        bench.clock.run(10)
        task.cancel()
        await asyncio.wait([task])
    assert [(one["ended"], one["took_ms"]) for one in logs] == [("given_up", 10_000)]
    assert bench.slow.searches("main") is None


def test_status_hears_of_searches_alone(bench: Bench) -> None:
    """Each agent's by themselves."""
    bench.ask(0.2)
    bench.ask(0.4)
    bench.ask(3.0, what="get")
    bench.ask(7.0, agent="work")
    bench.ask(9.0, agent=None)
    main, work = bench.slow.searches("main"), bench.slow.searches("work")
    assert main is not None
    assert work is not None
    assert (main.count, main.median_ms, main.slowest.took_ms) == (2, 300, 400)
    assert (work.count, work.slowest.at) == (1, 5.0)


def took(seconds: float) -> TimeTrace:
    """The account of a search that took so long."""
    clock = Clock()
    with TimeTrace(clock) as account, timed_part("ranking"):
        clock.run(seconds)
    return account


def test_nothing_is_told_before_the_first() -> None:
    """There is no middle of nothing."""
    assert SearchTimes().report() is None


def test_the_middle_and_the_slowest_are_told() -> None:
    """With the moment of the latter, and where its time went."""
    times = SearchTimes()
    for number, seconds in enumerate((0.004, 0.006, 1.9, 0.005, 0.007)):
        times.add(took(seconds), 100.0 + number)
    report = times.report()
    assert report is not None
    assert (report.count, report.median_ms) == (5, 6)
    assert report.last_ms == [4, 6, 1900, 5, 7]
    assert (report.slowest.at, report.slowest.took_ms) == (102, 1900)
    assert report.slowest.parts == {"ranking": 1900}


def test_a_quick_one_has_no_parts_worth_telling() -> None:
    """Nobody asks where six milliseconds went."""
    times = SearchTimes()
    times.add(took(0.006), 100.0)
    report = times.report()
    assert report is not None
    assert (report.slowest.took_ms, report.slowest.parts) == (6, {})


def test_what_was_slow_long_ago_is_forgotten() -> None:
    """The last hundred count."""
    times = SearchTimes()
    times.add(took(30.0), 1.0)
    for number in range(LAST):
        times.add(took(0.01), 2.0 + number)
    report = times.report()
    assert report is not None
    assert (report.count, report.slowest.took_ms) == (LAST, 10)
    assert report.last_ms == [10] * LAST


@pytest.mark.parametrize(("took_s", "is_worth"), [(WORTH_S, True), (WORTH_S - 0.001, False)])
def test_where_time_went_is_told_from_a_length_on(took_s: float, is_worth: bool) -> None:
    """What is shorter is nobody's question."""
    clock, last = Clock(), SearchTimes()
    clock.now = 0.0
    with TimeTrace(clock) as account, timed_part("keywords"):
        clock.run(took_s)
    last.add(account, 1.0)
    report = last.report()
    assert report is not None
    assert bool(report.slowest.parts) is is_worth
