"""The memory tools as an MCP server on standard input and output.

Failures are results of tools, never protocol errors: an agent continues without memory, and can tell its user
why.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from memd_client import tool_replies
from memd_client.asynchronous import AsyncClient
from memd_client.conversation import __version__
from memd_client.errors import MemdClientError
from memd_client.mcp.lines import LONGEST_LINE, Refusal, messages, too_long
from memd_client.mcp.protocol import ToolServer
from memd_client.messages import AgentStatus, Health, StatusReport
from memd_client.session_key import parse
from memd_client.tool_arguments import APPEND, no_such_tool
from memd_client.tools import MAX_CHARS, TOOLS, AsyncTools, memory_section
from memd_client.watermark import REPLY_CHARS, marked_reply

if TYPE_CHECKING:
    from memd_client.mcp.append import NoteWriter

STATUS = "memory_status"
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {"type": "object", "properties": {}, "additionalProperties": False}
)
_REASON_CHARS = 250
# How long calls may take that run when the client hangs up: as long as the client of the daemon waits for a reply, and a
# few seconds more for the note and the output.
_FINISH_S = 15.0

_READS_ONLY: Mapping[str, bool] = MappingProxyType(
    {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
)
_TITLES = {"memory_search": "Search memory", "memory_get": "Read memory", STATUS: "Status of memory"}
_STATUS_SAYS = (
    "How long-term memory is: what is indexed, what waits, and what is wrong, with how to fix it. For when the user asks, "
    "or when memory_search says that something is degraded; it needs no arguments."
)


def run(answers: "Answers") -> None:
    """Serve the client on standard input and output until it closes one of them, or SIGTERM; end the process.

    Calls that run then are finished and answered, unless they take longer than _FINISH_S seconds.
    """
    asyncio.run(_serve(answers))


async def _serve(answers: "Answers") -> None:
    output = _Output(_claimed_output())
    conversation = _Conversation(answers.server(), output)
    writing = asyncio.create_task(output.run())
    reading = asyncio.create_task(_read(sys.stdin.buffer, conversation))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGTERM)  # the next one ends the process at once
        reading.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    ended, _ = await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
    reading.cancel()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FINISH_S):
            await conversation.finish()
            output.end()
            await writing
    if reading in ended and not reading.cancelled():
        reading.result()  # it raises what is a bug
    # A normal exit would wait for the thread that reads, and for requests to a daemon that does not answer.
    os._exit(0)


class _Output:
    """Standard output, line by line; written on a thread, so that a client that reads late is still heard."""

    def __init__(self, wire: BinaryIO) -> None:
        self._wire = wire
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue()  # None: end of output

    def send(self, line: str) -> None:
        """Append a line to the output."""
        self._waiting.put_nowait(line)

    def end(self) -> None:
        """Let ``run`` return once everything is written."""
        self._waiting.put_nowait(None)

    async def run(self) -> None:
        """Write the lines until ``end``, or until the client is gone."""
        with contextlib.suppress(OSError):
            while (line := await self._waiting.get()) is not None:
                await asyncio.to_thread(self._write, line.encode("utf-8", "replace"))

    def _write(self, line: bytes) -> None:
        self._wire.write(line + b"\n")
        self._wire.flush()


def _claimed_output() -> BinaryIO:
    """Reserve standard output for the protocol; other output goes to standard error."""
    wire = os.dup(1)
    os.dup2(2, 1)
    return open(wire, "wb")  # noqa: PTH123  a descriptor; open to the end


async def _read(wire: BinaryIO, conversation: "_Conversation") -> None:
    """Answer each message on a stream until it ends; invalid ones are refused at once, so that nobody waits for a reply."""
    while line := await asyncio.to_thread(wire.readline, LONGEST_LINE):
        text = line.decode("utf-8", "replace")
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            await asyncio.to_thread(_skip_line, wire)
            conversation.refuse(too_long(text))
            continue
        for message in messages(text):
            if isinstance(message, Refusal):
                conversation.refuse(message)
            else:
                conversation.hear(message)


def _skip_line(wire: BinaryIO) -> None:
    while (piece := wire.readline(LONGEST_LINE)) and not piece.endswith(b"\n"):
        pass


class _Conversation:
    """The requests being answered, concurrently."""

    def __init__(self, server: ToolServer, output: _Output) -> None:
        self._server = server
        self._output = output
        self._running: set[asyncio.Task[None]] = set()
        self._latest: dict[int | str, asyncio.Task[None]] = {}  # of those that run, by their id

    def hear(self, message: Mapping[str, Any]) -> None:
        """Start to answer a request, or cancel one as a notification asks; other notifications are ignored."""
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            return
        if "id" in message:
            identity = message["id"]
            task = self._latest[identity] = asyncio.create_task(self._answer(identity, method, params))
            self._running.add(task)
            task.add_done_callback(lambda done: self._forget(identity, done))
        elif method == "notifications/cancelled":
            with contextlib.suppress(KeyError, TypeError):  # it was answered, or never existed
                self._latest[params["requestId"]].cancel()

    def refuse(self, refusal: Refusal) -> None:
        """Send the refusal of an invalid message."""
        self._output.send(refusal.encoded())

    async def finish(self) -> None:
        """Wait until all requests are answered."""
        while self._running:
            await asyncio.wait(self._running)

    async def _answer(self, identity: int | str, method: str, params: Mapping[str, Any]) -> None:
        reply = await self._server.reply(identity, method, params)
        self._output.send(json.dumps(reply, ensure_ascii=False, separators=(",", ":")))

    def _forget(self, identity: int | str, done: "asyncio.Task[None]") -> None:
        self._running.discard(done)
        if self._latest.get(identity) is done:
            del self._latest[identity]


class Answers:
    """Answers the requests of one MCP client.

    Args:
        client: The client of the daemon.
        agent: The agent's id; None as for Tools.
        session_key: The conversation that asks; None: the owner.
        max_chars: The most characters of a reply; None as for Tools.
        writer: The writer whose notes may be appended; None: nobody may write.

    Raises:
        ValueError: writing was requested for a conversation without a key, or with other readers.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        agent: str | None,
        session_key: str | None,
        max_chars: int | None,
        writer: str | None = None,
    ) -> None:
        self._client = client
        self._agent = agent
        self._session_key = session_key
        self._max_chars = max_chars or MAX_CHARS
        self._tools = AsyncTools(lambda: client, agent=agent, session_key=session_key, max_chars=max_chars)
        self._append: NoteWriter | None = None
        if writer is not None:
            if session_key is None or not parse(session_key).is_owner_private:
                raise ValueError("only a private conversation may write, and it must be named")
            # Imported late, so that clients that only read need not wait for it.
            from memd_client.mcp import append  # noqa: PLC0415

            self._append = append.NoteWriter(client, writer=writer, session_key=session_key, agent=agent)

    def server(self) -> ToolServer:
        """Return the server for one client."""
        is_private = self._session_key is None or parse(self._session_key).is_owner_private
        return ToolServer(
            {"name": "memd", "title": "memd: long-term memory", "version": __version__},
            memory_section(writes=False, private=is_private),
            self.tools(),
            self.call,
        )

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools for ``tools/list``."""
        tools = [_tool(one.name, one.description, one.schema) for one in TOOLS]
        tools.append(_tool(STATUS, _STATUS_SAYS, SCHEMA))
        if self._append is not None:
            tools.append(self._append.tool())
        return tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply of a tool, as one text."""
        if name == STATUS:
            reply = await self._status()
        elif name in _TITLES:
            reply = await self._tools.call(name, arguments)
        elif name == APPEND and self._append is not None:
            reply = await self._append.append(arguments)
        else:
            reply = marked_reply(tool_replies.invalid_arguments(name, no_such_tool(name, tuple(_TITLES))))
        text = {"type": "text", "text": tool_replies.encoded(reply)}
        return {"content": [text], "isError": "error" in reply}

    async def _status(self) -> dict[str, Any]:
        try:
            report = await self._client.status(self._agent, session_key=self._session_key)
        except MemdClientError as error:
            return marked_reply(tool_replies.unavailable(STATUS, error))
        return marked_reply(status_reply(report, self._max_chars - REPLY_CHARS))


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "title": _TITLES[name],
        "description": description,
        "inputSchema": dict(schema),
        "annotations": dict(_READS_ONLY),
    }


def status_reply(report: StatusReport, max_chars: int) -> dict[str, Any]:
    """Return the state of each agent, and what is wrong; agents that do not fit are left out.

    Args:
        report: The daemon's status.
        max_chars: The most characters of the encoded reply.
    """
    reply: dict[str, Any] = {"running": True, "version": report.version, "agents": {}}
    if report.config_error is not None:
        reply["configError"] = report.config_error[:_REASON_CHARS]
    if not report.cache.ok:
        reply["cacheTrouble"] = (report.cache.reason or "it does not work")[:_REASON_CHARS]
    if not report.synonyms.ok:
        reply["synonymsTrouble"] = (report.synonyms.reason or "they cannot be read")[:_REASON_CHARS]
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
    if agent.workspace:  # otherwise the session may see no numbers, and a model would take a 0 for one
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
