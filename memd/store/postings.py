"""An in-memory inverted index with the same ranking as the FTS5 keyword index. Pure, except for reading its chunks.

FTS5 scores each row that holds any phrase of an OR, row by row: a hundred milliseconds for 100,000 chunks. Here, the
postings of each term are arrays, and a search adds up those of its terms. Scores, document frequencies and order equal those
of FTS5 to the last digit, because the same numbers are added in the same order.

A term is a word of FTS5's tokenizer, or a pair of adjacent tokens of which the second is a CJK character and the first a CJK
character or a number: questions in CJK scripts consist of such pairs. Other phrases are looked up in FTS5.
"""

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, islice, pairwise
from typing import Any, ClassVar, TypeVar

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind, SearchFilter
from memd.store.errors import StoreDamaged
from memd.store.vector_matrix import DEAD, distinct, lookup, places_among
from memd.text.tokens import is_cjk, words_of
from memd.text.writing_systems import ScriptShares

Keys = NDArray[np.uint64]
OneOrMore = TypeVar("OneOrMore", int, Keys)
Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Rows = NDArray[np.bool_]  # a mask of rows

BATCH = 500  # chunks that are read in one step, in a few ten milliseconds

# The constants of FTS5: sqlite.org/fts5.html, "The bm25() function".
K1, B = 1.2, 0.75
_LEAST_IDF = 1e-6

_ROW_BITS, _CODE_BITS = 11, 24  # for a row in a batch, and for a word in the codes of a TermReader
_MOST_WORDS = 200_000  # kept by a TermReader from one batch to the next
_MOST_PHRASES = 8_192  # whose keys are kept for all of them, in a MB
# The two lowest bits of a key: the class of the term; 0: another word.
_CLASS, _DIGITS, _CJK, _PAIR = 3, 1, 2, 3
_FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # odd, of random bits
_KEY_BITS = 0xFFFFFFFFFFFFFFFF
_SOURCES = sorted({kind.source for kind in Kind})
_BLOCK = 64  # rows per block; the largest scores of blocks are compared first
# The times of a chunk that is not dated: an interval that overlaps no other.
_UNDATED = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)
_STEP = 1 << 16  # postings that are copied in one step, or those of one term
_GROWTH = 4  # a segment is merged into the previous one if that is less than this many times as long
_MOST_ROWS = 1 << 16  # of a segment, so that two bytes tell a row of it


class ChunkText(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The text of a chunk that the keyword index reads."""

    id: ChunkId
    kind: Kind
    text: str
    context: str
    file_id: int = 0
    first_s: int | None = None  # see TimeSpan.as_seconds; None: not dated
    last_s: int | None = None
    scripts: dict[str, float] = {}  # see writing_systems.scripts


class Occurrences(msgspec.Struct, frozen=True):
    """The chunks that hold a phrase, and how often."""

    rows: NDArray[np.uint32]  # (n,), ascending
    counts: NDArray[Any]  # (n,) unsigned: the occurrences in each row


class Segment(msgspec.Struct, frozen=True):
    """The postings of at most _MOST_ROWS consecutive chunks, by term."""

    first: int  # the row of the first chunk
    keys: Keys  # of the terms, ascending
    starts: NDArray[np.uint32]  # (terms + 1,): the postings of term n are [starts[n]:starts[n + 1]]
    rows: NDArray[np.uint16]  # counted from the first chunk; ascending within a term
    counts: NDArray[Any]  # unsigned, of the smallest sufficient type

    def __len__(self) -> int:
        return len(self.rows)

    def sizes(self) -> Ints:
        """Return the number of postings of each term."""
        starts = self.starts.astype(np.int64)
        return starts[1:] - starts[:-1]


class ChunkFacts(msgspec.Struct, frozen=True):
    """The kinds and times of chunks, as arrays."""

    kinds: NDArray[np.int8]  # of their files; DEAD: the chunk is deleted
    times: Ints  # (n, 2): first and last second

    @classmethod
    def of(cls, found: Sequence[tuple[Kind, int | None, int | None] | None]) -> "ChunkFacts":
        """Create the facts from (kind, first second, last second) of each chunk; None: it is deleted."""
        return cls(
            np.array([DEAD if one is None else one[0] for one in found], np.int8),
            np.array([_UNDATED if one is None else _seconds(*one[1:]) for one in found]).reshape(-1, 2),
        )

    def are_of(self, first_s: int, last_s: int) -> Rows:
        """Return which chunks overlap a time; undated ones do not."""
        first, last = self.times.T
        are: Rows = (first <= last_s) & (last >= first_s)
        return are

    def within(self, first_s: int, last_s: int) -> NDArray[np.float64]:
        """Return for each chunk the part of its time, 0..1, that lies within a time; 0 for undated ones."""
        # The bounds of an undated chunk are too far apart for integers.
        first, last = self.times.T.astype(np.float64)
        shared = np.minimum(last, last_s) - np.maximum(first, first_s) + 1
        within: NDArray[np.float64] = np.maximum(0.0, shared) / np.maximum(1.0, last - first + 1)
        return within


class Hits(msgspec.Struct, frozen=True):
    """The best chunks for some phrases."""

    ids: list[ChunkId]  # best first
    scores: list[float]
    held: list[bytes]  # for each chunk, the ascending indexes of the phrases that it holds
    frequencies: list[int]  # for each phrase, the number of visible chunks that hold it


class TermReader:
    """Splits texts into terms. Keys of terms are 62-bit hashes that are valid in this process only."""

    # The keys of phrases: many questions and synonyms have the same terms.
    key_of_phrase: ClassVar[dict[str, np.uint64 | None]] = {}

    def __init__(self, connection: apsw.Connection) -> None:
        """Use the tokenizer of a connection, which must stay open."""
        self._tokenizer = connection.fts5_tokenizer("porter", ["ascii"])
        self._code_of: dict[str, int] = {}  # of a word
        self._code_of_stem: dict[str, int] = {}
        self._keys = array("Q")  # by code

    def keys_of(self, phrases: Sequence[str]) -> list[np.uint64 | None]:
        """Return the keys of phrases; None for a phrase that is not a term."""
        known = TermReader.key_of_phrase
        unknown = [one for one in phrases if one not in known]
        if unknown and len(known) > _MOST_PHRASES:
            # Another one, since other threads may still read this.
            known = TermReader.key_of_phrase = {}
            unknown = list(phrases)
        if unknown:
            words = [words_of(phrase) for phrase in unknown]
            stems = iter(self._stems(chain.from_iterable(words)))
            known.update(
                {
                    one: _key_of_term(list(islice(stems, len(some))))
                    for one, some in zip(unknown, words, strict=True)
                }
            )
        return [known[one] for one in phrases]

    def keys_of_words(self, words: Sequence[str]) -> Keys:
        """Return the keys of single words, normalised by fts_text."""
        stems = self._stems(words)
        keys = np.fromiter(map(hash, stems), np.int64, len(stems)).view(np.uint64) & ~np.uint64(_CLASS)
        # For a misspelt word there are hundreds: those of two letters or more are of class 0, which one look at all of them tells.
        if not "".join(stems).isalpha() or min(map(len, stems)) < 2:
            for number, kind in enumerate(map(_class_of, stems)):
                keys[number] |= np.uint64(kind)
        return keys

    def terms(self, columns: Sequence[str]) -> tuple[dict[str, list[int]], int]:
        """Return the terms of a chunk with their positions, and its number of tokens.

        A pair is written with a space between, and has the position of its first token. No phrase continues from one column to
        the next.

        Args:
            columns: The indexed texts of the chunk.
        """
        found: dict[str, list[int]] = {}
        place = 0
        tokens = 0
        for column in columns:
            stems = self._stems(words_of(column))
            tokens += len(stems)
            for number, stem in enumerate(stems):
                found.setdefault(stem, []).append(place + number)
            for number, (first, second) in enumerate(pairwise(stems)):
                if is_pair(first, second):
                    found.setdefault(f"{first} {second}", []).append(place + number)
            place += len(stems) + 1
        return found, tokens

    def stems(self, phrase: str) -> list[str]:
        """Return the stemmed words of a phrase."""
        return self._stems(words_of(phrase))

    def stems_of_words(self, words: Sequence[str]) -> list[str]:
        """The stems of words, each as fts_text has it: a single one."""
        return self._stems(words)

    def segment(self, chunks: Sequence[ChunkText], first_row: int) -> tuple[Segment, Ints]:
        """Return the postings of at most BATCH chunks, and the number of tokens of each."""
        if len(self._code_of) > _MOST_WORDS:
            self._code_of.clear()
            self._code_of_stem.clear()
            del self._keys[:]
        columns = [words_of(column) for one in chunks for column in (one.text, one.context)]
        sizes = np.fromiter(map(len, columns), np.int64, len(columns))
        words = list(chain.from_iterable(columns))
        self._learn(set(words).difference(self._code_of))
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
    """Return whether two adjacent tokens are a term."""
    return _class_of(second) == _CJK and _class_of(first) != 0


def _class_of(stem: str) -> int:
    return _DIGITS if stem.isdigit() else _CJK if len(stem) == 1 and is_cjk(stem) else 0


def _key(stem: str) -> int:
    kind = _class_of(stem)
    return (hash(stem) & _KEY_BITS) >> 2 << 2 | kind


def _key_of_term(stems: Sequence[str]) -> np.uint64 | None:
    """Return the key of a term; None: these words are no term."""
    if len(stems) == 2 and is_pair(*stems):
        return np.uint64(_paired(*map(_key, stems)))
    return np.uint64(_key(stems[0])) if len(stems) == 1 else None


def _are_pairs(first: Keys, second: Keys) -> NDArray[np.bool_]:
    """Return which words form a term with the next one."""
    are: NDArray[np.bool_] = (second & np.uint64(_CLASS) == _CJK) & (first & np.uint64(_CLASS) != 0)
    return are


def _paired(first: OneOrMore, second: OneOrMore) -> OneOrMore:
    """Return the key of a pair, or those of pairs."""
    mixed = (first * _FIRST ^ (second * _SECOND & _KEY_BITS) >> 7) & _KEY_BITS
    return mixed * _FIRST & _KEY_BITS | _PAIR  # type: ignore[return-value]  # numpy types a mask of more than 63 bits as signed


def _segment_of(found: Keys, keys: Keys, first_row: int) -> Segment:
    """Create a segment from sorted (code, row) values of all tokens and pairs."""
    begins = run_starts(found)
    counts = np.diff(np.append(begins, len(found)))
    distinct = found[begins]
    rows = (distinct & np.uint64((1 << _ROW_BITS) - 1)).astype(np.uint16)
    codes = distinct >> np.uint64(_ROW_BITS)
    starts = run_starts(codes)
    sizes = np.diff(np.append(starts, len(codes)))
    terms = codes[starts]
    code = np.uint64((1 << _CODE_BITS) - 1)
    second = keys[terms & code] if len(keys) else np.empty(0, np.uint64)
    is_pair = terms >> np.uint64(2 * _CODE_BITS) > 0
    second[is_pair] = _paired(keys[terms[is_pair] >> np.uint64(_CODE_BITS) & code], second[is_pair])
    order = np.argsort(second)
    at = concatenated_ranges(starts[order], sizes[order])
    return _segment(first_row, second[order], _starts(sizes[order]), rows[at], _small(counts[at]))


def _segment(first: int, keys: Keys, starts: Ints, rows: NDArray[np.uint16], counts: NDArray[Any]) -> Segment:
    return Segment(first, keys, starts.astype(np.uint32), rows, counts)


def run_starts(values: NDArray[Any]) -> Ints:
    """Return the indexes at which runs of equal values begin."""
    return np.flatnonzero(np.concatenate((np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1])))


def _starts(sizes: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def concatenated_ranges(starts: Ints, sizes: Ints) -> Ints:
    """Return the concatenated index ranges that begin at `starts`."""
    return np.arange(int(sizes.sum())) + np.repeat(starts - _starts(sizes)[:-1], sizes)


def _small(counts: NDArray[Any]) -> NDArray[Any]:
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def merged(segments: Sequence[Segment]) -> Segment:
    """Merge segments whose rows follow each other in this order, _MOST_ROWS together at most."""
    keys = np.concatenate([one.keys for one in segments])
    keys.sort()
    keys = keys[run_starts(keys)]
    sizes = np.zeros(len(keys), np.int64)
    for one in segments:
        sizes[np.searchsorted(keys, one.keys)] += one.sizes()
    starts = _starts(sizes)
    free = starts[:-1].copy()
    rows = np.empty(int(starts[-1]), np.uint16)
    counts = np.empty(len(rows), np.result_type(*(one.counts.dtype for one in segments)))
    # In short steps: numpy holds the GIL while it copies to scattered positions.
    for one in segments:
        shift, of_terms = np.uint16(one.first - segments[0].first), one.sizes()
        steps = np.searchsorted(one.starts, np.arange(0, len(one), _STEP).astype(np.uint32))
        for first, last in pairwise([*distinct(steps).tolist(), len(one.keys)]):
            place = np.searchsorted(keys, one.keys[first:last])
            taken = of_terms[first:last]
            at = concatenated_ranges(free[place], taken)
            stretch = slice(one.starts[first], one.starts[last])
            rows[at], counts[at] = one.rows[stretch] + shift, one.counts[stretch]
            free[place] += taken
    return _segment(segments[0].first, keys, starts, rows, counts)


class Postings(msgspec.Struct, frozen=True):
    """An immutable snapshot of the postings of an index, with a row per chunk in ascending order of ids."""

    ids: Ints  # ascending
    kinds: NDArray[np.int8]  # DEAD: the chunk is deleted
    lengths: Doubles  # in tokens
    files: Ints  # ids of the files
    times: Ints  # (n, 2): first and last second
    scripts: ScriptShares  # of the texts
    segments: tuple[Segment, ...] = ()
    kinds_held: frozenset[Kind] = frozenset()  # at least the kinds of all chunks that are not deleted
    dead: int = 0

    @classmethod
    def empty(cls) -> "Postings":
        """Create postings without chunks."""
        none = np.empty(0, np.int64)
        times = none.reshape(0, 2)
        return cls(none, np.empty(0, np.int8), np.empty(0, np.float64), none, times, ScriptShares.of(()))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def last_id(self) -> int:
        """The id of the newest chunk; 0 without chunks."""
        return int(self.ids[-1]) if len(self) else 0

    @property
    def resident_bytes(self) -> int:
        """The memory of the arrays, in bytes."""
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
        """Return the postings with at most BATCH chunks added, whose ids ascend and exceed all before.

        Args:
            chunks: The chunks to add.
            reader: Splits their texts into terms.
            merges: Whether to merge segments, so that their number stays small. False: they are merged only where a full one is followed by the next.
        """
        if not chunks:
            return self
        if not merges and len(self) // _MOST_ROWS < (len(self) + len(chunks) - 1) // _MOST_ROWS:
            return self.put_together().with_chunks(chunks, reader, merges=True)
        segment, lengths = reader.segment(chunks, len(self))
        segments, rows = [*self.segments, segment], len(self) + len(chunks)
        while merges and len(segments) > 1 and _GROWTH * len(segments[-1]) > len(segments[-2]):
            if rows - segments[-2].first > _MOST_ROWS:
                break
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
        """Return the postings with as few segments as their rows allow."""
        together: list[list[Segment]] = []
        ends = [*(one.first for one in self.segments[1:]), len(self)]
        for one, end in zip(self.segments, ends, strict=True):
            if together and end - together[-1][0].first <= _MOST_ROWS:
                together[-1].append(one)
            else:
                together.append([one])
        if len(together) == len(self.segments):
            return self
        segments = tuple(merged(some) if len(some) > 1 else some[0] for some in together)
        return msgspec.structs.replace(self, segments=segments)

    def without(self, chunk_ids: Iterable[ChunkId]) -> "Postings":
        """Return the postings with chunks deleted; unknown ids are ignored."""
        rows = self._rows_of(np.array(list(chunk_ids), np.int64))
        if not len(rows):
            return self
        kinds = self.kinds.copy()
        kinds[rows] = DEAD
        return msgspec.structs.replace(self, kinds=kinds, dead=int((kinds == DEAD).sum()))

    def dated(self, times: Mapping[ChunkId, tuple[int | None, int | None]]) -> "Postings":
        """Return the postings with new times of chunks; unknown ids are ignored."""
        at, is_here = places_among(self.ids, np.fromiter(times, np.int64, len(times)))
        if not is_here.any():
            return self
        changed = self.times.copy()
        changed[at[is_here]] = np.array([_seconds(*one) for one in times.values()])[is_here]
        return msgspec.structs.replace(self, times=changed)

    def facts(self, chunk_ids: Ints) -> ChunkFacts:
        """Return the kinds and times of chunks."""
        rows, is_here = places_among(self.ids, chunk_ids)
        return ChunkFacts(np.where(is_here, self.kinds[rows], DEAD).astype(np.int8), self.times[rows])

    def foreign(self, chunk_ids: Ints, question: Mapping[str, float]) -> Doubles:
        """Return the share of each chunk's text in other scripts than the question; see ScriptShares.foreign_to."""
        return self.scripts.some(places_among(self.ids, chunk_ids)[0]).foreign_to(question)

    def holding(self, keys: Sequence[np.uint64 | None], chunk_ids: Ints) -> NDArray[np.bool_]:
        """Return whether each term is held by each chunk, shape (terms, chunks).

        Args:
            keys: The keys of the terms; None: of what is no term, which no chunk holds.
            chunk_ids: The ids of chunks.
        """
        of_ascending = np.zeros((len(keys), len(chunk_ids)), np.bool_)
        numbers = [number for number, key in enumerate(keys) if key is not None]
        wanted = np.array([keys[number] for number in numbers], np.uint64)
        order = np.argsort(chunk_ids)  # ascending rows are found in two thirds of the time
        rows, is_here = places_among(self.ids, chunk_ids[order])
        ends = [*(segment.first for segment in self.segments[1:]), len(self)]
        for segment, last in zip(self.segments, ends, strict=True):
            is_in = is_here & (segment.first <= rows) & (rows < last)
            here = slice(None) if is_in.all() else np.flatnonzero(is_in)
            sought = (rows[here] - segment.first).astype(np.uint16)
            if not len(sought) or not len(segment.keys):
                continue
            at = np.minimum(segment.keys.searchsorted(wanted), len(segment.keys) - 1)
            found = (segment.keys[at] == wanted).nonzero()[0]
            bounds = segment.starts[at[found]].tolist(), segment.starts[at[found] + 1].tolist()
            for n, start, end in zip(found.tolist(), *bounds, strict=True):
                of_term = segment.rows[start:end]
                is_held = of_term.take(of_term.searchsorted(sought), mode="clip") == sought
                of_ascending[numbers[n], here] = is_held
        held = np.empty_like(of_ascending)
        held[:, order] = of_ascending
        return held

    def let_through(self, wanted: SearchFilter, files: Ints | None, undated: Ints) -> Rows:
        """Return which rows a filter lets through; deleted ones may be among them.

        Args:
            wanted: The filter.
            files: The ids of files that pass all conditions but the time; None: all files do.
            undated: The ids of files whose mtime passes the time.
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
        """Return the rows that hold a term, deleted ones included."""
        rows: list[NDArray[Any]] = []
        counts: list[NDArray[Any]] = []
        for segment in self.segments:
            at = int(segment.keys.searchsorted(key))
            if at < len(segment.keys) and segment.keys[at] == key:
                start, end = segment.starts[at], segment.starts[at + 1]
                some = segment.rows[start:end].astype(np.uint32)
                some += np.uint32(segment.first)
                rows.append(some)
                counts.append(segment.counts[start:end])
        return _joined(rows, counts)

    def holders(self, keys: Keys, kinds: Collection[Kind], most: int) -> dict[int, list[ChunkId]]:
        """Return the first chunks that hold a term, by the number of its key, for all terms that any chunk holds.

        Args:
            keys: The keys of the terms.
            kinds: The kinds of files whose chunks count.
            most: The most chunks per term.
        """
        is_meant = lookup(kinds)
        found: dict[int, list[ChunkId]] = {}
        for segment in self.segments:  # in the order of rows
            if not len(segment.keys):
                continue  # of chunks without a word
            at = np.minimum(segment.keys.searchsorted(keys), len(segment.keys) - 1)
            for number in (segment.keys[at] == keys).nonzero()[0].tolist():
                start, end = segment.starts[at[number]], segment.starts[at[number] + 1]
                chunks = found.get(number, [])
                left = most - len(chunks)
                for first in range(start, end, _BLOCK):
                    if left <= 0:
                        break
                    rows = segment.rows[first : min(end, first + _BLOCK)] + np.int64(segment.first)
                    some = self.ids[rows[is_meant[self.kinds[rows]]]][:left].tolist()
                    chunks += some
                    left -= len(some)
                if chunks:
                    found[number] = chunks
        return found

    def holders_of(self, keys: Sequence[np.uint64 | None], kinds: Collection[Kind]) -> list[Ints]:
        """Return for each term the ascending ids of the chunks of files of some kinds that hold it.

        Args:
            keys: The keys of the terms; None: of what is no term, which no chunk holds.
            kinds: The kinds of files.
        """
        if self.kinds_held.isdisjoint(kinds):
            return [np.empty(0, np.int64) for _ in keys]
        is_whole = not self.dead and self.kinds_held <= frozenset(kinds)
        seen = None if is_whole else lookup(kinds)[self.kinds]
        found = []
        for key in keys:
            rows = np.empty(0, np.uint32) if key is None else self.of_term(key).rows
            found.append(self.ids[rows if seen is None else rows[seen[rows]]])
        return found

    def of_chunks(self, found: Sequence[tuple[int, int]]) -> Occurrences:
        """Return the rows for (chunk id, count) values from FTS5; unknown ids are ignored."""
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
        """Return the chunks with the best bm25.

        Args:
            phrases: The phrases, in the order in which FTS5 adds their scores.
            limit: The most chunks per source and filter.
            kinds: The kinds of files that take part.
            average_length: The average number of tokens of all chunks, as FTS5 computes it.
            among: One filter per element: a mask of rows; None: all rows.
            chunks: The number of chunks, including those that hold no phrase and are not here; None: those here.
        """
        # What may not be seen must not change the score of another chunk, which would tell what it holds.
        is_whole = not self.dead and self.kinds_held <= frozenset(kinds)
        seen = None if is_whole else lookup(kinds)[self.kinds]
        frequencies = [
            len(one.rows) if seen is None else int(np.count_nonzero(seen[one.rows])) for one in phrases
        ]
        of_all = len(self) - self.dead if chunks is None else chunks
        together = _joined([one.rows for one in phrases], [one.counts for one in phrases])
        sizes = [len(one.rows) for one in phrases]
        weights = np.repeat(idfs(frequencies, of_all), sizes)
        scores = self._scores(together, weights, average_length)
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
        held = _held(together.rows, sizes, rows, len(self))
        return Hits(self.ids[rows].tolist(), scores[rows].tolist(), held, frequencies)

    def _scores(self, together: Occurrences, weights: Doubles, average_length: float) -> Doubles:
        """Return the bm25 of each row; 0 if it holds no phrase. The sums are those of FTS5, in the same order.

        Args:
            together: The occurrences of all phrases, one phrase after the other.
            weights: For each of them the inverse document frequency of its phrase.
            average_length: See `best`.
        """
        if not len(together.rows):
            return np.zeros(len(self))
        often = together.counts.astype(np.float64)
        # Most questions have far fewer occurrences than there are chunks.
        is_sparse = len(together.rows) < len(self)
        lengths = self.lengths.take(together.rows) if is_sparse else self.lengths
        bound = K1 * ((1 - B) + B * lengths / average_length)
        parts = bound if is_sparse else bound[together.rows]
        parts += often
        often *= K1 + 1.0
        often /= parts
        often *= weights
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


def idfs(frequencies: Sequence[int], chunks: int) -> list[float]:
    """Return the inverse document frequencies of FTS5's bm25.

    Args:
        frequencies: For each phrase, the number of chunks that hold it.
        chunks: The number of chunks.
    """
    return [max(math.log((chunks - n + 0.5) / (n + 0.5)), 0.0) or _LEAST_IDF for n in frequencies]


def _seconds(first_s: int | None, last_s: int | None) -> tuple[int, int]:
    return (_UNDATED[0] if first_s is None else first_s, _UNDATED[1] if last_s is None else last_s)


def _joined(rows: Sequence[NDArray[Any]], counts: Sequence[NDArray[Any]]) -> Occurrences:
    if len(rows) == 1:
        return Occurrences(rows[0], counts[0])
    return Occurrences(
        np.concatenate(rows or [np.empty(0, np.uint32)]), np.concatenate(counts or [np.empty(0, np.uint8)])
    )


def _top(scores: Doubles, limit: int) -> Ints:
    """Return the rows of the largest positive scores, unsorted; ties are broken by row."""
    # `limit` blocks have a row of at least this score, so few rows have to be sorted. The rows of a block are as far apart as
    # there are blocks: numpy compares long stretches in a tenth of the time of short ones.
    whole = len(scores) // _BLOCK * _BLOCK
    largest = np.append(scores[:whole].reshape(_BLOCK, -1).max(axis=0), scores[whole:].max(initial=0.0))
    least = float(np.partition(largest, -limit)[-limit]) if len(largest) > limit else 0.0
    rows = (scores >= least if least > 0 else scores > 0).nonzero()[0]
    return rows if len(rows) <= limit else rows[np.lexsort((rows, -scores[rows]))[:limit]]


def _held(occurrences: NDArray[Any], sizes: Sequence[int], rows: Ints, count: int) -> list[bytes]:
    """Return for each row the indexes of the phrases that it holds.

    Args:
        occurrences: The rows that hold the first phrase, then those that hold the second, and so on.
        sizes: The number of these for each phrase.
        rows: The rows to look at.
        count: The number of all rows.
    """
    place = np.full(count, -1, np.int32)
    place[rows] = np.arange(len(rows))
    at = place[occurrences]
    is_meant = at >= 0
    holds = np.zeros((len(rows), len(sizes)), np.bool_)
    holds[at[is_meant], np.repeat(np.arange(len(sizes)), sizes)[is_meant]] = True
    packed = np.packbits(holds, axis=1)  # most rows hold the same phrases as another row
    keys: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist() if packed.size else []
    first = {key: row for row, key in enumerate(keys)}
    numbers = range(len(sizes))
    held = {
        key: bytes(compress(numbers, some))
        for key, some in zip(first, holds[list(first.values())].tolist(), strict=True)
    }
    return [held[key] for key in keys]


def average_length(connection: apsw.Connection) -> float:
    """Return the average number of tokens of a chunk, as FTS5 stores it; the sum includes deleted chunks.

    Source: fts5_index.c, "the averages record": varints, the number of rows and the tokens of each column.

    Raises:
        StoreDamaged: the record is missing.
    """
    row = connection.execute("SELECT block FROM keywords_data WHERE id = 1").fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise StoreDamaged("the keyword index does not tell how long its chunks are")
    chunks, *tokens = _varints(row[0]) or [0]  # empty: nothing was ever written
    return sum(tokens) / chunks if chunks else 1.0


def _varints(data: bytes) -> list[int]:
    """Decode SQLite varints: seven bits a byte, the highest first; a ninth byte has eight."""
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
    """Return where each phrase occurs.

    Args:
        postings: The postings of all chunks.
        phrases: Phrases without quotes.
        reader: Splits them into terms.
        ask: Looks up a phrase in FTS5 that is not a term.
    """
    return [
        postings.of_chunks(ask(phrase)) if key is None else postings.of_term(key)
        for key, phrase in zip(reader.keys_of(phrases), phrases, strict=True)
    ]
