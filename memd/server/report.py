"""What status says."""

import os
import time
from pathlib import Path

from memd.agents import Agent
from memd_client import messages as wire


class Facts:
    """What is true of the process, whatever the agents do."""

    def __init__(self, version: str, socket: Path, config: Path | None) -> None:
        self.version = version
        self._socket = socket
        self.config = config
        self.config_error: str | None = None  # why the last reload kept the old configuration
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
        )


async def agent_status(agent: Agent) -> wire.AgentStatus:
    """One agent at a glance."""
    counts = await agent.index.counts()
    health = agent.sync.health
    last = agent.sync.last_pass
    skipped = dict(health.skipped)
    if counts.set_aside:
        skipped["text cannot be embedded"] = counts.set_aside
    provider = agent.choice.provider
    trouble = agent.queue.trouble if agent.queue is not None else agent.choice.reason
    return wire.AgentStatus(
        workspace=str(agent.settings.workspace),
        backend=agent.settings.backend,
        provider="none" if provider is None else provider.identity.provider,
        model="" if provider is None else provider.identity.model,
        files=counts.files,
        chunks=counts.chunks,
        vectors=wire.Vectors(
            done=counts.done,
            waiting=counts.waiting if agent.queue is not None else 0,
            eta_s=agent.queue.eta_s(counts.waiting) if agent.queue is not None else None,
        ),
        dirty=agent.sync.pending,
        skipped=skipped,
        keyword=wire.Health(ok=health.keyword is None, reason=health.keyword),
        vector=_vector_health(agent),
        watcher=wire.Health(ok=health.watcher is None, reason=health.watcher),
        provider_health=wire.Health(ok=trouble is None or agent.settings.provider == "none", reason=trouble),
        store_bytes=agent.index.store_bytes,
        last_pass=None if last is None else wire.Pass(at=last.at, took_s=last.took_s, failed=last.failed),
        rebuild=health.rebuild,
        sources=list(agent.settings.sources),
        extra_paths=[str(path) for path in agent.settings.extra_paths],
    )


def _vector_health(agent: Agent) -> wire.Health:
    if agent.queue is None:
        return wire.Health(
            ok=agent.settings.provider == "none", reason="keyword search only: there is no embedding provider"
        )
    if agent.index.extension_trouble is not None:
        return wire.Health(
            ok=False, reason=f"{agent.index.extension_trouble}; vectors are compared in memory"
        )
    return wire.Health()
