"""The memory tools as an MCP server. The only module that knows the MCP SDK.

Trouble is a tool's result, never an error of the protocol: an agent goes on without memory, and can tell its user why.
"""

import io
import os
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memd_client import telling
from memd_client.asynchronous import AsyncClient
from memd_client.errors import MemdClientError
from memd_client.mcp.status import SCHEMA, STATUS, status_reply
from memd_client.tools import MAX_CHARS, TOOLS, AsyncTools, memory_section
from memd_client.version import __version__

_READS_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_TITLES = {"memory_search": "Search memory", "memory_get": "Read memory", STATUS: "Status of memory"}
_STATUS_SAYS = (
    "How long-term memory is: what is indexed, what waits, and what is wrong, with how to mend it. For when the user asks, "
    "or when memory_search says that something is degraded; it needs no arguments."
)


def run(*, socket: str | None, agent: str | None, session_key: str | None, max_chars: int | None) -> None:
    """Serve the client at standard input and output until it hangs up."""
    anyio.run(_serve, socket, agent, session_key, max_chars)


async def _serve(
    socket: str | None, agent: str | None, session_key: str | None, max_chars: int | None
) -> None:
    client = AsyncClient(socket)
    answers = Answers(client, agent=agent, session_key=session_key, max_chars=max_chars)
    server = Server(
        "memd",
        version=__version__,
        title="memd: long-term memory",
        instructions=memory_section(writes=False),
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
    )
    async with stdio_server(stdout=anyio.wrap_file(_claimed_output())) as (requests, replies):
        await server.run(requests, replies, server.create_initialization_options())


class _Output(io.TextIOWrapper):
    """Standard output for a client that may be gone: then there is nothing left to do.

    The thread that reads requests cannot be told to stop, so the process ends here and now.
    """

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            os._exit(0)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            os._exit(0)


def _claimed_output() -> _Output:
    """Standard output for the protocol alone: whatever else is printed goes to standard error."""
    wire = os.dup(1)
    os.dup2(2, 1)
    return _Output(open(wire, "wb"), encoding="utf-8")  # noqa: PTH123  a descriptor; open to the end


class Answers:
    """What is answered to one MCP client.

    Args:
        client: Of the daemon.
        agent: Whose memory.
        session_key: The conversation that asks; None: the owner.
        max_chars: The most characters of a reply; None as for Tools.
    """

    def __init__(
        self, client: AsyncClient, *, agent: str | None, session_key: str | None, max_chars: int | None
    ) -> None:
        self._client = client
        self._agent = agent
        self._session_key = session_key
        self._max_chars = max_chars or MAX_CHARS
        self._tools = AsyncTools(lambda: client, agent=agent, session_key=session_key, max_chars=max_chars)

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        """The tools, all of which only read."""
        tools = [_tool(one.name, one.description, one.schema) for one in TOOLS]
        return types.ListToolsResult(tools=[*tools, _tool(STATUS, _STATUS_SAYS, SCHEMA)])

    async def call_tool(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """The answer of a tool, as one text."""
        reply = (
            await self._status()
            if params.name == STATUS
            else await self._tools.call(params.name, params.arguments)
        )
        text = types.TextContent(type="text", text=telling.encoded(reply))
        return types.CallToolResult(content=[text], is_error="error" in reply)

    async def _status(self) -> dict[str, Any]:
        try:
            report = await self._client.status(self._agent, session_key=self._session_key)
        except MemdClientError as error:
            return telling.unavailable(STATUS, error)
        return status_reply(report, self._max_chars)


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> types.Tool:
    return types.Tool(
        name=name,
        title=_TITLES[name],
        description=description,
        input_schema=dict(schema),
        annotations=_READS_ONLY,
    )
