"""Which backend answers an agent's searches."""

from memd.backends.backend import BackendEnvironment, IndexedAgent
from memd.backends.builtin import Builtin
from memd.backends.fallback import Fallback, FallbackTimeouts
from memd.backends.qmd.backend import QmdBackend


def choose_backend(
    agent: IndexedAgent, environment: BackendEnvironment, builtin: Builtin
) -> Builtin | Fallback:
    """The backend that the settings name, with the built-in one behind it.

    The text of the built-in index is kept up to date in any case: `get`, scope and the fence ask it, and a fallback finds it
    ready. Its vectors are not: nobody shall pay twice, so they rest for as long as the other backend answers.
    """
    if agent.settings.backend == "builtin":
        return builtin
    agent.sync.rest_vectors()

    async def create() -> QmdBackend:
        return await QmdBackend.create(agent, environment, builtin)

    timeouts = FallbackTimeouts(agent.settings.qmd.timeout_ms / 1000, agent.settings.qmd.cooldown_seconds)
    return Fallback(agent.id, "qmd", create, builtin, timeouts, vectors=agent.sync)
