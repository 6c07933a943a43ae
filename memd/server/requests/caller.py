"""Who sends a request, which agents it means, and what it may see of them."""

import msgspec
import structlog

from memd.agent.agents import Agents, AgentUnavailable, ForeignSession, RunningAgent
from memd.backends import scope
from memd.backends.scope import Denied, Granted
from memd.config.settings import AgentSettings
from memd.errors import MemdError
from memd.model import Source
from memd.runtime.timing import spent
from memd_client import session_key

log = structlog.get_logger()


class BadRequest(MemdError):
    """The request makes no sense; the message says what to send instead."""


class DeniedSession(MemdError):
    """This session may not have what it asks for."""


class AllowedAgent(msgspec.Struct, frozen=True):
    """An agent that a request means, and what the caller may see of it."""

    agent: RunningAgent
    granted: Granted


class Caller:
    """The session that one request comes from; its key is parsed here, once."""

    def __init__(self, agents: Agents, raw_key: str | None) -> None:
        """Parse the session key of a request.

        Args:
            agents: All agents of the daemon.
            raw_key: As the client gave it; None: the owner asks.
        """
        self._agents = agents
        self.key = None if raw_key is None else session_key.parse(raw_key)

    @property
    def is_private(self) -> bool:
        """Whether the owner asks, or a conversation that nobody else reads along."""
        return self.key is None or self.key.is_owner_private

    async def agent(self, name: str | None, source: Source | None = None) -> AllowedAgent | None:
        """The agent that a request means; None: this session may see nothing of it.

        Args:
            name: The agent that the request names; None: it names none.
            source: What it wants to search; None: every source.

        Raises:
            UnknownAgent, AgentUnavailable.
        """
        try:
            with spent("waiting for its agent"):
                agent = await self._agents.meant_by(name, self.key)
        except ForeignSession as foreign:
            log.info("scope.denied", agent=None, reason=str(foreign))
            return None
        except AgentUnavailable as unavailable:
            # Who may not ask is not told that there is no answer either.
            if self._granted(unavailable.agent_id, unavailable.left_out.settings, source) is None:
                return None
            raise
        granted = self._granted(agent.id, agent.settings, source)
        return None if granted is None else AllowedAgent(agent, granted)

    def _granted(self, agent_id: str, settings: AgentSettings, source: Source | None) -> Granted | None:
        access = scope.access(
            settings.scope, self.key, agent=agent_id, source=source, sources=settings.sources
        )
        if isinstance(access, Denied):
            log.info("scope.denied", agent=agent_id, reason=access.reason)
            return None
        return access

    def means_all(self, name: str | None) -> bool:
        """Whether a request means every agent: the owner's, without a name."""
        return name is None and self.key is None

    async def agents(self, name: str | None) -> list[RunningAgent]:
        """The running agents that a request means: the one it names, the session's own, or all.

        Raises:
            DeniedSession: the session may see nothing of it.
            UnknownAgent, AgentUnavailable.
        """
        if self.means_all(name):
            await self._agents.settled()
            return list(self._agents.all().values())
        allowed = await self.agent(name)
        if allowed is None:
            raise DeniedSession("this session may not use this memory")
        return [allowed.agent]

    async def agents_to_change(self, name: str | None, denial: str) -> list[RunningAgent]:
        """The same, for a request that changes something: only the owner may send it, and an agent must run.

        Args:
            name: The agent that the request names; None: it names none.
            denial: What a session hears whose conversation others read along.

        Raises:
            DeniedSession: the session may not.
            UnknownAgent, AgentUnavailable.
        """
        agents = await self.agents(name)
        if not agents:
            for agent_id, left_out in self._agents.left_out().items():
                raise AgentUnavailable(agent_id, left_out)
        if not self.is_private:
            raise DeniedSession(denial)
        return agents
