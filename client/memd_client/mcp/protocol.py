"""Answers requests of the Model Context Protocol. Pure, except for calls of tools.

Revisions up to 2025-11-25 begin with a handshake (``initialize``); since 2026-07-28 each request states its revision in
``_meta`` instead. Both are served at any time: each request is answered in its own revision. The official SDK is not used,
because it takes 0.7 s of processor time to load, and programs do not wait that long before their first request to a model.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_REVISIONS = ("2026-07-28",)
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_REVISION = -32022  # of 2026-07-28
_OF_PROTOCOL = "io.modelcontextprotocol/"
_REVISION = f"{_OF_PROTOCOL}protocolVersion"
_CAPABILITIES: Mapping[str, Any] = MappingProxyType({"tools": {"listChanged": False}})
# Clients need not cache lists: memd never changes one while it runs.
_NOT_CACHED: Mapping[str, Any] = MappingProxyType({"ttlMs": 0, "cacheScope": "private"})

Json = dict[str, Any]
CallTool = Callable[[str, Json], Awaitable[Json]]
"""Takes the name and the arguments of a call, and returns the result; failures are part of it."""


class RequestError(Exception):
    """The error reply to a request."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def encoded(self) -> Json:
        """Return the error as a JSON-RPC object."""
        error: Json = {"code": self.code, "message": str(self)}
        return error if self.data is None else {**error, "data": self.data}


class ToolServer:
    """Answers the requests of one client.

    Args:
        server: Name, title and version of the server.
        instructions: Instructions for the model.
        tools: The definitions of the tools for ``tools/list``.
        call: Calls a tool.
    """

    def __init__(
        self, server: Mapping[str, str], instructions: str, tools: Sequence[Json], call: CallTool
    ) -> None:
        self._server = dict(server)
        self._instructions = instructions
        self._tools = list(tools)
        self._call = call

    async def reply(self, identity: int | str, method: str, params: Mapping[str, Any]) -> Json:
        """Return the JSON-RPC reply to a request; failures are part of it."""
        reply: Json = {"jsonrpc": "2.0", "id": identity}
        try:
            reply["result"] = await self.answer(method, params)
        except RequestError as error:
            reply["error"] = error.encoded()
        except Exception as failure:  # noqa: BLE001 - the client waits for a reply
            reply["error"] = RequestError(INTERNAL_ERROR, f"memd failed: {type(failure).__name__}").encoded()
        return reply

    async def answer(self, method: str, params: Mapping[str, Any]) -> Json:
        """Return the result of a request.

        Raises:
            RequestError: the request is invalid or unknown.
        """
        if not _is_stateless(params):
            return await self._result(method, params)
        result = await self._result(method, params)
        return {**result, "resultType": "complete", "_meta": {f"{_OF_PROTOCOL}serverInfo": self._server}}

    async def _result(self, method: str, params: Mapping[str, Any]) -> Json:
        match method:
            case "initialize":
                asked = params.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1],
                    "capabilities": dict(_CAPABILITIES),
                    "serverInfo": self._server,
                    "instructions": self._instructions,
                }
            case "server/discover" if _is_stateless(params):  # else a client tries it before the handshake
                return {
                    "supportedVersions": list(STATELESS_REVISIONS),
                    "capabilities": dict(_CAPABILITIES),
                    "instructions": self._instructions,
                    **_NOT_CACHED,
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self._tools, **(_NOT_CACHED if _is_stateless(params) else {})}
            case "tools/call":
                name, arguments = params.get("name"), params.get("arguments")
                if not isinstance(name, str) or not isinstance(arguments, dict | None):
                    raise RequestError(
                        INVALID_PARAMS,
                        "tools/call takes a name, which is a string, and arguments, an object.",
                    )
                return await self._call(name, arguments or {})
            case _:
                raise RequestError(METHOD_NOT_FOUND, "Method not found", method)


def _is_stateless(params: Mapping[str, Any]) -> bool:
    """Return whether a request states its revision in ``_meta``.

    Raises:
        RequestError: the revision is not supported.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict) or _REVISION not in meta:
        return False
    revision = meta[_REVISION]
    if not isinstance(revision, str):
        raise RequestError(INVALID_PARAMS, f"{_REVISION} must be a string.")
    if revision not in STATELESS_REVISIONS:
        supported = {"supported": list(STATELESS_REVISIONS), "requested": revision}
        raise RequestError(UNSUPPORTED_REVISION, "Unsupported protocol version", supported)
    return True
