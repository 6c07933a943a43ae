"""A provider and its fallback, chosen anew."""

import asyncio
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import structlog

from memd.config.settings import AgentSettings, Remote
from memd.embedding.health_transitions import FallbackThresholds, Healthy
from memd.embedding.model_info import ModelInfoStore, ModelProbe
from memd.embedding.provider_health import ProviderHealth
from memd.embedding.registry import ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.maintenance.loop import BackgroundTasks
from memd.providers.api_keys import ChoiceInputs, read_small
from memd.providers.choose import Candidate, ProviderChoice, SkippedProvider, choose
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, Provider, Vector, space_of
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.provider import RemoteProvider
from memd.providers.remote.retrying_client import RetryingClient
from memd.store.embedding_cache import EmbeddingStore
from tests.bounds import shipped
from tests.clock import hastily, now_s
from tests.embedding.specs import KNOWN
from tests.embedding.supplies import silent
from tests.fakes import HashingProvider
from tests.wait import until_async


@pytest.mark.parametrize("fails_at", ["primary", "fallback"])
async def test_a_renewal_that_fails_leaves_what_embedded_before_and_the_next_one_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    """Whichever of the two could not be begun, nothing of the new choice stays half begun, and nobody loses vectors."""
    remote = Remote(base_url="http://127.0.0.1:9/v1")
    settings = AgentSettings(
        workspace=tmp_path, provider="openai-compatible", model="m", remote=remote, fallback="none"
    )
    recipe = choose(settings, ChoiceInputs({}, tmp_path, read_small)).primary
    first, second = HashingProvider(), HashingProvider(dimensions=32)
    failures: list[Exception] = []

    async def load(_: ModelInfoStore) -> ModelIdentity | None:
        if failures:
            raise failures.pop()
        return None

    monkeypatch.setattr(ModelInfoStore, "load", load)
    both: tuple[Candidate | None, Candidate | None] = (
        (recipe, second) if fails_at == "primary" else (second, recipe)
    )
    choices = [ProviderChoice(first, None), ProviderChoice(*both[:1], None, fallback=both[1])]
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda _: choices[0])
        providers = await registry.providers_for(settings)
        pair = providers.pair
        del choices[0]
        failures.append(ValueError("nobody foresaw this"))
        with pytest.raises(ValueError, match="nobody foresaw"):
            await registry.renew()
        assert [member.candidate for member in pair.members] == [first]
        assert providers.wanted == first.identity
        assert (first.closed, second.closed) == (False, True)
        await registry.renew()
        assert [member.candidate for member in pair.members] == list(both)
        assert (first.closed, second.closed) == (True, True)
        await registry.close()


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("change", ["same", "other", "none"])
async def test_a_provider_is_exchanged_for_another_one_only(
    tmp_path: Path, was_there: bool, change: str
) -> None:
    """What embeds goes on where the settings still mean it; what was made to compare is closed."""
    first = HashingProvider() if was_there else None
    second = {"same": HashingProvider(), "other": HashingProvider(dimensions=32), "none": None}[change]
    choices = [ProviderChoice(first, None), ProviderChoice(second, None)]
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda _: choices[0])
        providers = await registry.providers_for(AgentSettings(workspace=tmp_path, provider="local"))
        del choices[0]
        await registry.renew()
        used = [one.candidate for one in providers.pair.members]
        stays = was_there and change == "same"
        assert used == [one for one in (first if stays else second,) if one is not None]
        assert first is None or first.closed is not stays
        assert second is None or second.closed is stays
        await registry.close()


async def test_a_renewal_that_fails_for_one_is_made_for_the_others(tmp_path: Path) -> None:
    """Agents with other settings get what theirs mean now, and whoever asked for it hears of the failure."""
    made: dict[str, list[HashingProvider]] = {}
    broken: set[str] = set()

    def chosen(settings: AgentSettings) -> ProviderChoice:
        if settings.model in broken:
            raise ValueError("nobody foresaw this")
        provider = HashingProvider(dimensions=8 * (1 + len(made.setdefault(settings.model, []))))
        made[settings.model].append(provider)
        return ProviderChoice(provider, None)

    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, chosen)
        supplies = {
            model: await registry.providers_for(
                AgentSettings(workspace=tmp_path, provider="local", model=model)
            )
            for model in ("a", "b", "c")
        }
        broken.add("a")
        with pytest.raises(ValueError, match="nobody foresaw"):
            await registry.renew()
        assert {model: len(each) for model, each in made.items()} == {"a": 1, "b": 2, "c": 2}
        assert [supplies[model].wanted for model in "abc"] == [
            each[-1].identity for each in (made["a"], made["b"], made["c"])
        ]
        await registry.close()


async def test_a_probe_that_fails_unforeseen_ends_nothing_and_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is logged; what embeds goes on."""
    answered = ProviderHealth.probe_answered
    failures, probes = [ValueError("nobody foresaw this")], []

    def fail_once(self: ProviderHealth) -> None:
        probes.append(self)
        if failures:
            raise failures.pop()
        answered(self)

    monkeypatch.setattr(ProviderHealth, "probe_answered", fail_once)
    background = BackgroundTasks(None, Random(1), first_wait_s=0.05)
    settings = AgentSettings(workspace=tmp_path, provider="local")
    with structlog.testing.capture_logs() as logged:
        async with asyncio.TaskGroup() as tasks:
            cache = EmbeddingStore(tmp_path / "e.sqlite")
            parts = ProviderParts(cache, tasks, Random(1), FallbackThresholds(), background=background)
            registry = ProviderRegistry(parts, lambda _: ProviderChoice(HashingProvider(), None))
            providers = await registry.providers_for(settings)
            await until_async(lambda: len(probes) == 2)
            assert providers.wanted == HashingProvider().identity
            await registry.close()
    [failed] = [one["task"] for one in logged if one["event"] == "maintenance.failed"]
    assert failed == "probing the embedding provider hashing"
    assert background.failed == {}


async def test_another_model_behind_the_name_is_told_and_the_first_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of the two must not meet: all is embedded anew."""
    remote = Remote(base_url="http://127.0.0.1:9/v1")
    settings = AgentSettings(
        workspace=tmp_path, provider="openai-compatible", model="m", remote=remote, fallback="none"
    )
    recipe = choose(settings, ChoiceInputs({}, tmp_path, read_small)).primary
    both = (KNOWN, msgspec.structs.replace(KNOWN, dimensions=32, generation=1))
    found, told, used = list(both), list[int](), list[Provider | None]()

    async def load(_: ModelInfoStore) -> None:
        pass

    async def answer(_: RetryingClient, before: ModelIdentity | None, **_rest: object) -> ModelIdentity:
        return found.pop(0) if found or before is None else before

    monkeypatch.setattr(ModelInfoStore, "load", load)
    monkeypatch.setattr("memd.embedding.model_info.identify", answer)
    with structlog.testing.capture_logs() as logged:
        async with asyncio.TaskGroup() as tasks:
            parts = ProviderParts(
                EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds()
            )
            registry = ProviderRegistry(parts, lambda _: ProviderChoice(recipe, None))
            pair = (await registry.providers_for(settings)).pair
            [asked] = pair.members
            for identity in both:
                asked.health.probe_wanted.set()
                await until_async(
                    lambda asked=asked, identity=identity: (
                        asked.is_answering  # type: ignore[misc]
                        and asked.identity.dimensions == identity.dimensions
                    )
                )
                told.append(sum(one["event"] == "embed.model_changed" for one in logged))
                used.append(asked.provider)
            await registry.close()
    assert [type(provider) for provider in used] == [RemoteProvider, RemoteProvider]
    assert not [one for one in logged if one["event"] == "maintenance.failed"]
    assert [one["model"] for one in logged if one["event"] == "embed.model_changed"] == ["m"]
    assert told == [0, 1]


def test_a_server_that_asks_for_a_pause_is_not_probed_before_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one that is longer than any between two probes."""
    remote = Remote(base_url="http://127.0.0.1:9/v1")
    settings = AgentSettings(
        workspace=tmp_path, provider="openai-compatible", model="m", remote=remote, fallback="none"
    )
    recipe = choose(settings, ChoiceInputs({}, tmp_path, read_small)).primary
    pauses_s, probes = [45.0, 1e9], list[float]()

    async def load(_: ModelInfoStore) -> None:
        pass

    async def ask(_: ModelProbe) -> None:
        probes.append(now_s())
        raise EmbedUnavailable("too many requests", retry_after_s=pauses_s.pop(0) if pauses_s else None)

    monkeypatch.setattr(ModelInfoStore, "load", load)
    monkeypatch.setattr(ModelProbe, "ask", ask)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            parts = ProviderParts(
                EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds()
            )
            registry = ProviderRegistry(parts, lambda _: ProviderChoice(recipe, None))
            await registry.providers_for(settings)
            await asyncio.sleep(2000)
            await registry.close()

    hastily(main())
    cap_s = shipped("memd.embedding.running_provider.PROBE_CAP_S")
    assert [later - earlier for earlier, later in pairwise(probes)][:2] == pytest.approx([45.0, cap_s], abs=1)


async def test_a_person_who_asks_again_has_what_does_not_answer_probed_and_the_rest_sent(
    tmp_path: Path,
) -> None:
    """A provider that answers is asked for what waits, and not how it is."""
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda _: ProviderChoice(HashingProvider(), None))
        [one] = (
            await registry.providers_for(AgentSettings(workspace=tmp_path, provider="local"))
        ).pair.members
        health, queue = one.health, one.queue
        assert queue is not None
        await until_async(lambda: not health.probe_wanted.is_set())
        health.passages_failed(EmbedUnavailable("no server"), health.clock())
        one.ask_again()
        assert not health.probe_wanted.is_set()
        assert health.now.passages == Healthy()
        health.probe_failed(EmbedTerminal("no such model"))
        assert health.reason is not None
        one.ask_again()
        assert health.probe_wanted.is_set()
        await registry.close()


def member(name: str, *, known: bool = True, trouble: str | None = None, left: str | None = None) -> Any:
    """One of the two, as far as it is spoken of."""
    health = SimpleNamespace(
        reason=trouble,
        returns=False,
        now=SimpleNamespace(left=None if left is None else SimpleNamespace(reason=left)),
    )
    identity = ("vectors of", name) if known else None
    return SimpleNamespace(
        name=name,
        model="m",
        host=f"{name}.test",
        provider=identity,
        identity=identity,
        space=(name, "m", "k"),
        health=health,
    )


@pytest.mark.parametrize(
    ("primary", "fallback", "expected"),
    [
        (None, None, ("none", "", None, "nobody is wanted")),
        (member("a"), None, ("a", "m", ("vectors of", "a"), None)),
        (member("a", trouble="a refuses"), None, ("a", "m", ("vectors of", "a"), "a refuses")),
        (
            member("a", known=False),
            None,
            ("a", "m", None, "a: a.test is being asked what its model m is like"),
        ),
        (member("a"), member("b", trouble="b refuses"), ("a", "m", ("vectors of", "a"), None)),
        (
            member("a", left="a is down"),
            member("b"),
            ("b", "m", ("vectors of", "b"), "a is down; b stands in"),
        ),
        (
            member("a", left="a is down"),
            member("b", trouble="b refuses"),
            ("b", "m", ("vectors of", "b"), "b refuses"),
        ),
        (
            member("a", left="a is down"),
            member("b", known=False),
            ("b", "m", None, "b: b.test is being asked what its model m is like"),
        ),
    ],
)
def test_the_one_that_is_used_is_told_with_what_is_wrong(
    primary: Any, fallback: Any, expected: tuple[object, ...]
) -> None:
    """The fallback where its provider is left; nothing of the one that only stands by."""
    settings = AgentSettings(workspace=Path("/nowhere"), provider="none")
    pair = silent(settings, ProviderChoice(None, "nobody is wanted")).pair
    pair.primary, pair.fallback = primary, fallback
    assert (pair.name, pair.model, pair.wanted, pair.reason) == expected


def test_vectors_of_a_provider_that_is_left_are_still_its_own() -> None:
    """An index that it has embedded asks it on: the fallback is first, and not alone."""
    pair = silent(AgentSettings(workspace=Path("/nowhere"), provider="none")).pair
    left, fallback = member("a", left="a is down"), member("b")
    pair.primary, pair.fallback = left, fallback
    assert list(pair.members) == [fallback, left]
    assert [pair.member_of(one.space) for one in (left, fallback)] == [left, fallback]


async def test_a_renewal_that_changes_nothing_sends_again_what_was_refused(tmp_path: Path) -> None:
    """Its texts alone may have been refused, while it answers questions."""
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda _: ProviderChoice(HashingProvider(), None))
        pair = (await registry.providers_for(AgentSettings(workspace=tmp_path, provider="local"))).pair
        [one] = pair.members
        one.health.passages_failed(EmbedTerminal("too long"), one.health.clock())
        assert one.health.reason is None
        await registry.renew()
        assert list(pair.members) == [one]
        assert one.health.now.passages == Healthy()
        await registry.close()


def test_a_provider_that_answers_again_is_told_with_when_it_is_used() -> None:
    """In minutes after it was left."""
    pair = silent(AgentSettings(workspace=Path("/nowhere"), provider="none")).pair
    left = member("a", left="a is down")
    left.health.returns = True
    pair.primary = left
    stay = FallbackThresholds().stay_s / 60
    assert pair.why_fallback == f"a answers again, and is used again {stay:.0f} minutes after it was left"
    assert stay == 30


@pytest.mark.parametrize(
    ("provider", "has_primary", "has_fallback", "expected"),
    [
        ("openai", True, False, ("openai", "it has no key")),
        ("openai", True, True, None),
        ("openai", False, False, None),
        ("voyage", True, False, None),
        ("auto", True, False, None),
        ("none", True, False, None),
    ],
)
def test_the_provider_that_could_not_be_had_is_told(
    provider: str, has_primary: bool, has_fallback: bool, expected: tuple[str, str] | None
) -> None:
    """Where another one embeds in its place, which is no fallback that takes over for a while."""
    passed_over = tuple(SkippedProvider(name, "it has no key") for name in ("auto", "none", "openai"))
    made = HashingProvider()
    choice = ProviderChoice(made, None, passed_over, fallback=made if has_fallback else None)
    settings = msgspec.convert({"workspace": Path("/nowhere"), "provider": provider}, AgentSettings)
    pair = silent(settings, choice).pair
    pair.primary = member("a") if has_primary else None
    assert pair.instead_of == expected
    assert pair.why_fallback is None


async def test_what_a_member_of_a_pair_does_is_told(tmp_path: Path) -> None:
    """Its process, where it has one; whether it answers; and all of a pair is closed at once."""

    class Worker(HashingProvider):
        worker_pid: int | None = 77

    both: list[tuple[HashingProvider, list[int]]] = [(Worker(), [77]), (HashingProvider(), [])]
    for made, pids in both:
        async with asyncio.TaskGroup() as tasks:
            parts = ProviderParts(
                EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds()
            )
            registry = ProviderRegistry(parts, lambda _, made=made: ProviderChoice(made, None))  # type: ignore[misc]
            providers = await registry.providers_for(AgentSettings(workspace=tmp_path, provider="local"))
            [one] = providers.pair.members
            assert registry.worker_pids == pids
            assert one.space == space_of(made.identity)
            assert providers.queue(one.space) is one.queue
            answers = [one.is_answering]
            one.health.probe_failed(EmbedTerminal("no such model"))
            assert [*answers, one.is_answering] == [True, False]
            await registry.close()
        assert made.closed


@pytest.mark.parametrize("retry_after_s", [None, 0.0])
def test_a_server_that_asks_for_no_pause_is_probed_after_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_after_s: float | None
) -> None:
    """Which may be shorter than any that is asked for."""
    remote = Remote(base_url="http://127.0.0.1:9/v1")
    settings = AgentSettings(
        workspace=tmp_path, provider="openai-compatible", model="m", remote=remote, fallback="none"
    )
    recipe = choose(settings, ChoiceInputs({}, tmp_path, read_small)).primary
    probes = list[float]()

    async def load(_: ModelInfoStore) -> None:
        pass

    async def ask(_: ModelProbe) -> None:
        probes.append(now_s())
        raise EmbedUnavailable("down", retry_after_s=retry_after_s)

    monkeypatch.setattr(ModelInfoStore, "load", load)
    monkeypatch.setattr(ModelProbe, "ask", ask)
    monkeypatch.setattr("memd.embedding.running_provider.FIRST_WAIT_S", 0.01)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            parts = ProviderParts(
                EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds()
            )
            registry = ProviderRegistry(parts, lambda _: ProviderChoice(recipe, None))
            await registry.providers_for(settings)
            await asyncio.sleep(0.5)
            await registry.close()

    hastily(main())
    assert probes[1] - probes[0] < 0.1


async def test_what_a_provider_is_asked_has_ended_before_it_is_closed(tmp_path: Path) -> None:
    """A request that is given up may have something to put away."""
    begun = asyncio.Event()

    class Slow(HashingProvider):
        under_way, at_the_close = 0, -1

        async def embed_query(self, text: str) -> Vector:
            self.under_way += 1
            begun.set()
            try:
                return await asyncio.Future[Vector]()
            finally:
                await asyncio.sleep(0)
                self.under_way -= 1

        async def close(self) -> None:
            self.at_the_close = self.under_way
            await super().close()

    provider = Slow()
    async with asyncio.TaskGroup() as tasks:
        parts = ProviderParts(EmbeddingStore(tmp_path / "e.sqlite"), tasks, Random(1), FallbackThresholds())
        registry = ProviderRegistry(parts, lambda _: ProviderChoice(provider, None))
        await registry.providers_for(AgentSettings(workspace=tmp_path, provider="local"))
        await begun.wait()
        await registry.close()
    assert (provider.at_the_close, provider.closed) == (0, True)
