"""The memory tools as an MCP server. The only module that knows the MCP SDK.

Trouble is a tool's result, never an error of the protocol: an agent goes on without memory, and can tell its user why.
"""

import io
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from memd_client import tool_replies
from memd_client.asynchronous import AsyncClient
from memd_client.errors import MemdClientError
from memd_client.marker import REPLY_CHARS, marked_reply
from memd_client.mcp.lines import LONGEST_LINE, Refusal, messages, too_long
from memd_client.messages import AgentStatus, Health, StatusReport
from memd_client.session_key import parse
from memd_client.tool_arguments import no_such_tool
from memd_client.tools import MAX_CHARS, TOOLS, AsyncTools, memory_section
from memd_client.version import __version__

STATUS = "memory_status"
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {"type": "object", "properties": {}, "additionalProperties": False}
)
_REASON_CHARS = 250

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
    private = session_key is None or parse(session_key).is_owner_private
    server = Server(
        "memd",
        version=__version__,
        title="memd: long-term memory",
        instructions=memory_section(writes=False, private=private),
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
    )
    output = _claimed_output()
    lines = cast("anyio.AsyncFile[str]", _Lines(sys.stdin.buffer, output))  # it is only iterated
    async with stdio_server(stdin=lines, stdout=anyio.wrap_file(output)) as (requests, replies):
        await server.run(requests, replies, server.create_initialization_options())


class _Output(io.TextIOWrapper):
    """Standard output, a line at a time, for a client that may be gone: then there is nothing left to do.

    The thread that reads requests cannot be told to stop, so the process ends here and now.
    """

    def __init__(self, wire: BinaryIO) -> None:
        super().__init__(wire, encoding="utf-8")
        self._turn = threading.Lock()  # answers and refusals are written by two threads

    def write(self, text: str) -> int:
        try:
            with self._turn:
                written = super().write(text)
                super().flush()
        except OSError:
            os._exit(0)
        return written


def _claimed_output() -> _Output:
    """Standard output for the protocol alone: whatever else is printed goes to standard error."""
    wire = os.dup(1)
    os.dup2(2, 1)
    return _Output(open(wire, "wb"))  # noqa: PTH123  a descriptor; open to the end


class _Lines:
    """The messages on standard input. What is none is refused at once, so that nobody waits for its answer."""

    def __init__(self, wire: BinaryIO, output: _Output) -> None:
        self._wire = wire
        self._output = output

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._wire.readline, LONGEST_LINE):
            text = line.decode("utf-8", "replace")
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                await anyio.to_thread.run_sync(self._skip_line)
                await self._refuse(too_long(text))
                continue
            for message in messages(text, _is_message):
                if isinstance(message, Refusal):
                    await self._refuse(message)
                else:
                    yield message

    async def _refuse(self, refusal: Refusal) -> None:
        await anyio.to_thread.run_sync(self._output.write, f"{refusal.encoded()}\n")

    def _skip_line(self) -> None:
        while (piece := self._wire.readline(LONGEST_LINE)) and not piece.endswith(b"\n"):
            pass


def _is_message(text: str) -> bool:
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        return False
    return True


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
        if params.name == STATUS:
            reply = await self._status()
        elif params.name in _TITLES:
            reply = await self._tools.call(params.name, params.arguments)
        else:
            reply = marked_reply(tool_replies.mend(params.name, no_such_tool(params.name, tuple(_TITLES))))
        text = types.TextContent(type="text", text=tool_replies.encoded(reply))
        return types.CallToolResult(content=[text], is_error="error" in reply)

    async def _status(self) -> dict[str, Any]:
        try:
            report = await self._client.status(self._agent, session_key=self._session_key)
        except MemdClientError as error:
            return marked_reply(tool_replies.unavailable(STATUS, error))
        return marked_reply(status_reply(report, self._max_chars - REPLY_CHARS))


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> types.Tool:
    return types.Tool(
        name=name,
        title=_TITLES[name],
        description=description,
        input_schema=dict(schema),
        annotations=_READS_ONLY,
    )


def status_reply(report: StatusReport, max_chars: int) -> dict[str, Any]:
    """The state of each agent, and what is wrong; agents that have no room are left out.

    Args:
        report: The daemon's.
        max_chars: The most characters of the encoded reply.
    """
    reply: dict[str, Any] = {"running": True, "version": report.version, "agents": {}}
    if report.config_error is not None:
        reply["configError"] = report.config_error[:_REASON_CHARS]
    if not report.cache.ok:
        reply["cacheTrouble"] = (report.cache.reason or "it does not work")[:_REASON_CHARS]
    if not report.daemon_health.ok:
        reply["daemonTrouble"] = (report.daemon_health.reason or "it does not work")[:_REASON_CHARS]
    for count, (name, agent) in enumerate(report.agents.items()):
        more = {**reply, "agents": {**reply["agents"], name: _agent(agent)}}
        if len(tool_replies.encoded({**more, "omitted": len(report.agents)})) > max_chars:
            return {**reply, "omitted": len(report.agents) - count}
        reply = more
    return reply


def _agent(agent: AgentStatus) -> dict[str, Any]:
    fields: dict[str, Any] = {"provider": agent.provider, "model": agent.model}
    if agent.workspace:  # else the conversation is told no numbers, and to a model a zero would be one
        fields = {
            "workspace": agent.workspace,
            **fields,
            "files": agent.files,
            "chunks": agent.chunks,
            "vectors": {"done": agent.vectors.done, "waiting": agent.vectors.waiting},
            "pendingChanges": agent.dirty,
        }
    parts = {
        "keyword": agent.keyword,
        "vector": agent.vector,
        "watcher": agent.watcher,
        "provider": agent.provider_health,
        "store": agent.store,
    }
    trouble = {name: _reason(part) for name, part in parts.items() if not part.ok}
    if agent.rebuild is not None:
        fields["rebuild"] = agent.rebuild[:_REASON_CHARS]
    return {**fields, "trouble": trouble} if trouble else fields


def _reason(part: Health) -> str:
    return (part.reason or "it does not work")[:_REASON_CHARS]
