"""Who answers an agent's searches, and why it is that one, as its owner is told."""

import time

from memd.agent.agents import RunningAgent
from memd.backends.fallback import Fallback
from memd.backends.fallback_state import BuiltinInUse
from memd.backends.qmd.backend import QmdState
from memd.backends.qmd.updater import QmdVectors
from memd.providers.provider import space_of
from memd_client import messages as wire


def answering(agent: RunningAgent) -> tuple[str, str, str]:
    """The backend that answers just now, its provider and its model."""
    if not isinstance(agent.backend, Fallback) or agent.backend.use is not None:
        return "builtin", agent.supply.provider_name, agent.supply.model_name
    return agent.backend.name, agent.backend.name, agent.backend.name


def fallback(agent: RunningAgent) -> wire.BackendFallback | None:
    """That the built-in engine answers in the place of the one that was chosen; None: it does not."""
    if not isinstance(agent.backend, Fallback) or agent.backend.use is None:
        return None
    standing, reason = agent.backend.standing, agent.backend.use.reason
    if isinstance(standing, BuiltinInUse):
        return wire.BackendFallback(
            from_=agent.backend.name,
            reason=reason,
            since=_on_the_wall(standing.since),
            retry_at=_on_the_wall(standing.retry_at),
        )
    return wire.BackendFallback(from_=agent.backend.name, reason=reason)


def qmd(agent: RunningAgent) -> wire.QmdStatus | None:
    """What qmd says of itself, while it answers."""
    if not isinstance(agent.backend, Fallback) or agent.backend.engine is None:
        return None
    told: QmdState = agent.backend.engine.standing
    return wire.QmdStatus(
        command=told.command,
        version=told.version,
        search_mode=told.search_mode,
        collections=list(told.collections),
        files=told.files,
        exported=told.exported,
        left_alone=told.left_alone,
        updating=told.updating,
        last_update=told.last_update,
        update_failure=told.update_failure,
        last_embed=told.last_embed,
        warnings=list(told.warnings),
    )


def vector(agent: RunningAgent) -> wire.VectorHealth:
    """Whether there is search by meaning, as it was found."""
    if not isinstance(agent.backend, Fallback) or agent.backend.use is not None:
        return _of_the_index(agent)
    if agent.backend.engine is None:
        return wire.VectorHealth(available=False, reason=f"{agent.backend.name} is not ready yet")
    found: QmdVectors = agent.backend.engine.standing.vector
    return wire.VectorHealth(
        ok=found.available or not found.enabled,
        reason=found.reason,
        enabled=found.enabled,
        available=found.available,
    )


def _of_the_index(agent: RunningAgent) -> wire.VectorHealth:
    if not agent.supply.embeds:
        return wire.VectorHealth(
            ok=agent.settings.provider == "none",
            reason="keyword search only: there is no embedding provider",
            enabled=agent.settings.provider != "none",
            available=False,
        )
    if agent.supply.wanted is None:
        return wire.VectorHealth(
            ok=False,
            reason="keyword search only, until the embedding provider has answered",
            available=False,
        )
    if agent.index.extension_trouble is not None:
        return wire.VectorHealth(
            ok=False, reason=f"{agent.index.extension_trouble}; vectors are compared in memory"
        )
    is_available = agent.supply.is_answering(agent.index.space or space_of(agent.supply.wanted))
    return wire.VectorHealth(available=is_available, reason=None if is_available else agent.supply.trouble)


def _on_the_wall(at: float) -> float:
    """Unix time of a moment of the monotonic clock."""
    return round(time.time() + at - time.monotonic(), 3)
