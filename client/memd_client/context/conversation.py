"""A conversation independent of any provider: roles, texts and tool results, with estimates of their tokens.

memd_client.context.anthropic and memd_client.context.openai convert providers' messages; an agent with another format
creates the messages itself.

Tokens are estimated without a tokenizer, by the figures that the daemon cuts notes by: four ASCII or Latin characters a
token, one common CJK character or emoji a token, and two to four tokens for rarer ones. Real tokenizers differ by a third
either way.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

# The cost of a character in addition to one quarter of a token.
_COMMON = re.compile("[\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60\U0001f000-\U0001faff]+")
_COMMON_COST = 3
_RARE = (
    (11, "\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dbf\u9fa6-\ua4cf\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff"),
    (7, "\u02c7\u02ca\u02cb\u02d9\ufe10-\ufe1f\ufe30-\ufe4f\uff61-\uffef"),
    (15, "\U00020000-\U0003ffff"),
)
_RARE_COSTS = tuple((cost, re.compile(f"[{block}]+")) for cost, block in _RARE)
_ANY_RARE = re.compile(f"[{''.join(block for _, block in _RARE)}]")


def quarter_tokens(text: str) -> int:
    """Estimate the size of a text in quarters of a token; it adds up over parts, and is the length of ASCII text."""
    if text.isascii():
        return len(text)
    quarters = len(text) + _COMMON_COST * sum(map(len, _COMMON.findall(text)))
    if _ANY_RARE.search(text):
        quarters += sum(cost * sum(map(len, block.findall(text))) for cost, block in _RARE_COSTS)
    return quarters


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text: ceil(quarter_tokens / 4)."""
    return -(-quarter_tokens(text) // 4)


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
