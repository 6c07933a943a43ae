"""The usual way to search an agent's memory, kept plain: what memd is measured against.

One SQLite file in the process of the agent. Vectors are compared by joining every one of them through
``vec_distance_cosine``; words are looked for by a FTS5 query that joins all ASCII words of the question with AND; both
lists are put together by id as 0.7 x cosine + 0.3 x 1/(1 + max(0, rank)), cut at 0.35. A scan reads and hashes every
file. It gets the same chunks and the same vectors as memd, and one transaction a file, which makes it fast.

It has no socket and no daemon: in each comparison memd also pays the way to its process and back, and looks whether
a note has changed, which the baseline does not.
"""

import hashlib
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw
import msgspec
import sqlite_vec

CANDIDATES = 24
MAX_RESULTS = 6
MIN_SCORE = 0.35
SNIPPET_CHARS = 700
DIMENSIONS = 384

_WORD = re.compile(r"[A-Za-z0-9_]+")
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT PRIMARY KEY, path TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS chunks_by_path ON chunks (path);
CREATE VIRTUAL TABLE IF NOT EXISTS chunks_fts USING fts5 (
    text, id UNINDEXED, path UNINDEXED, start_line UNINDEXED, end_line UNINDEXED
);
CREATE VIRTUAL TABLE IF NOT EXISTS chunks_vec USING vec0 (id TEXT PRIMARY KEY, embedding FLOAT[{DIMENSIONS}]);
"""


class Row(msgspec.Struct, frozen=True):
    """A chunk as it is stored."""

    path: str
    start_line: int
    end_line: int
    text: str
    vector: bytes  # float32


class Found(msgspec.Struct, frozen=True):
    """A hit."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str


def open_file(file: Path) -> apsw.Connection:
    """The database, made if missing."""
    connection = apsw.Connection(str(file))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.execute(_SCHEMA)
    return connection


def index_file(connection: apsw.Connection, path: str, content: bytes, rows: Sequence[Row]) -> None:
    """Put a file in the place of what was there, one row after the other."""
    with connection:
        old = connection.execute("SELECT id FROM chunks WHERE path = ?", (path,)).fetchall()
        if old:
            connection.executemany("DELETE FROM chunks_vec WHERE id = ?", old)
            connection.execute("DELETE FROM chunks_fts WHERE path = ?", (path,))
            connection.execute("DELETE FROM chunks WHERE path = ?", (path,))
        for row in rows:
            digest = hashlib.sha256(f"{path}:{row.start_line}:{row.end_line}:{row.text}".encode()).hexdigest()
            place = (row.path, row.start_line, row.end_line)
            connection.execute(
                "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?)", (digest, *place, row.text)
            )
            connection.execute("INSERT INTO chunks_vec VALUES (?, ?)", (digest, row.vector))
            connection.execute(
                "INSERT INTO chunks_fts (text, id, path, start_line, end_line) VALUES (?, ?, ?, ?, ?)",
                (row.text, digest, *place),
            )
        connection.execute(
            "INSERT OR REPLACE INTO files VALUES (?, ?)", (path, hashlib.sha256(content).hexdigest())
        )


def changed(connection: apsw.Connection, files: Iterable[Path]) -> list[Path]:
    """The files whose content is not what was indexed, by reading and hashing each."""
    known: dict[str, str] = dict(connection.execute("SELECT path, hash FROM files").fetchall())  # type: ignore[arg-type]  # apsw types a row as any tuple
    return [file for file in files if known.get(str(file)) != hashlib.sha256(file.read_bytes()).hexdigest()]


def search(connection: apsw.Connection, question: str, vector: bytes) -> list[Found]:
    """The best chunks for a question and its vector of float32."""
    chunks: dict[str, tuple[str, int, int, str]] = {}
    cosine: dict[str, float] = {}
    keyword: dict[str, float] = {}
    for chunk_id, path, start_line, end_line, text, distance in connection.execute(
        "SELECT chunks.id, path, start_line, end_line, text, vec_distance_cosine(embedding, ?) AS distance"
        " FROM chunks_vec JOIN chunks ON chunks.id = chunks_vec.id ORDER BY distance LIMIT ?",
        (vector, CANDIDATES),
    ):
        chunks[chunk_id], cosine[chunk_id] = (path, start_line, end_line, text), 1 - distance
    words = _WORD.findall(question)
    match = " AND ".join(f'"{word}"' for word in words)
    for chunk_id, path, start_line, end_line, text, rank in (
        connection.execute(
            "SELECT id, path, start_line, end_line, text, bm25(chunks_fts) AS rank FROM chunks_fts WHERE chunks_fts MATCH ?"
            " ORDER BY rank LIMIT ?",
            (match, CANDIDATES),
        )
        if words
        else ()
    ):
        chunks[chunk_id], keyword[chunk_id] = (path, start_line, end_line, text), 1 / (1 + max(0.0, rank))
    scores = {one: 0.7 * cosine.get(one, 0.0) + 0.3 * keyword.get(one, 0.0) for one in chunks}
    best = sorted((one for one in scores if scores[one] >= MIN_SCORE), key=lambda one: -scores[one])[
        :MAX_RESULTS
    ]
    return [
        Found(path, start_line, end_line, scores[one], text[:SNIPPET_CHARS])
        for one in best
        for path, start_line, end_line, text in [chunks[one]]
    ]


def main(arguments: Sequence[str]) -> None:
    """Search once, as a process of its own: DATABASE VECTOR_FILE QUESTION."""
    began = time.perf_counter()
    found = search(open_file(Path(arguments[0])), arguments[2], Path(arguments[1]).read_bytes())
    sys.stdout.write(f"{len(found)} {time.perf_counter() - began:.4f}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
