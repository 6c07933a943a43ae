"""Which trials are made, and what is said of those that are not. No program is needed for that."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients import __main__ as clients
from tests.clients.__main__ import PAGE, Trial, tried_all, with_table
from tests.clients.conversation import Exchange
from tests.clients.install import NotInstalled
from tests.clients.judge import JUDGEMENTS, Verdict, table
from tests.clients.programs import PROGRAMS, Program
from tests.clients.trial import Observed

WANTED = [PROGRAMS["claude"], PROGRAMS["codex"]]
NOTHING = Exchange("", "")
Made = Callable[..., tuple[list[Trial], dict[str, str]]]


def _trial(program: Program, *failed: str) -> Trial:
    verdicts = {name: Verdict(name not in failed, "why") for name in JUDGEMENTS}
    return Trial(Observed(program, "1.0", NOTHING, NOTHING, ()), verdicts)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Makes the trials that a script says."""

    def make(*script: Any, seconds: float = 1000.0) -> tuple[list[Trial], dict[str, str]]:
        steps = iter(script)

        def tried(program: Program, *given: Any) -> Trial:
            step = next(steps)
            if isinstance(step, Exception):
                raise step
            return _trial(program, *step)

        monkeypatch.setattr(clients, "_tried", tried)
        made = tried_all(WANTED, {}, Path(), None, time.monotonic() + seconds)
        assert next(steps, None) is None
        return made

    return make


def test_a_program_that_cannot_be_had_is_named(make: Made) -> None:
    """The others are tried all the same."""
    trials, missing = make(NotInstalled("the registry does not answer"), ())
    assert [trial.seen.program.name for trial in trials] == ["codex"]
    assert missing == {"Claude Code": "the registry does not answer"}


def test_what_does_not_hold_twice_fails(make: Made) -> None:
    """A trial that is made once more clears what does not hold only once."""
    first, *_ = JUDGEMENTS
    second = list(JUDGEMENTS)[1]
    trials, missing = make({first}, {first}, {first}, ())
    assert [trial.failed for trial in trials] == [{first}, set()]
    assert not missing
    trials, _ = make({first, second}, {second}, ())
    assert [trial.failed for trial in trials] == [{first, second}, set()]


def test_what_fails_otherwise_the_second_time_fails(make: Made) -> None:
    """It is not well either way."""
    first, second, *_ = JUDGEMENTS
    trials, _ = make({first}, {second}, ())
    assert [trial.failed for trial in trials] == [{second}, set()]


def test_without_time_nothing_is_begun(make: Made) -> None:
    """What was begun before ends with the time."""
    trials, missing = make(seconds=10.0)
    assert trials == []
    assert missing == dict.fromkeys(("Claude Code", "Codex"), "no time is left")


def test_the_table_of_the_page_is_put_anew() -> None:
    """All else of the page stays."""
    trials = [_trial(program) for program in PROGRAMS.values()]
    page = PAGE.read_text("utf-8")
    new = with_table(page, table(trials))
    assert table(trials) in new
    assert with_table(new, table(trials)) == new
    assert [line for line in new.splitlines() if line[:1] != "|"] == [
        line for line in page.splitlines() if line[:1] != "|"
    ]
    assert all(f"\n| {name} | " in page for name in JUDGEMENTS)
