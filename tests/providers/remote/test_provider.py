"""Every provider over HTTP, answering well and badly."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import numpy as np
import pytest

from memd.config.settings import Remote
from memd.providers.api_keys import ProviderAddress, account
from memd.providers.provider import Calibration, EmbedRejected, EmbedTerminal, EmbedUnavailable
from memd.providers.remote import gemini, ollama, openai
from memd.providers.remote.dialect import Dialect, RateLimited, Refused
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.provider import HARMLESS, RemoteProvider
from memd.providers.remote.retrying_client import RetryingClient, RetryPolicy
from memd_client.token_estimate import estimate_tokens
from tests.bounds import shipped
from tests.fakes import embedding_server as says
from tests.fakes.embedding_server import KEY, EmbeddingServer, Plan, Seen
from tests.fakes.http import Response
from tests.wait import until

QUICK = RetryPolicy(attempts=4, first_s=0.001, longest_asked_s=0.2, timeouts=2)
DIMENSIONS = 32
DIALECTS: dict[str, tuple[ProviderAddress, Callable[[str, Remote], Dialect], str | None]] = {
    "openai": (openai.HOME, openai.openai, None),
    "openai-compatible": (openai.ANY_HOME, openai.compatible, None),
    "gemini": (gemini.HOME, gemini.gemini, gemini.KEY_HEADER),
    "voyage": (openai.VOYAGE_HOME, openai.voyage, None),
    "ollama": (ollama.HOME, ollama.ollama, None),
}
PROVIDERS = list(DIALECTS)
TEXTS = ["The lighthouse was painted red.", "灯塔被漆成红色。", "a", "nothing of the kind"]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=DIMENSIONS) as running:
        yield running


@asynccontextmanager
async def asking(
    server: EmbeddingServer,
    name: str,
    options: Mapping[str, object] | None = None,
    *,
    request_timeout_s: float = 10.0,
    query_timeout_s: float = 10.0,
) -> AsyncIterator[RemoteProvider]:
    home, make, header = DIALECTS[name]
    given: dict[str, object] = {"base_url": server.base_url(name), "api_key": "" if name == "ollama" else KEY}
    given |= options or {}
    remote = msgspec.convert(given, Remote)
    whom = account(name, home, remote, {}, lambda _: KEY)
    provider = RemoteProvider(
        RetryingClient(
            make("any-model" if name == "openai-compatible" else "", remote),
            whom,
            HttpConnections(name, whom, header, 4),
        ),
        ModelIdentity(DIMENSIONS, Calibration(), b""),
        request_timeout_s=request_timeout_s,
        query_timeout_s=query_timeout_s,
        indexing=QUICK,
        asking=RetryPolicy(attempts=2, first_s=0.001, longest_asked_s=0.05, timeouts=1),
    )
    try:
        yield provider
    finally:
        await provider.close()


def family(name: str) -> str:
    """Whose words a server of this kind uses."""
    return "openai" if name == "openai-compatible" else name


def told(server: EmbeddingServer, texts: list[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The vectors these texts should have."""
    return server.embedder.embed(texts)


def sent(seen: Seen, name: str) -> list[str]:
    """The texts of a request without what the model wants before them."""
    marks = ("search_query: ", "search_document: ")
    return (
        [text.removeprefix(marks[0]).removeprefix(marks[1]) for text in seen.texts]
        if name == "ollama"
        else list(seen.texts)
    )


def first(times: int, response: Callable[[], Response]) -> Plan:
    """Answer like this the first few times."""
    left = itertools.count()
    return lambda _: response() if next(left) < times else None


# --- what should work


@pytest.mark.parametrize("name", PROVIDERS)
async def test_texts_get_their_vectors(server: EmbeddingServer, name: str) -> None:
    """Each its own, in order, of length 1, in one request with the key where the provider looks for it."""
    async with asking(server, name) as provider:
        rows = await provider.embed_passages(TEXTS)
    [seen] = server.seen
    assert sent(seen, name) == TEXTS
    np.testing.assert_allclose(rows, told(server, list(seen.texts)), atol=1e-6)
    header = "x-goog-api-key" if name == "gemini" else "authorization"
    assert (KEY in seen.request.headers.get(header, "")) == (name != "ollama")


@pytest.mark.parametrize("name", ["gemini", "voyage"])
async def test_questions_and_documents_are_told_apart(server: EmbeddingServer, name: str) -> None:
    """By the type that the API knows."""
    async with asking(server, name) as provider:
        await provider.embed_passages(["a"])
        await provider.embed_query("a")
    assert [seen.kind for seen in server.seen] == ["document", "query"]


async def test_a_compatible_server_is_told_what_the_settings_say(server: EmbeddingServer) -> None:
    """Prefixes, input types and dimensions."""
    options: dict[str, object] = {
        "query_prefix": "q: ",
        "document_prefix": "d: ",
        "query_input_type": "query",
        "document_input_type": "passage",
        "dimensions": DIMENSIONS,
    }
    async with asking(server, "openai-compatible", options) as provider:
        await provider.embed_passages(["a"])
        await provider.embed_query("b")
    assert [(seen.texts, seen.kind) for seen in server.seen] == [(("d: a",), "passage"), (("q: b",), "query")]
    assert msgspec.json.decode(server.seen[0].request.body)["dimensions"] == DIMENSIONS


async def test_ollama_is_given_the_prefixes_of_its_model(server: EmbeddingServer) -> None:
    """A model that was trained with them finds less without."""
    async with asking(server, "ollama") as provider:
        await provider.embed_passages(["a"])
        await provider.embed_query("b")
    assert [seen.texts for seen in server.seen] == [("search_document: a",), ("search_query: b",)]


async def test_gemini_gets_a_hundred_texts_at_most(server: EmbeddingServer) -> None:
    """It refuses more; the answer holds them all."""
    texts = [f"note {number}" for number in range(250)]
    async with asking(server, "gemini") as provider:
        rows = await provider.embed_passages(texts)
    assert [len(seen.texts) for seen in server.seen] == [100, 100, 50]
    np.testing.assert_allclose(rows, told(server, texts), atol=1e-6)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_text_that_is_too_long_is_embedded_in_pieces(server: EmbeddingServer, name: str) -> None:
    """None is larger than the model takes, and the text has one vector."""
    text = "数据库" * 100
    async with asking(server, name, {"max_input_tokens": 50}) as provider:
        rows = await provider.embed_passages([text, "short"])
    pieces = [piece for seen in server.seen for piece in sent(seen, name)]
    assert "".join(pieces[:-1]) == text
    assert max(map(len, pieces)) <= 50
    assert rows.shape == (2, DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.ones(2, np.float32), rtol=1e-5)


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "half a pair: \ud83d", "\ufeff"])
async def test_awkward_texts_arrive(server: EmbeddingServer, text: str) -> None:
    """What no JSON can carry, or many servers refuse, is mended."""
    async with asking(server, "openai") as provider:
        assert (await provider.embed_passages([text])).shape == (1, DIMENSIONS)
        assert (await provider.embed_query(text)).shape == (DIMENSIONS,)


@pytest.mark.parametrize("name", ["openai", "voyage"])
async def test_order_is_that_of_the_index(server: EmbeddingServer, name: str) -> None:
    """A list in another order is put right."""

    def shuffled(seen: Seen) -> Response:
        vectors = server.embedder.embed(list(seen.texts))
        data = [{"index": index, "embedding": vectors[index].tolist()} for index in (2, 0, 3, 1)]
        return Response(body=msgspec.json.encode({"data": data}))

    server.plan = shuffled
    async with asking(server, name) as provider:
        np.testing.assert_allclose(await provider.embed_passages(TEXTS), told(server, TEXTS), atol=1e-6)


# --- what goes wrong for a while


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    "fault", ["503", "500", "429", "reset", "cut", "garbage", "too few", "nan", "zeros", "short"]
)
async def test_a_passing_fault_is_not_noticed(server: EmbeddingServer, name: str, fault: str) -> None:
    """The request is put again, and the vectors are right."""

    def broken() -> Response:
        good = [row.tolist() for row in server.embedder.embed(TEXTS)]
        bad = {
            "too few": good[:-1],
            "nan": [[*good[0][:-1], float("nan")], *good[1:]],
            "zeros": [[0.0] * DIMENSIONS, *good[1:]],
            "short": [row[:-1] for row in good],
        }
        if fault in bad:
            return Response(body=answer(name, bad[fault]))
        return {
            "503": says.broken(family(name)),
            "500": says.broken(family(name), 500),
            "429": says.too_fast(family(name), "0.01"),
            "reset": Response(reset=True),
            "cut": Response(body=answer(name, good), cut_after=50),
            "garbage": Response(body=b"<html>welcome</html>"),
        }[fault]

    server.plan = first(2, broken)
    async with asking(server, name) as provider:
        rows = await provider.embed_passages(TEXTS)
    assert len(server.seen) == 3
    np.testing.assert_allclose(rows, told(server, list(server.seen[-1].texts)), atol=1e-6)


def answer(name: str, vectors: list[list[float]]) -> bytes:
    """Vectors in the form of a provider."""
    if name == "gemini":
        return msgspec.json.encode({"embeddings": [{"values": each} for each in vectors]})
    if name == "ollama":
        return msgspec.json.encode({"embeddings": vectors})
    data = [{"index": index, "embedding": each} for index, each in enumerate(vectors)]
    return msgspec.json.encode({"data": data})


async def test_the_wait_that_is_asked_for_is_kept(server: EmbeddingServer) -> None:
    """A short one here; a long one is left to whoever can do something else meanwhile."""
    server.plan = first(1, lambda: says.too_fast("openai", "0.15"))
    loop = asyncio.get_running_loop()
    async with asking(server, "openai") as provider:
        began = loop.time()
        await provider.embed_passages(["a"])
        assert loop.time() - began >= 0.15
        server.plan = lambda _: says.too_fast("openai", "900")
        server.seen.clear()
        with pytest.raises(RateLimited) as limited:
            await provider.embed_passages(["a"])
    assert limited.value.retry_after_s == 900
    assert len(server.seen) == 1


async def test_a_lasting_fault_is_told(server: EmbeddingServer) -> None:
    """After four attempts, in words that name the provider."""
    server.plan = lambda _: says.broken("openai")
    async with asking(server, "openai") as provider:
        with pytest.raises(EmbedUnavailable, match="openai: the server has trouble"):
            await provider.embed_passages(["a"])
    assert len(server.seen) == 4


@pytest.mark.parametrize("slow", [Response(delay_s=30), Response(body=b"x" * 100, drip_s=0.2)])
async def test_a_request_that_takes_too_long_is_ended(server: EmbeddingServer, slow: Response) -> None:
    """It is tried twice, and its connection is closed rather than left behind."""
    server.plan = lambda _: slow
    async with asking(server, "openai", request_timeout_s=0.3) as provider:
        with pytest.raises(EmbedUnavailable, match="no answer within"):
            await provider.embed_passages(["a"])
    assert len(server.seen) == 2


async def test_a_cancelled_request_closes_its_connection(server: EmbeddingServer) -> None:
    """Nobody pays for work that nobody waits for."""
    server.plan = lambda _: Response(delay_s=0.5)
    async with asking(server, "openai") as provider:
        task = asyncio.create_task(provider.embed_passages(["a"]))
        await asyncio.to_thread(until, lambda: server.seen)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(until, lambda: server.open_connections == 0)


async def test_a_server_that_is_not_there_is_told() -> None:
    """Without the address, which may hold a name that is nobody's business."""
    with EmbeddingServer() as gone:
        pass
    async with asking(gone, "openai") as provider:
        with pytest.raises(EmbedUnavailable, match="cannot be reached"):
            await provider.embed_passages(["a"])


# --- what goes wrong for good


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage"])
async def test_a_wrong_key_is_not_tried_again(server: EmbeddingServer, name: str) -> None:
    """One request, a message for people, and no key in it."""
    async with asking(server, name, {"api_key": "sk-wrong-9876543210"}) as provider:
        with pytest.raises(EmbedTerminal, match="key was not accepted") as refused:
            await provider.embed_passages(TEXTS)
    assert len(server.seen) == 1
    assert "9876" not in str(refused.value)


@pytest.mark.parametrize("name", ["openai", "voyage"])
async def test_an_empty_purse_is_not_tried_again(server: EmbeddingServer, name: str) -> None:
    """However much it looks like going too fast."""
    server.plan = lambda _: says.no_quota(name)
    async with asking(server, name) as provider:
        with pytest.raises(EmbedTerminal, match="quota"):
            await provider.embed_passages(TEXTS)
    assert len(server.seen) == 1


@pytest.mark.parametrize("name", ["openai", "gemini", "ollama"])
async def test_a_model_that_is_not_there_is_not_tried_again(server: EmbeddingServer, name: str) -> None:
    """The message names it."""
    server.models = frozenset()
    async with asking(server, name) as provider:
        with pytest.raises(Refused, match="there is no model"):
            await provider.embed_passages(TEXTS)
    assert len(server.seen) == 1


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_request_that_is_too_large_is_halved(server: EmbeddingServer, name: str) -> None:
    """Until it passes; the next one is small from the start."""
    server.plan = lambda seen: says.too_many(family(name)) if len(seen.texts) > 2 else None
    texts = [f"note {number}" for number in range(8)]
    async with asking(server, name) as provider:
        rows = await provider.embed_passages(texts)
        billed = [seen for seen in server.seen if seen.billed]
        assert [text for seen in billed for text in sent(seen, name)] == texts
        np.testing.assert_allclose(
            rows, told(server, [text for seen in billed for text in seen.texts]), atol=1e-6
        )
        assert provider.limits.texts == 2
        server.seen.clear()
        await provider.embed_passages(texts)
    assert [len(seen.texts) for seen in server.seen] == [2, 2, 2, 2]


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_text_the_model_finds_too_long_is_cut_smaller(server: EmbeddingServer, name: str) -> None:
    """The estimate of tokens may be wrong for a text; the provider's word counts."""
    server.plan = lambda seen: says.too_long(family(name)) if any(len(t) > 120 for t in seen.texts) else None
    text = "word " * 80
    async with asking(server, name) as provider:
        rows = await provider.embed_passages(["before", text, "after"])
    assert rows.shape == (3, DIMENSIONS)
    billed = "".join(piece for seen in server.seen if seen.billed for piece in sent(seen, name))
    assert billed.replace(" ", "") == f"before{'word' * 80}after"


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_text_that_is_too_long_makes_no_request_smaller(server: EmbeddingServer, name: str) -> None:
    """It was the text that did not fit, and not the request: the next ones are as large as before."""
    server.plan = lambda seen: says.too_long(family(name)) if any(len(t) > 120 for t in seen.texts) else None
    texts = [f"note {number}" for number in range(8)]
    async with asking(server, name) as provider:
        limits = provider.limits
        await provider.embed_passages([*texts, "word " * 80, *texts])
        assert provider.limits == limits
        server.seen.clear()
        await provider.embed_passages(texts)
    assert [len(seen.texts) for seen in server.seen] == [8]


@pytest.mark.parametrize("is_longer", [False, True])
async def test_a_short_text_that_is_refused_for_its_size_is_not_cut(
    server: EmbeddingServer, is_longer: bool
) -> None:
    """It has another fault; one token more, and its halves are tried."""
    server.plan = lambda seen: None if HARMLESS in seen.texts else says.too_long("openai")
    tokens = shipped("memd.providers.remote.provider.SMALLEST_PIECE") + is_longer
    text = next(text for text in ("a " * count for count in range(200)) if estimate_tokens(text) == tokens)
    async with asking(server, "openai-compatible") as provider:
        with pytest.raises(EmbedRejected):
            await provider.embed_passages([text])
    sizes = [sum(map(estimate_tokens, seen.texts)) for seen in server.seen if HARMLESS not in seen.texts]
    assert sizes[0] == tokens
    assert (len(sizes) > 1) is is_longer


async def test_an_input_that_llama_server_finds_too_large_is_cut_smaller(server: EmbeddingServer) -> None:
    """It says so as an error of its own, which is not tried again as it is."""
    body = (
        b'{"error": {"code": 500, "type": "server_error", "message": "input (99 tokens) is too large to process.'
        b' increase the physical batch size (current batch size: 32)"}}'
    )
    server.plan = lambda seen: Response(500, body) if any(len(t) > 120 for t in seen.texts) else None
    async with asking(server, "openai-compatible") as provider:
        rows = await provider.embed_passages(["before", "word " * 80, "after"])
    assert rows.shape == (3, DIMENSIONS)
    assert len([seen for seen in server.seen if seen.texts[0] == "before"]) == 2


async def test_a_table_of_white_space_is_no_reason_to_refuse_a_text(server: EmbeddingServer) -> None:
    """A piece of nothing but white space is not sent: many servers refuse it."""
    server.plan = lambda seen: None if all(text.strip() for text in seen.texts) else says.bad_text("openai")
    text = f"left{' ' * 900}right{' ' * 900}"
    async with asking(server, "openai-compatible", {"max_input_tokens": 50}) as provider:
        assert (await provider.embed_passages([text])).shape == (1, DIMENSIONS)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_no_error_tells_what_was_sent(server: EmbeddingServer, name: str) -> None:
    """Some servers put the request into their complaint, whatever its status."""
    text = "dear diary,\n日记里的秘密不能说出去"
    told = "; ".join((repr(text), " ".join(text.split()), text[4:18], text[-11:]))
    server.plan = lambda _: Response(500, msgspec.json.encode({"error": {"message": f"cannot embed {told}"}}))
    async with asking(server, name) as provider:
        with pytest.raises(EmbedUnavailable) as seen:
            await provider.embed_passages([text, "another"])
    assert "HTTP 500" in str(seen.value)
    assert "diary" not in str(seen.value)
    assert "秘密" not in str(seen.value)


async def test_no_error_tells_a_header(server: EmbeddingServer) -> None:
    """It may be a key by another name."""
    server.plan = lambda _: Response(500, b'{"error": "no credit for open-sesame-123, sorry"}')
    options = {"headers": {"X-Gate": "Token open-sesame-123"}}
    async with asking(server, "openai-compatible", options) as provider:
        with pytest.raises(EmbedUnavailable) as seen:
            await provider.embed_passages(["a"])
    assert "sesame" not in str(seen.value)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_text_that_is_refused_is_found_out(server: EmbeddingServer, name: str) -> None:
    """The one that is to blame is named by its place; the provider still takes others."""
    server.plan = lambda seen: (
        says.bad_text(family(name)) if any("poison" in text for text in seen.texts) else None
    )
    async with asking(server, name) as provider:
        with pytest.raises(EmbedRejected) as rejected:
            await provider.embed_passages(["a", "b", "some poison", "d"])
    assert rejected.value.index == 2


@pytest.mark.parametrize("name", PROVIDERS)
async def test_where_everything_is_refused_no_text_is_to_blame(server: EmbeddingServer, name: str) -> None:
    """Setting all texts aside for a mistake in the configuration would lose them."""
    server.plan = lambda _: says.bad_text(family(name))
    async with asking(server, name) as provider:
        with pytest.raises(EmbedTerminal):
            await provider.embed_passages(["a"])


# --- questions


async def test_a_question_has_a_deadline_of_its_own(server: EmbeddingServer) -> None:
    """Whatever requests with documents are allowed."""
    server.plan = lambda _: Response(delay_s=30)
    loop = asyncio.get_running_loop()
    async with asking(server, "openai", query_timeout_s=0.2) as provider:
        began = loop.time()
        with pytest.raises(EmbedUnavailable):
            await provider.embed_query("a")
        assert loop.time() - began < 5


async def test_a_question_is_put_twice_at_most(server: EmbeddingServer) -> None:
    """Within its deadline; then search answers without it."""
    server.plan = lambda _: says.broken("openai")
    async with asking(server, "openai") as provider:
        with pytest.raises(EmbedUnavailable):
            await provider.embed_query("a")
    assert len(server.seen) == 2


# --- what makes vectors comparable


async def test_the_endpoint_and_the_shape_are_part_of_the_identity(server: EmbeddingServer) -> None:
    """Two servers with one model name, or two prefixes, do not share vectors; the key does not matter."""
    identities = set()
    different: tuple[dict[str, object], ...] = (
        {},
        {"document_prefix": "d: "},
        {"dimensions": DIMENSIONS},
        {"base_url": server.url + "/other/v1"},
    )
    for options in different:
        async with asking(server, "openai-compatible", options) as provider:
            identities.add(provider.identity)
    assert len(identities) == 4
    async with asking(server, "openai-compatible", {"api_key": "another-key-1"}) as provider:
        assert provider.identity in identities


def test_voyage_is_told_dimensions_where_some_are_wanted() -> None:
    """They are part of the identity then. A model that is not known takes as many tokens as each of Voyage's does."""
    assert openai.voyage("voyage-4", Remote(dimensions=512)).shape == ("512",)
    assert openai.voyage("voyage-4", Remote()).shape == ()
    assert openai.voyage("voyage-99", Remote()).input_tokens == 16_000
    assert openai.voyage("voyage-99", Remote(max_input_tokens=100)).input_tokens == 100


async def test_questions_go_together(server: EmbeddingServer) -> None:
    """In one request; of several that are refused together, each by itself."""
    questions = ["which database?", "which keys?", "a FORBIDDEN one", "which trees?"]
    async with asking(server, "openai") as provider:
        rows = await provider.embed_queries([questions[0], questions[1]])
        np.testing.assert_allclose(rows, told(server, questions[:2]), atol=1e-6)  # type: ignore[arg-type]
        assert len(server.seen) == 1
        server.plan = lambda seen: (
            says.bad_text("openai") if any("FORBIDDEN" in text for text in seen.texts) else None
        )
        outcomes = await provider.embed_queries(questions)
    assert [isinstance(one, EmbedUnavailable) for one in outcomes] == [False, False, True, False]


@pytest.mark.parametrize("places", [{199}, {0, 40, 41, 120, 199}, set(range(0, 200, 25))])
async def test_what_was_answered_beside_refused_texts_is_paid_for_once(
    server: EmbeddingServer, places: set[int]
) -> None:
    """All that are refused are found, and every other text has the vector that it was billed for."""
    texts = [f"text {n}{' FORBIDDEN' if n in places else ''}" for n in range(200)]
    server.plan = lambda seen: (
        says.bad_text("openai") if any("FORBIDDEN" in text for text in seen.texts) else None
    )
    async with asking(server, "openai") as provider:
        with pytest.raises(EmbedRejected) as rejected:
            await provider.embed_passages(texts)
    assert rejected.value.refused.keys() == places
    assert rejected.value.vectors.keys() == set(range(200)) - places
    good = [text for n, text in enumerate(texts) if n not in places]
    assert sorted(text for text in server.embedded() if text.startswith("text")) == sorted(good)
    for place, row in rejected.value.vectors.items():
        np.testing.assert_allclose(row, told(server, [texts[place]])[0], atol=1e-6)


async def test_what_was_answered_before_a_failure_is_told_with_it(server: EmbeddingServer) -> None:
    """Whatever comes after it; a text in pieces counts when all of them came."""
    texts = [f"text {n}" for n in range(150)] + ["long " * 60]
    server.plan = lambda seen: says.broken("gemini") if len(server.requests("embed")) > 1 else None
    async with asking(server, "gemini", {"max_input_tokens": 50}) as provider:
        with pytest.raises(EmbedUnavailable) as failed:
            await provider.embed_passages(texts)
    assert failed.value.vectors.keys() == set(range(100))
