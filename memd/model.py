"""The values that flow through memd. Frozen, plain, and free of any I/O."""

from enum import IntEnum
from pathlib import Path
from typing import Literal, NewType

import msgspec

Source = Literal["memory", "sessions"]
ChunkId = NewType("ChunkId", int)
TextHash = NewType("TextHash", bytes)  # 32 bytes: sha256 of the embedded text of a chunk, in UTF-8


class Kind(IntEnum):
    """What a file is to the question who may see it."""

    NOTE = 0  # memory/**/*.md and extra paths
    CURATED = 1  # MEMORY.md and USER.md: the owner's own, never shown to a group
    SESSION = 2  # a transcript

    @property
    def source(self) -> Source:
        """The source that files of this kind belong to."""
        return "sessions" if self is Kind.SESSION else "memory"


# A scan makes these by the ten thousand. They hold plain values and are in no cycle: without gc=False the garbage
# collector would look through them again and again, for a third of the time of a scan.
class Stamp(msgspec.Struct, frozen=True, gc=False):
    """What a stat scan compares to see whether a file may have changed."""

    size: int  # bytes
    mtime_ns: int
    inode: int


class FoundFile(msgspec.Struct, frozen=True, gc=False):
    """One indexable file as a scan saw it."""

    path: str  # the name in the index: workspace-relative POSIX, or absolute for an extra path
    file: Path  # where it is
    kind: Kind
    stamp: Stamp


class Document(msgspec.Struct, frozen=True):
    """The text of one file, decoded, ready to be cut into chunks."""

    path: str
    kind: Kind
    lines: tuple[str, ...]  # without line ends; line n of the file is lines[n - 1]


class Chunk(msgspec.Struct, frozen=True):
    """A unit of recall: whole lines of one file (or a part of one very long line)."""

    start_line: int  # 1-based
    end_line: int  # inclusive
    text: str
    context: (
        str  # what places the chunk: file title, nearest heading, date. Embedded and indexed, never shown
    )
    hash: TextHash  # of embedded_text(chunk)


class Window(msgspec.Struct, frozen=True):
    """The part of a chunk that an agent reads."""

    start_line: int
    end_line: int
    text: str


class Hit(msgspec.Struct, frozen=True):
    """One search result."""

    path: str
    start_line: int  # the window's, not the chunk's
    end_line: int
    score: float
    snippet: str
    source: Source


class Degraded(msgspec.Struct, frozen=True):
    """A capability that is missing just now, and why."""

    part: str  # keyword | vector | query_embedding | watcher | provider | rebuild
    reason: str


def embedded_text(context: str, text: str) -> str:
    """What is embedded for a chunk: the text under the line that places it."""
    return f"{context}\n{text}" if context else text


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk that a search considered, and how it came to its place."""

    path: str
    start_line: int  # of the chunk
    end_line: int
    score: float
    cosine: float | None  # None: no vector, or vectors are off
    calibrated: float | None  # 0..1; what min_score is compared with
    keyword: float | None  # r = -bm25; None: no keyword matched
    keyword_rank: int | None  # 1-based
    vector_rank: int | None  # 1-based
    terms: tuple[str, ...] = ()  # the query's terms that the window holds
    window: tuple[int, int] | None = None  # lines of the snippet
    cut: str | None = None  # min_score | duplicate | overlap | max_results; None: it is a hit


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """How a search came to its hits."""

    terms: tuple[str, ...]
    match: str  # what the keyword index was asked; empty where nothing was
    vector_weight: float
    text_weight: float
    min_score: float
    candidates: tuple[Candidate, ...]
