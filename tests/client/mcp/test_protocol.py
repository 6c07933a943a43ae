"""What the MCP server answers, request by request."""

from typing import Any

import pytest

from memd_client.mcp.protocol import (
    HANDSHAKE_REVISIONS,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    STATELESS_REVISIONS,
    UNSUPPORTED_REVISION,
    RequestError,
    ToolServer,
)

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
SERVER = {"name": "memd", "version": "1"}
REVISION = "io.modelcontextprotocol/protocolVersion"
STATELESS: dict[str, Any] = {"_meta": {REVISION: STATELESS_REVISIONS[-1]}}


async def echo(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [], "said": [name, arguments]}


@pytest.fixture
def server() -> ToolServer:
    return ToolServer(SERVER, "Search first.", [TOOL], echo)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        *((revision, revision) for revision in HANDSHAKE_REVISIONS),
        ("1999-01-01", HANDSHAKE_REVISIONS[-1]),
        (STATELESS_REVISIONS[-1], HANDSHAKE_REVISIONS[-1]),
        (None, HANDSHAKE_REVISIONS[-1]),
        ([], HANDSHAKE_REVISIONS[-1]),
    ],
)
async def test_the_handshake_agrees_on_a_revision(server: ToolServer, asked: object, told: str) -> None:
    """The one that the client names, else the newest one that has a handshake."""
    assert await server.answer("initialize", {"protocolVersion": asked}) == {
        "protocolVersion": told,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": SERVER,
        "instructions": "Search first.",
    }


async def test_without_a_handshake_each_result_says_who_made_it(server: ToolServer) -> None:
    """And is complete; a list is not kept."""
    said = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER}}
    uncached = {"ttlMs": 0, "cacheScope": "private"}
    assert await server.answer("server/discover", STATELESS) == {
        "supportedVersions": list(STATELESS_REVISIONS),
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": "Search first.",
        **uncached,
        **said,
    }
    assert await server.answer("tools/list", STATELESS) == {"tools": [TOOL], **uncached, **said}
    called = await server.answer("tools/call", {"name": "echo", "arguments": {"a": 1}, **STATELESS})
    assert called == {"content": [], "said": ["echo", {"a": 1}], **said}


async def test_with_a_handshake_results_are_plain(server: ToolServer) -> None:
    """Also where something else stands in _meta; arguments may be left out."""
    assert await server.answer("ping", {}) == {}
    assert await server.answer("tools/list", {"_meta": {"progressToken": 1}, "cursor": "x"}) == {
        "tools": [TOOL]
    }
    others: tuple[dict[str, Any], ...] = ({}, {"arguments": None}, {"arguments": {}})
    for params in others:
        assert (await server.answer("tools/call", {"name": "echo"} | params))["said"] == ["echo", {}]


@pytest.mark.parametrize(
    ("method", "params", "code", "data"),
    [
        ("resources/list", {}, METHOD_NOT_FOUND, "resources/list"),
        ("server/discover", {}, METHOD_NOT_FOUND, "server/discover"),
        ("tools/call", {}, INVALID_PARAMS, None),
        ("tools/call", {"name": 5}, INVALID_PARAMS, None),
        ("tools/call", {"name": "echo", "arguments": [1]}, INVALID_PARAMS, None),
        ("ping", {"_meta": {REVISION: 5}}, INVALID_PARAMS, None),
        (
            "tools/list",
            {"_meta": {REVISION: "2999-01-01"}},
            UNSUPPORTED_REVISION,
            {"supported": list(STATELESS_REVISIONS), "requested": "2999-01-01"},
        ),
    ],
)
async def test_what_cannot_be_served_is_an_error_of_the_protocol(
    server: ToolServer, method: str, params: dict[str, Any], code: int, data: object
) -> None:
    """With the code that clients tell cases apart by: one that tries the newest revision first goes on with the handshake."""
    with pytest.raises(RequestError) as failure:
        await server.answer(method, params)
    encoded = failure.value.encoded()
    assert (encoded["code"], encoded.get("data")) == (code, data)
