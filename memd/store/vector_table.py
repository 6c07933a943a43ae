"""Stores the vectors of an index on disk: in vec0 if sqlite-vec supports them, otherwise in an ordinary table.

If sqlite-vec is missing later, the rows of vec0 cannot be read. Their chunks are then embedded again from the cache, which
costs nothing. If it is available again, the rows of the ordinary table are moved into vec0.
"""

import contextlib
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import ChunkId, TextHash
from memd.store import chunk_parts
from memd.store.disk_vectors import Block, DiskVectors, ListedVector, listed, parts
from memd.store.errors import StoreDamaged
from memd.store.vector_matrix import Ids, Matrix, Row, places_among

WAITING, DONE, REFUSED = 0, 1, 2
MOST_DIMENSIONS = 8192  # the limit of vec0 0.1; longer vectors are in an ordinary table
# The shadow tables of vec0.
SHADOWS = frozenset({"vectors_chunks", "vectors_rowids", "vectors_vector_chunks00"})
BLOCK_ROWS = 1024  # read in one step, as in vec0
PIECE_BYTES = 2 << 20  # read in one step from a block of vec0: blocks of long vectors are large
NOTHING = -1  # instead of a chunk id in an empty row


def find_extension() -> tuple[str | None, str | None]:
    """Return (loadable path, None), or (None, why sqlite-vec cannot be used)."""
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
    """Return the table with the vectors that this connection can read and write."""
    return "vectors" if _has_vec0(connection) and "vectors" in _tables(connection) else "vectors_plain"


def prepare(connection: apsw.Connection, dimensions: int) -> None:
    """Create the table for vectors of some dimensions, and reconcile it with the chunks."""
    here = "vectors" if _has_vec0(connection) and dimensions <= MOST_DIMENSIONS else "vectors_plain"
    if here == "vectors" and _dimensions_of_vec0(connection) not in {None, dimensions}:
        # The table belongs to another model: the model changed while sqlite-vec was missing.
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
    _reconcile(connection, here)


def _reconcile(connection: apsw.Connection, here: str) -> None:
    """Delete vectors without a chunk, and record for each chunk whether it has a vector.

    Sorted arrays are compared: statements of SQL would look up each id in a tree, 170 ms for 100,000.
    """
    # vec0 reads the ids of its rows there, too, and takes five times as long to return them.
    [stored] = _numbers(connection, "vectors_rowids" if here == "vectors" else here, "rowid")
    [chunks] = _numbers(connection, "chunks", "id")
    others = _without_vector(connection)
    done = chunks[~places_among(others, chunks)[1]]
    chunks, stored = np.sort(chunks), np.sort(stored)
    for statement, ids in (
        (f"DELETE FROM {here} WHERE chunk_id = ?", stored[~places_among(chunks, stored)[1]]),
        (f"UPDATE chunks SET vector = {WAITING} WHERE id = ?", done[~places_among(stored, done)[1]]),
        (f"UPDATE chunks SET vector = {DONE} WHERE id = ?", others[places_among(stored, others)[1]]),
    ):
        connection.executemany(statement, [(one,) for one in ids.tolist()])


def _without_vector(connection: apsw.Connection) -> Ids:
    """Return the ids of the chunks that are not DONE, ascending; their two states have an index each."""
    states = [_numbers(connection, f"chunks WHERE vector = {state}", "id")[0] for state in (WAITING, REFUSED)]
    return np.sort(np.concatenate(states))


def _numbers(connection: apsw.Connection, source: str, *columns: str) -> list[Ids]:
    """Return columns of integers, each as an array, all in one order.

    SQLite joins a column to one text, which takes a quarter of the time of a row in Python for each number.
    """
    joined = connection.execute(
        f"SELECT {', '.join(f'group_concat({column})' for column in columns)} FROM {source}"
    ).fetchall()
    return [np.fromstring(str(text or ""), np.int64, sep=",") for text in joined[0]]


def clear(connection: apsw.Connection) -> None:
    """Delete all vectors, which belong to another model, and their tables as far as they can be dropped."""
    chunk_parts.clear(connection)
    connection.execute("DROP TABLE IF EXISTS vectors_plain")
    if _has_vec0(connection):
        connection.execute("DROP TABLE IF EXISTS vectors")


def _dimensions_of_vec0(connection: apsw.Connection) -> int | None:
    """Return the dimensions of the vec0 table; None: there is none."""
    row = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'vectors'").fetchone()
    declared = None if row is None else re.search(r"FLOAT\[(\d+)\]", str(row[0]))
    return None if declared is None else int(declared[1])


def gaps(connection: apsw.Connection) -> tuple[str, ...]:
    """Return inconsistencies between chunks and their vectors; sqlite-vec need not be loaded."""
    present = _tables(connection)
    if not present:
        done: int = connection.execute(f"SELECT count(*) FROM chunks WHERE vector = {DONE}").get
        return (f"{done} vectors are missing",) if done else ()
    # Beside an ordinary table, the rows of vec0 are outdated until `prepare` reconciles both.
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
    """Read all vectors into memory; return None if there is no table.

    Raises:
        StoreDamaged: a vector has another size.
    """
    if table(connection) not in _tables(connection):
        return None
    known = _listed(connection)
    try:
        return Matrix.of(dimensions, parts(known, blocks(connection, dimensions)), len(known.ids))
    except ValueError as error:
        raise StoreDamaged(f"a vector does not have {dimensions} dimensions") from error


def shelved(connection: apsw.Connection, dimensions: int) -> DiskVectors | None:
    """Read the ids and kinds of all vectors, which stay on disk; return None if there is no table.

    Raises:
        StoreDamaged: a vector has another size.
    """
    here = table(connection)
    if here not in _tables(connection):
        return None
    # The columns of vec0 enforce the size.
    if (
        here == "vectors_plain"
        and connection.execute(
            "SELECT 1 FROM vectors_plain WHERE length(embedding) <> ? LIMIT 1", (4 * dimensions,)
        ).fetchone()
    ):
        raise StoreDamaged(f"a vector does not have {dimensions} dimensions")
    return DiskVectors(dimensions, _listed(connection))


def _listed(connection: apsw.Connection) -> ListedVector:
    ids, owners = _numbers(connection, "chunks", "id", "file_id")
    files, kinds = _numbers(connection, "files", "id", "kind")
    order = np.argsort(files)
    at, is_owned = places_among(files[order], owners)
    is_here = is_owned & ~places_among(_without_vector(connection), ids)[1]
    return listed([ids[is_here]], [kinds[order][at[is_here]].astype(np.int8)])


def blocks(connection: apsw.Connection, dimensions: int) -> Iterator[Block]:
    """Yield all stored vectors; a block is valid until the next one is read.

    Read through the table, 20,000 vectors of vec0 take 130 ms, since each row is looked up; its blocks take 9 ms.

    Raises:
        ValueError: a vector has another size.
    """
    if table(connection) == "vectors" and has_known_blocks(connection):
        return blocks_of_vec0(connection, dimensions)
    return blocks_of_rows(connection, dimensions)


def has_known_blocks(connection: apsw.Connection) -> bool:
    """Return whether vec0 stores vectors as blocks_of_vec0 reads them; a later version may differ."""
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
    """Read the shadow tables of sqlite-vec 0.1: blobs of vectors, their row ids, and a bitmap of valid rows.

    Source: ARCHITECTURE.md of sqlite-vec, "Shadow Tables".
    """
    # One array for all blocks: a new one for each would be mapped again, which takes longer.
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
    """Yield all vectors row by row, from a table of either kind."""
    rows = iter(connection.execute(f"SELECT chunk_id, embedding FROM {table(connection)}"))
    while some := list(islice(rows, BLOCK_ROWS)):
        ids, vectors = zip(*some, strict=True)
        if any(len(vector) != 4 * dimensions for vector in vectors):
            raise ValueError(f"a vector of another size than {dimensions}")
        yield np.array(ids, np.int64), np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dimensions)


def hashes(connection: apsw.Connection) -> list[TextHash]:
    """Return the distinct hashes of texts that have a vector."""
    return [
        TextHash(text_hash)
        for (text_hash,) in connection.execute(f"SELECT DISTINCT hash FROM chunks WHERE vector = {DONE}")
    ]


def of_texts(connection: apsw.Connection, texts: Sequence[TextHash]) -> dict[TextHash, bytes]:
    """Return the float32 vectors of texts; texts without one are left out."""
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
    connection: apsw.Connection, rows: Collection[tuple[ChunkId, TextHash, bytes]]
) -> tuple[list[Row], int]:
    """Store vectors of chunks and of parts that have not changed since; the others are dropped.

    Returns:
        The chunks whose vectors were stored, and the number of parts.
    """
    whole = {
        chunk_id: (text_hash, vector)
        for chunk_id, text_hash, vector in rows
        if not chunk_parts.is_part(chunk_id)
    }
    waiting = connection.execute(
        "SELECT chunks.id, chunks.hash, files.kind FROM json_each(?) AS wanted CROSS JOIN chunks ON chunks.id = wanted.value"
        f" CROSS JOIN files ON files.id = chunks.file_id WHERE chunks.vector = {WAITING}",
        (msgspec.json.encode(list(whole)).decode(),),
    )
    stored = [
        Row(chunk_id, kind, whole[chunk_id][1])
        for chunk_id, text_hash, kind in waiting
        if text_hash == whole[chunk_id][0]
    ]
    connection.executemany(
        f"INSERT INTO {table(connection)} (chunk_id, embedding) VALUES (?, ?)",
        [(one.id, one.vector) for one in stored],
    )
    connection.executemany(f"UPDATE chunks SET vector = {DONE} WHERE id = ?", [(one.id,) for one in stored])
    return stored, chunk_parts.put(connection, [row for row in rows if chunk_parts.is_part(row[0])])


def remove(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> None:
    """Delete the vectors of chunks; must be called before the chunks are deleted."""
    if chunk_ids and table(connection) in _tables(connection):
        connection.executemany(
            f"DELETE FROM {table(connection)} WHERE chunk_id = ?", [(chunk_id,) for chunk_id in chunk_ids]
        )


def nearest(
    connection: apsw.Connection, query: NDArray[np.float32], limit: int
) -> list[tuple[ChunkId, float]]:
    """Return (chunk id, cosine) of the chunks nearest to a vector of length 1 by vec0, as a reference for Matrix."""
    rows: list[tuple[ChunkId, float]] = connection.execute(
        "SELECT chunk_id, distance FROM vectors WHERE embedding MATCH ? AND k = ?", (query.tobytes(), limit)
    ).fetchall()  # type: ignore[assignment]  # apsw knows no types of columns
    return [(chunk_id, 1.0 - distance) for chunk_id, distance in rows]
