"""Exports of ChatGPT and of Claude, as their files have it: conversations.json with all conversations."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DAY = 1_773_100_800.0


def chatgpt_message(
    role: str, *parts: Any, at: float = DAY, kind: str = "text", **more: Any
) -> dict[str, Any]:
    """A message with the fields that each one has."""
    return {
        "id": "overwritten",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "update_time": None,
        "content": {"content_type": kind, "parts": list(parts)},
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": {"model_slug": "gpt-5"},
        "recipient": "all",
        "channel": None,
        **more,
    }


def chatgpt(
    identity: str,
    nodes: Mapping[str, tuple[str | None, dict[str, Any] | None]],
    current: str | None,
    **more: Any,
) -> dict[str, Any]:
    """A conversation out of nodes: id -> (parent, message)."""
    mapping = {
        name: {
            "id": name,
            "message": None if message is None else message | {"id": name},
            "parent": parent,
            "children": [other for other, (above, _) in nodes.items() if above == name],
        }
        for name, (parent, message) in nodes.items()
    }
    return {
        "title": "A talk",
        "create_time": DAY,
        "update_time": DAY + 60,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current,
        "plugin_ids": None,
        "conversation_id": identity,
        "conversation_template_id": None,
        "gizmo_id": None,
        "is_archived": False,
        "safe_urls": [],
        "default_model_slug": "gpt-5",
        "id": identity,
        **more,
    }


def chatgpt_talk(identity: str, *said: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A conversation without branches, below the root and the hidden prompt that each one has."""
    hidden = chatgpt_message("system", "", metadata={"is_visually_hidden_from_conversation": True})
    nodes: dict[str, tuple[str | None, dict[str, Any] | None]] = {
        "client-created-root": (None, None),
        f"{identity}-0": ("client-created-root", hidden),
    }
    for number, (role, text) in enumerate(said, 1):
        nodes[f"{identity}-{number}"] = (
            f"{identity}-{number - 1}",
            chatgpt_message(role, text, at=DAY + number),
        )
    return chatgpt(identity, nodes, f"{identity}-{len(said)}", **more)


def claude_message(identity: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    """A message of Claude with the fields that each one has."""
    at = "2026-03-10T00:00:01.000000Z"
    block = {"start_timestamp": at, "stop_timestamp": at, "type": "text", "text": text, "citations": []}
    return {
        "uuid": identity,
        "text": text,
        "content": [block],
        "sender": sender,
        "created_at": at,
        "updated_at": at,
        "attachments": [],
        "files": [],
        **more,
    }


def claude(identity: str, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation of Claude."""
    return {
        "uuid": identity,
        "name": "A talk",
        "summary": "",
        "created_at": "2026-03-10T00:00:00.000000Z",
        "updated_at": "2026-03-10T00:01:00.000000Z",
        "account": {"uuid": "7c1e2f7e-0000-4000-8000-000000000000"},
        "chat_messages": list(messages),
        **more,
    }


def write(file: Path, conversations: Iterable[Any], *, indent: int | None = None) -> None:
    """Write an export."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(list(conversations), indent=indent, ensure_ascii=False), encoding="utf-8")
