"""Requests through one session: answers whole and by lines, what breaks off, and what cannot be opened."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from memd.errors import MemdError
from memd.providers.api_keys import Account
from memd.providers.remote.dialect import BadReply, HttpAnswer, HttpRequest, NoReply, Refused, RequestTimedOut
from memd.providers.remote.http import BROKEN_OFF, LARGEST_REFUSAL, LONGEST_LINE, HttpConnections
from tests.bounds import shipped
from tests.fakes.http import Request, Response, Server
from tests.wait import until_async


class RefusedError(MemdError):
    """What the test makes of an answer without success."""


class Told:
    """Answers with what the test sets, and remembers what it was asked."""

    def __init__(self) -> None:
        self.response = Response()
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return self.response


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def server(told: Told) -> Iterator[Server]:
    with Server(told) as running:
        yield running


@asynccontextmanager
async def talking(server: Server) -> AsyncIterator[HttpConnections]:
    session = HttpConnections("openai", Account(server.url, "key"), None, 2)
    try:
        yield session
    finally:
        await session.close()


def refused(answer: HttpAnswer) -> RefusedError:
    return RefusedError(answer.status, len(answer.body), answer.headers.get("x-why"))


async def read(session: HttpConnections, timeout_s: float = 10.0) -> list[bytes]:
    return [line async for line in session.lines(HttpRequest("file", method="GET"), timeout_s, refused)]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"", []),
        (b"\n\r\n \n", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\n\xff\n", [b"a\r", b"\xff"]),
        (b"x" * 300_000 + b"\n" + b"y", [b"x" * 300_000, b"y"]),
        (b"x" * LONGEST_LINE + b"\ny\n", [b"x" * LONGEST_LINE, b"y"]),
        (b"x" * (LONGEST_LINE + 1) + b"\ny\n", [b"y"]),
        (b"a\n" + b"x" * (LONGEST_LINE * 2) + b"\ny\n" + b"z" * (LONGEST_LINE + 1), [b"a", b"y"]),
    ],
)
async def test_lines_come_as_they_are(server: Server, told: Told, body: bytes, lines: list[bytes]) -> None:
    """Empty ones are left out, and so are those that nothing could hold."""
    told.response = Response(body=body)
    async with talking(server) as session:
        assert await read(session) == lines
    assert told.requests[0].headers["authorization"] == "Bearer key"


async def test_an_answer_without_success_is_what_the_caller_makes_of_it(server: Server, told: Told) -> None:
    """With its headers and the beginning of its body, however long that is."""
    told.response = Response(503, b"x" * (LARGEST_REFUSAL * 40), {"x-why": "tired"})
    async with talking(server) as session:
        with pytest.raises(RefusedError) as seen:
            await read(session)
    status, size, why = seen.value.args
    assert (status, why) == (503, "tired")
    assert LARGEST_REFUSAL < size <= LARGEST_REFUSAL + (64 << 10)  # one piece of the connection more


@pytest.mark.parametrize("cut", [0, 1, 5])
async def test_a_file_that_breaks_off_gives_its_whole_lines_and_says_so(
    server: Server, told: Told, cut: int
) -> None:
    """Half a line is none."""
    told.response = Response(body=b"ab\ncd\nef\n", cut_after=cut)
    seen: list[bytes] = []

    async def watch(session: HttpConnections) -> None:
        async for line in session.lines(HttpRequest("file", method="GET"), 10, refused):
            seen.extend([line])

    async with talking(server) as session:
        with pytest.raises(NoReply):
            await watch(session)
    assert seen == [b"ab"][: cut // 3]


async def test_silence_ends_it(server: Server, told: Told) -> None:
    """Between two pieces, however much has come before."""
    told.response = Response(body=b"ab\ncd\n", hold_after=3)
    async with talking(server) as session:
        with pytest.raises(RequestTimedOut):
            await read(session, 0.05)


async def test_who_stops_early_closes_the_connection(server: Server, told: Told) -> None:
    """The provider is not left sending."""
    told.response = Response(body=b"ab\ncd\n" * 1000, hold_after=3000)
    async with talking(server) as session:
        async with contextlib.aclosing(
            session.lines(HttpRequest("file", method="GET"), 10, refused)
        ) as lines:
            async for _ in lines:
                break
        await until_async(lambda: server.open_connections == 0)


async def test_a_cancelled_reader_closes_the_connection(server: Server, told: Told) -> None:
    """At once."""
    told.response = Response(body=b"ab\ncd\n", hold_after=3)
    async with talking(server) as session:
        reading = asyncio.ensure_future(read(session))
        await until_async(lambda: told.requests)  # a connection that is not in use yet would be kept
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until_async(lambda: server.open_connections == 0)


async def test_a_large_request_is_sent_in_pieces(server: Server, told: Told) -> None:
    """Its length is told beforehand: many servers take no other."""
    more = [bytes([number]) * 100_000 for number in range(30)]
    async with talking(server) as session:
        await session.send(HttpRequest("files", b"head", content_type="x/y", more=more), 10)
    [request] = told.requests
    assert request.body == b"head" + b"".join(more)
    assert request.headers["content-length"] == str(4 + 3_000_000)
    assert request.headers["content-type"] == "x/y"
    assert "transfer-encoding" not in request.headers


async def test_a_file_that_drips_is_left(server: Server, told: Told) -> None:
    """Each byte comes in time, and no line does."""
    told.response = Response(body=b"x" * 10_000, drip_s=0.01)
    async with talking(server) as session:
        with pytest.raises(RequestTimedOut):
            await read(session, 0.1)


async def test_of_a_refusal_the_beginning_is_read(server: Server, told: Told) -> None:
    """Whoever refuses must not fill the memory."""
    told.response = Response(502, b"x" * (LARGEST_REFUSAL * 40))
    async with talking(server) as session:
        answer = await session.send(HttpRequest("embeddings", b"{}"), 10)
    assert answer.status == 502
    assert LARGEST_REFUSAL < len(answer.body) < LARGEST_REFUSAL * 3


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("batches/b", "/v1/batches/b"),
        ("/upload/v1/files", "/upload/v1/files"),
        ("//evil.example/x", "//evil.example/x"),
        ("@evil.example/x", "/v1/@evil.example/x"),
        ("https://evil.example/x", "/v1/https://evil.example/x"),
    ],
)
async def test_a_key_goes_to_its_own_server_alone(server: Server, told: Told, path: str, target: str) -> None:
    """Whatever a path says."""
    session = HttpConnections("openai", Account(f"{server.url}/v1", "key"), None, 2)
    await session.send(HttpRequest(path, method="GET"), 10)
    await session.close()
    assert [request.target for request in told.requests] == [target]


async def test_no_redirect_is_followed(server: Server, told: Told) -> None:
    """The key would go along."""
    told.response = Response(307, headers={"location": f"{server.url}/elsewhere"})
    async with talking(server) as session:
        assert (await session.send(HttpRequest("embeddings", b"{}"), 10)).status == 307
    assert len(told.requests) == 1


async def test_what_is_near_is_asked_without_a_proxy(
    server: Server, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy is for the way out of the local network, and would read what goes to its own servers."""
    with Server(Told()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        async with talking(server) as session:
            assert (await session.send(HttpRequest("embeddings", b"a memory"), 10)).is_success
    assert [request.body for request in told.requests] == [b"a memory"]


async def test_what_is_far_is_asked_through_the_proxy(
    server: Server, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that the environment names."""
    monkeypatch.setenv("HTTP_PROXY", server.url)
    session = HttpConnections("openai", Account("http://embeddings.example/v1", None), None, 2)
    assert (await session.send(HttpRequest("embeddings", b"{}"), 10)).is_success
    await session.close()
    assert [request.target for request in told.requests] == ["http://embeddings.example/v1/embeddings"]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "quic://secret@127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """In words, and without its address: a password may be in it."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    session = HttpConnections("openai", Account("https://api.openai.com/v1", "key"), None, 2)
    with pytest.raises(Refused, match="proxy that the environment names") as seen:
        await session.send(HttpRequest("embeddings", b"{}"), 10)
    assert proxy not in str(seen.value)
    assert "secret" not in str(seen.value)


async def test_after_the_end_nothing_is_asked(server: Server, told: Told) -> None:
    """Neither a request that is under way nor a later one is answered, and neither crashes."""
    told.response = Response(hold_after=0, body=b"x")
    async with talking(server) as session:
        asking = asyncio.ensure_future(session.send(HttpRequest("embeddings", b"{}"), 10))
        await until_async(lambda: len(told.requests) == 1)
        await session.close()
        with pytest.raises(NoReply):
            await asking
        with pytest.raises(NoReply):
            await session.send(HttpRequest("embeddings", b"{}"), 10)
        with pytest.raises(NoReply):
            await read(session)
    assert len(told.requests) == 1


async def test_requests_that_are_broken_off_at_any_moment_take_no_place_from_later_ones(told: Told) -> None:
    """Cancelled or too late, while they wait, connect, send or read; nor do many connections stay behind."""
    rng = Random(1)

    async def answer(request: Request) -> Response:
        await asyncio.sleep(rng.random() * 0.02)
        return Response(body=b"x" * 50, drip_s=rng.choice([0.0, 0.0, 0.00001]))

    async def one(session: HttpConnections) -> None:
        with contextlib.suppress(MemdError):
            body = b"{}" * rng.randrange(1, 20_000)
            await session.send(HttpRequest("embeddings", body), rng.choice([0.002, 0.01, 5.0]))

    with Server(answer) as server:
        async with talking(server) as session:
            for _ in range(60):
                asking = [asyncio.ensure_future(one(session)) for _ in range(12)]
                await asyncio.sleep(rng.random() * 0.01)
                for task in rng.sample(asking, 8):
                    task.cancel()
                await asyncio.wait(asking)
            answers = await asyncio.gather(
                *(session.send(HttpRequest("embeddings", b"{}"), 5) for _ in range(20))
            )
            assert all(answer.is_success for answer in answers)
            await until_async(lambda: server.open_connections <= BROKEN_OFF + 2)


async def test_after_so_many_requests_that_were_broken_off_a_client_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then the same one is used."""
    made, usual = 0, HttpConnections._made  # noqa: SLF001

    def counted(session: HttpConnections, context: ssl.SSLContext) -> object:
        nonlocal made
        made += 1
        return usual(session, context)

    async def silent(_: Request) -> Response:
        await asyncio.sleep(3600)
        return Response()

    async def break_off(session: HttpConnections, times: int) -> None:
        for _ in range(times):
            with pytest.raises(RequestTimedOut):
                await session.send(HttpRequest("embeddings", b"{}"), 0.001)

    monkeypatch.setattr(HttpConnections, "_made", counted)
    most = shipped("memd.providers.remote.http.BROKEN_OFF")
    with Server(silent) as server:
        async with talking(server) as session:
            await break_off(session, most)
            assert made == 1
            await break_off(session, 1)
            assert made == 2


async def test_no_more_requests_are_under_way_than_there_may_be(told: Told) -> None:
    """The others wait for their turn, within their time."""
    most = now = 0

    async def answer(request: Request) -> Response:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return Response()

    with Server(answer) as server:
        async with talking(server) as session:
            await asyncio.gather(*(session.send(HttpRequest("embeddings", b"{}"), 5) for _ in range(12)))
    assert most == 2


async def test_a_damaged_connection_is_no_answer(told: Told) -> None:
    """What TLS says of a byte that was changed on the way passes through the HTTP library as it is."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"this is no TLS at all")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    session = HttpConnections("openai", Account(f"https://127.0.0.1:{port}/v1", "key"), None, 2)
    for _ in range(2):
        with pytest.raises(NoReply):
            await session.send(HttpRequest("embeddings", b"{}"), 5)
        with pytest.raises(NoReply):
            await read(session)
    await session.close()
    server.close()


@pytest.mark.parametrize(
    "failure", [ssl.SSLError(1, "bad record mac"), UnicodeError("label too long"), OSError(5, "odd")]
)
async def test_whatever_the_library_lets_through_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """Its words are not told: they may quote an address with a key in it."""

    def broken(*_: object, **__: object) -> None:
        raise failure

    async with talking(server) as session:
        monkeypatch.setattr("httpx.AsyncHTTPTransport.handle_async_request", broken)
        with pytest.raises(NoReply) as seen:
            await session.send(HttpRequest("embeddings", b"{}"), 5)
        assert str(failure.args[-1]) not in str(seen.value)
        with pytest.raises(NoReply):
            await read(session)


def untrusted(directory: Path) -> ssl.SSLContext:
    """What a server speaks whose certificate is its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = directory / "server.pem"
    file.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


async def told_by(url: str) -> str:
    """What a person reads of a request to there."""
    session = HttpConnections("openai", Account(url, "key"), None, 2)
    with pytest.raises(NoReply) as seen:
        await session.send(HttpRequest("embeddings", b"{}"), 20)
    await session.close()
    return str(seen.value)


async def test_why_no_connection_is_made_is_told_with_what_to_do(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that is not trusted, a server without encryption, a name without an address, nobody who listens."""
    listening = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=untrusted(tmp_path)
    )
    port = listening.sockets[0].getsockname()[1]
    said = await told_by(f"https://localhost:{port}/v1")
    assert "certificate is not trusted (" in said
    assert "SSL_CERT_FILE" in said
    listening.close()
    assert "speaks HTTPS" in await told_by(server.url.replace("http://", "https://"))
    assert await told_by(f"http://127.0.0.1:{port}/v1") == "openai: the server cannot be reached"

    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    assert "has no address" in await told_by("https://nowhere.invalid/v1")


async def test_an_address_that_no_host_can_have_is_told(told: Told) -> None:
    """It is found out when it is asked for."""
    session = HttpConnections("openai", Account("https://xn--zz.example.org/v1", "key"), None, 2)
    with pytest.raises(NoReply):
        await session.send(HttpRequest("embeddings", b"{}"), 5)
    await session.close()


async def test_a_file_of_tls_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """People have SSLKEYLOGFILE in their environment."""
    monkeypatch.setenv("SSLKEYLOGFILE", "/nonexistent/keys.log")
    session = HttpConnections("openai", Account("https://api.openai.com/v1", "key"), None, 2)
    with pytest.raises(Refused, match="SSLKEYLOGFILE"):
        await session.send(HttpRequest("embeddings", b"{}"), 5)


async def test_an_answer_larger_than_any_is_not_read_to_its_end(
    server: Server, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers must not fill the memory."""
    monkeypatch.setattr("memd.providers.remote.http.LARGEST_ANSWER", 1 << 20)
    told.response = Response(body=b"x" * (1 << 20))
    async with talking(server) as session:
        assert len((await session.send(HttpRequest("embeddings", b"{}"), 5)).body) == 1 << 20
        told.response = Response(body=b"x" * (1 << 20) + b"y")
        with pytest.raises(BadReply, match="larger than 1 MB"):
            await session.send(HttpRequest("embeddings", b"{}"), 5)


def test_no_step_of_a_request_looks_for_a_module_that_is_not_installed() -> None:
    """Python would look for it on the disk each time."""
    program = """
import sys
import memd.providers.remote.http
from httpcore._synchronization import current_async_library

sought = []

class Finder:
    def find_spec(name, *_):
        sought.append(name)

sys.meta_path.insert(0, Finder)
assert current_async_library() == "asyncio"
print(sought)
"""
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert told.stdout.split() == ["[]"]


def test_a_module_that_is_installed_stays_importable(tmp_path: Path) -> None:
    """Older versions of anyio cannot be imported without it."""
    (tmp_path / "sniffio.py").write_text("here = True\n")
    program = "import sys; sys.path.insert(0, sys.argv[1]); import memd.providers.remote.http, sniffio; print(sniffio.here)"
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert told.stdout == "True\n"
