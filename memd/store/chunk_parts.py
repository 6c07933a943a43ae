"""Parts of chunks and their vectors, which stay on disk: only those of candidates are read."""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.domain_types import Chunk, ChunkId, Kind, TextHash, embedded_part
from memd.store.errors import StoreDamaged

# Where work of chunks and of parts is told apart by an id alone, a part has the negative one.
PartId = int

_REFUSED = b""  # in the place of a vector: the provider cannot embed it
_STORED = "<f2"  # rounds a cosine by a thousandth at most, and takes half the room


class ClosestPart(msgspec.Struct, frozen=True, gc=False):
    """The part of a chunk that is closest to a question."""

    cosine: float
    span: tuple[int, int]  # of the text of the chunk
    vector: NDArray[np.float32]


def is_part(some_id: int) -> bool:
    """Whether an id is that of a part."""
    return some_id < 0


def hash_of(text: str) -> TextHash:
    """The hash of what is embedded for a part, as in the cache."""
    return TextHash(hashlib.sha256(text.encode("utf-8", "replace")).digest())


def add(connection: apsw.Connection, chunk_id: ChunkId, chunk: Chunk) -> None:
    """Remember the parts of a new chunk; their vectors are made when those of chunks are."""
    connection.executemany(
        "INSERT INTO parts (chunk_id, first, last, hash) VALUES (?, ?, ?, ?)",
        [
            (chunk_id, first, last, hash_of(embedded_part(chunk.text, first, last)))
            for first, last in chunk.parts
        ],
    )


def waiting(
    connection: apsw.Connection, limit: int, passed_over: frozenset[TextHash]
) -> list[tuple[PartId, TextHash, str]]:
    """Parts that wait for a vector, each with what is embedded for it; in the order of their chunks, see chunks.waiting."""
    ordered = connection.execute(
        "SELECT parts.id, parts.hash FROM parts JOIN chunks ON chunks.id = parts.chunk_id"
        " JOIN files ON files.id = chunks.file_id WHERE parts.vector IS NULL"
        f" ORDER BY files.kind <> {int(Kind.CURATED)}, files.kind >= {int(Kind.SESSION)}, files.mtime_ns DESC,"
        " chunks.file_id, parts.id"
    )
    wanted = list(islice((part_id for part_id, text_hash in ordered if text_hash not in passed_over), limit))
    rows = connection.execute(
        "SELECT parts.id, parts.hash, chunks.text, parts.first, parts.last FROM json_each(?) AS wanted"
        " JOIN parts ON parts.id = wanted.value JOIN chunks ON chunks.id = parts.chunk_id ORDER BY wanted.key",
        (msgspec.json.encode(wanted).decode(),),
    )
    return [
        (-part_id, TextHash(text_hash), embedded_part(text, first, last))
        for part_id, text_hash, text, first, last in rows
    ]


def waiting_hashes(connection: apsw.Connection) -> list[TextHash]:
    """The hash of every part that waits for a vector, each once."""
    found = connection.execute(
        "SELECT DISTINCT +hash FROM parts INDEXED BY parts_waiting WHERE vector IS NULL"
    )
    return [TextHash(one) for (one,) in found]


def waiting_counts(connection: apsw.Connection) -> tuple[int, int]:
    """How many parts wait for a vector, and how many chunks that have theirs these belong to."""
    row = connection.execute(
        "SELECT count(*), count(DISTINCT parts.chunk_id) FILTER (WHERE chunks.vector = 1)"
        " FROM parts JOIN chunks ON chunks.id = parts.chunk_id WHERE parts.vector IS NULL"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def put(connection: apsw.Connection, part_id: PartId, text_hash: TextHash, vector: bytes) -> bool:
    """Store the vector of a part that still is what was embedded; whether it is."""
    rounded = np.frombuffer(vector, "<f4").astype(_STORED).tobytes()
    connection.execute(
        "UPDATE parts SET vector = ? WHERE id = ? AND hash = ? AND vector IS NULL",
        (rounded, -part_id, text_hash),
    )
    return bool(connection.changes())


def set_aside(connection: apsw.Connection, text_hash: TextHash) -> None:
    """Have the parts of a text wait no more: it never gets a vector."""
    connection.execute("UPDATE parts SET vector = ? WHERE hash = ? AND vector IS NULL", (_REFUSED, text_hash))


def clear(connection: apsw.Connection) -> None:
    """Forget the vectors of another model."""
    connection.execute("UPDATE parts SET vector = NULL WHERE vector IS NOT NULL")


def hashes(connection: apsw.Connection, *, embedded: bool) -> list[TextHash]:
    """The hash of every part, or of those that have a vector, each once."""
    those = "WHERE length(vector) > 0" if embedded else ""
    found = connection.execute(f"SELECT DISTINCT hash FROM parts {those}")
    return [TextHash(one) for (one,) in found]


def of_texts(connection: apsw.Connection, texts: Iterable[TextHash]) -> dict[TextHash, bytes]:
    """The float32 vectors of texts, where parts have any."""
    found: dict[TextHash, bytes] = {}
    for text_hash in texts:
        row = connection.execute(
            "SELECT vector FROM parts WHERE hash = ? AND length(vector) > 0 LIMIT 1", (text_hash,)
        ).fetchone()
        if row is not None:
            found[text_hash] = widened(row[0])
    return found


def widened(vector: bytes) -> bytes:
    """The vector of a part, as it is stored, in float32."""
    return np.frombuffer(vector, _STORED).astype("<f4").tobytes()


def closest(
    connection: apsw.Connection, chunk_ids: Sequence[ChunkId], query: NDArray[np.float32]
) -> dict[ChunkId, ClosestPart]:
    """Of each of some chunks the part closest to a question, of equal ones the first; those without parts are left out.

    Args:
        connection: Of a reader.
        chunk_ids: The chunks.
        query: Shape (dimensions,), of length 1.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
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
    """The same of (chunk id, first, last, vector) rows, those of a chunk in the order of its text.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
    """
    if not rows:
        return {}
    try:
        stored = np.frombuffer(b"".join(vector for *_, vector in rows), _STORED).reshape(-1, len(query))
        vectors = stored.astype(np.float32)
        cosines = np.vecdot(vectors, query).tolist()
        best: dict[int, int] = {}
        for row, cosine in enumerate(cosines):  # those of a chunk come in the order of its text
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
