"""The agents of a daemon, and which of them a request means."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from memd.backends.backend import Backend
from memd.config.settings import AgentSettings
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.registry import AgentProviders
from memd.errors import MemdError, TransientError
from memd.index_service import IndexService
from memd.indexing.debounced_changes import DebouncedChanges
from memd.providers.provider import space_of
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.index import Index
from memd.store.search_keywords import IndexMemory
from memd.text.memory_paths import Root
from memd_client.session_key import SessionKey

if TYPE_CHECKING:
    from memd.agent.published_vectors import ServerVectors
    from memd.agent.publisher import Publisher


class UnknownAgent(MemdError):
    """There is no agent of that name, or the request names none and no default applies."""


class LeftOut(msgspec.Struct, frozen=True):
    """A configured agent that cannot run now; starting it is retried automatically."""

    settings: AgentSettings
    reason: str
    try_again: Callable[[], Awaitable[None]]  # retry now; returns when the attempt has ended


class AgentUnavailable(TransientError):
    """The agent that the request means cannot run now."""

    def __init__(self, agent_id: str, left_out: LeftOut) -> None:
        super().__init__(f"agent {agent_id} cannot run: {left_out.reason}")
        self.agent_id = agent_id
        self.left_out = left_out


class ForeignSession(MemdError):
    """The request names one agent, and its session key belongs to another."""


class RunningAgent:
    """One agent: its settings, its index, the service that updates the index, and the backend that answers."""

    def __init__(
        self,
        agent_id: str,
        settings: AgentSettings,
        *,
        index: Index,
        backend: Backend,
        index_service: IndexService,
        pending: DebouncedChanges,
        roots: tuple[Root, ...],
        providers: AgentProviders,
    ) -> None:
        self.id = agent_id
        self.settings = settings
        self.index = index
        self.backend = backend
        self.index_service = index_service
        self.pending = pending
        self.roots = roots
        self.providers = providers
        self.publisher: Publisher | None = None  # None: the agent publishes nothing
        self.published: ServerVectors | None = None  # likewise

    @property
    def embeds(self) -> bool:
        """Whether chunks without a vector are to be embedded."""
        return self.providers.embeds and not self.index_service.vectors_suspended

    async def close(self) -> None:
        """Close the backend, the index service and the index; each is closed even if another fails."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.index.close)
            stack.push_async_callback(self.index_service.stop)
            stack.push_async_callback(self.backend.close)
            if self.published is not None:
                stack.callback(self.published.close)

    @property
    def queue(self) -> EmbeddingQueue | None:
        """The queue that embeds with the wanted model; None if there is none now."""
        wanted = self.providers.wanted
        return self.index_service.queue if wanted is None else self.providers.queue(space_of(wanted))

    @property
    def queues(self) -> frozenset[EmbeddingQueue]:
        """All queues that embed for the agent now: the wanted model's, and those of the models that its indexes use."""
        wanted = self.queue
        return self.index_service.queues if wanted is None else self.index_service.queues | {wanted}


class Agents:
    """All agents by id; a configuration reload replaces the whole map."""

    def __init__(self) -> None:
        self._by_id: Mapping[str, RunningAgent] = {}
        self._left_out: Mapping[str, LeftOut] = {}
        self._changing: frozenset[str] = frozenset()
        self._unchanging = asyncio.Event()
        self._unchanging.set()
        self._swapped = ChangeNotifier()

    @contextlib.contextmanager
    def held(self, changing: Collection[str]) -> Iterator[None]:
        """Hold requests that mean one of these agents within the block, while they start, stop or change."""
        self._changing = frozenset(changing)
        self._unchanging.clear()
        try:
            yield
        finally:
            self._changing = frozenset()
            self._unchanging.set()

    async def wait_until_unchanging(self) -> None:
        """Wait until no agent is being started, stopped or changed."""
        await self._unchanging.wait()

    def swap(self, by_id: Mapping[str, RunningAgent], left_out: Mapping[str, LeftOut] | None = None) -> None:
        """Replace the running and the failed agents."""
        self._by_id, self._left_out = dict(by_id), dict(left_out or {})
        self._swapped.notify()

    async def replaced(self, agent: RunningAgent) -> None:
        """Wait until an agent runs no more, or was started again."""
        while self._by_id.get(agent.id) is agent:
            await self._swapped.next()

    def all(self) -> Mapping[str, RunningAgent]:
        """Return the running agents."""
        return self._by_id

    def vectors(self) -> Mapping[str, IndexMemory]:
        """Return what each agent's index holds in memory, for the memory limit."""
        return {agent.id: agent.index.memory for agent in self._by_id.values()}

    def left_out(self) -> Mapping[str, LeftOut]:
        """Return the agents that cannot run now."""
        return self._left_out

    async def meant_by(self, name: str | None, key: SessionKey | None) -> RunningAgent:
        """Return the agent named, else the session key's, else the only one, else main; wait while it changes.

        Raises:
            ForeignSession: the name and the key belong to different agents, whether or not these exist.
            UnknownAgent: the agent does not exist. A session is not told which agents there are.
            AgentUnavailable: the agent is configured and cannot run.
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
