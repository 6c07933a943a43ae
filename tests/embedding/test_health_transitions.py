"""The values of a provider's health, and the decision for its fallback."""

import pytest

from memd.embedding.health_transitions import (
    GATE_FAILURES,
    GATE_S,
    LONGEST_ASKED_S,
    LONGEST_GATE_S,
    FallbackThresholds,
    Healthy,
    LeftForFallback,
    QuestionGate,
    Refusing,
    RequestHealth,
    Retrying,
    after_retry,
    failures_after,
    left_after,
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


def test_after_a_few_failures_questions_are_not_sent() -> None:
    """Until the pause is over; after fewer the next one is sent."""
    gate = QuestionGate()
    for failures in range(GATE_FAILURES):
        assert gate.is_open(0.1)
        gate = gate.failed(DOWN, float(failures))
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


THRESHOLDS = FallbackThresholds(down_s=600, stay_s=1800)


def failing(since: float, now: float) -> RequestHealth:
    return Retrying(since, now, 2, "why", now)


@pytest.mark.parametrize(
    ("before", "now", "health", "after"),
    [
        (None, 5.0, failing(5.0, 5.0), None),
        (None, 604.0, failing(5.0, 604.0), None),
        (None, 605.0, failing(5.0, 605.0), LeftForFallback(605.0, "why")),
        (None, 5.0, Refusing(5.0, "why"), LeftForFallback(5.0, "why", is_final=True)),
        (LeftForFallback(5.0, "old"), 9.0, Refusing(1.0, "why"), LeftForFallback(5.0, "why", is_final=True)),
        (LeftForFallback(5.0, "old"), 9.0, failing(1.0, 9.0), LeftForFallback(5.0, "why")),
        (
            LeftForFallback(5.0, "old", is_final=True),
            9.0,
            failing(1.0, 9.0),
            LeftForFallback(5.0, "why", is_final=True),
        ),
        (
            LeftForFallback(5.0, "old", is_retried=True),
            9.0,
            failing(1.0, 9.0),
            LeftForFallback(5.0, "why", is_retried=True),
        ),
        (
            LeftForFallback(5.0, "old", is_retried=True),
            9.0,
            Refusing(1.0, "why"),
            LeftForFallback(5.0, "why", is_final=True),
        ),
    ],
)
def test_only_a_lasting_cause_leads_to_the_fallback(
    before: LeftForFallback | None, now: float, health: RequestHealth, after: LeftForFallback | None
) -> None:
    """Ten minutes without an answer, or a refusal that no waiting will mend; one error in passing is neither."""
    assert left_after(before, health, now, THRESHOLDS) == after


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (None, 5.0, None),
        (LeftForFallback(100.0, "why"), 1899.0, LeftForFallback(100.0, "why")),
        (LeftForFallback(100.0, "why"), 1900.0, None),
        (LeftForFallback(100.0, "why", is_retried=True), 101.0, None),
        (LeftForFallback(100.0, "why", is_final=True), 9e9, LeftForFallback(100.0, "why", is_final=True)),
    ],
)
def test_the_first_provider_is_used_again_when_it_answers(
    before: LeftForFallback | None, now: float, after: LeftForFallback | None
) -> None:
    """After half an hour at the earliest, and after a final refusal only when a person has changed something."""
    assert left_after(before, Healthy(), now, THRESHOLDS) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, None),
        (LeftForFallback(5.0, "why", is_final=True), LeftForFallback(5.0, "why", is_retried=True)),
        (LeftForFallback(5.0, "why"), LeftForFallback(5.0, "why", is_retried=True)),
    ],
)
def test_what_is_final_lasts_until_a_person_doubts_it(
    before: LeftForFallback | None, after: LeftForFallback | None
) -> None:
    """From then on the first answer leads back, at once: a person has asked for it."""
    assert after_retry(before) == after
