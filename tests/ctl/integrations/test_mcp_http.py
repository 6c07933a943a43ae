"""The memory tools over HTTP."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memd.ctl.integrations import mcp_http
from memd.ctl.integrations.mcp_http import PATH, McpHttpServer
from memd.ctl.integrations.mcp_tokens import McpToken, McpTokens
from memd_client.asynchronous import AsyncClient
from memd_client.mcp.protocol import ToolServer
from memd_client.mcp.server import Answers
from tests.bounds import shipped
from tests.daemon.process import Daemon
from tests.wait import until_awaited

CALL = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "memory_search", "arguments": {"query": "heron"}},
}
LIST = {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}


class Site:
    """A server, and the tokens that it takes."""

    def __init__(self, port: int, tokens: McpTokens) -> None:
        self.port = port
        self.tokens = tokens
        self.token = tokens.make("main", None).token

    @property
    def url(self) -> str:
        """Where the tools are."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    async def send(self, data: bytes) -> bytes:
        """What comes back until the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            return await reader.read()
        finally:
            writer.close()

    async def ask(
        self, body: Any, *, method: str = "POST", path: str = PATH, **headers: str | None
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body of an answer; a header that is None is left out."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "host": f"127.0.0.1:{self.port}",
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "content-length": str(len(content)),
            "connection": "close",
            **headers,
        }
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name.replace('_', '-')}: {value}" for name, value in given.items() if value is not None),
        ]
        whole = await self.send("\r\n".join([*lines, "", ""]).encode() + content)
        head, _, answered = whole.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        answer = dict(line.lower().split(": ", 1) for line in rest)
        return int(first.split()[1]), answer, json.loads(answered) if answered else None


@asynccontextmanager
async def serving(tokens: Path, socket: Path) -> AsyncIterator[Site]:
    """A server for a daemon."""

    def connect(token: McpToken) -> ToolServer:
        return Answers(
            AsyncClient(socket), agent=token.agent, session_key=token.session_key, max_chars=None
        ).server()

    kept = McpTokens(tokens)
    listening = await McpHttpServer(kept, connect).listen(0)
    async with listening:
        yield Site(listening.sockets[0].getsockname()[1], kept)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A server whose daemon is not there: what is said of HTTP does not need one."""
    async with serving(tmp_path / "tokens", tmp_path / "s") as made:
        yield made


async def test_a_message_is_answered_by_one_document(site: Site) -> None:
    """A request with its result, a notification with nothing, a batch with a list, nonsense with the error of JSON-RPC."""
    status, headers, answer = await site.ask(LIST)
    assert (status, headers["content-type"], headers["cache-control"]) == (
        200,
        "application/json",
        "no-store",
    )
    assert [tool["name"] for tool in answer["result"]["tools"]] == [
        "memory_search",
        "memory_get",
        "memory_status",
    ]
    assert answer["id"] == "a"
    assert (await site.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}))[::2] == (202, None)
    status, _, answer = await site.ask(
        [LIST, {"jsonrpc": "2.0", "method": "x"}, {**LIST, "id": 2, "method": "no"}]
    )
    assert (status, [one["id"] for one in answer], answer[1]["error"]["code"]) == (200, ["a", 2], -32601)
    assert (await site.ask(b"{"))[2]["error"]["code"] == -32700
    assert (await site.ask({"id": 1}))[2]["error"]["code"] == -32600


async def test_nobody_writes_over_http(site: Site) -> None:
    """Not even a private conversation that is named."""
    site.token = site.tokens.make("main", "agent:main:main").token
    call = {**CALL, "params": {"name": "memory_append", "arguments": {"text": "x"}}}
    answer = (await site.ask(call))[2]["result"]
    assert answer["isError"] is True
    assert "There is no tool" in answer["content"][0]["text"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:9999"}, 200),
        ({"host": "[::1]:1"}, 200),
        ({"host": "evil.example:8737"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"authorization": None}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": "Bearer x"}, 401),
        ({"authorization": "Basic eDp4"}, 401),
        ({"content_type": "text/plain", "content-type": None}, 415),
        ({"content-type": None}, 415),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"mcp_protocol_version": "2025-06-18"}, 200),
        ({"mcp_protocol_version": "1999-01-01"}, 400),
    ],
)
async def test_who_may_ask(site: Site, headers: dict[str, Any], status: int) -> None:
    """Nobody without a token, and no page of a browser: neither one of another host, nor one that calls itself this one."""
    found, answer_headers, answer = await site.ask(LIST, **headers)
    assert found == status
    assert not [name for name in answer_headers if name.startswith("access-control")]
    assert ("www-authenticate" in answer_headers) is (status == 401)
    assert ("result" in answer) is (status == 200)
    assert site.token not in str((answer_headers, answer))


async def test_a_page_of_its_own_may_ask(site: Site) -> None:
    """Its origin is the host that it asks."""
    assert (await site.ask(LIST, origin=f"http://127.0.0.1:{site.port}"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", PATH, 405),
        ("DELETE", PATH, 405),
        ("OPTIONS", PATH, 405),
        ("POST", "/", 404),
        ("POST", f"{PATH}?x=1", 200),
    ],
)
async def test_there_is_one_address_and_one_method(site: Site, method: str, path: str, status: int) -> None:
    """No stream and no session, which a client may ask for."""
    found, headers, _ = await site.ask(LIST, method=method, path=path)
    assert found == status
    assert headers.get("allow") == ("post" if status == 405 else None)


async def test_a_token_is_in_force_and_out_of_it_at_once(site: Site) -> None:
    """While the server runs, also on a connection that is open."""
    old = site.token
    assert (await site.ask(LIST))[0] == 200
    site.token = site.tokens.make("main", None).token
    assert (await site.ask(LIST))[0] == 200
    assert (await site.ask(LIST, authorization=f"Bearer {old}"))[0] == 401
    site.tokens.revoke("main", None)
    assert (await site.ask(LIST))[0] == 401


async def test_several_requests_on_one_connection(site: Site) -> None:
    """One after the other, also if they were sent at once."""
    body = json.dumps(LIST).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\nauthorization: bearer {site.token}\r\ncontent-type: application/json\r\n"
    one = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    last = (
        f"{head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
        + body
        + b"\r\n0\r\n\r\n"
    )
    assert (await site.send(one + one + last)).count(b'"memory_search"') == 3


async def test_how_long_a_message_and_its_head_may_be(site: Site) -> None:
    """What is longer is refused, and not read to its end."""
    most = shipped("memd.ctl.integrations.mcp_http.MAX_BODY_BYTES")
    body = json.dumps(LIST).encode()
    assert (await site.ask(body + b" " * (most - len(body))))[0] == 200
    assert (await site.ask(body + b" " * (most - len(body) + 1)))[0] == 413
    assert (await site.ask(LIST, x="y" * (shipped("memd.ctl.integrations.mcp_http.MAX_HEAD_BYTES") // 2)))[
        0
    ] == 200
    assert (await site.ask(LIST, x="y" * shipped("memd.ctl.integrations.mcp_http.MAX_HEAD_BYTES")))[0] == 431


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused(site: Site, data: bytes) -> None:
    """And the next connection is served."""
    assert (await site.send(data + b"\r\n\r\n")).startswith(b"HTTP/1.1 40")
    assert (await site.ask(LIST))[0] == 200


async def test_who_asks_nothing_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor who begins and does not go on; and there are so many connections at a time."""
    most = shipped("memd.ctl.integrations.mcp_http.MAX_CONNECTIONS")
    held = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(most)]
    for _, writer in held:
        writer.write(b"POST")
        await writer.drain()
    await asyncio.sleep(0)
    assert await site.send(b"") == b""
    for _, writer in held:
        writer.close()
    monkeypatch.setattr(mcp_http, "IDLE_S", 0.05)
    monkeypatch.setattr(mcp_http, "_ARRIVES_S", 0.05)
    assert await site.send(b"") == b""
    head = f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {site.token}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
    assert await site.send(head.encode()) == b""


def head_of(site: Site, length: int) -> bytes:
    """What stands before a body of so many bytes."""
    lines = (
        f"POST {PATH} HTTP/1.1",
        "host: localhost",
        f"authorization: Bearer {site.token}",
        "content-type: application/json",
        f"content-length: {length}",
    )
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("has_token", [True, False])
async def test_who_sends_ten_megabytes_reads_why_they_are_refused(site: Site, has_token: bool) -> None:
    """Also where the client reads only after it has sent all: an answer is not lost with what nobody wanted to read."""
    if not has_token:
        site.token = "x"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(head_of(site, 10_000_000))
    for _ in range(100):
        writer.write(b" " * 100_000)
        await writer.drain()
    assert (await reader.read()).startswith(b"HTTP/1.1 413" if has_token else b"HTTP/1.1 401")
    writer.close()
    assert (await site.ask(LIST))[0] == (200 if has_token else 401)


async def test_a_thousand_requests_are_answered_while_others_take_their_time(site: Site) -> None:
    """One client sends its request byte by byte, one reads nothing of what it asked for; a third is not held up by them."""
    body = json.dumps(LIST).encode()
    one = head_of(site, len(body)) + body
    slow = await asyncio.open_connection("127.0.0.1", site.port)
    deaf = await asyncio.open_connection("127.0.0.1", site.port)
    deaf[1].write(one * 50)
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    for number in range(1000):
        if number < len(one):
            slow[1].write(one[number : number + 1])
        writer.write(one)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        length = next(
            int(line.split(b":")[1])
            for line in head.splitlines()
            if line.lower().startswith(b"content-length")
        )
        assert b'"memory_search"' in await reader.readexactly(length)
    assert len(one) <= 1000
    assert (await slow[0].readline()).startswith(b"HTTP/1.1 200")
    for _, each in (slow, deaf, (reader, writer)):
        each.close()


async def test_who_does_not_read_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is free again for somebody else, though it goes on asking."""
    monkeypatch.setattr(mcp_http, "_ARRIVES_S", 0.2)
    monkeypatch.setattr(mcp_http, "MAX_CONNECTIONS", 1)
    body = json.dumps(LIST).encode()
    one = head_of(site, len(body)) + body
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", site.port))
        deaf.setblocking(False)
        with suppress(BlockingIOError, ConnectionError):
            while True:  # until neither side takes anything more
                deaf.send(one * 100)
                await asyncio.sleep(0)

        async def is_served() -> bool:
            with suppress(ConnectionError, IndexError):
                return (await site.ask(LIST))[0] == 200
            return False

        await until_awaited(is_served, 10)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_the_sdk_searches(mode: str) -> None:
    """With and without a handshake; a conversation sees what it may see, and a daemon that is gone is told."""
    import httpx2  # noqa: PLC0415  the SDK takes a second to import
    from mcp import Client  # noqa: PLC0415  likewise
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  likewise

    with TemporaryDirectory(prefix="memd") as directory:
        daemon = Daemon(Path(directory), settings='[agents.main.scope]\ndefault = "allow"')
        daemon.write("MEMORY.md", "The staging database is on heron.\n")
        daemon.write("memory/a.md", "The heron has a nest.\n")
        daemon.start()
        async with serving(Path(directory) / "tokens", daemon.socket) as site:

            async def found(token: str) -> dict[str, Any]:
                http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
                async with (
                    http,
                    Client(streamable_http_client(site.url, http_client=http), mode=mode) as client,
                ):
                    result = await client.call_tool("memory_search", {"query": "heron"})
                    (content,) = result.content
                    assert content.type == "text"
                    reply: dict[str, Any] = json.loads(content.text)
                    return reply

            group = site.tokens.make("main", "agent:main:telegram:group:7").token
            assert {hit["path"] for hit in (await found(site.token))["results"]} == {
                "MEMORY.md",
                "memory/a.md",
            }
            assert {hit["path"] for hit in (await found(group))["results"]} == {"memory/a.md"}
            daemon.stop()
            assert (await found(site.token))["disabled"] is True
