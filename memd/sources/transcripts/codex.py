"""Parses transcripts of Codex: two interleaved logs, of what the model received and of what was shown."""

from typing import Any

import msgspec

from memd.domain_types import Role
from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import Dropped, Event, Format, SessionFacts, TurnAdded, UnparsedLine

_TEXT = frozenset({"text", "input_text", "output_text"})
_NO_SPEECH = frozenset(
    {
        "turn_context",
        "compacted",
        "world_state",
        "ghost_snapshot",
        "inter_agent_communication",
        "token_usage_record",
    }
)
_SHOWN: dict[Any, Role] = {"user_message": "user", "agent_message": "assistant"}
_MOST_SHOWN = 16


class CodexState(msgspec.Struct):
    """The state between two lines.

    The two logs contain the same turns. Turns come from what the model received, and while that has none of a role, from what was
    shown. The two copies of a turn come in any order, so a turn is remembered until its second copy comes.
    """

    began: bool = False  # the session was told
    sent: set[str] = set()  # the roles that were found in what the model was sent
    shown: list[tuple[str, int]] = []  # role and mark of turns taken from what was shown


class _Payload(msgspec.Struct, gc=False):
    type: Any = None
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    message: Any = None
    num_turns: Any = None


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    payload: msgspec.Raw = lenient_json.NULL
    # The oldest transcripts have no envelope.
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    id: Any = None
    instructions: msgspec.Raw = lenient_json.NO_JSON
    record_type: Any = None


class _Meta(msgspec.Struct, gc=False):
    id: Any = None
    session_id: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    cwd: Any = None
    source: Any = None
    thread_source: Any = None
    parent_thread_id: Any = None


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_payload = msgspec.json.Decoder(_Payload).decode
_decode_meta = msgspec.json.Decoder(_Meta).decode
_BARE = frozenset(
    {
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
    }
)


def _read(line: bytes, state: CodexState) -> tuple[Event, ...]:
    record = _decode_record(line)
    match lenient_json.word(record.type):
        case "response_item":
            payload = _decode_payload(record.payload)
            return _sent(payload, record, state) if payload.type == "message" else ()
        case "event_msg":
            return _event(_decode_payload(record.payload), record, state)
        case "session_meta":
            return _began(_decode_meta(record.payload), record, state)
        case "message":
            return _sent(_Payload(role=record.role, content=record.content), record, state)
        case None if record.instructions or record.record_type is not None:
            return _began(_Meta(id=record.id), record, state)
        case kind:
            return () if kind in _NO_SPEECH or kind in _BARE else (UnparsedLine("unknown"),)


def _sent(payload: _Payload, record: _Record, state: CodexState) -> tuple[Event, ...]:
    role = lenient_json.role(payload.role)
    if role is None:
        return () if lenient_json.word(payload.role) else (UnparsedLine("unknown"),)
    texts = lenient_json.texts(payload.content, _TEXT)
    if texts is None:
        return (UnparsedLine("unknown"),)
    text = boilerplate.joined(boilerplate.codex(text, role) for text in texts)
    if not text:
        return ()
    if _was_shown(role, text, state):
        return ()
    return (TurnAdded(id="", role=role, at=lenient_json.instant(record.timestamp), text=text),)


def _was_shown(role: Role, text: str, state: CodexState) -> bool:
    """Whether the twin of this turn was taken already. From now on no other of its role will be."""
    is_first = role not in state.sent
    state.sent.add(role)
    if not state.shown:
        return False
    pair = (role, lenient_json.mark(text))
    twin = state.shown.index(pair) if pair in state.shown else None
    is_twin = twin is not None or (is_first and state.shown[-1][0] == role)
    # What was shown before the twin has none: it is from a time when only this was written down.
    after = len(state.shown) if twin is None else twin + 1
    state.shown = [other for place, other in enumerate(state.shown) if other[0] != role or place >= after]
    return is_twin


def _event(payload: _Payload, record: _Record, state: CodexState) -> tuple[Event, ...]:
    if payload.type == "thread_rolled_back":
        turns = payload.num_turns
        if isinstance(turns, bool) or not isinstance(turns, int):
            return (UnparsedLine("unknown"),)
        return (Dropped(turns),) if turns > 0 else ()
    role = _SHOWN.get(lenient_json.word(payload.type))
    if role is None or role in state.sent:
        return ()
    if not isinstance(payload.message, str):
        return (UnparsedLine("unknown"),)
    text = boilerplate.codex(lenient_json.clean(payload.message), role)
    if not text:
        return ()
    state.shown = [*state.shown[1 - _MOST_SHOWN :], (role, lenient_json.mark(text))]
    return (TurnAdded(id="", role=role, at=lenient_json.instant(record.timestamp), text=text),)


def _began(meta: _Meta, record: _Record, state: CodexState) -> tuple[Event, ...]:
    if state.began:  # a fork repeats those of the threads it comes from
        return ()
    state.began = True
    is_subagent = (
        (isinstance(meta.source, dict) and meta.source.get("subagent") is not None)
        or meta.thread_source == "subagent"
        or lenient_json.word(meta.parent_thread_id) is not None
    )
    learnt = SessionFacts(
        session_id=lenient_json.word(meta.id) or lenient_json.word(meta.session_id),
        cwd=lenient_json.word(meta.cwd),
        started_at=lenient_json.instant(meta.timestamp, record.timestamp),
        subagent=is_subagent or None,
    )
    return (learnt,)


FORMAT = Format("codex", CodexState, lenient_json.never_raising(_read))
