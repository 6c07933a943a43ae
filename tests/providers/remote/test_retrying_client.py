"""Requests that are tried again."""

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import stamina
from stamina.instrumentation import set_on_retry_hooks
from structlog.testing import capture_logs

from memd.config.settings import Remote
from memd.embedding.registry import QUERY_TIMEOUT_S
from memd.providers.provider import EmbedUnavailable
from memd.providers.remote.dialect import HttpRequest, RequestTimedOut
from memd.providers.remote.retrying_client import (
    ASKING,
    INDEXING,
    RetryPolicy,
    SentCounter,
    log_retries,
    open_client,
)
from memd.providers.remote.spec import provider_spec
from tests.bounds import shipped
from tests.clock import hastily, now_s
from tests.fakes.http import Request, Response, Server
from tests.wait import until_async


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[None]:
    """As often as it says, with no pause."""
    stamina.set_testing(True, attempts=1000, cap=True)
    yield
    stamina.set_testing(False)
    set_on_retry_hooks(None)


async def attempts(retries: RetryPolicy, failure: Exception, *, succeeds_at: int = 0) -> int:
    """How often a request is put that fails so, but for one attempt."""
    made = 0
    try:
        async for attempt in retries.attempt():
            with attempt:
                made += 1
                if made != succeeds_at:
                    raise failure
    except type(failure):
        pass
    return made


@pytest.mark.parametrize("retries", [INDEXING, ASKING], ids=["documents", "questions"])
async def test_what_passes_by_itself_is_tried_again_and_not_for_ever(retries: RetryPolicy) -> None:
    """At the shipped figures; what takes too long, or is to wait for too long, less often."""
    assert await attempts(retries, EmbedUnavailable("busy")) == retries.attempts > 1
    assert await attempts(retries, EmbedUnavailable("busy"), succeeds_at=2) == 2
    assert await attempts(retries, RequestTimedOut("late")) == retries.timeouts < retries.attempts
    assert await attempts(retries, ValueError("a bug")) == 1
    longest = retries.longest_asked_s
    assert await attempts(retries, EmbedUnavailable("busy", retry_after_s=longest)) == retries.attempts
    assert await attempts(retries, EmbedUnavailable("busy", retry_after_s=longest + 0.01)) == 1


@pytest.mark.parametrize(
    ("retries", "asked_s", "waited_s"),
    [
        (INDEXING, None, (0.5 + 0.25) + (1 + 0.25) + (2 + 0.25)),
        (ASKING, None, 0.1 + 0.05),
        (INDEXING, 7.5, 3 * 7.5),
        (ASKING, 0.0, 0.001),
    ],
)
def test_pauses_double_unless_the_provider_asks_for_others(
    monkeypatch: pytest.MonkeyPatch, retries: RetryPolicy, asked_s: float | None, waited_s: float
) -> None:
    """Each is longer by up to half of the first one, by chance: here by all of it."""
    stamina.set_testing(False)
    monkeypatch.setattr(random, "uniform", lambda _, most: most)

    async def waited() -> float:
        await attempts(retries, EmbedUnavailable("busy", retry_after_s=asked_s))
        return now_s()

    assert hastily(waited()) == pytest.approx(waited_s)


async def test_each_retry_is_logged_without_what_was_sent() -> None:
    """The library's own log would quote arguments."""
    log_retries()
    with capture_logs() as logs:
        assert await attempts(INDEXING, EmbedUnavailable("busy"), succeeds_at=3) == 3
    assert [(one["event"], one["attempt"], one["reason"]) for one in logs] == [
        ("embed.request_retried", number, "busy") for number in (1, 2)
    ]


def test_what_was_sent_is_counted_until_it_is_taken() -> None:
    """Whoever stores it is woken while there is some."""
    counter = SentCounter()
    assert not counter.some.is_set()
    counter.add(2, 30)
    counter.add(1, 4)
    assert counter.some.is_set()
    assert counter.take() == (3, 34)
    assert not counter.some.is_set()
    assert counter.take() == (0, 0)


def test_documents_have_more_patience_than_a_question_has_time() -> None:
    """The pauses of a question fit into its deadline; documents wait out an outage of seconds."""
    assert (ASKING.attempts - 1) * ASKING.longest_asked_s < QUERY_TIMEOUT_S
    assert INDEXING.attempts > ASKING.attempts
    assert INDEXING.longest_asked_s > QUERY_TIMEOUT_S


async def test_a_client_that_is_opened_has_not_connected() -> None:
    """It knows its server, and can be closed without a request."""
    made = provider_spec("ollama", "", Remote(base_url="http://127.0.0.1:1"), {}, Path.read_text)
    opened = open_client(made)
    assert opened.dialect is made.dialect
    assert opened.account is made.account
    await opened.session.close()


async def test_questions_have_connections_beside_documents() -> None:
    """However many documents are sent at a time, so many questions wait for none of them."""
    wanted = 3 + shipped("memd.providers.remote.retrying_client.QUESTIONS")
    under_way, answers = 0, threading.Event()

    async def answer(_: Request) -> Response:
        nonlocal under_way
        under_way += 1
        await until_async(answers.is_set)
        return Response()

    with Server(answer) as server:
        remote = Remote(base_url=f"{server.url}/v1", api_key="key", concurrency=3)
        session = open_client(provider_spec("openai", "", remote, {}, Path.read_text)).session
        asked = [
            asyncio.ensure_future(session.send(HttpRequest("embeddings", b"{}"), 60))
            for _ in range(2 * wanted)
        ]
        await until_async(lambda: under_way >= wanted)
        await asyncio.sleep(0.1)  # one more would have come by now
        assert under_way == wanted
        answers.set()
        await asyncio.gather(*asked)
        await session.close()
