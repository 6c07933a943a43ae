"""Who embeds for which agent: one pair of providers for all agents whose settings ask for the same, closed when none needs it."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator

import structlog

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart, FallbackUse
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.queue.agent_backlog import IndexToEmbed, PublishedVectors
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.choose import ProviderChoice, shared
from memd.providers.provider import Calibration, EmbedUnavailable, Identity, Vector
from memd.runtime.threads import beside
from memd.store.embedding_cache import EmbeddingStore, KnownVectors, Space
from memd.store.index import Index

log = structlog.get_logger()

# For the vector of a question where nothing was configured; after that, keywords answer alone.
QUERY_TIMEOUT_S = 2.0
SPARE_S = 0.25  # a provider ends by itself at its deadline

Choose = Callable[[AgentSettings], ProviderChoice]


class ProviderRegistry:
    """The pairs of providers of a daemon, and the agents that they embed for."""

    def __init__(self, parts: ProviderParts, choose: Choose) -> None:
        """Empty.

        Args:
            parts: What running providers are made with.
            choose: What settings mean; may read files, and is called on a thread.
        """
        self.changes = parts.changes  # of any provider
        self._parts = parts
        self._choose = choose
        self._pairs: dict[str, ProviderPair] = {}
        self._in_use: set[AgentProviders] = set()
        self._making = asyncio.Lock()
        self._kept = 0
        self._sweeping: asyncio.Task[None] | None = None
        self._is_swept = True  # no agent has given up a provider since the last sweep

    async def providers_for(self, settings: AgentSettings) -> "AgentProviders":
        """Make what embeds for one more agent."""
        wanted = shared(settings)
        async with self._making:
            if wanted not in self._pairs:
                choice = await beside(self._choose, settings)
                pair = ProviderPair(settings, choice, self._parts)
                try:
                    await pair.begin()
                except BaseException:  # half begun, it would be given to every agent with the same settings
                    await pair.close()
                    raise
                self._pairs[wanted] = pair
        providers = AgentProviders(settings, self._pairs[wanted], self, self._parts.cache)
        self._in_use.add(providers)
        self._bound_cache()
        return providers

    def _bound_cache(self) -> None:
        """Bound the cache, which is that of all agents, by the largest of their numbers."""
        self._parts.bound.configured = max(
            (providers.settings.cache.max_entries for providers in self._in_use), default=0
        )

    @property
    def worker_pids(self) -> list[int]:
        """The processes that embed for any provider."""
        each = (member.worker_pid for pair in self._pairs.values() for member in pair.members)
        return [pid for pid in each if pid is not None]

    async def renew(self) -> None:
        """Look again what the settings of all that are in use mean: a key may be another one, and is tried at once.

        Raises:
            what the first one failed with, after all others were looked at.
        """
        failures: list[Exception] = []
        async with self._making:
            for pair in list(self._pairs.values()):
                try:
                    await pair.renew(await beside(self._choose, pair.settings))
                except Exception as failure:  # noqa: BLE001 - raised when the others have had their turn
                    failures.append(failure)
        self._is_swept = False
        await self._sweep()
        if failures:
            raise failures[0]

    async def close(self) -> None:
        """Close all pairs, at once."""
        self._kept += 1  # from here on no sweep closes any
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])
        await asyncio.gather(*(pair.close() for pair in self._pairs.values()))

    # --- which are needed

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Close no provider within the block: an agent that changes its settings still needs the one that its index was made with."""
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
        """Close the pairs that no agent needs any more, in a task."""
        self._is_swept = False
        if not self._kept and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = self._parts.tasks.create_task(self._sweep())

    async def _sweep(self) -> None:
        # While one is closed, which takes its time, others may be given up.
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
        """The provider whose vectors are of a space: one of this pair, else of another one that is still there."""
        each = (pair.member_of(space) for pair in (first, *self._pairs.values()))
        return next((one for one in each if one is not None), None)

    def _owner_of(self, space: Space, first: ProviderPair) -> ProviderPair | None:
        pairs = (first, *self._pairs.values())
        return next((pair for pair in pairs if pair.member_of(space) is not None), None)


class AgentProviders:
    """What embeds for one agent: the pair of its settings, and whichever provider made the vectors that its index still has."""

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
        """The vectors that the agent's index is to have; None: there is no provider, or its model is not known yet."""
        return self.pair.wanted

    @property
    def embeds(self) -> bool:
        """Whether there is a provider, even if it is not known yet what its model is like."""
        return self.pair.used is not None

    @property
    def is_being_found_out(self) -> bool:
        """Whether a model is being probed, so that what is wanted is known soon."""
        used = self.pair.used
        return used is not None and used.provider is None and used.health.reason is None

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """The queue whose vectors are of a space; None: no provider makes them just now."""
        running = self._running(space)
        return None if running is None else running.queue

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """The vector of a question among those of a space, with the calibration of its model; or why there is none."""
        running = self._running(space)
        if running is None or running.questions is None:
            return self.unavailable(space) or DegradedPart(
                "provider", "nobody embeds questions for the vectors in the index"
            )
        configured_s = running.query_timeout_s
        patience_s = QUERY_TIMEOUT_S if configured_s is None else configured_s + SPARE_S
        questions = running.questions
        try:
            vector = await questions.ask(text, patience_s, asker=self)
        except EmbedUnavailable as failure:
            return DegradedPart("query_embedding", str(failure))
        return vector, questions.provider.calibration

    def is_answering(self, space: Space | None) -> bool:
        """Whether a provider embeds questions for the vectors of a space, as far as is known."""
        running = self._running(space)
        return running is not None and running.is_answering

    def hold(self, spaces: frozenset[Space]) -> None:
        """Keep the providers of these spaces alive, and no others for this agent."""
        if spaces != self.held:
            self.held = spaces
            self._registry.sweep_soon()

    def ask_again(self) -> None:
        """Have a provider that does not answer, or refuses, probed now."""
        self.pair.ask_again()

    def release(self) -> None:
        """Give up all providers: the agent has ended."""
        self._registry.release(self)

    def _running(self, space: Space | None) -> RunningProvider | None:
        # Where nothing is to embed, vectors of other agents' providers are of no use.
        if space is None or not self.embeds:
            return None
        return self._registry.running_in(space, self.pair)

    # --- in words

    @property
    def provider_name(self) -> str:
        """Of the provider that is used."""
        return self.pair.name

    @property
    def model_name(self) -> str:
        """Of its model."""
        return self.pair.model

    @property
    def reason(self) -> str | None:
        """Why nothing embeds, or less well than it could; None: all is well."""
        return self.pair.reason

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """Why no provider embeds questions for the vectors of a space; None: one does, or none is to.

        Args:
            space: Of the vectors in the index; None: it has none.
        """
        if self.settings.provider == "none" or self._running(space) is not None:
            return None
        if not self.embeds:
            return DegradedPart("provider", self.pair.reason or "there is no embedding provider")
        if self.wanted is None:
            return DegradedPart("provider", self.pair.reason or f"{self.pair.name} has not answered yet")
        if space is None:
            return None  # its first vectors are under way
        provider, model, _ = space
        return DegradedPart(
            "rebuild",
            f"the vectors in the index are those of {provider}/{model} as it was, which cannot be asked any more;"
            f" {self.provider_name}/{self.model_name} embeds all anew, and keywords answer alone meanwhile",
        )

    def fallback_use(self, space: Space | None) -> FallbackUse | None:
        """Which provider an answer by vectors of a space stands in for, and why; None: it is that of the settings."""
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
    """The embedding queues that serve one agent: two, while an index is built for another model."""

    def __init__(
        self, agent: str, providers: AgentProviders, published: PublishedVectors | None = None
    ) -> None:
        """Be served by no queue before `serve`.

        Args:
            agent: Its id.
            providers: What embeds for it.
            published: What it has published; None: it publishes nothing.
        """
        self.providers = providers
        self.published = published
        self.rest = False  # nobody searches by vectors just now
        self.queues: set[EmbeddingQueue] = set()
        self._agent = agent

    @property
    def embeds(self) -> bool:
        """Whether anything is to be embedded, be it known yet by whom or not."""
        return self.providers.embeds and not self.rest

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """What embeds in a space; None: nobody does just now."""
        return None if self.rest else self.providers.queue(space)

    def known(self, space: Space | None) -> KnownVectors | None:
        """What is cached of a space; None: the agent has no cache."""
        cache = self.providers.cache
        return None if cache is None or space is None else KnownVectors(cache, space)

    def serve(self, queue: EmbeddingQueue, index: Index) -> None:
        """Have a queue embed what waits in an index.

        Args:
            queue: One of those within reach.
            index: The agent's, or one that is built beside it.
        """
        use_cache = self.providers.cache is not None
        queue.serve(IndexToEmbed(self._agent, index, use_cache=use_cache, published=self.published))
        self.queues.add(queue)

    async def leave(self, but: Collection[EmbeddingQueue | None] = ()) -> None:
        """Be served no more, but by some."""
        for queue in self.queues.difference(but):
            self.queues.discard(queue)
            await queue.leave(self._agent)
