"""Engines that agents share."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from memd.config.settings import AgentSettings, CacheSettings, Remote
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.model_info import ModelInfoStore, ModelProbe
from memd.embedding.registry import AgentProviders, ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.providers.api_keys import ChoiceInputs, read_small
from memd.providers.choose import ProviderChoice, choose
from memd.providers.remote.identify_model import ModelIdentity
from memd.store.embedding_cache import EmbeddingStore
from tests.fakes import HashingProvider


async def test_an_engine_whose_beginning_was_given_up_is_begun_by_the_next_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left in nobody's way, and its connections are closed."""
    begun, closed, asked = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stands_still(_: ModelInfoStore) -> ModelIdentity | None:
        begun.set()
        return await asyncio.Future[ModelIdentity | None]()

    async def is_closed(_: ModelProbe) -> None:
        closed.set()

    async def is_asked(_: ModelProbe) -> None:
        asked.set()

    async def is_unknown(_: ModelInfoStore) -> ModelIdentity | None:
        return None

    monkeypatch.setattr(ModelProbe, "close", is_closed)
    monkeypatch.setattr(ModelProbe, "ask", is_asked)
    settings = AgentSettings(
        workspace=tmp_path,
        provider="openai-compatible",
        model="m",
        remote=Remote(base_url="http://127.0.0.1:9/v1"),
    )
    async with asyncio.TaskGroup() as tasks:
        registry = ProviderRegistry(
            ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds()),
            lambda wanted: choose(wanted, ChoiceInputs({}, tmp_path, read_small)),
        )
        monkeypatch.setattr(ModelInfoStore, "load", stands_still)
        supplying = asyncio.create_task(registry.providers_for(settings))
        await begun.wait()
        supplying.cancel()
        await asyncio.wait([supplying])
        assert closed.is_set()
        monkeypatch.setattr(ModelInfoStore, "load", is_unknown)
        providers = await registry.providers_for(settings)
        assert providers.embeds
        async with asyncio.timeout(60):
            await asked.wait()
        await registry.close()


async def test_the_cache_keeps_as_many_vectors_as_any_agent_asks_for(tmp_path: Path) -> None:
    """Of the agents there are now: one that has ended asks for none."""

    def settings(most: int) -> AgentSettings:
        return AgentSettings(workspace=tmp_path, provider="local", cache=CacheSettings(max_entries=most))

    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda _: ProviderChoice(HashingProvider(), None))
        kept, agents = list[int](), list[AgentProviders]()
        for most in (50, 70, 60):
            agents.append(await registry.providers_for(settings(most)))
            kept.append(parts.bound.configured)
        for one in agents[1:]:
            one.release()
            kept.append(parts.bound.configured)
        assert kept == [50, 70, 70, 60, 50]
        await registry.close()
