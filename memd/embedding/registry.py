"""Starts one pair of providers for all agents with equal settings, and closes it when no agent needs it any more."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator

import structlog

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart, FallbackUse
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed, PublishedVectors
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.choose import ProviderChoice, shared
from memd.providers.provider import Calibration, EmbedUnavailable, Identity, Vector
from memd.runtime.threads import beside
from memd.store.embedding_cache import EmbeddingStore, KnownVectors, Space
from memd.store.index import Index

log = structlog.get_logger()

# The default timeout for the vector of a question; then keywords answer alone.
QUERY_TIMEOUT_S = 2.0
SPARE_S = 0.25  # a provider times out by itself at its deadline

Choose = Callable[[AgentSettings], ProviderChoice]


class ProviderRegistry:
    """The provider pairs of a daemon, and the agents that use them."""

    def __init__(self, parts: ProviderParts, choose: Choose) -> None:
        """Start empty.

        Args:
            parts: What running providers share.
            choose: Chooses providers by settings; may read files, and is called on a thread.
        """
        self.changes = parts.changes  # of any provider
        self._parts = parts
        self._choose = choose
        self._pairs: dict[str, ProviderPair] = {}
        self._in_use: set[AgentProviders] = set()
        self._making = asyncio.Lock()
        self._kept = 0
        self._sweeping: asyncio.Task[None] | None = None
        self._is_swept = True  # no agent has released a provider since the last sweep

    async def providers_for(self, settings: AgentSettings) -> "AgentProviders":
        """Return the providers of one more agent."""
        wanted = shared(settings)
        async with self._making:
            if wanted not in self._pairs:
                choice = await beside(self._choose, settings)
                pair = ProviderPair(settings, choice, self._parts)
                try:
                    await pair.begin()
                except BaseException:  # a partly started pair must not be used by later agents
                    await pair.close()
                    raise
                self._pairs[wanted] = pair
        providers = AgentProviders(settings, self._pairs[wanted], self, self._parts.cache)
        self._in_use.add(providers)
        self._bound_cache()
        return providers

    def _bound_cache(self) -> None:
        """Bound the shared cache by the largest number that any agent configures."""
        self._parts.bound.configured = max(
            (providers.settings.cache.max_entries for providers in self._in_use), default=0
        )

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of all embedding workers."""
        each = (member.worker_pid for pair in self._pairs.values() for member in pair.members)
        return [pid for pid in each if pid is not None]

    async def renew(self) -> None:
        """Choose providers again for all agents: a new key is tried at once.

        Raises:
            Exception: the first failure, after all others were renewed.
        """
        failures: list[Exception] = []
        async with self._making:
            for pair in list(self._pairs.values()):
                try:
                    await pair.renew(await beside(self._choose, pair.settings))
                except Exception as failure:  # noqa: BLE001 - raised after all others were renewed
                    failures.append(failure)
        self._is_swept = False
        await self._sweep()
        if failures:
            raise failures[0]

    async def close(self) -> None:
        """Close all pairs concurrently."""
        self._kept += 1  # prevents sweeps from now on
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])
        await asyncio.gather(*(pair.close() for pair in self._pairs.values()))

    # --- closing unused pairs

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Prevent closing of pairs meanwhile: an agent that changes settings still needs the provider of its index."""
        self._kept += 1
        try:
            yield
        finally:
            self._kept -= 1
            self.sweep_soon()

    def release(self, providers: "AgentProviders") -> None:
        """Forget an agent that has ended."""
        self._in_use.discard(providers)
        self._bound_cache()
        self.sweep_soon()

    def sweep_soon(self) -> None:
        """Close the pairs that no agent needs, in a task."""
        self._is_swept = False
        if not self._kept and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = self._parts.tasks.create_task(self._sweep())

    async def _sweep(self) -> None:
        # Others may be released while one is being closed.
        while not (self._is_swept or self._kept):
            await self._close_unneeded()

    async def _close_unneeded(self) -> None:
        async with self._making:
            if self._kept:
                return
            self._is_swept = True
            needed = {providers.pair for providers in self._in_use}
            for providers in self._in_use:
                for space in providers.held:
                    owner = self._owner_of(space, providers.pair)
                    needed |= set() if owner is None else {owner}
            for wanted, pair in list(self._pairs.items()):
                if pair not in needed:
                    del self._pairs[wanted]
                    log.info("embed.engine_closed", provider=pair.name)
                    await pair.close()

    # --- which provider has which space

    def running_in(self, space: Space, first: ProviderPair) -> RunningProvider | None:
        """Return the provider of a space: of this pair, or else of any other."""
        each = (pair.member_of(space) for pair in (first, *self._pairs.values()))
        return next((one for one in each if one is not None), None)

    def _owner_of(self, space: Space, first: ProviderPair) -> ProviderPair | None:
        pairs = (first, *self._pairs.values())
        return next((pair for pair in pairs if pair.member_of(space) is not None), None)


class AgentProviders:
    """The providers of one agent: the pair of its settings, and the provider of its index's current vectors."""

    def __init__(
        self,
        settings: AgentSettings,
        pair: ProviderPair,
        registry: ProviderRegistry,
        cache: EmbeddingStore,
    ) -> None:
        self.settings = settings
        self.pair = pair
        self.held: frozenset[Space] = frozenset()
        self.changes = registry.changes  # of any provider
        self._registry = registry
        self.cache = cache if settings.cache.enabled else None

    # --- spaces

    @property
    def wanted(self) -> Identity | None:
        """The identity of the vectors for the agent's index; None: no provider, or its model is not known yet."""
        return self.pair.wanted

    @property
    def embeds(self) -> bool:
        """Whether there is a provider, even if its model is not known yet."""
        return self.pair.used is not None

    @property
    def is_probing_model(self) -> bool:
        """Whether the model is being probed, so that `wanted` will be known soon."""
        used = self.pair.used
        return used is not None and used.provider is None and used.health.reason is None

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """Return the queue of a vector space; None: no running provider has it."""
        running = self._running(space)
        return None if running is None else running.queue

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """Embed a question for a vector space.

        Returns:
            The vector and the calibration of its model, or why there is none.
        """
        running = self._running(space)
        if running is None or running.questions is None:
            return self.unavailable(space) or DegradedPart(
                "provider", "nobody embeds questions for the vectors in the index"
            )
        configured_s = running.query_timeout_s
        timeout_s = QUERY_TIMEOUT_S if configured_s is None else configured_s + SPARE_S
        questions = running.questions
        try:
            vector = await questions.ask(text, timeout_s, asker=self)
        except EmbedUnavailable as failure:
            return DegradedPart("query_embedding", str(failure))
        return vector, questions.provider.calibration

    def is_answering(self, space: Space | None) -> bool:
        """Return whether a provider of a vector space is running and healthy, as far as is known."""
        running = self._running(space)
        return running is not None and running.is_answering

    def hold(self, spaces: frozenset[Space]) -> None:
        """Keep the providers of these spaces running for this agent, and release all others."""
        if spaces != self.held:
            self.held = spaces
            self._registry.sweep_soon()

    def ask_again(self) -> None:
        """Probe a provider now that fails or refuses."""
        self.pair.ask_again()

    def release(self) -> None:
        """Release all providers, since the agent has ended."""
        self._registry.release(self)

    def _running(self, space: Space | None) -> RunningProvider | None:
        # With provider "none", providers of other agents are not used.
        if space is None or not self.embeds:
            return None
        return self._registry.running_in(space, self.pair)

    # --- reasons and names

    @property
    def provider_name(self) -> str:
        """The name of the provider in use."""
        return self.pair.name

    @property
    def model_name(self) -> str:
        """The name of its model."""
        return self.pair.model

    @property
    def reason(self) -> str | None:
        """Why nothing is embedded, or not by the primary provider; None: it is healthy."""
        return self.pair.reason

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """Return why no provider embeds questions for a space; None: one does, or none is configured.

        Args:
            space: The space of the index's vectors; None: it has none.
        """
        if self.settings.provider == "none" or self._running(space) is not None:
            return None
        if not self.embeds:
            return DegradedPart("provider", self.pair.reason or "there is no embedding provider")
        if self.wanted is None:
            return DegradedPart("provider", self.pair.reason or f"{self.pair.name} has not answered yet")
        if space is None:
            return None  # its first vectors are being computed
        provider, model, _ = space
        return DegradedPart(
            "rebuild",
            f"the vectors in the index are those of {provider}/{model} as it was, which cannot be asked any more;"
            f" {self.provider_name}/{self.model_name} embeds all anew, and keywords answer alone meanwhile",
        )

    def fallback_use(self, space: Space | None) -> FallbackUse | None:
        """Return which provider the one of a space is used instead of, and why; None: it is the configured one."""
        pair = self.pair
        chosen = pair.instead_of
        if chosen is not None:
            return FallbackUse(*chosen)
        fallback, primary = pair.fallback, pair.primary
        if fallback is None or primary is None:
            return None
        if pair.why_fallback is not None:
            return FallbackUse(primary.name, pair.why_fallback)
        if space is not None and fallback.space == space and primary.space != space:
            return FallbackUse(
                primary.name,
                f"{primary.name} has not embedded everything yet; until then {fallback.name} answers",
            )
        return None


class AgentQueues:
    """The embedding queues of one agent: two, while an index is rebuilt for another model."""

    def __init__(
        self, agent: str, providers: AgentProviders, published: PublishedVectors | None = None
    ) -> None:
        """Start without queues; `serve` adds them.

        Args:
            agent: The agent's id.
            providers: The agent's providers.
            published: The vectors that it has published; None: it does not publish.
        """
        self.providers = providers
        self.published = published
        self.suspended = False  # searches by vectors are suspended
        self.queues: set[EmbeddingQueue] = set()
        self._agent = agent

    @property
    def embeds(self) -> bool:
        """Whether texts are to be embedded, even if the model is not known yet."""
        return self.providers.embeds and not self.suspended

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """Return the queue of a vector space; None: no running provider has it, or embedding is suspended."""
        return None if self.suspended else self.providers.queue(space)

    def known(self, space: Space | None) -> KnownVectors | None:
        """Return the cache of a vector space; None: the agent uses no cache."""
        cache = self.providers.cache
        return None if cache is None or space is None else KnownVectors(cache, space)

    def serve(self, queue: EmbeddingQueue, index: Index) -> None:
        """Let a queue embed the waiting texts of an index.

        Args:
            queue: A queue of the agent's providers.
            index: The agent's index, or a new one that is built to replace it.
        """
        use_cache = self.providers.cache is not None
        queue.serve(IndexToEmbed(self._agent, index, use_cache=use_cache, published=self.published))
        self.queues.add(queue)

    async def leave(self, but: Collection[EmbeddingQueue | None] = ()) -> None:
        """Leave all queues except some."""
        for queue in self.queues.difference(but):
            self.queues.discard(queue)
            await queue.leave(self._agent)
