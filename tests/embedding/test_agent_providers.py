"""How an agent asks for the vectors of its questions."""

import asyncio
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.query_queue import QuestionQueue
from memd.embedding.registry import QUERY_TIMEOUT_S, SPARE_S, AgentProviders
from memd.embedding.running_provider import RunningProvider
from memd.providers.provider import Vector, space_of
from memd.store.embedding_cache import EmbeddingStore, Space
from tests.clock import hastily, now_s
from tests.embedding.queue.queues import healthy
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
