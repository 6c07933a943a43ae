"""The format of a transcript is told by its content."""

import json
from typing import Any

import pytest

from memd.sources.transcripts.parser import (
    BYTES_ENOUGH,
    FORMATS,
    LINES_ENOUGH,
    TranscriptParser,
    format_of,
)
from tests.table import table

HI = {"role": "user", "content": "hi"}
LINES = [
    ({"type": "session", "version": 3, "id": "s", "cwd": "/ws"}, "openclaw"),
    ({"type": "session", "id": "s"}, "openclaw"),
    ({"type": "message", "id": "a", "parentId": None, "message": HI}, "openclaw"),
    ({"type": "message", "parentId": None, "message": HI}, "openclaw"),
    ({"type": "user", "uuid": "u", "sessionId": "s", "message": HI}, "claude-code"),
    ({"type": "user", "message": HI}, "claude-code"),
    ({"type": "summary", "summary": "x", "leafUuid": "u"}, "claude-code"),
    ({"type": "mode", "mode": "default", "sessionId": "s"}, "claude-code"),
    ({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, "claude-code"),
    ({"timestamp": "x", "type": "session_meta", "payload": {"id": "s"}}, "codex"),
    ({"timestamp": "x", "type": "event_msg", "payload": {"type": "token_count"}}, "codex"),
    ({"id": "s", "timestamp": "2025-06-01T00:00:00Z", "instructions": None}, "codex"),
    ({"sessionId": "s", "projectHash": "9f", "kind": "main"}, "gemini"),
    ({"uuid": "u", "sessionId": "s", "type": "user", "provenance": "real_user"}, "qwen"),
    ({"uuid": "u", "sessionId": "s", "type": "user", "message": {"role": "user", "parts": []}}, "qwen"),
    ({"type": "session.start", "id": "e", "parentId": None, "data": {"sessionId": "s"}}, "copilot"),
    ({"type": "user.message", "id": "e", "parentId": "d", "data": {"content": "hi"}}, "copilot"),
    ({"$set": {"lastUpdated": "x"}}, "gemini"),
    ({"$rewindTo": "m"}, "gemini"),
    ({"id": "m", "type": "user", "content": [{"text": "hi"}]}, "gemini"),
    ({"id": "m", "type": "gemini", "content": ""}, "gemini"),
    (HI, "plain"),
    ({"role": "system", "content": "be brief", "id": "x"}, "plain"),
    ({"message": HI}, "plain"),
    (HI | {"uuid": "1"}, "plain"),
    (HI | {"uuid": "1", "parentUuid": None, "sessionId": "s"}, "plain"),
    (HI | {"sessionId": "s", "type": "message"}, "plain"),
    (HI | {"sessionId": "s", "type": "user"}, "plain"),
    ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}, "plain"),
    ({}, None),
    ({"type": "session"}, None),
    ({"type": "user"}, None),
    ({"role": "user"}, None),
    ({"role": "admin", "content": "x"}, None),
    ({"type": "session_meta"}, None),
    ({"level": "info", "event": "started", "timestamp": "x"}, None),
    ({"type": {}, "id": [], "role": {}, "message": 5, "sessionId": {}}, None),
    (5, None),
    ([HI], None),
]


@table(("record", "name"), LINES)
def test_one_line(record: Any, name: str | None) -> None:
    """One line tells, or does not."""
    found = format_of([json.dumps(record).encode()])
    assert (found and found.name) == name


@table(("record", "name"), [each for each in LINES if each[1]])
def test_what_tells_nothing_is_passed_over(record: Any, name: str) -> None:
    """Blank, broken, foreign and unknown lines before the first that tells change nothing, nor do those after it."""
    before = [
        b"",
        b"\n",
        b"{cut sho",
        b"\0\0\0",
        b"5",
        b'{"a":"\\ud800"}',
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"a":1}',
    ]
    after = [b'{"role":"user","content":"hi"}', b'{"$rewindTo":"m"}']
    found = format_of([*before, b"\0" + json.dumps(record).encode() + b"\r\n", *after])
    assert found is FORMATS[name]


def test_nothing_tells_nothing() -> None:
    """A file without lines has no format."""
    assert format_of([]) is None


def test_formats_are_known_by_their_names() -> None:
    """Each format is found under the name it has."""
    assert all(each.name == name for name, each in FORMATS.items())
    assert set(FORMATS) == {"openclaw", "claude-code", "codex", "copilot", "gemini", "qwen", "plain"}


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        ([b"{}"] * (LINES_ENOUGH - 1), True),
        ([b"{}"] * LINES_ENOUGH, False),
        ([b"5" * (BYTES_ENOUGH - 1)], True),
        ([b"5" * BYTES_ENOUGH], False),
        ([b"5" * (BYTES_ENOUGH // 2)] * 2, False),
    ],
)
def test_after_so_many_lines_or_bytes_the_format_is_not_looked_for_any_more(
    lines: list[bytes], is_known: bool
) -> None:
    """What is no transcript is not read to its end; no line decides later."""
    assert (LINES_ENOUGH, BYTES_ENOUGH) == (50, 65_536)
    parser = TranscriptParser(None, None)
    assert parser.is_empty
    for number, line in enumerate([*lines, json.dumps(HI).encode()], 1):
        assert parser.is_undetectable == (not is_known and number == len(lines) + 1)
        parser.parse(number, line)
    assert [turn.text for turn in parser.builder.turns] == ["hi"] * is_known
    assert parser.is_undetectable == (not is_known)
    assert not parser.is_empty
