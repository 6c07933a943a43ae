"""Starts and stops agents as the configuration has them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from random import Random

import msgspec
import structlog

from memd.agents import Agent, Agents
from memd.config import AgentSettings, Config, differences
from memd.embed.choose import Choice
from memd.embed.provider import EmbedUnavailable, Provider
from memd.store.embeddings import EmbeddingStore
from memd.sync.vectors import VectorQueue

log = structlog.get_logger()

Choose = Callable[[AgentSettings], Choice]
Build = Callable[[str, AgentSettings, Choice, VectorQueue | None], Awaitable[Agent]]
Keep = Callable[[Agent], Awaitable[None]]


class Engines:
    """Embedding providers with their queues: one for all agents whose settings ask for the same."""

    def __init__(self, cache: EmbeddingStore, tasks: asyncio.TaskGroup, choose: Choose) -> None:
        self._cache = cache
        self._tasks = tasks
        self._choose = choose
        self._made: dict[tuple[str, str], tuple[Choice, VectorQueue | None]] = {}
        self._working: list[asyncio.Task[None]] = []

    def get(self, settings: AgentSettings) -> tuple[Choice, VectorQueue | None]:
        """The provider that these settings mean, and its queue where there is one."""
        wanted = (settings.provider, settings.model)
        if wanted not in self._made:
            choice = self._choose(settings)
            queue = None
            if choice.provider is not None:
                queue = VectorQueue(choice.provider, self._cache, settings.cache.max_entries, Random())
                self._working += [
                    self._tasks.create_task(queue.run()),
                    self._tasks.create_task(_warm(choice.provider)),
                ]
            name = "none" if choice.provider is None else choice.provider.identity.provider
            log.info("embed.provider_chosen", provider=name, reason=choice.reason)
            self._made[wanted] = choice, queue
        return self._made[wanted]

    async def close(self) -> None:
        """End queues, workers and threads."""
        for task in self._working:
            task.cancel()
        for choice, _ in self._made.values():
            if choice.provider is not None:
                await choice.provider.close()


class _Running(msgspec.Struct, frozen=True):
    agent: Agent
    task: asyncio.Task[None]


class Fleet:
    """The agents that run."""

    def __init__(
        self, agents: Agents, engines: Engines, tasks: asyncio.TaskGroup, build: Build, keep: Keep
    ) -> None:
        """Nothing runs yet.

        Args:
            agents: Where requests find the agents.
            engines: Where agents get their embeddings.
            tasks: What the agents' tasks belong to: one that fails for good ends them all.
            build: Opens an agent's index and wires it up.
            keep: Keeps an agent's index up to date, for ever.
        """
        self._agents = agents
        self._engines = engines
        self._tasks = tasks
        self._build = build
        self._keep = keep
        self._running: dict[str, _Running] = {}

    async def follow(self, old: Config | None, new: Config) -> None:
        """Stop what is gone or changed, start what is new or changed; the others are not disturbed.

        Requests wait meanwhile: nobody is told of an agent that it is missing while it changes its settings.
        """
        changed = frozenset(new.agents) if old is None else differences(old, new)
        with self._agents.held():
            for agent_id in sorted(changed & self._running.keys()):
                await self._stop(agent_id)
            for agent_id in sorted(changed & new.agents.keys()):
                settings = new.agents[agent_id]
                agent = await self._build(agent_id, settings, *self._engines.get(settings))
                self._running[agent_id] = _Running(agent, self._tasks.create_task(_run(self._keep(agent))))
                log.info("agent.started", agent=agent_id, workspace=str(settings.workspace))
            self._agents.swap({agent_id: running.agent for agent_id, running in self._running.items()})

    async def _stop(self, agent_id: str) -> None:
        running = self._running.pop(agent_id)
        running.task.cancel()
        await asyncio.wait([running.task])
        await running.agent.sync.stop()
        await running.agent.index.close()
        if running.agent.queue is not None:
            await running.agent.queue.leave(agent_id)
        log.info("agent.stopped", agent=agent_id)

    async def close(self) -> None:
        """Stop all agents at once; what is there of their indexes stays."""
        await asyncio.gather(*(self._stop(agent_id) for agent_id in list(self._running)))


async def _warm(provider: Provider) -> None:
    """Load the model, so that the first question does not wait for it."""
    with contextlib.suppress(EmbedUnavailable):
        await provider.embed_query("warm-up")


async def _run(work: Awaitable[None]) -> None:
    await work
