"""From chunks in order to hits that are worth reading; what only repeats the question ranks low.

Parts of transcripts that only repeat the question are closest to it, and answer nothing.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice

import msgspec

from memd.config.settings import WORTH_READING
from memd.domain_types import ChunkId, FoundHit, Window
from memd.search.copies import Said, later
from memd.search.fuse import Scored, place_in_order
from memd.search.query import Query
from memd.search.snippet import ShownLines, ShownPart, fresh_part
from memd.search.superseded import is_superseded, lowered, replaces, set_behind
from memd.search.terms import held
from memd.store.chunks import StoredChunk
from memd.text.tokens import tokens
from memd.text.turn_header import CONTINUED, header_in

# So many words in a row of the question say nothing of their own: they are a part of it, of a turn that was cut. Fewer may
# be an answer: "we deploy on Friday" stands in "Do we deploy on Friday?".
_MANY = 12


class QuestionEchoes:
    """Knows what repeats one question."""

    def __init__(self, query: Query) -> None:
        """Recognise repetitions of one question.

        Args:
            query: The question.
        """
        self._query = query
        self._asked = _words(query.embed_text)

    def only_repeats(self, chunk: StoredChunk) -> bool:
        """Whether nothing in a part of a transcript can answer: somebody puts the question, and nothing is said after that.

        What was said before is no answer where it holds none of the question's terms.
        """
        if not chunk.kind.is_session or not self._asked:
            return False
        turns = list(_turns(chunk.text))
        repeated = list(map(self._is_repeated, turns))
        if True not in repeated:
            return False
        first = repeated.index(True)
        return all(repeated[first:]) and not held(turns[:first], self._query.terms)

    def _is_repeated(self, turn: str) -> bool:
        said = _words(turn)
        if len(said) < _MANY:
            return said == self._asked
        asked = self._asked
        return any(
            asked[at : at + len(said)] == said
            for at in range(len(asked) - len(said) + 1)
            if asked[at] == said[0]
        )


def _turns(text: str) -> Iterator[str]:
    """What was said in each turn, without its header."""
    lines: list[str] = []
    for line in text.split("\n"):
        head = header_in(line)
        if head and lines:
            yield "\n".join(lines)
            lines = []
        lines.append(line[len(head) :].removeprefix(CONTINUED))
    yield "\n".join(lines)


def _words(text: str) -> Sequence[str]:
    return [token for token, _, _ in tokens(text)]


IN_A_ROW = 2  # hits of one source, while another has any
# Candidates of a source after one, among which its copies are looked for: with six hits as many as are read at once.
AHEAD = 9
MAX_TOLD = 5  # copies that a hit names
# Of what says the same, by what stands around it: headings, and the names of files and of those who speak.
_SHARES_APART = 0.2
_COSINES_APART = 0.1
_PARTS_APART = 0.03  # parts are embedded without what stands around them


class Verdict(msgspec.Struct, frozen=True):
    """What became of a candidate, and why."""

    scored: Scored
    chunk: StoredChunk
    hit: FoundHit | None
    cut: str | None  # min_score | overlap | duplicate | joined; None: it is a hit
    part: ShownPart | None = None  # what it shows, or would have shown
    owed: bool = False  # it was its source's turn, not its own
    repeats: bool = False  # only the question, so that its score was lowered
    superseded: bool = False  # what it says holds no more, so that its score was lowered
    copy_of: ChunkId | None = None  # a candidate before it, which says all that it says
    joined_to: ChunkId | None = None  # a candidate before it, whose hit shows its lines, too

    @property
    def window(self) -> Window | None:
        """The same, as it is read."""
        return None if self.part is None else self.part.window


Found = Iterable[tuple[Scored, StoredChunk]]


def hits(found: Sequence[Found], query: Query, min_score: float, max_chars: int) -> Iterator[FoundHit]:
    """The hits of a question, one at a time, so that asking for more only appends. See verdicts."""
    return (
        verdict.hit for verdict in verdicts(found, query, min_score, max_chars) if verdict.hit is not None
    )


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
    """Decide about candidates, one at a time, by what was shown before.

    Lines that an earlier hit shows are not shown again: a chunk that overlaps one gives its other lines, and none where
    it has no other. A text that stands in several places is shown once, and a turn of several sessions likewise: the latest of
    those that say the same, in the place of the best. After two hits of one source the next is of
    another, while that has any: notes and sessions tell different things, and there is more of one than of the other. What
    only repeats the question comes after what may answer it, and its score is lowered; so is that of what holds no more.

    Args:
        found: Of each source its candidates with their chunks, the best first; read only as far as verdicts are taken.
        query: What was asked.
        min_score: The least score of a hit.
        max_chars: The most characters of a hit.
        weak: Whether all hits are marked as shown for want of better; what only repeats the question always is.
        latest: Whether the question may be about what is so now: then the latest copy is shown, and what holds no more is lowered.
        least: What scores less gets no verdict, and is only looked at as a copy of what scores more.
    """
    shown = ShownLines()
    shown_texts: set[str] = set()
    shown_words: list[Said] = []
    heard_lines: set[str] = set()  # the lines of transcripts that were shown
    repeats = QuestionEchoes(query)
    lanes = [_Lane(iter(candidates), repeats, query if latest else None, least) for candidates in found]
    last: list[_Lane] = []  # of the last hits, at most as many as may follow each other
    while best := [lane for lane in lanes if lane.head() is not None]:
        best = [lane for lane in best if not lane.repeats()] or best
        others = [lane for lane in best if len(last) < IN_A_ROW or lane is not last[0]] or best
        lane = min(others, key=_Lane.order)
        owed = lane is not min(best, key=_Lane.order)
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
            # What another file has shown counts as shown of this one: a copy goes on with what comes next.
            shown.add(chunk, part)
            same = " ".join(part.window.text.split())
            # A session that was forked repeats the turns of the one before it: who said what and when, line by line.
            turn_lines = _lines(part.window.text) if chunk.kind.is_session else frozenset()
            words = Said(part.window.text)
            if (
                same in shown_texts
                or (turn_lines and turn_lines <= heard_lines)
                or any(one.covers(words) for one in shown_words)
            ):
                cut = "duplicate"
            else:
                shown_texts.add(same)
                shown_words.append(words)
                heard_lines |= turn_lines
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


def _may_be_copies(one: Scored, other: Scored) -> bool:
    """Whether two texts may say the same: with the words of the question, and about as close to it."""
    if abs(one.share - other.share) > _SHARES_APART:
        return False
    if one.part is not None and other.part is not None:
        return abs(one.part - other.part) <= _PARTS_APART
    return one.cosine is None or other.cosine is None or abs(one.cosine - other.cosine) <= _COSINES_APART


def _place(chunk: StoredChunk) -> str:
    return f"{chunk.path}#L{chunk.start_line}-L{chunk.end_line}"


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


class _Next(msgspec.Struct, frozen=True, order=True):
    """A candidate of a lane, by its place in the order."""

    place: tuple[float, float, str, int, int]
    scored: Scored
    chunk: StoredChunk
    repeats: bool
    superseded: bool

    @property
    def is_lowered(self) -> bool:
        """Whether what comes after it may go before it."""
        return self.repeats or self.superseded


class _Lane:
    """The candidates of one source, read when they are wanted."""

    def __init__(
        self,
        candidates: Iterator[tuple[Scored, StoredChunk]],
        repeats: QuestionEchoes,
        query: Query | None,
        least: float,
    ) -> None:
        self._candidates = candidates
        self._repeats = repeats
        self._query = query  # None: it asks for what was
        self._least = least
        self._ahead: deque[tuple[Scored, StoredChunk]] = deque()  # compared with those before them
        self._said: dict[StoredChunk, Said] = {}
        # A heap: the next that may answer, and those before it that were lowered.
        self._read: list[_Next] = []
        self._is_done = False

    def head(self) -> Scored | None:
        """The next candidate; None: there is none."""
        # A lowered one is next once one that may answer is there to be compared with.
        while not self._is_done and all(one.is_lowered for one in self._read):
            self._read_on()
        return self._read[0].scored if self._read else None

    def repeats(self) -> bool:
        """Whether the next candidate only repeats the question; there is one."""
        return self._read[0].repeats

    def is_superseded(self) -> bool:
        """Whether the next candidate holds no more, and was lowered; there is one."""
        return self._read[0].superseded

    def order(self) -> tuple[float, float, str, int, int]:
        """What puts the next candidates of all sources in order, as fuse does."""
        return self._read[0].place

    def take(self) -> tuple[Scored, StoredChunk]:
        """The next candidate, which is not the next any more."""
        taken = heappop(self._read)
        return taken.scored, taken.chunk

    def latest_of_copies(
        self, scored: Scored, chunk: StoredChunk, *, is_latest: bool
    ) -> tuple[tuple[Scored, StoredChunk], list[tuple[Scored, StoredChunk]]]:
        """What to show in the place of a candidate, and the copies of it that are not to be shown.

        Args:
            scored: The candidate, which was taken.
            chunk: Its chunk.
            is_latest: Whether the latest copy takes its place, if it says all that the candidate says.
        """
        self._look_ahead()
        waiting = [(one.scored, one.chunk) for one in self._read if not one.repeats] + list(self._ahead)
        likely = [
            pair for pair in waiting if pair[0].score >= WORTH_READING and _may_be_copies(pair[0], scored)
        ]
        if not likely:
            return (scored, chunk), []
        own = self._said_by(chunk)
        alike = [
            (one, other)
            for one, other in likely
            if (words := self._said_by(other)).covers(own) or own.covers(words)
        ]
        if not alike:
            return (scored, chunk), []
        first = (scored, chunk)
        if is_latest:
            able = [first, *(pair for pair in alike if self._said_by(pair[1]).covers(own))]
            first = max(able, key=lambda pair: later(pair[1]))
        shown = self._said_by(first[1])
        copies = [
            pair
            for pair in [(scored, chunk), *alike]
            if pair[1] is not first[1] and shown.covers(self._said_by(pair[1]))
        ]
        gone = {first[1], *(other for _, other in copies)}
        self._read = [one for one in self._read if one.chunk not in gone]
        heapify(self._read)
        self._ahead = deque(pair for pair in self._ahead if pair[1] not in gone)
        if first[1] is not chunk:
            first = (msgspec.structs.replace(first[0], score=scored.score, older=scored), first[1])
        return first, copies

    def _said_by(self, chunk: StoredChunk) -> Said:
        if chunk not in self._said:
            self._said[chunk] = Said(chunk.text)
        return self._said[chunk]

    def _read_on(self) -> None:
        pair = self._ahead.popleft() if self._ahead else next(self._candidates, None)
        if pair is None or pair[0].score < self._least:
            self._is_done = True
            return
        scored, chunk = pair
        repeats = self._repeats.only_repeats(chunk)
        superseded = (
            not repeats and self._query is not None and is_superseded(chunk, self._query, scored.closest)
        )
        one = lowered(scored) if repeats else scored
        if superseded:
            self._look_ahead()
            follow = (other for other, its in self._ahead if replaces(its.path, chunk))
            one = set_behind(scored, next((other for other in follow if other.score >= WORTH_READING), None))
        heappush(self._read, _Next(place_in_order(one), one, chunk, repeats, superseded))

    def _look_ahead(self) -> None:
        self._ahead.extend(islice(self._candidates, max(0, AHEAD - len(self._ahead))))
