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
    sees_everything = set(kinds) == set(Kind)
    visible = (
        ""
        if sees_everything
        else (
            " AND rowid IN (SELECT chunks.id FROM chunks JOIN files ON files.id = chunks.file_id"
            f" WHERE files.kind IN ({', '.join(str(int(kind)) for kind in sorted(kinds))}))"
        )
    )
    rows: list[tuple[ChunkId, float]] = connection.execute(
        f"SELECT rowid, rank FROM keywords WHERE keywords MATCH ? AND rank MATCH 'bm25(1.0, {CONTEXT_WEIGHT})'{visible}"
        " ORDER BY rank LIMIT ?",
        (match, limit),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return sorted(((chunk_id, max(0.0, -rank)) for chunk_id, rank in rows), key=lambda row: (-row[1], row[0]))
