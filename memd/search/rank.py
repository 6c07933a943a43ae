"""Decides which candidates become hits, in order: removes overlaps and copies, and lowers what only repeats the question."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import islice

import msgspec

from memd.config.settings import WORTH_READING
from memd.domain_types import ChunkId, FoundHit, Window
from memd.search.copies import ComparedText, ShownTexts, recency_key
from memd.search.fuse_scores import Scored, place_in_order
from memd.search.query import Query
from memd.search.question_echoes import QuestionEchoes
from memd.search.snippet import ShownLines, ShownPart, fresh_part
from memd.search.superseded import behind_replacement, is_superseded, lowered, replaces
from memd.store.chunks import StoredChunk

IN_A_ROW = 2  # hits of one source, if another source has any left
# Candidates after one, among which its copies are looked for: with six hits, as many as are read in one query.
AHEAD = 9
MAX_TOLD = 5  # copies that a hit lists
# The most that copies differ in, because of headings, file names and speakers around them.
_SHARES_APART = 0.2
_COSINES_APART = 0.1
_PARTS_APART = 0.03  # parts are embedded without their context


class Verdict(msgspec.Struct, frozen=True):
    """The decision about a candidate."""

    scored: Scored
    chunk: StoredChunk
    hit: FoundHit | None
    cut: str | None  # min_score | overlap | duplicate | joined; None: it is a hit
    part: ShownPart | None = None  # the part that it shows, or would show
    owed: bool = False  # it comes before a better candidate, because its source was due
    repeats: bool = False  # it only repeats the question, so its score was lowered
    superseded: bool = False  # its text is outdated, so its score was lowered
    copy_of: ChunkId | None = None  # an earlier candidate that says all that it says
    joined_to: ChunkId | None = None  # an earlier candidate, whose hit includes its lines

    @property
    def window(self) -> Window | None:
        """The window of the part."""
        return None if self.part is None else self.part.window


Found = Iterable[tuple[Scored, StoredChunk]]


def verdicts(
    found: Sequence[Found],
    query: Query,
    min_score: float,
    max_chars: int,
    *,
    weak: bool = False,
    least: float = 0.0,
    latest: bool = True,
) -> Iterator[Verdict]:
    """Decide about each candidate, lazily.

    - Lines that an earlier hit shows are not shown again: an overlapping chunk shows its other lines, or nothing.
    - Of copies, in several places or sessions, one is shown: the latest, in the place of the best.
    - After two hits of one source the next is of another source, if it has any left: notes and transcripts complement each
      other, and one of them has far more chunks.
    - Candidates that only repeat the question, or are outdated, come later, with lowered scores.

    Args:
        found: The candidates of each source with their chunks, the best first.
        query: The question.
        min_score: The least score of a hit.
        max_chars: The most characters of a hit.
        weak: Whether to mark all hits as weak; those that only repeat the question always are.
        least: Candidates below this score get no verdict; they are only considered as copies of better ones.
        latest: Whether the question may ask for the present: then the latest copy is shown, and outdated text lowered.
    """
    compared = cache(ComparedText)
    shown, shown_texts = ShownLines(), ShownTexts(compared)
    echoes = QuestionEchoes(query)
    lanes = [
        _Lane(iter(candidates), echoes, compared, query if latest else None, least) for candidates in found
    ]
    last: list[_Lane] = []  # the sources of the last hits
    while waiting := [lane for lane in lanes if lane.head() is not None]:
        lane, owed = _next_lane(waiting, last)
        repeated = lane.repeats()
        superseded = lane.is_superseded()
        scored, chunk = lane.take()
        copies: list[tuple[Scored, StoredChunk]] = []
        if not repeated and scored.score >= max(min_score, WORTH_READING):
            (scored, chunk), copies = lane.latest_of_copies(scored, chunk, is_latest=latest)
            superseded = superseded and not copies
        hit, cut, part = None, None, None
        if scored.score < min_score:
            cut = "min_score"
        elif (part := fresh_part(chunk, shown, query, max_chars, scored.closest)) is None:
            cut = "overlap"
        else:
            # Counts as shown of this file even if a copy showed it: the next copy continues with the next lines.
            shown.add(chunk, part)
            if not shown_texts.adds("\n".join(part.lines), is_session=chunk.kind.is_session):
                cut = "duplicate"
            else:
                hit = FoundHit(
                    chunk.path,
                    part.window.start_line,
                    part.window.end_line,
                    scored.score,
                    part.window.text,
                    chunk.kind.source,
                    weak=weak or repeated,
                    when=chunk.when,
                    written_ns=chunk.written_ns,
                    superseded=is_superseded(chunk, query, scored.closest),
                    superseded_by=chunk.superseded or None,
                    copies=tuple(_place(copy) for _, copy in copies[:MAX_TOLD]),
                    memory=chunk.memory or None,
                )
                last = [lane] if last and last[0] is not lane else [*last, lane][-IN_A_ROW:]
        yield Verdict(scored, chunk, hit, cut, part, owed and hit is not None, repeated, superseded)
        for one, copy in copies:
            yield Verdict(one, copy, None, "duplicate", copy_of=chunk.id)


def _next_lane(waiting: Sequence["_Lane"], last: Sequence["_Lane"]) -> tuple["_Lane", bool]:
    """Return the source of the next hit, and whether it comes before a better candidate, because it was due.

    Args:
        waiting: The sources that have candidates left.
        last: The sources of the last hits.
    """
    best = [lane for lane in waiting if not lane.repeats()] or waiting
    others = [lane for lane in best if len(last) < IN_A_ROW or lane is not last[0]] or best
    lane = min(others, key=_Lane.order)
    return lane, lane is not min(best, key=_Lane.order)


def _may_be_copies(one: Scored, other: Scored) -> bool:
    """Return whether two texts may say the same: they hold the same words, and are about as close to the question."""
    if abs(one.share - other.share) > _SHARES_APART:
        return False
    if one.part is not None and other.part is not None:
        return abs(one.part - other.part) <= _PARTS_APART
    return one.cosine is None or other.cosine is None or abs(one.cosine - other.cosine) <= _COSINES_APART


def _place(chunk: StoredChunk) -> str:
    return f"{chunk.path}#L{chunk.start_line}-L{chunk.end_line}"


class _Next(msgspec.Struct, frozen=True, order=True):
    """A candidate of a lane, ordered by its place."""

    place: tuple[float, float, str, int, int]
    scored: Scored
    chunk: StoredChunk
    repeats: bool
    superseded: bool

    @property
    def is_lowered(self) -> bool:
        """Whether candidates after it may overtake it."""
        return self.repeats or self.superseded


class _Lane:
    """The candidates of one source, read lazily."""

    def __init__(
        self,
        candidates: Iterator[tuple[Scored, StoredChunk]],
        echoes: QuestionEchoes,
        compared: Callable[[str], ComparedText],
        query: Query | None,
        least: float,
    ) -> None:
        self._candidates = candidates
        self._echoes = echoes
        self._query = query  # None: the question asks for the past
        self._least = least
        self._ahead: deque[tuple[Scored, StoredChunk]] = deque()  # candidates read ahead to look for copies
        self._compared = compared
        # A heap: the next candidate that may answer, and the lowered ones before it.
        self._read: list[_Next] = []
        self._is_done = False

    def head(self) -> Scored | None:
        """Return the next candidate, or None at the end."""
        # A lowered candidate has to be compared with the next one that was not lowered.
        while not self._is_done and all(one.is_lowered for one in self._read):
            self._read_on()
        return self._read[0].scored if self._read else None

    def repeats(self) -> bool:
        """Return whether the next candidate, which must exist, only repeats the question."""
        return self._read[0].repeats

    def is_superseded(self) -> bool:
        """Return whether the next candidate, which must exist, is outdated and was lowered."""
        return self._read[0].superseded

    def order(self) -> tuple[float, float, str, int, int]:
        """Return the sort key of the next candidate, which must exist."""
        return self._read[0].place

    def take(self) -> tuple[Scored, StoredChunk]:
        """Remove and return the next candidate, which must exist."""
        taken = heappop(self._read)
        return taken.scored, taken.chunk

    def latest_of_copies(
        self, scored: Scored, chunk: StoredChunk, *, is_latest: bool
    ) -> tuple[tuple[Scored, StoredChunk], list[tuple[Scored, StoredChunk]]]:
        """Return the candidate to show instead of this one, and the copies that are not shown.

        Args:
            scored: The candidate, which was taken.
            chunk: Its chunk.
            is_latest: Whether to show the latest copy that says all that the candidate says.
        """
        self._look_ahead()
        waiting = [(one.scored, one.chunk) for one in self._read if not one.repeats] + list(self._ahead)
        likely = [
            pair for pair in waiting if pair[0].score >= WORTH_READING and _may_be_copies(pair[0], scored)
        ]
        if not likely:
            return (scored, chunk), []
        own = self._compared(chunk.text)
        alike = [
            (one, other)
            for one, other in likely
            if (words := self._compared(other.text)).is_roughly(own)
            and (words.covers(own) or own.covers(words))
        ]
        if not alike:
            return (scored, chunk), []
        first = (scored, chunk)
        if is_latest:
            able = [first, *(pair for pair in alike if self._compared(pair[1].text).covers(own))]
            first = max(able, key=lambda pair: recency_key(pair[1]))
        shown = self._compared(first[1].text)
        copies = [
            pair
            for pair in [(scored, chunk), *alike]
            if pair[1] is not first[1] and shown.covers(self._compared(pair[1].text))
        ]
        gone = {first[1], *(other for _, other in copies)}
        self._read = [one for one in self._read if one.chunk not in gone]
        heapify(self._read)
        self._ahead = deque(pair for pair in self._ahead if pair[1] not in gone)
        if first[1] is not chunk:
            first = (msgspec.structs.replace(first[0], score=scored.score, older=scored), first[1])
        return first, copies

    def _read_on(self) -> None:
        pair = self._ahead.popleft() if self._ahead else next(self._candidates, None)
        if pair is None or pair[0].score < self._least:
            self._is_done = True
            return
        scored, chunk = pair
        repeats = self._echoes.only_repeats(chunk)
        superseded = (
            not repeats and self._query is not None and is_superseded(chunk, self._query, scored.closest)
        )
        one = lowered(scored) if repeats else scored
        if superseded:
            self._look_ahead()
            follow = (other for other, its in self._ahead if replaces(its.path, chunk))
            one = behind_replacement(
                scored, next((other for other in follow if other.score >= WORTH_READING), None)
            )
        heappush(self._read, _Next(place_in_order(one), one, chunk, repeats, superseded))

    def _look_ahead(self) -> None:
        self._ahead.extend(islice(self._candidates, max(0, AHEAD - len(self._ahead))))
