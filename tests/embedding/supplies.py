"""What embeds for an agent, where a test needs somebody or nobody to."""

import asyncio
from pathlib import Path
from random import Random

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.registry import AgentProviders, ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Calibration, EmbedUnavailable, Provider, Vector, space_of
from memd.store.embedding_cache import EmbeddingStore, Space


class Nobody(ProviderRegistry):
    """A registry without providers."""

    def __init__(self) -> None:
        cache = EmbeddingStore(Path("/nowhere"))
        parts = ProviderParts(cache, asyncio.TaskGroup(), Random(1), FallbackThresholds())
        super().__init__(parts, lambda _: ProviderChoice(None, "none is wanted"))

    def sweep_soon(self) -> None:
        pass


def silent(settings: AgentSettings, choice: ProviderChoice | None = None) -> AgentProviders:
    """Keywords alone, and no cache."""
    cache = EmbeddingStore(Path("/nowhere"))
    tools = ProviderParts(cache, asyncio.TaskGroup(), Random(1), FallbackThresholds())
    pair = ProviderPair(settings, choice or ProviderChoice(None, "none is wanted"), tools)
    providers = AgentProviders(settings, pair, Nobody(), cache)
    providers.cache = None
    return providers


class OneSpeaker:
    """One provider for questions."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    @property
    def provider_name(self) -> str:
        return self.provider.identity.provider

    @property
    def model_name(self) -> str:
        return self.provider.identity.model

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        if space_of(self.provider.identity) != space:
            return DegradedPart("provider", "nobody embeds questions for the vectors in the index")
        try:
            return await self.provider.embed_query(text), self.provider.calibration
        except EmbedUnavailable as failure:
            return DegradedPart("query_embedding", str(failure))

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        return None
