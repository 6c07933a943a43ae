"""Parses a transcript line by line: detects its format, redacts its text, builds its turns."""

import codecs
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from memd.runtime.profiling import timed_part
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.transcripts import (
    chats,
    claude_code,
    codex,
    copilot,
    gemini,
    lenient_json,
    openclaw,
    opencode,
    plain,
)
from memd.sources.transcripts.format import Event, Format, SessionFacts, TurnAdded, UnparsedLine
from memd.sources.transcripts.read_position import ReadProgress
from memd.sources.transcripts.turn_builder import TurnBuilder

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        each.name: each
        for each in (
            openclaw.FORMAT,
            claude_code.FORMAT,
            codex.FORMAT,
            copilot.FORMAT,
            gemini.FORMAT,
            gemini.QWEN,
            plain.FORMAT,
        )
    }
)

# Of what a database or an export holds; the file says which.
_OF_DATABASES: Mapping[str, Format] = MappingProxyType(
    {each.name: each for each in (openclaw.BRANCH, opencode.FORMAT, chats.CHATGPT, chats.CLAUDE)}
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
    provenance: Any = None
    timestamp: msgspec.Raw = lenient_json.NO_JSON
    cwd: Any = None
    version: Any = None
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    message: msgspec.Raw = lenient_json.NO_JSON
    payload: msgspec.Raw = lenient_json.NO_JSON
    data: msgspec.Raw = lenient_json.NO_JSON
    instructions: msgspec.Raw = lenient_json.NO_JSON
    record_type: Any = msgspec.field(default=None, name="record_type")
    changes: msgspec.Raw = msgspec.field(default=lenient_json.NO_JSON, name="$set")
    rewind_to: Any = msgspec.field(default=None, name="$rewindTo")


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: msgspec.Raw = lenient_json.NO_JSON
    parts: msgspec.Raw = lenient_json.NO_JSON


class _Findings(msgspec.Struct):
    format: Format | None = None


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_message = msgspec.json.Decoder(_Message).decode


def format_of(lines: Sequence[bytes]) -> Format | None:
    """Return the format of a transcript that begins with these complete lines; None: it is not known yet.

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
    return () if findings.format else (UnparsedLine("unknown"),)


_look = lenient_json.never_raising(_find)


def _message(raw: msgspec.Raw) -> _Message | None:
    return _decode_message(raw) if bytes(memoryview(raw)[:1]) == b"{" else None


def _format(record: _Record, message: _Message | None) -> Format | None:
    kind, identity = lenient_json.word(record.type), lenient_json.word(record.id)
    if lenient_json.word(record.project_hash) or record.changes or lenient_json.word(record.rewind_to):
        return gemini.FORMAT
    if kind == "session" and identity:
        return openclaw.FORMAT
    if kind and "." in kind and identity and record.data:
        return copilot.FORMAT
    if _is_of_codex(record, kind, identity):
        return codex.FORMAT
    if lenient_json.word(record.role) in _ROLES and record.content and message is None:
        return plain.FORMAT  # whatever ids it has: no other format has both at its top
    if _has_ids_of_claude_code(record) or kind in _CLAUDE_CODE:
        # Qwen Code has the same ids, and messages as those of Gemini CLI.
        is_qwen = lenient_json.word(record.provenance) or (message is not None and message.parts)
        return gemini.QWEN if is_qwen else claude_code.FORMAT
    if kind == "message" and message is not None and (identity or record.parent_id is not msgspec.UNSET):
        return openclaw.FORMAT
    if kind in {"user", "gemini"} and identity and record.content and record.role is None:
        return gemini.FORMAT
    if kind in {"user", "assistant"} and message is not None and record.role is None:
        return claude_code.FORMAT
    speaker = record if record.role is not None or message is None else message
    return plain.FORMAT if lenient_json.word(speaker.role) in _ROLES and speaker.content else None


def _is_of_codex(record: _Record, kind: str | None, identity: str | None) -> bool:
    if kind is None:  # its first version
        is_told = record.instructions or record.record_type
        return bool(identity and record.timestamp and is_told)
    return kind in _CODEX and bool(record.payload)


def _has_ids_of_claude_code(record: _Record) -> bool:
    if record.uuid is not None or record.leaf_uuid is not None:
        return True
    return lenient_json.word(record.session_id) is not None and lenient_json.word(record.type) is not None


class StaleParserState(Exception):
    """The stored state of a parser is of another version, or its format is unknown."""


class TranscriptParser:
    """Parses the lines of a transcript, and builds its turns."""

    def __init__(
        self,
        after: ReadProgress | None,
        redactor: TurnRedactor | None,
        *,
        known_format: Format | None = None,
    ) -> None:
        """Start at the first line, or continue after an earlier reading.

        After a hidden transcript, only facts about the session are read, which may show that it is visible.

        Args:
            after: The progress of the earlier reading; None: start at the first line.
            redactor: Redacts texts; None: they are not redacted.
            known_format: The format, if the place of the file determines it; None: it is detected by the lines.

        Raises:
            StaleParserState: the format is not known any more, or the state is of another version.
        """
        self.format = known_format
        self.tally = Counter[str]()
        self._state: Any = None if known_format is None else known_format.State()
        self._redactor = redactor
        self._undetected: list[tuple[int, bytes]] = []
        self._undetected_bytes = 0
        self.builder = TurnBuilder()
        if after is not None:
            self.format, self._state = _going_on(after)
            self.builder = TurnBuilder(after.turns, after.last, after.learnt)
            self.tally.update(after.tally)
        self._is_hidden = after is not None and after.hidden

    @property
    def is_undetectable(self) -> bool:
        """Whether so many lines were read that the format counts as unknown."""
        return self.format is None and (
            len(self._undetected) >= LINES_ENOUGH or self._undetected_bytes >= BYTES_ENOUGH
        )

    @property
    def is_empty(self) -> bool:
        """Whether no line with content was read."""
        return self.format is None and not self._undetected

    @property
    def state(self) -> bytes:
        """The encoded state of the parser, for ReadProgress."""
        return b"" if self.format is None else msgspec.msgpack.encode(self._state)

    def parse(self, number: int, line: bytes) -> None:
        """Parse the next line.

        Raises:
            UnresolvedReference: the line refers to something that an earlier reading has read.
        """
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if self.format is not None:
            self._take(number, line)
            return
        if self.is_undetectable:
            return
        # Line by line, so that the answer does not depend on how many lines there are yet.
        self._undetected.append((number, line))
        self._undetected_bytes += len(line)
        found_format = format_of([line])
        if found_format is not None:
            self.format, self._state = found_format, found_format.State()
            lines, self._undetected = self._undetected, []
            for at, untold in lines:
                self._take(at, untold)

    def _take(self, number: int, line: bytes) -> None:
        assert self.format is not None
        for event in self.format.parse(line, self._state):
            if not self._is_hidden or isinstance(event, SessionFacts):
                self.builder.take(number, self._clean(event))

    def _clean(self, event: Event) -> Event:
        """Return the event with its text redacted."""
        match event:
            case TurnAdded():
                return msgspec.structs.replace(event, text=self._redacted(event.text, self.builder.last_text))
            case SessionFacts(cwd=str(cwd)):
                return msgspec.structs.replace(event, cwd=self._redacted(cwd))
            case UnparsedLine():
                self.tally[f"lines.{event.why}"] += 1
                return event
            case _:
                return event

    def _redacted(self, text: str, asked: str = "") -> str:
        if self._redactor is None:
            return text
        with timed_part("redacting"):
            redacted = self._redactor.redact(text, asked)
        for kind, n in redacted.counts.items():
            self.tally[f"redacted.{kind}"] += n
        return redacted.text


def _going_on(after: ReadProgress) -> tuple[Format, Any]:
    known_format = _OF_DATABASES.get(after.format or "") or FORMATS.get(after.format or "")
    if known_format is None:
        raise StaleParserState
    try:
        return known_format, msgspec.msgpack.decode(after.state, type=known_format.State)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StaleParserState from error
