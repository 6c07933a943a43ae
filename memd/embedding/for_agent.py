"""What embeds for one agent."""

from collections.abc import Hashable
from typing import Protocol

from memd.config.settings import AgentSettings
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.query_queue import QuestionQueue
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.embedding.running_provider import RunningProvider
from memd.model import DegradedPart, FallbackUse
from memd.providers.provider import Calibration, Identity, Vector
from memd.runtime.changed import ChangeNotifier
from memd.store.embeddings import EmbeddingStore, Space

QUERY_TIMEOUT_S = (
    2.0  # for the vector of a question where nothing was configured; after that, keywords answer alone
)
SPARE_S = 0.25  # a provider ends by itself at its deadline


class SpaceProvider:
    """One agent's questions to one provider."""

    def __init__(self, questions: QuestionQueue, patience_s: float, asker: Hashable) -> None:
        """Nothing is asked yet.

        Args:
            questions: Of all who ask the provider.
            patience_s: How long a question waits if nothing is answered meanwhile.
            asker: By which agents take turns.
        """
        self._questions = questions
        self._patience_s = patience_s
        self._asker = asker

    @property
    def identity(self) -> Identity:
        """What its vectors may be compared with."""
        return self._questions.provider.identity

    @property
    def calibration(self) -> Calibration:
        """The range of its model's cosines."""
        return self._questions.provider.calibration

    async def embed_query(self, text: str) -> Vector:
        """Embed a question.

        Raises:
            EmbedUnavailable: answer without it.
        """
        return await self._questions.ask(text, self._patience_s, self._asker)


class Registry(Protocol):
    """All engines there are."""

    changes: ChangeNotifier

    def member_of(self, space: Space, first: ProviderPair) -> RunningProvider | None:
        """Who embeds in a space."""
        ...

    def sweep_soon(self) -> None:
        """Close those that no agent needs any more."""
        ...

    def release(self, supply: "AgentProviders") -> None:
        """An agent needs nothing any more."""
        ...


class AgentProviders:
    """An agent's view of the engines: its own, and whichever made the vectors that its index still has."""

    def __init__(
        self, settings: AgentSettings, engine: ProviderPair, registry: Registry, cache: EmbeddingStore
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.held: frozenset[Space] = frozenset()
        self._registry = registry
        self.cache = cache if settings.cache.enabled else None

    # --- spaces

    @property
    def wanted(self) -> Identity | None:
        """What vectors the agent's index is to have; None: nothing embeds, or it is not known yet what it is like."""
        return self.engine.wanted

    @property
    def embeds(self) -> bool:
        """Whether anything is to embed, be it known yet or not."""
        return self.engine.used is not None

    @property
    def is_being_found_out(self) -> bool:
        """Whether a model is being asked what it is like, so that what is wanted is known soon."""
        used = self.engine.used
        return used is not None and used.provider is None and used.health.reason is None

    @property
    def version(self) -> int:
        """Grows with each change of any engine."""
        return self._registry.changes.version

    async def changed_since(self, version: int) -> int:
        """Wait for another version than this; which it is."""
        return await self._registry.changes.since(version)

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """What embeds in a space; None: nobody does just now."""
        member = self._member(space)
        return None if member is None else member.queue

    def speaker(self, space: Space | None) -> SpaceProvider | None:
        """Who can embed a question for the vectors of a space; None: nobody."""
        member = self._member(space)
        if member is None or member.questions is None:
            return None
        configured_s = member.query_timeout_s
        patience_s = QUERY_TIMEOUT_S if configured_s is None else configured_s + SPARE_S
        return SpaceProvider(member.questions, patience_s, self)

    def is_answering(self, space: Space | None) -> bool:
        """Whether that is somebody who answers, as far as is known."""
        member = self._member(space)
        return member is not None and member.is_answering

    def hold(self, spaces: frozenset[Space]) -> None:
        """Keep whoever has these spaces, and nobody else's for this agent."""
        if spaces != self.held:
            self.held = spaces
            self._registry.sweep_soon()

    def ask_again(self) -> None:
        """Have a provider that does not answer, or refuses, asked once more now."""
        self.engine.ask_again()

    def release(self) -> None:
        """Need nothing any more."""
        self._registry.release(self)

    def _member(self, space: Space | None) -> RunningProvider | None:
        # Of another's vectors nothing is wanted where nothing is to embed.
        if space is None or not self.embeds:
            return None
        return self._registry.member_of(space, self.engine)

    # --- in words

    @property
    def provider_name(self) -> str:
        """Of the provider that is used."""
        return self.engine.name

    @property
    def model_name(self) -> str:
        """Of its model."""
        return self.engine.model

    @property
    def trouble(self) -> str | None:
        """Why nothing embeds, or less well than it could; None: all is well."""
        return self.engine.trouble

    def silence(self, space: Space | None) -> DegradedPart | None:
        """Why nobody embeds a question for the vectors of a space; None: somebody does, or nobody is to.

        Args:
            space: Of the vectors in the index; None: it has none.
        """
        if self.settings.provider == "none" or self.speaker(space) is not None:
            return None
        if not self.embeds:
            return DegradedPart("provider", self.engine.trouble or "there is no embedding provider")
        if self.wanted is None:
            return DegradedPart("provider", self.engine.trouble or f"{self.engine.name} has not answered yet")
        if space is None:
            return None  # its first vectors are under way
        provider, model, _ = space
        return DegradedPart(
            "rebuild",
            f"the vectors in the index are those of {provider}/{model} as it was, which cannot be asked any more;"
            f" {self.provider_name}/{self.model_name} embeds all anew, and keywords answer alone meanwhile",
        )

    def fallback_use(self, space: Space | None) -> FallbackUse | None:
        """That an answer by vectors of a space is the second provider's, or that there was only that to be had."""
        engine = self.engine
        chosen = engine.instead_of
        if chosen is not None:
            return FallbackUse(*chosen)
        fallback, primary = engine.fallback, engine.primary
        if fallback is None or primary is None:
            return None
        if engine.why_fallback is not None:
            return FallbackUse(primary.name, engine.why_fallback)
        if space is not None and fallback.space == space and primary.space != space:
            return FallbackUse(
                primary.name,
                f"{primary.name} has not embedded everything yet; until then {fallback.name} answers",
            )
        return None
