"""Passes that took long."""

import pytest
from structlog.testing import capture_logs

from memd.indexing import slow_passes
from memd.indexing.run_pass import PassResult
from memd.indexing.slow_passes import allowed_s, log_slow_pass
from memd.runtime.slow_log import SlowLog
from memd.runtime.timing import TimeTrace, spent
from tests.clock import Clock


def took(clock: Clock, seconds: float) -> TimeTrace:
    """The account of a pass over two files that took so long."""
    with TimeTrace(clock) as account:
        with spent("reading", "memory/a.md"):
            clock.run(seconds * 0.75)
        with spent("reading", "memory/b.md"):
            clock.run(seconds * 0.25)
    return account


@pytest.mark.parametrize(
    ("done", "usual_s", "slow_s"),
    [
        (PassResult(), 0.01, 2.1),
        (PassResult(changed=1, looked=1, read=1), 0.05, 4.5),
        (PassResult(looked=10_000), 1.0, 15.0),
        (PassResult(changed=5000, looked=5000, read=5000), 25.0, 600.0),
    ],
)
def test_what_is_slow_depends_on_the_files(done: PassResult, usual_s: float, slow_s: float) -> None:
    """A first pass over thousands may take its time; one edit may not."""
    assert usual_s < allowed_s(done) < slow_s


def test_a_pass_is_slow_beyond_what_is_allowed() -> None:
    """So much for itself, for each file that is read, and for each that is only looked at."""
    clock, done = Clock(), PassResult(1, 0, looked=20, read=3)
    allowed = slow_passes.PASS_S + 3 * slow_passes.READ_S + 20 * slow_passes.LOOKED_S
    for took_s, lines in ((allowed - 0.01, 0), (allowed + 0.01, 1)):
        with capture_logs() as logs:
            log_slow_pass(SlowLog(), "main", took(clock, took_s), done, None, clock.now)
        assert len(logs) == lines


def test_a_slow_pass_is_told_with_its_slowest_file() -> None:
    """By its name, and where the time went; a quick one is not."""
    clock = Clock()
    slow_log = SlowLog()
    with capture_logs() as logs:
        log_slow_pass(slow_log, "main", took(clock, 0.5), PassResult(1, 0, looked=2, read=2), None, clock.now)
        log_slow_pass(slow_log, "main", took(clock, 8.0), PassResult(1, 1, looked=2, read=2), None, clock.now)
    assert logs == [
        {
            "event": "sync.was_slow",
            "log_level": "warning",
            "agent": "main",
            "took_ms": 8000,
            "parts": {"reading": 8000},
            "looked": 2,
            "read": 2,
            "changed": 1,
            "removed": 1,
            "slowest": "memory/a.md",
            "slowest_ms": 6000,
            "failed": None,
            "left_out": 0,
        }
    ]


def test_many_slow_passes_are_one_line_in_ten_seconds() -> None:
    """The next one says how many there were; a failure is told with its reason."""
    clock = Clock()
    slow_log = SlowLog()
    with capture_logs() as logs:
        for _ in range(5):
            log_slow_pass(slow_log, "main", took(clock, 3.0), PassResult(), "the disk is full", clock.now)
    assert [(one["left_out"], one["failed"]) for one in logs] == [
        (0, "the disk is full"),
        (3, "the disk is full"),
    ]
