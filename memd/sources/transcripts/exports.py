"""Reads what a person has exported of ChatGPT or of Claude: conversations.json, with one conversation after the other.

Each conversation is a session of its own. Where it begins and ends is told by going through the brackets of the file, once for each
version of it, in bounded memory.
"""

import hashlib
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping

import msgspec

from memd.domain_types import FoundFile, Stamp
from memd.sources.notes import reliable_stamp
from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable, open_inside, refusal
from memd.sources.transcripts import chats
from memd.sources.transcripts.database_sessions import ListedSession, SessionListing, number_of
from memd.sources.transcripts.format import Format
from memd.sources.transcripts.open_transcript import Growth
from memd.sources.transcripts.parser import TranscriptParser, TurnRedactor
from memd.sources.transcripts.read_position import ReadMark, ReadProgress
from memd.sources.transcripts.reader import Reading, UnchangedTranscript, WholeTranscript
from memd.text.memory_paths import Parts, SessionPaths

MAX_CONVERSATION_BYTES = 64 << 20
KEPT_EXPORTS = 16  # whose conversations are known
_PIECE_BYTES = 1 << 20
_UNIT_BYTES = 1000  # in which the size of a session is told: as that of an event in a database

# All up to the next bracket that is not in a text.
_SKIP = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_LIST = ord("[")
_STEPS = {_LIST: 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class _Place(msgspec.Struct, frozen=True):
    """A conversation in a file."""

    begin: int
    length: int
    digest: bytes
    kind: Format
    listed: ListedSession


_known: OrderedDict[Stamp, Mapping[str, _Place]] = OrderedDict()
_known_lock = threading.Lock()


def list_conversations(root: SessionPaths, parts: Parts) -> SessionListing:
    """The conversations of a file.

    Raises:
        SourceError: it cannot be read, or is not whole yet.
        ProcessExhausted: no more descriptors.
    """
    shown = str(root.directory.joinpath(*parts))
    descriptor = open_inside(root.directory, parts)
    try:
        return SessionListing(tuple(place.listed for place in _places(descriptor, shown).values()))
    finally:
        os.close(descriptor)


def conversation_growth(found: FoundFile) -> Growth:
    """How much of a conversation is new: all, as it was written anew."""
    return Growth(found.stamp.size * _UNIT_BYTES, 0)


def read_conversation(
    found: FoundFile,
    root: SessionPaths,
    parts: Parts,
    progress: ReadProgress | None,
    redactor: TurnRedactor | None,
) -> Reading:
    """Read a conversation, if it is not as it was.

    Raises:
        SourceError: it cannot be read, or is there no more.
        ProcessExhausted: no more descriptors.
    """
    descriptor = open_inside(root.directory, parts)
    try:
        place = _places(descriptor, found.path).get(found.entry)
        if place is None:
            raise FileMissing(found.path, "not in the export any more")
        if progress is not None and progress.mark.head == place.digest:
            return UnchangedTranscript(progress, place.listed.stamp)
        content = os.pread(descriptor, place.length, place.begin)
    except OSError as failure:
        raise refusal(failure, found.path) from failure
    finally:
        os.close(descriptor)
    if hashlib.sha256(content).digest() != place.digest:
        raise FileHeld(found.path, "it is being written")
    parser = TranscriptParser(None, redactor, known_format=place.kind)
    parser.parse(1, content)
    turns = tuple(parser.builder.turns)
    now = ReadProgress(
        inode=place.listed.stamp.inode,
        mark=ReadMark(place.length, place.digest, place.digest),
        followed=False,
        format=place.kind.name,
        state=parser.state,
        turns=len(turns),
        last=turns[-1] if turns else None,
        learnt=parser.builder.learnt,
        tally=dict(parser.tally),
    )
    return WholeTranscript(turns, now, place.listed.stamp)


def _places(descriptor: int, shown: str) -> Mapping[str, _Place]:
    try:
        stamp = Stamp.of(os.fstat(descriptor))
        with _known_lock:
            if (known := _known.get(stamp)) is not None:
                _known.move_to_end(stamp)
                return known
        places: dict[str, _Place] = {}
        for begin, content in _objects(descriptor, stamp.size, shown):
            place = _place(begin, content)
            if place is not None:
                places[place.listed.id] = place
    except OSError as failure:
        raise refusal(failure, shown) from failure
    if reliable_stamp(stamp, time.time_ns()) != stamp:
        return places  # it may be written to again, and have the same stamp
    with _known_lock:
        _known[stamp] = places
        while len(_known) > KEPT_EXPORTS:
            _known.popitem(last=False)
    return places


def _place(begin: int, content: bytes) -> _Place | None:
    found = chats.identify(content)
    if found is None:
        return None
    digest = hashlib.sha256(content).digest()
    stamp = Stamp(
        size=max(1, len(content) // _UNIT_BYTES),
        mtime_ns=int((found.updated_at or 0) * 1e9),
        inode=number_of(digest),
    )
    return _Place(begin, len(content), digest, found.kind, ListedSession(id=found.id, stamp=stamp))


def _objects(descriptor: int, size: int, shown: str) -> Iterator[tuple[int, bytes]]:
    """(place, bytes) of each object in the list that a file is, or of the one that it is; too long ones are passed over.

    Raises:
        FileHeld: the file ends in the middle.
        FileUnreadable: a text in it is too long.
        OSError: it cannot be read.
    """
    buffer, base, at = b"", 0, 0  # what is not done with, where that begins, and how much of it was looked at
    depth, around = 0, -1  # open brackets; those around each object, once the first bracket tells
    begin = -1  # of the object, in the file; behind the buffer's begin unless it is too long
    end, piece = 0, _PIECE_BYTES
    while True:
        at = _bracket(buffer, at)
        step = _STEPS.get(buffer[at], 0) if at < len(buffer) else 0
        if step:
            around = int(buffer[at] == _LIST) if around < 0 else around
            begin = base + at if step > 0 and depth == around else begin
            depth, at = depth + step, at + 1
            if step < 0 and depth == around and begin >= base:
                yield begin, buffer[begin - base : at]
            if depth <= 0:
                return
            continue
        # The end of what is there, or of the part of a text that is.
        if len(buffer) - at > MAX_CONVERSATION_BYTES:
            raise FileUnreadable(shown, "a text in it is too long")
        piece = 2 * piece if at < len(buffer) else _PIECE_BYTES
        more = os.pread(descriptor, min(piece, size - end), end)
        if not more:
            break
        is_kept = depth > around >= 0 and base <= begin and base + at - begin <= MAX_CONVERSATION_BYTES
        keep = begin - base if is_kept else at
        buffer, base, at = buffer[keep:] + more, base + keep, at - keep
        end += len(more)
    if depth or end < size:
        raise FileHeld(shown, "it is not whole")


def _bracket(buffer: bytes, at: int) -> int:
    """The place of the next bracket that is in no text; of a text that has no end; or the end."""
    found = _SKIP.match(buffer, at)
    return at if found is None else found.end()
