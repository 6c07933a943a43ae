"""Converts messages of OpenAI's Chat Completions to a conversation (memd_client.context.conversation) and back.

    {"role": "tool", "tool_call_id": "call_1", "content": "..."}

Compatible servers (Ollama, llama.cpp, vLLM, gateways) use the same form.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from memd_client.context.conversation import Message, as_json, images_of, replaced, text_of

_ROLES: Mapping[str, Literal["system", "user", "assistant", "tool"]] = MappingProxyType(
    {
        "system": "system",
        "developer": "system",
        "assistant": "assistant",
        "tool": "tool",
        "function": "tool",
    }
)


def conversation(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Convert the messages, one by one."""
    converted: list[Message] = []
    # By call id, of the latest call: some servers reuse ids.
    names: dict[str, Any] = {}
    for message in messages:
        names |= {str(call.get("id")): _function(call).get("name") for call in _calls(message)}
        converted.append(_message(message, names))
    return converted


def rebuilt(messages: Sequence[Mapping[str, Any]], pruned: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages with the tool results of ``pruned``; the given messages are not changed.

    Args:
        messages: The messages of the API.
        pruned: The result of ``conversation``, with other texts of tool results.
    """
    return [
        dict(message) if now == before else {**message, "content": replaced(message.get("content"), now.text)}
        for message, before, now in zip(messages, conversation(messages), pruned, strict=True)
    ]


def _message(message: Mapping[str, Any], names: Mapping[str, Any]) -> Message:
    content = message.get("content")
    role = _ROLES.get(str(message.get("role")), "user")
    images = images_of(content)
    match role:
        case "tool":
            call = str(message.get("tool_call_id") or "") or None
            tool = message.get("name") or names.get(call or "")
            return Message(
                role=role, text=text_of(content), images=images, tool=str(tool) if tool else None, call=call
            )
        case "assistant":
            thoughts = text_of(message.get("reasoning_content"))
            arguments = (as_json(_function(call).get("arguments", "")) for call in _calls(message))
            return Message(
                role=role, text="\n".join([thoughts + text_of(content), *arguments]), images=images
            )
        case _:
            return Message(role=role, text=text_of(content), images=images)


def _calls(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        yield from (call for call in calls if isinstance(call, Mapping))


def _function(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return dict(function) if isinstance(function, Mapping) else {}
