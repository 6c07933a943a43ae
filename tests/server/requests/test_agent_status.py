from types import SimpleNamespace
from typing import cast

import pytest

from memd.agent.agents import RunningAgent
from memd.domain_types import FallbackUse
from memd.embedding.health_transitions import Healthy, Refusing, Retrying
from memd.embedding.passage_queue.agent_backlog import Paused, State, WaitingForConfirmation
from memd.providers.batch.circuit_breaker import FAILURES
from memd.server.requests.agent_status import embedding, provider_fallback, provider_health
from memd_client.messages import BatchStatus, Embedding, FallbackStatus, Health


def agent_in(
    state: State | None, submitter: object = None, *, store_trouble: str | None = None
) -> RunningAgent:
    """An agent whose queue is in a state; None: without a queue."""
    queue = SimpleNamespace(
        state_of=lambda _: state,
        reason=None,
        reason_of=lambda _: state.reason if isinstance(state, Retrying | Refusing) else None,
        store_trouble=lambda _: store_trouble,
        note_of=lambda _: "a note",
        next_try_s=lambda _: 4.5,
        batch_submitter=submitter or SimpleNamespace(batches=None),
    )
    return cast(
        "RunningAgent",
        SimpleNamespace(
            id="main",
            queue=None if state is None else queue,
            providers=SimpleNamespace(reason="provider = none" if state is None else None),
            settings=SimpleNamespace(provider="local", cache=SimpleNamespace(enabled=True)),
        ),
    )


@pytest.mark.parametrize(
    ("state", "name", "chunks", "tokens"),
    [
        (Healthy(), "working", None, None),
        (Retrying(1.0, 6.0, 2, "no answer"), "backing_off", None, None),
        (Refusing(1.0, "no quota"), "stopped", None, None),
        (Paused(), "paused", None, None),
        (WaitingForConfirmation(21, 8400), "waiting_for_confirmation", 21, 8400),
    ],
)
def test_each_state_has_a_name_and_what_is_asked_about_its_figures(
    state: State, name: str, chunks: int | None, tokens: int | None
) -> None:
    """How much would be embedded stands where somebody is asked to confirm it."""
    assert embedding(agent_in(state)) == Embedding(
        state=name,
        reason=state.reason if isinstance(state, Retrying | Refusing) else "a note",
        next_try_s=4.5,
        chunks=chunks,
        tokens=tokens,
        batch=None,
    )


def test_an_index_that_takes_no_vectors_is_no_fault_of_the_provider() -> None:
    """It stands with the store."""
    waits = Retrying(1.0, 6.0, 2, "no room is left")
    assert provider_health(agent_in(waits)) == Health(ok=False, reason="no room is left")
    assert provider_health(agent_in(waits, store_trouble="no room is left")) == Health()


@pytest.mark.parametrize(
    ("enabled", "in_the_way", "last_failure", "told"),
    [
        (True, None, None, None),
        (True, "the cache is disabled", None, "the cache is disabled"),
        (True, "the cache is disabled", "no quota", "the cache is disabled"),
        (True, None, "no quota", "no quota"),
        (False, "the cache is disabled", None, None),
        (False, "the cache is disabled", "no quota", "no quota"),
    ],
)
def test_why_there_are_no_jobs_is_told_where_they_are_wanted(
    enabled: bool, in_the_way: str | None, last_failure: str | None, told: str | None
) -> None:
    """What is in the way before what failed last; jobs that nobody wants have nothing in their way."""
    batches = SimpleNamespace(
        state=SimpleNamespace(is_on=enabled, failures=2, reason=last_failure, at=5.0),
        jobs=1,
        claimed=30,
        files_left=4,
    )
    submitter = SimpleNamespace(batches=batches, is_enabled=enabled, reason=lambda *, use_cache: in_the_way)
    told_of = embedding(agent_in(Healthy(), submitter)).batch
    assert told_of == BatchStatus(
        enabled=enabled,
        on=enabled,
        failures=2,
        limit=FAILURES,
        jobs=1,
        texts=30,
        files_left=4,
        reason=told,
        at=5.0,
    )


def test_without_a_queue_the_reason_is_that_of_the_provider() -> None:
    """Nothing is embedded."""
    assert embedding(agent_in(None)) == Embedding(state="none", reason="provider = none")


@pytest.mark.parametrize(
    ("name", "use", "no_fallback", "told"),
    [
        ("none", None, None, None),
        ("local", None, None, FallbackStatus(provider="local")),
        ("local", None, "no model", FallbackStatus(provider="local", reason="no model")),
        (
            "local",
            FallbackUse("openai", "it is down"),
            None,
            FallbackStatus(provider="local", in_use=True, instead_of="openai", reason="it is down"),
        ),
    ],
)
def test_the_fallback_is_told_with_why_it_is_used_or_cannot_be(
    name: str, use: FallbackUse | None, no_fallback: str | None, told: FallbackStatus | None
) -> None:
    """Nothing where none is wanted."""
    providers = SimpleNamespace(
        pair=SimpleNamespace(choice=SimpleNamespace(no_fallback=no_fallback)), fallback_use=lambda _: use
    )
    agent = SimpleNamespace(
        settings=SimpleNamespace(fallback=name), index=SimpleNamespace(space=None), providers=providers
    )
    assert provider_fallback(cast("RunningAgent", agent)) == told
