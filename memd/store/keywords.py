"""The keyword index: FTS5 over terms as memd.text writes them."""

from collections.abc import Collection, Sequence

import apsw
import msgspec

from memd.model import ChunkId, Kind
from memd.text import fts_text

# How much a match in what places a chunk (title, heading, date) counts beside one in its text.
CONTEXT_WEIGHT = 1.0

MERGED_PAGES = 100  # in one step: some ten milliseconds


class Match(msgspec.Struct, frozen=True, gc=False):
    """How well a chunk matches."""

    r: float  # -bm25: larger is better, never negative
    held: bytes  # the phrases of the expression that it holds: their indexes, ascending


def prepare(connection: apsw.Connection) -> None:
    """Give a connection the function that search needs."""
    connection.pragma("schema_version")  # a file that cannot be read fails here, where the error tells why
    connection.register_fts5_function("held", _held)


def _held(row: apsw.FTS5ExtensionApi, *_: object) -> bytes:
    return bytes(n for n in range(row.phrase_count) if len(row.phrase_columns(n)) > 0)


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
    connection: apsw.Connection, match: str, limit: int, kinds: Collection[Kind]
) -> list[tuple[ChunkId, Match]]:
    """The best matches by chunk, best first.

    Args:
        connection: Of a reader.
        match: An FTS5 expression.
        limit: How many at most.
        kinds: Only chunks of files of these kinds take part, so that hidden ones take nobody's place.
    """
    join = only = ""
    if set(kinds) != set(Kind):
        # CROSS JOIN keeps the order of the tables: matches come ranked, and each is looked at until enough are seen.
        # Left to itself the planner asks the keyword index for one chunk after the other, for seconds.
        join = (
            " CROSS JOIN chunks ON chunks.id = keywords.rowid CROSS JOIN files ON files.id = chunks.file_id"
        )
        only = f" AND files.kind IN ({', '.join(str(int(kind)) for kind in sorted(kinds))})"
    rows: list[tuple[ChunkId, float, bytes]] = connection.execute(
        f"SELECT keywords.rowid, keywords.rank, held(keywords) FROM keywords{join} WHERE keywords MATCH ?"
        f" AND keywords.rank MATCH 'bm25(1.0, {CONTEXT_WEIGHT})'{only} ORDER BY keywords.rank LIMIT ?",
        (match, limit),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    found = [(chunk_id, Match(max(0.0, -rank), held)) for chunk_id, rank, held in rows]
    return sorted(found, key=lambda one: (-one[1].r, one[0]))
