"""What is in the content of a message, as the providers write it: a string, or a list of blocks."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_IMAGES = frozenset({"image", "image_url", "input_image"})
_UNSERIALISABLE = "?" * 128  # what arguments count for that are no JSON; as OpenClaw does


def text_of(content: object) -> str:
    """The text of a content: of its texts and thoughts, and of calls and unknown blocks their JSON."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _blocks(content) if (text := _text_of_block(block)))


def images_of(content: object) -> int:
    """How many images are in a content."""
    return sum(
        1 if block.get("type") in _IMAGES else images_of(block.get("content")) for block in _blocks(content)
    )


def replaced(content: object, text: str) -> str | list[dict[str, str]]:
    """A content of the same shape that has this text alone."""
    return [{"type": "text", "text": text}] if isinstance(content, list) else text


def as_json(value: object) -> str:
    """A value as JSON, of which only the length matters; a string as it is."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ):  # whatever a program puts into a dictionary
        return _UNSERIALISABLE


def _text_of_block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text" | "input_text" | "output_text":
            return _string(block.get("text"))
        case "thinking":
            return _string(block.get("thinking"))
        case "tool_use":
            return as_json(block.get("input"))
        case "tool_result":
            return text_of(block.get("content"))
        case kind if kind in _IMAGES:
            return ""
        case _:
            return as_json(block)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, list | tuple):
        for block in content:
            if isinstance(block, Mapping):
                yield block
            elif isinstance(block, str):
                yield {"type": "text", "text": block}
