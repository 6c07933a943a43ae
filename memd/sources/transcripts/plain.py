"""Parses transcripts with a role and a content in each line."""

from typing import Any

import msgspec

from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import Event, Format, TurnAdded, UnparsedLine

_TEXT = frozenset({"text", "input_text", "output_text", None})


class PlainState(msgspec.Struct):
    """Empty: each line is complete."""


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    ts: msgspec.Raw = lenient_json.NO_JSON
    time: msgspec.Raw = lenient_json.NO_JSON
    created_at: msgspec.Raw = lenient_json.NO_JSON


class _Record(_Message, gc=False):
    message: msgspec.Raw = lenient_json.NO_JSON


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_message = msgspec.json.Decoder(_Message).decode


def _read(line: bytes, state: PlainState) -> tuple[Event, ...]:  # noqa: ARG001 - each line says all
    record = _decode_record(line)
    message = _decode_message(record.message) if record.role is None and record.message else record
    role = lenient_json.role(message.role)
    if role is None:
        return () if lenient_json.word(message.role) else (UnparsedLine("unknown"),)
    texts = lenient_json.texts(message.content, _TEXT)
    if texts is None:
        return (UnparsedLine("unknown"),)
    text = boilerplate.joined(boilerplate.plain(text, role) for text in texts)
    if not text:
        return ()
    at = lenient_json.instant(
        *(part for of in (record, message) for part in (of.timestamp, of.ts, of.time, of.created_at))
    )
    # An "id" may as well be the conversation's or the speaker's: nothing hangs on it.
    return (TurnAdded(id="", role=role, at=at, text=text),)


FORMAT = Format("plain", PlainState, lenient_json.never_raising(_read))
