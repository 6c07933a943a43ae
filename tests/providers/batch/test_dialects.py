"""How each provider's batch API is spoken."""

from collections.abc import Callable

import msgspec
import pytest

from memd.config.settings import Remote
from memd.providers.batch.client import batch_dialect
from memd.providers.batch.dialect import (
    BLOCK,
    BatchDialect,
    BatchLimits,
    BatchResult,
    JobEnded,
    JobListing,
    Running,
    blocks,
    groups,
    lines,
)
from memd.providers.batch.gemini import GeminiBatches
from memd.providers.batch.openai import OpenAIBatches
from memd.providers.remote import gemini, ollama, openai
from memd.providers.remote.dialect import BadReply, Dialect
from tests.bounds import shipped
from tests.providers.batch.rig import dialect_of, hash_of, texts_of

ID = "ab" * 32
LONGEST_NAME = shipped("memd.providers.batch.dialect._LONGEST_NAME")


def made(name: str, **options: object) -> BatchDialect:
    """A provider's batch API as it is configured."""
    remote = msgspec.convert(options, Remote)
    makers: dict[str, Callable[[str, Remote], Dialect]] = {
        "openai": openai.openai,
        "gemini": gemini.gemini,
        "voyage": openai.voyage,
    }
    found = batch_dialect(makers[name]("", remote), "https://example.org/v1beta")
    assert found is not None
    return found


def test_those_without_batches_have_none() -> None:
    """Nobody knows what a compatible server does with /v1/batches."""
    assert (
        batch_dialect(openai.compatible("bge-m3", Remote(base_url="http://box:1/v1")), "http://box:1/v1")
        is None
    )
    assert batch_dialect(ollama.ollama("", Remote()), "http://box:1") is None
    assert isinstance(made("openai"), OpenAIBatches)
    assert isinstance(made("voyage"), OpenAIBatches)
    assert isinstance(made("gemini"), GeminiBatches)


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage"])
def test_a_job_holds_no_more_than_every_provider_takes(name: str) -> None:
    """50,000 texts, and less than the 200 MB of the smallest file."""
    assert made(name).limits == BatchLimits(50_000, shipped("memd.providers.batch.dialect.BatchLimits.bytes"))
    assert made(name).embeddings.input_tokens >= 2000


def test_a_line_of_openai_is_a_whole_request() -> None:
    """The same that would be sent by itself, prefix and dimensions included."""
    line = made("openai", dimensions=256, document_prefix="passage: ").line(ID, "灯塔")
    assert msgspec.json.decode(line) == {
        "custom_id": ID,
        "method": "POST",
        "url": "/v1/embeddings",
        "body": {"model": "text-embedding-3-small", "input": ["passage: 灯塔"], "dimensions": 256},
    }


def test_a_line_of_voyage_leaves_the_model_to_the_job() -> None:
    """What is equal in all lines stands in the request that creates it."""
    dialect = made("voyage", dimensions=512)
    assert msgspec.json.decode(dialect.line(ID, "a")) == {"custom_id": ID, "body": {"input": ["a"]}}
    wanted = msgspec.json.decode(dialect.create("file-1", "memd-1").body)
    assert wanted == {
        "input_file_id": "file-1",
        "endpoint": "/v1/embeddings",
        "completion_window": "12h",
        "metadata": {"memd": "memd-1"},
        "request_params": {"model": "voyage-4-large", "input_type": "document", "output_dimension": 512},
    }


def test_a_line_of_gemini_says_that_it_is_a_document() -> None:
    """A key, and the request that would be sent by itself."""
    assert msgspec.json.decode(made("gemini").line(ID, "a")) == {
        "key": ID,
        "request": {
            "model": "models/gemini-embedding-001",
            "content": {"parts": [{"text": "a"}]},
            "taskType": "RETRIEVAL_DOCUMENT",
        },
    }


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage"])
def test_an_id_is_as_long_as_it_may_be(name: str) -> None:
    """Ids have 64 characters at most: those of a SHA-256, and a line is one line."""
    line = made(name).line(ID, "two\nlines\u2028and more")
    assert len(ID) == 64
    assert b"\n" not in line


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        ("validating", Running("validating")),
        ("in_progress", Running("in_progress")),
        ("finalizing", Running("finalizing")),
        ("cancelling", Running("cancelling")),
        ("paused", Running("paused")),
        ("completed", JobEnded(("out", "err"))),
        ("expired", JobEnded(("out", "err"), "the job has expired")),
        ("cancelled", JobEnded(("out", "err"), "the job has cancelled")),
        ("failed", JobEnded(("out", "err"), "the job has failed (a, b)")),
    ],
)
def test_the_states_of_openai(status: str, seen: Running | JobEnded) -> None:
    """Results come before errors; codes are told, words are not."""
    faults = [{"code": "b", "message": "secret"}, {"code": "a"}, {"message": "secret"}, {"code": None}]
    errors = {"data": faults} if status == "failed" else None
    job = {"id": "x", "status": status, "output_file_id": "out", "error_file_id": "err", "errors": errors}
    assert made("openai").state(msgspec.json.encode(job)) == seen


_METADATA = {"output": {"responsesFile": "files/m"}}
_RESPONSE = {"responsesFile": "files/r"}


@pytest.mark.parametrize(
    ("operation", "seen"),
    [
        ({}, Running("")),
        ({"metadata": {"state": "BATCH_STATE_PENDING"}}, Running("BATCH_STATE_PENDING")),
        ({"metadata": {"state": "BATCH_STATE_RUNNING"}, "done": False}, Running("BATCH_STATE_RUNNING")),
        ({"metadata": {"state": "JOB_STATE_PAUSED"}}, Running("JOB_STATE_PAUSED")),
        ({"metadata": {"state": "BATCH_STATE_UNSPECIFIED"}}, Running("BATCH_STATE_UNSPECIFIED")),
        ({"metadata": {"state": "UNKNOWN"}}, Running("UNKNOWN")),
        ({"metadata": {"state": "UNKNOWN"}, "done": True, "response": _RESPONSE}, JobEnded(("files/r",))),
        ({"metadata": {"state": "BATCH_STATE_SUCCEEDED"} | _METADATA, "done": True}, JobEnded(("files/m",))),
        ({"metadata": {"state": "JOB_STATE_SUCCEEDED"}, "response": _RESPONSE}, JobEnded(("files/r",))),
        ({"state": "SUCCEEDED", "response": _RESPONSE}, JobEnded(("files/r",))),
        ({"done": True, "response": _RESPONSE}, JobEnded(("files/r",))),
        ({"done": True}, JobEnded((), "the job names no file with results")),
        ({"metadata": {"state": "BATCH_STATE_FAILED"}, "done": True}, JobEnded((), "the job has failed")),
        (
            {"metadata": {"state": "BATCH_STATE_EXPIRED"} | _METADATA, "done": True},
            JobEnded(("files/m",), "the job has expired"),
        ),
        ({"metadata": {"state": "BATCH_STATE_CANCELLED"}}, JobEnded((), "the job has cancelled")),
        ({"done": True, "error": {"code": 13, "message": "secret"}}, JobEnded((), "the job has failed")),
    ],
)
def test_the_states_of_gemini(operation: dict[str, object], seen: Running | JobEnded) -> None:
    """In the metadata with a prefix, or beside it, with the file in either place."""
    body = msgspec.json.encode({"name": "batches/x"} | operation)
    assert made("gemini").state(body) == seen


@pytest.mark.parametrize(
    ("name", "line", "seen"),
    [
        (
            "openai",
            {"custom_id": ID, "response": {"status_code": 200, "body": {"data": [{"embedding": [1, 2.5]}]}}},
            BatchResult(ID, [1.0, 2.5]),
        ),
        (
            "openai",
            {"custom_id": ID, "response": {"status_code": 200, "body": {"data": []}}, "error": None},
            BatchResult(ID, None, "no vector"),
        ),
        (
            "voyage",
            {"custom_id": ID, "response": {"status_code": 400, "body": "Input cannot contain that."}},
            BatchResult(ID, None, "HTTP 400"),
        ),
        (
            "openai",
            {"custom_id": ID, "response": None, "error": {"code": "batch_expired", "message": "secret"}},
            BatchResult(ID, None, "batch_expired"),
        ),
        ("gemini", {"key": ID, "response": {"embedding": {"values": [1.5]}}}, BatchResult(ID, [1.5])),
        ("gemini", {"key": ID, "embedding": {"values": [1.5]}}, BatchResult(ID, [1.5])),
        ("gemini", {"key": ID, "response": {"embedding": {}}}, BatchResult(ID, None, "no vector")),
        ("gemini", {"key": ID, "error": {"code": 3, "message": "secret"}}, BatchResult(ID, None, "error 3")),
    ],
)
def test_lines_of_results(name: str, line: dict[str, object], seen: BatchResult) -> None:
    """A vector, or why there is none; never in the provider's words, which may quote the text."""
    assert made(name).result(msgspec.json.encode(line)) == seen


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage"])
def test_jobs_are_listed_by_their_labels(name: str) -> None:
    """Page by page; those of others are passed over."""
    dialect = made(name)
    if name == "gemini":
        ours = {"name": "batches/1", "metadata": {"displayName": "memd-1"}}
        operations: dict[str, object] = {"operations": [ours, {"name": "batches/2"}], "nextPageToken": "t/1"}
        assert dialect.listed(msgspec.json.encode(operations)) == JobListing({"memd-1": "batches/1"}, "t/1")
        assert dialect.listed(b"{}") == JobListing({}, None)
        assert dialect.list("t/1").path == "batches?pageSize=100&pageToken=t/1"
        return
    job = {"id": "b1", "status": "completed"}
    data = [job | {"metadata": {"memd": "memd-1"}}, job | {"metadata": {"who": "else"}}, job | {"id": "b3"}]
    page: dict[str, object] = {"data": data, "has_more": True}
    assert dialect.listed(msgspec.json.encode(page)) == JobListing({"memd-1": "b1"}, "b3")
    assert dialect.listed(msgspec.json.encode({"data": data})) == JobListing({"memd-1": "b1"}, None)
    assert dialect.list("b3").path == "batches?limit=100&after=b3"


@pytest.mark.parametrize(
    "bad",
    [
        "https://evil.example/x",
        "../../x",
        "a/../b",
        "",
        "a?b=c",
        "a b",
        "/x",
        "x" * (LONGEST_NAME + 1),
        "a\n",
    ],
)
@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_a_name_that_could_lead_elsewhere_is_refused(name: str, bad: str) -> None:
    """Of a file, of a job, of a file with results."""
    dialect = made(name)
    told = {
        "id": bad,
        "name": bad,
        "status": "completed",
        "output_file_id": bad or "?",
        "response": {"responsesFile": bad or "?"},
    }
    for read in (dialect.uploaded, dialect.created, dialect.state):
        with pytest.raises(BadReply):
            read(msgspec.json.encode(told))


@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_a_name_may_have_so_many_characters(name: str) -> None:
    """Real ones have a few dozen."""
    given = "x" * LONGEST_NAME
    assert (
        made(name).created(msgspec.json.encode({"id": given, "name": given, "status": "validating"})) == given
    )


def test_geminis_services_are_on_the_same_host() -> None:
    """Uploads and downloads stand beside the API."""
    dialect = made("gemini")
    assert dialect.upload("x", []).path == "/upload/v1beta/files?uploadType=multipart"
    assert dialect.download("files/x").path == "/download/v1beta/files/x:download?alt=media"
    assert dialect.cancel("batches/x").path == "batches/x:cancel"


@pytest.mark.parametrize(
    ("count", "most", "sizes"), [(0, 3, []), (3, 3, [3]), (4, 3, [3, 1]), (7, 3, [3, 3, 1])]
)
def test_a_job_has_so_many_texts(count: int, most: int, sizes: list[int]) -> None:
    """In order, each in one."""
    texts = texts_of(count)
    found = list(groups(dialect_of("openai", "", most=most), texts))
    assert [len(group) for group in found] == sizes
    assert [text_hash for group in found for text_hash in group] == list(texts)


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage"])
def test_a_file_has_so_many_bytes(name: str) -> None:
    """As it is sent, line ends included; as many texts as fit."""
    dialect = dialect_of(name, "https://example.org/v1beta", most_bytes=1000)
    found = list(groups(dialect, texts_of(40)))
    sizes = [sum(len(block) for block in blocks(lines(dialect, group))) for group in found]
    assert max(sizes) <= 1000
    shortest = min(len(line) for group in found for line in lines(dialect, group))
    assert all(size > 1000 - 2 * shortest for size in sizes[:-1])


def test_what_cannot_be_sent_whole_is_in_none() -> None:
    """Longer than the model takes, or than a file may be."""
    long, wide = "word " * 20_000, "\N{GREEK SMALL LETTER ALPHA}" * 900
    texts = {hash_of(text): text for text in (long, wide, "short")}
    [group] = groups(dialect_of("openai", "", most_bytes=1000), texts)
    assert list(group.values()) == ["short"]


def test_what_no_json_can_carry_is_mended() -> None:
    """As it is for plain requests, so that both give the same vector."""
    texts = {hash_of(text): text for text in ("a\0b", "\ud800", " ")}
    [group] = groups(dialect_of("openai", ""), texts)
    assert list(group.values()) == ["ab", "?", "."]


def test_blocks_are_the_lines_with_their_ends() -> None:
    """Whatever their number and size."""
    some = [b"x" * size for size in (0, 1, BLOCK, 3, BLOCK * 2, 5)]
    assert b"".join(blocks(some)) == b"".join(line + b"\n" for line in some)
    assert max(map(len, blocks(some * 3))) < BLOCK * 3 + 20
    assert list(blocks([])) == []
    size = shipped("memd.providers.batch.dialect.BLOCK")
    assert list(map(len, blocks([b"x" * 1023] * (2 * size // 1024 + 1)))) == [size, size, 1024]
