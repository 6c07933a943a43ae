"""The position up to which a transcript was read, and a splitter that reads its lines in bounded memory."""

import codecs
import hashlib
from collections.abc import Mapping

import msgspec

from memd.domain_types import Turn
from memd.sources.transcripts.format import SessionFacts

# Raise it when the meaning of these fields changes: transcripts are then read from their beginning.
VERSION = 1

EDGE_BYTES = 4096  # at the beginning and end of the read part, which are compared before reading on


class ReadMark(msgspec.Struct, frozen=True):
    """Identifies the part of a file that was read, by the hashes of its beginning and end."""

    length: int  # bytes
    head: bytes  # sha256 of the first EDGE_BYTES
    tail: bytes  # sha256 of the last EDGE_BYTES


class ReadProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The state that a reading stores for the next one. All text in it is redacted."""

    version: int = VERSION
    inode: int
    mark: ReadMark
    packed: bool = False  # the mark is of the compressed bytes
    hidden: bool = False  # the transcript is a subagent's, which are not indexed: it has no turns
    # Whether new lines can be read from offset on; if not, the file is read from its beginning.
    followed: bool = True
    format: str | None = None  # None: not detected yet, or unknown
    state: bytes = b""  # of the format's parser, in msgpack
    offset: int = 0  # bytes of the (decompressed) text that were read
    lines: int = 0  # lines that were read to their end
    skipping: bool = False  # the next bytes belong to a line that is too long
    unended: bool = False  # the last line was taken without its line end, which must come next
    turns: int = 0
    last: Turn | None = None  # of the turns
    learnt: SessionFacts = SessionFacts()
    tally: Mapping[
        str, int
    ] = {}  # counts for the whole transcript: redacted.<kind>, lines.<why>, sessions.<why>

    @property
    def content_hash(self) -> bytes:
        """The SHA-256 of the read mark."""
        mark = self.mark
        return hashlib.sha256(b"%d:%b:%b" % (mark.length, mark.head, mark.tail)).digest()


def mark_of(length: int, head: bytes, tail: bytes) -> ReadMark:
    """Return the mark of `length` bytes with this beginning and end."""
    return ReadMark(length, hashlib.sha256(head).digest(), hashlib.sha256(tail).digest())


def encoded(progress: ReadProgress) -> bytes:
    """Encode the progress for the store."""
    return msgspec.msgpack.encode(progress)


def decoded(raw: bytes) -> ReadProgress | None:
    """Decode a stored progress; None if it is of another version, or cannot be decoded."""
    try:
        progress = msgspec.msgpack.decode(raw, type=ReadProgress)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return progress if progress.version == VERSION else None


MAX_LINE_BYTES = 8 << 20  # images and the output of tools make lines of many megabytes, text does not

_BLANK = b" \t\r\0"  # a crash can leave NUL characters in place of data


class LineContinued(Exception):
    """A line that was taken without its line end has grown."""


class LineSplitter:
    """Splits the pieces of a transcript into lines.

    A line without its line end is held back, unless it is too long.
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
        """Continue after an earlier splitter; see ReadProgress.

        Args:
            offset: The number of bytes before.
            lines: The number of complete lines before.
            skipping: Whether the next bytes belong to a line that is too long.
            unended: Whether the last line was taken without its end.
            head: The first EDGE_BYTES of the bytes before.
            tail: The last EDGE_BYTES of them.
        """
        self.offset = offset
        self.lines = lines
        self.skipping = skipping
        self.unended = unended
        self.too_long = 0  # lines that were too long, counted by this splitter
        self._head = head
        self._tail = tail
        self._pending = b""

    @property
    def mark(self) -> ReadMark:
        """The mark of everything up to `offset`."""
        return mark_of(self.offset, self._head, self._tail)

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """Return (number, line without its end) of each line that ends in the next piece, without blank lines.

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
        """Return (number, line) of the last line if it is complete except for its line end.

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
