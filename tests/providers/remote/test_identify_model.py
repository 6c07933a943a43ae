from collections.abc import Iterator

import msgspec
import pytest

from memd.config.settings import Remote
from memd.providers import cosine_calibration
from memd.providers.api_keys import account
from memd.providers.provider import Calibration, EmbedTerminal, EmbedUnavailable
from memd.providers.remote import openai
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.identify_model import ModelIdentity, identify
from memd.providers.remote.provider import key_of
from memd.providers.remote.retrying_client import RetryingClient, RetryPolicy
from tests.fakes import embedding_server as says
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.http import Response

ONCE = RetryPolicy(attempts=1, first_s=0.001, longest_asked_s=0.1, timeouts=1)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=64, key=None) as running:
        yield running


async def found_out(server: EmbeddingServer, before: ModelIdentity | None, tokens: int = 0) -> ModelIdentity:
    remote = Remote(base_url=server.base_url("openai-compatible"), max_input_tokens=tokens)
    whom = account("openai-compatible", openai.ANY_HOME, remote, {}, lambda _: "")
    asker = RetryingClient(
        openai.compatible("m", remote), whom, HttpConnections("openai-compatible", whom, None, 2)
    )
    try:
        return await identify(asker, before, retries=ONCE)
    finally:
        await asker.session.close()


async def test_a_model_nobody_knows_tells_its_dimensions(server: EmbeddingServer) -> None:
    """And the range of its cosines, from two small requests; what was told by another probe is asked again."""
    identity = await found_out(server, None)
    assert identity.dimensions == 64
    assert identity.generation == 0
    assert identity.calibration.low < identity.calibration.high
    assert len(server.seen) == 2
    older = msgspec.structs.replace(identity, version=0)
    assert await found_out(server, older) == identity


async def test_the_same_model_is_recognised_by_one_short_text(server: EmbeddingServer) -> None:
    """Nothing changes, and nothing more is asked."""
    identity = await found_out(server, None)
    server.seen.clear()
    assert await found_out(server, identity) == identity
    assert len(server.embedded()) == 1


@pytest.fixture
def many_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking out what a language adds finds more, as with the models that are used."""
    monkeypatch.setattr(cosine_calibration, "_across", lambda cosines: -float(abs(cosines).mean()))


@pytest.mark.usefixtures("many_languages")
@pytest.mark.parametrize("raised", ["probe", "centring", "both"])
async def test_vectors_without_different_lines_never_meet(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    """Another line is another key; with other texts alone the line stays, and nothing is paid for again."""
    before = await found_out(server, None)
    assert before.bias is not None
    if raised != "centring":
        monkeypatch.setattr(cosine_calibration, "PROBE_VERSION", cosine_calibration.PROBE_VERSION + 1)
        monkeypatch.setattr(
            cosine_calibration,
            "ANSWERS",
            (cosine_calibration.ANSWERS[0], *(f"{text} 灯塔 too" for text in cosine_calibration.ANSWERS[1:])),
        )
    if raised != "probe":
        monkeypatch.setattr(cosine_calibration, "CENTRING_VERSION", cosine_calibration.CENTRING_VERSION + 1)
    after = await found_out(server, before)
    assert after.bias is not None
    same_line = (after.bias.passages, after.bias.questions) == (before.bias.passages, before.bias.questions)
    assert same_line is (raised != "both")  # with the texts of before, the same sums come out
    assert (_key(after) == _key(before)) is (raised == "probe")
    assert await found_out(server, after) == after
    # One that nobody remembers is measured with the texts of now.
    forgotten = await found_out(server, None)
    assert (_key(forgotten) == _key(after)) is (forgotten.bias == after.bias) is (raised != "probe")


def _key(identity: ModelIdentity) -> str:
    remote = Remote(base_url="http://127.0.0.1:1/v1")
    whom = account("openai-compatible", openai.ANY_HOME, remote, {}, lambda _: "")
    return key_of(whom, openai.compatible("m", remote), identity.generation, identity.bias)


async def test_another_model_under_the_same_name_is_noticed(server: EmbeddingServer) -> None:
    """By its dimensions; it is of the next generation, so its vectors meet no old ones."""
    identity = await found_out(server, None)
    with EmbeddingServer(dimensions=32, key=None) as other:
        changed = await found_out(other, identity)
    assert (changed.dimensions, changed.generation) == (32, 1)


@pytest.mark.parametrize("failure", [says.broken("openai"), says.wrong_key("openai")])
async def test_what_cannot_be_found_out_is_told(server: EmbeddingServer, failure: Response) -> None:
    """What was known before is not touched."""
    server.plan = lambda _: failure
    with pytest.raises((EmbedUnavailable, EmbedTerminal)):
        await found_out(server, None)


@pytest.mark.parametrize("tokens", [1, 5, 20])
async def test_a_model_that_takes_little_is_found_out_in_pieces(server: EmbeddingServer, tokens: int) -> None:
    """A text of the probe may be longer than it takes."""
    identity = await found_out(server, None, tokens)
    assert identity.dimensions == 64
    assert await found_out(server, identity, tokens) == identity


async def test_a_model_that_changes_under_the_questions_is_not_taken(server: EmbeddingServer) -> None:
    """All vectors of one identity are of one length."""
    with EmbeddingServer(dimensions=32, key=None) as other:
        server.after = lambda seen, response: (
            other.embed_openai(seen.request, "openai") if len(server.seen) == 2 else response
        )
        with pytest.raises(EmbedUnavailable):
            await found_out(server, None)


def test_what_an_earlier_release_stored_was_probed_with_no_version_of_the_texts() -> None:
    """It is not taken for what this one would find; its vectors are those of the first model of its name."""
    stored = msgspec.json.encode({"dimensions": 2, "calibration": Calibration(), "probe": b""})
    identity = msgspec.json.decode(stored, type=ModelIdentity)
    assert (identity.version, identity.generation) == (0, 0)
