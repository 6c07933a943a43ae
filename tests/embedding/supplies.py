"""What embeds for an agent, where a test needs somebody or nobody to."""

import asyncio
from pathlib import Path
from random import Random

from memd.config.settings import AgentSettings
from memd.embedding.fallback_state import FallbackThresholds
from memd.embedding.for_agent import AgentProviders
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.model import DegradedPart
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Provider, space_of
from memd.runtime.changed import ChangeNotifier
from memd.store.embeddings import EmbeddingStore, Space


class Nobody:
    """A registry without engines."""

    def __init__(self) -> None:
        self.changes = ChangeNotifier()

    def member_of(self, space: Space, first: ProviderPair) -> RunningProvider | None:
        return None

    def sweep_soon(self) -> None:
        pass

    def release(self, supply: AgentProviders) -> None:
        pass


def silent(settings: AgentSettings, choice: ProviderChoice | None = None) -> AgentProviders:
    """Keywords alone."""
    cache = EmbeddingStore(Path("/nowhere"))
    tools = ProviderParts(cache, asyncio.TaskGroup(), Random(1), FallbackThresholds())
    engine = ProviderPair(settings, choice or ProviderChoice(None, "none is wanted"), tools)
    return AgentProviders(settings, engine, Nobody(), cache)


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

    def speaker(self, space: Space) -> Provider | None:
        return self.provider if space_of(self.provider.identity) == space else None

    def silence(self, space: Space | None) -> DegradedPart | None:
        return None
