"""Parses transcripts of Claude Code, which have a line for each block of a message."""

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
    SessionFacts,
    TurnAdded,
    UnparsedLine,
)

_TEXT = frozenset({"text"})
_NO_SPEECH = frozenset(
    {
        "agent-name",
        "agent-setting",
        "ai-title",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "system",
        "tag",
        "worktree-state",
    }
)


_QUEUED_KEPT = 16
_RECENT_KEPT = 512  # remembered lines since a prompt, at least; the next prompt follows one of them


class ClaudeCodeState(msgspec.Struct):
    """The state between two lines."""

    session: bool = False  # its id is known
    cwd: bool = False  # the working directory is known
    started: bool = False  # the start time is known
    sidechain: bool | None = None  # the file is the transcript of a subagent; None: no message yet
    message: str | None = None  # id of the message of the last turn, if it is the assistant's
    turn: str = ""  # id of that turn
    seen: set[int] = set()  # hashes of the ids of lines and messages that became turns
    recent: list[int] = []  # hashes of the ids of the last prompt and of the lines since
    queued: list[int] = []  # hashes of the last texts that were typed while the agent worked


class _Record(msgspec.Struct, gc=False, rename="camel"):
    type: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    session_id: Any = None
    cwd: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    is_meta: Any = None
    is_compact_summary: Any = None
    is_visible_in_transcript_only: Any = None
    is_sidechain: Any = None
    message: msgspec.Raw = lenient_json.NULL
    attachment: msgspec.Raw = lenient_json.NULL


class _Attachment(msgspec.Struct, gc=False, rename="camel"):
    type: Any = None
    command_mode: Any = None
    origin: Any = None
    prompt: msgspec.Raw = lenient_json.NO_JSON


class _Message(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_message = msgspec.json.Decoder(_Message).decode
_decode_attachment = msgspec.json.Decoder(_Attachment | None).decode


def _read(line: bytes, state: ClaudeCodeState) -> tuple[Event, ...]:
    record = _decode_record(line)
    events = _spoken(record, state)
    identity = lenient_json.word(record.uuid)
    if identity is None or record.is_sidechain is True:
        return events
    # A later line may follow this one, whether it is a message or not.
    state.recent.append(lenient_json.mark(identity))
    if len(state.recent) > 2 * _RECENT_KEPT:
        del state.recent[:_RECENT_KEPT]
    is_turn = any(isinstance(event, TurnAdded) and event.id == identity for event in events)
    return events if is_turn else (*events, RecordAdded(identity))


def _spoken(record: _Record, state: ClaudeCodeState) -> tuple[Event, ...]:
    role = lenient_json.role(record.type)
    if role is None:
        events = _learnt(record, state)
        if record.type == "attachment":
            return (*events, *_typed_ahead(record, state))
        return events if lenient_json.word(record.type) in _NO_SPEECH else (*events, UnparsedLine("unknown"))
    message = _decode_message(record.message)
    texts = lenient_json.texts(message.content, _TEXT)
    events = _learnt(record, state)
    if (
        record.is_meta is True
        or record.is_compact_summary is True
        or record.is_visible_in_transcript_only is True
    ):
        return events
    events += _sidechain(record.is_sidechain is True, state)
    if record.is_sidechain is True and not state.sidechain:
        return events
    if texts is None:
        return (*events, UnparsedLine("unknown"))
    # A substitute for a reply, such as the notice of a failed request, is nobody's message.
    if message.model == "<synthetic>":
        return events
    text = boilerplate.joined(boilerplate.claude_code(text, role) for text in texts)
    if role == "user" and (mark := lenient_json.mark(text)) in state.queued:
        state.queued = [other for other in state.queued if other != mark]
        return events  # it was typed ahead, and is sent now
    return (*events, *_said(role, record, message, text, state)) if text else events


def _typed_ahead(record: _Record, state: ClaudeCodeState) -> tuple[Event, ...]:
    """Return the turn of a text that a user typed while the agent worked; most of these are in no other line."""
    attachment = _decode_attachment(record.attachment)
    if attachment is None or (attachment.type, attachment.command_mode) != ("queued_command", "prompt"):
        return ()
    origin = attachment.origin.get("kind") if isinstance(attachment.origin, dict) else None
    if origin not in {None, "human"} or record.is_meta is True or record.is_sidechain is True:
        return ()
    texts = lenient_json.texts(attachment.prompt, _TEXT)
    if texts is None:
        return (UnparsedLine("unknown"),)
    text = boilerplate.joined(boilerplate.claude_code(text, "user") for text in texts)
    if not text:
        return ()
    said = _said("user", record, _Message(), text, state)
    if said:
        state.queued = [*state.queued[1 - _QUEUED_KEPT :], lenient_json.mark(text)]
    return said


def _said(
    role: Role, record: _Record, message: _Message, text: str, state: ClaudeCodeState
) -> tuple[Event, ...]:
    uuid = lenient_json.word(record.uuid)
    if uuid and not _is_new(uuid, state):  # a resumed session may repeat lines
        return ()
    at = lenient_json.instant(record.timestamp)
    identity = lenient_json.word(message.id) if role == "assistant" else None
    if identity is not None and identity == state.message:
        return (TurnAdded(id=state.turn, role=role, at=at, text=text, joins=True),)
    state.message = identity
    # A message that continues after another speaker is a new turn.
    state.turn = identity if identity and _is_new(identity, state) else uuid or ""
    said = TurnAdded(id=state.turn, role=role, at=at, text=text)
    return (*_branched(record, state), said) if role == "user" else (said,)


def _branched(record: _Record, state: ClaudeCodeState) -> tuple[Event, ...]:
    """Return whether a prompt rewinds the conversation to its parent line.

    Other lines branch, too, when tools run in parallel, and the parent of a prompt may be any line since the
    previous prompt. A prompt whose parent is earlier removes the previous prompt and everything after it.
    """
    parent = lenient_json.word(record.parent_uuid)
    is_back = parent is not None and bool(state.recent) and lenient_json.mark(parent) not in state.recent
    state.recent = []
    return (Branched(parent),) if is_back else ()


def _is_new(identity: str, state: ClaudeCodeState) -> bool:
    mark = lenient_json.mark(identity)
    if mark in state.seen:
        return False
    state.seen.add(mark)
    return True


def _learnt(record: _Record, state: ClaudeCodeState) -> tuple[Event, ...]:
    """Return what the line says about the session, if no earlier line said it."""
    if state.session and state.cwd and state.started:
        return ()
    session = None if state.session else lenient_json.word(record.session_id)
    cwd = None if state.cwd else lenient_json.word(record.cwd)
    started = None if state.started else lenient_json.instant(record.timestamp)
    state.session |= session is not None
    state.cwd |= cwd is not None
    state.started |= started is not None
    if session is None and cwd is None and started is None:
        return ()
    return (SessionFacts(session_id=session, cwd=cwd, started_at=started),)


def _sidechain(is_sidechain: bool, state: ClaudeCodeState) -> tuple[Event, ...]:
    """Return whether the file is a subagent's: only such a file begins with a sidechain."""
    was, state.sidechain = state.sidechain, is_sidechain and state.sidechain is not False
    if state.sidechain and not was:
        return (SessionFacts(subagent=True),)
    if was and not state.sidechain:
        state.message, state.turn, state.seen = None, "", set()
        return (Cleared(), SessionFacts(subagent=False))
    return ()


FORMAT = Format("claude-code", ClaudeCodeState, lenient_json.never_raising(_read))
