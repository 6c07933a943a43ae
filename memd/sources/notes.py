"""Reads a note from the disk, with `sources.safe_open`, and decodes it."""

import hashlib
import os
from collections.abc import Iterable, Mapping

import msgspec

from memd.domain_types import NOT_UTF8, Document, Kind, Stamp
from memd.runtime.profiling import timed_part
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.safe_open import FileMissing, SourceError, open_inside, refusal
from memd.text.memory_paths import Root, find_place, is_for_owner
from memd_client.note_encoding import decode_note

_PIECE_BYTES = 1 << 20

# A kernel stamps files with the time of its last tick, at most 10 ms apart; file systems that store whole
# seconds stamp every second, FAT every other.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
_NEVER_NS = -1


class TooLarge(SourceError):
    """The file is larger than the configuration allows."""


class NoteReading(msgspec.Struct, frozen=True):
    """The content of a note."""

    document: Document
    sha256: bytes  # of the bytes on the disk
    stamp: Stamp  # from before the first byte was read, so that a concurrent write shows in the next scan
    tally: Mapping[str, int] = {}  # redacted.<kind> -> how often; NOT_UTF8 -> 1


def read_note(
    path: str, roots: Iterable[Root], *, max_bytes: int, now_ns: int, redactor: TurnRedactor | None = None
) -> NoteReading:
    """Read the note with this path in the index.

    Args:
        path: The path, exactly as the index has it.
        roots: See sources.roots.
        max_bytes: The configured limit.
        now_ns: Unix time in nanoseconds. A file written only a moment before may be written again without a
            change of its stamp, so a stamp is returned that no later scan will find.
        redactor: Removes secrets; None: nothing is removed.

    Raises:
        FileMissing: there is no such file, or no root can have one with this path.
        OutsideFence: it is a symlink, is behind one, or is not a regular file.
        TooLarge: it has more than max_bytes.
        FileUnreadable: no permission, or a failing disk.
        ProcessExhausted: no more descriptors.
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
    decoded = decode_note(raw)
    # A crash can leave thousands of NUL characters in a row, and code written in C stops at the first.
    lines, tally = lines_of(decoded.text.replace("\0", "")), dict[str, int]()
    if redactor is not None:
        # Joined by \n whatever ended them, so that lines keep the numbers that an editor shows.
        with timed_part("redacting"):
            redacted = redactor.redact("\n".join(lines))
        lines = tuple(redacted.text.split("\n")) if lines else lines
        tally = {f"redacted.{kind}": count for kind, count in redacted.counts.items()}
    if decoded.is_lossy:
        tally[NOT_UTF8] = 1
    document = Document(path=path, kind=kind, lines=lines)
    return NoteReading(document, hashlib.sha256(raw).digest(), reliable_stamp(stamp, now_ns), tally)


def lines_of(text: str) -> tuple[str, ...]:
    r"""The lines that an editor shows, without their ends: \n, \r\n or \r. An end after the last line begins no further line."""
    # str.splitlines() would also end a line at form feeds, U+0085, U+2028 and others, where no editor does.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)


def reliable_stamp(stamp: Stamp, now_ns: int) -> Stamp:
    """The stamp; or one that equals no other, while a second write could still leave the stamp unchanged.

    A stamp a little ahead of the clock belongs to a write between reading the two. A stamp far ahead was set by a program, or
    the clock was put back: the next write will change it. The time of change counts like the time of writing, since a program
    that has set the latter back may write again in the same tick.
    """
    is_fresh = any(
        _is_fresh(time_ns, now_ns) for time_ns in (stamp.mtime_ns, stamp.ctime_ns or stamp.mtime_ns)
    )
    return msgspec.structs.replace(stamp, mtime_ns=_NEVER_NS) if is_fresh else stamp


def _is_fresh(time_ns: int, now_ns: int) -> bool:
    tick_ns = _COARSE_TICK_NS if time_ns % _SECOND_NS == 0 else _TICK_NS
    return -_COARSE_TICK_NS <= now_ns - time_ns <= tick_ns


def _read(descriptor: int, max_bytes: int) -> bytes | None:
    """All bytes of an open file; None if there are too many: it may have grown since the scan."""
    pieces: list[bytes] = []
    left = max_bytes
    while piece := os.read(descriptor, _PIECE_BYTES):
        left -= len(piece)
        if left < 0:
            return None
        pieces.append(piece)
    return b"".join(pieces)
