"""The position in a transcript that is stored between two readings."""

import hashlib
from collections.abc import Mapping

import msgspec

from memd.model import Turn
from memd.sources.transcripts.format import Learnt

# Raised by whoever changes what these fields mean: transcripts are then read from their beginning.
VERSION = 1

EDGE_BYTES = 4096  # of the beginning and of the end of what was read, that are looked at before reading on


class ReadMark(msgspec.Struct, frozen=True):
    """Identifies the part of a file that was read, by a few bytes at both ends."""

    length: int  # bytes
    head: bytes  # sha256 of the first EDGE_BYTES
    tail: bytes  # sha256 of the last EDGE_BYTES


class ReadProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What a reading stores for the next one. All text in it is redacted."""

    version: int = VERSION
    inode: int
    mark: ReadMark
    packed: bool = False  # the mark is of the compressed bytes
    hidden: bool = False  # it is a subagent's, and those do not count: there are no turns
    # Whether growth can be read on from offset; else the file is read from its beginning.
    followed: bool = True
    format: str | None = None  # None: not told yet, or none that is known
    state: bytes = b""  # of the format's parser, in msgpack
    offset: int = 0  # bytes that were read, of the text
    lines: int = 0  # lines that were read to their end
    skipping: bool = False  # what comes next is the rest of a line that is too long
    unended: bool = False  # the last line was taken before its end came: only that may come next
    turns: int = 0
    last: Turn | None = None  # of the turns
    learnt: Learnt = Learnt()
    tally: Mapping[str, int] = {}  # redacted.<kind>, lines.<why>, sessions.<why>: of the whole transcript

    @property
    def content_hash(self) -> bytes:
        """A hash of 32 bytes of the state of the file."""
        mark = self.mark
        return hashlib.sha256(b"%d:%b:%b" % (mark.length, mark.head, mark.tail)).digest()


def mark_of(length: int, head: bytes, tail: bytes) -> ReadMark:
    """The mark of so many bytes, of which these are the first and the last ones."""
    return ReadMark(length, hashlib.sha256(head).digest(), hashlib.sha256(tail).digest())


def encoded(progress: ReadProgress) -> bytes:
    """The progress as bytes for the store."""
    return msgspec.msgpack.encode(progress)


def decoded(raw: bytes) -> ReadProgress | None:
    """Decode a stored progress; None if it is of another version, or cannot be decoded."""
    try:
        progress = msgspec.msgpack.decode(raw, type=ReadProgress)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return progress if progress.version == VERSION else None
