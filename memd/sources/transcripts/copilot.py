"""Parses transcripts of Copilot CLI: logs of events, among them messages of the user, the agent and its subagents."""

from typing import Any

import msgspec

from memd.domain_types import Role
from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import (
    Event,
    Format,
    RecordAdded,
    Rewound,
    SessionFacts,
    TurnAdded,
    UnparsedLine,
)

_ROLES: dict[str, Role] = {"user.message": "user", "assistant.message": "assistant"}
_THOUGHT = "thinking"


class CopilotState(msgspec.Struct):
    """Empty, as events refer to each other by id."""


class _Record(msgspec.Struct, gc=False, rename="camel"):
    type: Any = None
    id: Any = None
    agent_id: Any = None  # of a subagent
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    data: msgspec.Raw = lenient_json.NULL


class _Context(msgspec.Struct, gc=False):
    cwd: Any = None


class _Data(msgspec.Struct, gc=False, rename="camel"):
    content: Any = None
    source: Any = None  # of a message that nobody typed: from a skill or another agent
    is_autopilot_continuation: Any = None
    parent_tool_call_id: Any = None  # how older versions mark a subagent
    phase: Any = None
    session_id: Any = None
    start_time: msgspec.Raw = lenient_json.NO_JSON
    context: _Context | None = None
    up_to_event_id: Any = None


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_data = msgspec.json.Decoder(_Data | None).decode


def _read(line: bytes, _: CopilotState) -> tuple[Event, ...]:
    record = _decode_record(line)
    kind, identity = lenient_json.word(record.type), lenient_json.word(record.id) or ""
    if kind is None:
        return (UnparsedLine("unknown"),)
    passed: tuple[Event, ...] = (RecordAdded(identity),) if identity else ()
    role = _ROLES.get(kind)
    if role is None and kind not in {"session.start", "session.snapshot_rewind"}:
        return passed
    data = _decode_data(record.data) or _Data()
    if kind == "session.start":
        cwd = None if data.context is None else lenient_json.word(data.context.cwd)
        started = lenient_json.instant(data.start_time, record.timestamp)
        return (SessionFacts(lenient_json.word(data.session_id), cwd, started), *passed)
    if role is None:
        first = lenient_json.word(data.up_to_event_id)
        return (Rewound(first, or_all=False), *passed) if first else (UnparsedLine("unknown"), *passed)
    text = _text(record, data, role)
    if not text:
        return passed
    return (TurnAdded(id=identity, role=role, at=lenient_json.instant(record.timestamp), text=text),)


def _text(record: _Record, data: _Data, role: Role) -> str:
    """Return what the user typed, or what the agent answered; empty for subagents and the program itself."""
    if record.agent_id is not None or data.parent_tool_call_id is not None or data.phase == _THOUGHT:
        return ""
    if data.source not in {None, "user"} or data.is_autopilot_continuation is True:
        return ""
    return boilerplate.of_any_program(lenient_json.word(data.content) or "", role)


FORMAT = Format("copilot", CopilotState, lenient_json.never_raising(_read))
