"""The stand-in model: an HTTP server on the loopback that replies by a script, and keeps every request that it got.

It is also the proxy of the programs, which lets nothing through: what they ask of other hosts is refused and kept.
"""

import asyncio
import json
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.clients.conversation import Exchange, ModelRequest
from tests.clients.protocols import MODEL, protocol_of
from tests.fakes.http import Request, Response, Server

_SIDE_ANSWER = (
    "A talk about the staging database"  # to what is no part of the conversation: titles and the like
)


class StandInModel:
    """Replies to each prompt of its script, in a `with` block."""

    def __init__(self) -> None:
        self._server = Server(self._answer)
        self._script: list[Exchange] = []
        self.requests: list[ModelRequest] = []  # those of a conversation
        self.side_requests: list[ModelRequest] = []
        self.refused: list[str] = []  # what was asked of other hosts
        self.unknown: list[str] = []  # what was asked of this one, and is no request to a model
        self.bodies: list[bytes] = []  # of the requests to the model

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, value, traceback)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._server.url

    def expect(self, exchange: Exchange) -> None:
        """Reply so to its prompt from now on."""
        self._script.append(exchange)

    def requests_for(self, exchange: Exchange) -> list[ModelRequest]:
        """The requests of one exchange, in their order."""
        return [request for request in self.requests if self._exchange(request) is exchange]

    def _exchange(self, request: ModelRequest) -> Exchange | None:
        """The exchange whose prompt came last."""
        said = request.texts("user")
        found = [(said.rfind(one.prompt), one) for one in self._script if one.prompt in said]
        return max(found, key=lambda each: each[0])[1] if found else None

    async def _answer(self, request: Request) -> Response:
        if request.method == "CONNECT" or request.target.startswith("http://"):
            self.refused.append(request.target)
            return Response(403)
        protocol = protocol_of(request.target) if request.method == "POST" else None
        if protocol is None:
            return self._answer_other(request)
        self.bodies.append(request.body)
        asked = protocol.read(json.loads(request.body), request.target)
        exchange = self._exchange(asked)
        if exchange is None or not asked.tools:
            self.side_requests.append(asked)
            return protocol.write(_SIDE_ANSWER, asked.streams)
        self.requests.append(asked)
        # A step may stop and start daemons.
        reply = await asyncio.to_thread(exchange.reply, asked)
        return protocol.write(reply, asked.streams)

    def _answer_other(self, request: Request) -> Response:
        body: Any
        path = request.target.partition("?")[0]
        if path.endswith("/models"):
            body = {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []}
        elif path.endswith("/count_tokens"):
            body = {"input_tokens": 100}
        elif path.endswith(":countTokens"):
            body = {"totalTokens": 100}
        else:
            self.unknown.append(f"{request.method} {request.target}")
            return Response(404, b"{}")
        return Response(body=msgspec.json.encode(body))
