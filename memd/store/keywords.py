"""The keyword index: FTS5 over terms as memd.text.tokens writes them."""

import math
from collections.abc import Collection, Sequence

import apsw
import msgspec

from memd.domain_types import NO_FILTER, ChunkId, Kind, SearchFilter, Source
from memd.store import labels, meta
from memd.text.tokens import fts_text

# How much a match in what places a chunk (title, heading, date) counts beside one in its text.
CONTEXT_WEIGHT = 1.0

ALTERNATIVE = " OR "  # between the phrases of an expression, which are in quotes and lower case

# Contentless: the text is in chunks. The rows hold what fts_text gives, which "ascii" divides at the same places, whatever
# the version of Unicode that SQLite knows. The migrations have an earlier tokenizer.
_TABLE = (
    "CREATE VIRTUAL TABLE keywords USING fts5 (text, context, content = '', contentless_delete = 1,"
    " tokenize = 'porter ascii')"
)

MERGED_PAGES = 100  # in one step: some ten milliseconds


class Match(msgspec.Struct, frozen=True, gc=False):
    """How well a chunk matches."""

    r: float  # -bm25: larger is better, never negative
    held: bytes  # the phrases of the expression that it holds: their indexes, ascending
    share: float = 0.0  # 0..1, of the weight of all phrases of the expression: 1 where it holds each of them


def prepare(connection: apsw.Connection) -> None:
    """Give a connection the function that search needs."""
    # A file that cannot be read fails here, where the error says why. The schema does not fit into its first page.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    connection.register_fts5_function("held", _held)
    connection.register_fts5_function("often", _often)


def make(connection: apsw.Connection) -> None:
    """Make an empty keyword index."""
    connection.execute(_TABLE)


def begin(connection: apsw.Connection) -> None:
    """Give a database that has no chunks yet the keyword index of now."""
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM chunks)").get:
        connection.execute("DROP TABLE keywords")
        make(connection)


def _held(row: apsw.FTS5ExtensionApi, *_: object) -> bytes:
    return bytes(n for n in range(row.phrase_count) if len(row.phrase_columns(n)) > 0)


def _often(row: apsw.FTS5ExtensionApi, *_: object) -> int:
    return row.inst_count


def occurrences(connection: apsw.Connection, phrase: str) -> list[tuple[ChunkId, int]]:
    """The chunks that hold a phrase, each with how often it does."""
    found: list[tuple[ChunkId, int]] = connection.execute(
        "SELECT rowid, often(keywords) FROM keywords WHERE keywords MATCH ?", (f'"{phrase}"',)
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return found


def holders(connection: apsw.Connection, word: str, kinds: Collection[Kind], most: int) -> Sequence[ChunkId]:
    """The first chunks of some kinds that hold a word, as fts_text has it."""
    found = connection.execute(
        "SELECT keywords.rowid FROM keywords CROSS JOIN chunks ON chunks.id = keywords.rowid"
        " CROSS JOIN files ON files.id = chunks.file_id WHERE keywords MATCH ?"
        " AND files.kind IN (SELECT value FROM json_each(?)) ORDER BY keywords.rowid LIMIT ?",
        (f'"{word}"', msgspec.json.encode(sorted(kinds)).decode(), most),
    )
    return [ChunkId(chunk_id) for (chunk_id,) in found]


def phrases_of(match: str) -> list[str] | None:
    """The phrases of an expression, without their quotes; None: it is not made of phrases in quotes alone."""
    parts = match.split(ALTERNATIVE)
    are_quoted = all(len(one) > 2 and one[0] == one[-1] == '"' and '"' not in one[1:-1] for one in parts)
    return [one[1:-1] for one in parts] if are_quoted else None


def add(connection: apsw.Connection, rows: Sequence[tuple[ChunkId, str, str]]) -> None:
    """Index (chunk id, text, context)."""
    connection.executemany(
        "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, ?)",
        ((chunk_id, fts_text(text), fts_text(context)) for chunk_id, text, context in rows),
    )


def remove(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> None:
    """Take chunks out."""
    connection.executemany("DELETE FROM keywords WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])


def merge(connection: apsw.Connection, *, begin: bool) -> bool:
    """Put some of the parts together that the index was written in; whether there is more to do.

    Source: sqlite.org/fts5.html, "The 'merge' Command": a negative number has all parts merged into one, and a step that
    changes fewer than two rows had nothing to do.
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
    """The best matches by chunk, best first.

    Args:
        connection: Of a reader.
        match: Phrases in quotes, with ALTERNATIVE between them.
        limit: How many of each source at most.
        kinds: Only chunks of files of these kinds take part, so that hidden ones take no place of others.
        wanted: And only those that it lets through.
    """
    if not wanted.is_empty:
        sources = [frozenset(kind for kind in kinds if kind.source == one) for one in _sources(kinds)]
        few = [one for some in sources for one in _best_of_few(connection, match, limit, some, wanted)]
        return _with_frequencies(connection, match, few)
    # Most often the best of all hold enough of each source, and ranking is what takes the time.
    everything = _everything(connection)
    most = limit if everything <= set(kinds) and len(_sources(everything)) == 1 else 2 * limit
    ranked = _ranked(connection, match, most)
    found: list[tuple[ChunkId, Match]] = []
    for source in _sources(kinds):
        seen = frozenset(kind for kind in kinds if kind.source == source)
        best = [(one.id, one.match) for one in ranked if one.kind in seen][:limit]
        if len(best) < limit and len(ranked) == most and seen & everything:
            best = _best_of_few(connection, match, limit, seen)
        found += best
    return _with_frequencies(connection, match, found)


def _with_frequencies(
    connection: apsw.Connection, match: str, found: list[tuple[ChunkId, Match]]
) -> list[tuple[ChunkId, Match]]:
    """Matches with their shares, best first."""
    frequencies = _frequencies(connection, match) if found else []
    return with_shares(
        sorted(found, key=lambda one: (-one[1].r, one[0])), frequencies, meta.total(connection, "chunks")
    )


def with_shares(
    found: Sequence[tuple[ChunkId, Match]], frequencies: Sequence[int], chunks: int
) -> list[tuple[ChunkId, Match]]:
    """Matches, each with its share; see shares."""
    share_of = shares(frozenset(one.held for _, one in found), frequencies, chunks)
    return [(chunk_id, Match(one.r, one.held, share_of[one.held])) for chunk_id, one in found]


def shares(held: Collection[bytes], frequencies: Sequence[int], chunks: int) -> dict[bytes, float]:
    """What matches that hold some phrases have of the weight of all phrases: of their inverse document frequencies.

    A phrase that no chunk holds weighs the most. Source: Robertson and Zaragoza, The Probabilistic Relevance Framework,
    2009, 3.4; with 1 added, so that what most chunks hold is not below 0.

    Args:
        held: Indexes of phrases, as of Match.
        frequencies: Of each phrase: how many chunks hold it.
        chunks: How many there are.
    """
    weights = [math.log(1 + max(0.5, chunks - often + 0.5) / (often + 0.5)) for often in frequencies]
    whole = math.fsum(weights) or 1.0
    return {some: math.fsum(weights[n] for n in some) / whole for some in held}


def _frequencies(connection: apsw.Connection, match: str) -> list[int]:
    """How many chunks hold each phrase of an expression."""
    ask = "SELECT count(*) FROM keywords WHERE keywords MATCH ?"
    return [connection.execute(ask, (phrase,)).get for phrase in match.split(ALTERNATIVE)]


class _Ranked(msgspec.Struct, frozen=True, gc=False):
    """A chunk that matches."""

    id: ChunkId
    kind: int
    match: Match


def _sources(kinds: Collection[Kind]) -> list[Source]:
    return sorted({kind.source for kind in kinds})


def _everything(connection: apsw.Connection) -> frozenset[Kind]:
    """The kinds that an index may have chunks of."""
    # A look through all files, where none of them is a note, is far less than ranking all matches once more.
    said, written = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM chunks INDEXED BY chunks_by_turn WHERE turn IS NOT NULL),"
        f" EXISTS (SELECT 1 FROM files WHERE kind < {int(Kind.SESSION)})"
    ).fetchall()[0]
    return frozenset(kind for kind in Kind if (said if kind.is_session else written))


def _ranked(connection: apsw.Connection, match: str, limit: int) -> list[_Ranked]:
    """The best of all."""
    # CROSS JOIN keeps the order of the tables: matches come ranked, and no more are looked at than are wanted.
    # Left to itself the planner asks the keyword index for one chunk after the other, for seconds.
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
) -> list[tuple[ChunkId, Match]]:
    """The best of some kinds, or of what a filter lets through, where others hold most of the matches: only theirs are ranked."""
    among, values = labels.matching(connection, wanted, kinds)
    # The plus sign keeps SQLite from asking the keyword index for each of the chunks.
    rows: list[tuple[ChunkId, float, bytes]] = connection.execute(
        f"SELECT keywords.rowid, bm25(keywords, 1.0, {CONTEXT_WEIGHT}) AS r, held(keywords) FROM keywords"
        f" WHERE keywords MATCH ? AND +keywords.rowid IN (SELECT chunks.id {among})"
        " ORDER BY r, keywords.rowid LIMIT ?",
        (match, *values, limit),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return [(chunk_id, Match(max(0.0, -rank), held)) for chunk_id, rank, held in rows]
