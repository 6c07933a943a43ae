"""The keyword index of a memory on a server: segments of packed postings, written by the publisher, ranked by the searcher."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.postgres.packed_postings import (
    MOST_GONE,
    PackedBucket,
    TermPostings,
    due,
    packed_term,
    term_id,
)
from memd.store.keywords import Match, with_shares
from memd.store.postings import Occurrences, Postings, is_pair
from memd.store.vector_matrix import Ids, distinct, lookup, places_among

if TYPE_CHECKING:
    import psycopg

_LATEST = 64  # segments considered for merging: more than eight of each size
_PLACE_BITS = 24  # bits of a token's position in a chunk


# --- writing


def add(
    connection: "psycopg.Connection[Any]",
    tenant: int,
    kind: Kind,
    read: Mapping[int, tuple[Mapping[str, Sequence[int]], int]],
) -> None:
    """Add the chunks of one file.

    Args:
        connection: In a transaction that has locked the memory.
        tenant: The number of the memory on the server.
        kind: The kind of the file.
        read: By chunk id, the terms with their positions and the number of tokens; ids must exceed all earlier ones.
    """
    if not read:
        return
    rows = connection.execute(
        "SELECT first, chunks - cardinality(gone) FROM memd.segments WHERE tenant = %s AND kind = %s"
        " ORDER BY first DESC LIMIT %s",
        (tenant, int(kind), _LATEST),
    ).fetchall()
    count = due([len(read), *(chunks for _, chunks in rows)])
    merged = [first for first, _ in rows[: count - 1]]
    parts, gone = _taken(connection, tenant, merged)
    first, last = min([*merged, *read]), max(read)
    chunks = sum(chunks for _, chunks in rows[: count - 1]) + len(read)
    postings = TermPostings.together([*parts, TermPostings.of(read)], gone)
    _insert(connection, tenant, kind, (first, last, chunks), postings)


def remove(connection: "psycopg.Connection[Any]", tenant: int, chunk_ids: Sequence[int]) -> None:
    """Delete the chunks of one file.

    Args:
        connection: In a transaction that has locked the memory.
        tenant: The number of the memory on the server.
        chunk_ids: All chunks of the file.
    """
    if not chunk_ids:
        return
    row = connection.execute(
        "UPDATE memd.segments SET gone = gone || %(ids)s::bigint[] WHERE tenant = %(tenant)s AND first ="
        " (SELECT first FROM memd.segments WHERE tenant = %(tenant)s AND kind ="
        "  (SELECT kind FROM memd.chunks WHERE tenant = %(tenant)s AND id = %(first)s)"
        "  AND first <= %(first)s AND last >= %(first)s)"
        " RETURNING first, last, kind, chunks, cardinality(gone)",
        {"tenant": tenant, "ids": list(chunk_ids), "first": chunk_ids[0]},
    ).fetchone()
    if row is None:
        return  # published before segments existed
    first, last, kind, chunks, gone_count = row
    if gone_count <= MOST_GONE * chunks:
        return
    parts, gone = _taken(connection, tenant, [first])
    if gone_count < chunks:
        postings = TermPostings.together(parts, gone)
        _insert(connection, tenant, kind, (first, last, chunks - gone_count), postings)


def _taken(
    connection: "psycopg.Connection[Any]", tenant: int, firsts: Sequence[int]
) -> tuple[list[TermPostings], Ids]:
    """Delete segments; return their postings in the order of chunks, and the deleted chunks among them."""
    if not firsts:
        return [], np.empty(0, np.int64)
    rows = connection.execute(
        "SELECT segment, bucket, terms, places FROM memd.postings WHERE tenant = %s AND segment = ANY(%s)"
        " ORDER BY segment, bucket",
        (tenant, list(firsts)),
        binary=True,
    ).fetchall()
    deleted = connection.execute(
        "DELETE FROM memd.segments WHERE tenant = %s AND first = ANY(%s) RETURNING gone",
        (tenant, list(firsts)),
    ).fetchall()
    parts = [PackedBucket(*bucket).unpacked(first) for first, *bucket in rows]
    return parts, np.array([one for (gone,) in deleted for one in gone], np.int64)


def _insert(
    connection: "psycopg.Connection[Any]",
    tenant: int,
    kind: int,
    segment: tuple[int, int, int],
    postings: TermPostings,
) -> None:
    """Write a segment; return (first, last, chunks)."""
    first = segment[0]
    connection.execute(
        "INSERT INTO memd.segments (tenant, kind, first, last, chunks, bits) VALUES (%s, %s, %s, %s, %s, %s)",
        (tenant, int(kind), *segment, postings.bits),
    )
    buckets = list(postings.packed(first))
    connection.execute(
        "INSERT INTO memd.postings (tenant, segment, bucket, terms, places) SELECT %s, %s, each.* FROM"
        " unnest(%b::integer[], %b::bytea[], %b::bytea[]) AS each",
        (
            tenant,
            first,
            [one.bucket for one in buckets],
            [one.rows for one in buckets],
            [one.places for one in buckets],
        ),
    )


# --- reading


class AskedPhrases(msgspec.Struct, frozen=True):
    """Phrases as sequences of terms with relative positions."""

    phrases: tuple[tuple[tuple[int, int], ...], ...]  # for each phrase, its (position, term) pairs

    @classmethod
    def of(cls, phrases: Sequence[Sequence[str]]) -> "AskedPhrases":
        """Create it from phrases given as the stems of their words."""
        return cls(tuple(tuple((at, term_id(term)) for at, term in terms_of(stems)) for stems in phrases))

    @property
    def terms(self) -> list[int]:
        """Return all distinct terms."""
        return sorted({term for phrase in self.phrases for _, term in phrase})

    @property
    def has_sequences(self) -> bool:
        """Whether any phrase needs positions of terms."""
        return any(len(phrase) > 1 for phrase in self.phrases)


def terms_of(stems: Sequence[str]) -> list[tuple[int, str]]:
    """Return the fewest (position, term) pairs that locate a phrase: a pair of characters is rarer than its characters."""
    found: list[tuple[int, str]] = []
    covered = -1  # the last position covered by a pair
    for at, stem in enumerate(stems):
        if at + 1 < len(stems) and is_pair(stem, stems[at + 1]):
            found.append((at, f"{stem} {stems[at + 1]}"))
            covered = at + 1
        elif at > covered:
            found.append((at, stem))
    return found


SEGMENTS = "SELECT first, bits, kind, gone FROM memd.segments WHERE tenant = %(tenant)s"

# Lookups by key instead of a join: the server has no statistics of a single memory. Values compared with columns are computed
# before: policies are evaluated first, and only equality may pass them. A bucket without any of the terms is not sent: most words
# that a misspelt one might mean are in no text.
BUCKETS = """
WITH held AS MATERIALIZED (SELECT first, bits FROM memd.segments WHERE tenant = %(tenant)s),
asked AS MATERIALIZED (
    SELECT first, (term >> (63 - bits))::integer AS bucket, array_agg(key) AS keys
    FROM held CROSS JOIN unnest(%(terms)s::bigint[], %(keys)s::bytea[]) AS one (term, key) GROUP BY 1, 2
)
SELECT asked.first, found.* FROM asked CROSS JOIN LATERAL (
    SELECT p.bucket, p.terms, CASE WHEN %(has_sequences)s THEN p.places ELSE '' END FROM memd.postings p
    WHERE p.tenant = %(tenant)s AND p.segment = asked.first AND p.bucket = asked.bucket OFFSET 0
) AS found WHERE EXISTS (SELECT FROM unnest(asked.keys) AS key WHERE position(key IN found.terms) > 0) ORDER BY 1, 2
"""

SegmentRow = tuple[int, int, int, list[int]]
BucketRow = tuple[int, int, bytes, bytes]


def bucket_values(tenant: int, terms: Sequence[int], *, has_sequences: bool) -> dict[str, Any]:
    """Return the parameters of SEGMENTS and BUCKETS.

    Args:
        tenant: The number of the memory on the server.
        terms: The terms to look up.
        has_sequences: Whether positions of terms are needed.
    """
    keys = [packed_term(term) for term in terms]
    return {"tenant": tenant, "terms": list(terms), "keys": keys, "has_sequences": has_sequences}


class FoundTerm(msgspec.Struct, frozen=True):
    """The chunks that hold a term, in ascending order of ids."""

    postings: TermPostings
    kinds: NDArray[np.int8]  # of the files

    @classmethod
    def of(cls, parts: Sequence[tuple[TermPostings, int]], gone: Ids) -> "FoundTerm":
        """Create it from the parts of segments, each with its kind, without deleted chunks."""
        whole = TermPostings.concatenated([postings for postings, _ in parts])
        kinds = np.repeat(
            np.array([kind for _, kind in parts], np.int8), [len(postings) for postings, _ in parts]
        )
        # The chunk ids of different kinds interleave.
        rows = whole.rows_without(gone, np.argsort(whole.chunk_ids, kind="stable"))
        return cls(whole.some(rows), kinds[rows])

    def of_kinds(self, kinds: Collection[Kind]) -> Ids:
        """Return the ascending ids of the chunks of files of some kinds."""
        return self.postings.chunk_ids[lookup(kinds)[self.kinds]]

    def first(self, kinds: Collection[Kind], most: int) -> list[ChunkId]:
        """Return the first chunks of files of some kinds, at most `most`."""
        ids: list[ChunkId] = self.of_kinds(kinds)[:most].tolist()
        return ids


_NOWHERE = FoundTerm(TermPostings.concatenated([]), np.empty(0, np.int8))


def found_terms(
    terms: Sequence[int], segments: Sequence[SegmentRow], buckets: Sequence[BucketRow]
) -> dict[int, FoundTerm]:
    """Return the chunks that hold each of some terms.

    Args:
        terms: Ascending.
        segments: The rows of SEGMENTS.
        buckets: The rows of BUCKETS for at least these terms.
    """
    gone = np.array([one for *_, some in segments for one in some], np.int64)
    kind_of = {first: kind for first, _, kind, _ in segments}
    asked = np.array(terms, np.int64)
    parts: dict[int, list[tuple[TermPostings, int]]] = {}
    for first, bucket, *data in buckets:
        opened = PackedBucket(bucket, *data)
        held = opened.terms
        for term in held[places_among(asked, held)[1]].tolist():
            parts.setdefault(term, []).append((opened.unpacked(first, term), kind_of[first]))
    return {term: FoundTerm.of(parts[term], gone) if term in parts else _NOWHERE for term in terms}


class FoundTerms(msgspec.Struct, frozen=True):
    """The chunks that hold any term of some phrases."""

    asked: AskedPhrases
    of_term: Mapping[int, FoundTerm]  # by term

    def best(
        self,
        limit: int,
        kinds: Collection[Kind],
        chunks: int,
        average_length: float,
        among: Sequence[Ids | None],
    ) -> list[tuple[ChunkId, Match]]:
        """Return the best matches by bm25, as a local index ranks them, best first.

        Args:
            limit: The most matches per source and filter.
            kinds: The visible kinds of files.
            chunks: The number of chunks of the memory.
            average_length: Their average number of tokens.
            among: One filter per element: the ids to choose from; None: all.
        """
        found = [one.postings for one in self.of_term.values()]
        whole = TermPostings.concatenated(found)
        order = np.argsort(whole.chunk_ids, kind="stable")
        ids = whole.chunk_ids[order]
        order = order[np.append(True, ids[1:] != ids[:-1])[: len(ids)]]
        ids = whole.chunk_ids[order]
        held = msgspec.structs.replace(
            Postings.empty(),
            ids=ids,
            kinds=np.concatenate([one.kinds for one in self.of_term.values()])[order],
            lengths=whole.tokens[order].astype(np.float64),
            kinds_held=frozenset(Kind),
        )
        best = held.best(
            [self._occurrences(ids, phrase) for phrase in self.asked.phrases],
            limit,
            kinds,
            average_length,
            [None if some is None else places_among(some, ids)[1] for some in among],
            chunks=chunks,
        )
        matches = [
            (chunk_id, Match(score, which))
            for chunk_id, score, which in zip(best.ids, best.scores, best.held, strict=True)
        ]
        return with_shares(matches, best.frequencies, chunks)

    def _occurrences(self, ids: Ids, phrase: Sequence[tuple[int, int]]) -> Occurrences:
        if len(phrase) == 1:
            postings = self.of_term[phrase[0][1]].postings
            chunk_ids, counts = postings.chunk_ids, postings.counts
        else:
            # A phrase begins where all of its terms agree on the beginning.
            begins = [_begins(self.of_term[term].postings, at) for at, term in phrase]
            keys, agree = _counted(np.concatenate(begins or [np.empty(0, np.int64)]))
            chunk_ids, counts = _counted(keys[agree == len(phrase)] >> _PLACE_BITS)
        return Occurrences(np.searchsorted(ids, chunk_ids).astype(np.uint32), counts.astype(np.uint32))


def _begins(postings: TermPostings, at: int) -> Ids:
    """Return where phrases would begin that have this term at this position: chunk and position as one number."""
    begins = (np.repeat(postings.chunk_ids, postings.counts) << _PLACE_BITS) + postings.places - at
    return distinct(begins[postings.places >= at])


def _counted(values: Ids) -> tuple[Ids, Ids]:
    """Return the distinct values, ascending, and their numbers of occurrences."""
    ordered = np.sort(values)
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    return ordered[begins], np.diff(np.append(begins, len(ordered)))
