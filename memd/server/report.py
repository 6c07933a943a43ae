"""What status says."""

import asyncio
import os
import time
from pathlib import Path

import msgspec

from memd.agents import Agent, LeftOut
from memd.server import provider
from memd.server.embedding import embedding
from memd.store.chunks import Counts
from memd.store.embeddings import EmbeddingStore
from memd.store.trouble import StoreClosed, StoreDamaged, StoreUnavailable
from memd_client import messages as wire

COUNT_S = 5.0  # for which an index may keep the status of all others waiting


class Facts:
    """What is true of the process, whatever the agents do."""

    def __init__(self, version: str, socket: Path, config: Path | None) -> None:
        self.version = version
        self._socket = socket
        self.config = config
        self.config_error: str | None = None  # why the last reload kept the old configuration
        self.cache: EmbeddingStore | None = None  # once there is one
        self._started = time.monotonic()

    def report(self, agents: dict[str, wire.AgentStatus]) -> wire.StatusReport:
        """The reply to a Status request."""
        return wire.StatusReport(
            version=self.version,
            protocol=wire.PROTOCOL,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 1),
            socket=str(self._socket),
            config=None if self.config is None else str(self.config),
            agents=agents,
            config_error=self.config_error,
            cache=_health(None if self.cache is None else self.cache.trouble),
            damaged=[] if self.cache is None else [str(file) for file in self.cache.damaged_files()],
        )


async def agent_status(agent: Agent) -> wire.AgentStatus:
    """One agent at a glance; nothing of its index where that does not answer.

    Raises:
        StoreClosed: the agent was stopped.
    """
    counts, broken = await _counts(agent)
    health = agent.sync.health
    last = agent.sync.last_pass
    skipped = dict(health.skipped)
    if counts.set_aside:
        skipped["text cannot be embedded"] = counts.set_aside
    progress = agent.sync.progress
    return wire.AgentStatus(
        workspace=str(agent.settings.workspace),
        backend=agent.settings.backend,
        provider=agent.supply.provider_name,
        model=agent.supply.model_name,
        files=counts.files,
        chunks=counts.chunks,
        vectors=wire.Vectors(
            done=counts.done,
            waiting=counts.waiting if agent.supply.embeds else 0,
            eta_s=agent.queue.eta_s(counts.waiting) if agent.queue is not None else None,
        ),
        dirty=agent.sync.pending,
        skipped=skipped,
        keyword=wire.Health(ok=not (health.keyword or broken), reason=health.keyword or broken),
        vector=_vector_health(agent),
        watcher=wire.Health(ok=health.watcher is None, reason=health.watcher or health.watcher_note),
        provider_health=provider.health(agent),
        store_bytes=agent.index.store_bytes,
        last_pass=None if last is None else wire.Pass(at=last.at, took_s=last.took_s, failed=last.failed),
        rebuild=health.rebuild,
        sources=list(agent.settings.sources),
        extra_paths=[str(path) for path in agent.settings.extra_paths],
        progress=None if progress is None else wire.Progress(done=progress[0], total=progress[1]),
        store=_health(broken or health.store),
        damaged=[str(file) for file in agent.index.damaged_files()],
        embedding=None
        if agent.queue is None
        else embedding(
            agent.queue, agent.id, use_cache=agent.settings.cache.enabled, trouble=agent.supply.trouble
        ),
        endpoint=provider.endpoint(agent),
        chosen=agent.supply.engine.choice.because,
        passed_over=provider.passed_over(agent),
        fallback=provider.fallback(agent),
    )


def left_out_status(left_out: LeftOut) -> wire.AgentStatus:
    """An agent that cannot run, and why."""
    settings = left_out.settings
    return wire.AgentStatus(
        workspace=str(settings.workspace),
        backend=settings.backend,
        provider="none",
        model="",
        files=0,
        chunks=0,
        vectors=wire.Vectors(),
        dirty=0,
        skipped={},
        keyword=wire.Health(),
        vector=wire.Health(),
        watcher=wire.Health(),
        provider_health=wire.Health(),
        store_bytes=0,
        sources=list(settings.sources),
        extra_paths=[str(path) for path in settings.extra_paths],
        store=_health(left_out.reason),
    )


def _health(trouble: str | None) -> wire.Health:
    return wire.Health(ok=trouble is None, reason=trouble)


async def _counts(agent: Agent) -> tuple[Counts, str | None]:
    """What the index holds, and why that cannot be told."""
    try:
        async with asyncio.timeout(COUNT_S):
            return await agent.index.counts(), None
    except StoreClosed:
        raise
    except StoreDamaged as damage:
        agent.sync.damaged(str(damage))
        broken = str(damage)
    except StoreUnavailable as trouble:
        broken = str(trouble)
    except TimeoutError:
        broken = f"the index has not answered for {COUNT_S:g} s"
    return Counts(0, 0, 0, 0, 0), broken


def for_session(report: wire.StatusReport, *, is_private: bool) -> wire.StatusReport:
    """What of a report a session is told: that it works, and what it works with; the rest where only the owner reads along."""
    if is_private:
        return msgspec.structs.replace(report, config_error=None)  # it may name other agents
    return msgspec.structs.replace(
        report,
        config=None,
        config_error=None,
        cache=wire.Health(ok=report.cache.ok),
        damaged=[],
        agents={agent_id: _for_anybody(status) for agent_id, status in report.agents.items()},
    )


def _for_anybody(status: wire.AgentStatus) -> wire.AgentStatus:
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
        vector=wire.Health(ok=status.vector.ok),
        watcher=wire.Health(ok=status.watcher.ok),
        provider_health=wire.Health(ok=status.provider_health.ok),
        store_bytes=0,
        store=wire.Health(ok=status.store.ok),
    )


def _vector_health(agent: Agent) -> wire.Health:
    if not agent.supply.embeds:
        return wire.Health(
            ok=agent.settings.provider == "none", reason="keyword search only: there is no embedding provider"
        )
    if agent.supply.wanted is None:
        return wire.Health(ok=False, reason="keyword search only, until the embedding provider has answered")
    if agent.index.extension_trouble is not None:
        return wire.Health(
            ok=False, reason=f"{agent.index.extension_trouble}; vectors are compared in memory"
        )
    return wire.Health()
