"""Postings of chunks as byte strings, in the format of the server's tables. Pure.

A table row per term and chunk took 21 kB per chunk, mostly headers and keys. A segment contains the postings of up to some thousand
chunks. Its terms are divided into buckets by the highest bits of their numbers, so that a search reads some hundred bytes per
term. Buckets are immutable: deleted chunks are listed beside the segment until it is merged.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.store.postings import concatenated_ranges, run_starts
from memd.store.vector_matrix import places_among

Ints = NDArray[np.int64]

TERM_BITS = 63  # of a term's number
# The average size of a bucket: smaller ones add overhead, 80 bytes per row; larger ones are slower to read.
_BUCKET_BYTES = 600
_MOST_BITS = 16
_FANOUT_BITS = 3  # eight segments of about the same size are merged
_HEADER = 13  # of the rows of a bucket: the numbers of terms and of rows (4 bytes each), and the widths of five columns
_LARGEST_TIER = 4  # segments of at least 8 ** this many chunks are not merged any more
MOST_GONE = 0.25  # the share of deleted chunks above which a segment is rewritten


class TermPostings(msgspec.Struct, frozen=True):
    """The terms of chunks, with a row per term and chunk, sorted by term and then by chunk."""

    terms: Ints  # ascending
    chunk_ids: Ints  # ascending within a term
    counts: Ints  # occurrences of the term in the chunk
    tokens: Ints  # tokens of the chunk
    places: Ints  # positions of all rows, concatenated, as many per row as `counts` says; empty: unknown

    def __len__(self) -> int:
        return len(self.terms)

    @classmethod
    def of(cls, read: Mapping[int, tuple[Mapping[str, Sequence[int]], int]]) -> "TermPostings":
        """Create it from chunks, each with the positions of its terms and its number of tokens, see TermReader.terms."""
        rows = [
            (term_id(term), chunk_id, len(places), tokens, places)
            for chunk_id, (terms, tokens) in read.items()
            for term, places in terms.items()
        ]
        rows.sort(key=lambda row: row[:2])
        terms, chunk_ids, counts, tokens = (
            np.array([row[column] for row in rows], np.int64) for column in range(4)
        )
        places = np.fromiter(chain.from_iterable(row[4] for row in rows), np.int64)
        return cls(terms, chunk_ids, counts, tokens, places)

    @classmethod
    def together(cls, parts: Sequence["TermPostings"], without: Ints) -> "TermPostings":
        """Merge several, without some chunks.

        Args:
            parts: Of distinct chunks with ascending ids.
            without: The ids of chunks to leave out.
        """
        whole = cls.concatenated(parts)
        return whole.some(whole.rows_without(without, np.argsort(whole.terms, kind="stable")))

    @classmethod
    def concatenated(cls, parts: Sequence["TermPostings"]) -> "TermPostings":
        """Concatenate several; the order of rows is then not by term."""
        columns = zip(
            *((one.terms, one.chunk_ids, one.counts, one.tokens, one.places) for one in parts), strict=True
        )
        return cls(*map(np.concatenate, columns)) if parts else cls(*[np.empty(0, np.int64)] * 5)

    def rows_without(self, chunk_ids: Ints, order: Ints) -> Ints:
        """Return rows in some order, without those of some chunks."""
        return order[~places_among(np.sort(chunk_ids), self.chunk_ids[order])[1]]

    def some(self, rows: Ints) -> "TermPostings":
        """Return some rows in order; positions are included if they are known."""
        counts = self.counts[rows]
        places = self.places
        if len(places):
            places = places[concatenated_ranges((np.cumsum(self.counts) - self.counts)[rows], counts)]
        return TermPostings(self.terms[rows], self.chunk_ids[rows], counts, self.tokens[rows], places)

    @property
    def bits(self) -> int:
        """Return how many of a term's highest bits are the number of its bucket."""
        wanted = (8 * len(self.terms) + len(self.places)) // _BUCKET_BYTES
        return min(_MOST_BITS, wanted.bit_length())

    def packed(self, first: int) -> "Iterator[PackedBucket]":
        """Return the buckets that contain terms.

        Args:
            first: The least of the chunk ids, or a lower one.
        """
        buckets = self.terms >> (TERM_BITS - self.bits)
        begins = run_starts(buckets)
        place_starts = np.append(0, np.cumsum(self.counts))
        for begin, end in zip(begins, np.append(begins[1:], len(buckets)), strict=True):
            some = slice(begin, end)
            terms = self.terms[some]
            starts = run_starts(terms)
            columns = [
                _narrow(column)
                for column in (
                    np.diff(np.append(starts, len(terms))),
                    self.chunk_ids[some] - first,
                    self.counts[some],
                    self.tokens[some],
                    self.places[place_starts[begin] : place_starts[end]],
                )
            ]
            widths = bytes(column.itemsize for column in columns)
            sizes = np.array([len(starts), len(terms)], "<u4").tobytes()
            *rows, places = (column.tobytes() for column in columns)
            yield PackedBucket(
                int(buckets[begin]),
                b"".join((sizes, widths, terms[starts].astype("<i8").tobytes(), *rows)),
                places,
            )


class PackedBucket(msgspec.Struct, frozen=True):
    """The packed postings of some terms: little-endian integers, each column as narrow as its largest value allows."""

    bucket: int  # the highest bits of the terms
    rows: bytes
    places: bytes

    @property
    def terms(self) -> Ints:
        """Return the terms of the bucket, ascending."""
        [count] = np.frombuffer(self.rows, "<u4", 1).tolist()
        return np.frombuffer(self.rows, "<i8", count, _HEADER)

    def unpacked(self, first: int, term: int | None = None) -> TermPostings:
        """Return the postings of all terms, or of one of them.

        Args:
            first: As it was packed with.
            term: Of this term alone.
        """
        term_count, row_count = map(int, np.frombuffer(self.rows, "<u4", 2))
        widths = self.rows[8:_HEADER]
        terms = self.terms
        at = _HEADER + 8 * term_count
        columns: list[NDArray[Any]] = []
        for width, count in zip(widths, (term_count, *[row_count] * 3), strict=False):
            columns.append(np.frombuffer(self.rows, f"<u{width}", count, at))
            at += width * count
        sizes, offsets, counts, tokens = columns
        places = np.frombuffer(self.places, f"<u{widths[4]}")
        if term is not None:
            found = int(np.searchsorted(terms, term))
            is_there = found < term_count and terms[found] == term
            begin = int(sizes[:found].sum()) if is_there else 0
            some = slice(begin, begin + int(sizes[found]) if is_there else 0)
            if len(places):
                before = int(counts[: some.start].sum())
                places = places[before : before + int(counts[some].sum())]
            terms, sizes = terms[found : found + is_there], sizes[found : found + is_there]
            offsets, counts, tokens = offsets[some], counts[some], tokens[some]
        return TermPostings(
            np.repeat(terms, sizes),
            offsets.astype(np.int64) + first,
            *(column.astype(np.int64) for column in (counts, tokens, places)),
        )


def _narrow(column: Ints) -> NDArray[Any]:
    return column.astype(f"<u{np.min_scalar_type(int(column.max(initial=0))).itemsize}")


@lru_cache(20_000)
def term_id(term: str) -> int:
    """Return the number of a term in the postings; it is the same on every machine."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "big") >> (64 - TERM_BITS)


def packed_term(term: int) -> bytes:
    """Encode the number of a term as a bucket stores it."""
    return term.to_bytes(8, "little")


def due(sizes: Sequence[int]) -> int:
    """Return how many of the last segments to merge into one; fewer than two: none.

    Args:
        sizes: The chunks of each segment, the last segment first.
    """
    merged = 1
    total = sizes[0]
    while _tier(total) < _LARGEST_TIER:
        tiers = [_tier(total), *map(_tier, sizes[merged:])]
        smaller = next((at for at, tier in enumerate(tiers) if tier > tiers[0]), len(tiers))
        if smaller < 1 << _FANOUT_BITS and all(tier == tiers[0] for tier in tiers[:smaller]):
            break
        total += sum(sizes[merged : merged + smaller - 1])
        merged += smaller - 1
    return merged


def _tier(chunks: int) -> int:
    return (max(chunks, 1).bit_length() - 1) // _FANOUT_BITS
