"""What a server of tools answers in the Model Context Protocol: requests to results. Pure, except for the calls of tools.

Revisions up to 2025-11-25 begin with a handshake (``initialize``); since 2026-07-28 each request says its revision in
``_meta`` instead. Both are served, whatever came before: a request is answered in the form that it is made in. The protocol
is written here, since the official SDK takes 0.7 s of the processor to load, and programs do not wait for that with their
first request to a model.
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
# How long a client may keep a list is up to it: memd never changes one while it runs.
_NOT_CACHED: Mapping[str, Any] = MappingProxyType({"ttlMs": 0, "cacheScope": "private"})

Json = dict[str, Any]
CallTool = Callable[[str, Json], Awaitable[Json]]
"""Given the name and the arguments, the result; whatever goes wrong is in it."""


class RequestError(Exception):
    """A request that gets an error, with its code and what stands beside it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def encoded(self) -> Json:
        """As JSON-RPC has it."""
        error: Json = {"code": self.code, "message": str(self)}
        return error if self.data is None else {**error, "data": self.data}


class ToolServer:
    """Answers the requests of one client.

    Args:
        server: Its name, title and version.
        instructions: For the model.
        tools: As ``tools/list`` has them.
        call: Calls one.
    """

    def __init__(
        self, server: Mapping[str, str], instructions: str, tools: Sequence[Json], call: CallTool
    ) -> None:
        self._server = dict(server)
        self._instructions = instructions
        self._tools = list(tools)
        self._call = call

    async def reply(self, identity: int | str, method: str, params: Mapping[str, Any]) -> Json:
        """The answer to a request, as JSON-RPC has it; whatever goes wrong is in it."""
        reply: Json = {"jsonrpc": "2.0", "id": identity}
        try:
            reply["result"] = await self.answer(method, params)
        except RequestError as error:
            reply["error"] = error.encoded()
        except Exception as failure:  # noqa: BLE001 - whatever it is, somebody waits
            reply["error"] = RequestError(INTERNAL_ERROR, f"memd failed: {type(failure).__name__}").encoded()
        return reply

    async def answer(self, method: str, params: Mapping[str, Any]) -> Json:
        """The result of a request.

        Raises:
            RequestError: it has none.
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
    """Whether a request says its revision itself.

    Raises:
        RequestError: it is none that is served.
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
