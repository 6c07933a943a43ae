"""One provider with its queues: what ends with it, and when its model is another one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.embedding.health_transitions import FallbackThresholds, Healthy
from memd.embedding.model_info import ModelInfoStore, ModelProbe
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.provider_health import Standby
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, Vector
from memd.providers.remote.identify_model import ModelIdentity
from memd.store.embedding_cache import EmbeddingStore
from tests.clock import hastily, now_s
from tests.embedding.passage_queue.queues import opened
from tests.embedding.specs import KNOWN, spec_of
from tests.fakes import HashingProvider
from tests.wait import until_async

SETTINGS = AgentSettings(workspace=Path("/nowhere"), provider="local")


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    opened_cache = EmbeddingStore(tmp_path / "e.sqlite", rng=Random(1))
    await opened_cache.open()
    yield opened_cache
    await opened_cache.close()


async def test_who_waits_for_the_vector_of_a_question_is_told_when_the_provider_is_closed(
    cache: EmbeddingStore,
) -> None:
    """However long its patience; the provider itself may never answer."""
    asked = asyncio.Event()

    class Silent(HashingProvider):
        async def embed_query(self, text: str) -> Vector:
            if text == "which?":
                asked.set()
                await asyncio.Event().wait()
            return await super().embed_query(text)

    provider = Silent()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        running = RunningProvider(
            provider, ProviderParts(cache, tasks, Random(1), FallbackThresholds()), SETTINGS
        )
        await running.begin(at_once=True)
        assert running.questions is not None
        waiting = asyncio.create_task(running.questions.ask("which?", 3600))
        await asked.wait()
        await running.close()
        assert provider.closed
        with pytest.raises(EmbedUnavailable, match="closed"):
            await asyncio.wait_for(waiting, 60)


async def test_where_the_model_is_another_one_the_work_for_the_first_has_ended(
    cache: EmbeddingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was served by its queue is to be served by the new one; who still asks the old one is told.

    What the first one refused is sent to the other one.
    """
    found = [KNOWN, msgspec.structs.replace(KNOWN, dimensions=5, generation=1)]

    async def identify(*_: object, **__: object) -> ModelIdentity:
        return found.pop(0)

    monkeypatch.setattr("memd.embedding.model_info.identify", identify)
    index = await opened(tmp_path, "main", ["some text"])
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        parts = ProviderParts(cache, tasks, Random(1), FallbackThresholds())
        running = RunningProvider(spec_of(), parts, SETTINGS)
        await running.begin(at_once=True)
        await until_async(lambda: running.queue is not None)
        first, questions = running.queue, running.questions
        assert first is not None
        assert questions is not None
        first.serve(IndexToEmbed("main", index, use_cache=True))
        await until_async(lambda: first.backlogs["main"].task is not None)
        running.health.passages_failed(EmbedTerminal("it is too long"), running.health.clock())
        running.health.probe_wanted.set()
        await until_async(lambda: running.queue is not first)
        assert running.health.now.passages == Healthy()
        await until_async(lambda: first.backlogs["main"].task is None)
        assert running.identity is not None
        assert running.identity.dimensions == 5
        with pytest.raises(EmbedUnavailable, match="closed"):
            await questions.ask("which?", 3600)
        await running.close()
    await index.close()


def test_a_provider_that_answers_again_is_probed_when_its_fallback_may_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then as seldom as any that answers."""
    probes, on_fallback = list[float](), list[bool]()

    async def load(_: ModelInfoStore) -> None:
        pass

    async def ask(_: ModelProbe) -> None:
        probes.append(now_s())
        if len(probes) == 1:
            raise EmbedUnavailable("down")

    monkeypatch.setattr(ModelInfoStore, "load", load)
    monkeypatch.setattr(ModelProbe, "ask", ask)
    thresholds = FallbackThresholds(down_s=0.0)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            unused = EmbeddingStore(tmp_path / "e.sqlite", rng=Random(1))
            parts = ProviderParts(unused, tasks, Random(1), thresholds, clock=now_s)
            standby = Standby("local", asyncio.Event(), thresholds)
            running = RunningProvider(spec_of(), parts, SETTINGS, standby)
            await running.begin(at_once=True)
            for seconds in (thresholds.stay_s - 1, 2):
                await asyncio.sleep(seconds)
                on_fallback.append(running.health.now.left is not None)
            await asyncio.sleep(thresholds.check_s)
            await running.close()

    hastily(main())
    assert on_fallback == [True, False]
    assert probes[2:] == pytest.approx([thresholds.stay_s, thresholds.stay_s + thresholds.check_s], abs=0.1)
