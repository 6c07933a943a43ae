"""The keyword index: FTS5 over terms as memd.text writes them."""

from collections.abc import Collection, Sequence

import apsw

from memd.model import ChunkId, Kind
from memd.text import fts_text

# How much a match in what places a chunk (title, heading, date) counts beside one in its text.
CONTEXT_WEIGHT = 1.0


def add(connection: apsw.Connection, rows: Sequence[tuple[ChunkId, str, str]]) -> None:
    """Index (chunk id, text, context)."""
    connection.executemany(
        "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, ?)",
        ((chunk_id, fts_text(text), fts_text(context)) for chunk_id, text, context in rows),
    )


def remove(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> None:
    """Take chunks out."""
    connection.executemany("DELETE FROM keywords WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])


def search(
    connection: apsw.Connection, match: str, limit: int, kinds: Collection[Kind]
) -> list[tuple[ChunkId, float]]:
    """(chunk id, r) of the best matches, best first; r = -bm25, larger is better, never negative.

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
    rows: list[tuple[ChunkId, float]] = connection.execute(
        f"SELECT keywords.rowid, keywords.rank FROM keywords{join} WHERE keywords MATCH ?"
        f" AND keywords.rank MATCH 'bm25(1.0, {CONTEXT_WEIGHT})'{only} ORDER BY keywords.rank LIMIT ?",
        (match, limit),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return sorted(((chunk_id, max(0.0, -rank)) for chunk_id, rank in rows), key=lambda row: (-row[1], row[0]))
