"""Builds one agent bottom-up: its index, the index service, the backend; and runs its background tasks."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import structlog

from memd.agent.agents import RunningAgent
from memd.backends.backend import Backend, BackendEnvironment, IndexedAgent
from memd.backends.builtin import Builtin
from memd.backends.circuit_breaker import BreakerTimeouts, CircuitBreaker
from memd.backends.fallback import Fallback, ReadingFallback
from memd.backends.included_memories import Including, ProposingBackend
from memd.config.settings import AgentSettings, IncludedMemory
from memd.embedding.registry import AgentProviders
from memd.index_service import WATCHING, IndexService, index_parts
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.periodic_scan import scan_periodically
from memd.indexing.replaced_roots import remove_replaced
from memd.indexing.rules import IndexingRules, rules_of
from memd.indexing.watch_changes import follow, look_by_scan
from memd.maintenance.loop import BackgroundTask
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.runtime.threads import Threads
from memd.runtime.timers import Debouncer
from memd.search.protocols import Reranker
from memd.search.searcher import Searcher
from memd.sources.root_links import RootLinks
from memd.sources.roots import ConfiguredRoots, configured_roots, roots_as_written
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint, usable_part, why_rebuild, with_vectors, without_vectors
from memd.watch.watcher import WatcherHealth, note_places, watch

if TYPE_CHECKING:
    from memd.agent.published_vectors import ServerVectors
    from memd.backends.qmd.backend import QmdBackend

log = structlog.get_logger()

ROOTS_S = 1.0  # how long the start of an agent waits for its disk
WATCHED_S = 0.25  # how long its first pass waits for the watches


async def build_agent(
    state: Path,
    environment: BackendEnvironment,
    agent_id: str,
    settings: AgentSettings,
    providers: AgentProviders,
    *,
    resident: bool = True,
) -> RunningAgent:
    """Open one agent's index, decide whether it must be rebuilt, and connect everything that works on it.

    Args:
        state: The state directory.
        environment: What a backend that runs an external program needs.
        agent_id: The agent's id.
        settings: The agent's settings.
        providers: The agent's embedding providers.
        resident: Whether the vectors are kept in memory.

    Raises:
        StoreUnavailable, StoreDamaged, StoreNewer: the index cannot be opened now.
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
    configured = await _roots(agent_id, settings, state)
    roots = configured.roots
    rules = rules_of(settings, roots, configured.origins)
    prepare = partial(_prepare, agent_id, index, wanted, configured, rules, embeds=providers.embeds)
    rebuild = await _opened(index, prepare)
    if index.space is not None:
        providers.hold(frozenset({index.space}))
        if wanted.space is None and (stored := await index.fingerprint()) is not None:
            wanted = with_vectors(wanted, stored)  # the wanted model is not known yet
    pending = DebouncedChanges(
        Debouncer(
            quiet_s=settings.sync.watch_debounce_ms / 1000, cap_s=settings.sync.watch_max_wait_ms / 1000
        ),
        time.monotonic,
    )
    published = _published(agent_id, settings)
    parts = index_parts(
        *(agent_id, settings, rules, index, wanted),
        pending=pending,
        providers=providers,
        rng=Random(),
        published=published,
        links=RootLinks(configured.links),
    )
    index_service = IndexService(agent_id, index, pending, parts)
    if rebuild is not None:
        index_service.rebuild(rebuild)
    reranker = _reranker(settings, environment)
    indexed = IndexedAgent(agent_id, settings, rules, index, index_service)
    backend = _backend(indexed, environment, providers, reranker)
    agent = RunningAgent(
        agent_id,
        settings,
        index=index,
        backend=backend,
        index_service=index_service,
        pending=pending,
        roots=roots,
        providers=providers,
    )
    if published is not None:
        from memd.agent.publisher import Publisher, installation_of  # noqa: PLC0415  as below

        agent.publisher = Publisher(
            *(agent_id, index, index_service, rules, settings.publish, installation_of(state)),
            embeds=settings.provider != "none",
        )
        agent.published = published
    return agent


def _published(agent_id: str, settings: AgentSettings) -> "ServerVectors | None":
    """The vectors that an agent has published; None: it publishes nothing."""
    if not settings.publish.to:
        return None
    # Imported only here, because it imports psycopg.
    from memd.agent.published_vectors import ServerVectors  # noqa: PLC0415

    return ServerVectors(agent_id, settings.publish)


async def _roots(agent_id: str, settings: AgentSettings, state: Path) -> ConfiguredRoots:
    """Return an agent's roots; unresolved, as the settings give them, if the disk does not answer within ROOTS_S."""
    try:
        async with asyncio.timeout(ROOTS_S):
            return await Threads(1, f"memd-roots-{agent_id}").run(configured_roots, settings, state=state)
    except TimeoutError:
        log.warning("agent.disk_silent", agent=agent_id, waited_s=ROOTS_S)
        return roots_as_written(settings, state=state)


async def _opened(index: Index, prepare: Callable[[], Awaitable[str | None]]) -> str | None:
    """Open an index, or an empty one in place of a damaged one, and prepare it; return why it must be rebuilt, or None."""
    await index.open()
    try:
        return await prepare()
    except StoreDamaged as damage:
        await index.start_over(damage)
        return await prepare()


async def _prepare(
    agent_id: str,
    index: Index,
    wanted: Fingerprint,
    configured: ConfiguredRoots,
    rules: IndexingRules,
    *,
    embeds: bool,
) -> str | None:
    """Prepare an open index for being searched; return why it must be rebuilt, or None."""
    reason = await _adopt(index, wanted, embeds=embeds)
    await remove_replaced(agent_id, index, configured, rules.max_bytes)
    return reason


async def _adopt(index: Index, wanted: Fingerprint, *, embeds: bool) -> str | None:
    """Use an index as far as it fits the settings; return why it must be rebuilt, or None.

    Vectors of another model than the wanted one are used until the wanted ones are there.
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


def _reranker(settings: AgentSettings, environment: BackendEnvironment) -> Reranker | None:
    if settings.rerank.provider == "none":
        return None
    if settings.rerank.provider == "onnx":
        from memd.providers.local import cross_encoder  # noqa: PLC0415

        return cross_encoder.reranker(settings.rerank, time.monotonic)
    # Imported only here, because it imports the HTTP client.
    from memd.providers.remote import rerank  # noqa: PLC0415

    return rerank.reranker(settings.rerank, time.monotonic, environment.environ)


def _backend(
    agent: IndexedAgent,
    environment: BackendEnvironment,
    providers: AgentProviders,
    reranker: Reranker | None,
) -> Backend:
    builtin = Builtin(agent, Searcher(agent.index, agent.settings, providers, reranker), providers)
    match agent.settings.backend:
        case "builtin":
            return _including(agent, builtin, providers) if agent.settings.include else builtin
        case "qmd":
            return _qmd(agent, environment, builtin)
        case "postgres":
            return _postgres(agent, builtin, providers, reranker)


def _embed_only_while(agent: IndexedAgent) -> Callable[[bool], None]:
    """Return a callback that lets the local index be embedded only while the other backend has failed."""
    return lambda has_failed: (
        agent.index_service.resume_vectors() if has_failed else agent.index_service.suspend_vectors()
    )


def _qmd(agent: IndexedAgent, environment: BackendEnvironment, builtin: Builtin) -> Fallback[Any]:
    """Return the qmd backend, with the built-in one as its fallback.

    The text of the built-in index is kept up to date in any case: `get`, scope and the fence use it, and a
    fallback finds it ready. Its vectors are not, so that embedding is not paid for twice: they rest as long
    as qmd answers.
    """
    agent.index_service.suspend_vectors()

    async def create() -> "QmdBackend":
        from memd.backends.qmd.backend import QmdBackend  # noqa: PLC0415 - few agents have it

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
    """Return the postgres backend, with the built-in one, which searches the local memory, as its fallback.

    As for qmd, the vectors of the local memory are not made as long as the server answers.
    """
    # Imported only here, because it imports psycopg.
    from memd.backends import postgres  # noqa: PLC0415

    agent.index_service.suspend_vectors()

    async def create() -> postgres.PostgresBackend:
        return await postgres.PostgresBackend.create(
            agent.settings.shared, agent.settings, providers, reranker
        )

    breaker = CircuitBreaker(
        agent.id, "postgres", create, postgres.TIMEOUTS, on_change=_embed_only_while(agent)
    )
    return ReadingFallback(breaker, builtin, agent.settings.sync.wait_ms / 1000)


def _including(agent: IndexedAgent, builtin: Builtin, providers: AgentProviders) -> Including:
    """Return the built-in backend combined with the memories that the agent includes."""
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


async def keep(agent: RunningAgent) -> None:
    """Run all tasks that keep an agent's index up to date, until cancelled or its roots lead elsewhere."""
    is_watched = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        background = [
            BackgroundTask(WATCHING, partial(_follow_files, agent, is_watched)),
            BackgroundTask("scanning now and then", partial(_scan_periodically, agent)),
            BackgroundTask("preparing the backend", agent.backend.warm, is_once=True),
        ]
        if agent.publisher is not None:
            background.append(
                BackgroundTask(f"publishing to {agent.settings.publish.to}", agent.publisher.run)
            )
        # Now, so that each search waits for the first pass.
        agent.pending.mark_all()
        running = [tasks.create_task(agent.index_service.background.keep(task)) for task in background]
        # A pass that begins before the watches are set has to be repeated after it, for what changed meanwhile.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WATCHED_S):
                await is_watched.wait()
        running.append(tasks.create_task(agent.index_service.run()))
        await agent.index_service.roots_moved()
        for each in running:
            each.cancel()


async def _follow_files(agent: RunningAgent, is_watched: asyncio.Event) -> None:
    """Mark changed files in `pending`; the passes read them."""

    def on_health(health: WatcherHealth) -> None:
        is_watched.set()
        agent.index_service.watcher_trouble = None if health.ok else health.reason
        agent.index_service.watcher_note = health.reason if health.ok else None

    look = look_by_scan(agent.roots, int(agent.settings.max_file_mb * 1_000_000))
    try:
        await follow(watch(agent.roots, barrier=agent.index_service.barrier), agent.pending, look, on_health)
    finally:  # until watching resumes, each search checks the files itself
        agent.index_service.barrier.end(note_places(agent.roots))


async def _scan_periodically(agent: RunningAgent) -> None:
    await scan_periodically(agent.pending, agent.settings.sync.interval_minutes * 60)
