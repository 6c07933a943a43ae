import pytest

from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.circuit_breaker import PAUSE_S, CircuitBreaker

DOWN = EmbedUnavailable("it is down")


def is_open(breaker: CircuitBreaker, now: float) -> bool:
    try:
        breaker.check(now)
    except EmbedUnavailable:
        return False
    return True


def test_one_failure_changes_nothing() -> None:
    """The next question is put."""
    breaker = CircuitBreaker()
    breaker.failed(DOWN, 0)
    assert is_open(breaker, 0.1)


def test_after_two_failures_questions_go_without() -> None:
    """At once, with the reason, until the pause is over."""
    breaker = CircuitBreaker()
    breaker.failed(DOWN, 0)
    breaker.failed(DOWN, 1)
    with pytest.raises(EmbedUnavailable, match="it is down"):
        breaker.check(PAUSE_S)
    assert is_open(breaker, 1 + PAUSE_S)


def test_one_question_at_a_time_tries_again() -> None:
    """The others do not wait for it."""
    breaker = CircuitBreaker()
    breaker.failed(DOWN, 0)
    breaker.failed(DOWN, 0)
    assert is_open(breaker, PAUSE_S)
    assert not is_open(breaker, PAUSE_S + 0.1)
    breaker.succeeded()
    assert is_open(breaker, PAUSE_S + 0.2)


def test_a_provider_that_asks_for_more_gets_it() -> None:
    """Up to a minute."""
    breaker = CircuitBreaker()
    limited = EmbedUnavailable("too many requests", retry_after_s=30)
    breaker.failed(limited, 0)
    breaker.failed(limited, 0)
    assert not is_open(breaker, 29)
    assert is_open(breaker, 30)


def test_the_cause_of_the_last_failure_is_told_each_time() -> None:
    """A refusal that no waiting mends is one still when questions are not put any more."""
    breaker = CircuitBreaker()
    failure = EmbedUnavailable("the quota is used up")
    failure.__cause__ = EmbedTerminal("the quota is used up")
    breaker.failed(failure, 0)
    breaker.failed(failure, 0)
    with pytest.raises(EmbedUnavailable, match="quota") as refusal:
        breaker.check(0.1)
    assert isinstance(refusal.value.__cause__, EmbedTerminal)
