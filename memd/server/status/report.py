"""What status says."""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.agent.agents import RunningAgent
from memd.backends.backend import BackendStandIn
from memd.config.reload import Configuration
from memd.config.reload_policy import digest
from memd.config.settings import AgentSettings
from memd.memory_limit.limit import MB, MemoryLimit, MemoryStatus
from memd.server.status import provider
from memd.server.status.embedding import embedding
from memd.store.chunks import Counts
from memd.store.embeddings import EmbeddingStore
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable
from memd_client import messages as wire

COUNT_S = 5.0  # for which an index may keep the status of all others waiting
WISHES_S = 0.5  # for which embeddings.sqlite may, until it has said whether an agent was paused


_UNHEARD = {
    "unknown_format": "transcript in no known format",
    "subagent": "transcript of a subagent",
}


class ProcessFacts:
    """What is true of the process, whatever the agents do."""

    def __init__(
        self,
        version: str,
        socket: Path,
        configuration: Configuration,
        *,
        cache: EmbeddingStore | None = None,
        memory: MemoryLimit | None = None,
    ) -> None:
        self.version = version
        self.cache = cache
        self._socket = socket
        self._configuration = configuration
        self._memory = memory
        self._started = time.monotonic()

    @property
    def config(self) -> str | None:
        """The configuration file in use; None: built-in defaults."""
        file = self._configuration.in_force.file
        return None if file is None else str(file)

    def report(self, agents: dict[str, wire.AgentStatus]) -> wire.StatusReport:
        """The reply to a Status request."""
        return wire.StatusReport(
            version=self.version,
            protocol=wire.PROTOCOL,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 1),
            socket=str(self._socket),
            config=self.config,
            agents=agents,
            config_error=self._configuration.error,
            config_waiting=list(self._configuration.waiting),
            config_digest=digest(self._configuration.in_force),
            cache=_health(None if self.cache is None else self.cache.trouble),
            damaged=[] if self.cache is None else [str(file) for file in self.cache.damaged_files()],
            memory=None if self._memory is None else _memory(self._memory.standing()),
        )


async def agent_status(agent: RunningAgent, searches: wire.Searches | None) -> wire.AgentStatus:
    """One agent at a glance; nothing of its index where that does not answer.

    Args:
        agent: Runs.
        searches: How long the last ones took.

    Raises:
        StoreClosed: the agent was stopped.
    """
    rebuilding = agent.sync.health.rebuild
    held = await _held(agent)
    if (queue := agent.queue) is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WISHES_S):
                await queue.recall(agent.id)
    counts, broken = held.counts, held.broken
    health = agent.sync.health
    last = agent.sync.last_pass
    skipped = dict(health.skipped)
    if counts.set_aside:
        skipped["text cannot be embedded"] = counts.set_aside
    skipped |= {_UNHEARD.get(why, why): n for why, n in _below("sessions.", held.tallies).items()}
    progress = agent.sync.progress
    backend = agent.backend.status()
    return wire.AgentStatus(
        workspace=str(agent.settings.workspace),
        backend=backend.backend,
        provider=backend.provider,
        model=backend.model,
        files=counts.files,
        chunks=counts.chunks,
        vectors=wire.Vectors(
            done=counts.done,
            waiting=counts.waiting if agent.embeds else 0,
            eta_s=agent.queue.eta_s(counts.waiting) if agent.embeds and agent.queue is not None else None,
            note=f"they rest while {backend.backend} answers" if agent.sync.vectors_rest else None,
            resident_mb=round(agent.index.vectors.resident_bytes / MB, 1),
            on_disk=agent.index.vectors.is_shelved,
        ),
        dirty=agent.sync.pending,
        skipped=skipped,
        keyword=wire.Health(ok=not (health.keyword or broken), reason=health.keyword or broken),
        vector=msgspec.convert(backend.vector, wire.VectorHealth, from_attributes=True),
        watcher=wire.Health(
            ok=health.watcher is None,
            reason="; ".join(filter(None, (health.watcher, health.watcher_note))) or None,
        ),
        provider_health=provider.health(agent),
        store_bytes=agent.index.store_bytes,
        last_pass=None if last is None else wire.Pass(at=last.at, took_s=last.took_s, failed=last.failed),
        # What was counted may be that of the index before, even if another one is in its place by now.
        rebuild=health.rebuild or rebuilding,
        sources=list(agent.settings.sources),
        extra_paths=[str(path) for path in agent.settings.extra_paths],
        progress=None if progress is None else wire.Progress(done=progress[0], total=progress[1]),
        store=_health(broken or health.store or health.maintenance),
        damaged=[str(file) for file in agent.index.damaged_files()],
        embedding=None if agent.queue is None or agent.sync.vectors_rest else embedding(agent),
        endpoint=provider.endpoint(agent),
        chosen=agent.supply.pair.choice.because,
        passed_over=provider.passed_over(agent),
        fallback=provider.fallback(agent),
        sessions=_sessions(agent, held),
        redacted=_below("redacted.", held.tallies),
        backend_fallback=_backend_fallback(backend.stand_in),
        qmd=None
        if backend.program is None
        else msgspec.convert(backend.program, wire.QmdStatus, from_attributes=True),
        searches=searches,
    )


def _backend_fallback(stand_in: BackendStandIn | None) -> wire.BackendFallback | None:
    if stand_in is None:
        return None
    return wire.BackendFallback(
        from_=stand_in.instead_of,
        reason=stand_in.reason,
        since=stand_in.since,
        retry_at=stand_in.retry_at,
    )


def _below(prefix: str, tallies: Mapping[str, int]) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in tallies.items() if name.startswith(prefix)}


def left_out_status(settings: AgentSettings, reason: str) -> wire.AgentStatus:
    """An agent of which no more can be told than why that is so."""
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
        vector=wire.VectorHealth(),
        watcher=wire.Health(),
        provider_health=wire.Health(),
        store_bytes=0,
        sources=list(settings.sources),
        extra_paths=[str(path) for path in settings.extra_paths],
        store=_health(reason),
    )


def _memory(standing: MemoryStatus | None) -> wire.Memory | None:
    if standing is None:
        return None
    return wire.Memory(
        daemon_mb=round(standing.daemon / MB, 1),
        worker_mb=round(standing.workers / MB, 1),
        limit_mb=standing.limit // MB,
        trouble=standing.trouble,
    )


def _health(trouble: str | None) -> wire.Health:
    return wire.Health(ok=trouble is None, reason=trouble)


class _Held(msgspec.Struct, frozen=True):
    """What an index holds."""

    counts: Counts = Counts(0, 0, 0, 0, 0)
    sessions: tuple[int, int] = (0, 0)  # transcripts, turns
    tallies: Mapping[str, int] = {}
    broken: str | None = None  # why that cannot be told


async def _held(agent: RunningAgent) -> _Held:
    try:
        async with asyncio.timeout(COUNT_S):
            counts = await agent.sync.counts()
            return _Held(counts, await agent.index.session_counts(), await agent.index.tallies())
    except StoreClosed:
        raise
    except StoreDamaged as damage:
        agent.index.damage.report(str(damage))
        broken = str(damage)
    except StoreUnavailable as trouble:
        broken = str(trouble)
    except TimeoutError:
        broken = f"the index has not answered for {COUNT_S:g} s"
    return _Held(broken=broken)


def _sessions(agent: RunningAgent, held: _Held) -> wire.Sessions | None:
    if "sessions" not in agent.settings.sources:
        return None
    files, turns = held.sessions
    return wire.Sessions(
        files=files,
        turns=turns,
        waiting=agent.sync.growing,
        lines_skipped=_below("lines.", held.tallies),
    )


def for_session(report: wire.StatusReport, *, is_private: bool) -> wire.StatusReport:
    """What of a report a session is told: that it works, and what it works with; the rest where only the owner reads along."""
    if is_private:
        # They may name other agents.
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
        damaged=[],
        memory=None,
        agents={agent_id: _for_anybody(status) for agent_id, status in report.agents.items()},
    )


def _for_anybody(status: wire.AgentStatus) -> wire.AgentStatus:
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
