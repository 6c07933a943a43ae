"""Rerankers over HTTP, against a server that takes and gives what those of the providers' documentation do."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from memd.config.settings import Rerank
from memd.domain_types import DegradedPart
from memd.providers.remote.dialect import BadReply, HttpAnswer
from memd.providers.remote.rerank import RemoteReranker, RerankApi, reranker
from memd.providers.reranker import NoReranker
from tests.bounds import shipped
from tests.clock import Clock
from tests.fakes.http import Request, Response, Server
from tests.wait import until_async

KEY = "key-7f3a"
TEXTS = ["the dog sleeps", "a black cat on the roof", "the cat"]
FIELDS = {
    "/v2/rerank": {"query", "documents", "model", "top_n"},  # Cohere
    "/v1/rerank": {"query", "documents", "model", "top_k"},  # Voyage
    "/rerank": {"query", "documents", "model", "top_n"},  # llama.cpp and vLLM
}
NEEDED = {"/v2/rerank": {"model"}, "/v1/rerank": {"model"}, "/rerank": set()}


class Standin:
    """Counts the words that a text shares with the question; the more a text has beside them, the less."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.response: Response | None = None  # in place of an answer
        self.held: asyncio.Event | None = None

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        if self.response is not None:
            return self.response
        fields = json.loads(request.body)
        known = FIELDS.get(request.target)
        if known is None or request.method != "POST":
            return Response(404)
        if request.target != "/rerank" and request.headers.get("authorization") != f"Bearer {KEY}":
            return Response(401, b'{"message": "invalid api token: %s"}' % KEY.encode())
        if not NEEDED[request.target] | {"query", "documents"} <= fields.keys() <= known:
            return Response(422)
        asked = set(fields["query"].split())
        scores = [len(asked & set(text.split())) - len(text) / 1000 for text in fields["documents"]]
        found = [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]
        if request.target == "/rerank":
            return Response(body=json.dumps({"object": "list", "results": found}).encode())
        found.sort(key=lambda one: -one["relevance_score"])
        if request.target == "/v1/rerank":
            return Response(
                body=json.dumps({"object": "list", "data": found, "usage": {"total_tokens": 9}}).encode()
            )
        return Response(body=json.dumps({"id": "1", "results": found, "meta": {}}).encode())


@pytest.fixture
def standin() -> Standin:
    return Standin()


@pytest.fixture
def server(standin: Standin) -> Iterator[Server]:
    with Server(standin) as running:
        yield running


@asynccontextmanager
async def opened(settings: Rerank, clock: Clock | None = None) -> AsyncIterator[RemoteReranker]:
    made = reranker(settings, clock or Clock(), {})
    assert isinstance(made, RemoteReranker)
    try:
        yield made
    finally:
        await made.close()


def at(server: Server, path: str = "/rerank", **fields: object) -> Rerank:
    """Settings of a server of one's own that is given time."""
    settings = Rerank(provider="compatible", base_url=f"{server.url}{path}", timeout_ms=10_000)
    return msgspec.structs.replace(settings, **fields)


@pytest.mark.parametrize(
    ("provider", "path", "model"),
    [
        ("cohere", "/v2", ""),
        ("voyage", "/v1/rerank", "rerank-2.5"),
        ("compatible", "", ""),
        ("compatible", "/rerank", "bge"),
    ],
)
async def test_texts_are_ordered_as_each_provider_does(
    server: Server, standin: Standin, provider: str, path: str, model: str
) -> None:
    """At its path, with its fields, its key and its model."""
    async with opened(at(server, path, provider=provider, model=model, api_key=KEY)) as asked:
        assert await asked.order("black cat", TEXTS) == [1, 2, 0]
    (request,) = standin.requests
    assert json.loads(request.body).get("model", "") == (
        model or ("rerank-v3.5" if provider == "cohere" else "")
    )


def test_what_an_answer_leaves_out_comes_last() -> None:
    """Scores may have any sign, and stand in any order."""
    body = b'{"results": [{"index": 0, "relevance_score": -9.5}, {"index": 2, "relevance_score": -1}]}'
    assert RerankApi("compatible", "").order(HttpAnswer(200, {}, body), 3) == [2, 0, 1]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"results": []}',
        b'{"results": [{"index": 7, "relevance_score": 1}]}',
        b'{"results": 1}',
        b"\xff",
    ],
)
def test_an_answer_that_orders_nothing_is_none(body: bytes) -> None:
    """And what it says is not repeated."""
    with pytest.raises(BadReply, match="compatible: the answer"):
        RerankApi("compatible", "m").order(HttpAnswer(200, {}, body), 2)


@pytest.mark.parametrize(
    ("status", "why"), [(401, "the key is not accepted"), (404, "there is no /rerank"), (500, "HTTP 500")]
)
async def test_a_refusal_is_named_without_what_it_says(
    server: Server, standin: Standin, status: int, why: str
) -> None:
    """It may quote a key or a text; memd names the status."""
    standin.response = Response(status, f"{KEY} {TEXTS[0]}".encode())
    async with opened(at(server, api_key=KEY)) as asked:
        part = await asked.order("cat", TEXTS)
    assert isinstance(part, DegradedPart)
    assert (part.part, part.reason.startswith(f"compatible: {why}")) == ("rerank", True)
    assert KEY not in part.reason + repr(asked)


async def test_a_search_waits_no_longer_than_it_is_told(server: Server, standin: Standin) -> None:
    """The request goes on, so that the next one finds an open connection; nothing is left of it when all is closed."""
    standin.response = Response(body=b"{}", hold_after=0)
    async with opened(at(server, timeout_ms=10)) as asked:
        part = await asked.order("cat", TEXTS)
        assert part == DegradedPart("rerank", "compatible: no answer within 10 ms")
        await until_async(lambda: len(standin.requests) == 1)
        assert len(asyncio.all_tasks()) == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await until_async(lambda: server.open_connections == 0)


async def test_after_some_failures_no_search_waits_for_a_while(server: Server, standin: Standin) -> None:
    """Then it is asked again; one success is enough to be asked each time."""
    clock = Clock()
    failures = shipped("memd.providers.reranker.MOST_FAILURES")
    pause_s = shipped("memd.providers.reranker.PAUSE_S")
    standin.response = Response(503)
    async with opened(at(server), clock) as asked:
        for _ in range(failures):
            assert await asked.order("cat", TEXTS) == DegradedPart("rerank", "compatible: HTTP 503")
        part = await asked.order("cat", TEXTS)
        assert isinstance(part, DegradedPart)
        assert "asked again" in part.reason
        assert len(standin.requests) == failures
        clock.now += pause_s
        standin.response = Response(body=b'{"results": [{"index": 2, "relevance_score": 1}]}')
        assert await asked.order("cat", TEXTS) == [2, 0, 1]
        assert len(standin.requests) == failures + 1


async def test_requests_that_are_not_answered_are_bounded(server: Server, standin: Standin) -> None:
    """A server that never answers does not gather a request for each search."""
    most = shipped("memd.providers.remote.rerank.MOST_CONNECTIONS")
    standin.response = Response(body=b"{}", hold_after=0)
    async with opened(at(server, timeout_ms=10)) as asked:
        parts = await asyncio.gather(*(asked.order("cat", TEXTS) for _ in range(most + 2)))
        reasons = [part.reason for part in parts if isinstance(part, DegradedPart)]
        assert sum("earlier requests" in one for one in reasons) == 2
        assert len(reasons) == most + 2


async def test_long_texts_are_cut(server: Server, standin: Standin) -> None:
    """A chunk may be of any size by its settings."""
    most = shipped("memd.providers.reranker.MAX_TEXT_CHARS")
    standin.response = Response(500)
    async with opened(at(server)) as asked:
        await asked.order("cat", ["x" * (most + 1), "y"])
    assert [len(one) for one in json.loads(standin.requests[0].body)["documents"]] == [most, 1]


@pytest.mark.parametrize(
    ("settings", "environ", "why"),
    [
        (Rerank(provider="cohere"), {}, "COHERE_API_KEY or CO_API_KEY is not set"),
        (
            Rerank(provider="voyage", base_url="https://elsewhere.example/v1"),
            {"VOYAGE_API_KEY": KEY},
            "not the provider's own host",
        ),
        (Rerank(provider="compatible"), {}, "set rerank.base_url"),
        (Rerank(provider="compatible", base_url="http://elsewhere.example", api_key=KEY), {}, "https://"),
        (Rerank(provider="cohere", api_key_file="/nowhere"), {}, "rerank.api_key_file"),
    ],
)
async def test_a_key_goes_to_its_owner_alone(settings: Rerank, environ: Mapping[str, str], why: str) -> None:
    """What is missing is named with each search, which goes on without."""
    made = reranker(settings, Clock(), environ, Path.read_text)
    assert isinstance(made, NoReranker)
    part = await made.order("cat", TEXTS)
    assert isinstance(part, DegradedPart)
    assert why in part.reason
    assert KEY not in part.reason + repr(settings)
    await made.close()
