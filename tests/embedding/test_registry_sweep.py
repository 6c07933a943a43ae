"""Engines that no agent needs any more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.registry import AgentProviders, ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Identity, space_of
from memd.store.embedding_cache import EmbeddingStore
from tests.fakes import HashingProvider
from tests.wait import until_async


class Lingering(HashingProvider):
    """Takes its time to close."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closing = asyncio.Event()
        self.may_close = asyncio.Event()

    async def close(self) -> None:
        self.is_closing.set()
        async with asyncio.timeout(60):
            await self.may_close.wait()
        await super().close()


class House:
    """Three agents with providers each."""

    def __init__(self, tasks: asyncio.TaskGroup, cache: EmbeddingStore) -> None:
        self.providers = {name: Lingering() for name in ("one", "two", "three")}
        self.registry = ProviderRegistry(
            ProviderParts(cache, tasks, Random(1), FallbackThresholds()),
            lambda settings: ProviderChoice(self.providers[settings.model or ""], None),
        )
        self.supplies: dict[str, AgentProviders] = {}

    async def settle(self) -> None:
        for name in self.providers:
            settings = AgentSettings(workspace=Path("/nowhere"), model=name)
            self.supplies[name] = await self.registry.providers_for(settings)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Nobody has let go of anything yet."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    async with asyncio.TaskGroup() as tasks:
        house = House(tasks, cache)
        await house.settle()
        yield house
        for provider in house.providers.values():
            provider.may_close.set()
        await house.registry.close()
    await cache.close()


async def closing(provider: Lingering) -> None:
    async with asyncio.timeout(60):
        await provider.is_closing.wait()


async def test_what_is_let_go_of_while_another_is_closed_is_closed_too(house: House) -> None:
    """To close one takes its time; nobody may ever let go of anything again."""
    one, two, three = house.providers.values()
    house.supplies["one"].release()
    await closing(one)
    house.supplies["two"].release()
    one.may_close.set()
    await closing(two)
    assert not three.is_closing.is_set()


async def test_what_is_kept_when_it_is_let_go_of_is_closed_afterwards(house: House) -> None:
    """Also where a sweep that is under way has looked before."""
    one, two, _ = house.providers.values()
    house.supplies["one"].release()
    await closing(one)
    with house.registry.kept():
        house.supplies["two"].release()
        one.may_close.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not two.is_closing.is_set()
    await closing(two)


class OfBefore(HashingProvider):
    """A model whose vectors are compared with no others."""

    @property
    def identity(self) -> Identity:
        return msgspec.structs.replace(super().identity, model="of before")


async def test_what_made_the_vectors_of_an_index_embeds_its_questions_as_long_as_it_has_them(
    tmp_path: Path,
) -> None:
    """Also when nobody has settings that mean it any more; then it is closed."""
    made = {"before": OfBefore(dimensions=8), "now": HashingProvider(dimensions=16)}
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda settings: ProviderChoice(made[settings.model or ""], None))
        before, now = [
            await registry.providers_for(AgentSettings(workspace=tmp_path, model=name)) for name in made
        ]
        space = space_of(made["before"].identity)
        now.held = frozenset({space})
        before.release()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not made["before"].closed
        found = await now.embed_query("a heron", space)
        assert not isinstance(found, DegradedPart)
        assert len(found[0]) == 8
        now.held = frozenset()
        registry.sweep_soon()
        await until_async(lambda: made["before"].closed)
        assert not made["now"].closed
        assert isinstance(await now.embed_query("a heron", space), DegradedPart)
        await registry.close()


async def test_what_nobody_needs_after_providers_are_chosen_anew_is_closed(tmp_path: Path) -> None:
    """Where it made the vectors of an index before, and makes others now."""
    made: dict[str, HashingProvider] = {
        "before": OfBefore(dimensions=8),
        "now": HashingProvider(dimensions=16),
    }
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda settings: ProviderChoice(made[settings.model or ""], None))
        before, now = [
            await registry.providers_for(AgentSettings(workspace=tmp_path, model=name)) for name in made
        ]
        now.held = frozenset({space_of(made["before"].identity)})
        before.release()
        for _ in range(20):  # until it has been seen that it is needed
            await asyncio.sleep(0)
        made["before"] = other = HashingProvider(dimensions=24)
        await registry.renew()
        assert other.closed
        assert not made["now"].closed
        await registry.close()


async def test_what_an_agent_holds_on_to_is_looked_at_when_it_changes(house: House) -> None:
    """Each sweep looks at all: it is made where something may have become needless, and while nothing is kept."""
    swept: list[object] = []
    sweep_soon, supply = house.registry.sweep_soon, house.supplies["one"]

    def counting() -> None:
        swept.append(None)
        sweep_soon()

    house.registry.sweep_soon = counting  # type: ignore[method-assign]  # counted
    supply.hold(frozenset())
    assert len(swept) == 0
    supply.hold(frozenset({("a", "b", "c")}))
    supply.hold(frozenset({("a", "b", "c")}))
    assert len(swept) == 1
    assert house.registry.worker_pids == []
