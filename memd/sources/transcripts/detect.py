"""Detects the format of a transcript by its lines."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from memd.sources.transcripts import claude_code, codex, gemini, lenient_json, openclaw, plain
from memd.sources.transcripts.format import Event, Format, Unread

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        each.name: each
        for each in (openclaw.FORMAT, claude_code.FORMAT, codex.FORMAT, gemini.FORMAT, plain.FORMAT)
    }
)

# So much of the beginning of a file is enough to tell its format, or it is none.
LINES_ENOUGH = 50
BYTES_ENOUGH = 64 << 10

_CODEX = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_CLAUDE_CODE = frozenset(
    {"file-history-snapshot", "queue-operation", "ai-title", "custom-title", "last-prompt"}
)
_ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})


class _Record(msgspec.Struct, gc=False, rename="camel"):
    type: Any = None
    id: Any = None
    uuid: Any = None
    leaf_uuid: Any = None
    parent_id: Any = msgspec.UNSET
    session_id: Any = None
    project_hash: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    cwd: Any = None
    version: Any = None
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    message: msgspec.Raw = lenient_json.NO_JSON
    payload: msgspec.Raw = lenient_json.NO_JSON
    instructions: msgspec.Raw = lenient_json.NO_JSON
    record_type: Any = msgspec.field(default=None, name="record_type")
    changes: msgspec.Raw = msgspec.field(default=lenient_json.NO_JSON, name="$set")
    rewind_to: Any = msgspec.field(default=None, name="$rewindTo")


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON


class _Findings(msgspec.Struct):
    format: Format | None = None


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_message = msgspec.json.Decoder(_Message).decode


def format_of(lines: Sequence[bytes]) -> Format | None:
    """The format of a transcript that begins with these lines, each complete.

    The first line that only one format has decides; lines that are blank, broken or unknown are passed over.

    Returns:
        None if no line decides. If LINES_ENOUGH lines, or BYTES_ENOUGH bytes of lines, do not decide, no line will.
    """
    findings = _Findings()
    for line in lines:
        _look(line, findings)
        if findings.format is not None:
            return findings.format
    return None


def _find(line: bytes, findings: _Findings) -> tuple[Event, ...]:
    record = _decode_record(line)
    message = _message(record.message)
    findings.format = _format(record, message)
    return () if findings.format else (Unread("unknown"),)


_look = lenient_json.never_raising(_find)


def _message(raw: msgspec.Raw) -> _Message | None:
    return _decode_message(raw) if bytes(memoryview(raw)[:1]) == b"{" else None


def _format(record: _Record, message: _Message | None) -> Format | None:
    kind, identity = lenient_json.word(record.type), lenient_json.word(record.id)
    if lenient_json.word(record.project_hash) or record.changes or lenient_json.word(record.rewind_to):
        return gemini.FORMAT
    if kind == "session" and identity:
        return openclaw.FORMAT
    if kind in _CODEX and record.payload:
        return codex.FORMAT
    if kind is None and identity and record.timestamp and (record.instructions or record.record_type):
        return codex.FORMAT
    if lenient_json.word(record.role) in _ROLES and record.content and message is None:
        return plain.FORMAT  # whatever ids it has: no other format has both at its top
    if _has_ids_of_claude_code(record) or kind in _CLAUDE_CODE:
        return claude_code.FORMAT
    if kind == "message" and message is not None and (identity or record.parent_id is not msgspec.UNSET):
        return openclaw.FORMAT
    if kind in {"user", "gemini"} and identity and record.content and record.role is None:
        return gemini.FORMAT
    if kind in {"user", "assistant"} and message is not None and record.role is None:
        return claude_code.FORMAT
    speaker = record if record.role is not None or message is None else message
    return plain.FORMAT if lenient_json.word(speaker.role) in _ROLES and speaker.content else None


def _has_ids_of_claude_code(record: _Record) -> bool:
    if record.uuid is not None or record.leaf_uuid is not None:
        return True
    return lenient_json.word(record.session_id) is not None and lenient_json.word(record.type) is not None
