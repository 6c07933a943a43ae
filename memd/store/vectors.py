"""The durable copy of an index's vectors: vec0 where sqlite-vec loads and takes them, else an ordinary table.

A store that was written with the extension and is opened without it cannot reach its vec0 rows. The chunks then count
as waiting again, and their vectors come back from the cache, which costs nothing; the other way round, the rows of the
ordinary table move into vec0.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import apsw
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, TextHash
from memd.store import chunk_parts
from memd.store.disk_vectors import Block, DiskVectors, ListedVector, listed, parts
from memd.store.errors import StoreDamaged
from memd.store.vector_matrix import Matrix, Row

WAITING, DONE, SET_ASIDE = 0, 1, 2
MOST_DIMENSIONS = 8192  # of a column of vec0 0.1; longer vectors are in an ordinary table
# In which vec0 keeps its rows.
SHADOWS = frozenset({"vectors_chunks", "vectors_rowids", "vectors_vector_chunks00"})
BLOCK_ROWS = 1024  # read at once, as vec0 has them
PIECE_BYTES = 2 << 20  # of a block of vec0 that are read at once: those of long vectors are large
NOTHING = -1  # in the place of the id of a chunk


def find_extension() -> tuple[str | None, str | None]:
    """(loadable path, None), or (None, why sqlite-vec cannot be used)."""
    try:
        import sqlite_vec  # noqa: PLC0415 - it has no build for some platforms, where memd works without it

        file: str = sqlite_vec.loadable_path()
        probe = apsw.Connection(":memory:")
        probe.enable_load_extension(True)
        probe.load_extension(file)
        probe.close()
    except (ImportError, apsw.Error, AttributeError) as error:
        return None, f"sqlite-vec does not load: {error}"
    return file, None


def _tables(connection: apsw.Connection) -> set[str]:
    return {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE name IN ('vectors', 'vectors_plain')"
        )
    }


def _has_vec0(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'vec0'").fetchone())


def table(connection: apsw.Connection) -> str:
    """The name of the table with the vectors that this connection can read and write."""
    return "vectors" if _has_vec0(connection) and "vectors" in _tables(connection) else "vectors_plain"


def prepare(connection: apsw.Connection, dimensions: int) -> None:
    """Make the table for vectors of so many dimensions, and mend what an opening without sqlite-vec left behind."""
    here = "vectors" if _has_vec0(connection) and dimensions <= MOST_DIMENSIONS else "vectors_plain"
    if here == "vectors" and _dimensions_of_vec0(connection) not in {None, dimensions}:
        # The table is of another model, from before sqlite-vec was missing for a while.
        connection.execute("DROP TABLE vectors")
    present = _tables(connection)
    if here not in present:
        connection.execute(
            f"CREATE VIRTUAL TABLE vectors USING vec0(chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}] distance_metric=cosine)"
            if here == "vectors"
            else "CREATE TABLE vectors_plain (chunk_id INTEGER PRIMARY KEY, embedding BLOB NOT NULL)"
        )
    if here == "vectors" and "vectors_plain" in present:
        connection.execute(
            "INSERT INTO vectors (chunk_id, embedding) SELECT chunk_id, embedding FROM vectors_plain"
            " WHERE chunk_id NOT IN (SELECT chunk_id FROM vectors)"
        )
        connection.execute("DROP TABLE vectors_plain")
    connection.execute(f"DELETE FROM {here} WHERE chunk_id NOT IN (SELECT id FROM chunks)")
    connection.execute(
        f"UPDATE chunks SET vector = {WAITING} WHERE vector = {DONE} AND id NOT IN (SELECT chunk_id FROM {here})"
    )
    connection.execute(
        f"UPDATE chunks SET vector = {DONE} WHERE vector <> {DONE} AND id IN (SELECT chunk_id FROM {here})"
    )


def clear(connection: apsw.Connection) -> None:
    """Forget the vectors of another model, with their tables as far as they can be reached."""
    chunk_parts.clear(connection)
    connection.execute("DROP TABLE IF EXISTS vectors_plain")
    if _has_vec0(connection):
        connection.execute("DROP TABLE IF EXISTS vectors")


def _dimensions_of_vec0(connection: apsw.Connection) -> int | None:
    """Of the vectors that vec0 has a table for; None where it has none."""
    row = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'vectors'").fetchone()
    declared = None if row is None else re.search(r"FLOAT\[(\d+)\]", str(row[0]))
    return None if declared is None else int(declared[1])


def gaps(connection: apsw.Connection) -> tuple[str, ...]:
    """Where the rows of vec0 and what the chunks say of their vectors differ; it is asked without sqlite-vec."""
    present = _tables(connection)
    if not present:
        done: int = connection.execute(f"SELECT count(*) FROM chunks WHERE vector = {DONE}").get
        return (f"{done} vectors are missing",) if done else ()
    # Beside an ordinary table the rows of vec0 are those of before: prepare brings both together.
    if "vectors_plain" in present:
        return ()
    [(lost, ownerless, torn)] = connection.execute(
        f"SELECT (SELECT count(*) FROM chunks WHERE vector = {DONE} AND id NOT IN (SELECT rowid FROM vectors_rowids)),"
        f" (SELECT count(*) FROM chunks WHERE vector <> {DONE} AND id IN (SELECT rowid FROM vectors_rowids)),"
        " (SELECT count(*) FROM vectors_rowids WHERE chunk_id NOT IN (SELECT chunk_id FROM vectors_chunks)"
        " OR chunk_id NOT IN (SELECT rowid FROM vectors_vector_chunks00))"
    ).fetchall()
    findings = (
        (lost, "vectors are missing"),
        (ownerless, "vectors are there that no chunk knows of"),
        (torn, "vectors have no place"),
    )
    return tuple(f"{number} {what}" for number, what in findings if number)


def loaded(connection: apsw.Connection, dimensions: int) -> Matrix | None:
    """The vectors in memory; None where there is no place for any yet.

    Raises:
        StoreDamaged: one of them has another size.
    """
    if table(connection) not in _tables(connection):
        return None
    rows = Matrix(dimensions)
    try:
        for part in parts(_listed(connection), blocks(connection, dimensions)):
            rows.take(part)
    except ValueError as error:
        raise StoreDamaged(f"a vector does not have {dimensions} dimensions") from error
    return rows


def shelved(connection: apsw.Connection, dimensions: int) -> DiskVectors | None:
    """What is known of the vectors where they stay on disk; None where there is no place for any yet.

    Raises:
        StoreDamaged: one of them has another size.
    """
    here = table(connection)
    if here not in _tables(connection):
        return None
    # The columns of vec0 take no other size.
    if (
        here == "vectors_plain"
        and connection.execute(
            "SELECT 1 FROM vectors_plain WHERE length(embedding) <> ? LIMIT 1", (4 * dimensions,)
        ).fetchone()
    ):
        raise StoreDamaged(f"a vector does not have {dimensions} dimensions")
    return DiskVectors(dimensions, _listed(connection))


def _listed(connection: apsw.Connection) -> ListedVector:
    return listed(
        connection.execute(
            "SELECT chunks.id, files.kind FROM chunks JOIN files ON files.id = chunks.file_id"
            f" WHERE chunks.vector = {DONE} ORDER BY chunks.id"
        )
    )


def blocks(connection: apsw.Connection, dimensions: int) -> Iterator[Block]:
    """Every vector that is stored. A block is good until the next one is asked for.

    Through the table, each row of vec0 is looked up by itself: 130 ms for 20,000 vectors, where its blocks take 9.

    Raises:
        ValueError: one of them has another size.
    """
    if table(connection) == "vectors" and has_known_blocks(connection):
        return blocks_of_vec0(connection, dimensions)
    return blocks_of_rows(connection, dimensions)


def has_known_blocks(connection: apsw.Connection) -> bool:
    """Whether vec0 lays its vectors out as blocks_of_vec0 reads them; a later version may have another way."""
    found = connection.execute(
        "SELECT count(*) FROM sqlite_schema"
        " WHERE name IN ('vectors_info', 'vectors_chunks', 'vectors_vector_chunks00')"
    )
    if found.get != 3:
        return False
    version = connection.execute(
        "SELECT group_concat(value, '.') FROM (SELECT value FROM vectors_info"
        " WHERE key IN ('CREATE_VERSION_MAJOR', 'CREATE_VERSION_MINOR') ORDER BY key)"
    )
    return bool(version.get == "0.1")


def blocks_of_vec0(connection: apsw.Connection, dimensions: int) -> Iterator[Block]:
    """As sqlite-vec 0.1 stores them: blobs of its chunks' vectors, their row ids, and a bit for each that is one.

    Source: ARCHITECTURE.md of sqlite-vec, "Shadow Tables".
    """
    # One array for all: each as a value of its own would be asked of the system anew, which takes longer.
    floats = np.empty((PIECE_BYTES // (4 * dimensions), dimensions), "<f4")
    with contextlib.ExitStack() as stack:
        blob: apsw.Blob | None = None
        for number, size, rowids, validity in connection.execute(
            "SELECT chunk_id, size, rowids, validity FROM vectors_chunks"
        ):
            if blob is None:
                blob = connection.blob_open("main", "vectors_vector_chunks00", "vectors", number, False)
                stack.callback(blob.close)
            else:
                blob.reopen(number)
            if blob.length() != 4 * dimensions * size:
                raise ValueError(f"vectors of another size than {dimensions}")
            is_one = np.unpackbits(np.frombuffer(validity, np.uint8), count=size, bitorder="little")
            ids = np.where(is_one, np.frombuffer(rowids, "<i8"), NOTHING)
            for start in range(0, size, len(floats)):
                piece = ids[start : start + len(floats)]
                blob.read_into(floats[: len(piece)].data)
                yield piece, floats[: len(piece)]


def blocks_of_rows(connection: apsw.Connection, dimensions: int) -> Iterator[Block]:
    """All vectors of the index, in the order of the table, read a row at a time: from any table of either kind."""
    rows = iter(connection.execute(f"SELECT chunk_id, embedding FROM {table(connection)}"))
    while some := list(islice(rows, BLOCK_ROWS)):
        ids, vectors = zip(*some, strict=True)
        if any(len(vector) != 4 * dimensions for vector in vectors):
            raise ValueError(f"a vector of another size than {dimensions}")
        yield np.array(ids, np.int64), np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dimensions)


def hashes(connection: apsw.Connection) -> list[TextHash]:
    """The hash of every text that has a vector, each once."""
    return [
        TextHash(text_hash)
        for (text_hash,) in connection.execute(f"SELECT DISTINCT hash FROM chunks WHERE vector = {DONE}")
    ]


def of_texts(connection: apsw.Connection, texts: Sequence[TextHash]) -> dict[TextHash, bytes]:
    """The float32 vectors of texts, where there are any."""
    here = table(connection)
    if here not in _tables(connection):
        return {}
    found: dict[TextHash, bytes] = {}
    for text_hash in texts:
        row = connection.execute(
            f"SELECT stored.embedding FROM chunks JOIN {here} AS stored ON stored.chunk_id = chunks.id"
            f" WHERE chunks.hash = ? AND chunks.vector = {DONE} LIMIT 1",
            (text_hash,),
        ).fetchone()
        if row is not None:
            found[text_hash] = row[0]
    return found


def add(
    connection: apsw.Connection, rows: Iterable[tuple[ChunkId, TextHash, bytes]]
) -> tuple[list[Row], int]:
    """Store vectors of chunks, and of parts, that still are what was embedded; the others are dropped.

    Returns:
        The chunks whose vectors were stored, and for how many parts.
    """
    here = table(connection)
    stored: list[Row] = []
    parts_stored = 0
    for chunk_id, text_hash, vector in rows:
        if chunk_parts.is_part(chunk_id):
            parts_stored += chunk_parts.put(connection, chunk_id, text_hash, vector)
            continue
        row = connection.execute(
            "SELECT files.kind FROM chunks JOIN files ON files.id = chunks.file_id"
            f" WHERE chunks.id = ? AND chunks.hash = ? AND chunks.vector = {WAITING}",
            (chunk_id, text_hash),
        ).fetchone()
        if row is not None:
            connection.execute(f"INSERT INTO {here} (chunk_id, embedding) VALUES (?, ?)", (chunk_id, vector))
            connection.execute(f"UPDATE chunks SET vector = {DONE} WHERE id = ?", (chunk_id,))
            stored.append(Row(chunk_id, row[0], vector))
    return stored, parts_stored


def remove(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> None:
    """Take the vectors of chunks out, before the chunks themselves go."""
    if chunk_ids and table(connection) in _tables(connection):
        connection.executemany(
            f"DELETE FROM {table(connection)} WHERE chunk_id = ?", [(chunk_id,) for chunk_id in chunk_ids]
        )


def nearest(
    connection: apsw.Connection, query: NDArray[np.float32], limit: int
) -> list[tuple[ChunkId, float]]:
    """(chunk id, cosine) of the chunks nearest to a vector of length 1, by vec0; what the resident matrix must agree with."""
    rows: list[tuple[ChunkId, float]] = connection.execute(
        "SELECT chunk_id, distance FROM vectors WHERE embedding MATCH ? AND k = ?", (query.tobytes(), limit)
    ).fetchall()  # type: ignore[assignment]  # apsw knows no types of columns
    return [(chunk_id, 1.0 - distance) for chunk_id, distance in rows]
