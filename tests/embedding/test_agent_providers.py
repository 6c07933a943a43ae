"""How an agent asks for the vectors of its questions."""

import asyncio
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart, FallbackUse
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.query_queue import QuestionQueue
from memd.embedding.registry import QUERY_TIMEOUT_S, SPARE_S, AgentProviders, AgentQueues
from memd.embedding.running_provider import RunningProvider
from memd.providers.provider import Vector, space_of
from memd.store.embedding_cache import EmbeddingStore, Space
from memd.store.index import Index
from tests.clock import hastily, now_s
from tests.embedding.passage_queue.queues import healthy
from tests.embedding.supplies import Nobody
from tests.fakes import HashingProvider


class Silent(HashingProvider):
    """Answers no question."""

    async def embed_query(self, text: str) -> Vector:
        return await asyncio.Future[Vector]()


class OneMember(Nobody):
    """A registry with one pair."""

    def __init__(self, member: RunningProvider) -> None:
        super().__init__()
        self._member = member

    def running_in(self, space: Space, first: ProviderPair) -> RunningProvider | None:
        return self._member


@pytest.mark.parametrize("configured_s", [None, 5.0])
def test_a_question_waits_for_its_vector_as_long_as_is_said(configured_s: float | None) -> None:
    """By the shipped figure; where one is configured the provider ends first, and says more."""

    async def main() -> float:
        provider = Silent()
        queue = QuestionQueue(provider, healthy(), clock=now_s)
        member = cast("RunningProvider", SimpleNamespace(questions=queue, query_timeout_s=configured_s))
        pair = cast("ProviderPair", SimpleNamespace(used=member))
        settings = AgentSettings(workspace=Path("/nowhere"))
        providers = AgentProviders(
            settings, pair, OneMember(member), EmbeddingStore(Path("/nowhere"), rng=Random(1))
        )
        found = await providers.embed_query("which one?", space_of(provider.identity))
        assert isinstance(found, DegradedPart)
        assert found.part == "query_embedding"
        assert "the question had no vector" in found.reason
        queue.close()
        return now_s()

    expected = QUERY_TIMEOUT_S if configured_s is None else configured_s + SPARE_S
    assert hastily(main()) == pytest.approx(expected)


SPACE = ("fake", "m", "k")


@pytest.mark.parametrize(
    ("provider", "used", "wanted", "space", "runs", "expected"),
    [
        ("none", None, None, SPACE, False, None),
        ("local", "a", "m", SPACE, True, None),
        ("local", None, None, SPACE, False, ("provider", "a has no key")),
        ("local", None, None, SPACE, True, ("provider", "a has no key")),
        ("local", "a", None, SPACE, False, ("provider", "a has no key")),
        ("local", "a", "m", None, False, None),
        ("local", "a", "m", SPACE, False, ("rebuild", "fake/m as it was")),
    ],
)
def test_why_no_question_is_embedded_is_told(
    provider: str,
    used: str | None,
    wanted: str | None,
    space: Space | None,
    runs: bool,
    expected: tuple[str, str] | None,
) -> None:
    """Nobody is wanted, nobody is there, nobody knows its model yet, or the vectors are of a model that is gone."""
    pair = SimpleNamespace(used=used, wanted=wanted, reason="a has no key", name="a", model="m")
    member = cast("RunningProvider", object() if runs else None)
    settings = msgspec.convert({"workspace": Path("/nowhere"), "provider": provider}, AgentSettings)
    providers = AgentProviders(
        settings,
        cast("ProviderPair", pair),
        OneMember(member),
        EmbeddingStore(Path("/nowhere"), rng=Random(1)),
    )
    found = providers.unavailable(space)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.part == expected[0]
        assert expected[1] in found.reason


def of_one(member: object, pair: object = None, *, cache: bool = True) -> AgentProviders:
    """What embeds for an agent whose registry has one member."""
    settings = msgspec.convert({"workspace": Path("/nowhere"), "cache": {"enabled": cache}}, AgentSettings)
    return AgentProviders(
        settings,
        cast("ProviderPair", pair or SimpleNamespace(used=member)),
        OneMember(cast("RunningProvider", member)),
        EmbeddingStore(Path("/nowhere"), rng=Random(1)),
    )


async def test_where_nobody_embeds_there_is_no_queue_and_no_vector() -> None:
    """A question is told so, whether nothing embeds or what embeds is not ready for questions."""
    running = SimpleNamespace(queue=object(), questions=None, is_answering=True)
    for providers, queue, answers in (
        (of_one(running), running.queue, True),
        (of_one(None, SimpleNamespace(used=object(), wanted="m", name="a", model="m")), None, False),
    ):
        assert providers.queue(SPACE) is queue
        assert providers.queue(None) is None
        assert (providers.is_answering(SPACE), providers.is_answering(None)) == (answers, False)
        found = await providers.embed_query("which one?", SPACE)
        assert isinstance(found, DegradedPart)
        assert found.part == ("provider" if answers else "rebuild")
    running.is_answering = False
    assert not of_one(running).is_answering(SPACE)


def test_what_is_said_of_a_provider_is_of_the_one_that_is_used() -> None:
    """That it is being found out, until it is known or fails."""
    pair = SimpleNamespace(used=None, name="a", model="m", reason="a refuses", asked=0)
    pair.ask_again = lambda: setattr(pair, "asked", pair.asked + 1)
    providers = of_one(None, pair)
    assert (providers.embeds, providers.is_probing_model) == (False, False)
    assert (providers.provider_name, providers.model_name, providers.reason) == ("a", "m", "a refuses")
    for provider, reason, finds_out in ((None, None, True), (None, "a refuses", False), ("p", None, False)):
        pair.used = SimpleNamespace(provider=provider, health=SimpleNamespace(reason=reason))
        assert (providers.embeds, providers.is_probing_model) == (True, finds_out)
    providers.ask_again()
    assert pair.asked == 1


@pytest.mark.parametrize(
    ("pair", "reason", "expected"),
    [
        (None, "it has no key", ("provider", "it has no key")),
        (None, None, ("provider", "there is no embedding provider")),
        ("used", None, ("provider", "a has not answered yet")),
    ],
)
def test_a_provider_that_cannot_be_asked_is_told_in_words(
    pair: str | None, reason: str | None, expected: tuple[str, str]
) -> None:
    """Its own, where it has some."""
    one = SimpleNamespace(used=pair, wanted=None, reason=reason, name="a", model="m")
    assert of_one(None, one).unavailable(SPACE) == DegradedPart(*expected)


def stood_in(
    *,
    left: str | None = None,
    instead: tuple[str, str] | None = None,
    fallback: object = SPACE,
    primary: object = None,
) -> SimpleNamespace:
    """A pair, as far as is told which provider an answer stands in for; a space of None: there is no such provider."""
    return SimpleNamespace(
        used=object(),
        instead_of=instead,
        why_fallback=left,
        fallback=None if fallback is None else SimpleNamespace(space=fallback, name="b"),
        primary=None if primary == "none" else SimpleNamespace(space=primary, name="a"),
    )


@pytest.mark.parametrize(
    ("pair", "space", "provider", "said"),
    [
        (stood_in(instead=("c", "c has no key"), left="a is down"), SPACE, "c", "c has no key"),
        (stood_in(left="a is down"), None, "a", "a is down"),
        (stood_in(), SPACE, "a", "a has not embedded everything yet; until then b answers"),
        (stood_in(), None, None, None),
        (stood_in(), ("other", "m", "k"), None, None),
        (stood_in(primary=SPACE), SPACE, None, None),
        (stood_in(fallback=None, left="a is down"), SPACE, None, None),
        (stood_in(primary="none", left="a is down"), SPACE, None, None),
    ],
)
def test_which_provider_an_answer_stands_in_for(
    pair: SimpleNamespace, space: Space | None, provider: str | None, said: str | None
) -> None:
    """One that could not be had, one that was left, or one that has not embedded all yet."""
    expected = None if provider is None or said is None else FallbackUse(provider, said)
    assert of_one(object(), pair).fallback_use(space) == expected


async def test_an_agent_is_served_by_queues_until_it_leaves_them() -> None:
    """By none while it rests; what is cached is known of a space alone, and to who has a cache."""
    did: list[object] = []

    class Queue:
        def __init__(self, name: str) -> None:
            self.name = name

        def serve(self, source: IndexToEmbed) -> None:
            did.append((self.name, source))

        async def leave(self, agent: str) -> None:
            did.append((self.name, agent))

    one, other = (cast("EmbeddingQueue", Queue(name)) for name in ("one", "other"))
    index = cast("Index", object())
    for cache in (True, False):
        did.clear()
        providers = of_one(SimpleNamespace(queue=one), cache=cache)
        queues = AgentQueues("main", providers)
        assert queues.embeds
        assert queues.queue(SPACE) is one
        known = queues.known(SPACE)
        assert (known is None) is not cache
        assert known is None or known.space == SPACE
        assert queues.known(None) is None
        queues.suspended = True
        assert (queues.embeds, queues.queue(SPACE)) == (False, None)
        queues.serve(one, index)
        queues.serve(other, index)
        assert did == [(name, IndexToEmbed("main", index, use_cache=cache)) for name in ("one", "other")]
        await queues.leave([one, None])
        assert did[2:] == [("other", "main")]
        assert queues.queues == {one}
        await queues.leave()
        assert did[3:] == [("one", "main")]
        assert queues.queues == set()
