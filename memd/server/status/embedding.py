"""What status says of an agent's embedding: its state, its provider, and why it is that one."""

from memd.agent.agents import RunningAgent
from memd.embedding.health_state import Healthy, Refusing, Retrying
from memd.embedding.queue.agent_backlog import Paused, State, WaitingForConfirmation
from memd.embedding.queue.batching import Bulk
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.providers.batch.state import FAILURES
from memd_client import messages as wire

_NAMES: dict[type[State], str] = {
    Healthy: "working",
    Retrying: "backing_off",
    Refusing: "stopped",
    Paused: "paused",
    WaitingForConfirmation: "waiting_for_confirmation",
}


def embedding(agent: RunningAgent) -> wire.Embedding:
    """Whether an agent's chunks get their vectors."""
    queue = agent.queue
    if queue is None:
        return wire.Embedding(state="none", reason=agent.providers.trouble)
    state = queue.state_of(agent.id)
    asked = state if isinstance(state, WaitingForConfirmation) else None
    return wire.Embedding(
        state=_NAMES[type(state)],
        reason=queue.trouble_of(agent.id) or queue.note_of(agent.id),
        next_try_s=queue.next_try_s(agent.id),
        chunks=None if asked is None else asked.chunks,
        tokens=None if asked is None else asked.tokens,
        # Without the cache there are no batch jobs.
        batch=_batch(queue.bulk, use_cache=agent.settings.cache.enabled),
    )


def _provider_trouble(queue: EmbeddingQueue, agent: str) -> str | None:
    """What is wrong with the provider, or with the store that takes its vectors: what a person asked for is no trouble."""
    return queue.trouble_of(agent) if isinstance(queue.state_of(agent), Retrying | Refusing) else None


def _batch(bulk: Bulk, *, use_cache: bool) -> wire.BatchStatus | None:
    if bulk.batches is None:
        return None
    state = bulk.batches.state
    return wire.BatchStatus(
        enabled=bulk.is_enabled,
        on=state.is_on,
        failures=state.failures,
        limit=FAILURES,
        jobs=bulk.batches.jobs,
        texts=bulk.batches.claimed,
        files_left=bulk.batches.files_left,
        reason=(bulk.trouble(use_cache=use_cache) if bulk.is_enabled else None) or state.reason,
        at=state.at,
    )


def provider_health(agent: RunningAgent) -> wire.Health:
    """Whether the provider does what it is for, and if not, why and what to do."""
    if agent.settings.provider == "none":
        return wire.Health(reason="provider = none")
    queue = agent.queue
    waits = None if queue is None else _provider_trouble(queue, agent.id)
    reason = agent.providers.trouble or waits
    return wire.Health(ok=reason is None, reason=reason)


def endpoint(agent: RunningAgent) -> str | None:
    """The host that notes and questions are sent to; None: they stay here."""
    used = agent.providers.pair.used
    return None if used is None else used.host


def passed_over(agent: RunningAgent) -> list[wire.PassedOver]:
    """The providers that were considered before, each with the reason why it was not taken."""
    choice = agent.providers.pair.choice
    return [wire.PassedOver(provider=one.provider, reason=one.reason) for one in choice.passed_over]


def provider_fallback(agent: RunningAgent) -> wire.FallbackStatus | None:
    """The second provider, whether it stands in, and why; None: the configuration names none."""
    pair = agent.providers.pair
    name = agent.settings.fallback
    if name == "none":
        return None
    use = agent.providers.fallback_use(agent.index.space)
    if use is not None:
        return wire.FallbackStatus(provider=name, in_use=True, instead_of=use.instead_of, reason=use.reason)
    return wire.FallbackStatus(provider=name, reason=pair.choice.no_fallback)
