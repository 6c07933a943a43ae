"""The batch half of the local server holds to what the providers document."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.fakes.embedding_server import KEY, EmbeddingServer
from tests.fakes.http import Response
from tests.providers.batch.rig import dialect_of, hash_of

PROVIDERS = ["openai", "gemini", "voyage"]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=8) as running:
        yield running


class Client:
    """What a careful stranger would send."""

    def __init__(self, server: EmbeddingServer, name: str) -> None:
        self.server = server
        self.base = server.base_url(name)
        self.dialect = dialect_of(name, self.base)
        self.name = name

    def ask(self, call: Any, key: str = KEY) -> tuple[int, bytes]:
        url = f"{self.server.url}{call.path}" if call.path.startswith("/") else f"{self.base}/{call.path}"
        headers = dict(call.headers) | {"content-type": call.content_type}
        headers |= {"x-goog-api-key": key} if self.name == "gemini" else {"authorization": f"Bearer {key}"}
        body = call.body + b"".join(call.more)
        request = urllib.request.Request(url, body or None, headers, method=call.method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read()

    def begun(self, *lines: bytes) -> str:
        _, body = self.ask(self.dialect.upload("a.jsonl", lines))
        _, body = self.ask(self.dialect.create(self.dialect.uploaded(body), "memd-1"))
        return self.dialect.created(body)

    def polled(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.ask(self.dialect.poll(job))[1])
        return found

    def line(self, text: str) -> bytes:
        return self.dialect.line(hash_of(text).hex(), text)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_job_goes_through_its_states(server: EmbeddingServer, name: str) -> None:
    """And ends with a file that has the vectors, in another order."""
    server.polls_until_done = 3
    client = Client(server, name)
    job = client.begun(client.line("a"), client.line("b"))
    found = [client.polled(job) for _ in range(3)]
    if name == "gemini":
        states = [one["metadata"]["state"] for one in found]
        assert states == ["BATCH_STATE_RUNNING", "BATCH_STATE_RUNNING", "BATCH_STATE_SUCCEEDED"]
        assert [one.get("done", False) for one in found] == [False, False, True]
        file = found[-1]["response"]["responsesFile"]
    else:
        assert [one["status"] for one in found] == ["in_progress", "finalizing", "completed"]
        file = found[-1]["output_file_id"]
    _, body = client.ask(client.dialect.download(file))
    results = [client.dialect.result(line) for line in body.splitlines()]
    assert [result.id for result in results] == [hash_of("b").hex(), hash_of("a").hex()]
    vectors = server.embedder.embed(["b", "a"])
    assert [list(result.vector or []) for result in results] == [
        pytest.approx([float(value) for value in row]) for row in vectors
    ]
    assert sorted(server.embedded()) == ["a", "b"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_step_wants_the_key(server: EmbeddingServer, name: str) -> None:
    """Also those that only look."""
    client = Client(server, name)
    job = client.begun(client.line("a"))
    prefix = "files/" if name == "gemini" else ""
    for call in (
        client.dialect.upload("a", [b"{}"]),
        client.dialect.create("file-1", "x"),
        client.dialect.list(None),
        client.dialect.poll(job),
        client.dialect.cancel(job),
        client.dialect.download(f"{prefix}file-000001"),
    ):
        assert client.ask(call, "another")[0] in {400, 401}
    assert len(server.jobs) == 1


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_cancelled_job_takes_a_while_to_end(server: EmbeddingServer, name: str) -> None:
    """What it had done by then stands in a file."""
    server.batch_outcome, server.polls_until_cancelled, server.done_before_end = "never", 2, 1
    client = Client(server, name)
    job = client.begun(client.line("a"), client.line("b"))
    assert client.ask(client.dialect.cancel(job))[0] == 200
    client.polled(job)
    assert not server.embedded()
    state = client.dialect.state(msgspec.json.encode(client.polled(job)))
    assert len(getattr(state, "outputs", ())) == 1
    assert server.embedded() == ["a"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], "empty_file"),
        (
            [b'{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m"}}'] * 2,
            "duplicate_custom_id",
        ),
        ([b'{"custom_id":"a","body":{"model":"m","input":"x"}}'], "invalid_json_line"),
        (
            [b'{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{}}'],
            "missing_required_parameter",
        ),
        (
            [b'{"custom_id":"%s","method":"POST","url":"/v1/embeddings","body":{"model":"m"}}' % (b"a" * 65)],
            "invalid_custom_id",
        ),
    ],
)
def test_a_wrong_input_file_fails_at_validation(
    server: EmbeddingServer, lines: list[bytes], fault: str
) -> None:
    """With the code of what is wrong, and nothing embedded."""
    client = Client(server, "openai")
    found = client.polled(client.begun(*lines))
    assert found["status"] == "failed"
    assert [one["code"] for one in found["errors"]["data"]] == [fault]
    assert not server.embedded()


@pytest.mark.parametrize("name", PROVIDERS)
def test_jobs_are_listed_newest_first_and_page_by_page(server: EmbeddingServer, name: str) -> None:
    """Each names where the next one begins."""
    server.page = 2
    client = Client(server, name)
    jobs = [client.begun(client.line("a")) for _ in range(5)]
    found: list[str] = []
    after: str | None = None
    for size in (2, 2, 1):
        _, body = client.ask(client.dialect.list(after))
        page = msgspec.json.decode(body)
        names = [one.get("name") or one["id"] for one in page.get("operations") or page["data"]]
        assert len(names) == size
        found += names
        after = client.dialect.listed(body).after
    assert (found, after) == (jobs[::-1], None)


def test_an_answer_may_be_changed_after_the_work_was_done(server: EmbeddingServer) -> None:
    """Unlike one that is given in its place."""
    client = Client(server, "openai")
    server.plan = lambda _: Response(503)
    assert client.ask(client.dialect.upload("a", [b"{}"]))[0] == 503
    assert not server.files
    server.plan = lambda _: None
    server.after = lambda *_: Response(503)
    assert client.ask(client.dialect.upload("a", [b"{}"]))[0] == 503
    assert len(server.files) == 1


def test_connections_are_refused_for_a_while(server: EmbeddingServer) -> None:
    """And taken again at the same place."""
    client = Client(server, "openai")
    server.refuse()
    with pytest.raises(urllib.error.URLError):
        client.ask(client.dialect.list(None))
    server.listen()
    assert client.ask(client.dialect.list(None))[0] == 200


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_file_that_was_deleted_is_gone(server: EmbeddingServer, name: str) -> None:
    """Whoever asks for it finds nothing."""
    client = Client(server, name)
    file = client.dialect.uploaded(client.ask(client.dialect.upload("a.jsonl", [client.line("a")]))[1])
    assert client.ask(client.dialect.download(file))[0] == 200
    assert client.ask(client.dialect.delete(file))[0] == 200
    assert client.ask(client.dialect.download(file))[0] == 404
    assert not server.files
