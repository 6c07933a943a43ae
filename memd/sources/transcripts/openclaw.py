"""Parses transcripts of OpenClaw and of pi: a tree of records in one file; the branch of the last record is the conversation.

OpenClaw's database lists the records of that branch by itself: BRANCH parses those, one after the other.
"""

from typing import Any

import msgspec

from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import (
    Branched,
    Event,
    Format,
    RecordAdded,
    SessionFacts,
    TurnAdded,
    UnparsedLine,
)

_TEXT = frozenset({"text", None})
_SILENT = frozenset(
    {
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "model_change",
        "thinking_level_change",
        "session_info",
        "label",
        "reset",
        "leaf",
    }
)
_GATEWAY = frozenset({"delivery-mirror", "gateway-injected"})
_REPLIES_KEPT = 8
_BESIDE_KEPT = 16


class OpenClawState(msgspec.Struct):
    """The state between two lines."""

    last: str | None = None  # id of the last record of the tree
    is_tree: bool = False  # there was one
    beside: list[str] = []  # ids of those that the gateway has put in since
    replies: list[int] = []  # marks of what the assistant said last


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    id: Any = None
    parent: Any = msgspec.field(default=msgspec.UNSET, name="parentId")
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    cwd: Any = None
    message: msgspec.Raw = lenient_json.NULL


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    model: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_message = msgspec.json.Decoder(_Message).decode


def _read(line: bytes, state: OpenClawState) -> tuple[Event, ...]:
    return _events(line, state, is_tree=True)


def _read_branch(line: bytes, state: OpenClawState) -> tuple[Event, ...]:
    return _events(line, state, is_tree=False)


def _events(line: bytes, state: OpenClawState, *, is_tree: bool) -> tuple[Event, ...]:
    record = _decode_record(line)
    kind = lenient_json.word(record.type)
    if kind == "session":
        learnt = SessionFacts(
            session_id=lenient_json.word(record.id),
            cwd=lenient_json.word(record.cwd),
            started_at=lenient_json.instant(record.timestamp),
        )
        return (learnt,)
    said: Event | None = None if kind in _SILENT else UnparsedLine("unknown")
    is_beside = False
    if kind == "message":
        message = _decode_message(record.message)
        is_beside = lenient_json.word(message.model) in _GATEWAY
        said = _said(record, message, state)
    branched = _grow(record, state, is_beside=is_beside) if is_tree else ()
    identity = lenient_json.word(record.id)
    if identity and not isinstance(said, TurnAdded):
        branched = (*branched, RecordAdded(identity))
    return branched if said is None else (*branched, said)


def _grow(record: _Record, state: OpenClawState, *, is_beside: bool) -> tuple[Event, ...]:
    """Add the record to the tree.

    The gateway inserts what it has delivered while the agent works. The parent of the agent's next record may be that, or the
    agent's own last record: neither is a rewind.
    """
    identity = lenient_json.word(record.id)
    # The first version of the format had no tree, and records that are put in from outside may have no parent: they
    # stand where they stand.
    if identity is None or record.parent is msgspec.UNSET:
        return ()
    parent = lenient_json.word(record.parent)
    if is_beside and state.is_tree:
        state.beside = [*state.beside[1 - _BESIDE_KEPT :], identity]
        return ()
    is_branch = state.is_tree and parent != state.last and parent not in state.beside
    state.last, state.is_tree, state.beside = identity, True, []
    return (Branched(parent),) if is_branch else ()


def _said(record: _Record, message: _Message, state: OpenClawState) -> Event | None:
    role = lenient_json.role(message.role)
    if role is None:
        return None if lenient_json.word(message.role) else UnparsedLine("unknown")
    texts = lenient_json.texts(message.content, _TEXT)
    if texts is None:
        return UnparsedLine("unknown")
    text = boilerplate.joined(boilerplate.openclaw(text, role) for text in texts)
    if not text:
        return None
    if role == "user":
        state.replies = []
    else:
        # What was delivered to a channel is written down once more; it is news only where the reply itself was silent.
        mark = lenient_json.mark(text)
        if message.model == "delivery-mirror" and mark in state.replies:
            return None
        state.replies = [*state.replies[1 - _REPLIES_KEPT :], mark]
    return TurnAdded(
        id=lenient_json.word(record.id) or "",
        role=role,
        at=lenient_json.instant(record.timestamp, message.timestamp),
        text=text,
    )


FORMAT = Format("openclaw", OpenClawState, lenient_json.never_raising(_read))
BRANCH = Format("openclaw-branch", OpenClawState, lenient_json.never_raising(_read_branch))
