"""What an index file holds, read past memd: to compare two indexes row by row."""

from collections import defaultdict
from pathlib import Path

import apsw
import msgspec
import numpy as np
import sqlite_vec
from numpy.typing import NDArray


class Content(msgspec.Struct, frozen=True):
    """One chunk with everything that is derived from it."""

    start_line: int
    end_line: int
    text: str
    context: str
    terms: tuple[tuple[str, int, str], ...]  # column, offset, term of the keyword index
    vector: tuple[float, ...] | None


def contents(file: Path) -> dict[str, list[Content]]:
    """The chunks of each file of an index, in the order of their lines.

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
        for chunk_id, path, start_line, end_line, text, context in connection.execute(
            "SELECT chunks.id, path, start_line, end_line, text, context FROM chunks"
            " JOIN files ON files.id = chunks.file_id"
        ):
            ids.add(chunk_id)
            placed = tuple(sorted(terms.pop(chunk_id, [])))
            vector = vectors.pop(chunk_id, None)
            found[path].append(Content(start_line, end_line, text, context, placed, vector))
        assert connection.execute("SELECT count(*) FROM chunks").get == len(ids), "a chunk has no file"
        assert not terms, "keywords of chunks that are gone"
        assert not vectors, "vectors of chunks that are gone"
    finally:
        connection.close()
    for chunks in found.values():
        chunks.sort(key=lambda chunk: (chunk.start_line, chunk.end_line, chunk.text))
    return found


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
    """Where two indexes differ, in words; empty where they are equal."""
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
                for name in ("start_line", "end_line", "text", "context", "terms")
                if getattr(left, name) != getattr(right, name)
            ]
            if not _same_vector(left.vector, right.vector):
                told.append(f"{place}: vector differs")
    return sorted(told)


def _same_vector(one: tuple[float, ...] | None, other: tuple[float, ...] | None) -> bool:
    if one is None or other is None or one == other:
        return one == other
    first: NDArray[np.float64] = np.asarray(one)
    return np.allclose(first, np.asarray(other), atol=1e-6)
