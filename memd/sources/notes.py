"""A note on the disk as a document: its bytes read through the fence, then decoded."""

import codecs
import hashlib
import os
from collections.abc import Iterable, Mapping

import msgspec

from memd.model import Document, Kind, Stamp
from memd.redact.redactor import Redactor
from memd.runtime.timing import spent
from memd.sources.safe_open import FileMissing, SourceError, open_inside, refusal
from memd.text.memory_paths import Root, find_place, is_for_owner

_PIECE_BYTES = 1 << 20

# A kernel stamps files with the time of its last tick, 10 ms apart at most; file systems that keep whole seconds
# do it every second, FAT every other.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
_NEVER_NS = -1


class TooLarge(SourceError):
    """The file is larger than the configuration allows."""


class NoteReading(msgspec.Struct, frozen=True):
    """A note as it was read."""

    document: Document
    sha256: bytes  # of the bytes on the disk
    stamp: Stamp  # from before the first byte was read: a write during the reading shows in the next scan
    tally: Mapping[str, int] = {}  # redacted.<kind> -> how often


def read_note(
    path: str, roots: Iterable[Root], *, max_bytes: int, now_ns: int, redactor: Redactor | None = None
) -> NoteReading:
    """Read the note of this name in the index.

    Args:
        path: The name, exactly as the index has it.
        roots: As sources.roots gives them.
        max_bytes: What the configuration allows.
        now_ns: Unix time in nanoseconds. A file written only a moment before may be written again without its
            stamp changing, so its stamp is given back as one that no later scan will meet.
        redactor: Takes out what is secret; None: nothing is taken out.

    Raises:
        Missing: there is no such file, or no root holds one of this name.
        OutsideFence: it is a symlink, lies behind one, or is no regular file.
        TooLarge: it has more than max_bytes.
        Unreadable: no permission, or a failing disk.
        Exhausted: no more descriptors.
    """
    place = find_place(path, roots)
    if place is None:
        raise FileMissing(path, "in no root")
    root, parts = place
    descriptor = open_inside(root.directory, parts)
    try:
        stamp = Stamp.of(os.fstat(descriptor))
        raw = _read(descriptor, max_bytes) if stamp.size <= max_bytes else None
    except OSError as failure:
        raise refusal(failure, path) from failure
    finally:
        os.close(descriptor)
    if raw is None:
        raise TooLarge(path, f"larger than {max_bytes} bytes")
    kind = Kind.CURATED if is_for_owner(root, path) else Kind.NOTE
    lines, tally = lines_of(decoded(raw)), dict[str, int]()
    if redactor is not None:
        # By its lines: what an editor takes for one keeps its number, whatever ends it.
        with spent("redacting"):
            redacted = redactor.redact("\n".join(lines))
        lines = tuple(redacted.text.split("\n")) if lines else lines
        tally = {f"redacted.{kind}": count for kind, count in redacted.counts.items()}
    document = Document(path=path, kind=kind, lines=lines)
    return NoteReading(document, hashlib.sha256(raw).digest(), settled(stamp, now_ns), tally)


def decoded(raw: bytes) -> str:
    """The text of a file, whatever its bytes.

    UTF-8 unless it begins with the byte order mark of UTF-16; no mark is part of the text. What is not valid becomes
    U+FFFD, so no lone surrogate is left. NUL characters are taken out: they say nothing, a crash can leave
    thousands in a row, and code written in C stops at the first.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = raw.decode("utf-16", errors="replace")
    else:
        text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")
    return text.replace("\0", "")


def lines_of(text: str) -> tuple[str, ...]:
    r"""The lines an editor shows, without their ends: \n, \r\n or \r. The end of the last line begins no other."""
    # str.splitlines() would also end a line at form feeds, U+0085, U+2028 and others, where no editor does.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)


def settled(stamp: Stamp, now_ns: int) -> Stamp:
    """The stamp, or one that equals no other while a second write could still leave it as it is.

    A stamp a little ahead of the clock is that of a write between the two looks at them. One far ahead was set, or
    the clock was put back since: the next write will have another. The time of change counts as the time of writing does:
    who has set that back may write again in the same tick.
    """
    is_fresh = any(
        _is_fresh(time_ns, now_ns) for time_ns in (stamp.mtime_ns, stamp.ctime_ns or stamp.mtime_ns)
    )
    return msgspec.structs.replace(stamp, mtime_ns=_NEVER_NS) if is_fresh else stamp


def _is_fresh(time_ns: int, now_ns: int) -> bool:
    tick_ns = _COARSE_TICK_NS if time_ns % _SECOND_NS == 0 else _TICK_NS
    return -_COARSE_TICK_NS <= now_ns - time_ns <= tick_ns


def _read(descriptor: int, max_bytes: int) -> bytes | None:
    """All bytes of an open file; None where there are too many: it may have grown since it was looked at."""
    pieces: list[bytes] = []
    left = max_bytes
    while piece := os.read(descriptor, _PIECE_BYTES):
        left -= len(piece)
        if left < 0:
            return None
        pieces.append(piece)
    return b"".join(pieces)
