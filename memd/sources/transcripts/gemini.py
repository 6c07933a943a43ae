"""Parses transcripts of Gemini CLI and of Qwen Code, whose messages are alike.

Gemini CLI writes a log of operations on a list of messages, Qwen Code a tree of records: each one names the one before it.
"""

import re
from typing import Any

import msgspec

from memd.domain_types import Role
from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import (
    Branched,
    Cleared,
    Event,
    Format,
    RecordAdded,
    Rewound,
    SessionFacts,
    TurnAdded,
    UnparsedLine,
)

_TEXT = frozenset({None})
_ROLES: dict[Any, Role] = {"user": "user", "gemini": "assistant"}
_HOOK = re.compile(r"\s*<hook_context>(?:(?!</?hook_context>).)*</hook_context>\s*", re.DOTALL)
_NO_SPEECH = frozenset({"info", "error", "warning"})


class GeminiState(msgspec.Struct):
    """The state between two lines."""

    began: bool = False  # the facts about the session were read
    seen: set[int] = set()  # marks of the ids of turns


class _Message(msgspec.Struct, gc=False, rename="camel"):
    id: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    type: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    display_content: msgspec.Raw = lenient_json.NO_JSON


class _Record(_Message, gc=False, rename="camel"):
    session_id: Any = None
    project_hash: Any = None
    start_time: msgspec.Raw = lenient_json.NO_JSON
    kind: Any = None
    messages: msgspec.Raw = lenient_json.NO_JSON
    changes: msgspec.Raw = msgspec.field(default=lenient_json.NO_JSON, name="$set")
    rewind_to: Any = msgspec.field(default=None, name="$rewindTo")


class _Changes(msgspec.Struct, gc=False):
    messages: msgspec.Raw = lenient_json.NO_JSON


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_message = msgspec.json.Decoder(_Message).decode
_decode_changes = msgspec.json.Decoder(_Changes).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _read(line: bytes, state: GeminiState) -> tuple[Event, ...]:
    record = _decode_record(line)
    if record.rewind_to is not None:
        identity = lenient_json.word(record.rewind_to)
        return (Rewound(identity),) if identity else (UnparsedLine("unknown"),)
    if record.changes:
        return _replaced(_decode_changes(record.changes).messages, state)
    if lenient_json.word(record.session_id) is not None and record.type is None:
        events = _replaced(record.messages, state)  # the oldest transcripts are this one object
        return (*_began(record, state), *events)
    return _message(record, state)


def _began(record: _Record, state: GeminiState) -> tuple[Event, ...]:
    if state.began:
        return ()
    state.began = True
    learnt = SessionFacts(
        session_id=lenient_json.word(record.session_id),
        started_at=lenient_json.instant(record.start_time),
        subagent=True if record.kind == "subagent" else None,
    )
    return (learnt,)


def _replaced(raw: msgspec.Raw, state: GeminiState) -> tuple[Event, ...]:
    """Replace all messages by those of the record."""
    messages = [_decode_message(message) for message in _decode_list(raw)] if raw else []
    if not messages:
        return ()
    after = GeminiState(began=state.began)
    events = [event for message in messages for event in _message(message, after)]
    state.seen = after.seen
    return (Cleared(), *events)


def _message(message: _Message, state: GeminiState) -> tuple[Event, ...]:
    identity = lenient_json.word(message.id) or ""
    mark = lenient_json.mark(identity)
    is_known = mark in state.seen
    kind = lenient_json.word(message.type)
    role = _ROLES.get(kind)
    # A turn does not change if its message is repeated without text.
    passed: tuple[Event, ...] = (RecordAdded(identity),) if identity and not is_known else ()
    if role is None:
        return passed if kind in _NO_SPEECH else (*passed, UnparsedLine("unknown"))
    # The displayed content lacks files that were inserted into the prompt.
    texts = lenient_json.texts(message.display_content, _TEXT) or lenient_json.texts(message.content, _TEXT)
    if texts is None:
        return (*passed, UnparsedLine("unknown"))
    # A hook adds a part of its own, without a line end before it.
    text = boilerplate.of_any_program("".join(one for one in texts if not _HOOK.fullmatch(one)), role)
    if not text:
        return passed
    if identity:
        state.seen.add(mark)
    return (
        TurnAdded(
            id=identity, role=role, at=lenient_json.instant(message.timestamp), text=text, again=is_known
        ),
    )


FORMAT = Format("gemini", GeminiState, lenient_json.never_raising(_read))


class QwenState(msgspec.Struct):
    """The state between two lines."""

    began: bool = False  # the facts about the session were read
    last: str | None = None  # id of the last record
    seen: set[int] = set()  # marks of the ids of records


class _QwenRecord(msgspec.Struct, gc=False, rename="camel"):
    uuid: Any = None
    parent_uuid: Any = msgspec.UNSET
    session_id: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    type: Any = None
    provenance: Any = None
    cwd: Any = None
    message: msgspec.Raw = lenient_json.NULL


class _Part(msgspec.Struct, gc=False):
    text: Any = None
    thought: Any = None


class _QwenMessage(msgspec.Struct, gc=False):
    parts: list[_Part] = []


_decode_qwen = msgspec.json.Decoder(_QwenRecord).decode
_decode_qwen_message = msgspec.json.Decoder(_QwenMessage | None).decode
_QWEN_SAYS = frozenset({None, "real_user", "assistant_output"})


def _read_qwen(line: bytes, state: QwenState) -> tuple[Event, ...]:
    record = _decode_qwen(line)
    identity = lenient_json.word(record.uuid) or ""
    if identity:
        if lenient_json.mark(identity) in state.seen:  # a session that is resumed may repeat records
            return ()
        state.seen.add(lenient_json.mark(identity))
    kind = lenient_json.word(record.type)
    events: tuple[Event, ...] = () if kind else (UnparsedLine("unknown"),)
    if not state.began and (session := lenient_json.word(record.session_id)) is not None:
        state.began = True
        started, cwd = lenient_json.instant(record.timestamp), lenient_json.word(record.cwd)
        events = (*events, SessionFacts(session_id=session, cwd=cwd, started_at=started))
    parent = None if record.parent_uuid is msgspec.UNSET else lenient_json.word(record.parent_uuid)
    if identity and record.parent_uuid is not msgspec.UNSET:
        if state.last is not None and parent != state.last:
            events = (*events, Branched(parent))
        state.last = identity
    role = lenient_json.role(kind)
    text = ""
    if role is not None and lenient_json.word(record.provenance) in _QWEN_SAYS:
        message = _decode_qwen_message(record.message)
        said = [] if message is None else [part.text for part in message.parts if part.thought is not True]
        texts = (lenient_json.clean(one) for one in said if isinstance(one, str))
        text = boilerplate.joined(boilerplate.of_any_program(one, role) for one in texts)
    if text and role is not None:
        at = lenient_json.instant(record.timestamp)
        return (*events, TurnAdded(id=identity, role=role, at=at, text=text))
    return (*events, RecordAdded(identity)) if identity else events


QWEN = Format("qwen", QwenState, lenient_json.never_raising(_read_qwen))
