"""The part of the status reply about one agent: its index, backend, embedding and provider."""

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec

from memd.agent.agents import RunningAgent
from memd.backends.backend import BackendStandIn
from memd.config.settings import AgentSettings
from memd.domain_types import LONG_FRONT_MATTER, NOT_UTF8
from memd.embedding.health_transitions import Healthy, Refusing, Retrying
from memd.embedding.passage_queue.agent_backlog import Paused, State, WaitingForConfirmation
from memd.embedding.passage_queue.batch_submitter import BatchSubmitter
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.indexing.pass_scheduler import PassReport
from memd.memory_limit.enforce import MB
from memd.providers.batch.circuit_breaker import FAILURES
from memd.store.chunks import Counts
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable
from memd.text.memory_paths import as_text
from memd_client import messages as wire

COUNT_S = 5.0  # timeout for counting in one index, which would delay the status of all agents
# Timeout for reading from embeddings.sqlite whether an agent is paused, or what was sent to providers.
SWITCHES_S = 0.5

_TRANSCRIPTS_NOT_READ = {
    "unknown_format": "transcript in no known format",
    "subagent": "transcript of a subagent",
}


async def agent_status(agent: RunningAgent, searches: wire.Searches | None) -> wire.AgentStatus:
    """Return the status of a running agent; counts are zero if its index does not answer.

    Args:
        agent: The agent.
        searches: How long its last searches took; None if there were none.

    Raises:
        StoreClosed: the agent was stopped.
    """
    rebuilding = agent.index_service.health.rebuild
    contents = await _index_contents(agent)
    if (queue := agent.queue) is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SWITCHES_S):
                await queue.load(agent.id)
    counts, broken = contents.counts, contents.broken
    sync_health = agent.index_service.health
    last = agent.index_service.last_pass
    progress = agent.index_service.progress
    backend = agent.backend.status()
    return wire.AgentStatus(
        workspace=as_text(agent.settings.workspace),
        backend=backend.backend,
        provider=backend.provider,
        model=backend.model,
        files=counts.files,
        chunks=counts.chunks,
        vectors=_vectors(agent, counts, backend.backend),
        dirty=agent.index_service.unfinished,
        skipped=_skipped(agent, contents),
        keyword=wire.Health(ok=not (sync_health.keyword or broken), reason=sync_health.keyword or broken),
        vector=msgspec.convert(backend.vector, wire.VectorHealth, from_attributes=True),
        watcher=wire.Health(
            ok=sync_health.watcher is None,
            reason="; ".join(filter(None, (sync_health.watcher, sync_health.watcher_note))) or None,
        ),
        provider_health=provider_health(agent),
        store_bytes=agent.index.store_bytes,
        last_pass=None if last is None else _pass(last),
        passes=[_pass(one) for one in agent.index_service.notable_passes],
        # Both are asked, as the counts may be of the index that was just replaced.
        rebuild=sync_health.rebuild or rebuilding,
        sources=list(agent.settings.sources),
        extra_paths=list(map(as_text, agent.settings.extra_paths)),
        progress=None if progress is None else wire.Progress(done=progress[0], total=progress[1]),
        store=health(
            broken
            or sync_health.store
            or (None if queue is None else queue.store_trouble(agent.id))
            or sync_health.maintenance
        ),
        damaged=list(map(as_text, agent.index.damaged_files())),
        embedding=None if agent.queue is None or agent.index_service.vectors_suspended else embedding(agent),
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
        publish=_publish(agent),
        included=[wire.IncludedStatus(memory=one.name, reason=one.reason) for one in backend.included],
    )


def _vectors(agent: RunningAgent, counts: Counts, backend: str) -> wire.Vectors:
    return wire.Vectors(
        done=counts.done,
        waiting=counts.waiting if agent.embeds else 0,
        eta_s=agent.queue.eta_s(counts.waiting) if agent.embeds and agent.queue is not None else None,
        note=f"they rest while {backend} answers" if agent.index_service.vectors_suspended else None,
        resident_mb=round(agent.index.memory.resident_bytes / MB, 1),
        on_disk=agent.index.vectors.is_shelved,
    )


def _skipped(agent: RunningAgent, contents: "_IndexContents") -> dict[str, int]:
    """Return how many files and texts are not indexed or not embedded, by reason."""
    skipped = dict(agent.index_service.skipped)
    if contents.counts.refused:
        skipped["text cannot be embedded"] = contents.counts.refused
    if not_utf8 := contents.tallies.get(NOT_UTF8):
        skipped["text that is not UTF-8"] = not_utf8
    if long_front_matter := contents.tallies.get(LONG_FRONT_MATTER):
        skipped["front matter that is too long"] = long_front_matter
    return skipped | {
        _TRANSCRIPTS_NOT_READ.get(why, why): n for why, n in _below("sessions.", contents.tallies).items()
    }


def _publish(agent: RunningAgent) -> wire.PublishStatus | None:
    if agent.publisher is None:
        return None
    settings, progress = agent.settings.publish, agent.publisher.progress
    return wire.PublishStatus(
        to=settings.to,
        memory=settings.memory,
        files=progress.files,
        waiting=progress.waiting,
        reason=progress.reason,
        taken_back=0 if agent.published is None else agent.published.taken,
    )


def _pass(report: PassReport) -> wire.Pass:
    return wire.Pass(
        at=report.at,
        took_s=report.took_s,
        failed=report.failed,
        changed=report.changed,
        removed=report.removed,
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
    """Return the status of an agent that does not run, or whose status could not be read."""
    return wire.AgentStatus(
        workspace=as_text(settings.workspace),
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
        extra_paths=list(map(as_text, settings.extra_paths)),
        store=health(reason),
    )


class _IndexContents(msgspec.Struct, frozen=True):
    """The counts of an index."""

    counts: Counts = Counts(0, 0, 0, 0, 0, 0, 0)
    sessions: tuple[int, int] = (0, 0)  # transcripts, turns
    tallies: Mapping[str, int] = {}
    broken: str | None = None  # why they could not be read


async def _index_contents(agent: RunningAgent) -> _IndexContents:
    try:
        async with asyncio.timeout(COUNT_S):
            counts = await agent.index_service.counts()
            return _IndexContents(counts, await agent.index.session_counts(), await agent.index.tallies())
    except StoreClosed:
        raise
    except StoreDamaged as damage:
        agent.index.damage.report(str(damage))
        broken = str(damage)
    except StoreUnavailable as failure:
        broken = str(failure)
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
        waiting=agent.index_service.growing,
        lines_skipped=_below("lines.", contents.tallies),
    )


_NAMES: dict[type[State], str] = {
    Healthy: "working",
    Retrying: "backing_off",
    Refusing: "stopped",
    Paused: "paused",
    WaitingForConfirmation: "waiting_for_confirmation",
}


def embedding(agent: RunningAgent) -> wire.Embedding:
    """Return the state of an agent's embedding queue."""
    queue = agent.queue
    if queue is None:
        return wire.Embedding(state="none", reason=agent.providers.reason)
    state = queue.state_of(agent.id)
    asked = state if isinstance(state, WaitingForConfirmation) else None
    return wire.Embedding(
        state=_NAMES[type(state)],
        reason=queue.reason_of(agent.id) or queue.note_of(agent.id),
        next_try_s=queue.next_try_s(agent.id),
        chunks=None if asked is None else asked.chunks,
        tokens=None if asked is None else asked.tokens,
        # Without the cache there are no batch jobs.
        batch=_batch(queue.batch_submitter, use_cache=agent.settings.cache.enabled),
    )


def _provider_trouble(queue: EmbeddingQueue, agent: str) -> str | None:
    """Return why the provider fails; None also if the queue was paused or awaits confirmation, or if the index takes no vectors."""
    if queue.store_trouble(agent) is not None:
        return queue.reason
    return queue.reason_of(agent) if isinstance(queue.state_of(agent), Retrying | Refusing) else None


def _batch(batch_submitter: BatchSubmitter, *, use_cache: bool) -> wire.BatchStatus | None:
    if batch_submitter.batches is None:
        return None
    state = batch_submitter.batches.state
    return wire.BatchStatus(
        enabled=batch_submitter.is_enabled,
        on=state.is_on,
        failures=state.failures,
        limit=FAILURES,
        jobs=batch_submitter.batches.jobs,
        texts=batch_submitter.batches.claimed,
        files_left=batch_submitter.batches.files_left,
        reason=(batch_submitter.reason(use_cache=use_cache) if batch_submitter.is_enabled else None)
        or state.reason,
        at=state.at,
    )


def provider_health(agent: RunningAgent) -> wire.Health:
    """Return whether the embedding provider works; otherwise the reason says why and what to do."""
    if agent.settings.provider == "none":
        return wire.Health(reason="provider = none")
    queue = agent.queue
    waits = None if queue is None else _provider_trouble(queue, agent.id)
    reason = agent.providers.reason or waits
    return wire.Health(ok=reason is None, reason=reason)


def endpoint(agent: RunningAgent) -> str | None:
    """Return the host that notes and questions are sent to; None if they stay on this machine."""
    used = agent.providers.pair.used
    return None if used is None else used.host


def passed_over(agent: RunningAgent) -> list[wire.PassedOver]:
    """Return the providers that were considered first, each with the reason why it was not chosen."""
    choice = agent.providers.pair.choice
    return [wire.PassedOver(provider=one.provider, reason=one.reason) for one in choice.passed_over]


def provider_fallback(agent: RunningAgent) -> wire.FallbackStatus | None:
    """Return the fallback provider, whether it is in use, and why; None if none is configured."""
    pair = agent.providers.pair
    name = agent.settings.fallback
    if name == "none":
        return None
    use = agent.providers.fallback_use(agent.index.space)
    if use is not None:
        return wire.FallbackStatus(provider=name, in_use=True, instead_of=use.instead_of, reason=use.reason)
    return wire.FallbackStatus(provider=name, reason=pair.choice.no_fallback)


def health(reason: str | None) -> wire.Health:
    """Return the health of a part; `reason` says why it does not work, None that it does."""
    return wire.Health(ok=reason is None, reason=reason)
