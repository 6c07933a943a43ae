"""A model that answers by rule, in the shape of a provider's stream: it searches memory, reads on, and answers.

It stands where your provider's SDK would, and does what a real model does with these tools.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_ids = itertools.count(1)


def stream(
    system: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Blocks of one answer: pieces of text, and calls of tools."""
    assert "memory_search" in {tool["name"] for tool in tools}
    content = messages[-1]["content"]
    is_flush = "NO_REPLY" in system
    if isinstance(content, str):
        yield _note(messages) if is_flush else _call("memory_search", {"query": content, "maxResults": 3})
    elif is_flush:
        yield from _text("NO_", "REPLY")
    else:
        yield from _answer(json.loads(content[-1]["content"]))


def _note(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = [message["content"] for message in messages[:-1] if isinstance(message["content"], str)]
    return _call("daily_note", {"text": "\n".join(f"- The user asked: {question}" for question in asked)})


def _answer(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if found.get("disabled"):
        yield from _text("Memory is unavailable: ", found["error"], " ", found["action"])
    elif "text" in found:
        yield from _text(f"From {found['path']}:\n", found["text"])
    elif found["results"]:
        best = found["results"][0]
        yield _call("memory_get", {"path": best["path"], "from": best["startLine"], "lines": 5})
    else:
        yield from _text("I looked, ", "and memory says nothing of it.")


def _text(*pieces: str) -> Iterator[dict[str, Any]]:
    yield from ({"type": "text", "text": piece} for piece in pieces)


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": name, "input": dict(arguments)}
