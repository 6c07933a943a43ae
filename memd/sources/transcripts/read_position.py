"""How far a transcript is read: its bytes as numbered lines, in bounded memory, and the position between two readings."""

import codecs
import hashlib
from collections.abc import Mapping

import msgspec

from memd.domain_types import Turn
from memd.sources.transcripts.format import SessionFacts

# To be raised when the meaning of these fields changes: transcripts are then read from their beginning.
VERSION = 1

EDGE_BYTES = 4096  # at the beginning and end of the read part, which are compared before reading on


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
    learnt: SessionFacts = SessionFacts()
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


MAX_LINE_BYTES = 8 << 20  # pictures and the output of tools make lines of many megabytes; speech does not

_BLANK = b" \t\r\0"  # a crash can leave NUL characters where something was to be written


class LineContinued(Exception):
    """A line that was taken as complete has grown."""


class LineSplitter:
    """Splits the pieces of a transcript into lines.

    A line without its end is held back, unless it is too long to be stored.
    """

    def __init__(
        self,
        *,
        offset: int = 0,
        lines: int = 0,
        skipping: bool = False,
        unended: bool = False,
        head: bytes = b"",
        tail: bytes = b"",
    ) -> None:
        """Continue where another one ended; see ReadProgress.

        Args:
            offset: Bytes that came before.
            lines: Lines that came to their end before.
            skipping: Whether the next bytes belong to a line that is too long.
            unended: Whether the last line was taken without its end.
            head: The first EDGE_BYTES of what came before.
            tail: The last EDGE_BYTES of it.
        """
        self.offset = offset
        self.lines = lines
        self.skipping = skipping
        self.unended = unended
        self.too_long = 0  # lines, since the beginning of this one
        self._head = head
        self._tail = tail
        self._pending = b""

    @property
    def mark(self) -> ReadMark:
        """Of everything up to offset."""
        return mark_of(self.offset, self._head, self._tail)

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """(number, line without its end) of each line that ends in the next piece, without blank ones.

        Raises:
            LineContinued.
        """
        data = self._pending + piece if self._pending else piece
        end = data.rfind(b"\n") + 1
        found: list[tuple[int, bytes]] = []
        if end:
            block = data[:end] if end < len(data) else data
            self._pending = data[end:]
            self._consume(block)
            lines = block.split(b"\n")
            lines.pop()
            for line in lines:
                self.lines += 1
                if self.skipping:
                    self.skipping = False
                elif self.unended:
                    _require_blank(line)
                    self.unended = False
                elif len(line) > MAX_LINE_BYTES:
                    self.too_long += 1
                elif content := line.strip(_BLANK):
                    found.append((self.lines, content))
        else:
            self._pending = data
        if self.unended:
            _require_blank(self._pending)
        elif self.skipping or len(self._pending) > MAX_LINE_BYTES:
            self.too_long += not self.skipping
            self.skipping = True
            self._consume(self._pending)
            self._pending = b""
        return found

    def finish(self) -> tuple[int, bytes] | None:
        """(number, line) of a last line that is complete except for its end.

        A complete JSON object cannot be the beginning of a longer one. Its writer may have died before it wrote the line end.
        """
        content = self._pending.strip(_BLANK)
        bare = content if self.lines else content.removeprefix(codecs.BOM_UTF8)
        if self.unended or not _is_object(bare):
            return None
        self._consume(self._pending)
        self._pending = b""
        self.unended = True
        return self.lines + 1, content

    def _consume(self, block: bytes) -> None:
        self.offset += len(block)
        if len(self._head) < EDGE_BYTES:
            self._head += block[: EDGE_BYTES - len(self._head)]
        self._tail = block[-EDGE_BYTES:] if len(block) >= EDGE_BYTES else (self._tail + block)[-EDGE_BYTES:]


def _require_blank(line: bytes) -> None:
    if len(line) > MAX_LINE_BYTES or line.strip(_BLANK):
        raise LineContinued


def _is_object(content: bytes) -> bool:
    if not (content.startswith(b"{") and content.endswith(b"}")):
        return False
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
