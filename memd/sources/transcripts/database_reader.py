"""Reads new events of a transcript in a database, by the rules for transcripts in files."""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from memd.domain_types import FoundFile, Turn
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.safe_open import FileHeld, FileMissing
from memd.sources.transcripts import exports, openclaw, opencode_database
from memd.sources.transcripts.database_file import READ_BYTES, OpenDatabase, look_into
from memd.sources.transcripts.database_sessions import (
    DatabaseKind,
    SessionListing,
    Tables,
    hidden_reading,
    mark_sides,
)
from memd.sources.transcripts.format import SessionFacts
from memd.sources.transcripts.open_transcript import Growth, unpacked_stream
from memd.sources.transcripts.openclaw_database import (
    KIND,
    DatabaseSession,
    Event,
    archive_piece,
    came_since,
    events_from,
    header_of,
    seq_at,
    session_of,
)
from memd.sources.transcripts.opencode_database import OpenCodeReader
from memd.sources.transcripts.parser import StaleParserState, TranscriptParser
from memd.sources.transcripts.read_position import LineSplitter, ReadMark, ReadProgress
from memd.sources.transcripts.reader import (
    GrownTranscript,
    Reading,
    UnchangedTranscript,
    WholeTranscript,
    parse_all,
)
from memd.sources.transcripts.turn_builder import UnresolvedReference
from memd.text.memory_paths import Parts, Root, SessionPaths, admits, parts_below, session_name
from memd.text.transcript_files import Layout, is_database

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER = 1  # the line of the header; the first event of a branch has the next one
TRIES = 5  # attempts, if the session is rewritten during each
MOST_COUNTED = 1000  # new events; more make no difference for any schedule
_ZSTD = b"\x28\xb5\x2f\xfd"  # magic number of a frame


class _Rewritten(Exception):
    """The session was rewritten, or another branch is the current one now."""


class _Cursor(msgspec.Struct):
    """The position to read from."""

    position: int = 0
    seq: int = 0  # 1 + the seq of the previous event


_KINDS: Mapping[Layout, DatabaseKind] = MappingProxyType(
    {"openclaw": KIND, "opencode": opencode_database.KIND}
)


def list_sessions(root: SessionPaths, parts: Parts) -> SessionListing:
    """Return the sessions of a database or export below a root.

    Raises:
        SourceError: it cannot be read.
        ProcessExhausted: the process has no free descriptors.
    """
    if root.layout == "plain":
        return exports.list_conversations(root, parts)
    return _KINDS[root.layout].list_sessions(root.directory, parts)


def read_entry(
    found: FoundFile,
    roots: Sequence[Root],
    progress: ReadProgress | None,
    *,
    redactor: TurnRedactor | None,
    subagents: bool,
) -> Reading:
    """Read a session from its last position, or from its beginning. Arguments and result are those of read_transcript.

    Raises:
        SourceError: it cannot be read; what is indexed of it stays valid.
        ProcessExhausted: no more descriptors.
    """
    root, parts = _place(found, roots)
    if root.layout == "plain":
        return exports.read_conversation(found, root, parts, progress, redactor)
    kind = OpenCodeReader if root.layout == "opencode" else _OpenClawReader
    return look_into(
        root.directory,
        parts,
        lambda opened: kind(opened, found, redactor, subagents=subagents).read(progress),
    )


def entry_growth(
    found: FoundFile, roots: Sequence[Root], progress: ReadProgress | None, *, at_most: int
) -> Growth:
    """Return how much of a session is new. Arguments and result are those of growth; at most MOST_COUNTED events are counted.

    Raises:
        SourceError: it cannot be read.
        ProcessExhausted: no more descriptors.
    """
    root, parts = _place(found, roots)
    if root.layout == "plain":
        return exports.conversation_growth(found)

    def look(opened: OpenDatabase) -> Growth:
        with opened.transaction() as read:
            tables = _KINDS[root.layout].tables_of(read, found.location)
            if root.layout == "opencode":
                begin = 0 if progress is None else progress.offset
                return opencode_database.growth_of(
                    read, found.entry, begin, min(MOST_COUNTED, max(1, at_most))
                )
            session = session_of(read, tables, found.entry)
            if session is None:
                raise FileMissing(found.path, "not in the database any more")
            if session.reach == "packed":
                return Growth(session.stamp.size, 0)
            is_same = progress is not None and progress.inode == session.stamp.inode
            begin = progress.offset if progress is not None and is_same else 0
            events, size = came_since(read, tables, session, begin, min(MOST_COUNTED, max(1, at_most)))
            return Growth(size, events)

    return look_into(root.directory, parts, look)


def _place(found: FoundFile, roots: Sequence[Root]) -> tuple[SessionPaths, Parts]:
    for root in roots:
        parts = parts_below(root, found.file) if isinstance(root, SessionPaths) else None
        if (
            isinstance(root, SessionPaths)
            and parts
            and admits(root, parts)
            and is_database(root.layout, parts)
            and session_name(root, parts, found.entry) == found.path
        ):
            return root, parts
    raise FileMissing(found.path, "in no root")


class _OpenClawReader:
    """Reads one session of an open database of OpenClaw."""

    def __init__(
        self, opened: OpenDatabase, found: FoundFile, redactor: TurnRedactor | None, *, subagents: bool
    ) -> None:
        self._opened = opened
        self._found = found
        self._redactor = redactor
        self._subagents = subagents
        with opened.transaction() as read:
            self._tables: Tables = KIND.tables_of(read, found.location)

    def read(self, progress: ReadProgress | None) -> Reading:
        """Read a session; see read_entry."""
        for _ in range(TRIES):
            try:
                return self._read(progress)
            except (_Rewritten, UnresolvedReference, StaleParserState):
                progress = None
        raise FileHeld(self._found.path, "it is rewritten all the time")

    def _read(self, progress: ReadProgress | None) -> Reading:
        session = self._session()
        if session.is_subagent and not self._subagents:
            return hidden_reading(session, progress)
        if progress is not None and (progress.hidden or progress.inode != session.stamp.inode):
            progress = None
        if session.reach == "packed":
            if progress is not None and progress.mark == _mark(session, 0):
                return UnchangedTranscript(progress, session.stamp)
            return self._archive(session)
        if progress is None:
            return self._whole(session)
        return self._grown(session, progress)

    def _session(self) -> DatabaseSession:
        with self._opened.transaction() as read:
            session = session_of(read, self._tables, self._found.entry)
        if session is None:
            raise FileMissing(self._found.path, "not in the database any more")
        return session

    def _whole(self, session: DatabaseSession) -> Reading:
        known_format = openclaw.BRANCH if session.reach == "branch" else openclaw.FORMAT
        parser = TranscriptParser(None, self._redactor, known_format=known_format)
        if session.reach == "branch":
            self._header(session, parser)
        cursor, broken = _Cursor(), Counter[str]()
        session = self._follow(session, parser, cursor, broken)
        turns = tuple(parser.builder.turns)
        now = self._progress(session, parser, cursor, len(turns), turns[-1] if turns else None, broken)
        return WholeTranscript(turns, now, session.stamp)

    def _grown(self, session: DatabaseSession, progress: ReadProgress) -> Reading:
        parser = TranscriptParser(progress, self._redactor)
        cursor, broken = _Cursor(progress.lines, progress.offset), Counter[str]()
        session = self._follow(session, parser, cursor, broken)
        if cursor.position == progress.lines:
            return UnchangedTranscript(progress, session.stamp)
        turns_from, turns = parser.builder.turns_from, tuple(parser.builder.turns)
        last = progress.last if turns_from == progress.turns else None
        count = turns_from + len(turns)
        now = self._progress(session, parser, cursor, count, turns[-1] if turns else last, broken)
        return GrownTranscript(turns_from, turns, now, session.stamp)

    def _header(self, session: DatabaseSession, parser: TranscriptParser) -> None:
        """Parse the facts of the first event, which is on no branch."""
        with self._opened.transaction() as read:
            event = header_of(read, self._tables, session)
        line = None if event is None else event.line()
        if line is None:
            return
        events = openclaw.BRANCH.parse(line, openclaw.OpenClawState())
        if events and all(isinstance(one, SessionFacts) for one in events):
            parser.parse(_HEADER, line)

    def _follow(
        self, session: DatabaseSession, parser: TranscriptParser, cursor: _Cursor, broken: Counter[str]
    ) -> DatabaseSession:
        """Parse the events from the cursor on, and move the cursor to their end; return the state of the session there.

        Each transaction may see another state. If the event before the cursor is at its position still, so are all events before it:
        a branch is identified by its last event, and the generation changes whenever events are changed.
        """
        inode = session.stamp.inode
        while True:
            events: list[Event] = []
            is_end = True
            with self._opened.transaction() as read:
                now = session_of(read, self._tables, session.id)
                if now is None or now.stamp.inode != inode:
                    raise _Rewritten
                if cursor.position and seq_at(read, now, cursor.position - 1) != cursor.seq - 1:
                    raise _Rewritten
                for event in events_from(read, self._tables, now, cursor.position):
                    events.append(event)
                    if read.is_enough(event.size):
                        is_end = False
                        break
            for event in events:
                cursor.position, cursor.seq = event.position + 1, event.seq + 1
                line = event.line()
                if line is None:
                    broken["lines.too_long"] += 1
                else:
                    number = cursor.position + (_HEADER if now.reach == "branch" else 0)
                    parser.parse(number, line)
            if is_end:
                return now

    def _archive(self, session: DatabaseSession) -> Reading:
        shown, size = self._found.path, session.stamp.size
        source = _Archive(self._opened, session)
        first = source.peek(len(_ZSTD))
        pieces: Iterator[bytes]
        if first == _ZSTD:
            pieces = unpacked_stream(source, size, shown)
        else:
            pieces = iter(lambda: source.read(READ_BYTES) or b"", b"")
        cutter, parser = LineSplitter(), TranscriptParser(None, self._redactor, known_format=openclaw.FORMAT)
        parse_all(parser, cutter, pieces)
        turns = tuple(parser.builder.turns)
        broken = Counter({"lines.too_long": cutter.too_long})
        now = self._progress(
            session, parser, _Cursor(), len(turns), turns[-1] if turns else None, broken, followed=False
        )
        return WholeTranscript(turns, now, session.stamp)

    def _progress(
        self,
        session: DatabaseSession,
        parser: TranscriptParser,
        cursor: _Cursor,
        turns: int,
        last: Turn | None,
        broken: Counter[str],
        *,
        followed: bool = True,
    ) -> ReadProgress:
        assert parser.format is not None
        return ReadProgress(
            inode=session.stamp.inode,
            mark=_mark(session, cursor.seq),
            followed=followed,
            format=parser.format.name,
            state=parser.state,
            offset=cursor.seq,
            lines=cursor.position,
            turns=turns,
            last=last,
            learnt=parser.builder.learnt,
            tally=dict(parser.tally + broken),
        )


def _mark(session: DatabaseSession, seq: int) -> ReadMark:
    """Return a mark that identifies a state of a session."""
    return ReadMark(session.stamp.size if session.archived else seq, *mark_sides(session, seq))


class _Archive(io.RawIOBase):
    """Reads an archive, one piece in each transaction."""

    def __init__(self, opened: OpenDatabase, session: DatabaseSession) -> None:
        self._opened = opened
        self._session = session
        self._at = 0

    def readable(self) -> bool:
        return True

    def peek(self, length: int) -> bytes:
        """Return the first bytes."""
        with self._opened.transaction() as read:
            return archive_piece(read, self._session, 0, length)

    def readinto(self, buffer: "Buffer") -> int:
        room = memoryview(buffer)
        length = min(len(room), READ_BYTES, self._session.stamp.size - self._at)
        if length <= 0:
            return 0
        with self._opened.transaction() as read:
            piece = archive_piece(read, self._session, self._at, length)
        room[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
