"""How a provider stands after failures, as a pure function."""

import pytest

from memd.embedding.queue.states import (
    LONGEST_ASKED_S,
    BackingOff,
    Paused,
    Provided,
    State,
    Stopped,
    WaitingForConfirmation,
    Working,
    failed,
    failures_after,
    in_words,
)


def after(before: Provided, *, began: float = 9.0, retry_after_s: float | None = None) -> Provided:
    return failed(before, "down", began=began, now=10.0, wait_s=2.0, retry_after_s=retry_after_s)


@pytest.mark.parametrize(
    ("before", "began", "retry_after_s", "expected"),
    [
        (Working(), 9.0, None, BackingOff(10.0, 12.0, 1, "down", 10.0)),
        (Working(), 9.0, 60.0, BackingOff(10.0, 70.0, 1, "down", 10.0)),
        (Working(), 9.0, 0.5, BackingOff(10.0, 12.0, 1, "down", 10.0)),
        # The next attempt failed, too.
        (BackingOff(1.0, 8.0, 3, "was", 5.0), 9.0, None, BackingOff(1.0, 12.0, 4, "down", 10.0)),
        # Under way together with the one that failed first: it counts once.
        (BackingOff(9.5, 11.0, 1, "was", 9.5), 9.0, None, BackingOff(9.5, 11.0, 1, "was", 9.5)),
        (BackingOff(9.5, 11.0, 1, "was", 9.5), 9.0, 60.0, BackingOff(9.5, 70.0, 1, "was", 9.5)),
        (Stopped(1.0, "no"), 9.0, None, Stopped(1.0, "no")),
        # One huge number is no reason to wait for years.
        (Working(), 9.0, 99_999_999.0, BackingOff(10.0, 10.0 + LONGEST_ASKED_S, 1, "down", 10.0)),
        (
            BackingOff(9.5, 11.0, 1, "was", 9.5),
            9.0,
            1e308,
            BackingOff(9.5, 10.0 + LONGEST_ASKED_S, 1, "was", 9.5),
        ),
    ],
)
def test_a_failure(before: Provided, began: float, retry_after_s: float | None, expected: Provided) -> None:
    """Waits grow with failures in a row, last as long as the provider asks for, and never end a refusal."""
    assert after(before, began=began, retry_after_s=retry_after_s) == expected


def test_failures_in_a_row_are_counted() -> None:
    """From the first."""
    assert [failures_after(state) for state in (Working(), BackingOff(0.0, 1.0, 2, "down"))] == [1, 3]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (BackingOff(0.0, 1.0, 1, "openai: no answer"), "openai: no answer"),
        (Stopped(0.0, "openai: the quota is used up"), "`memd-ctl embed resume --agent work`"),
        (Paused(), "`memd-ctl embed resume --agent work`"),
        (WaitingForConfirmation(30_000, 12_000_000), "30,000 chunks, about 12,000,000 tokens"),
        (
            WaitingForConfirmation(30, 900, 40),
            "30 chunks, about 900 tokens, would be sent to the provider after 40 just before",
        ),
        (
            WaitingForConfirmation(30, 900, 40),
            "nothing is sent for 10 minutes, or until `memd-ctl embed confirm",
        ),
        (WaitingForConfirmation(30_000, 12_000_000), "`memd-ctl embed confirm --agent work`"),
    ],
)
def test_a_person_is_told_what_to_do(state: State, said: str) -> None:
    """Why nothing is embedded, and the command that changes it."""
    assert said in str(in_words(state, "work"))


def test_what_works_needs_no_words() -> None:
    """Nothing is in the way."""
    assert in_words(Working(), "work") is None
