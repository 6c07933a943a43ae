"""Answers `status`, and reports the same to the service manager."""

import asyncio
import os
import time
from pathlib import Path

import msgspec
import structlog

from memd.agent.agents import Agents, AgentUnavailable, RunningAgent
from memd.config.reload import Configuration, digest
from memd.errors import MemdError
from memd.maintenance.loop import BackgroundTasks
from memd.memory_limit.enforce import MB, MemoryLimit, MemoryStatus
from memd.runtime.sd_notify import Notifier
from memd.runtime.threads import beside
from memd.runtime.timers import until_next_tick_s
from memd.server.request_times import RequestTimes
from memd.server.requests.agent_status import SWITCHES_S, agent_status, health, left_out_status
from memd.server.scope import Caller, DeniedSession
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreClosed
from memd.store.provider_records import sent_so_far
from memd.text.memory_paths import as_text
from memd.text.thesaurus import unreadable
from memd_client import messages as wire

log = structlog.get_logger()


class ProcessFacts:
    """Facts about the process, as opposed to its agents."""

    def __init__(
        self,
        version: str,
        socket: Path,
        configuration: Configuration,
        *,
        cache: EmbeddingStore | None = None,
        memory: MemoryLimit | None = None,
        background: BackgroundTasks | None = None,
    ) -> None:
        self.version = version
        self.cache = cache
        self._socket = socket
        self._configuration = configuration
        self._memory = memory
        self._background = background
        self._started = time.monotonic()

    @property
    def config(self) -> str | None:
        """The configuration file in use; None: built-in defaults."""
        file = self._configuration.in_force.file
        return None if file is None else as_text(file)

    def report(
        self, agents: dict[str, wire.AgentStatus], *, no_synonyms: str | None = None
    ) -> wire.StatusReport:
        """Return the reply to a status request; `no_synonyms` says why there are none."""
        return wire.StatusReport(
            version=self.version,
            protocol=wire.PROTOCOL,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 1),
            socket=as_text(self._socket),
            config=self.config,
            agents=agents,
            config_error=self._configuration.error,
            config_waiting=list(self._configuration.waiting),
            config_digest=digest(self._configuration.in_force),
            cache=health(None if self.cache is None else self.cache.failure),
            synonyms=health(no_synonyms),
            daemon_health=health(None if self._background is None else self._background.reason),
            damaged=[] if self.cache is None else list(map(as_text, self.cache.damaged_files())),
            memory=None if self._memory is None else _memory(self._memory.status()),
        )

    async def sent(self) -> list[wire.SentToProvider]:
        """Return what each provider was sent so far; empty if that cannot be read now, and `cache` in the report says why."""
        if self.cache is None:
            return []
        try:
            async with asyncio.timeout(SWITCHES_S):
                sent = await sent_so_far(self.cache)
        except (MemdError, TimeoutError):
            return []
        return [
            wire.SentToProvider(provider=provider, model=model, texts=one.texts, tokens=one.tokens)
            for (provider, model), one in sent.items()
        ]


def _memory(held: MemoryStatus | None) -> wire.Memory | None:
    if held is None:
        return None
    return wire.Memory(
        daemon_mb=round(held.daemon / MB, 1),
        worker_mb=round(held.workers / MB, 1),
        limit_mb=held.limit // MB,
        trouble=held.reason,
    )


async def status(
    request: wire.Status, caller: Caller, agents: Agents, facts: ProcessFacts, times: RequestTimes
) -> wire.StatusReport:
    """Report on the daemon and on the agents that the request means, as far as the caller may know.

    Raises:
        UnknownAgent: the request names an agent that does not exist.
        StoreClosed: an agent was replaced meanwhile; ask again.
    """
    left_out = agents.left_out() if caller.means_all(request.agent) else {}
    running: list[RunningAgent] = []
    try:
        running = await caller.agents(request.agent)
    except DeniedSession:
        pass
    except AgentUnavailable as unavailable:
        left_out = {unavailable.agent_id: unavailable.left_out}
    statuses = await asyncio.gather(*(_agent_status(agent, agents, times) for agent in running))
    by_id = {agent.id: one for agent, one in zip(running, statuses, strict=True)}
    by_id |= {name: left_out_status(one.settings, one.reason) for name, one in left_out.items()}
    report = facts.report(by_id, no_synonyms=await beside(unreadable))
    if caller.key is not None:
        return _for_session(report, is_private=caller.is_private)
    return msgspec.structs.replace(report, sent=await facts.sent())


async def _agent_status(agent: RunningAgent, agents: Agents, times: RequestTimes) -> wire.AgentStatus:
    """Return the status of an agent; if that fails, a status with the reason, so that the others are still reported.

    Raises:
        StoreClosed: the agent was replaced meanwhile.
    """
    try:
        return await agent_status(agent, times.searches(agent.id))
    except StoreClosed:
        await agents.wait_until_unchanging()
        if agents.all().get(agent.id) is not agent:
            raise
        reason = "its index is closed; start memd again with `memd-ctl service restart`"
    except MemdError as failure:
        reason = str(failure)
    except Exception:
        log.exception("server.status_failed", agent=agent.id)
        reason = "memd failed at telling how it is; its log has the details"
    return left_out_status(agent.settings, reason)


def _for_session(report: wire.StatusReport, *, is_private: bool) -> wire.StatusReport:
    """Remove what a session may not see.

    A private session gets all but the state of the configuration; others see whether each part works, and
    with which provider.
    """
    if is_private:
        # These may name other agents.
        return msgspec.structs.replace(report, config_error=None, config_waiting=[], config_digest="")
    return msgspec.structs.replace(
        report,
        pid=0,
        uptime_s=0.0,
        socket="",
        config=None,
        config_error=None,
        config_waiting=[],
        config_digest="",
        cache=wire.Health(ok=report.cache.ok),
        synonyms=wire.Health(ok=report.synonyms.ok),
        damaged=[],
        memory=None,
        agents={agent_id: _hide_details(status) for agent_id, status in report.agents.items()},
    )


def _hide_details(status: wire.AgentStatus) -> wire.AgentStatus:
    fallback = status.backend_fallback
    return wire.AgentStatus(
        workspace="",
        backend=status.backend,
        provider=status.provider,
        model=status.model,
        files=0,
        chunks=0,
        vectors=wire.Vectors(),
        dirty=0,
        skipped={},
        keyword=wire.Health(ok=status.keyword.ok),
        vector=wire.VectorHealth(
            ok=status.vector.ok, enabled=status.vector.enabled, available=status.vector.available
        ),
        watcher=wire.Health(ok=status.watcher.ok),
        provider_health=wire.Health(ok=status.provider_health.ok),
        store_bytes=0,
        store=wire.Health(ok=status.store.ok),
        backend_fallback=None
        if fallback is None
        else msgspec.structs.replace(fallback, reason="its owner can see why"),
    )


async def notify_manager(notifier: Notifier, agents: Agents, watchdog_s: float | None) -> None:
    """Report progress to the service manager, and reset its watchdog from the event loop; return if there is no manager."""
    if not notifier.is_heard:
        return
    said = ""
    while True:
        indexing = [
            f"{agent.id} {agent.index_service.progress[0]}/{agent.index_service.progress[1]}"
            for agent in agents.all().values()
            if agent.index_service.progress
        ]
        status = f"indexing {', '.join(indexing)}" if indexing else "ready"
        if status != said:
            notifier.status(status)
            said = status
        if watchdog_s is not None:
            notifier.watchdog()
        beat_s = min(watchdog_s or 2.0, 2.0)
        await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), beat_s))
