"""An inverted index in memory that ranks as the keyword index does. Pure, but for the chunks that it is made of.

FTS5 scores every row that holds any phrase of an OR, row by row: at 100,000 chunks a hundred milliseconds. Here the
postings of each term are arrays, and a question takes one pass over those of its terms. Scores, document frequencies
and order are those of FTS5 to the last digit: the same numbers are added in the same order.

A term is a word, as FTS5's tokenizer has it, or two adjacent tokens of which the second is a CJK character and the
first one, too, or a number: the pairs that a question in such a script consists of. Other phrases are asked of FTS5.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, pairwise
from typing import Any

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind, SearchFilter
from memd.store.errors import StoreDamaged
from memd.store.vector_matrix import DEAD, distinct, lookup, places_among
from memd.text.tokens import WORD_CHARACTER, fts_text, is_cjk
from memd.text.writing_systems import ScriptShares

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Rows = NDArray[np.bool_]  # of each whether it is meant

BATCH = 500  # chunks that are read at once: a few ten milliseconds

# As FTS5 has them: sqlite.org/fts5.html, "The bm25() function".
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6

_TOKEN = re.compile(f"{WORD_CHARACTER}+")
_ROW_BITS, _CODE_BITS = 11, 24  # of a row in a batch, and of a word in the codes of a TermReader
_MOST_WORDS = 200_000  # that a TermReader keeps between two batches
_CLASS, _DIGITS, _CJK, _PAIR = 3, 1, 2, 3  # the two lowest bits of a key; 0: another word
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # odd, of random bits
_SOURCES = sorted({kind.source for kind in Kind})
_BLOCK = 64  # rows whose largest score is compared first
# In the place of a first and a last second, so that no bound lets them through: nothing in the file says of when a chunk is.
_UNDATED = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)
_STEP = 1 << 16  # postings that are copied at once, or one term's
_GROWTH = 4  # a segment is merged into the one before it, unless that is so many times as long


class ChunkText(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk as the keyword index reads it."""

    id: ChunkId
    kind: Kind
    text: str
    context: str
    file_id: int = 0
    first_s: int | None = None  # of when it is, see TimeSpan.as_seconds; None: nothing in its file says
    last_s: int | None = None
    scripts: dict[str, float] = {}  # see writing_systems.scripts


class Occurrences(msgspec.Struct, frozen=True):
    """The chunks that hold a phrase."""

    rows: NDArray[Any]  # (n,) unsigned, ascending
    counts: NDArray[Any]  # (n,) unsigned: how often each holds it


class Segment(msgspec.Struct, frozen=True):
    """The postings of some chunks, by term."""

    keys: Keys  # of the terms, ascending
    starts: Ints  # (terms + 1,): the postings of term n are [starts[n]:starts[n + 1]]
    rows: NDArray[np.uint32]  # ascending within a term
    counts: NDArray[Any]  # unsigned, as small as they fit

    def __len__(self) -> int:
        return len(self.rows)


class ChunkFacts(msgspec.Struct, frozen=True):
    """What a search has to know of many chunks."""

    kinds: NDArray[np.int8]  # of their files; DEAD: the chunk is gone
    times: Ints  # (n, 2): of when they are, in seconds

    @classmethod
    def of(cls, found: Sequence[tuple[Kind, int | None, int | None] | None]) -> "ChunkFacts":
        """The facts of chunks, each its kind and its first and last second; None: the chunk is gone."""
        return cls(
            np.array([DEAD if one is None else one[0] for one in found], np.int8),
            np.array([_UNDATED if one is None else _seconds(*one[1:]) for one in found]).reshape(-1, 2),
        )

    def are_of(self, first_s: int, last_s: int) -> Rows:
        """Which are of a time; of those whose file does not say when they are, none."""
        first, last = self.times.T
        are: Rows = (first <= last_s) & (last >= first_s)
        return are


class Hits(msgspec.Struct, frozen=True):
    """The best chunks for some phrases."""

    ids: list[ChunkId]  # best first
    scores: list[float]
    held: list[bytes]  # of each the phrases that it holds: their indexes, ascending
    frequencies: list[int]  # of each phrase: how many chunks hold it


class TermReader:
    """Reads texts as terms. The keys of terms are of this process alone: they are hashes of 62 bits."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Read with the tokenizer of a connection, while it is open."""
        self._tokenizer = connection.fts5_tokenizer("porter", ["ascii"])
        self._code_of: dict[str, int] = {}  # of a word
        self._code_of_stem: dict[str, int] = {}
        self._keys: list[int] = []  # by code

    def keys_of(self, phrases: Sequence[str]) -> list[np.uint64 | None]:
        """The keys of phrases that are terms; None: one is none."""
        words = [_TOKEN.findall(fts_text(phrase)) for phrase in phrases]
        stems = iter(self._stems(chain.from_iterable(words)))
        # A phrase of one word is given a second one, which no key of a pair is made with.
        keys = np.array(
            [([_key(next(stems)) for _ in some] + [0, 0])[:2] for some in words], np.uint64
        ).reshape(-1, 2)
        first, second = keys.T
        pairs, are_pairs = _paired(first, second), _are_pairs(first, second)
        found: list[np.uint64 | None] = []
        for number, some in enumerate(words):
            is_pair = len(some) == 2 and are_pairs[number]
            found.append(pairs[number] if is_pair else first[number] if len(some) == 1 else None)
        return found

    def keys_of_words(self, words: Sequence[str]) -> Keys:
        """The keys of words, each as fts_text has it: a single one."""
        return np.fromiter(map(_key, self._stems(words)), np.uint64, len(words))

    def terms(self, columns: Sequence[str]) -> tuple[dict[str, list[int]], int]:
        """The terms of a chunk with their places, and how many tokens it has.

        A pair of adjacent tokens that is a term is written with a space between; its places are those of the first. No
        phrase goes on from one column to the next.

        Args:
            columns: What is indexed of the chunk.
        """
        found: dict[str, list[int]] = {}
        place = 0
        tokens = 0
        for column in columns:
            stems = self._stems(_TOKEN.findall(fts_text(column)))
            tokens += len(stems)
            for number, stem in enumerate(stems):
                found.setdefault(stem, []).append(place + number)
            for number, (first, second) in enumerate(pairwise(stems)):
                if is_pair(first, second):
                    found.setdefault(f"{first} {second}", []).append(place + number)
            place += len(stems) + 1
        return found, tokens

    def stems(self, phrase: str) -> list[str]:
        """The words of a phrase, as an index has them."""
        return self._stems(_TOKEN.findall(fts_text(phrase)))

    def segment(self, chunks: Sequence[ChunkText], first_row: int) -> tuple[Segment, Ints]:
        """The postings of at most BATCH chunks, and how many tokens each of them has."""
        if len(self._code_of) > _MOST_WORDS:
            self._code_of.clear()
            self._code_of_stem.clear()
            self._keys.clear()
        columns = [_TOKEN.findall(fts_text(column)) for one in chunks for column in (one.text, one.context)]
        sizes = np.fromiter(map(len, columns), np.int64, len(columns))
        words = list(chain.from_iterable(columns))
        self._learn(set(words) - self._code_of.keys())
        codes = np.fromiter(map(self._code_of.__getitem__, words), np.uint64, len(words))
        column = np.repeat(np.arange(len(columns), dtype=np.uint64), sizes)
        keys = np.array(self._keys, np.uint64)
        of_words = keys[codes]
        is_pair = _are_pairs(of_words[:-1], of_words[1:]) & (column[1:] == column[:-1])
        first, second, row = codes[:-1][is_pair], codes[1:][is_pair], column[1:][is_pair] >> np.uint64(1)
        shift = np.uint64(_ROW_BITS)
        paired = np.uint64(1 << (2 * _CODE_BITS)) | first << np.uint64(_CODE_BITS) | second
        found = np.sort(np.concatenate((codes << shift | column >> np.uint64(1), paired << shift | row)))
        segment = _segment_of(found, keys, first_row)
        return segment, sizes[::2] + sizes[1::2]

    def _stems(self, words: Iterable[str]) -> list[str]:
        found: list[str] = self._tokenizer(
            " ".join(words).encode(),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )  # type: ignore[assignment]  # apsw types it by its arguments
        return found

    def _learn(self, words: Collection[str]) -> None:
        known = list(words)
        for word, stem in zip(known, self._stems(known), strict=True):
            code = self._code_of_stem.setdefault(stem, len(self._keys))
            if code == len(self._keys):
                self._keys.append(_key(stem))
            self._code_of[word] = code


def is_pair(first: str, second: str) -> bool:
    """Whether two adjacent tokens make a term."""
    return _class_of(second) == _CJK and _class_of(first) != 0


def _class_of(stem: str) -> int:
    return _DIGITS if stem.isdigit() else _CJK if len(stem) == 1 and is_cjk(stem) else 0


def _key(stem: str) -> int:
    kind = _class_of(stem)
    return (hash(stem) & 0xFFFFFFFFFFFFFFFF) >> 2 << 2 | kind


def _are_pairs(first: Keys, second: Keys) -> NDArray[np.bool_]:
    """Whether words make terms with those after them."""
    are: NDArray[np.bool_] = (second & np.uint64(_CLASS) == _CJK) & (first & np.uint64(_CLASS) != 0)
    return are


def _paired(first: Keys, second: Keys) -> Keys:
    """The keys of pairs."""
    mixed = first * _FIRST ^ (second * _SECOND >> np.uint64(7))
    return mixed * _FIRST | np.uint64(_PAIR)


def _segment_of(found: Keys, keys: Keys, first_row: int) -> Segment:
    """A segment of what was found: for each token and each pair its codes with its row, ascending."""
    begins = _beginnings(found)
    counts = np.diff(np.append(begins, len(found)))
    distinct = found[begins]
    rows = (distinct & np.uint64((1 << _ROW_BITS) - 1)).astype(np.uint32) + np.uint32(first_row)
    codes = distinct >> np.uint64(_ROW_BITS)
    starts = _beginnings(codes)
    sizes = np.diff(np.append(starts, len(codes)))
    terms = codes[starts]
    code = np.uint64((1 << _CODE_BITS) - 1)
    second = keys[terms & code] if len(keys) else np.empty(0, np.uint64)
    is_pair = terms >> np.uint64(2 * _CODE_BITS) > 0
    second[is_pair] = _paired(keys[terms[is_pair] >> np.uint64(_CODE_BITS) & code], second[is_pair])
    order = np.argsort(second)
    at = _places(starts[order], sizes[order])
    return Segment(second[order], _starts(sizes[order]), rows[at], _small(counts[at]))


def _beginnings(values: Keys) -> Ints:
    """Where another value begins, in an array of equal ones beside each other."""
    return np.flatnonzero(np.concatenate((np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1])))


def _starts(sizes: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def _places(starts: Ints, sizes: Ints) -> Ints:
    """The places of stretches that begin at starts, one after the other."""
    return np.arange(int(sizes.sum())) + np.repeat(starts - _starts(sizes)[:-1], sizes)


def _small(counts: NDArray[Any]) -> NDArray[Any]:
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def merged(segments: Sequence[Segment]) -> Segment:
    """One segment of several, whose rows follow each other in the same order."""
    keys = np.concatenate([one.keys for one in segments])
    keys.sort()
    keys = keys[_beginnings(keys)]
    sizes = np.zeros(len(keys), np.int64)
    for one in segments:
        sizes[np.searchsorted(keys, one.keys)] += np.diff(one.starts)
    starts = _starts(sizes)
    free = starts[:-1].copy()
    rows = np.empty(int(starts[-1]), np.uint32)
    counts = np.empty(len(rows), np.result_type(*(one.counts.dtype for one in segments)))
    # In short steps: while numpy copies to scattered places, no other thread runs.
    for one in segments:
        steps = np.searchsorted(one.starts, np.arange(0, len(one), _STEP))
        for first, last in pairwise([*distinct(steps).tolist(), len(one.keys)]):
            place = np.searchsorted(keys, one.keys[first:last])
            taken = np.diff(one.starts[first : last + 1])
            at = _places(free[place], taken)
            stretch = slice(one.starts[first], one.starts[last])
            rows[at], counts[at] = one.rows[stretch], one.counts[stretch]
            free[place] += taken
    return Segment(keys, starts, rows, counts)


class Postings(msgspec.Struct, frozen=True):
    """The chunks of an index by row, in the order of their ids, with their postings: one state, which nothing changes."""

    ids: Ints  # ascending
    kinds: NDArray[np.int8]  # DEAD: the chunk is gone
    lengths: Doubles  # in tokens
    files: Ints  # the ids of their files
    times: Ints  # (n, 2): of when they are, in seconds
    scripts: ScriptShares  # of their texts
    segments: tuple[Segment, ...] = ()
    kinds_held: frozenset[Kind] = frozenset()  # those of all its chunks, and maybe of some that are gone
    dead: int = 0

    @classmethod
    def empty(cls) -> "Postings":
        """Those of no chunk."""
        none = np.empty(0, np.int64)
        times = none.reshape(0, 2)
        return cls(none, np.empty(0, np.int8), np.empty(0, np.float64), none, times, ScriptShares.of(()))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def last_id(self) -> int:
        """The id of the newest chunk that is in it."""
        return int(self.ids[-1]) if len(self) else 0

    @property
    def resident_bytes(self) -> int:
        """Memory that it takes."""
        arrays: list[NDArray[Any]] = [
            self.ids,
            self.kinds,
            self.lengths,
            self.files,
            self.times,
            self.scripts.shares,
        ]
        for segment in self.segments:
            arrays += [segment.keys, segment.starts, segment.rows, segment.counts]
        return sum(array.nbytes for array in arrays)

    def with_chunks(
        self, chunks: Sequence[ChunkText], reader: TermReader, *, merges: bool = True
    ) -> "Postings":
        """With at most BATCH more chunks, whose ids ascend and are larger than all before.

        Args:
            chunks: What is added.
            reader: Reads them.
            merges: Whether segments are put together, so that there are a few at any time.
        """
        if not chunks:
            return self
        segment, lengths = reader.segment(chunks, len(self))
        segments = [*self.segments, segment]
        while merges and len(segments) > 1 and _GROWTH * len(segments[-1]) > len(segments[-2]):
            segments[-2:] = [merged(segments[-2:])]
        return Postings(
            np.append(self.ids, [one.id for one in chunks]),
            np.append(self.kinds, np.array([one.kind for one in chunks], np.int8)),
            np.append(self.lengths, lengths),
            np.append(self.files, [one.file_id for one in chunks]),
            np.concatenate((self.times, [_seconds(one.first_s, one.last_s) for one in chunks])),
            self.scripts.followed_by(ScriptShares.of([one.scripts for one in chunks])),
            tuple(segments),
            self.kinds_held.union(one.kind for one in chunks),
            self.dead,
        )

    def put_together(self) -> "Postings":
        """With one segment for all."""
        if len(self.segments) < 2:
            return self
        return msgspec.structs.replace(self, segments=(merged(self.segments),))

    def without(self, chunk_ids: Iterable[ChunkId]) -> "Postings":
        """Without some chunks; those that it has not are passed over."""
        rows = self._rows_of(np.array(list(chunk_ids), np.int64))
        if not len(rows):
            return self
        kinds = self.kinds.copy()
        kinds[rows] = DEAD
        return msgspec.structs.replace(self, kinds=kinds, dead=int((kinds == DEAD).sum()))

    def dated(self, times: Mapping[ChunkId, tuple[int | None, int | None]]) -> "Postings":
        """With other times of some chunks; those that it has not are passed over."""
        at, is_here = places_among(self.ids, np.fromiter(times, np.int64, len(times)))
        if not is_here.any():
            return self
        changed = self.times.copy()
        changed[at[is_here]] = np.array([_seconds(*one) for one in times.values()])[is_here]
        return msgspec.structs.replace(self, times=changed)

    def facts(self, chunk_ids: Ints) -> ChunkFacts:
        """What is known of chunks."""
        rows, is_here = places_among(self.ids, chunk_ids)
        return ChunkFacts(np.where(is_here, self.kinds[rows], DEAD).astype(np.int8), self.times[rows])

    def foreign(self, chunk_ids: Ints, question: Mapping[str, float]) -> Doubles:
        """How foreign chunks that are here are to the scripts of a question; see ScriptShares.foreign_to."""
        return self.scripts.some(places_among(self.ids, chunk_ids)[0]).foreign_to(question)

    def let_through(self, wanted: SearchFilter, files: Ints | None, undated: Ints) -> Rows:
        """Which rows a filter lets through, among them rows of chunks that are gone.

        Args:
            wanted: The filter.
            files: The ids of the files that meet all of it but its time; None: every file does.
            undated: Those of the files that are of its time by when they were written.
        """
        is_through = (
            np.ones(len(self), np.bool_) if files is None else places_among(np.sort(files), self.files)[1]
        )
        if wanted.has_time:
            until_s, since_s = _seconds(wanted.until_s, wanted.since_s)
            is_of_time = ChunkFacts(self.kinds, self.times).are_of(since_s, until_s)
            if len(undated):
                is_undated = self.times[:, 0] == _UNDATED[0]
                is_of_time |= is_undated & places_among(np.sort(undated), self.files)[1]
            is_through &= is_of_time
        return is_through

    def _rows_of(self, chunk_ids: Ints) -> Ints:
        rows, is_here = places_among(self.ids, chunk_ids)
        return rows[is_here]

    def of_term(self, key: np.uint64) -> Occurrences:
        """Where a term occurs, in chunks that are gone, too."""
        rows: list[NDArray[Any]] = []
        counts: list[NDArray[Any]] = []
        for segment in self.segments:
            at = int(np.searchsorted(segment.keys, key))
            if at < len(segment.keys) and segment.keys[at] == key:
                start, end = segment.starts[at], segment.starts[at + 1]
                rows.append(segment.rows[start:end])
                counts.append(segment.counts[start:end])
        return _joined(rows, counts)

    def holders(self, keys: Keys, kinds: Collection[Kind], most: int) -> list[Sequence[ChunkId]]:
        """Of each term the first chunks of some kinds that hold it.

        Args:
            keys: Of the terms.
            kinds: Of files.
            most: How many chunks of a term at most.
        """
        is_meant = lookup(kinds)
        found: list[list[ChunkId]] = [[] for _ in keys]
        for segment in self.segments:  # their rows follow each other
            at = np.minimum(np.searchsorted(segment.keys, keys), len(segment.keys) - 1)
            for number in np.flatnonzero(segment.keys[at] == keys).tolist():
                start, end = segment.starts[at[number]], segment.starts[at[number] + 1]
                left = most - len(found[number])
                for first in range(start, end, _BLOCK):
                    if left <= 0:
                        break
                    rows = segment.rows[first : min(end, first + _BLOCK)]
                    some = self.ids[rows[is_meant[self.kinds[rows]]]][:left].tolist()
                    found[number] += some
                    left -= len(some)
        return list(found)

    def of_chunks(self, found: Sequence[tuple[int, int]]) -> Occurrences:
        """What FTS5 found of a phrase, as (chunk id, how often); chunks that it has not are passed over."""
        ids, counts = np.array(found, np.int64).reshape(-1, 2).T
        order = np.argsort(ids)
        ids, counts = ids[order], counts[order]
        rows, is_here = places_among(self.ids, ids)
        return Occurrences(rows[is_here].astype(np.uint32), counts[is_here])

    def best(
        self,
        phrases: Sequence[Occurrences],
        limit: int,
        kinds: Collection[Kind],
        average_length: float,
        among: Sequence[Rows | None] = (None,),
        chunks: int | None = None,
    ) -> Hits:
        """The chunks with the best bm25.

        Args:
            phrases: What is looked for, in the order in which FTS5 adds up their scores.
            limit: How many of each source at most.
            kinds: Only chunks of files of these kinds take part.
            average_length: Of all chunks, as FTS5 has it.
            among: The best of these rows and of those are found, and so on; None: of all.
            chunks: How many there are, with those that hold no phrase and are not here; None: these are all.
        """
        alive = self.kinds != DEAD if self.dead else None
        frequencies = [
            len(one.rows) if alive is None else int(np.count_nonzero(alive[one.rows])) for one in phrases
        ]
        of_all = len(self) - self.dead if chunks is None else chunks
        scores = self._scores(phrases, frequencies, average_length, of_all)
        visible = [self._visible(scores, some) for some in self._by_source(kinds)]
        found = [
            _top(some if rows is None else np.where(rows, some, 0.0), limit)
            for some in visible
            for rows in among
        ]
        rows = np.concatenate(found) if found else np.empty(0, np.int64)
        if len(among) > 1:
            rows = distinct(rows)
        rows = rows[np.lexsort((rows, -scores[rows]))]
        return Hits(self.ids[rows].tolist(), scores[rows].tolist(), _held(phrases, rows), frequencies)

    def _scores(
        self,
        phrases: Sequence[Occurrences],
        frequencies: Sequence[int],
        average_length: float,
        chunks: int,
    ) -> Doubles:
        """The bm25 of every row; 0: it holds no phrase. The additions are those of FTS5, in its order."""
        together = _joined([one.rows for one in phrases], [one.counts for one in phrases])
        idfs = [max(math.log((chunks - n + 0.5) / (n + 0.5)), 0.0) or _LEAST_IDF for n in frequencies]
        if not len(together.rows):
            return np.zeros(len(self))
        often = together.counts.astype(np.float64)
        bound = _K1 * ((1 - _B) + _B * self.lengths / average_length)
        parts = bound[together.rows]
        parts += often
        often *= _K1 + 1.0
        often /= parts
        often *= np.repeat(idfs, [len(one.rows) for one in phrases])
        scores: Doubles = np.bincount(together.rows, often, len(self)).astype(np.float64, copy=False)
        return scores

    def _by_source(self, kinds: Collection[Kind]) -> list[frozenset[Kind]]:
        here = self.kinds_held & frozenset(kinds)
        some = [frozenset(kind for kind in here if kind.source == source) for source in _SOURCES]
        return [one for one in some if one]

    def _visible(self, scores: Doubles, kinds: frozenset[Kind]) -> Doubles:
        if not self.dead and self.kinds_held == kinds:
            return scores
        return np.where(lookup(kinds)[self.kinds], scores, 0.0)


def _seconds(first_s: int | None, last_s: int | None) -> tuple[int, int]:
    return (_UNDATED[0] if first_s is None else first_s, _UNDATED[1] if last_s is None else last_s)


def _joined(rows: Sequence[NDArray[Any]], counts: Sequence[NDArray[Any]]) -> Occurrences:
    if len(rows) == 1:
        return Occurrences(rows[0], counts[0])
    return Occurrences(
        np.concatenate(rows or [np.empty(0, np.uint32)]), np.concatenate(counts or [np.empty(0, np.uint8)])
    )


def _top(scores: Doubles, limit: int) -> Ints:
    """The rows of the largest scores above 0, in no order; of equal ones the first."""
    # As many blocks as are wanted have one row of at least this score: few rows have to be sorted.
    whole = len(scores) // _BLOCK * _BLOCK
    largest = np.append(scores[:whole].reshape(-1, _BLOCK).max(axis=1), scores[whole:].max(initial=0.0))
    least = float(np.partition(largest, -limit)[-limit]) if len(largest) > limit else 0.0
    rows = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    return rows if len(rows) <= limit else rows[np.lexsort((rows, -scores[rows]))[:limit]]


def _held(phrases: Sequence[Occurrences], rows: Ints) -> list[bytes]:
    """Of each row the phrases that it holds."""
    holds = np.zeros((len(rows), len(phrases)), np.bool_)
    for number, phrase in enumerate(phrases):
        if len(phrase.rows):
            at = np.minimum(np.searchsorted(phrase.rows, rows), len(phrase.rows) - 1)
            holds[:, number] = phrase.rows[at] == rows
    packed = np.packbits(holds, axis=1)  # most rows hold what another one does
    keys: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist() if packed.size else []
    first = {key: row for row, key in enumerate(keys)}
    numbers = range(len(phrases))
    held = {
        key: bytes(compress(numbers, some))
        for key, some in zip(first, holds[list(first.values())].tolist(), strict=True)
    }
    return [held[key] for key in keys]


def average_length(connection: apsw.Connection) -> float:
    """The average number of tokens of a chunk, as FTS5 keeps it: what was taken out still counts in the sum.

    Source: fts5_index.c, "the averages record": varints, the number of rows and the tokens of each column.

    Raises:
        StoreDamaged: there is no such record.
    """
    row = connection.execute("SELECT block FROM keywords_data WHERE id = 1").fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise StoreDamaged("the keyword index does not tell how long its chunks are")
    chunks, *tokens = _varints(row[0]) or [0]  # nothing was ever written
    return sum(tokens) / chunks if chunks else 1.0


def _varints(data: bytes) -> list[int]:
    """Numbers as SQLite writes them: seven bits a byte, the highest first; the ninth byte has eight."""
    numbers: list[int] = []
    value = size = 0
    for byte in data:
        size += 1
        value = value << 8 | byte if size == 9 else value << 7 | byte & 0x7F
        if size == 9 or byte < 0x80:
            numbers.append(value)
            value = size = 0
    return numbers


Ask = Callable[[str], Sequence[tuple[int, int]]]


def occurrences(
    postings: Postings, phrases: Sequence[str], reader: TermReader, ask: Ask
) -> list[Occurrences]:
    """Where each phrase occurs.

    Args:
        postings: Where to look.
        phrases: Without quotes.
        reader: Reads them.
        ask: Asks FTS5 for a phrase that is no term.
    """
    return [
        postings.of_chunks(ask(phrase)) if key is None else postings.of_term(key)
        for key, phrase in zip(reader.keys_of(phrases), phrases, strict=True)
    ]
