"""Parses conversations exported from ChatGPT and Claude: a tree of messages, of which the branch to the current message is read."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from memd.domain_types import Role
from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import Event, Format, SessionFacts, TurnAdded

_ROLES: Mapping[str, Role] = {"user": "user", "human": "user", "assistant": "assistant"}
_TEXT = frozenset({"text"})
_SPOKEN = frozenset({"text", "multimodal_text"})
_TRANSCRIBED = "audio_transcription"
_ANSWERS = frozenset({None, "final"})  # channels of answers; others are thoughts
# A reference to a source, which ChatGPT inserts into texts.
_CITATION = re.compile("\ue200[^\ue201]{0,2000}\ue201|【\\d[^】\n]{0,200}】")


class ChatState(msgspec.Struct):
    """Empty, as each conversation is one line."""


class ExportedChat(msgspec.Struct, frozen=True):
    """The identity of a conversation."""

    id: str
    updated_at: float | None  # unix time
    kind: Format


class _Author(msgspec.Struct, gc=False):
    role: Any = None


class _Content(msgspec.Struct, gc=False):
    content_type: Any = None
    parts: Any = None


class _Metadata(msgspec.Struct, gc=False):
    is_visually_hidden_from_conversation: Any = None


class _ChatGptMessage(msgspec.Struct, gc=False):
    author: _Author | None = None
    create_time: msgspec.Raw = lenient_json.NO_JSON
    content: _Content | None = None
    recipient: Any = None
    channel: Any = None
    metadata: _Metadata | None = None


class _Node(msgspec.Struct, gc=False):
    parent: Any = None
    message: msgspec.Raw = lenient_json.NULL


class _ClaudeMessage(msgspec.Struct, gc=False):
    uuid: Any = None
    parent_message_uuid: Any = None
    sender: Any = None
    created_at: msgspec.Raw = lenient_json.NO_JSON
    text: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON


class _Conversation(msgspec.Struct, gc=False):
    """A conversation of either program."""

    id: Any = None
    conversation_id: Any = None
    create_time: msgspec.Raw = lenient_json.NO_JSON
    update_time: msgspec.Raw = lenient_json.NO_JSON
    current_node: Any = None
    mapping: msgspec.Raw = lenient_json.NO_JSON
    uuid: Any = None
    created_at: msgspec.Raw = lenient_json.NO_JSON
    updated_at: msgspec.Raw = lenient_json.NO_JSON
    current_leaf_message_uuid: Any = None
    chat_messages: msgspec.Raw = lenient_json.NO_JSON


_decode = msgspec.json.Decoder(_Conversation).decode
_decode_mapping = msgspec.json.Decoder(dict[str, _Node]).decode
_decode_chatgpt_message = msgspec.json.Decoder(_ChatGptMessage | None).decode
_decode_claude_messages = msgspec.json.Decoder(list[_ClaudeMessage]).decode


def identify(content: bytes) -> ExportedChat | None:
    """Return the identity of a conversation; None: the object is not a known conversation."""
    try:
        found = _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            found = _decode(lenient_json.repaired(content))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    kind = CHATGPT if found.mapping else CLAUDE if found.chat_messages else None
    identity = _identity(found)
    if kind is None or identity is None:
        return None
    times = (found.update_time, found.updated_at, found.create_time, found.created_at)
    return ExportedChat(identity, lenient_json.instant(*times), kind)


def _identity(found: _Conversation) -> str | None:
    return (
        lenient_json.word(found.conversation_id)
        or lenient_json.word(found.id)
        or lenient_json.word(found.uuid)
    )


def _role(value: Any) -> Role | None:
    return _ROLES.get(lenient_json.word(value) or "")


def _facts(found: _Conversation) -> SessionFacts:
    return SessionFacts(_identity(found), None, lenient_json.instant(found.create_time, found.created_at))


def _read_chatgpt(line: bytes, _: ChatState) -> tuple[Event, ...]:
    found = _decode(line)
    nodes = _decode_mapping(found.mapping)
    events: list[Event] = []
    for identity in _branch(
        {name: lenient_json.word(node.parent) for name, node in nodes.items()},
        lenient_json.word(found.current_node) or next(reversed(nodes), None),
    ):
        message = _decode_chatgpt_message(nodes[identity].message)
        role = None if message is None or message.author is None else _role(message.author.role)
        if message is not None and role is not None and (text := _chatgpt_text(message, role)):
            at = lenient_json.instant(message.create_time)
            events.append(TurnAdded(id=identity, role=role, at=at, text=text))
    return (_facts(found), *events)


def _chatgpt_text(message: _ChatGptMessage, role: Role) -> str:
    """Return the text of a message; "" for tools, thoughts and hidden messages."""
    is_hidden = message.metadata is not None and message.metadata.is_visually_hidden_from_conversation is True
    if is_hidden or message.recipient not in {None, "all"} or message.channel not in _ANSWERS:
        return ""
    content = message.content
    if content is None or content.content_type not in _SPOKEN or not isinstance(content.parts, list):
        return ""
    texts = (_part(part) for part in content.parts)
    cleaned = (_CITATION.sub("", lenient_json.clean(text)) for text in texts)
    return boilerplate.joined(boilerplate.of_any_program(text, role) for text in cleaned)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if (
        isinstance(part, dict)
        and part.get("content_type") == _TRANSCRIBED
        and isinstance(part.get("text"), str)
    ):
        return str(part["text"])
    return ""


def _read_claude(line: bytes, _: ChatState) -> tuple[Event, ...]:
    found = _decode(line)
    messages = _decode_claude_messages(found.chat_messages)
    by_id = {identity: one for one in messages if (identity := lenient_json.word(one.uuid))}
    # In older exports, no message names its parent: all messages are the conversation.
    said = messages
    if any(lenient_json.word(one.parent_message_uuid) in by_id for one in messages):
        leaf = lenient_json.word(found.current_leaf_message_uuid) or next(reversed(by_id), None)
        parents = {identity: lenient_json.word(one.parent_message_uuid) for identity, one in by_id.items()}
        said = [by_id[identity] for identity in _branch(parents, leaf)]
    events: list[Event] = []
    for message in said:
        role = _role(message.sender)
        if role is None:
            continue
        texts = lenient_json.texts(message.content, _TEXT) or [lenient_json.word(message.text) or ""]
        text = boilerplate.joined(boilerplate.of_any_program(text, role) for text in texts)
        if text:
            at = lenient_json.instant(message.created_at)
            events.append(TurnAdded(id=lenient_json.word(message.uuid) or "", role=role, at=at, text=text))
    return (_facts(found), *events)


def _branch(parents: Mapping[str, str | None], leaf: str | None) -> list[str]:
    """Return the ids from the root to a leaf; a cycle ends at its first repeated id."""
    branch: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in branch:
        branch[leaf] = None
        leaf = parents[leaf]
    return list(reversed(branch))


CHATGPT = Format("chatgpt", ChatState, lenient_json.never_raising(_read_chatgpt))
CLAUDE = Format("claude", ChatState, lenient_json.never_raising(_read_claude))
