"""A daemon bears many clients at once; `python -m tests.benchmarks.load` does the same for longer, on more notes."""

import math
from pathlib import Path

import pytest

from tests.benchmarks.figures import Samples
from tests.benchmarks.load.drive import run
from tests.benchmarks.load.outcome import Outcome, complaints, report
from tests.benchmarks.load.plan import Plan, Seen
from tests.benchmarks.load.vitals import Vitals, slope
from tests.daemon.lag import Lag

BESIDE = {
    "reindex",
    "reindex --force",
    "reindex --dry-run",
    "status",
    "search by a client that is gone then",
    "client that went away",
    "exchange in a transcript",
}


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_hundred_clients_ask_and_write_at_once(home: Path) -> None:
    """No request fails, no edit is lost, memory does not grow, and the index is that of the files."""
    outcome = run(home, Plan(clients=100, seconds=4, chunks=1500, rate=20))
    assert complaints(outcome) == [], report(outcome)
    asked = {work: len(samples) for works in outcome.seen.took.values() for work, samples in works.items()}
    assert min(asked.values()) > 0
    assert len(outcome.seen.took) == 2
    assert outcome.seen.written
    assert outcome.seen.spoken
    assert set(outcome.seen.beside) == BESIDE
    assert sum(outcome.lag.computing) > 100
    assert max(one.worker for one in outcome.seen.vitals) > 0
    assert "resident memory" in report(outcome)


def vitals(**last: int) -> list[Vitals]:
    """A hundred looks at a daemon that is well, but for the last twenty."""
    well = {
        "resident": 100_000_000,
        "worker": 50_000_000,
        "descriptors": 500,
        "threads": 20,
        "index": 40_000_000,
    }
    return [Vitals(float(at), **(well | last if at >= 80 else well)) for at in range(100)]


def growing(name: str, by: int) -> list[Vitals]:
    """A daemon that takes so much more of something each time somebody looks."""
    well = {
        "resident": 100_000_000,
        "worker": 50_000_000,
        "descriptors": 500,
        "threads": 20,
        "index": 40_000_000,
    }
    return [Vitals(float(at), **(well | {name: well[name] + at * by})) for at in range(100)]


def outcome_with(**trouble: object) -> Outcome:
    """One that is well but for something."""
    seen = Seen(
        took={"at once": {"search": Samples([0.1]), "get": Samples(), "edit": Samples()}}, vitals=vitals()
    )
    good = {
        "seen": seen,
        "lost": [],
        "ghosts": [],
        "unlike": [],
        "leaked": [],
        "said": [],
        "store": (50_000_000, 40_000_000),
        "printed": 1000,
        "lag": Lag(),
    }
    return Outcome(**{**good, **trouble})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (outcome_with(), None),
        (outcome_with(lost=["landmark1x"]), "not found afterwards: landmark1x"),
        (outcome_with(ghosts=["landmark2x"]), "overwritten and found"),
        (outcome_with(unlike=["only one has a.md"]), "1 differences from a fresh index: only one has a.md"),
        (outcome_with(leaked=["main.sqlite-wal"]), "secrets stand in main.sqlite-wal"),
        (outcome_with(said=["Traceback"]), "the daemon said: Traceback"),
        (outcome_with(lag=Lag(longest_computing_ms=3000)), "by computing for 3000 ms"),
        (outcome_with(store=(120_000_000, 40_000_000)), "the index has 120 MB, a fresh one 40 MB"),
        (outcome_with(seen=Seen(vitals=growing("resident", 200_000))), None),
        (outcome_with(seen=Seen(vitals=growing("resident", 500_000))), "resident memory grew by 37 MB"),
        # On a busy machine the first rebuilds end late; the last ten looks say nothing of a growth, or there are none.
        (outcome_with(seen=Seen(vitals=growing("resident", 500_000), settled_s=90.0)), None),
        (outcome_with(seen=Seen(vitals=growing("resident", 500_000), settled_s=math.inf)), None),
        (
            outcome_with(seen=Seen(vitals=vitals(resident=290_000_000), settled_s=math.inf)),
            "was 290 MB at a time",
        ),
        (outcome_with(seen=Seen(vitals=growing("resident", 1_500_000), settled_s=50.0)), "grew by 74 MB"),
        (outcome_with(seen=Seen(vitals=growing("worker", 500_000))), "memory of the worker grew by 37 MB"),
        (outcome_with(seen=Seen(vitals=growing("descriptors", 1))), "descriptors grew by 74"),
        (outcome_with(seen=Seen(vitals=growing("threads", 1))), "threads grew by 74"),
        # A rebuild that is under way when somebody looks.
        (outcome_with(seen=Seen(vitals=vitals(resident=190_000_000, descriptors=520, threads=25))), None),
        (outcome_with(seen=Seen(vitals=vitals(resident=290_000_000))), "was 290 MB at a time, where 100 MB"),
        (outcome_with(seen=Seen(vitals=vitals(log=60_000_000))), None),
        (outcome_with(seen=Seen(vitals=vitals(log=160_000_000))), "the log of the index was 160 MB"),
    ],
)
def test_what_was_not_borne_is_told(outcome: Outcome, expected: str | None) -> None:
    """Each kind of trouble by itself is enough."""
    told = complaints(outcome)
    assert (not told) if expected is None else any(expected in one for one in told)


def test_single_samples_do_not_tilt_a_slope() -> None:
    """A rebuild at the end of the time is no growth."""
    times = [float(at) for at in range(100)]
    assert slope(times, [2 * at for at in times]) == 2
    assert slope(times, [100 if at >= 80 else 1 for at in times]) == 0
