"""The values that flow through memd: frozen, plain, and free of any I/O."""

import os
import re
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Literal, NewType

import msgspec

from memd.text.time_spans import TimeSpan
from memd.text.turn_header import header_in

Source = Literal["memory", "sessions"]
Role = Literal["user", "assistant"]
ChunkId = NewType("ChunkId", int)
TextHash = NewType("TextHash", bytes)  # 32 bytes: sha256 of the embedded text of a chunk, in UTF-8

NOT_UTF8 = "notes.not_utf8"  # the counter of a note in which bytes had no meaning, and were replaced
LONG_FRONT_MATTER = "notes.long_front_matter"  # the counter of a note with properties that are not read

_INT64_MAX = (1 << 63) - 1


class Kind(IntEnum):
    """What a file is, which decides who may see it."""

    NOTE = 0  # memory/**/*.md and extra paths
    CURATED = 1  # MEMORY.md and USER.md: private, never shown to a group
    SESSION = 2  # a transcript
    SHARED_SESSION = 3  # a transcript of a group or channel: only its owner may see it

    @property
    def source(self) -> Source:
        """The source that files of this kind belong to."""
        return "sessions" if self.is_session else "memory"

    @property
    def is_session(self) -> bool:
        """Whether it is a transcript."""
        return self >= Kind.SESSION


# A scan creates tens of thousands of these. They hold plain values and are in no cycle; gc=False, because
# traversing them in the garbage collector took a third of the time of a scan.
class Stamp(msgspec.Struct, frozen=True, gc=False):
    """The fields of a file's status by which a scan detects that it may have changed."""

    size: int  # bytes
    mtime_ns: int
    inode: int
    ctime_ns: int = 0  # when the inode was last changed, which no program can set; 0: unknown

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Return the stamp of a file; each number fits into a signed 64-bit integer, as SQLite stores it.

        A time before 1677 or after 2262 is clamped: size and inode still distinguish such a file from others.
        An inode of 2^63 or more, as on file systems that hash their numbers, becomes negative.
        """
        mtime_ns, inode, ctime_ns = status.st_mtime_ns, status.st_ino, status.st_ctime_ns
        # A scan makes thousands: the common case costs comparisons alone.
        if not -_INT64_MAX <= mtime_ns <= _INT64_MAX:
            mtime_ns = max(-_INT64_MAX, min(mtime_ns, _INT64_MAX))
        if not -_INT64_MAX <= ctime_ns <= _INT64_MAX:
            ctime_ns = max(-_INT64_MAX, min(ctime_ns, _INT64_MAX))
        if inode > _INT64_MAX:
            inode -= 1 << 64
        return cls(status.st_size, mtime_ns, inode, ctime_ns)


class FoundFile(msgspec.Struct, frozen=True, gc=False):
    """An indexable file as a scan found it."""

    path: str  # path in the index: workspace-relative POSIX, or absolute for an extra path
    location: str  # absolute path on disk; for a transcript in a database, that of the database
    kind: Kind
    stamp: Stamp
    entry: str = ""  # id of the transcript within a database

    @property
    def file(self) -> Path:
        """The location as a path, made anew by each call: a scan of thousands of files makes none."""
        return Path(self.location)


class Document(msgspec.Struct, frozen=True):
    """The decoded text of a file, before it is cut into chunks."""

    path: str
    kind: Kind
    lines: tuple[str, ...]  # without line ends; line n of the file is lines[n - 1]


class Turn(msgspec.Struct, frozen=True, gc=False):
    """One message of a user or an assistant, redacted."""

    id: str  # as in the transcript, unique in its session; empty if the format has none
    role: Role
    at: float | None  # Unix time; None: the transcript does not say
    start_line: int  # of the transcript, from 1
    end_line: int  # inclusive
    text: str  # redacted; may have several lines, is never blank


class Chunk(msgspec.Struct, frozen=True):
    """The unit of recall: whole lines of a file (or a part of one very long line), or turns of a transcript."""

    start_line: int  # 1-based
    end_line: int  # inclusive
    text: str
    # Says where the chunk belongs: file title, nearest heading, date. Embedded and indexed, never shown.
    context: str
    hash: TextHash  # of embedded_text(chunk)
    # The file's line of each line of text; None: they are consecutive from start_line.
    numbers: tuple[int, ...] | None = None
    # For transcripts: index of the chunk's first turn among the session's turns, from 0.
    turn: int | None = None
    # text[begin:end] of each part, in order; empty if there is only one.
    parts: tuple[tuple[int, int], ...] = ()
    when: TimeSpan | None = None  # when it happened or is due; None: the file does not say


class LabelKind(IntEnum):
    """The kinds of a Label."""

    TAG = 0
    LINK = 1  # a link to another note
    PROPERTY = 2  # an entry of the front matter


class Label(msgspec.Struct, frozen=True):
    """A tag, link or property of a note."""

    kind: LabelKind
    name: str  # folded; a tag without #, the note that a link names, or a property's key
    value: str  # a property's value, folded; else the name as written


AFTER_ALL_NS = 1 << 62  # later than any file's modification time


class SearchFilter(msgspec.Struct, frozen=True):
    """Conditions that a chunk must satisfy to be searched; all of them apply."""

    # Bounds of its time, in seconds since 1970 of local clock time: any overlap passes. None: no bound.
    since_s: int | None = None
    until_s: int | None = None
    # The same bounds in nanoseconds of Unix time, for files that have only a modification time.
    since_ns: int | None = None
    until_ns: int | None = None
    tags: tuple[str, ...] = ()  # folded; "work" matches "work/mail", too
    properties: tuple[tuple[str, str], ...] = ()  # key and value, folded
    # Globs, see memory_paths.exclude_of and labels.paths_matching; a path must match one of them, and none that begins with "!".
    paths: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the filter lets everything through."""
        return self == NO_FILTER

    @property
    def has_time(self) -> bool:
        """Whether the filter has a bound of time."""
        return self.since_s is not None or self.until_s is not None

    @property
    def may_be_undated(self) -> bool:
        """Whether a chunk without a time may pass by the modification time of its file."""
        return self.has_time and self.since_ns != AFTER_ALL_NS


NO_FILTER = SearchFilter()
"""Everything that may be seen takes part."""


class BatchJob(msgspec.Struct, frozen=True):
    """A job of a provider's batch API that has not ended yet."""

    id: str  # memd's id, which the job carries as its label
    texts: int  # number of texts in it
    created_at: float  # Unix time at which memd began to create it, or of its creation once that is known
    name: str | None = None  # the provider's name for it; None: not known yet whether it was created


class BatchFile(msgspec.Struct, frozen=True):
    """A file of a batch job, stored by the provider."""

    name: str  # the provider's name; if is_sought, the name under which it was uploaded
    job: str  # memd's id of the job
    is_sought: bool = False  # no reply has confirmed its name, or that the upload succeeded


class Window(msgspec.Struct, frozen=True):
    """The part of a chunk that is shown."""

    start_line: int
    end_line: int
    text: str
    numbers: tuple[int, ...] | None = None  # see Chunk


class FoundHit(msgspec.Struct, frozen=True):
    """One search result."""

    path: str
    start_line: int  # first line of the window
    end_line: int
    score: float
    snippet: str
    source: Source
    own_scale: bool = False  # the score is another backend's, to which min_score does not apply
    weak: bool = False  # nothing found is likely to answer the question; shown for lack of better hits
    # Its time, in seconds of a TimeSpan; None: the file does not say.
    when: tuple[int, int] | None = None
    written_ns: int = 0  # Unix time in ns at which its file was modified; 0: unknown
    superseded: bool = False  # its note is marked as no longer valid
    superseded_by: str | None = None  # the note that is named as its replacement
    copies: tuple[str, ...] = ()  # other places with the same text, each as path#L3-L9
    # The included memory that it is from, with whose name the path begins; None: the agent's own.
    memory: str | None = None


class DegradedPart(msgspec.Struct, frozen=True):
    """A capability that is not available now, and why."""

    part: str  # keyword | vector | query_embedding | synonyms | rerank | watcher | provider | rebuild | store | included
    reason: str


class FallbackUse(msgspec.Struct, frozen=True):
    """Says that a fallback answered in place of the wanted backend or provider."""

    instead_of: str
    reason: str


def embedded_text(context: str, text: str) -> str:
    """Return what is embedded for a chunk: its context and its text."""
    return f"{context}\n{text}" if context else text


# A line that begins with its speaker: "- Ann: ...", "张三：...". No word of a name begins with a lower-case
# letter.
_SPEAKER = re.compile(r"(?:[-*+] )?((?:[^\W\d_][\w.'-]{0,19} ?){1,3}(?::(?=\s)|：))")


def embedded_part(text: str, first: int, last: int) -> str:
    """Return what is embedded for text[first:last], a part of a chunk.

    A part that begins within a line gets the line's speaker in front, because nothing else in it says who
    speaks. In a transcript, whoever a turn names after its header speaks.
    """
    begin = text.rfind("\n", 0, first) + 1
    if begin == first:
        return text[first:last]
    named = begin + len(header_in(text[begin:first]))
    speaker = _SPEAKER.match(text, named, first) or _SPEAKER.match(text, begin, first)
    if speaker is None or any(word[0].islower() for word in speaker[1].split()):
        return text[first:last]
    return f"{speaker[1]} {text[first:last]}"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that a search considered, and how it was ranked."""

    place: int  # rank by score, from 1
    path: str
    start_line: int  # first line of the chunk
    end_line: int
    score: float
    cosine: float | None  # None: it has no vector, or vectors are off
    part: float | None = None  # cosine of the best part of the chunk; None: it has no parts
    meaning: float = 0.0  # contribution of the vectors to the score
    by_words: float = 0.0  # contribution of the keywords to the score
    keyword: float | None  # r = -bm25; None: no keyword matched
    keyword_rank: int | None  # 1-based
    vector_rank: int | None  # 1-based
    # Share of the weight of the question's words that was found in the chunk or its context.
    share: float = 0.0
    expanded: float = (
        0.0  # 0..1: the part of the question's words that it holds as they are, as synonyms or translated
    )
    alternatives: float = 0.0  # what of `expanded` the synonyms and translations add
    foreign: float = 0.0  # 0..1: share of the text that is in other scripts than the question
    taken: float = 0.0  # 0..1: share of the question's words that it is assumed to contain as such a text
    of_time: bool = False  # its time is the one that the question names
    within: float = 0.0  # 0..1: the part of its time that the question names
    time_factor: float = 1.0  # the factor on meaning and by_words because of that
    terms: tuple[str, ...] = ()  # terms of the question that the window contains
    places: Mapping[str, tuple[int, ...]] = {}  # term -> lines of the window on which it begins
    window: tuple[int, int] | None = None  # lines of the snippet, or of what the snippet would have been
    chosen: str | None = (
        None  # why this window was chosen: whole | terms | part | synonyms | beginning | rest
    )
    # Why it is no hit: min_score | duplicate | overlap | joined | max_results; None: it is one.
    cut: str | None = None
    others: tuple[int, ...] = ()  # places of the candidates that show its text or some of its lines already
    owed: bool = False  # ranked before better ones, because two hits of the other source precede it
    repeats: bool = False  # it only repeats the question, for which its score was lowered
    superseded: bool = False  # its note is marked as no longer valid, for which its score was lowered
    # Place of an older chunk that this one replaces: this one is ranked before it, with its score.
    older: int | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """How a search arrived at its hits.

    The score of a candidate is tanh(meaning + by_words): vector_share x what its cosine means, and text_share
    x share_weight x the share of the words, and that of the older one where it is ranked before one. See
    memd.search.fuse_scores.
    """

    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()  # terms that are names or quotations
    left_out: tuple[str, ...] = ()  # words of the question that are not searched for
    match: str  # query to the keyword index; empty if there was none
    vector_weight: float  # as configured
    text_weight: float
    vector_share: float = 0.0  # weight that was used: a side without evidence is left out
    text_share: float = 0.0
    share_weight: float = 0.0  # of the share of the question's words
    synonyms_weight: float = 0.0  # of what synonyms add to that share
    translations_weight: float = 0.0  # of what a text in another script holds in any form
    assumed_cosine: float | None = None
    # Subtracted from each cosine: how similar the question is to the index as a whole.
    background: float = 0.0
    share_taken: float = 0.0  # the largest `taken` of a candidate
    calibration: tuple[float, float] | None = None  # cosines that count as 0 and as 1
    min_score: float
    # Strength of the best candidate; below answers_from, the hits are weak. See memd.search.answer_strength.strength.
    strength: float = 0.0
    answers_from: float = 0.0
    missing: tuple[str, ...] = ()  # names in the question that occur in no text
    alternatives: Mapping[str, tuple[str, ...]] = {}  # word of the question -> its synonyms and translations
    max_results: int = 0
    by_words: int = 0  # candidates found by keywords
    by_meaning: int = 0  # candidates found by vectors
    by_synonyms: int = 0  # candidates without a vector, found by synonyms and translations
    considered: int = 0  # all candidates
    candidates: tuple[Candidate, ...]
