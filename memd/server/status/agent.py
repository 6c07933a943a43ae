"""What status says of one agent."""

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec

from memd.agent.agents import RunningAgent
from memd.backends.backend import BackendStandIn
from memd.config.settings import AgentSettings
from memd.memory_limit.limit import MB
from memd.server.status.embedding import embedding, endpoint, passed_over, provider_fallback, provider_health
from memd.server.status.process import health
from memd.store.chunks import Counts
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable
from memd_client import messages as wire

COUNT_S = 5.0  # for which an index may keep the status of all others waiting
SWITCHES_S = 0.5  # for which embeddings.sqlite may, until it has said whether an agent was paused

_TRANSCRIPTS_NOT_READ = {
    "unknown_format": "transcript in no known format",
    "subagent": "transcript of a subagent",
}


async def agent_status(agent: RunningAgent, searches: wire.Searches | None) -> wire.AgentStatus:
    """The status of a running agent; without what its index holds where that does not answer.

    Args:
        agent: Which one.
        searches: How long its last searches took; None: there was none.

    Raises:
        StoreClosed: the agent was stopped.
    """
    rebuilding = agent.sync.health.rebuild
    contents = await _index_contents(agent)
    if (queue := agent.queue) is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SWITCHES_S):
                await queue.recall(agent.id)
    counts, broken = contents.counts, contents.broken
    sync_health = agent.sync.health
    last = agent.sync.last_pass
    skipped = dict(sync_health.skipped)
    if counts.set_aside:
        skipped["text cannot be embedded"] = counts.set_aside
    skipped |= {
        _TRANSCRIPTS_NOT_READ.get(why, why): n for why, n in _below("sessions.", contents.tallies).items()
    }
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
        keyword=wire.Health(ok=not (sync_health.keyword or broken), reason=sync_health.keyword or broken),
        vector=msgspec.convert(backend.vector, wire.VectorHealth, from_attributes=True),
        watcher=wire.Health(
            ok=sync_health.watcher is None,
            reason="; ".join(filter(None, (sync_health.watcher, sync_health.watcher_note))) or None,
        ),
        provider_health=provider_health(agent),
        store_bytes=agent.index.store_bytes,
        last_pass=None if last is None else wire.Pass(at=last.at, took_s=last.took_s, failed=last.failed),
        # What was counted may be that of the index before, even if another one is in its place by now.
        rebuild=sync_health.rebuild or rebuilding,
        sources=list(agent.settings.sources),
        extra_paths=[str(path) for path in agent.settings.extra_paths],
        progress=None if progress is None else wire.Progress(done=progress[0], total=progress[1]),
        store=health(broken or sync_health.store or sync_health.maintenance),
        damaged=[str(file) for file in agent.index.damaged_files()],
        embedding=None if agent.queue is None or agent.sync.vectors_rest else embedding(agent),
        endpoint=endpoint(agent),
        chosen=agent.providers.pair.choice.because,
        passed_over=passed_over(agent),
        fallback=provider_fallback(agent),
        sessions=_sessions(agent, contents),
        redacted=_below("redacted.", contents.tallies),
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
    """The status of an agent that does not run, or cannot say more than the reason."""
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
        store=health(reason),
    )


class _IndexContents(msgspec.Struct, frozen=True):
    """What an index holds."""

    counts: Counts = Counts(0, 0, 0, 0, 0)
    sessions: tuple[int, int] = (0, 0)  # transcripts, turns
    tallies: Mapping[str, int] = {}
    broken: str | None = None  # why that cannot be told


async def _index_contents(agent: RunningAgent) -> _IndexContents:
    try:
        async with asyncio.timeout(COUNT_S):
            counts = await agent.sync.counts()
            return _IndexContents(counts, await agent.index.session_counts(), await agent.index.tallies())
    except StoreClosed:
        raise
    except StoreDamaged as damage:
        agent.index.damage.report(str(damage))
        broken = str(damage)
    except StoreUnavailable as trouble:
        broken = str(trouble)
    except TimeoutError:
        broken = f"the index has not answered for {COUNT_S:g} s"
    return _IndexContents(broken=broken)


def _sessions(agent: RunningAgent, contents: _IndexContents) -> wire.Sessions | None:
    if "sessions" not in agent.settings.sources:
        return None
    files, turns = contents.sessions
    return wire.Sessions(
        files=files,
        turns=turns,
        waiting=agent.sync.growing,
        lines_skipped=_below("lines.", contents.tallies),
    )
