"""The values that flow through memd. Frozen, plain, and free of any I/O."""

import os
import re
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Literal, NewType

import msgspec

from memd.text.time_spans import TimeSpan

Source = Literal["memory", "sessions"]
Role = Literal["user", "assistant"]
ChunkId = NewType("ChunkId", int)
TextHash = NewType("TextHash", bytes)  # 32 bytes: sha256 of the embedded text of a chunk, in UTF-8

_INT64_MAX = (1 << 63) - 1


class Kind(IntEnum):
    """What a file is to the question who may see it."""

    NOTE = 0  # memory/**/*.md and extra paths
    CURATED = 1  # MEMORY.md and USER.md: the owner's own, never shown to a group
    SESSION = 2  # a transcript
    SHARED_SESSION = 3  # a transcript of what was said in a group or a channel: for its owner alone

    @property
    def source(self) -> Source:
        """The source that files of this kind belong to."""
        return "sessions" if self.is_session else "memory"

    @property
    def is_session(self) -> bool:
        """Whether it is a transcript."""
        return self >= Kind.SESSION


# A scan makes these by the ten thousand. They hold plain values and are in no cycle: without gc=False the garbage
# collector would look through them again and again, for a third of the time of a scan.
class Stamp(msgspec.Struct, frozen=True, gc=False):
    """What a stat scan compares to see whether a file may have changed."""

    size: int  # bytes
    mtime_ns: int
    inode: int
    ctime_ns: int = 0  # when the inode was changed last, which nobody can set; 0: not known

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of a file, each number of which fits into 64 bits with a sign, as SQLite keeps it.

        A time before 1677 or after 2262 becomes the nearest that fits: size and inode still tell such a file from
        another. An inode of 2^63 or more, which file systems have that hash their numbers, becomes a negative one.
        """
        inode = status.st_ino
        return cls(
            size=status.st_size,
            mtime_ns=max(-_INT64_MAX, min(status.st_mtime_ns, _INT64_MAX)),
            inode=inode - (1 << 64) if inode > _INT64_MAX else inode,
            ctime_ns=max(-_INT64_MAX, min(status.st_ctime_ns, _INT64_MAX)),
        )


class FoundFile(msgspec.Struct, frozen=True, gc=False):
    """One indexable file as a scan saw it."""

    path: str  # the name in the index: workspace-relative POSIX, or absolute for an extra path
    file: Path  # where it is
    kind: Kind
    stamp: Stamp
    entry: str = ""  # of a transcript in a database: which one; file is the database


class Document(msgspec.Struct, frozen=True):
    """The text of one file, decoded, ready to be cut into chunks."""

    path: str
    kind: Kind
    lines: tuple[str, ...]  # without line ends; line n of the file is lines[n - 1]


class Turn(msgspec.Struct, frozen=True, gc=False):
    """What a person or an assistant said in one go, without anything secret."""

    id: str  # of its format, unique in its session; empty where the format has none
    role: Role
    at: float | None  # unix time; None: the transcript does not say
    start_line: int  # of the transcript, from 1
    end_line: int  # inclusive
    text: str  # redacted; may have several lines, is never blank


class Chunk(msgspec.Struct, frozen=True):
    """A unit of recall: whole lines of one file (or a part of one very long line), or turns of one transcript."""

    start_line: int  # 1-based
    end_line: int  # inclusive
    text: str
    # What places the chunk: file title, nearest heading, date. Embedded and indexed, never shown.
    context: str
    hash: TextHash  # of embedded_text(chunk)
    # Line of the file of each line of text; None: they follow start_line.
    numbers: tuple[int, ...] | None = None
    turn: int | None = None  # of a session: the place among its turns, from 0, of the first one in the chunk
    parts: tuple[tuple[int, int], ...] = ()  # text[begin:end] of each, in order; none, where it is one
    when: TimeSpan | None = None  # of when it is; None: nothing in the file says


class LabelKind(IntEnum):
    """What a note says of itself."""

    TAG = 0
    LINK = 1  # to another note
    PROPERTY = 2  # of its front matter


class Label(msgspec.Struct, frozen=True):
    """One thing that a note says of itself."""

    kind: LabelKind
    name: str  # folded: of a tag without #, of a linked note, the key of a property
    value: str  # of a property its value, folded; else the name as it is written


AFTER_ALL_NS = 1 << 62  # no file is written then


class SearchFilter(msgspec.Struct, frozen=True):
    """What chunks must be to take part in a search: all that is said here."""

    # Of when: what is of any of these seconds, from 1970, as clocks on the wall count them. None: no bound.
    since_s: int | None = None
    until_s: int | None = None
    # The same bounds in nanoseconds of Unix time, for files that only the disk dates.
    since_ns: int | None = None
    until_ns: int | None = None
    tags: tuple[str, ...] = ()  # folded; "work" is also "work/mail"
    properties: tuple[tuple[str, str], ...] = ()  # key and value, folded
    # Globs, see memory_paths.exclude_of; one of them, and none that begins with "!"
    paths: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether everything may take part."""
        return self == NO_FILTER

    @property
    def has_time(self) -> bool:
        """Whether it says of when."""
        return self.since_s is not None or self.until_s is not None

    @property
    def may_be_undated(self) -> bool:
        """Whether when a file was written may let a chunk through."""
        return self.has_time and self.since_ns != AFTER_ALL_NS


NO_FILTER = SearchFilter()
"""Everything that may be seen takes part."""


class BatchJob(msgspec.Struct, frozen=True):
    """A job of a provider's batch API that has begun and not ended."""

    id: str  # ours; the job carries it as its label
    texts: int  # how many are in it
    created_at: float  # unix time; when it was begun, until it is known when it was created
    name: str | None = None  # the provider's for it; None: it is not known yet whether it was created


class BatchFile(msgspec.Struct, frozen=True):
    """A file of such a job at the provider's."""

    name: str  # the provider's; of one that is sought, the name under which it was uploaded
    job: str  # our id of it
    is_sought: bool = False  # no answer said under which name it is there, or that it is there at all


class Window(msgspec.Struct, frozen=True):
    """The part of a chunk that an agent reads."""

    start_line: int
    end_line: int
    text: str
    numbers: tuple[int, ...] | None = None  # as of a Chunk


class FoundHit(msgspec.Struct, frozen=True):
    """One search result."""

    path: str
    start_line: int  # the window's, not the chunk's
    end_line: int
    score: float
    snippet: str
    source: Source
    own_scale: bool = False  # the score is that of another backend, which no min_score cuts
    weak: bool = False  # shown for want of better: nothing that was found is likely to answer
    # Of when it is, as seconds of a TimeSpan; None: nothing in its file says.
    when: tuple[int, int] | None = None
    written_ns: int = 0  # when its file was written, in Unix time; 0: not known
    superseded: bool = False  # what it says holds no more
    superseded_by: str | None = None  # the note that its own names as what replaced it
    copies: tuple[str, ...] = ()  # where else its text stands, each as path#L3-L9
    # The included memory that it is from, which its path begins with; None: the agent's own.
    memory: str | None = None


class DegradedPart(msgspec.Struct, frozen=True):
    """A capability that is missing just now, and why."""

    part: str  # keyword | vector | query_embedding | watcher | provider | rebuild | store | included
    reason: str


class FallbackUse(msgspec.Struct, frozen=True):
    """That something second stands in for what should have answered."""

    instead_of: str
    reason: str


def embedded_text(context: str, text: str) -> str:
    """What is embedded for a chunk: the text under the line that places it."""
    return f"{context}\n{text}" if context else text


# A line that begins with who says it: "- Ann: ...", "张三：...". No word of a name begins with a small letter.
_SPEAKER = re.compile(r"(?:[-*+] )?((?:[^\W\d_][\w.'-]{0,19} ?){1,3}(?::(?=\s)|：))")


def embedded_part(text: str, first: int, last: int) -> str:
    """What is embedded for text[first:last], a part of a chunk.

    Where it begins within a line, the name that the line begins with is put before it: else nothing in it tells who speaks.
    """
    speaker = _SPEAKER.match(text, text.rfind("\n", 0, first) + 1, first)
    if speaker is None or any(word[0].islower() for word in speaker[1].split()):
        return text[first:last]
    return f"{speaker[1]} {text[first:last]}"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk that a search considered, and how it came to its place."""

    place: int  # by its score among all, from 1
    path: str
    start_line: int  # of the chunk
    end_line: int
    score: float
    cosine: float | None  # None: no vector, or vectors are off
    part: float | None = None  # the cosine of the best part of the chunk; None: it has no parts
    meaning: float = 0.0  # what the vectors give to the score
    by_words: float = 0.0  # what the words give to it
    keyword: float | None  # r = -bm25; None: no keyword matched
    keyword_rank: int | None  # 1-based
    vector_rank: int | None  # 1-based
    # Of what the words of the question tell, that keywords found in the chunk or in what places it.
    share: float = 0.0
    foreign: float = 0.0  # 0..1, how much of it is in other scripts than the question
    of_time: bool = False  # that the question names
    terms: tuple[str, ...] = ()  # the query's terms that the window holds
    places: Mapping[str, tuple[int, ...]] = {}  # term -> the lines of the window that it begins on
    window: tuple[int, int] | None = None  # lines of the snippet, or of what it would have been
    chosen: str | None = None  # why this window: whole | terms | part | beginning | rest
    cut: str | None = None  # min_score | duplicate | overlap | joined | max_results; None: it is a hit
    others: tuple[int, ...] = ()  # the places of those that show its text or some of its lines already
    owed: bool = False  # it comes before better ones, because two hits of the other source are before it
    repeats: bool = False  # it only repeats the question, so that its score was lowered
    superseded: bool = False  # what it says holds no more, so that its score was lowered
    # The place of what says the same earlier: it is in front of that, with its score.
    older: int | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """How a search came to its hits.

    The score of a candidate is tanh(meaning + by_words): vector_share x what its cosine means, and text_share x .8 x the
    share of the words, and that of the older one where it is in front of one. See memd.search.fuse.
    """

    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()  # those of the terms that are names or quotations
    left_out: tuple[str, ...] = ()  # words of the question that are not looked for
    match: str  # what the keyword index was asked; empty where nothing was
    vector_weight: float  # as configured
    text_weight: float
    vector_share: float = 0.0  # as it counted: a side without evidence is left out
    text_share: float = 0.0
    assumed_cosine: float | None = None
    # What is taken off each cosine, for how close the question is to the index as a whole.
    background: float = 0.0
    share_taken: float = 0.0  # of its words that a text in another script is taken to hold
    calibration: tuple[float, float] | None = None  # the cosines that mean 0 and 1
    min_score: float
    # Of the strongest candidate; where it is below answers_from, the hits are weak. See memd.search.fuse.strength.
    strength: float = 0.0
    answers_from: float = 0.0
    missing: tuple[str, ...] = ()  # names that are asked for, and that no text holds
    max_results: int = 0
    by_words: int = 0  # candidates that keywords proposed
    by_meaning: int = 0  # candidates that vectors proposed
    considered: int = 0  # candidates in all
    candidates: tuple[Candidate, ...]
