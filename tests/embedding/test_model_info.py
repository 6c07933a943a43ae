"""What is kept of a remote model."""

import asyncio
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.config.settings import AgentSettings
from memd.embedding import model_info
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.model_info import ONCE, ModelInfoStore, ModelProbe
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.retrying_client import SentCounter
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreNewer, StoreUnavailable
from memd.store.provider_records import ProviderStore, SentTexts, sent_so_far
from tests.bounds import shipped
from tests.clock import hastily, now_s
from tests.embedding.specs import KNOWN, spec_of
from tests.wait import until_awaited


@pytest.fixture
async def cache(tmp_path: Path) -> Any:
    opened = EmbeddingStore(tmp_path / "e.sqlite", rng=Random(1))
    await opened.open()
    yield opened
    await opened.close()


async def test_what_a_model_is_like_is_kept_by_name_and_address(cache: EmbeddingStore) -> None:
    """Another model, or the same at another address, is not known by it."""
    store = ModelInfoStore(cache, spec_of())
    assert await store.load() is None
    await store.keep(KNOWN)
    assert await ModelInfoStore(cache, spec_of()).load() == KNOWN
    assert await ModelInfoStore(cache, spec_of(model="n")).load() is None
    assert await ModelInfoStore(cache, spec_of("http://127.0.0.1:10/v1")).load() is None
    again = msgspec.structs.replace(KNOWN, generation=1)
    await store.keep(again)
    assert await store.load() == again


async def test_what_earlier_versions_kept_of_a_model_is_found(cache: EmbeddingStore) -> None:
    """Whatever generation it is of: its place is that of the first one, and a restart after an upgrade asks nobody."""
    kept = msgspec.structs.replace(KNOWN, generation=3)
    place = ProviderStore(cache, ("openai-compatible", "m", "52f357e36302c6d1"))
    await place.put_document("portrait", msgspec.json.encode(kept))
    assert await ModelInfoStore(cache, spec_of()).load() == kept


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_model_that_is_known_embeds_before_anything_is_sent(
    cache: EmbeddingStore, *, is_known: bool
) -> None:
    """One that is not is asked first, when its provider is wanted."""
    spec = spec_of()
    if is_known:
        await ModelInfoStore(cache, spec).keep(KNOWN)
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(cache, tasks, Random(1), FallbackThresholds())
        running = RunningProvider(spec, parts, AgentSettings(workspace=Path("/nowhere")))
        await running.begin(at_once=False)
        assert (running.identity is not None) is is_known
        assert running.identity is None or running.identity.dimensions == KNOWN.dimensions
        assert not running.health.probe_wanted.is_set()
        await running.close()


@pytest.mark.parametrize(
    "failure",
    [
        StoreUnavailable("full"),
        StoreDamaged("damaged"),
        StoreNewer(Path("e.sqlite"), 9, 8),
        b"no JSON",
        KeyError("a defect"),
    ],
)
async def test_a_store_that_fails_has_the_model_asked(
    cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch, failure: Exception | bytes
) -> None:
    """It is logged, and what is no trouble of the store is raised."""

    async def fails(*_: object) -> bytes:
        if isinstance(failure, bytes):
            return failure
        raise failure

    monkeypatch.setattr("memd.embedding.model_info.ProviderStore.document", fails)
    monkeypatch.setattr("memd.embedding.model_info.ProviderStore.put_document", fails)
    monkeypatch.setattr("memd.embedding.model_info.ProviderStore.add_sent", fails)
    store = ModelInfoStore(cache, spec_of())
    if isinstance(failure, KeyError):
        for work in (store.load, lambda: store.keep(KNOWN), lambda: store.add_sent(1, 2)):
            with pytest.raises(KeyError):
                await work()
        return
    with capture_logs() as logs:
        assert await store.load() is None
        await store.keep(KNOWN)
        await store.add_sent(1, 2)
    not_written = [] if isinstance(failure, bytes) else ["embed.model_info_not_kept", "embed.sent_not_noted"]
    assert [one["event"] for one in logs] == ["embed.model_info_not_read", *not_written]


async def test_what_a_model_is_sent_is_noted_while_it_is_used_and_at_the_end(
    cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text once, and nothing else. What was sent within some seconds is one write; the last when the use ends."""
    monkeypatch.setattr(model_info, "SENT_S", 0.01)
    counter = SentCounter()
    monkeypatch.setattr(model_info, "open_client", lambda _: SimpleNamespace(sent=counter))
    spec = spec_of()
    noting = asyncio.create_task(ModelProbe(spec, ModelInfoStore(cache, spec)).note_sent())

    async def noted(texts: int, tokens: int) -> bool:
        return dict(await sent_so_far(cache)) == {(spec.provider, spec.model): SentTexts(texts, tokens)}

    counter.add(2, 30)
    counter.add(1, 5)
    await until_awaited(lambda: noted(3, 35))
    counter.add(1, 1)
    await until_awaited(lambda: noted(4, 36))
    with monkeypatch.context() as idle:
        idle.setattr(ModelInfoStore, "add_sent", None)  # where nothing was sent, nothing is written
        await asyncio.sleep(0.05)
        assert not noting.done()
    monkeypatch.setattr(model_info, "SENT_S", 3600.0)
    counter.add(4, 7)
    await asyncio.sleep(0.01)
    noting.cancel()
    await asyncio.wait([noting])
    assert await noted(8, 43)


async def test_a_model_is_another_provider_only_where_it_is_another_one(
    cache: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found is kept, and asked about once: who asks repeats it, and says why meanwhile."""
    other = msgspec.structs.replace(KNOWN, dimensions=5, generation=1)
    found, asked = [KNOWN, KNOWN, other], list[object]()

    async def identify(_: object, before: ModelIdentity | None, *, retries: object) -> ModelIdentity:
        asked.append((before, retries))
        return found.pop(0)

    monkeypatch.setattr("memd.embedding.model_info.identify", identify)
    spec = spec_of()
    store = ModelInfoStore(cache, spec)
    probe = ModelProbe(spec, store)
    assert await probe.load() is None
    first = await probe.ask()
    assert first is not None
    assert first.identity.dimensions == 3
    assert await store.load() == KNOWN
    assert await probe.ask() is None
    second = await probe.ask()
    assert second is not None
    assert second.identity.dimensions == 5
    assert asked == [(None, ONCE), (KNOWN, ONCE), (KNOWN, ONCE)]
    assert (ONCE.attempts, ONCE.timeouts) == (1, 1)
    await probe.close()
    later = ModelProbe(spec, store)
    known = await later.load()
    assert known is not None
    assert known.identity.dimensions == 5
    session = SimpleNamespace(closed=0)

    async def close() -> None:
        session.closed += 1

    monkeypatch.setattr("memd.providers.remote.http.HttpConnections.close", lambda _: close())
    await later.close()
    assert session.closed == 1


def test_what_a_model_is_sent_is_noted_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it in one write."""
    noted_at: list[tuple[float, int]] = []

    class Store:
        async def add_sent(self, texts: int, _: int) -> None:
            noted_at.append((now_s(), texts))

    async def sending() -> None:
        counter = SentCounter()
        monkeypatch.setattr(model_info, "open_client", lambda _: SimpleNamespace(sent=counter))
        began = now_s()
        noting = asyncio.create_task(ModelProbe(spec_of(), cast(ModelInfoStore, Store())).note_sent())
        for _ in range(3):
            counter.add(1, 1)
            await asyncio.sleep(0.1)
        await asyncio.sleep(sent_s)
        noting.cancel()
        await asyncio.wait([noting])
        [(at, texts)] = noted_at
        assert at - began == pytest.approx(sent_s, abs=0.01)
        assert texts == 3

    sent_s = shipped("memd.embedding.model_info.SENT_S")
    hastily(sending())
