"""Reads what was added to a transcript since the last reading."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from memd.domain_types import FoundFile, Stamp, Turn
from memd.sources.notes import TooLarge, reliable_stamp
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.safe_open import FileHeld, refusal
from memd.sources.transcripts.format import SessionFacts
from memd.sources.transcripts.open_transcript import OpenTranscript, open_transcript, unpacked
from memd.sources.transcripts.parser import StaleParserState, TranscriptParser
from memd.sources.transcripts.read_position import (
    EDGE_BYTES,
    LineContinued,
    LineSplitter,
    ReadMark,
    ReadProgress,
    mark_of,
)
from memd.sources.transcripts.turn_builder import UnresolvedReference
from memd.text.memory_paths import Root

_PIECE_BYTES = 1 << 20
MAX_OBJECT_BYTES = 64 << 20  # of a file that is parsed at once


class UnchangedTranscript(msgspec.Struct, frozen=True):
    """There are no new lines; only the stamp is stored."""

    progress: ReadProgress
    stamp: Stamp


class GrownTranscript(msgspec.Struct, frozen=True):
    """The stored turns from `turns_from` on are replaced by these."""

    turns_from: int
    turns: tuple[Turn, ...]
    progress: ReadProgress
    stamp: Stamp


class WholeTranscript(msgspec.Struct, frozen=True):
    """All turns are replaced: the file was read for the first time, or was rewritten."""

    turns: tuple[Turn, ...]
    progress: ReadProgress
    stamp: Stamp


Reading = UnchangedTranscript | GrownTranscript | WholeTranscript


def read_transcript(
    found: FoundFile,
    roots: Sequence[Root],
    progress: ReadProgress | None,
    *,
    redactor: TurnRedactor | None,
    subagents: bool,
    now_ns: int,
) -> Reading:
    """Read a transcript from its last position, or from its beginning.

    A last line without a line end is left for the next reading, unless it is a complete JSON object: such a line cannot grow, and a
    process that died never writes its line end.

    Args:
        found: The file, as a scan saw it.
        roots: The agent's roots.
        progress: The progress of the last reading; None: read the whole file.
        redactor: Redacts texts; None: they are not redacted.
        subagents: Whether subagents' transcripts are indexed; otherwise they have no turns.
        now_ns: Unix time in nanoseconds; see notes.reliable_stamp.

    Raises:
        SourceError: the file cannot be read or decompressed; its indexed content stays valid.
        ProcessExhausted: the process has no free descriptors.
    """
    with open_transcript(found, roots) as opened:
        try:
            return _read(
                opened,
                found.path,
                progress,
                redactor,
                reliable_stamp(opened.stamp, now_ns),
                subagents=subagents,
            )
        except OSError as failure:
            raise refusal(failure, found.path) from failure


class _Edges(msgspec.Struct, frozen=True):
    """The first and the last bytes of a part of a file."""

    head: bytes
    tail: bytes


def _read(
    opened: OpenTranscript,
    shown: str,
    progress: ReadProgress | None,
    redactor: TurnRedactor | None,
    stamp: Stamp,
    *,
    subagents: bool,
) -> Reading:
    if progress is not None and progress.hidden != _is_hidden(progress.learnt, subagents=subagents):
        progress = None  # it was read under other settings
    edges = None if progress is None else _edges_if_same(opened, progress)
    if progress is not None and edges is not None:
        if opened.stamp.size == progress.mark.length:
            return UnchangedTranscript(progress, stamp)
        if progress.followed:
            grown = _read_on(opened, progress, edges, redactor, subagents=subagents)
            if grown is not None:
                turns_from, turns, now = grown
                is_same = now.offset == progress.offset  # no further line is complete
                return (
                    UnchangedTranscript(progress, stamp)
                    if is_same
                    else GrownTranscript(turns_from, turns, now, stamp)
                )
    turns, now = _read_whole(opened, shown, redactor, subagents=subagents)
    return WholeTranscript(turns, now, stamp)


def _edges_if_same(opened: OpenTranscript, progress: ReadProgress) -> _Edges | None:
    """Return the edges of the part that was read before; None if that part has changed."""
    length = progress.mark.length
    if (opened.stamp.inode, opened.packed) != (progress.inode, progress.packed) or opened.stamp.size < length:
        return None
    edges = _edges(opened.descriptor, length)
    return edges if mark_of(length, edges.head, edges.tail) == progress.mark else None


def _edges(descriptor: int, length: int) -> _Edges:
    size = min(EDGE_BYTES, length)
    return _Edges(os.pread(descriptor, size, 0), os.pread(descriptor, size, length - size))


def _pieces(descriptor: int, begin: int, end: int) -> Iterator[bytes]:
    at = begin
    while at < end and (piece := os.pread(descriptor, min(_PIECE_BYTES, end - at), at)):
        at += len(piece)
        yield piece


def _read_on(
    opened: OpenTranscript,
    progress: ReadProgress,
    edges: _Edges,
    redactor: TurnRedactor | None,
    *,
    subagents: bool,
) -> tuple[int, tuple[Turn, ...], ReadProgress] | None:
    """Read the new lines; return the index of the first changed turn, the turns from there on, and the progress; None: the whole file must be read."""
    cutter = LineSplitter(
        offset=progress.offset,
        lines=progress.lines,
        skipping=progress.skipping,
        unended=progress.unended,
        head=edges.head,
        tail=edges.tail,
    )
    try:
        parser = TranscriptParser(progress, redactor)
        parse_all(parser, cutter, _pieces(opened.descriptor, progress.offset, opened.stamp.size))
    except (UnresolvedReference, LineContinued, StaleParserState):
        return None
    if _is_hidden(parser.builder.learnt, subagents=subagents) != progress.hidden:
        return None
    turns_from, turns = parser.builder.turns_from, tuple(parser.builder.turns)
    last = progress.last if turns_from == progress.turns else None
    now = _progress(opened, cutter, parser, turns_from + len(turns), turns[-1] if turns else last)
    return turns_from, turns, now if not progress.hidden else _hidden(now)


def _read_whole(
    opened: OpenTranscript, shown: str, redactor: TurnRedactor | None, *, subagents: bool
) -> tuple[tuple[Turn, ...], ReadProgress]:
    cutter, parser = LineSplitter(), TranscriptParser(None, redactor)
    size = opened.stamp.size
    if opened.is_object:
        parser.parse(1, _object(opened, shown))
    else:
        pieces = (
            unpacked(opened.descriptor, size, shown) if opened.packed else _pieces(opened.descriptor, 0, size)
        )
        parse_all(parser, cutter, pieces)
    if parser.format is None:
        return (), _of_unknown_format(opened, parser)
    turns = tuple(parser.builder.turns)
    now = _progress(opened, cutter, parser, len(turns), turns[-1] if turns else None)
    return ((), _hidden(now)) if _is_hidden(now.learnt, subagents=subagents) else (turns, now)


def _object(opened: OpenTranscript, shown: str) -> bytes:
    """Return the content of a file that is a single object."""
    if opened.stamp.size > MAX_OBJECT_BYTES:
        raise TooLarge(shown, f"has more than {MAX_OBJECT_BYTES >> 20} MiB")
    content = b"".join(_pieces(opened.descriptor, 0, opened.stamp.size))
    if not content.rstrip().endswith(b"}"):
        raise FileHeld(shown, "it is being written")
    return content


def parse_all(parser: TranscriptParser, cutter: LineSplitter, pieces: Iterator[bytes]) -> None:
    """Parse all lines, or as many as prove that the format is unknown."""
    for piece in pieces:
        for number, line in cutter.feed(piece):
            parser.parse(number, line)
        if parser.is_undetectable:
            return
    last = cutter.finish()
    if last is not None:
        parser.parse(*last)


def _is_hidden(learnt: SessionFacts, *, subagents: bool) -> bool:
    return bool(learnt.subagent) and not subagents


def _progress(
    opened: OpenTranscript, cutter: LineSplitter, parser: TranscriptParser, turns: int, last: Turn | None
) -> ReadProgress:
    """Return the progress for the next reading."""
    assert parser.format is not None
    return ReadProgress(
        inode=opened.stamp.inode,
        mark=_mark_of_all(opened) if opened.packed or opened.is_object else cutter.mark,
        packed=opened.packed,
        followed=not (opened.packed or opened.is_object),
        format=parser.format.name,
        state=parser.state,
        offset=cutter.offset,
        lines=cutter.lines,
        skipping=cutter.skipping,
        unended=cutter.unended,
        turns=turns,
        last=last,
        learnt=parser.builder.learnt,
        tally=dict(parser.tally + Counter({"lines.too_long": cutter.too_long})),
    )


def _hidden(progress: ReadProgress) -> ReadProgress:
    """Return the progress of a hidden transcript, without turns and counts."""
    return msgspec.structs.replace(progress, hidden=True, turns=0, last=None, tally={"sessions.subagent": 1})


def _of_unknown_format(opened: OpenTranscript, parser: TranscriptParser) -> ReadProgress:
    """Return the progress of a transcript of unknown format, which is read again as a whole when it changes."""
    return ReadProgress(
        inode=opened.stamp.inode,
        mark=_mark_of_all(opened),
        packed=opened.packed,
        followed=False,
        tally={} if parser.is_empty else {"sessions.unknown_format": 1},
    )


def _mark_of_all(opened: OpenTranscript) -> ReadMark:
    edges = _edges(opened.descriptor, opened.stamp.size)
    return mark_of(opened.stamp.size, edges.head, edges.tail)
