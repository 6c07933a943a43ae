"""A daemon bears many clients at once; `python -m tests.benchmarks.load` does the same for longer, on more notes."""

from pathlib import Path

import pytest

from tests.benchmarks import load
from tests.benchmarks.figures import Samples
from tests.benchmarks.load import Outcome, Plan, Seen
from tests.daemon.lag import Lag


def test_a_hundred_clients_ask_and_write_at_once(home: Path) -> None:
    """No request fails, no edit is lost, memory does not grow, and the index is that of the files."""
    outcome = load.run(home, Plan(clients=100, seconds=4, chunks=1500, rate=20))
    assert load.complaints(outcome) == [], load.report(outcome)
    asked = {work: len(samples) for works in outcome.seen.took.values() for work, samples in works.items()}
    assert min(asked.values()) > 0
    assert len(outcome.seen.took) == 2
    assert outcome.seen.written
    assert sum(outcome.lag.computing) > 100
    assert "resident memory" in load.report(outcome)


def outcome_with(**trouble: object) -> Outcome:
    """One that is well but for something."""
    seen = Seen(took={"at once": {"search": Samples([0.1]), "get": Samples(), "edit": Samples()}})
    seen.resident = [100_000_000] * 20
    good = {"seen": seen, "lost": [], "ghosts": [], "unlike": [], "lag": Lag()}
    return Outcome(**{**good, **trouble})  # type: ignore[arg-type]


def grown(megabytes: int) -> Seen:
    return Seen(resident=[100_000_000] * 15 + [100_000_000 + megabytes * 1_000_000] * 5)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (outcome_with(), None),
        (outcome_with(lost=["landmark1x"]), "not found afterwards: landmark1x"),
        (outcome_with(ghosts=["landmark2x"]), "overwritten and found"),
        (outcome_with(unlike=["only one has a.md"]), "1 differences from a fresh index: only one has a.md"),
        (outcome_with(seen=grown(20)), None),
        (outcome_with(seen=grown(30)), "grew from 100 to 130 MB"),
    ],
)
def test_what_was_not_borne_is_told(outcome: Outcome, expected: str | None) -> None:
    """Each kind of trouble by itself is enough."""
    told = load.complaints(outcome)
    assert (not told) if expected is None else any(expected in one for one in told)
