"""Serves the memory tools over MCP's streamable HTTP on a loopback port, for clients that cannot start a process, and through an ssh tunnel.

A request says who asks by a token (mcp_tokens). Pages of a browser are kept out: the host must be this machine, an origin must be this
server's own, and no answer allows another one. Each request is answered by one JSON document; there are no sessions and no streams, which the
protocol leaves to the server. The tools only read.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import h11

from memd.ctl.integrations.mcp_tokens import McpToken, McpTokens
from memd_client.mcp.lines import Refusal, messages
from memd_client.mcp.protocol import HANDSHAKE_REVISIONS, STATELESS_REVISIONS, ToolServer

PATH = "/mcp"
ADDRESS = "127.0.0.1"
_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY_BYTES = 1 << 20  # a call has a few hundred
MAX_HEAD_BYTES = 16_384
MAX_CONNECTIONS = 64
IDLE_S = 60.0  # a connection waits so long for its next request
_ARRIVES_S = 20.0  # a request, once its connection is there; and what it is answered with
_LINGERS_S = 2.0  # unread data is read for so long: closing at once would reset the connection before the client has read the answer
_PIECE = 65_536


class McpHttpServer:
    """The HTTP server of one port.

    Args:
        tokens: The valid tokens.
        connect: Creates the tool server of a token.
    """

    def __init__(self, tokens: McpTokens, connect: Callable[[McpToken], ToolServer]) -> None:
        self._tokens = tokens
        self._connect = connect
        self._servers: dict[str, ToolServer] = {}  # by the token
        self._connections = 0

    async def listen(self, port: int) -> asyncio.Server:
        """Start to listen; port 0 means any free port.

        Raises:
            OSError: the port is in use or not allowed.
        """
        return await asyncio.start_server(self._serve, ADDRESS, port, limit=_PIECE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= MAX_CONNECTIONS:
                await _Connection(reader, writer, self).run()
        finally:
            self._connections -= 1
            # A client that does not read its replies would delay a normal close.
            writer.transport.abort()

    def refused(self, request: h11.Request) -> tuple[HTTPStatus, str] | None:
        """Return why the rest of a request is not read; None: it is."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        if sum(len(name) + len(value) for name, value in request.headers) > MAX_HEAD_BYTES:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too long."
        if not _is_here(f"//{headers.get('host', '')}"):
            return HTTPStatus.FORBIDDEN, "This server is asked by 127.0.0.1 or localhost alone."
        origin = headers.get("origin")
        if origin is not None and (urlsplit(origin).netloc != headers.get("host") or not _is_here(origin)):
            return HTTPStatus.FORBIDDEN, "No other page may ask this server."
        if request.target.decode("latin-1").partition("?")[0] != PATH:
            return HTTPStatus.NOT_FOUND, f"The tools are at {PATH}."
        if self.whose(request) is None:
            return HTTPStatus.UNAUTHORIZED, "The token is missing or wrong: `memd-ctl mcp token` prints it."
        if request.method != b"POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, "There is no stream and no session here: POST each message."
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A message is application/json."
        revision = headers.get("mcp-protocol-version")
        if revision is not None and revision not in {*HANDSHAKE_REVISIONS, *STATELESS_REVISIONS}:
            return HTTPStatus.BAD_REQUEST, f"The protocol version {revision[:40]!r} is not served."
        return None

    def whose(self, request: h11.Request) -> McpToken | None:
        """Return the valid token that a request presents; None: it presents none."""
        values = [value for name, value in request.headers if name == b"authorization"]
        scheme, _, token = values[0].decode("latin-1").partition(" ") if len(values) == 1 else ("", "", "")
        return self._tokens.presented(token.strip()) if scheme.lower() == "bearer" and token.strip() else None

    async def answer(self, whose: McpToken, body: bytes) -> tuple[HTTPStatus, Any]:
        """Return the answer to a body; nothing if it contains no request."""
        server = self._servers.get(whose.token)
        if server is None:
            in_force = {one.token for one in self._tokens.all()}
            self._servers = {token: one for token, one in self._servers.items() if token in in_force}
            server = self._servers[whose.token] = self._connect(whose)
        text = body.decode("utf-8", "replace")
        answers = [
            answer for message in messages(text) if (answer := await _answer(server, message)) is not None
        ]
        if not answers:
            return HTTPStatus.ACCEPTED, None
        return HTTPStatus.OK, answers if text.lstrip().startswith("[") else answers[0]


async def _answer(server: ToolServer, message: Mapping[str, Any] | Refusal) -> Any:
    if isinstance(message, Refusal):
        return json.loads(message.encoded())
    if "id" not in message or "method" not in message:
        return None
    return await server.reply(message["id"], message["method"], message.get("params") or {})


def _is_here(url: str) -> bool:
    """Return whether the host of a URL is one of the names of the loopback interface."""
    try:
        return urlsplit(url).hostname in _HOSTS
    except ValueError:
        return False


class _Connection:
    """One connection, which answers one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: McpHttpServer
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def run(self) -> None:
        """Answer requests until the client or the server ends the connection."""
        with suppress(TimeoutError, OSError):
            while await self._exchange():
                self._http.start_next_cycle()
            async with asyncio.timeout(_LINGERS_S):
                self._writer.write_eof()
                while await self._reader.read(_PIECE):
                    pass

    async def _exchange(self) -> bool:
        """Answer one request; return whether another one may follow."""
        try:
            async with asyncio.timeout(IDLE_S):
                request = await self._next_event()
            if not isinstance(request, h11.Request):
                return False
            refusal = self._server.refused(request)
            if refusal is not None:
                await self._reply(refusal[0], {"error": refusal[1]})
                return False  # its body was not read
            async with asyncio.timeout(_ARRIVES_S):
                body = await self._body()
        except h11.RemoteProtocolError as error:
            if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                await self._reply(
                    HTTPStatus(error.error_status_hint), {"error": "This is not HTTP as it should be."}
                )
            return False
        if body is None:
            await self._reply(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                {"error": f"A message has at most {MAX_BODY_BYTES} bytes."},
            )
            return False
        whose = self._server.whose(request)
        if whose is None:  # it was revoked meanwhile
            await self._reply(HTTPStatus.UNAUTHORIZED, {"error": "The token is no longer in force."})
            return False
        await self._reply(*await self._server.answer(whose, body))
        return self._http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}

    async def _body(self) -> bytes | None:
        """Return the body of the request; None: it is too long."""
        if self._http.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                return None
        return bytes(body)

    async def _next_event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_PIECE))
        return event

    async def _reply(self, status: HTTPStatus, value: Any) -> None:
        body = (
            b""
            if value is None
            else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        )
        headers = [
            ("Content-Length", str(len(body))),
            ("Content-Type", "application/json"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        if status == HTTPStatus.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", "Bearer"))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "POST"))
        if status >= HTTPStatus.BAD_REQUEST:
            headers.append(("Connection", "close"))
        await self._send(
            h11.Response(status_code=int(status), headers=headers, reason=status.phrase.encode())
        )
        await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        if data := self._http.send(event):
            self._writer.write(data)
            async with asyncio.timeout(_ARRIVES_S):
                await self._writer.drain()
