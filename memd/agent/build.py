"""One agent, built bottom-up: its index, what keeps that up to date, what answers from it; and all that then runs for ever."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import structlog

from memd.agent.agents import RunningAgent
from memd.backends.backend import Backend, BackendEnvironment, IndexedAgent
from memd.backends.builtin import Builtin
from memd.backends.circuit_breaker import BreakerTimeouts, CircuitBreaker
from memd.backends.fallback import Fallback, ReadingFallback
from memd.backends.including import Including, ProposingBackend
from memd.backends.qmd.backend import QmdBackend
from memd.config.settings import AgentSettings, IncludedMemory
from memd.embedding.registry import AgentProviders
from memd.index_service import WATCHING, IndexService, index_parts
from memd.indexing.pending_changes import PendingChanges
from memd.indexing.periodic_scan import scan_periodically
from memd.indexing.rules import rules_of
from memd.indexing.watch_changes import follow, look_by_scan
from memd.maintenance.loop import BackgroundTask
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.runtime.threads import Threads
from memd.runtime.timing import Debouncer
from memd.search.searcher import Reranker, Searcher
from memd.sources.roots import roots_as_written, roots_of
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint, usable_part, why_rebuild, with_vectors, without_vectors
from memd.text.memory_paths import Root
from memd.watch.watcher import WatcherHealth, note_places, watch

log = structlog.get_logger()

ROOTS_S = 1.0  # for which the start of an agent waits for its disk


async def build_agent(
    state: Path,
    environment: BackendEnvironment,
    agent_id: str,
    settings: AgentSettings,
    providers: AgentProviders,
    *,
    resident: bool = True,
) -> RunningAgent:
    """Open one agent's index, decide whether it can serve as it is, and wire up what works on it.

    Args:
        state: Directory of what memd keeps.
        environment: In which a backend that is a program of its own is started.
        agent_id: Its name.
        settings: Of the agent.
        providers: What embeds for it.
        resident: Whether its vectors are to be in memory.

    Raises:
        StoreUnavailable, StoreDamaged, StoreNewer: it cannot be opened now.
    """
    index = Index(state / "agents" / f"{agent_id}.sqlite", resident=resident)
    try:
        return await _built_on(index, state, environment, agent_id, settings, providers)
    except BaseException:  # another attempt opens it again
        await index.close()
        raise


async def _built_on(
    index: Index,
    state: Path,
    environment: BackendEnvironment,
    agent_id: str,
    settings: AgentSettings,
    providers: AgentProviders,
) -> RunningAgent:
    wanted = wanted_fingerprint(settings, providers.wanted)
    rebuild = await _opened(index, wanted, embeds=providers.embeds)
    if index.space is not None:
        providers.hold(frozenset({index.space}))
        if wanted.space is None and (stored := await index.fingerprint()) is not None:
            wanted = with_vectors(wanted, stored)  # what it is to have is not known yet
    roots = await _roots(agent_id, settings, state)
    pending = PendingChanges(
        Debouncer(
            quiet_s=settings.sync.watch_debounce_ms / 1000, cap_s=settings.sync.watch_max_wait_ms / 1000
        ),
        time.monotonic,
    )
    rules = rules_of(settings, roots)
    parts = index_parts(
        agent_id, settings, rules, index, wanted, pending=pending, providers=providers, rng=Random()
    )
    sync = IndexService(agent_id, index, pending, parts)
    if rebuild is not None:
        sync.rebuild(rebuild)
    reranker: Reranker | None = None
    if settings.rerank.provider == "onnx":
        from memd.providers.local import cross_encoder  # noqa: PLC0415

        reranker = cross_encoder.reranker(settings.rerank, time.monotonic)
    elif settings.rerank.provider != "none":
        # It speaks HTTP, which nobody else may need.
        from memd.providers.remote import rerank  # noqa: PLC0415

        reranker = rerank.reranker(settings.rerank, time.monotonic, environment.environ)
    searcher = Searcher(index, settings, providers, reranker)
    indexed = IndexedAgent(agent_id, settings, rules, index, sync)
    builtin = Builtin(indexed, searcher, providers)
    match settings.backend:
        case "builtin":
            backend: Backend = _including(indexed, builtin, providers) if settings.include else builtin
        case "qmd":
            backend = _qmd(indexed, environment, builtin)
        case "postgres":
            backend = _postgres(indexed, builtin, providers, reranker)
    agent = RunningAgent(
        agent_id,
        settings,
        index=index,
        backend=backend,
        sync=sync,
        pending=pending,
        roots=roots,
        providers=providers,
    )
    if settings.publish.to:
        # It knows PostgreSQL, which few need.
        from memd.agent.publishing import Publisher, installation_of  # noqa: PLC0415

        agent.publisher = Publisher(agent_id, index, sync, rules, settings.publish, installation_of(state))
    return agent


async def _roots(agent_id: str, settings: AgentSettings, state: Path) -> tuple[Root, ...]:
    """The roots of an agent; as they are written, where the disk that they are on does not answer."""
    try:
        async with asyncio.timeout(ROOTS_S):
            return await Threads(1, f"memd-roots-{agent_id}").run(roots_of, settings, state=state)
    except TimeoutError:
        log.warning("agent.disk_silent", agent=agent_id, waited_s=ROOTS_S)
        return roots_as_written(settings, state=state)


async def _opened(index: Index, wanted: Fingerprint, *, embeds: bool) -> str | None:
    """Open an index, with an empty one in its place if it is damaged; why its text must be cut anew, or None."""
    await index.open()
    try:
        return await _adopt(index, wanted, embeds=embeds)
    except StoreDamaged as damage:
        await index.start_over(damage)
        return await _adopt(index, wanted, embeds=embeds)


async def _adopt(index: Index, wanted: Fingerprint, *, embeds: bool) -> str | None:
    """Use an index for what it is good for; why its text must be cut anew, or None.

    Vectors of another model than the one that is wanted serve as well, until others are there.
    """
    stored = await index.fingerprint()
    if not (await index.counts()).files:
        await index.adopt(wanted)
        return None
    reason = why_rebuild(stored, without_vectors(wanted))
    usable = wanted if reason is None else usable_part(stored, wanted)
    if stored is not None and stored.space is not None:
        usable = with_vectors(usable, stored)
    await index.adopt(usable if embeds else without_vectors(usable))
    return reason


async def keep(agent: RunningAgent) -> None:
    """Everything that keeps one agent's index up to date, for ever."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.sync.run())
        for task in (
            BackgroundTask(WATCHING, partial(_follow_files, agent)),
            BackgroundTask("scanning now and then", partial(_scan_periodically, agent)),
            BackgroundTask("preparing the backend", agent.backend.warm, is_once=True),
        ):
            tasks.create_task(agent.sync.background.keep(task))
        if agent.publisher is not None:
            publishing = BackgroundTask(f"publishing to {agent.settings.publish.to}", agent.publisher.run)
            tasks.create_task(agent.sync.background.keep(publishing))


async def _follow_files(agent: RunningAgent) -> None:
    """What changes on the disk is marked, and then the business of the passes."""

    def on_health(health: WatcherHealth) -> None:
        agent.sync.watcher_trouble = None if health.ok else health.reason
        agent.sync.watcher_note = health.reason if health.ok else None

    look = look_by_scan(agent.roots, int(agent.settings.max_file_mb * 1_000_000))
    try:
        await follow(watch(agent.roots, backlog=agent.sync.backlog), agent.pending, look, on_health)
    finally:  # until they are followed again, each search looks for itself
        agent.sync.backlog.ends(note_places(agent.roots))


async def _scan_periodically(agent: RunningAgent) -> None:
    await scan_periodically(agent.pending, agent.settings.sync.interval_minutes * 60)


def _embed_only_while(agent: IndexedAgent) -> Callable[[bool], None]:
    """Embed what is local while another backend is left alone, and only then."""
    return lambda is_left_alone: agent.sync.want_vectors() if is_left_alone else agent.sync.rest_vectors()


def _qmd(agent: IndexedAgent, environment: BackendEnvironment, builtin: Builtin) -> Fallback[Any]:
    """The backend qmd, with the built-in one behind it.

    The text of the built-in index is kept up to date in any case: `get`, scope and the fence ask it, and a fallback finds it
    ready. Its vectors are not: nobody shall pay twice, so they rest for as long as the other backend answers.
    """
    agent.sync.rest_vectors()

    async def create() -> QmdBackend:
        return await QmdBackend.create(agent, environment, builtin)

    timeouts = BreakerTimeouts(agent.settings.qmd.timeout_ms / 1000, agent.settings.qmd.cooldown_seconds)
    breaker = CircuitBreaker(agent.id, "qmd", create, timeouts, on_change=_embed_only_while(agent))
    return Fallback(breaker, builtin)


def _postgres(
    agent: IndexedAgent,
    builtin: Builtin,
    providers: AgentProviders,
    reranker: Reranker | None,
) -> Fallback[Any]:
    """The backend postgres, with the built-in one behind it, for what is local."""
    # It knows PostgreSQL, which few need.
    from memd.backends import postgres  # noqa: PLC0415

    async def create() -> postgres.PostgresBackend:
        return await postgres.PostgresBackend.create(
            agent.settings.shared, agent.settings, providers, reranker
        )

    breaker = CircuitBreaker(
        agent.id, "postgres", create, postgres.TIMEOUTS, on_change=_embed_only_while(agent)
    )
    return ReadingFallback(breaker, builtin)


def _including(agent: IndexedAgent, builtin: Builtin, providers: AgentProviders) -> Including:
    """The built-in backend together with the memories that the agent includes."""
    from memd.backends import postgres  # noqa: PLC0415  as above

    def breaker(one: IncludedMemory) -> CircuitBreaker[ProposingBackend]:
        async def create() -> ProposingBackend:
            return await postgres.PostgresBackend.create(one, agent.settings, providers)

        return CircuitBreaker(agent.id, one.name, create, postgres.TIMEOUTS)

    return Including(
        builtin,
        [(one, breaker(one)) for one in agent.settings.include],
        agent.settings.sync.wait_ms / 1000,
    )
