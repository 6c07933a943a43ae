"""Values of health and their transitions."""

import pytest

from memd.embedding.health_state import (
    GATE_S,
    LONGEST_ASKED_S,
    LONGEST_GATE_S,
    Healthy,
    QuestionGate,
    Refusing,
    RequestHealth,
    Retrying,
    failures_after,
    passages_unanswered,
    unanswered,
)
from memd.providers.provider import EmbedTerminal, EmbedUnavailable

DOWN = EmbedUnavailable("it is down")


def after(before: RequestHealth, *, began: float = 9.0, retry_after_s: float | None = None) -> RequestHealth:
    return passages_unanswered(before, "down", began=began, now=10.0, wait_s=2.0, retry_after_s=retry_after_s)


@pytest.mark.parametrize(
    ("before", "began", "retry_after_s", "expected"),
    [
        (Healthy(), 9.0, None, Retrying(10.0, 12.0, 1, "down", 10.0)),
        (Healthy(), 9.0, 60.0, Retrying(10.0, 70.0, 1, "down", 10.0)),
        (Healthy(), 9.0, 0.5, Retrying(10.0, 12.0, 1, "down", 10.0)),
        # The next attempt failed, too.
        (Retrying(1.0, 8.0, 3, "was", 5.0), 9.0, None, Retrying(1.0, 12.0, 4, "down", 10.0)),
        # Under way together with the one that failed first: it counts once.
        (Retrying(9.5, 11.0, 1, "was", 9.5), 9.0, None, Retrying(9.5, 11.0, 1, "was", 9.5)),
        (Retrying(9.5, 11.0, 1, "was", 9.5), 9.0, 60.0, Retrying(9.5, 70.0, 1, "was", 9.5)),
        (Refusing(1.0, "no"), 9.0, None, Refusing(1.0, "no")),
        # One huge number is no reason to wait for years.
        (Healthy(), 9.0, 99_999_999.0, Retrying(10.0, 10.0 + LONGEST_ASKED_S, 1, "down", 10.0)),
        (
            Retrying(9.5, 11.0, 1, "was", 9.5),
            9.0,
            1e308,
            Retrying(9.5, 10.0 + LONGEST_ASKED_S, 1, "was", 9.5),
        ),
    ],
)
def test_a_failure(
    before: RequestHealth, began: float, retry_after_s: float | None, expected: RequestHealth
) -> None:
    """Waits grow with failures in a row, last as long as the provider asks for, and never end a refusal."""
    assert after(before, began=began, retry_after_s=retry_after_s) == expected


def test_failures_in_a_row_are_counted() -> None:
    """From the first."""
    assert [failures_after(state) for state in (Healthy(), Retrying(0.0, 1.0, 2, "down"))] == [1, 3]


@pytest.mark.parametrize(
    ("before", "is_final", "expected"),
    [
        (Healthy(), False, Retrying(10.0, 10.0, 1, "down", 10.0)),
        (Healthy(), True, Refusing(10.0, "down")),
        (Retrying(1.0, 8.0, 3, "was", 5.0), False, Retrying(1.0, 10.0, 4, "down", 10.0)),
        (Retrying(1.0, 8.0, 3, "was", 5.0), True, Refusing(1.0, "down")),
        (Refusing(1.0, "was"), False, Retrying(1.0, 10.0, 1, "down", 10.0)),
    ],
)
def test_a_provider_as_a_whole(before: RequestHealth, is_final: bool, expected: RequestHealth) -> None:
    """The last failure decides what it is; it lasts since the first one after an answer."""
    assert unanswered(before, "down", 10.0, is_final=is_final) == expected


def test_one_failed_question_changes_nothing() -> None:
    """The next one is sent."""
    assert QuestionGate().failed(DOWN, 0).is_open(0.1)


def test_after_two_failures_questions_are_not_sent() -> None:
    """Until the pause is over."""
    gate = QuestionGate().failed(DOWN, 0).failed(DOWN, 1)
    assert gate.reason == "it is down"
    assert not gate.is_open(GATE_S)
    assert gate.is_open(1 + GATE_S)


def test_one_question_at_a_time_tries_again() -> None:
    """The others do not wait for it."""
    gate = QuestionGate().failed(DOWN, 0).failed(DOWN, 0)
    assert gate.is_open(GATE_S)
    assert not gate.trying(GATE_S).is_open(GATE_S + 0.1)
    assert QuestionGate().trying(GATE_S).is_open(GATE_S + 0.1)


def test_a_provider_that_asks_for_a_longer_pause_gets_it() -> None:
    """Up to a minute."""
    limited = EmbedUnavailable("too many requests", retry_after_s=30)
    gate = QuestionGate().failed(limited, 0).failed(limited, 0)
    assert not gate.is_open(29)
    assert gate.is_open(30)
    for_years = gate.failed(EmbedUnavailable("later", retry_after_s=1e9), 0)
    assert not for_years.is_open(LONGEST_GATE_S - 0.1)
    assert for_years.is_open(LONGEST_GATE_S)


def test_a_refusal_is_one_still_while_questions_are_not_sent() -> None:
    """No waiting mends it."""
    refusal = EmbedUnavailable("the quota is used up")
    refusal.__cause__ = EmbedTerminal("the quota is used up")
    assert QuestionGate().failed(refusal, 0).is_final
    assert not QuestionGate().failed(refusal, 0).failed(DOWN, 0).is_final
