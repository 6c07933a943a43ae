"""What is known of a provider by how its requests end."""

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from memd.embedding.health_transitions import (
    GATE_S,
    FallbackThresholds,
    Healthy,
    LeftForFallback,
    Refusing,
    RequestHealth,
    Retrying,
)
from memd.embedding.provider_health import ProviderHealth, Standby
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.dialect import BadReply, KeyRefused
from memd.runtime.asyncio_helpers import ChangeNotifier
from tests.clock import Clock

DOWN = EmbedUnavailable("it is down")


def refusal() -> EmbedUnavailable:
    """A question that is refused as any request would be."""
    failure = EmbedUnavailable("the quota is used up")
    failure.__cause__ = EmbedTerminal("the quota is used up")
    return failure


class Bench:
    """A remote provider with a fallback, and a clock."""

    def __init__(self) -> None:
        self.clock, self.changes, self.needed = Clock(), ChangeNotifier(), asyncio.Event()
        thresholds = FallbackThresholds(down_s=600, stay_s=1800)
        self.health = ProviderHealth(
            "openai",
            Random(1),
            self.clock,
            is_remote=True,
            standby=Standby("local", self.needed, thresholds),
            changes=self.changes,
        )

    def reason(self) -> str | None:
        return self.health.reason

    def left(self) -> LeftForFallback | None:
        return self.health.now.left

    def passages(self) -> RequestHealth:
        return self.health.now.passages

    def is_admitted(self) -> bool:
        try:
            self.health.admit_question()
        except EmbedUnavailable:
            return False
        return True


def test_the_log_tells_once_that_a_provider_failed_and_once_that_it_answers_again() -> None:
    """Whatever it answers; an answer of one that is well is no news."""
    health = ProviderHealth("openai", Random(1), Clock(), is_remote=True)
    for answered in (health.probe_answered, health.questions_answered):
        with capture_logs() as logs:
            answered()
            for happens in (health.question_failed, health.probe_failed):
                happens(DOWN)
                assert [one["event"] for one in logs] == ["embed.provider_failed"]
            answered()
            answered()
        assert [one["event"] for one in logs] == ["embed.provider_failed", "embed.provider_recovered"]


def test_whatever_is_answered_ends_the_trouble_of_the_whole() -> None:
    """A probe follows at once, after the first failure and after the answer; nobody waits in between."""
    bench = Bench()
    bench.health.question_failed(DOWN)
    assert bench.reason() == "it is down"
    assert bench.health.probe_wanted.is_set()
    bench.health.probe_wanted.clear()
    bench.health.question_failed(DOWN)
    bench.health.probe_failed(DOWN)
    assert not bench.health.probe_wanted.is_set()
    bench.health.question_failed(BadReply("other dimensions"))  # another model may be behind the name
    assert bench.health.probe_wanted.is_set()
    bench.health.probe_wanted.clear()
    bench.health.passages_answered(bench.clock())
    assert bench.reason() is None
    assert bench.health.probe_wanted.is_set()


def test_only_what_changes_for_those_who_use_it_wakes_them() -> None:
    """It began or ceased to answer, or says something else; not each further answer."""
    bench = Bench()
    told = []
    for happens in (bench.health.probe_answered, lambda: bench.health.probe_failed(DOWN)):
        for _ in range(3):
            before = bench.changes.version
            happens()
            told.append(bench.changes.version > before)
    assert told == [False, False, False, True, False, False]


def test_passages_that_are_refused_stay_so_though_questions_are_answered() -> None:
    """What would be paid for is sent again only when a person says so."""
    bench = Bench()
    bench.health.passages_failed(EmbedTerminal("the quota is used up"), bench.clock())
    assert bench.reason() == "the quota is used up"
    bench.health.questions_answered()
    assert bench.reason() is None
    assert bench.passages() == Refusing(bench.clock.now, "the quota is used up")
    bench.health.passages_answered(bench.clock())
    assert isinstance(bench.passages(), Refusing)
    bench.health.retry_passages()
    assert bench.passages() == Healthy()


def test_failures_of_requests_that_were_under_way_together_count_once() -> None:
    """Their waits would grow with how many there are at once."""
    bench = Bench()
    began = bench.clock()
    bench.clock.run(1)
    for _ in range(5):
        bench.health.passages_failed(DOWN, began)
    passages = bench.passages()
    assert isinstance(passages, Retrying)
    assert passages.failures == 1


def test_questions_are_not_sent_after_two_failures_until_a_probe_is_answered() -> None:
    """Each that is not sent says why again, so that an answer to something else does not hide it."""
    bench = Bench()
    for _ in range(2):
        assert bench.is_admitted()
        bench.health.question_failed(refusal())
    bench.health.passages_answered(bench.clock())
    with pytest.raises(EmbedUnavailable, match="quota") as told:
        bench.health.admit_question()
    assert isinstance(told.value.__cause__, EmbedTerminal)
    assert bench.reason() == "the quota is used up"
    bench.clock.run(GATE_S)
    assert bench.is_admitted()
    assert not bench.is_admitted()
    bench.health.probe_answered()
    assert bench.is_admitted()


def test_the_worker_of_a_local_provider_says_nothing_about_its_questions() -> None:
    """Nor are questions held back from it."""
    health = ProviderHealth("local", Random(1), Clock())
    for _ in range(3):
        health.question_failed(DOWN)
        health.admit_question()
    health.passages_answered(0.0)
    assert str(health.reason) == "it is down"
    health.questions_answered()
    health.passages_failed(DOWN, 0.0)
    assert (health.reason, type(health.now.passages)) == (None, Retrying)


def test_the_fallback_is_taken_and_left() -> None:
    """Each change is told once, to agents and in the log; the fallback is wanted from the first on."""
    bench = Bench()
    with capture_logs() as logs:
        bench.health.probe_failed(DOWN)
        bench.clock.run(600)
        assert not bench.needed.is_set()
        bench.health.probe_failed(DOWN)
        assert bench.needed.is_set()
        bench.health.probe_answered()
        assert [bench.health.returns_in_s] == [1800]
        bench.clock.run(1800)
        told = ["embed.provider_failed", "embed.fallback_taken", "embed.provider_recovered"]
        assert [one["event"] for one in logs] == told
        bench.health.probe_answered()
    assert bench.left() is None
    assert [one["event"] for one in logs] == [*told, "embed.fallback_left"]
    assert bench.changes.version == 4


def test_after_a_refusal_only_the_word_of_a_person_leads_back() -> None:
    """Then at once, unless it is refused again."""
    bench = Bench()
    bench.health.probe_failed(EmbedTerminal("the quota is used up"))
    bench.clock.run(1_000_000)
    bench.health.probe_answered()
    assert bench.left() is not None
    assert not bench.health.returns
    bench.health.retry_after_refusal()
    bench.health.probe_failed(EmbedTerminal("the quota is used up"))
    bench.health.probe_answered()
    assert bench.left() is not None
    bench.health.retry_after_refusal()
    bench.health.probe_answered()
    assert bench.left() is None


def test_what_ends_after_the_close_was_given_up() -> None:
    """It is no failure of the provider."""
    bench = Bench()
    bench.health.close()
    bench.health.question_failed(DOWN)
    assert bench.reason() is None


def test_only_passages_that_wait_for_another_try_are_hurried() -> None:
    """What works is not touched, and what is refused stays so."""
    bench = Bench()
    bench.health.hurry_passages()
    assert bench.passages() == Healthy()
    bench.health.passages_failed(DOWN, bench.clock())
    waiting = bench.passages()
    assert isinstance(waiting, Retrying)
    assert waiting.until > bench.clock()
    bench.health.hurry_passages()
    hurried = bench.passages()
    assert isinstance(hurried, Retrying)
    assert (hurried.until, hurried.reason) == (bench.clock(), waiting.reason)


def test_questions_that_are_all_refused_are_sent_on_and_told() -> None:
    """The provider answers: it is none of those that are not asked for a while."""
    bench = Bench()
    for _ in range(3):
        bench.health.questions_refused(refusal())
        assert bench.is_admitted()
        assert bench.reason() == "the quota is used up"


@pytest.mark.parametrize("key_places", ["", "OPENAI_API_KEY"])
def test_a_key_that_is_refused_is_told_with_where_it_goes(key_places: str) -> None:
    """And what else was refused, without."""
    for failure, has_place in ((KeyRefused("401"), bool(key_places)), (EmbedTerminal("401"), False)):
        health = ProviderHealth("openai", Random(1), is_remote=True, key_places=key_places)
        health.probe_failed(failure)
        assert str(health.reason) == (
            f"401. Set {key_places}, then restart memd, or send it SIGHUP if the configuration has the key"
            if has_place
            else "401"
        )
