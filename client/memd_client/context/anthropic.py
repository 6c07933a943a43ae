"""Converts messages of Anthropic's Messages API to a conversation (memd_client.context.conversation) and back.

    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "..."}]}

The system prompt is not a message in this API. A user message may contain several tool results, each of which becomes a
message of its own, in the order of the blocks.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memd_client.context.conversation import Message, images_of, replaced, text_of


def conversation(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Convert the messages; blocks of unknown kinds become JSON."""
    converted: list[Message] = []
    # By call id, of the latest call: some servers reuse ids.
    names: dict[str, str] = {}
    for message in messages:
        names |= _tool_names(message)
        converted += [_message(part, names) for part, _ in _divided(message)]
    return converted


def rebuilt(messages: Sequence[Mapping[str, Any]], pruned: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages with the tool results of ``pruned``; the given messages are not changed.

    Args:
        messages: The messages of the API.
        pruned: The result of ``conversation``, with other texts of tool results.
    """
    answers = zip(conversation(messages), pruned, strict=True)
    result: list[dict[str, Any]] = []
    for message in messages:
        content = message.get("content")
        if not isinstance(content, list):
            next(answers)
            result.append(dict(message))
            continue
        blocks = list(content)
        for _, places in _divided(message):
            before, answer = next(answers)
            if places is not None and answer != before:
                blocks[places] = blocks[places] | {
                    "content": replaced(blocks[places].get("content"), answer.text)
                }
        result.append({**message, "content": blocks})
    return result


def _divided(message: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], int | None]]:
    """Yield the parts of a message: each tool result with its index among the blocks, and the blocks between them (None)."""
    content = message.get("content")
    if not isinstance(content, list):
        yield message, None
        return
    rest: list[Any] = []
    for place, block in enumerate(content):
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            if rest:
                yield {"role": message.get("role"), "content": rest}, None
                rest = []
            yield block, place
        else:
            rest.append(block)
    if rest or not content:
        yield {"role": message.get("role"), "content": rest}, None


def _message(part: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    content = part.get("content")
    if part.get("type") == "tool_result":
        call = str(part.get("tool_use_id", "")) or None
        return Message(
            role="tool",
            text=text_of(content),
            images=images_of(content),
            tool=names.get(call or ""),
            call=call,
        )
    is_assistant = part.get("role") == "assistant"
    return Message(
        role="assistant" if is_assistant else "user", text=text_of(content), images=images_of(content)
    )


def _tool_names(message: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(block.get("id")): str(block.get("name"))
        for block in _blocks(message.get("content"))
        if block.get("type") == "tool_use"
    }


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, Mapping))
