"""The FTS5 keyword index, over the terms of memd.text.tokens."""

import math
from collections.abc import Collection, Iterable, Sequence

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import NO_FILTER, ChunkId, Kind, SearchFilter, Source
from memd.store import labels, meta
from memd.store.postings import K1, B, idfs
from memd.store.vector_matrix import Ids
from memd.text.tokens import fts_text

# The weight of a match in a chunk's context (title, heading, date) relative to one in its text.
CONTEXT_WEIGHT = 1.0

ALTERNATIVE = " OR "  # joins the quoted, lower-case phrases of an expression

# Contentless: the text is in the table chunks. The rows hold the result of fts_text, which "ascii" splits at the same places
# in any Unicode version of SQLite. The migrations create an older tokenizer.
_TABLE = (
    "CREATE VIRTUAL TABLE keywords USING fts5 (text, context, content = '', contentless_delete = 1,"
    " tokenize = 'porter ascii')"
)

# What holds an expression, of files of some kinds, given as a JSON array.
_OF_KINDS = (
    "FROM keywords CROSS JOIN chunks ON chunks.id = keywords.rowid CROSS JOIN files ON files.id = chunks.file_id"
    " WHERE keywords MATCH ? AND files.kind IN (SELECT value FROM json_each(?))"
)

MERGED_PAGES = 100  # per step; some ten milliseconds


class Match(msgspec.Struct, frozen=True, gc=False):
    """The rank of a chunk by keywords."""

    r: float  # -bm25, at least 0; larger is better
    held: bytes  # ascending indexes of the phrases that it holds
    share: float = 0.0  # 0..1: the share of the phrases' total weight that it holds


def prepare(connection: apsw.Connection) -> None:
    """Register the auxiliary functions on a connection."""
    # An unreadable file fails here with a clear error: the schema is longer than the first page.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    connection.register_fts5_function("held", _held)
    connection.register_fts5_function("often", _often)
    connection.register_fts5_function("bm25_of_visible", _bm25_of_visible)


def make(connection: apsw.Connection) -> None:
    """Create an empty keyword index."""
    connection.execute(_TABLE)


def begin(connection: apsw.Connection) -> None:
    """Recreate the keyword index with the current tokenizer if the database has no chunks."""
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
        connection.execute("DROP TABLE keywords")
        make(connection)


def _held(row: apsw.FTS5ExtensionApi, *_: object) -> bytes:
    return bytes(n for n in range(row.phrase_count) if len(row.phrase_columns(n)) > 0)


def _often(row: apsw.FTS5ExtensionApi, *_: object) -> int:
    return row.inst_count


def _bm25_of_visible(row: apsw.FTS5ExtensionApi, *weights: object) -> float:
    """Return what bm25 of FTS5 does, with other inverse document frequencies, given as a JSON array; text and context weigh alike."""
    if row.aux_data is None:  # once per query
        average = row.column_total_size() / max(1, row.row_count)
        row.aux_data = (average, msgspec.json.decode(str(weights[0]), type=list[float]))
    average_length, of_phrases = row.aux_data
    bound = K1 * ((1 - B) + B * row.column_size() / average_length)
    score = 0.0
    for number, idf in enumerate(of_phrases):
        often = sum(map(len, row.phrase_locations(number)))
        score += idf * (often * (K1 + 1.0) / (often + bound))
    return -score


def occurrences(connection: apsw.Connection, phrase: str) -> list[tuple[ChunkId, int]]:
    """Return the chunks that hold a phrase, with the number of occurrences."""
    found: list[tuple[ChunkId, int]] = connection.execute(
        "SELECT rowid, often(keywords) FROM keywords WHERE keywords MATCH ?", (f'"{phrase}"',)
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return found


def holders(connection: apsw.Connection, word: str, kinds: Collection[Kind], most: int) -> Sequence[ChunkId]:
    """Return the first chunks, of files of some kinds, that hold a word, which must be normalised by fts_text."""
    found = connection.execute(
        f"SELECT keywords.rowid {_OF_KINDS} ORDER BY keywords.rowid LIMIT ?",
        (f'"{word}"', _json(kinds), most),
    )
    return [ChunkId(chunk_id) for (chunk_id,) in found]


def holding(connection: apsw.Connection, terms: Sequence[str], chunk_ids: Ids) -> NDArray[np.bool_]:
    """Return whether each term is held by each chunk, shape (terms, chunks).

    Args:
        connection: A reader's.
        terms: Words and pairs of CJK characters.
        chunk_ids: Distinct ids.
    """
    held = np.zeros((len(terms), len(chunk_ids)), np.bool_)
    places = {chunk_id: place for place, chunk_id in enumerate(chunk_ids.tolist())}
    # Each term by itself, and all of its chunks: a condition on the ids takes SQLite twenty times as long.
    for row, term in zip(held, terms, strict=True):
        for (chunk_id,) in connection.execute(
            "SELECT rowid FROM keywords WHERE keywords MATCH ?", (match_any([term]),)
        ):
            place = places.get(chunk_id)
            if place is not None:
                row[place] = True
    return held


def holders_of(connection: apsw.Connection, terms: Sequence[str], kinds: Collection[Kind]) -> list[Ids]:
    """Return for each term the ascending ids of the chunks of files of some kinds that hold it.

    Args:
        connection: A reader's.
        terms: Words and pairs of CJK characters.
        kinds: The kinds of files.
    """
    here = _everything(connection)
    if here.isdisjoint(kinds):
        return [np.empty(0, np.int64) for _ in terms]
    ask, values = "SELECT rowid FROM keywords WHERE keywords MATCH ?", tuple[str, ...]()
    if not here <= set(kinds):
        ask, values = f"SELECT keywords.rowid {_OF_KINDS}", (_json(kinds),)
    found = (connection.execute(f"{ask} ORDER BY 1", (match_any([term]), *values)) for term in terms)
    return [np.array([chunk_id for (chunk_id,) in rows], np.int64) for rows in found]


def match_any(terms: Iterable[str]) -> str:
    """Return the expression for any of the terms; they hold words and spaces only, so no escape is needed."""
    return ALTERNATIVE.join(f'"{fts_text(term).strip()}"' for term in terms)


def phrases_of(match: str) -> list[str] | None:
    """Return the phrases of an expression without quotes; None if it is not a list of quoted phrases."""
    parts = match.split(ALTERNATIVE)
    are_quoted = all(len(one) > 2 and one[0] == one[-1] == '"' and '"' not in one[1:-1] for one in parts)
    return [one[1:-1] for one in parts] if are_quoted else None


def add(connection: apsw.Connection, rows: Sequence[tuple[ChunkId, str, str]]) -> None:
    """Add (chunk id, text, context) rows."""
    connection.executemany(
        "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, ?)",
        ((chunk_id, fts_text(text), fts_text(context)) for chunk_id, text, context in rows),
    )


def remove(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> None:
    """Remove chunks."""
    connection.executemany("DELETE FROM keywords WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])


def merge(connection: apsw.Connection, *, begin: bool) -> bool:
    """Merge some segments of the index; return whether more are left to merge.

    Source: sqlite.org/fts5.html, "The 'merge' Command": a negative number merges all segments into one, and a step that changes
    fewer than two rows had nothing to do.
    """
    before = connection.total_changes()
    pages = -MERGED_PAGES if begin else MERGED_PAGES
    connection.execute("INSERT INTO keywords (keywords, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before >= 2


def search(
    connection: apsw.Connection,
    match: str,
    limit: int,
    kinds: Collection[Kind],
    wanted: SearchFilter = NO_FILTER,
) -> list[tuple[ChunkId, Match]]:
    """Return the best matches, best first.

    Args:
        connection: A reader's.
        match: Quoted phrases joined by ALTERNATIVE.
        limit: The most matches per source.
        kinds: The kinds of files that take part: hidden ones must neither displace others nor change their scores.
        wanted: The filter that chunks must pass.
    """
    everything = _everything(connection)
    chunks = meta.total(connection, "chunks")
    visible = None if everything <= set(kinds) else kinds
    frequencies = _frequencies(connection, match, visible)
    sources = [frozenset(kind for kind in kinds if kind.source == one) for one in _sources(kinds)]
    found: list[tuple[ChunkId, Match]] = []
    if visible is not None or not wanted.is_empty:
        weights = None if visible is None else idfs(frequencies, chunks)
        for seen in sources:
            found += _best_of_few(connection, match, limit, seen, wanted, weights)
    else:
        # The overall best usually include enough of each source, and ranking dominates the cost.
        most = limit if len(_sources(everything)) == 1 else 2 * limit
        ranked = _ranked(connection, match, most)
        for seen in sources:
            best = [(one.id, one.match) for one in ranked if one.kind in seen][:limit]
            if len(best) < limit and len(ranked) == most and seen & everything:
                best = _best_of_few(connection, match, limit, seen)
            found += best
    return with_shares(sorted(found, key=lambda one: (-one[1].r, one[0])), frequencies, chunks)


def with_shares(
    found: Sequence[tuple[ChunkId, Match]], frequencies: Sequence[int], chunks: int
) -> list[tuple[ChunkId, Match]]:
    """Return matches with their shares; see `shares`."""
    share_of = shares(frozenset(one.held for _, one in found), frequencies, chunks)
    return [(chunk_id, Match(one.r, one.held, share_of[one.held])) for chunk_id, one in found]


def shares(held: Collection[bytes], frequencies: Sequence[int], chunks: int) -> dict[bytes, float]:
    """Return for each set of phrases its share of the total weight, the inverse document frequency.

    A phrase that no chunk holds weighs most. Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009,
    3.4; 1 is added so that a phrase in most chunks does not weigh less than 0.

    Args:
        held: Sets of phrases, as in Match.
        frequencies: For each phrase, the number of chunks that hold it.
        chunks: The number of chunks.
    """
    weights = [math.log(1 + max(0.5, chunks - often + 0.5) / (often + 0.5)) for often in frequencies]
    whole = math.fsum(weights) or 1.0
    return {some: math.fsum(weights[n] for n in some) / whole for some in held}


def _frequencies(connection: apsw.Connection, match: str, kinds: Collection[Kind] | None) -> list[int]:
    """Return how many chunks hold each phrase of an expression, of files of some kinds; None: of all."""
    ask = "SELECT count(*) FROM keywords WHERE keywords MATCH ?"
    values: tuple[str, ...] = ()
    if kinds is not None:
        ask, values = f"SELECT count(*) {_OF_KINDS}", (_json(kinds),)
    return [connection.execute(ask, (phrase, *values)).get for phrase in match.split(ALTERNATIVE)]


def _json(kinds: Collection[Kind]) -> str:
    return msgspec.json.encode(sorted(kinds)).decode()


class _Ranked(msgspec.Struct, frozen=True, gc=False):
    """A match with the kind of its file."""

    id: ChunkId
    kind: int
    match: Match


def _sources(kinds: Collection[Kind]) -> list[Source]:
    return sorted({kind.source for kind in kinds})


def _everything(connection: apsw.Connection) -> frozenset[Kind]:
    """Return the kinds of files that the index may have chunks of."""
    # Scanning all files for a note is far cheaper than ranking all matches a second time.
    said, written = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM chunks INDEXED BY chunks_by_turn WHERE turn IS NOT NULL),"
        f" EXISTS (SELECT 1 FROM files WHERE kind < {int(Kind.SESSION)})"
    ).fetchall()[0]
    return frozenset(kind for kind in Kind if (said if kind.is_session else written))


def _ranked(connection: apsw.Connection, match: str, limit: int) -> list[_Ranked]:
    """Return the best matches of all kinds."""
    # CROSS JOIN fixes the order of tables: matches come ranked, and only `limit` are read. Otherwise the planner queries the
    # keyword index once per chunk, for seconds.
    rows: list[tuple[ChunkId, int, float, bytes]] = connection.execute(
        "SELECT keywords.rowid, files.kind, keywords.rank, held(keywords) FROM keywords"
        " CROSS JOIN chunks ON chunks.id = keywords.rowid CROSS JOIN files ON files.id = chunks.file_id"
        f" WHERE keywords MATCH ? AND keywords.rank MATCH 'bm25(1.0, {CONTEXT_WEIGHT})'"
        " ORDER BY keywords.rank LIMIT ?",
        (match, limit),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return [_Ranked(chunk_id, kind, Match(max(0.0, -rank), held)) for chunk_id, kind, rank, held in rows]


def _best_of_few(
    connection: apsw.Connection,
    match: str,
    limit: int,
    kinds: Collection[Kind],
    wanted: SearchFilter = NO_FILTER,
    weights: Sequence[float] | None = None,
) -> list[tuple[ChunkId, Match]]:
    """Return the best matches of some kinds or of a filter; only those are ranked, since others hold most of the matches.

    `weights` are the inverse document frequencies of the phrases; None: those of all chunks.
    """
    among, values = labels.matching(connection, wanted, kinds)
    bm25 = f"bm25(keywords, 1.0, {CONTEXT_WEIGHT})"
    weighed: tuple[str, ...] = ()
    if weights is not None:
        bm25, weighed = "bm25_of_visible(keywords, ?)", (msgspec.json.encode(weights).decode(),)
    # The unary plus prevents a query of the keyword index per chunk.
    rows: list[tuple[ChunkId, float, bytes]] = connection.execute(
        f"SELECT keywords.rowid, {bm25} AS r, held(keywords) FROM keywords"
        f" WHERE keywords MATCH ? AND +keywords.rowid IN (SELECT chunks.id {among})"
        " ORDER BY r, keywords.rowid LIMIT ?",
        (*weighed, match, *values, limit),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return [(chunk_id, Match(max(0.0, -rank), held)) for chunk_id, rank, held in rows]
