"""The agents of a daemon: who they are, and which of them a request means."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping

from memd.backends.backend import Backend
from memd.config import AgentSettings
from memd.embed.choose import Choice
from memd.errors import MemdError
from memd.paths import Root
from memd.store.index import Index
from memd.sync.dirty import Dirty
from memd.sync.loop import SyncLoop
from memd.sync.vectors import VectorQueue
from memd_client import session_key


class UnknownAgent(MemdError):
    """No agent of that name, or none can be told."""


class Agent:
    """One agent: its settings, what answers for it, and what keeps its index up to date."""

    def __init__(
        self,
        agent_id: str,
        settings: AgentSettings,
        *,
        index: Index,
        backend: Backend,
        sync: SyncLoop,
        dirty: Dirty,
        roots: tuple[Root, ...],
        choice: Choice,
        queue: VectorQueue | None,
    ) -> None:
        self.id = agent_id
        self.settings = settings
        self.index = index
        self.backend = backend
        self.sync = sync
        self.dirty = dirty
        self.roots = roots
        self.choice = choice  # of the embedding provider, and why
        self.queue = queue  # None: keyword-only


class Agents:
    """All agents by id; the map is swapped whole when the configuration is loaded again."""

    def __init__(self) -> None:
        self._by_id: Mapping[str, Agent] = {}
        self._settled = asyncio.Event()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While the agents change, requests wait."""
        self._settled.clear()
        try:
            yield
        finally:
            self._settled.set()

    async def settled(self) -> None:
        """Wait until the agents do not change."""
        await self._settled.wait()

    def swap(self, by_id: Mapping[str, Agent]) -> None:
        """From now on, these are the agents."""
        self._by_id = dict(by_id)

    def all(self) -> Mapping[str, Agent]:
        """The agents of this moment."""
        return self._by_id

    def get(self, name: str) -> Agent:
        """An agent by its id.

        Raises:
            UnknownAgent: there is none of that id.
        """
        agent = self._by_id.get(name)
        if agent is None:
            known = ", ".join(sorted(self._by_id)) or "none"
            raise UnknownAgent(f"there is no agent {name[:80]!r}; the configuration has: {known}")
        return agent

    def meant_by(self, name: str | None, raw_key: str | None) -> Agent:
        """The agent named, else the session key's, else the only one, else main.

        Raises:
            UnknownAgent: none of these is there.
        """
        if name is not None:
            return self.get(name)
        of_key = session_key.parse(raw_key).agent if raw_key is not None else None
        if of_key is not None:
            return self.get(of_key)
        if len(self._by_id) == 1:
            return next(iter(self._by_id.values()))
        if "main" in self._by_id:
            return self._by_id["main"]
        raise UnknownAgent(
            f"several agents are configured and none is main: name one of {', '.join(sorted(self._by_id))}"
        )
