"""Jobs of every provider over HTTP, going well and badly."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.config.settings import BatchSettings
from memd.providers.batch.circuit_breaker import COOL_DOWN_S, DOCUMENT, decoded
from tests.bounds import shipped
from tests.fakes import embedding_server as says
from tests.fakes.embedding_server import EmbeddingServer, Seen
from tests.fakes.http import Response
from tests.providers.batch.rig import (
    PROVIDERS,
    SOON,
    batching,
    hash_of,
    texts_of,
    through,
    until_forgotten,
    vector_of,
)
from tests.wait import until_async


def only(server: EmbeddingServer, what: str, times: int, answer: Callable[[str], Response]) -> None:
    """Have the first few requests of a kind answered otherwise."""
    left = [times]

    def plan(seen: Seen) -> Response | None:
        if seen.what != what or not left[0]:
            return None
        left[0] -= 1
        return answer(seen.provider)

    server.plan = plan


def lost(server: EmbeddingServer, what: str, times: int) -> None:
    """Let the server do what it is asked, and its answer be lost on the way."""
    left = [times]

    def after(seen: Seen, response: Response) -> Response:
        if seen.what != what or not left[0]:
            return response
        left[0] -= 1
        return Response(reset=True)

    server.after = after


# --- what should work


@pytest.mark.parametrize("name", PROVIDERS)
async def test_texts_get_their_vectors(server: EmbeddingServer, tmp_path: Path, name: str) -> None:
    """Uploaded, waited for, fetched in any order and kept; each is paid for once, and the ledger is empty."""
    texts = texts_of(40)
    server.polls_until_done = 4
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        rig.changes.clear()
        await rig.batches.submit(texts)
        assert all(map(rig.batches.holds, texts))
        assert (rig.batches.jobs, rig.batches.claimed) == (1, 40)
        await until_forgotten(rig)
        assert await rig.kept(texts) == {text_hash: vector_of(text) for text_hash, text in texts.items()}
        assert not any(map(rig.batches.holds, texts))
        assert (sorted(rig.delivered), rig.changes) == (sorted(texts), [1, 0])
    assert sorted(server.embedded()) == sorted(texts.values())
    assert len(server.requests("poll")) >= 4
    assert {one.request.headers.get("content-type") for one in server.requests("create")} == {
        "application/json"
    }


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("outcome", ["completed", "failed"])
async def test_nothing_of_a_job_stays_at_the_providers(
    server: EmbeddingServer, tmp_path: Path, name: str, outcome: str
) -> None:
    """Its files, with texts or vectors in them, are deleted once it has ended, well or badly; those of others are not."""
    server.batch_outcome, server.done_before_end = outcome, 3
    server.fails_line = lambda text: "note 1 " in text
    server.files["file-of-somebody"] = b"{}"
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(texts_of(10))
        await until_async(lambda: len(server.deleted) >= 2 and list(server.files) == ["file-of-somebody"], 20)
        await until_forgotten(rig)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_file_is_deleted_whose_job_was_not_created(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """The provider had the texts by then."""
    server.has_batches = False
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(texts_of(10))
        await until_async(lambda: len(server.deleted) == 1 and not server.files, 20)


async def test_files_that_cannot_be_deleted_hold_nothing_up(server: EmbeddingServer, tmp_path: Path) -> None:
    """A few attempts, and the job is forgotten all the same."""
    texts = texts_of(10)
    server.plan = lambda seen: says.broken(seen.provider) if seen.what == "delete" else None
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 10
        assert rig.batches.state.failures == 0
    assert len(server.requests("delete")) == 2 * 3


@pytest.mark.parametrize("name", PROVIDERS)
async def test_many_texts_make_several_jobs(server: EmbeddingServer, tmp_path: Path, name: str) -> None:
    """None has more texts than it may, and two are under way at a time."""
    texts = texts_of(50)
    server.batch_outcome = "never"
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite", most=12) as rig:
        await rig.batches.submit(texts)
        assert rig.batches.jobs == 5
        await until_async(lambda: len(server.requests("poll")) >= 10, 20)
        assert len(server.jobs) == 2
        server.batch_outcome = "completed"
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 50
    assert [one.status for one in server.requests("create")] == [200] * 5
    assert sorted(server.embedded()) == sorted(texts.values())


async def test_no_file_is_larger_than_it_may_be(server: EmbeddingServer, tmp_path: Path) -> None:
    """The size of its lines counts; a text that is larger by itself is left to plain requests."""
    texts = texts_of(30) | {hash_of("x" * 5000): "x" * 5000}
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite", most_bytes=2000) as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 30
    inputs = [(server.files | server.deleted)[job.input_file] for job in server.jobs.values()]
    assert len(inputs) > 2
    assert max(map(len, inputs)) <= 2002  # the form adds a line


async def test_a_text_is_put_into_one_job_only(server: EmbeddingServer, tmp_path: Path) -> None:
    """What is in a job already is left out of the next, also when both are submitted at once."""
    texts = texts_of(20)
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await asyncio.gather(rig.batches.submit(texts), rig.batches.submit(texts))
        assert rig.batches.claimed == 20
        await until_forgotten(rig)
    assert len(server.embedded()) == 20


async def test_awkward_texts_pass(server: EmbeddingServer, tmp_path: Path) -> None:
    """NUL, a lone surrogate and an empty text are sent as plain requests send them; one that is too long is not."""
    awkward = {hash_of(text): text for text in ("a\0b", "lone \ud800 surrogate", "", "\n", "line\u2028break")}
    long = "word " * 40_000
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(awkward | {hash_of(long): long})
        assert not rig.batches.holds(hash_of(long))
        await until_forgotten(rig)
        assert len(await rig.kept(awkward)) == len(awkward)
    assert "ab" in server.embedded()


async def test_nobody_waits_for_a_job_where_that_is_not_wanted(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """With wait = false the next job is created while the first ones run, and none is ever late."""
    texts = texts_of(40)
    server.batch_outcome = "never"
    settings = BatchSettings(enabled=True, wait=False, poll_interval_ms=2, timeout_minutes=0.0001)
    url = server.base_url("openai")
    async with batching("openai", url, tmp_path / "e.sqlite", most=10, settings=settings) as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: len(server.jobs) == 4, 20)
        seen = len(server.requests("poll"))
        await until_async(lambda: len(server.requests("poll")) > seen + 20, 20)
        server.batch_outcome = "completed"
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 40
    assert not server.requests("cancel")


# --- results that are not what they should be


def _nan(line: bytes) -> bytes:
    return line.replace(b"0.0", b"NaN", 1)


def _null(line: bytes) -> bytes:
    return line.replace(b"0.0", b"null", 1)


def _infinite(line: bytes) -> bytes:
    return line.replace(b"0.0", b"1e999", 1)


def _short(line: bytes) -> bytes:
    return line.replace(b"0.0,", b"", 1)


def _stranger(line: bytes) -> bytes:
    document = msgspec.json.decode(line)
    name = "key" if "key" in document else "custom_id"
    return msgspec.json.encode(document | {name: "ab" * 32}) + b"\n"


def _nameless(line: bytes) -> bytes:
    document = msgspec.json.decode(line)
    name = "key" if "key" in document else "custom_id"
    return msgspec.json.encode(document | {name: "not a hash"}) + b"\n"


def _empty(line: bytes) -> bytes:
    document = msgspec.json.decode(line)
    return msgspec.json.encode(document | {"response": {"status_code": 200, "body": {"data": []}}}) + b"\n"


def _two(line: bytes) -> bytes:
    return line.replace(b'"data":[', b'"data":[{"embedding":[1.0]},').replace(
        b'"values":[', b'"values":[1.0,'
    )


def _endless(line: bytes) -> bytes:
    return line.rstrip(b"\n") + b" " * (5 << 20) + b"\n"


SPOILT: list[Callable[[bytes], bytes]] = [
    lambda _: b"this is no JSON\n",
    lambda _: b"\xff\xfe\n",
    lambda _: b"[]\n",
    lambda _: b"\n",
    lambda line: line[: len(line) // 2] + b"\n",
    _nan,
    _null,
    _infinite,
    _short,
    _stranger,
    _nameless,
    _empty,
    _two,
    _endless,
]


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_line_that_cannot_be_used_costs_its_own_text_only(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """It is let go for plain requests; every other vector is there and right, and the job counts as a success."""
    texts = texts_of(3 * len(SPOILT))
    spoilt: list[str] = []

    def spoil(lines: list[bytes]) -> list[bytes]:
        for place, each in enumerate(SPOILT):
            document = msgspec.json.decode(lines[3 * place + 1])
            spoilt.append(document.get("key") or document["custom_id"])
            lines[3 * place + 1] = each(lines[3 * place + 1])
        return lines

    server.output = spoil
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        kept = await rig.kept(texts)
        assert all(vector == vector_of(texts[text_hash]) for text_hash, vector in kept.items())
        left = {text_hash: text for text_hash, text in texts.items() if text_hash not in kept}
        assert sorted(text_hash.hex() for text_hash in left) == sorted(spoilt)
        assert not any(map(rig.batches.holds, left))
        assert not any(map(rig.batches.takes, left))
        assert rig.batches.state.failures == 0
        await rig.batches.submit(left)  # they are not put into another one
        assert rig.batches.jobs == 0


@pytest.mark.parametrize("name", PROVIDERS)
async def test_of_two_lines_for_a_text_the_first_counts(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """Whatever else comes under the same id."""
    texts = texts_of(5)
    server.output = lambda lines: [*lines, *(line.replace(b"0.0", b"0.5") for line in lines)]
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert await rig.kept(texts) == {text_hash: vector_of(text) for text_hash, text in texts.items()}
        assert len(rig.delivered) == 5


@pytest.mark.parametrize("kept", [3, 2, 0])
async def test_a_file_without_an_end_is_not_read_to_it(
    server: EmbeddingServer, tmp_path: Path, kept: int
) -> None:
    """After so many lines more than there were texts, the rest is left."""
    texts, spare = texts_of(3), shipped("memd.providers.batch.job.SPARE_LINES")
    server.output = lambda lines: [*([_stranger(lines[0])] * (spare + 3 - kept)), *lines]
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == kept
        assert rig.batches.state.failures == (not kept)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_texts_that_fail_are_let_go_and_the_others_kept(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """A job with some failures is a success."""
    texts = texts_of(20)
    server.fails_line = lambda text: text.split()[1] in {"3", "7"}
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        failed = [text_hash for text_hash in texts if not rig.batches.takes(text_hash)]
        assert len(await rig.kept(texts)) == 18
        assert len([text_hash for text_hash in texts if text_hash not in rig.delivered]) == 2
        assert set(texts) - set(rig.delivered) <= set(failed)
        assert rig.batches.state.failures == 0


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_in_which_every_text_fails_is_a_failure(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """With the reason that the lines give."""
    server.fails_line = lambda _: True
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts_of(4))
        assert rig.batches.state.failures == 1
        told = {"gemini": "error INVALID_ARGUMENT"}.get(name, "HTTP 400")
        assert rig.batches.state.reason == f"{name}: the job brought no vector at all ({told})"


# --- jobs that do not end as they should


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_complete_job_without_results_is_a_failure(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """Its texts are let go."""
    texts = texts_of(4)
    server.names_output = False
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert rig.batches.state.failures == 1
        assert not any(map(rig.batches.holds, texts))


@pytest.mark.parametrize("outcome", ["failed", "expired", "cancelled"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_what_a_job_did_before_it_ended_early_is_fetched(
    server: EmbeddingServer, tmp_path: Path, name: str, outcome: str
) -> None:
    """The rest is let go, and the reason remembered."""
    texts = texts_of(10)
    server.batch_outcome, server.done_before_end = outcome, 6
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 6
        assert rig.batches.state.failures == 1
        assert rig.batches.state.reason == f"{name}: the job has {outcome}"
        assert not any(map(rig.batches.takes, texts.keys() - set(rig.delivered)))


async def test_a_job_that_fails_at_validation_says_why(server: EmbeddingServer, tmp_path: Path) -> None:
    """The provider's codes stand in the reason, not its words."""

    def spoiled(seen: Seen, response: Response) -> Response:
        if seen.what == "create":
            for job in server.jobs.values():
                job.faults = ("token_limit_exceeded",)
        return response

    server.after = spoiled
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts_of(4))
        assert rig.batches.state.reason == "openai: the job has failed (token_limit_exceeded)"


@pytest.mark.parametrize("name", PROVIDERS)
async def test_two_failures_turn_batches_off_and_that_outlives_a_restart(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """No further job is created until a person wants it; then a success makes it all forgotten."""
    server.batch_outcome = "failed"
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    with capture_logs() as logs:
        async with batching(name, url, file) as rig:
            await through(rig, texts_of(4, "first"))
            assert rig.batches.state.failures == 1
            server.batch_outcome = "completed"
            await through(rig, texts_of(4, "between"))
            assert rig.batches.state.failures == 0, "a success forgets what failed before"
            server.batch_outcome = "failed"
            await through(rig, texts_of(4, "first again"))
            await through(rig, texts_of(4, "second"))
            assert not rig.batches.is_open
            await until_async(lambda: "embed.batches_turned_off" in [one["event"] for one in logs], 20)
    told = [one["reason"] for one in logs if one["event"] == "embed.batches_turned_off"]
    assert told == [f"{name}: the job has failed"]
    async with batching(name, url, file) as rig:
        standing = rig.batches.state
        assert (standing.is_on, standing.failures, standing.reason) == (
            False,
            2,
            f"{name}: the job has failed",
        )
        await rig.batches.submit(texts_of(4, "third"))
        assert rig.batches.jobs == 0
        await rig.batches.turn_on()
    server.batch_outcome = "completed"
    async with batching(name, url, file) as rig:
        assert rig.batches.is_open
        await through(rig, texts_of(4, "third"))
        assert rig.batches.state.failures == 0
    assert len(server.jobs) == 5


async def test_jobs_that_fail_at_the_same_time_count_each(server: EmbeddingServer, tmp_path: Path) -> None:
    """Two turn batches off, in memory and in the ledger."""
    server.batch_outcome = "expired"
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, most=5) as rig:
        await through(rig, texts_of(10))
        assert (rig.batches.state.failures, rig.batches.is_open) == (2, False)
        assert decoded(await rig.ledger.document(DOCUMENT)).failures == 2


@pytest.mark.parametrize("what", ["upload", "create"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_provider_without_batches_is_asked_once(
    server: EmbeddingServer, tmp_path: Path, name: str, what: str
) -> None:
    """They are off at once, and every text is let go."""
    texts = texts_of(4)
    server.has_batches = False
    if what == "upload":
        only(
            server,
            what,
            9,
            lambda provider: says.unknown_model(provider, "files") if provider != "voyage" else Response(404),
        )
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert not rig.batches.is_open
        assert "has no batches for" in (rig.batches.state.reason or "")
        assert not any(map(rig.batches.holds, texts))
    assert len(server.requests(what)) == 1


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_that_never_ends_is_cancelled_and_what_it_did_fetched(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """Once that is forgiven, and its texts may be tried in another job; the second time batches are off."""
    texts = texts_of(10)
    server.batch_outcome, server.done_before_end, server.polls_until_cancelled = "never", 4, 3
    settings = BatchSettings(enabled=True, poll_interval_ms=2, timeout_minutes=0.001)
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite", settings=settings) as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 4
        assert (rig.batches.state.failures, rig.batches.is_open) == (0, True)
        left = {text_hash: text for text_hash, text in texts.items() if text_hash not in rig.delivered}
        assert all(map(rig.batches.takes, left))
        await through(rig, left)
        assert len(await rig.kept(texts)) == 8
        assert (rig.batches.state.failures, rig.batches.is_open) == (2, False)
        assert "was not done after 0.001 minutes" in (rig.batches.state.reason or "")
    assert [job.state for job in server.jobs.values()] == ["cancelled", "cancelled"]


async def test_a_job_that_nobody_waits_for_is_not_waited_for_without_end(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Its texts would never get their vectors."""
    texts = texts_of(10)
    server.batch_outcome = "never"
    settings = BatchSettings(enabled=True, wait=False, poll_interval_ms=2)
    timeouts = msgspec.structs.replace(SOON, end_s=0.2)
    url = server.base_url("openai")
    async with batching("openai", url, tmp_path / "e.sqlite", settings=settings, timeouts=timeouts) as rig:
        await through(rig, texts)
        assert not any(map(rig.batches.holds, texts))
    assert len(server.requests("cancel")) == 1


async def test_jobs_that_are_late_together_are_forgiven_together(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """The second attempt is one that began after the first was late."""
    server.batch_outcome = "never"
    settings = BatchSettings(enabled=True, poll_interval_ms=2, timeout_minutes=0.001)
    url = server.base_url("openai")
    async with batching("openai", url, tmp_path / "e.sqlite", settings=settings, most=5) as rig:
        await through(rig, texts_of(10))
        assert len(server.jobs) == 2
        assert (rig.batches.state.failures, rig.batches.is_open) == (0, True)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_that_ends_while_it_is_cancelled_is_a_success(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """Nothing is lost of it."""
    texts = texts_of(6)
    server.batch_outcome = "never"

    def end(seen: Seen) -> Response | None:
        if seen.what == "cancel":
            server.batch_outcome = "completed"
            return says.broken(seen.provider, 409)
        return None

    server.plan = end
    settings = BatchSettings(enabled=True, poll_interval_ms=2, timeout_minutes=0.0005)
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite", settings=settings) as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 6
        assert rig.batches.state.failures == 0
        assert not rig.batches.state.was_late


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_state_that_nobody_knows_is_waited_out(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """It is none in which a job has ended."""
    texts = texts_of(6)
    server.running_state, server.polls_until_done = "BEING_THOUGHT_ABOUT", 5
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 6


@pytest.mark.parametrize("places", [{"response"}, {"metadata"}, {"response", "metadata"}])
async def test_geminis_file_is_found_in_either_place(
    server: EmbeddingServer, tmp_path: Path, places: set[str]
) -> None:
    """In the answer of the operation, or in its metadata."""
    texts = texts_of(6)
    server.gemini_places = frozenset(places)
    async with batching("gemini", server.base_url("gemini"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 6


# --- answers that do not come


@pytest.mark.rows(8)
@pytest.mark.parametrize(
    "trouble",
    [
        says.broken,
        lambda provider: says.too_fast(provider, "0.05"),
        lambda _: Response(reset=True),
        lambda _: Response(body=b"{}"),
        lambda _: Response(body=b'{"id": 3, "name'),
        says.wrong_key,
    ],
)
@pytest.mark.parametrize("what", ["poll", "download"])
@pytest.mark.parametrize("name", ["openai", "gemini"])
async def test_a_provider_that_is_away_for_a_while_loses_no_job(
    server: EmbeddingServer, tmp_path: Path, name: str, what: str, trouble: Callable[[str], Response]
) -> None:
    """Whatever it says meanwhile: it is asked again, what has been paid for is fetched, and nothing counts as a failure."""
    texts = texts_of(6)
    only(server, what, 6 if what == "poll" else 2, trouble)
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(texts)
        if trouble is says.wrong_key:
            await until_async(lambda: "key" in (rig.batches.reason or ""), 20)
        await until_forgotten(rig)
        assert len(rig.delivered) == 6
        assert rig.batches.reason is None
        assert rig.batches.state.failures == 0
    assert len(server.embedded()) == 6


async def test_a_server_that_refuses_connections_loses_no_job(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Its texts are held until it is back."""
    texts = texts_of(6)
    server.batch_outcome = "never"
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: len(server.requests("poll")) > 2, 20)
        server.refuse()
        await until_async(lambda: "cannot be reached" in (rig.batches.reason or ""), 20)
        assert all(map(rig.batches.holds, texts))
        server.batch_outcome = "completed"
        server.listen()
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 6
        assert rig.batches.state.failures == 0


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_whose_creation_was_not_answered_is_not_created_again(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """It is found by its label, on whatever page of the list."""
    texts = texts_of(6)
    lost(server, "create", 1)
    server.page = 1
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite", most=3) as rig:
        await through(rig, texts)
        assert len(await rig.kept(texts)) == 6
    assert len(server.jobs) == 2
    assert len(server.embedded()) == 6


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_job_is_sought_on_so_many_pages(server: EmbeddingServer, tmp_path: Path, beyond: int) -> None:
    """It was created just before: one that is further back is another installation's."""
    newer = shipped("memd.providers.batch.remote_files.MOST_PAGES") - 1 + beyond
    server.page = 1

    def after(seen: Seen, response: Response) -> Response:
        if seen.what != "create" or len(server.jobs) != 1:
            return response
        [job] = server.jobs.values()
        for number in range(newer):
            name = f"other-{number}"
            server.jobs[name] = msgspec.structs.replace(job, id=name, label={"who": "else"})
        return Response(reset=True)

    server.after = after
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts_of(3))
    assert len(server.requests("create")) == 1 + beyond


@pytest.mark.rows(4)
@pytest.mark.parametrize("trouble", [says.broken, lambda provider: says.too_fast(provider, "0.01")])
@pytest.mark.parametrize("what", ["upload", "create"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_beginning_that_fails_is_tried_again_and_then_left(
    server: EmbeddingServer, tmp_path: Path, name: str, what: str, trouble: Callable[[str], Response]
) -> None:
    """Twice costs nothing; for ever is a failure, and the texts are let go without having been paid for."""
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    async with batching(name, url, file) as rig:
        only(server, what, 2, trouble)
        await through(rig, texts_of(6))
        assert len(rig.delivered) == 6
        only(server, what, 1000, trouble)
        others = texts_of(6, "other")
        await through(rig, others)
        assert rig.batches.state.failures == 1
        assert not any(map(rig.batches.holds, others))
    assert len(server.jobs) == 1


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_key_that_is_refused_from_the_first_leaves_all_to_plain_requests(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """With a reason that does not tell the key."""
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite", key="sk-other-0123456789") as rig:
        await through(rig, texts_of(6))
        reason = rig.batches.state.reason or ""
        assert "the key was not accepted" in reason
        assert "0123456789" not in reason
    assert not server.jobs


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_download_that_breaks_off_is_taken_up_and_nothing_delivered_twice(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """What came before the break is kept at once."""
    texts = texts_of(600)
    breaks = iter([20, 40, 70, 95])

    def cut(seen: Seen, response: Response) -> Response:
        share = next(breaks, None) if seen.what == "download" else None
        if share is None:
            return response
        return msgspec.structs.replace(response, cut_after=len(response.body) * share // 100)

    server.after = cut
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(rig.delivered) == len(set(rig.delivered)) == 600
        assert await rig.kept(texts) == {text_hash: vector_of(text) for text_hash, text in texts.items()}
        assert rig.batches.state.failures == 0
    assert len(server.requests("download")) == 5


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_file_that_never_comes_whole_is_left_at_last(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """What can be read of it is kept, the rest let go."""
    texts = texts_of(100)
    server.after = lambda seen, response: (
        msgspec.structs.replace(response, cut_after=len(response.body) // 2)
        if seen.what == "download"
        else response
    )
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert 40 < len(await rig.kept(texts)) < 60
        assert not any(map(rig.batches.holds, texts))
        assert rig.batches.state.failures == 1


async def test_a_file_with_errors_that_cannot_be_had_spoils_nothing(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """The file with vectors is fetched first, and the job is a success."""
    server.fails_line = lambda text: text.split()[1] == "3"

    def gone(seen: Seen, response: Response) -> Response:
        [job] = server.jobs.values() or [None]
        is_errors = job is not None and job.error_file is not None and job.error_file in seen.request.target
        return Response(404) if seen.what == "download" and is_errors else response

    server.after = gone
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts_of(6))
        assert len(rig.delivered) == 5
        assert rig.batches.state.failures == 0
    assert [one.status for one in server.requests("download")] == [200, 404]


@pytest.mark.rows(2)
@pytest.mark.parametrize("what", ["poll", "download"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_that_is_gone_is_let_go(
    server: EmbeddingServer, tmp_path: Path, name: str, what: str
) -> None:
    """Somebody deleted it or its file: its texts are embedded otherwise."""
    texts = texts_of(4)
    only(server, what, 9999, lambda provider: Response(404))
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert server.requests("cancel"), "it may be there all the same"
        assert rig.batches.state.reason == f"{name}: the job or its results are not there any more"
        assert rig.batches.state.is_on
        assert not any(map(rig.batches.holds, texts))


@pytest.mark.parametrize("what", ["poll", "download"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_that_seems_to_be_gone_for_a_moment_is_not_given_up(
    server: EmbeddingServer, tmp_path: Path, name: str, what: str
) -> None:
    """It has been paid for; a gateway that is exchanged says 404 of everything."""
    texts = texts_of(4)
    only(server, what, 3, lambda _: Response(404, b"<html>404 page not found</html>"))
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        assert len(rig.delivered) == 4
        assert rig.batches.state.failures == 0
    assert len(server.jobs) == 1
    assert not server.files


async def test_what_is_in_jobs_is_told_for_many_texts_at_once(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """As it is for each; the loop stands still for that at each edit, so it takes no look at each job for each text."""
    server.batch_outcome = "never"
    texts, others = texts_of(6), texts_of(12).keys()
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(texts)
        assert rig.batches.held_of(others) == frozenset(filter(rig.batches.holds, others)) == texts.keys()


async def test_a_name_that_leads_elsewhere_is_no_name(server: EmbeddingServer, tmp_path: Path) -> None:
    """The key is not sent where an answer points to."""
    with EmbeddingServer(dimensions=32) as other:
        only(server, "create", 99, lambda _: Response(body=msgspec.json.encode({"name": f"{other.url}/x"})))
        async with batching("gemini", server.base_url("gemini"), tmp_path / "e.sqlite") as rig:
            await through(rig, texts_of(4))
            assert rig.batches.state.failures == 1
        assert not other.seen


async def test_a_provider_that_names_a_time_is_asked_then(server: EmbeddingServer, tmp_path: Path) -> None:
    """Not before."""
    only(server, "poll", 1, lambda provider: says.too_fast(provider, "0.25"))
    loop = asyncio.get_running_loop()
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await rig.batches.submit(texts_of(3))
        await until_async(lambda: server.requests("poll"), 20)
        refused_at = loop.time()
        await until_async(lambda: len(server.requests("poll")) > 1, 20)
        assert loop.time() - refused_at > 0.2


async def test_what_nobody_can_ask_about_for_days_is_given_up(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Providers keep results for two days and more; then the texts are let go."""
    texts = texts_of(3)
    now = [1000.0]
    only(server, "poll", 10**6, says.wrong_key)
    async with batching(
        "openai", server.base_url("openai"), tmp_path / "e.sqlite", clock=lambda: now[0]
    ) as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: len(server.requests("poll")) > 5, 20)
        assert all(map(rig.batches.holds, texts))
        now[0] += 61
        await until_forgotten(rig)
        assert not any(map(rig.batches.holds, texts))
        assert "could not be asked about for too long" in (rig.batches.state.reason or "")


async def test_after_the_cool_down_one_more_failure_turns_them_off_for_as_long(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """The chance is one job, not as many as there are."""
    now = [1000.0]
    server.batch_outcome = "failed"
    async with batching(
        "openai", server.base_url("openai"), tmp_path / "e.sqlite", clock=lambda: now[0]
    ) as rig:
        for word in ("first", "second"):
            await through(rig, texts_of(3, word))
        assert [rig.batches.is_open] == [False]
        now[0] += COOL_DOWN_S
        assert [rig.batches.is_open] == [True]
        await through(rig, texts_of(3, "third"))
        assert [rig.batches.is_open] == [False]
        now[0] += COOL_DOWN_S - 1
        assert not rig.batches.is_open
    assert len(server.jobs) == 3


async def test_texts_whose_vectors_are_kept_are_not_submitted(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Whoever asks for them saw them waiting a moment ago, when their job had not ended."""
    texts = texts_of(6)
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        await through(rig, texts)
        await rig.batches.turn_on()
        await through(rig, texts | texts_of(8))
    assert sorted(server.embedded()) == sorted(texts_of(8).values())


async def test_fifty_thousand_texts_do_not_hold_up_the_loop(server: EmbeddingServer, tmp_path: Path) -> None:
    """They are put together on a thread; looking up what is held costs next to nothing."""
    texts = {hash_of(text): text for text in (f"{number} some words of a note" for number in range(50_000))}
    server.plan = lambda _: Response(delay_s=3600)
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite") as rig:
        here_s, all_s = time.thread_time(), time.process_time()
        await rig.batches.submit(texts)
        here_s, all_s = time.thread_time() - here_s, time.process_time() - all_s
        assert here_s < all_s / 2
        assert (rig.batches.jobs, rig.batches.claimed) == (1, 50_000)
        began = time.thread_time()
        assert all(map(rig.batches.holds, texts))
        assert time.thread_time() - began < 2


async def test_an_error_that_nobody_expected_is_raised_to_who_watches(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """It does not end in a task that nobody looks at."""
    fault, url = ZeroDivisionError("a mistake"), server.base_url("openai")
    async with batching("openai", url, tmp_path / "e.sqlite", keep_fault=fault) as rig:
        watching = asyncio.ensure_future(rig.batches.watch())
        await rig.batches.submit(texts_of(3))
        with pytest.raises(ZeroDivisionError):
            await watching
