"""Parts of chunks and their vectors, which stay on disk; a search reads only those of its candidates."""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import chain, islice

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import Chunk, ChunkId, Kind, TextHash, embedded_part
from memd.store.errors import StoreDamaged

# The id of a part, or the negative id in functions that take ids of chunks and of parts.
PartId = int

_REFUSED = b""  # stored instead of a vector: the provider cannot embed the text
_STORED = "<f2"  # float16: changes a cosine by a thousandth at most, in half the space
_OF_TEXT = (
    "substr(hash, 1, 8) = substr(?1, 1, 8) AND hash = ?1"  # parts_by_hash is an index of the first 8 bytes
)


class ClosestPart(msgspec.Struct, frozen=True, gc=False):
    """The part of a chunk that is closest to a question."""

    cosine: float
    span: tuple[int, int]  # in the text of the chunk
    vector: NDArray[np.float32]


def is_part(some_id: int) -> bool:
    """Return whether an id is a part's."""
    return some_id < 0


def hash_of(text: str) -> TextHash:
    """Return the hash of a part's embedded text, as the cache uses it."""
    return TextHash(hashlib.sha256(text.encode("utf-8", "replace")).digest())


def add(connection: apsw.Connection, rows: Iterable[tuple[ChunkId, Chunk]]) -> None:
    """Store the parts of new chunks, without vectors."""
    connection.executemany(
        "INSERT INTO parts (chunk_id, first, last, hash) VALUES (?, ?, ?, ?)",
        [
            (chunk_id, first, last, hash_of(embedded_part(chunk.text, first, last)))
            for chunk_id, chunk in rows
            for first, last in chunk.parts
        ],
    )


_FILES_AT_ONCE = 100


def waiting(
    connection: apsw.Connection, limit: int, passed_over: frozenset[TextHash]
) -> list[tuple[PartId, TextHash, str]]:
    """Return (negative id, hash, text to embed) of parts without vectors, in the order of chunks.waiting."""
    wanted = first_waiting(
        connection,
        "SELECT DISTINCT chunks.file_id FROM (SELECT DISTINCT chunk_id FROM parts INDEXED BY parts_waiting"
        " WHERE vector IS NULL) AS some JOIN chunks ON chunks.id = some.chunk_id",
        "SELECT parts.id, parts.hash FROM json_each(?) AS some CROSS JOIN chunks ON chunks.file_id = some.value"
        " CROSS JOIN parts INDEXED BY parts_waiting ON parts.chunk_id = chunks.id WHERE parts.vector IS NULL"
        " ORDER BY some.key, parts.id",
        limit,
        passed_over,
    )
    rows = connection.execute(
        "SELECT parts.id, parts.hash, chunks.text, parts.first, parts.last FROM json_each(?) AS wanted"
        " JOIN parts ON parts.id = wanted.value JOIN chunks ON chunks.id = parts.chunk_id ORDER BY wanted.key",
        (msgspec.json.encode(wanted).decode(),),
    )
    return [
        (-part_id, TextHash(text_hash), embedded_part(text, first, last))
        for part_id, text_hash, text, first, last in rows
    ]


def first_waiting(
    connection: apsw.Connection, of_files: str, of_some: str, limit: int, passed_over: frozenset[TextHash]
) -> list[int]:
    """Return ids of what waits for a vector: of curated notes first, then notes, then transcripts, the newest files first.

    Files are put in order, and only the first are read, some at a time, since a statement for each takes longer than its rows.

    Args:
        connection: A reader's.
        of_files: Selects the ids of all files of which something waits.
        of_some: Selects the id and the hash of what waits of some files, in the order of a JSON array of their ids.
        limit: The most to return.
        passed_over: The hashes of texts to skip.
    """
    ordered = connection.execute(
        f"SELECT files.id FROM ({of_files}) AS one CROSS JOIN files ON files.id = one.file_id"
        f" ORDER BY files.kind <> {int(Kind.CURATED)}, files.kind >= {int(Kind.SESSION)},"
        # A negative mtime marks a file that was written a moment before it was read.
        " files.mtime_ns = -1 DESC, files.mtime_ns DESC, files.id"
    ).fetchall()
    ids = [file_id for (file_id,) in ordered]
    rows = chain.from_iterable(
        connection.execute(of_some, (msgspec.json.encode(ids[at : at + _FILES_AT_ONCE]).decode(),))
        for at in range(0, len(ids), _FILES_AT_ONCE)
    )
    return list(islice((one for one, text_hash in rows if text_hash not in passed_over), limit))


def waiting_hashes(connection: apsw.Connection) -> list[TextHash]:
    """Return the distinct hashes of parts without vectors."""
    found = connection.execute(
        "SELECT DISTINCT +hash FROM parts INDEXED BY parts_waiting WHERE vector IS NULL"
    )
    return [TextHash(one) for (one,) in found]


def any_waits(connection: apsw.Connection) -> bool:
    """Return whether any chunk with a vector has a part without one."""
    some: int = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM parts CROSS JOIN chunks ON chunks.id = parts.chunk_id"
        " WHERE parts.vector IS NULL AND chunks.vector = 1)"
    ).get
    return bool(some)


def waiting_counts(connection: apsw.Connection) -> tuple[int, int]:
    """Return how many parts have no vector, and how many chunks with a vector have such parts."""
    row = connection.execute(
        "SELECT count(*), count(DISTINCT parts.chunk_id) FILTER (WHERE chunks.vector = 1)"
        " FROM parts JOIN chunks ON chunks.id = parts.chunk_id WHERE parts.vector IS NULL"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def put(connection: apsw.Connection, rows: Iterable[tuple[PartId, TextHash, bytes]]) -> int:
    """Store vectors of parts, given by negative id; return how many, without those that have changed or are gone."""
    before = connection.total_changes()
    connection.executemany(
        "UPDATE parts SET vector = ? WHERE id = ? AND hash = ? AND vector IS NULL",
        [
            (np.frombuffer(vector, "<f4").astype(_STORED).tobytes(), -part_id, text_hash)
            for part_id, text_hash, vector in rows
        ],
    )
    return connection.total_changes() - before


def mark_refused(connection: apsw.Connection, text_hash: TextHash) -> None:
    """Mark the parts of a text as refused by the provider."""
    connection.execute(
        f"UPDATE parts SET vector = ?2 WHERE {_OF_TEXT} AND vector IS NULL", (text_hash, _REFUSED)
    )


def clear(connection: apsw.Connection) -> None:
    """Delete all vectors, which belong to another model."""
    connection.execute("UPDATE parts SET vector = NULL WHERE vector IS NOT NULL")


def hashes(connection: apsw.Connection, *, embedded: bool) -> list[TextHash]:
    """Return the distinct hashes of all parts, or of those that have a vector."""
    those = "WHERE length(vector) > 0" if embedded else ""
    found = connection.execute(f"SELECT DISTINCT hash FROM parts {those}")
    return [TextHash(one) for (one,) in found]


def of_texts(connection: apsw.Connection, texts: Iterable[TextHash]) -> dict[TextHash, bytes]:
    """Return the vectors of texts as float32; texts without one are left out."""
    found: dict[TextHash, bytes] = {}
    for text_hash in texts:
        row = connection.execute(
            f"SELECT vector FROM parts WHERE {_OF_TEXT} AND length(vector) > 0 LIMIT 1", (text_hash,)
        ).fetchone()
        if row is not None:
            found[text_hash] = widened(row[0])
    return found


def widened(vector: bytes) -> bytes:
    """Convert a stored vector of a part to float32."""
    return np.frombuffer(vector, _STORED).astype("<f4").tobytes()


def closest(
    connection: apsw.Connection, chunk_ids: Sequence[ChunkId], query: NDArray[np.float32]
) -> dict[ChunkId, ClosestPart]:
    """Return for each chunk the part closest to a question; ties go to the first part. Chunks without parts are left out.

    Args:
        connection: A reader's.
        chunk_ids: The chunks.
        query: Shape (dimensions,), length 1.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    rows: list[tuple[int, int, int, bytes]] = connection.execute(
        "SELECT parts.chunk_id, parts.first, parts.last, parts.vector FROM json_each(?) AS wanted"
        " CROSS JOIN parts ON parts.chunk_id = wanted.value WHERE length(parts.vector) = ?",
        (msgspec.json.encode(list(chunk_ids)).decode(), 2 * len(query)),
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    return closest_of(rows, query)


def closest_of(
    rows: Sequence[tuple[int, int, int, bytes]], query: NDArray[np.float32]
) -> dict[ChunkId, ClosestPart]:
    """Return the closest parts of (chunk id, first, last, vector) rows, which are in the order of the text within a chunk.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    if not rows:
        return {}
    try:
        stored = np.frombuffer(b"".join(vector for *_, vector in rows), _STORED).reshape(-1, len(query))
        vectors = stored.astype(np.float32)
        cosines = np.vecdot(vectors, query).tolist()
        best: dict[int, int] = {}
        for row, cosine in enumerate(cosines):  # within a chunk, in the order of its text
            before = best.setdefault(rows[row][0], row)
            if cosine > cosines[before]:
                best[rows[row][0]] = row
        found = {
            ChunkId(chunk_id): ClosestPart(cosines[row], (int(rows[row][1]), int(rows[row][2])), vectors[row])
            for chunk_id, row in best.items()
        }
    except (TypeError, ValueError) as error:
        raise StoreDamaged("a part of a chunk in the index is not what was written there") from error
    return found
