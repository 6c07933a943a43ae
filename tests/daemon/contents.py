"""Reads index files directly, to compare two indexes row by row."""

from collections import defaultdict
from pathlib import Path

import apsw
import msgspec
import numpy as np
import sqlite_vec
from numpy.typing import NDArray


class Content(msgspec.Struct, frozen=True):
    """A chunk with everything that is derived from it."""

    start_line: int
    end_line: int
    text: str
    context: str
    terms: tuple[tuple[str, int, str], ...]  # column, offset, term of the keyword index
    vector: tuple[float, ...] | None
    numbers: bytes | None = None  # as they are stored
    turn: int | None = None


def contents(file: Path) -> dict[str, list[Content]]:
    """Return the chunks of each file of an index, in the order of their lines.

    The turns of a transcript stand under its path and " (turns)".

    Raises:
        AssertionError: keywords or vectors are there of chunks that are not.
    """
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        assert connection.pragma("integrity_check") == "ok"
        terms = _terms(connection)
        vectors = _vectors(connection)
        found: dict[str, list[Content]] = {
            path: [] for (path,) in connection.execute("SELECT path FROM files")
        }
        ids = set()
        for chunk_id, path, start_line, end_line, text, context, numbers, turn in connection.execute(
            "SELECT chunks.id, path, start_line, end_line, text, context, numbers, turn FROM chunks"
            " JOIN files ON files.id = chunks.file_id"
        ):
            ids.add(chunk_id)
            placed = tuple(sorted(terms.pop(chunk_id, [])))
            vector = vectors.pop(chunk_id, None)
            found[path].append(Content(start_line, end_line, text, context, placed, vector, numbers, turn))
        assert connection.execute("SELECT count(*) FROM chunks").get == len(ids), "a chunk has no file"
        assert not terms, "keywords of chunks that are gone"
        assert not vectors, "vectors of chunks that are gone"
        assert not connection.execute("PRAGMA foreign_key_check").fetchall(), "a row has no file"
        told = _turns(connection)
    finally:
        connection.close()
    for chunks in found.values():
        chunks.sort(key=lambda chunk: (chunk.start_line, chunk.end_line, chunk.text))
    return found | told


def _turns(connection: apsw.Connection) -> dict[str, list[Content]]:
    turns: dict[str, list[Content]] = defaultdict(list)
    for path, seq, start_line, end_line, text, turn_id, role, at in connection.execute(
        "SELECT path, seq, start_line, end_line, text, turn_id, role, at FROM turns"
        " JOIN files ON files.id = turns.file_id ORDER BY path, seq"
    ):
        turns[f"{path} (turns)"].append(
            Content(start_line, end_line, text, f"{turn_id} {role} {at}", (), None, turn=seq)
        )
    return dict(turns)


def _terms(connection: apsw.Connection) -> dict[int, list[tuple[str, int, str]]]:
    connection.execute("CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, keywords, 'instance')")
    terms: dict[int, list[tuple[str, int, str]]] = defaultdict(list)
    for term, chunk_id, column, offset in connection.execute(
        "SELECT term, doc, col, offset FROM temp.instances"
    ):
        terms[chunk_id].append((column, offset, term))
    return terms


def _vectors(connection: apsw.Connection) -> dict[int, tuple[float, ...]]:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vectors'").fetchone():
        return {}
    return {
        chunk_id: tuple(np.frombuffer(vector, "<f4").tolist())
        for chunk_id, vector in connection.execute("SELECT chunk_id, embedding FROM vectors")
    }


def differences(one: dict[str, list[Content]], other: dict[str, list[Content]]) -> list[str]:
    """Describe the differences of two indexes; empty if they are equal."""
    told = [f"only one has {path}" for path in one.keys() ^ other.keys()]
    for path in one.keys() & other.keys():
        first, second = one[path], other[path]
        if len(first) != len(second):
            told.append(f"{path}: {len(first)} and {len(second)} chunks")
            continue
        for left, right in zip(first, second, strict=True):
            place = f"{path}:{left.start_line}"
            told += [
                f"{place}: {name} differs"
                for name in ("start_line", "end_line", "text", "context", "terms", "numbers", "turn")
                if getattr(left, name) != getattr(right, name)
            ]
            if not _same_vector(left.vector, right.vector):
                told.append(f"{place}: vector differs")
    return sorted(told)


def _same_vector(one: tuple[float, ...] | None, other: tuple[float, ...] | None) -> bool:
    if one is None or other is None or one == other:
        return one == other
    first: NDArray[np.float64] = np.asarray(one)
    # What an older program stored is not rounded as the cache has it.
    return np.allclose(first, np.asarray(other), atol=4e-5)
