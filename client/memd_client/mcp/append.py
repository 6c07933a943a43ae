"""The tool that writes: at most so many characters to today's note, by choice of the owner alone.

memd itself never writes to notes. Here the program of an agent does, on the owner's word (`memd-mcp --write NAME`), and only for a
conversation that nobody else reads along. The daemon takes secrets out first, and says where the notes are: without it nothing
is written. What is written says who wrote it and when, so that it can be told from what a person wrote; its later lines are indented, so
that none of them can pass for a person's. Nothing is ever changed or deleted.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memd_client import tool_replies
from memd_client.asynchronous import AsyncClient
from memd_client.context.daily_note import NoteNotWritten, append_daily_note
from memd_client.errors import MemdClientError
from memd_client.marker import marked_reply, unmarked
from memd_client.messages import RedactedText
from memd_client.tool_arguments import APPEND, Unusable

MAX_APPENDED_CHARS = 2_000
_INDENT = "  "

APPEND_SAYS = (
    "Write something down that should outlast this conversation: a decision with its reason, a fact, a preference, a promise, an open "
    "task. It is appended to today's note, with your name and the time; nothing is ever changed or deleted. For when the user says "
    '"remember this", or a thing will clearly matter later. Say what it is in a sentence or two that make sense alone, with names and '
    "dates. Never write down passwords, keys or tokens. The reply says where it stands."
)
APPEND_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_APPENDED_CHARS,
                "description": "What to write down, as Markdown without headings.",
            }
        },
        "required": ["text"],
        "additionalProperties": False,
    }
)
APPENDS: Mapping[str, bool] = MappingProxyType(
    {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
)


class NoteWriter:
    """Writes to the notes of one agent for one conversation.

    Args:
        client: Of the daemon, which decides whether the conversation may write.
        writer: Who writes, as the note has it.
        session_key: The conversation.
        agent: Whose notes; None: those of the session key's agent.
    """

    def __init__(self, client: AsyncClient, *, writer: str, session_key: str, agent: str | None) -> None:
        self._client = client
        self._writer = " ".join(writer.split())
        self._session_key = session_key
        self._agent = agent

    @staticmethod
    def tool() -> dict[str, Any]:
        """The tool, as ``tools/list`` has it."""
        return {
            "name": APPEND,
            "title": "Write to memory",
            "description": APPEND_SAYS,
            "inputSchema": dict(APPEND_SCHEMA),
            "annotations": dict(APPENDS),
        }

    async def append(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The reply of the tool; whatever goes wrong is in it, and then nothing is written."""
        try:
            text = _text(arguments)
            clean = await self._client.redact(text, agent=self._agent, session_key=self._session_key)
            return marked_reply(await asyncio.to_thread(self._write, clean, datetime.now(UTC)))
        except Unusable as unusable:
            reply = tool_replies.mend(APPEND, unusable)
        except NoteNotWritten as error:
            reply = {"error": str(error), "action": "Tell the user that it was not written down, and why."}
        except MemdClientError as error:
            reply = tool_replies.unavailable(APPEND, error)
        return marked_reply({"written": False, **reply})

    def _write(self, clean: RedactedText, now: datetime) -> dict[str, Any]:
        zone = _zone(clean.timezone, now)
        lines = [line for line in clean.text.strip().splitlines() if line.strip()]
        head = (
            f"- {now.astimezone(zone):%H:%M} {self._writer} ({self._session_key}) wrote: {lines[0].strip()}"
        )
        block = "\n".join([head, *(f"{_INDENT}{line.rstrip()}" for line in lines[1:])])
        done = append_daily_note(clean.workspace, block, now, zone)
        reply: dict[str, Any] = {"written": done.outcome == "appended", "path": done.path}
        if done.outcome == "appended":
            reply |= {"startLine": done.line, "text": done.written}
        else:
            reply["remark"] = "The note says this already."
        return {**reply, "redacted": clean.counts} if clean.counts else reply


def _text(arguments: Mapping[str, Any]) -> str:
    """What is to be written, without what memd has handed out itself.

    Raises:
        Unusable: there is nothing of that, or too much.
    """
    given = arguments.get("text")
    if not isinstance(given, str):
        raise Unusable("text is missing.", f"Call {APPEND} again with text: what to write down.")
    text = unmarked(given.encode("utf-8", "replace").decode()).strip()
    if not text:
        raise Unusable(
            "text is empty, or only repeats what memory says.", f"Call {APPEND} again with something new."
        )
    if len(text) > MAX_APPENDED_CHARS:
        raise Unusable(
            f"text has {len(text):,} characters; {MAX_APPENDED_CHARS:,} are possible.",
            f"Call {APPEND} again with what matters of it.",
        )
    return text


def _zone(name: str, now: datetime) -> tzinfo:
    """The time zone of that name, else the machine's at that moment."""
    try:
        return ZoneInfo(name) if name else now.astimezone().tzinfo or UTC
    except (ZoneInfoNotFoundError, ValueError):
        return now.astimezone().tzinfo or UTC
