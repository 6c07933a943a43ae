"""Reads conversations.json, which users export from ChatGPT or Claude: a list of conversations.

Each conversation is a session of its own. Where each begins and ends is found by scanning the brackets of the
file, once per version of the file, in bounded memory.
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
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable, open_inside, refusal
from memd.sources.transcripts import chats
from memd.sources.transcripts.database_sessions import ListedSession, SessionListing, number_of
from memd.sources.transcripts.format import Format
from memd.sources.transcripts.open_transcript import Growth
from memd.sources.transcripts.parser import TranscriptParser
from memd.sources.transcripts.read_position import ReadMark, ReadProgress
from memd.sources.transcripts.reader import Reading, UnchangedTranscript, WholeTranscript
from memd.text.memory_paths import Parts, SessionPaths

MAX_CONVERSATION_BYTES = 64 << 20
KEPT_EXPORTS = 16  # exports whose conversations are remembered
_PIECE_BYTES = 1 << 20
_UNIT_BYTES = 1000  # unit of a session's size, as for events in a database

# Everything up to the next bracket outside of a string.
_SKIP = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_LIST = ord("[")
_STEPS = {_LIST: 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class _Place(msgspec.Struct, frozen=True):
    """The position of a conversation in a file."""

    begin: int
    length: int
    digest: bytes
    kind: Format
    listed: ListedSession


_known: OrderedDict[Stamp, Mapping[str, _Place]] = OrderedDict()
_known_lock = threading.Lock()


def list_conversations(root: SessionPaths, parts: Parts) -> SessionListing:
    """Return the conversations in a file.

    Raises:
        SourceError: the file cannot be read, or is incomplete.
        ProcessExhausted: no more descriptors.
    """
    shown = str(root.directory.joinpath(*parts))
    descriptor = open_inside(root.directory, parts)
    try:
        return SessionListing(tuple(place.listed for place in _places(descriptor, shown).values()))
    finally:
        os.close(descriptor)


def conversation_growth(found: FoundFile) -> Growth:
    """Return how much of a conversation is new: all of it, as exports are written as a whole."""
    return Growth(found.stamp.size * _UNIT_BYTES, 0)


def read_conversation(
    found: FoundFile,
    root: SessionPaths,
    parts: Parts,
    progress: ReadProgress | None,
    redactor: TurnRedactor | None,
) -> Reading:
    """Read a conversation if it has changed.

    Raises:
        SourceError: it cannot be read, or is no longer in the export.
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
        return places  # the file may be written again with the same stamp
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
    """Yield (position, bytes) of each object in the file's list, or of its single object; too long ones are skipped.

    Raises:
        FileHeld: the file ends within an object.
        FileUnreadable: a string in it is too long.
        OSError: it cannot be read.
    """
    buffer, base, at = b"", 0, 0  # unprocessed bytes, their offset in the file, and how many were scanned
    depth, around = 0, -1  # open brackets; those around each object, known after the first bracket
    begin = -1  # offset of the object in the file; before the buffer if it is too long
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
        # The end of the buffer, possibly within a string.
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
    """Return the position of the next bracket outside of strings, of an unclosed string, or the end."""
    found = _SKIP.match(buffer, at)
    return at if found is None else found.end()
