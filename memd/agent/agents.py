"""The agents of a daemon: who they are, and which of them a request means."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from memd.backends.backend import Backend
from memd.config.settings import AgentSettings
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.embedding.registry import AgentProviders
from memd.errors import MemdError, TransientError
from memd.index_service import IndexService
from memd.indexing.pending_changes import PendingChanges
from memd.providers.provider import space_of
from memd.store.index import Index
from memd.store.search_keywords import IndexMemory
from memd.text.memory_paths import Root
from memd_client.session_key import SessionKey

if TYPE_CHECKING:
    from memd.agent.publishing import Publisher


class UnknownAgent(MemdError):
    """No agent of that name, or none can be told."""


class LeftOut(msgspec.Struct, frozen=True):
    """An agent that is configured and cannot run just now; it is tried again by itself."""

    settings: AgentSettings
    reason: str
    try_again: Callable[[], Awaitable[None]]  # now, and wait for how that ends


class AgentUnavailable(TransientError):
    """The agent that is meant cannot run just now."""

    def __init__(self, agent_id: str, left_out: LeftOut) -> None:
        super().__init__(f"agent {agent_id} cannot run: {left_out.reason}")
        self.agent_id = agent_id
        self.left_out = left_out


class ForeignSession(MemdError):
    """The request names one agent, and its session key another."""


class RunningAgent:
    """One agent: its settings, what answers for it, and what keeps its index up to date."""

    def __init__(
        self,
        agent_id: str,
        settings: AgentSettings,
        *,
        index: Index,
        backend: Backend,
        sync: IndexService,
        pending: PendingChanges,
        roots: tuple[Root, ...],
        providers: AgentProviders,
    ) -> None:
        self.id = agent_id
        self.settings = settings
        self.index = index
        self.backend = backend
        self.sync = sync
        self.pending = pending
        self.roots = roots
        self.providers = providers  # what embeds
        self.publisher: Publisher | None = None  # None: nothing of it is published

    @property
    def embeds(self) -> bool:
        """Whether chunks that have no vector are to get one."""
        return self.providers.embeds and not self.sync.vectors_rest

    async def close(self) -> None:
        """End what serves, what keeps the index up to date, and the index: each, though another may fail."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.index.close)
            stack.push_async_callback(self.sync.stop)
            stack.push_async_callback(self.backend.close)

    @property
    def queue(self) -> EmbeddingQueue | None:
        """What gives chunks the vectors that are wanted of them; None: nobody does just now."""
        wanted = self.providers.wanted
        return self.sync.queue if wanted is None else self.providers.queue(space_of(wanted))

    @property
    def queues(self) -> frozenset[EmbeddingQueue]:
        """All that embed for the agent just now: that of the vectors that are wanted, and those that its indexes have."""
        wanted = self.queue
        return self.sync.queues if wanted is None else self.sync.queues | {wanted}


class Agents:
    """All agents by id; the map is swapped whole when the configuration is loaded again."""

    def __init__(self) -> None:
        self._by_id: Mapping[str, RunningAgent] = {}
        self._left_out: Mapping[str, LeftOut] = {}
        self._changing: frozenset[str] = frozenset()
        self._unchanging = asyncio.Event()
        self._unchanging.set()

    @contextlib.contextmanager
    def held(self, changing: Collection[str]) -> Iterator[None]:
        """While these agents come, go or change, requests that mean one of them wait; the others are not disturbed."""
        self._changing = frozenset(changing)
        self._unchanging.clear()
        try:
            yield
        finally:
            self._changing = frozenset()
            self._unchanging.set()

    async def wait_until_unchanging(self) -> None:
        """Wait until no agent changes."""
        await self._unchanging.wait()

    def swap(self, by_id: Mapping[str, RunningAgent], left_out: Mapping[str, LeftOut] | None = None) -> None:
        """From now on, these are the agents, and those that are left out."""
        self._by_id, self._left_out = dict(by_id), dict(left_out or {})

    def all(self) -> Mapping[str, RunningAgent]:
        """The agents of this moment."""
        return self._by_id

    def vectors(self) -> Mapping[str, IndexMemory]:
        """What searches of each agent hold in memory at this moment, by which the limit of memory is kept."""
        return {agent.id: agent.index.memory for agent in self._by_id.values()}

    def left_out(self) -> Mapping[str, LeftOut]:
        """The agents that cannot run at this moment."""
        return self._left_out

    async def meant_by(self, name: str | None, key: SessionKey | None) -> RunningAgent:
        """The agent named, else the session key's, else the only one, else main; once it does not change.

        Raises:
            ForeignSession: the name and the key are those of two agents, whether or not these are there.
            UnknownAgent: none of these is there. A session is not told which others there are.
            AgentUnavailable: it is configured and cannot run.
        """
        while True:
            try:
                agent = self._find(name, key)
            except (UnknownAgent, AgentUnavailable):
                if not self._changing:
                    raise
            else:
                if agent.id not in self._changing:
                    return agent
            await self._unchanging.wait()

    def _find(self, name: str | None, key: SessionKey | None) -> RunningAgent:
        of_key = None if key is None else key.agent
        if name is not None and of_key not in {None, name}:
            raise ForeignSession("the session belongs to another agent")
        wanted = of_key if name is None else name
        configured = {*self._by_id, *self._left_out}
        known = ", ".join(sorted(configured)) or "none"
        if wanted is not None:
            if wanted not in configured:
                others = f"; the configuration has: {known}" if key is None else ""
                raise UnknownAgent(f"there is no agent {wanted[:80]!r}{others}")
            return self._get(wanted)
        if len(configured) == 1:
            return self._get(next(iter(configured)))
        if "main" in configured:
            return self._get("main")
        hint = f"name one of {known}" if key is None else "use a session key that names one"
        raise UnknownAgent(f"several agents are configured and none is main: {hint}")

    def _get(self, agent_id: str) -> RunningAgent:
        if agent_id in self._left_out:
            raise AgentUnavailable(agent_id, self._left_out[agent_id])
        return self._by_id[agent_id]
