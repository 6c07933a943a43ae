"""The protocols of models: Anthropic Messages, OpenAI Responses and Chat, Gemini generateContent; as far as the programs use them."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from tests.clients.conversation import (
    Called,
    Item,
    ModelRequest,
    Reply,
    Role,
    Said,
    Tool,
    ToolCall,
    ToolResult,
)
from tests.fakes.http import Response

MODEL = "stand-in"
_numbers = itertools.count(1)


class Protocol(msgspec.Struct, frozen=True):
    """How requests of a protocol are read, and replies written."""

    read: Callable[[Any, str], ModelRequest]  # of the body and the target
    write: Callable[[Reply, bool], Response]  # whether as a stream


def protocol_of(target: str) -> Protocol | None:
    """The protocol that is spoken at a target of HTTP; None: it is none of a model."""
    path = target.partition("?")[0]
    if path.endswith("/messages"):
        return Protocol(_read_anthropic, _write_anthropic)
    if path.endswith("/responses"):
        return Protocol(_read_responses, _write_responses)
    if path.endswith("/chat/completions"):
        return Protocol(_read_chat, _write_chat)
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return Protocol(_read_gemini, _write_gemini)
    return None


def _id(kind: str) -> str:
    return f"{kind}_{next(_numbers):08d}"


def _streamed(events: Iterable[dict[str, Any]], *, named: bool, end: str = "") -> Response:
    """Server-sent events; each is named by its type where the protocol does so."""
    lines = (
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    )
    return Response(body=("".join(lines) + end).encode(), content_type="text/event-stream")


def _whole(body: dict[str, Any]) -> Response:
    return Response(body=json.dumps(body).encode())


def _text(content: Any) -> str:
    """The text of a content: a string, or blocks that have one."""
    if isinstance(content, str):
        return content
    return "\n".join(
        block if isinstance(block, str) else str(block.get("text", ""))
        for block in content or ()
        if isinstance(block, str | dict)
    )


def _read_anthropic(body: Any, target: str) -> ModelRequest:
    items: list[Item] = [Said("system", _text(body.get("system")))]
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                items.append(Said(message["role"], block["text"]))
            elif block["type"] == "tool_use":
                items.append(Called(block["name"], block["input"]))
            elif block["type"] == "tool_result":
                items.append(ToolResult(_text(block.get("content"))))
    tools = tuple(Tool(tool["name"], None, tool.get("input_schema")) for tool in body.get("tools") or ())
    return ModelRequest(tools, tuple(items), bool(body.get("stream")))


def _write_anthropic(reply: Reply, streams: bool) -> Response:
    usage = {"input_tokens": 100, "output_tokens": 20}
    block: dict[str, Any]
    if isinstance(reply, ToolCall):
        start: dict[str, Any] = {"type": "tool_use", "id": _id("toolu"), "name": reply.tool.name, "input": {}}
        block, delta = (
            {**start, "input": dict(reply.arguments)},
            {"type": "input_json_delta", "partial_json": reply.text},
        )
        reason = "tool_use"
    else:
        start = {"type": "text", "text": ""}
        block, delta = {"type": "text", "text": reply}, {"type": "text_delta", "text": reply}
        reason = "end_turn"
    message = {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "stop_sequence": None,
    }
    if not streams:
        return _whole({**message, "content": [block], "stop_reason": reason, "usage": usage})
    begun: dict[str, Any] = {**message, "content": [], "stop_reason": None, "usage": usage}
    return _streamed(
        (
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 20},
            },
            {"type": "message_stop"},
        ),
        named=True,
    )


def _openai_role(role: str) -> Role:
    if role == "assistant":
        return "assistant"
    return "user" if role == "user" else "system"


def _read_responses(body: Any, target: str) -> ModelRequest:
    items: list[Item] = [Said("system", body.get("instructions") or "")]
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind == "message":
            items.append(Said(_openai_role(item["role"]), _text(item["content"])))
        elif kind == "function_call":
            items.append(Called(item["name"], item["arguments"]))
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            items.append(ToolResult(_text(item["output"])))
    return ModelRequest(
        tuple(_responses_tools(body.get("tools") or ())), tuple(items), bool(body.get("stream"))
    )


def _responses_tools(tools: Iterable[Any]) -> Iterator[Tool]:
    for tool in tools:
        if tool["type"] == "namespace":
            for inner in tool["tools"]:
                yield Tool(inner["name"], tool["name"], inner.get("parameters"))
        elif "name" in tool:
            yield Tool(tool["name"], None, tool.get("parameters"))


def _write_responses(reply: Reply, streams: bool) -> Response:
    item: dict[str, Any]
    events: list[dict[str, Any]]
    if isinstance(reply, ToolCall):
        item = {
            "type": "function_call",
            "id": _id("fc"),
            "call_id": _id("call"),
            "name": reply.tool.name,
            "arguments": reply.text,
            "status": "completed",
        }
        if reply.tool.namespace is not None:
            item["namespace"] = reply.tool.namespace
        start = {**item, "arguments": "", "status": "in_progress"}
        place = {"item_id": item["id"], "output_index": 0}
        events = [
            {"type": "response.function_call_arguments.delta", **place, "delta": reply.text},
            {"type": "response.function_call_arguments.done", **place, "arguments": reply.text},
        ]
    else:
        part = {"type": "output_text", "text": reply, "annotations": []}
        item = {
            "type": "message",
            "id": _id("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        start = {**item, "status": "in_progress", "content": []}
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        events = [
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **place, "delta": reply},
            {"type": "response.output_text.done", **place, "text": reply},
            {"type": "response.content_part.done", **place, "part": part},
        ]
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 120,
    }
    response = {
        "id": _id("resp"),
        "object": "response",
        "created_at": 1,
        "model": MODEL,
        "status": "completed",
        "output": [item],
        "usage": usage,
    }
    if not streams:
        return _whole(response)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    every: tuple[dict[str, Any], ...] = (
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": start},
        *events,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    )
    return _streamed(({**event, "sequence_number": number} for number, event in enumerate(every)), named=True)


def _read_chat(body: Any, target: str) -> ModelRequest:
    items: list[Item] = []
    for message in body["messages"]:
        text = _text(message.get("content"))
        items += [
            Called(call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
        items.append(
            ToolResult(text) if message["role"] == "tool" else Said(_openai_role(message["role"]), text)
        )
    tools = tuple(
        Tool(tool["function"]["name"], None, tool["function"].get("parameters"))
        for tool in body.get("tools") or ()
    )
    return ModelRequest(tools, tuple(items), bool(body.get("stream")))


def _write_chat(reply: Reply, streams: bool) -> Response:
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if isinstance(reply, ToolCall):
        called = {"name": reply.tool.name, "arguments": reply.text}
        message["tool_calls"] = [{"index": 0, "id": _id("call"), "type": "function", "function": called}]
    reason = "tool_calls" if isinstance(reply, ToolCall) else "stop"
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    about = {"id": _id("chatcmpl"), "created": 1, "model": MODEL}
    if not streams:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return _whole({**about, "object": "chat.completion", "choices": [choice], "usage": usage})
    about["object"] = "chat.completion.chunk"
    return _streamed(
        (
            {**about, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**about, "choices": [], "usage": usage},
        ),
        named=False,
        end="data: [DONE]\n\n",
    )


def _read_gemini(body: Any, target: str) -> ModelRequest:
    items: list[Item] = [Said("system", _text((body.get("systemInstruction") or {}).get("parts")))]
    for content in body["contents"]:
        role: Role = "assistant" if content.get("role") == "model" else "user"
        for part in content["parts"]:
            if "functionResponse" in part:
                items.append(ToolResult(_gemini_result(part["functionResponse"]["response"])))
            elif "functionCall" in part:
                items.append(Called(part["functionCall"]["name"], part["functionCall"].get("args")))
            elif "text" in part:
                items.append(Said(role, part["text"]))
    tools = tuple(
        Tool(declared["name"], None, declared.get("parametersJsonSchema") or declared.get("parameters"))
        for group in body.get("tools") or ()
        for declared in group.get("functionDeclarations") or ()
    )
    return ModelRequest(tools, tuple(items), "streamGenerateContent" in target)


def _gemini_result(response: Any) -> str:
    output = response.get("output", response.get("error"))
    return output if isinstance(output, str) else json.dumps(response)


def _write_gemini(reply: Reply, streams: bool) -> Response:
    part: dict[str, Any] = {"text": reply}
    if isinstance(reply, ToolCall):
        part = {
            "functionCall": {"id": _id("call"), "name": reply.tool.name, "args": dict(reply.arguments)},
            "thoughtSignature": "c3RhbmQtaW4=",
        }
    body = {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
        "modelVersion": MODEL,
        "responseId": _id("resp"),
    }
    return _streamed((body,), named=False) if streams else _whole(body)
