"""What a scan tells: the files that it found, those that it skipped, and the places that it could not look at."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from memd.domain_types import FoundFile
from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileHeld, FileMissing, OutsideFence, SourceError, UnexpectedFailure
from memd.text.memory_paths import is_under_any


class SkipReason(StrEnum):
    """Why a file is not indexed although its place and name qualify."""

    TOO_LARGE = "too large"
    TOO_DEEP = "too many directories deep"
    SYMLINK = "symlink"
    WENT = "gone before it was read"
    UNREADABLE = "unreadable"
    HELD = "held by another program"
    FAILED = "memd fails at it, and its log says how"
    NOT_REGULAR = "not a regular file"
    NOT_MARKDOWN = "not a Markdown file"
    NOT_TRANSCRIPT = "not a transcript (.jsonl or .jsonl.zst)"
    NOT_UTF8 = "name is not UTF-8"
    CONTROL = "control character in the name"
    SAME_NAME = "same name in another Unicode form"
    SAME_FILE = "same file under another name"
    SAME_SESSION = "another file of a session that is indexed"  # archived, compressed, or copied


# Which of several is indexed depends on the others, so a partial scan that meets one of these is not enough.
DOUBLES = frozenset({SkipReason.SAME_NAME, SkipReason.SAME_FILE})


class BlindReason(StrEnum):
    """Why a scan could not look at a place."""

    ABSENT = "no such directory"  # or is a symlink now: its files may return
    CLOSED = "not readable"
    UNMOUNTED = "disk not mounted"
    MOVING = "renamed all the time"  # renames are events, so the next scan is near


class MountPoint(msgspec.Struct, frozen=True):
    """A mount point on the path of a root, or below it."""

    place: str
    prefix: str  # of the paths in the index below it


class Scan(msgspec.Struct, frozen=True):
    """What a scan has found, by path in the index."""

    found: Mapping[str, FoundFile]  # in the order of their paths
    skipped: Mapping[str, SkipReason]  # a file, or a directory with everything below it
    # prefix -> why the scan could not look there: indexed files below it stay.
    blind: Mapping[str, BlindReason]
    mounts: frozenset[MountPoint]  # passed by the scan
    looked: frozenset[str] | None  # prefixes of a partial scan; None: everywhere
    linked: frozenset[tuple[Path, int]] = frozenset()  # files with several names, each with its inode

    def covers(self, name: str) -> bool:
        """Whether the scan covered this name: it was found or skipped, or does not exist, unless the scan was blind there."""
        return self.looked is None or is_under_any(name, self.looked)


def skip_of(trouble: SourceError) -> SkipReason:
    """Return why a file that a scan found could not be indexed."""
    match trouble:
        case TooLarge():
            return SkipReason.TOO_LARGE
        case FileMissing():
            return SkipReason.WENT
        case FileHeld():
            return SkipReason.HELD
        case UnexpectedFailure():
            return SkipReason.FAILED
        case OutsideFence():
            return SkipReason.NOT_REGULAR
        case _:
            return SkipReason.UNREADABLE
