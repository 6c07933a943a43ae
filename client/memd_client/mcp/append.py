"""The tool memory_append: appends text to today's note, if the owner allows that.

memd itself never writes to notes. This tool runs in the agent's program, if the owner has enabled it (`memd-mcp --write NAME`), and only
for a conversation that only the owner reads. The daemon redacts the text first and returns the workspace; without it nothing is
written. Each entry names its writer and the time, and its further lines are indented, so that it cannot be taken for the user's own
text, nor do control characters hide that: they are left out. Nothing is ever changed or deleted.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memd_client import tool_replies
from memd_client.asynchronous import AsyncClient
from memd_client.context.daily_note import NoteNotWritten, append_daily_note, plain_text
from memd_client.errors import MemdClientError
from memd_client.messages import RedactedText
from memd_client.tool_arguments import APPEND, Unusable
from memd_client.watermark import marked_reply, unmarked

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
        client: A client of the daemon, which decides whether the conversation may write.
        writer: The name of the writer in the note.
        session_key: The session key of the conversation.
        agent: The agent whose notes are written; None: that of the session key.
    """

    def __init__(self, client: AsyncClient, *, writer: str, session_key: str, agent: str | None) -> None:
        self._client = client
        self._writer = " ".join(plain_text(writer).split())
        self._session_key = session_key
        self._agent = agent

    @staticmethod
    def tool() -> dict[str, Any]:
        """Return the definition of the tool for ``tools/list``."""
        return {
            "name": APPEND,
            "title": "Write to memory",
            "description": APPEND_SAYS,
            "inputSchema": dict(APPEND_SCHEMA),
            "annotations": dict(APPENDS),
        }

    async def append(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply of the tool; if the text cannot be written, the reply says why."""
        try:
            text = _text(arguments)
            clean = await self._client.redact(text, agent=self._agent, session_key=self._session_key)
            return marked_reply(await asyncio.to_thread(self._write, clean, datetime.now(UTC)))
        except Unusable as unusable:
            reply = tool_replies.invalid_arguments(APPEND, unusable)
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
    """Return the text to write, without what memd itself has handed out.

    Raises:
        Unusable: the text is missing, empty or too long.
    """
    given = arguments.get("text")
    if not isinstance(given, str):
        raise Unusable("text is missing.", f"Call {APPEND} again with text: what to write down.")
    # Control characters are not written; taken out only then, they would hide the two halves of a secret.
    text = unmarked(plain_text(given.encode("utf-8", "replace").decode())).strip()
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
    """Return the time zone of this name; without one, or for an unknown name, that of the machine at this moment."""
    with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
        if name:
            return ZoneInfo(name)
    try:
        return now.astimezone().tzinfo or UTC
    except ValueError:  # TZ is 24 hours or more from UTC, for which the daemon takes UTC, too
        return UTC
