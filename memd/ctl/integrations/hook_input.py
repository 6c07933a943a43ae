"""What an agent's program tells a hook on standard input. Pure, but for reading."""

import json
import os
import select
import time
from typing import Any

import msgspec

_MOST_BYTES = 8 << 20
_PIECE = 1 << 16
_PROMPTS = ("prompt", "user_prompt", "message")
_SESSIONS = ("session_id", "conversation_id", "sessionId")
_NAME_CHARS = 64


class HookInput(msgspec.Struct, frozen=True):
    """The parts of it that matter; other programs than Claude Code call some of them otherwise."""

    prompt: str = ""
    session: str = ""
    event: str = ""  # as the program calls it


def parsed(data: bytes) -> HookInput:
    """What the bytes say; an empty input where they are no JSON object."""
    try:
        # Not msgspec: it refuses half of a surrogate pair, as a program leaves it that cuts an emoji.
        told = json.loads(data)
    except (ValueError, RecursionError):
        return HookInput()
    if not isinstance(told, dict):
        return HookInput()
    return HookInput(
        prompt=_text(told, _PROMPTS),
        session=_text(told, _SESSIONS)[:_NAME_CHARS],
        event=_text(told, ("hook_event_name",))[:_NAME_CHARS],
    )


def received(descriptor: int, until: float) -> bytes:
    """All that comes on a descriptor until its end, or until a moment of the monotonic clock.

    What is too much to be an input is read, lest its writer fails, and dropped.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        while (left_s := until - time.monotonic()) > 0 and select.select([descriptor], [], [], left_s)[0]:
            piece = os.read(descriptor, _PIECE)
            if not piece:
                break
            size += len(piece)
            if size <= _MOST_BYTES:
                pieces.append(piece)
    except OSError:  # closed, or not to be waited for
        return b""
    return b"".join(pieces) if size <= _MOST_BYTES else b""


def _text(told: dict[str, Any], names: tuple[str, ...]) -> str:
    text = next((value for name in names if isinstance(value := told.get(name), str)), "")
    return text.encode("utf-8", "replace").decode()
