"""Who embeds for an agent, and why it is that one, as its owner is told."""

from memd.agent.agents import RunningAgent
from memd.server.status.embedding import provider_trouble
from memd_client import messages as wire


def health(agent: RunningAgent) -> wire.Health:
    """Whether the provider does what it is for, and if not, why and what to do."""
    if agent.settings.provider == "none":
        return wire.Health(reason="provider = none")
    queue = agent.queue
    waits = None if queue is None else provider_trouble(queue, agent.id)
    reason = agent.supply.trouble or waits
    return wire.Health(ok=reason is None, reason=reason)


def endpoint(agent: RunningAgent) -> str | None:
    """The host that notes and questions are sent to; None: they stay here."""
    used = agent.supply.pair.used
    return None if used is None else used.host


def passed_over(agent: RunningAgent) -> list[wire.PassedOver]:
    """The providers that were considered before, each with the reason why it was not taken."""
    choice = agent.supply.pair.choice
    return [wire.PassedOver(provider=one.provider, reason=one.reason) for one in choice.passed_over]


def fallback(agent: RunningAgent) -> wire.FallbackStatus | None:
    """The second provider, whether it stands in, and why; None: the configuration names none."""
    engine = agent.supply.pair
    name = agent.settings.fallback
    if name == "none":
        return None
    use = agent.supply.fallback_use(agent.index.space)
    if use is not None:
        return wire.FallbackStatus(provider=name, in_use=True, instead_of=use.instead_of, reason=use.reason)
    return wire.FallbackStatus(provider=name, reason=engine.choice.no_fallback)
