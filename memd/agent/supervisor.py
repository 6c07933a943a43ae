"""Starts and stops agents as the configuration says."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from random import Random

import msgspec
import structlog

from memd.agent.agents import Agents, LeftOut, RunningAgent
from memd.config.settings import AgentSettings, Config, differences
from memd.embedding.registry import AgentProviders, ProviderRegistry
from memd.errors import TransientError
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.timers import LONGEST_WAIT_S, Backoff
from memd.store.errors import StoreDamaged, StoreNewer, StoreUnavailable

log = structlog.get_logger()


Build = Callable[[str, AgentSettings, AgentProviders], Awaitable[RunningAgent]]
Keep = Callable[[RunningAgent], Awaitable[None]]


class _Running(msgspec.Struct, frozen=True):
    agent: RunningAgent
    task: asyncio.Task[None]


class _Absent:
    """An agent that could not be started."""

    def __init__(self, settings: AgentSettings, reason: str) -> None:
        self.settings = settings
        self.reason = reason
        self.hurried = asyncio.Event()
        self.tried = ChangeNotifier()  # notified at the end of each attempt
        self.task: asyncio.Task[None] | None = None

    async def try_again(self) -> None:
        """Retry now, and wait for the end of that attempt."""
        self.hurried.set()
        await self.tried.next()


class AgentSupervisor:
    """Runs the agents, and retries those that failed to start; the failure of one does not affect the others."""

    def __init__(
        self,
        agents: Agents,
        registry: ProviderRegistry,
        tasks: asyncio.TaskGroup,
        build: Build,
        keep: Keep,
        most: int = sys.maxsize,
    ) -> None:
        """Create the supervisor; `follow` starts agents.

        Args:
            agents: Where requests find the agents.
            registry: Gives each agent its embedding providers.
            tasks: The group of the agents' tasks: one that fails for good ends them all.
            build: Opens an agent's index and builds the agent.
            keep: Keeps an agent's index up to date until cancelled, or returns where the agent's roots lead elsewhere.
            most: The most agents that may run; the others are left out.
        """
        self._agents = agents
        self._registry = registry
        self._tasks = tasks
        self._build = build
        self._keep = keep
        self._most = most
        self._begun: set[str] = set()  # agents that are being started
        self._running: dict[str, _Running] = {}
        self._absent: dict[str, _Absent] = {}
        self._providers: dict[str, AgentProviders] = {}  # of running and absent agents
        self._starting = asyncio.Lock()
        self._restarts: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._rng = Random()

    async def follow(self, new: Config) -> None:
        """Stop agents that were removed or changed, and start those that are new or changed; the others keep running.

        Requests for a changing agent wait meanwhile, so that none gets "unknown agent" during a change of
        settings. The changes are computed against what actually runs, so that the next call completes what an
        earlier one did not.
        """
        async with self._starting:
            there = {agent_id: running.agent.settings for agent_id, running in self._running.items()}
            there |= {agent_id: absent.settings for agent_id, absent in self._absent.items()}
            await self._change(differences(there, new.agents), new.agents)

    async def resolve_again(self) -> None:
        """Start those agents again of which a configured path leads elsewhere than when they were started, or nowhere.

        What they had from where it led is forgotten.
        """
        async with self._starting:
            agents = [running.agent for running in self._running.values()]
            links = await asyncio.gather(*(agent.index_service.changed_link() for agent in agents))
            moved = [agent for agent, link in zip(agents, links, strict=True) if link is not None]
            for agent in moved:
                with contextlib.suppress(StoreUnavailable, StoreDamaged):  # a scan may forget it later
                    await agent.index_service.forget_links()
            if moved:
                settings = {agent.id: agent.settings for agent in moved}
                await self._change(frozenset(settings), settings)

    async def _change(self, changed: frozenset[str], wanted: Mapping[str, AgentSettings]) -> None:
        """Stop these agents, and start those of them that are wanted; the caller holds `_starting`."""
        # Keep providers alive between stop and start: the changed agent may need the same ones.
        with self._agents.held(changed), self._registry.kept():
            try:
                for agent_id in sorted(changed & self._running.keys()):
                    await self._stop(agent_id)
                for agent_id in changed & self._absent.keys():
                    self._forget(agent_id)
                # Concurrently, so that an agent that waits for its disk delays no other.
                ids = sorted(changed & wanted.keys(), key=lambda agent_id: (agent_id != "main", agent_id))
                starting = {agent_id: wanted[agent_id] for agent_id in ids}
                reasons = await asyncio.gather(*(self._start(*each) for each in starting.items()))
                for (agent_id, settings), reason in zip(starting.items(), reasons, strict=True):
                    if reason is not None:
                        absent = self._absent[agent_id] = _Absent(settings, reason)
                        absent.task = self._tasks.create_task(self._keep_trying(agent_id, absent))
            finally:
                self._swap()  # no request may reach an agent that was stopped

    async def _keep_running(self, agent: RunningAgent) -> None:
        """Keep an agent's index up to date until cancelled; where its roots lead elsewhere, start it again with them."""
        await self._keep(agent)
        log.info("agent.roots_moved", agent=agent.id)
        restart = self._tasks.create_task(self._restart(agent))
        self._restarts.add(restart)
        restart.add_done_callback(self._restarts.discard)

    async def _restart(self, agent: RunningAgent) -> None:
        async with self._starting:
            running = self._running.get(agent.id)
            if running is not None and running.agent is agent and not self._is_closed:
                await self._change(frozenset({agent.id}), {agent.id: agent.settings})

    async def _start(self, agent_id: str, settings: AgentSettings) -> str | None:
        """Start an agent; return why that is not possible now, or None."""
        if len(self._begun | self._running.keys()) >= self._most:
            return self._left_out(
                agent_id,
                f"memd may have too few files open for more than {self._most} agents: raise `ulimit -n`, or LimitNOFILE= of "
                "the service, and start memd again",
            )
        self._begun.add(agent_id)
        try:
            if agent_id not in self._providers:
                self._providers[agent_id] = await self._registry.providers_for(settings)
            agent = await self._build(agent_id, settings, self._providers[agent_id])
        except (TransientError, StoreDamaged, StoreNewer, OSError) as failure:
            return self._left_out(agent_id, str(failure))
        except Exception as bug:  # noqa: BLE001 - logged; the other agents must start
            return self._left_out(agent_id, "memd failed at starting it; its log has the details", bug)
        except asyncio.CancelledError:
            self._give_back(agent_id)  # the next start may have other settings
            raise
        finally:
            self._begun.discard(agent_id)
        self._running[agent_id] = _Running(agent, self._tasks.create_task(self._keep_running(agent)))
        log.info("agent.started", agent=agent_id, workspace=str(settings.workspace))
        return None

    def _left_out(self, agent_id: str, reason: str, bug: Exception | None = None) -> str:
        """Log the reason why an agent is left out, unless it was logged already; return it."""
        before = self._absent.get(agent_id)
        if before is None or before.reason != reason:
            trace = {} if bug is None else {"exc_info": bug}
            log.error("agent.left_out", agent=agent_id, reason=reason, **trace)
        return reason

    def _swap(self) -> None:
        self._agents.swap(
            {agent_id: running.agent for agent_id, running in self._running.items()},
            {
                agent_id: LeftOut(absent.settings, absent.reason, absent.try_again)
                for agent_id, absent in self._absent.items()
            },
        )

    async def _keep_trying(self, agent_id: str, absent: _Absent) -> None:
        backoff = Backoff(self._rng, cap_s=LONGEST_WAIT_S)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff.failed()):
                    await absent.hurried.wait()
            absent.hurried.clear()
            async with self._starting:
                reason = await self._start(agent_id, absent.settings)
                if reason is None:
                    del self._absent[agent_id]
                else:
                    absent.reason = reason
                self._swap()
            absent.tried.notify()
            if reason is None:
                return

    def _forget(self, agent_id: str) -> None:
        absent = self._absent.pop(agent_id)
        self._give_back(agent_id)
        if absent.task is not None:
            absent.task.cancel()
        absent.tried.notify()

    def _give_back(self, agent_id: str) -> None:
        """Release an agent's embedding providers."""
        if (providers := self._providers.pop(agent_id, None)) is not None:
            providers.release()

    async def _stop(self, agent_id: str) -> None:
        running = self._running.pop(agent_id)
        running.task.cancel()
        try:
            await asyncio.wait([running.task])
            await running.agent.close()
        except Exception:
            # The agent no longer serves; the others must still be stopped and started.
            log.exception("agent.close_failed", agent=agent_id)
        finally:
            self._give_back(agent_id)
        log.info("agent.stopped", agent=agent_id)

    async def close(self) -> None:
        """Stop all agents concurrently; their indexes stay on disk."""
        self._is_closed = True
        if restarts := list(self._restarts):
            for restart in restarts:
                restart.cancel()
            await asyncio.wait(restarts)
        for agent_id in list(self._absent):
            self._forget(agent_id)
        await asyncio.gather(*(self._stop(agent_id) for agent_id in list(self._running)))
