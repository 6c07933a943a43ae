import msgspec
import pytest

from memd.providers.batch.circuit_breaker import (
    COOL_DOWN_S,
    BatchState,
    cooled_down,
    decoded,
    failed,
    late,
    unsupported,
)


def test_two_failures_turn_batches_off() -> None:
    """The first is remembered with its reason; the second counts."""
    one = failed(BatchState(), "the job has failed", 10)
    assert (one.is_on, one.failures, one.reason, one.at) == (True, 1, "the job has failed", 10)
    two = failed(one, "it has expired", 20)
    assert (two.is_on, two.failures, two.reason, two.at) == (False, 2, "it has expired", 20)


def test_late_once_is_forgiven_and_late_twice_counts_two() -> None:
    """The texts of a late job get one more."""
    once = late(BatchState(), "late", 10, began_at=1)
    assert (once.is_on, once.failures, once.at) == (True, 0, 10)
    twice = late(once, "late", 30, began_at=11)
    assert (twice.is_on, twice.failures) == (False, 2)


def test_jobs_that_were_late_together_are_forgiven_together() -> None:
    """Only one that began after another was late is a second attempt."""
    once = late(BatchState(), "late", 10, began_at=1)
    beside = late(once, "late", 12, began_at=2)
    assert (beside.is_on, beside.failures, beside.was_late) == (True, 0, True)
    assert not late(beside, "late", 30, began_at=11).is_on


def test_a_late_job_changes_nothing_once_batches_are_off() -> None:
    """The reason that counted stays."""
    off = unsupported(BatchState(), "there is no such endpoint", 1)
    assert late(off, "late", 2, began_at=1) == off


def test_what_is_not_supported_is_off_at_once() -> None:
    """There is no use in asking twice."""
    assert unsupported(BatchState(), "there is no such endpoint", 1) == BatchState(
        is_on=False, failures=1, reason="there is no such endpoint", at=1
    ), "one failure is told as one"


def test_failures_of_jobs_that_end_after_the_rest_change_nothing() -> None:
    """The reason that counted stays."""
    off = unsupported(BatchState(), "there is no such endpoint", 1)
    assert failed(off, "another", 2) == off


@pytest.mark.parametrize(
    ("now", "is_on"),
    [(1000, False), (1000 + COOL_DOWN_S - 1, False), (1000 + COOL_DOWN_S, True), (500, True)],
)
def test_after_a_while_they_get_one_more_chance(now: float, is_on: bool) -> None:
    """One failure more turns them off again; a clock that was put back does not keep them off."""
    after = cooled_down(unsupported(BatchState(), "x", 1000), now)
    assert after.is_on is is_on
    if is_on:
        assert not failed(after, "again", now).is_on


def test_what_a_ledger_kept_is_read_again() -> None:
    """Nothing, and what cannot be read, is the state of the beginning."""
    off = BatchState(is_on=False, failures=2, reason="x", at=1.0, was_late=True)
    assert decoded(msgspec.json.encode(off)) == off
    for content in (None, b"", b"{", b'{"is_on": "perhaps"}', b"[]"):
        assert decoded(content) == BatchState()
