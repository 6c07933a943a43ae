"""A conversation independent of any provider: roles, texts and tool results, with estimates of their tokens.

memd_client.context.anthropic and memd_client.context.openai convert providers' messages; an agent with another format
creates the messages itself.

Tokens are estimated without a tokenizer, by the figures that the daemon cuts notes by: four ASCII or Latin characters a
token, one common CJK character or emoji a token, and two to four tokens for rarer ones. Real tokenizers differ by a third
either way.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from memd_client.token_estimate import estimate_tokens, quarter_tokens  # noqa: F401 - programs import both from here


def estimate_all(texts: Iterable[str]) -> int:
    """Estimate the number of tokens of several texts together."""
    return -(-sum(map(quarter_tokens, texts)) // 4)


IMAGE_QUARTERS = 8_000  # of an image, in quarters of a token; as in OpenClaw


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message, or one of several tool results that a provider puts into one message."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""  # of an assistant: what it said and thought, and the arguments of its calls as JSON
    images: int = 0
    tool: str | None = None  # of a result: the name of the tool; None: not known
    call: str | None = None  # of a result: the id of the call


def quarters(message: Message) -> int:
    """Estimate the size of a message in quarters of a token, images included."""
    return quarter_tokens(message.text) + message.images * IMAGE_QUARTERS


_IMAGES = frozenset({"image", "image_url", "input_image"})
_UNSERIALISABLE = "?" * 128  # replaces arguments that are not JSON; as in OpenClaw


def text_of(content: object) -> str:
    """Return the text of a content: texts and thoughts, and the JSON of calls and of unknown blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _blocks(content) if (text := _text_of_block(block)))


def images_of(content: object) -> int:
    """Return the number of images in a content."""
    return sum(
        1 if block.get("type") in _IMAGES else images_of(block.get("content")) for block in _blocks(content)
    )


def replaced(content: object, text: str) -> str | list[dict[str, str]]:
    """Return a content of the same shape that contains only this text."""
    return [{"type": "text", "text": text}] if isinstance(content, list) else text


def as_json(value: object) -> str:
    """Encode a value as JSON, of which only the length is used; a string is returned unchanged."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    # A dictionary may contain any Python object.
    except (
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ):
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
