"""Reads opencode's transcripts from its database, in which messages and their parts are changed in place.

A reading reads all messages of a session, and compares a hash of those that were read before: only later ones are parsed and
redacted, unless an earlier one was changed, reverted or deleted.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any

import msgspec

from memd.domain_types import FoundFile, Stamp
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.safe_open import FileMissing
from memd.sources.transcripts import lenient_json
from memd.sources.transcripts.database_file import OpenDatabase, ShortRead
from memd.sources.transcripts.database_sessions import (
    DatabaseKind,
    ListedSession,
    Tables,
    hidden_reading,
    number_of,
    time_ns,
)
from memd.sources.transcripts.open_transcript import Growth
from memd.sources.transcripts.opencode import FORMAT, OpenCodeLine
from memd.sources.transcripts.parser import StaleParserState, TranscriptParser
from memd.sources.transcripts.read_position import MAX_LINE_BYTES, ReadMark, ReadProgress
from memd.sources.transcripts.reader import GrownTranscript, Reading, UnchangedTranscript, WholeTranscript
from memd.sources.transcripts.turn_builder import UnresolvedReference

_WANTED = {
    "session": frozenset({"id", "time_updated"}),
    "message": frozenset({"id", "session_id", "time_created", "data"}),
    "part": frozenset({"id", "message_id", "data"}),
}
_HEADER = 1  # the line of the facts about a session; the first message with text is the next line


class _Revert(msgspec.Struct, rename={"message": "messageID", "part": "partID"}):
    message: str
    part: str | None = None


class _OpenCodeSession(ListedSession, frozen=True, kw_only=True):
    """A session; the size of its stamp is the number of messages, and ctime_ns changes with the session and its last part."""

    directory: str | None
    started_ms: int | None
    revert: _Revert | None  # everything from this message or part on was reverted


class _Row(msgspec.Struct, array_like=True):
    directory: str | None
    parent: str | None
    revert: str | None
    created: int | None
    updated: int
    sequence: int | None  # of the last event


class _Part(msgspec.Struct, array_like=True):
    at_ms: int  # of its message
    message: str
    id: str
    role: str | None
    is_summary: int  # 1: yes
    content: bytes | None  # None: too long


class _Content(msgspec.Struct):
    type: Any = None
    text: Any = None
    synthetic: Any = None
    ignored: Any = None


_decode_content = msgspec.json.Decoder(_Content).decode
_decode_revert = msgspec.json.Decoder(_Revert).decode


_PARTS = f"""
SELECT m.time_created, m.id, p.id,
  CASE WHEN json_valid(m.data) THEN iif(json_type(m.data, '$.role') = 'text', json_extract(m.data, '$.role'), NULL) END,
  CASE WHEN json_valid(m.data) THEN json_type(m.data, '$.summary') IS 'true' ELSE 0 END,
  CASE WHEN octet_length(p.data) <= {MAX_LINE_BYTES} THEN CAST(p.data AS BLOB) END
FROM message AS m CROSS JOIN part AS p ON p.message_id = m.id
WHERE m.session_id = ?1 AND (m.time_created, m.id) >= (?2, ?3) AND (m.time_created, m.id, p.id) > (?2, ?3, ?4)
ORDER BY m.time_created, m.id, p.id
"""


def _ids_after(read: ShortRead, _: Tables, after: str) -> Iterator[tuple[str]]:
    return read.rows("SELECT id FROM session WHERE id > ? AND typeof(id) = 'text' ORDER BY id", after)


def _session_of(read: ShortRead, tables: Tables, identity: str) -> _OpenCodeSession | None:
    def column(name: str) -> str:
        return name if tables.has("session", name) else "NULL"

    sequence = "NULL"
    if tables.has("event_sequence", "aggregate_id", "seq"):
        sequence = "(SELECT seq FROM event_sequence AS e WHERE e.aggregate_id = session.id)"
    row = read.row(
        f"SELECT {column('directory')}, {column('parent_id')}, {column('revert')}, {column('time_created')},"
        f" time_updated, {sequence} FROM session WHERE id = ?",
        identity,
    )
    count = read.row("SELECT count(*) FROM message WHERE session_id = ?", identity)
    last = read.row(
        "SELECT m.id, p.id, p.rowid, octet_length(p.data) FROM message AS m LEFT JOIN part AS p ON p.message_id = m.id"
        " WHERE m.session_id = ? ORDER BY m.time_created DESC, m.id DESC, p.id DESC LIMIT 1",
        identity,
    )
    if row is None or count is None or last is None:
        return None
    try:
        session = msgspec.convert(row, _Row)
        revert = None if session.revert is None else _decode_revert(session.revert)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    is_subagent = session.parent is not None
    return _OpenCodeSession(
        id=identity,
        stamp=Stamp(
            size=count[0],
            mtime_ns=time_ns(session.updated),
            inode=number_of(identity, is_subagent),
            ctime_ns=number_of(session.updated, session.sequence, session.revert, *last),
        ),
        is_subagent=is_subagent,
        directory=session.directory,
        started_ms=session.created,
        revert=revert,
    )


KIND = DatabaseKind(_WANTED, ("event_sequence",), _ids_after, _session_of)


def growth_of(read: ShortRead, identity: str, begin: int, most: int) -> Growth:
    """Return the growth after `begin` messages, counting at most `most` messages."""
    row = read.row(
        "SELECT count(*), coalesce(sum(size), 0) FROM"
        " (SELECT (SELECT sum(octet_length(data)) FROM part WHERE message_id = m.id) AS size FROM message AS m"
        " WHERE session_id = ? ORDER BY time_created, id LIMIT ? OFFSET ?)",
        identity,
        most,
        begin,
    )
    return Growth(0, 0) if row is None else Growth(row[1], row[0])


class _Rewritten(Exception):
    """The part that was read before has changed."""


class OpenCodeReader:
    """Reads one session of an open database."""

    def __init__(
        self, opened: OpenDatabase, found: FoundFile, redactor: TurnRedactor | None, *, subagents: bool
    ) -> None:
        self._opened = opened
        self._found = found
        self._redactor = redactor
        self._subagents = subagents
        with opened.transaction() as read:
            self._tables = KIND.tables_of(read, found.location)

    def read(self, progress: ReadProgress | None) -> Reading:
        """Read a session; see read_entry.

        A change between two transactions also changes the stamp, so the next reading finds it.
        """
        with self._opened.transaction() as read:
            session = _session_of(read, self._tables, self._found.entry)
        if session is None:
            raise FileMissing(self._found.path, "not in the database any more")
        if session.is_subagent and not self._subagents:
            return hidden_reading(session, progress)
        if progress is not None and not progress.hidden and progress.inode == session.stamp.inode:
            try:
                return self._follow(session, progress)
            except (_Rewritten, UnresolvedReference, StaleParserState):
                pass
        return self._follow(session, None)

    def _follow(self, session: _OpenCodeSession, before: ReadProgress | None) -> Reading:
        parser = TranscriptParser(before, self._redactor, known_format=FORMAT)
        known = 0 if before is None else before.lines
        if before is None:
            head = OpenCodeLine(session=session.id, cwd=session.directory, at=session.started_ms)
            parser.parse(_HEADER, msgspec.json.encode(head))
        digest, number, self._too_long = hashlib.sha256(), 0, 0
        for number, line in enumerate(self._lines(session), 1):
            digest.update(b"%d:" % len(line) + line)
            if number > known:
                parser.parse(_HEADER + number, line)
            elif before is not None and number == known and digest.digest() != before.mark.head:
                raise _Rewritten
        if number < known:
            raise _Rewritten
        turns, turns_from = tuple(parser.builder.turns), parser.builder.turns_from
        last = before.last if before is not None and turns_from == before.turns else None
        now = ReadProgress(
            inode=session.stamp.inode,
            mark=ReadMark(number, digest.digest(), digest.digest()),
            format=FORMAT.name,
            state=parser.state,
            offset=session.stamp.size,
            lines=number,
            turns=turns_from + len(turns),
            last=turns[-1] if turns else last,
            learnt=parser.builder.learnt,
            tally=dict(parser.tally + Counter({"lines.too_long": self._too_long})),
        )
        if before is None:
            return WholeTranscript(turns, now, session.stamp)
        if number == known and now.offset == before.offset:
            return UnchangedTranscript(before, session.stamp)
        return GrownTranscript(turns_from, turns, now, session.stamp)

    def _lines(self, session: _OpenCodeSession) -> Iterator[bytes]:
        """Yield a line for each message that has text and was not reverted."""
        back = session.revert
        for (at_ms, message), parts in groupby(self._parts(session), attrgetter("at_ms", "message")):
            if back is not None and back.message == message and back.part is None:
                return
            kept = list(takewhile(lambda part: back is None or part.id != back.part, parts))
            texts = [text for part in kept for text in self._texts(part.content)]
            # A summary repeats earlier messages in a shorter form, for the model.
            if texts and not kept[0].is_summary:
                role = kept[0].role or ""
                yield msgspec.json.encode(OpenCodeLine(id=message, role=role, at=at_ms, texts=texts))
            if back is not None and back.message == message:
                return

    def _parts(self, session: _OpenCodeSession) -> Iterator[_Part]:
        """Yield the parts of all messages, reading some in each transaction."""
        behind = (-1, "", "")
        is_end = False
        while not is_end:
            parts: list[_Part] = []
            is_end = True
            with self._opened.transaction() as read:
                for row in read.rows(_PARTS, session.id, *behind):
                    part = msgspec.convert(row, _Part)
                    parts.append(part)
                    behind = (part.at_ms, part.message, part.id)
                    if read.is_enough(len(part.content or b"")):
                        is_end = False
                        break
            yield from parts

    def _texts(self, content: bytes | None) -> list[str]:
        """Return the text of a part; empty for tools, thoughts, and text that the program inserted."""
        if content is None:
            self._too_long += 1
            return []
        part = _read_content(content) or _read_content(lenient_json.repaired(content))
        if part is None or part.type != "text" or part.synthetic is True or part.ignored is True:
            return []
        text = lenient_json.word(part.text) or ""
        return [text] if text.strip() else []


def _read_content(content: bytes) -> _Content | None:
    try:
        return _decode_content(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
