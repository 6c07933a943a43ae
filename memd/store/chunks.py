"""Chunks of an index: what a search reads, what waits for a vector, how many there are."""

from collections.abc import Sequence

import apsw
import msgspec

from memd.model import ChunkId, Kind, TextHash, embedded_text
from memd.store import vectors


class StoredChunk(msgspec.Struct, frozen=True):
    """A chunk as a search needs it."""

    id: ChunkId
    path: str
    kind: Kind
    start_line: int
    end_line: int
    text: str
    context: str


class Place(msgspec.Struct, frozen=True):
    """Where a chunk stands: enough to rank it without its text."""

    id: ChunkId
    path: str
    kind: Kind
    start_line: int
    cjk: float  # the share of its embedded text that is written in a CJK script, 0..1


class WaitingChunk(msgspec.Struct, frozen=True):
    """A chunk without a vector."""

    id: ChunkId
    hash: TextHash
    text: str  # as it is embedded


class Counts(msgspec.Struct, frozen=True):
    """How much an index holds."""

    files: int
    chunks: int
    done: int  # chunks with a vector
    waiting: int
    set_aside: int


def _list(chunk_ids: Sequence[ChunkId]) -> str:
    return "[" + ",".join(map(str, chunk_ids)) + "]"


def places(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> list[Place]:
    """Where these chunks stand; those that are gone are left out."""
    return [
        Place(ChunkId(chunk_id), path, Kind(kind), start_line, cjk)
        for chunk_id, path, kind, start_line, cjk in connection.execute(
            "SELECT chunks.id, files.path, files.kind, chunks.start_line, chunks.cjk FROM json_each(?) AS wanted"
            " JOIN chunks ON chunks.id = wanted.value JOIN files ON files.id = chunks.file_id",
            (_list(chunk_ids),),
        )
    ]


def texts(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
    """These chunks by id; those that are gone are left out."""
    found = (
        StoredChunk(ChunkId(row[0]), row[1], Kind(row[2]), *row[3:])
        for row in connection.execute(
            "SELECT chunks.id, files.path, files.kind, chunks.start_line, chunks.end_line, chunks.text, chunks.context"
            " FROM json_each(?) AS wanted JOIN chunks ON chunks.id = wanted.value JOIN files ON files.id = chunks.file_id",
            (_list(chunk_ids),),
        )
    )
    return {chunk.id: chunk for chunk in found}


def waiting(
    connection: apsw.Connection, limit: int, passed_over: frozenset[ChunkId] = frozenset()
) -> list[WaitingChunk]:
    """Chunks that wait for a vector: MEMORY.md and its like first, then the newest files."""
    rows = connection.execute(
        "SELECT chunks.id, chunks.hash, chunks.context, chunks.text FROM chunks JOIN files ON files.id = chunks.file_id"
        f" WHERE chunks.vector = {vectors.WAITING}"
        f" ORDER BY files.kind <> {int(Kind.CURATED)}, files.mtime_ns DESC, chunks.file_id, chunks.id LIMIT ?",
        (limit + len(passed_over),),
    )
    return [
        WaitingChunk(ChunkId(chunk_id), TextHash(text_hash), embedded_text(context, text))
        for chunk_id, text_hash, context, text in rows
        if chunk_id not in passed_over
    ][:limit]


def set_aside(connection: apsw.Connection, text_hash: TextHash) -> int:
    """Mark every chunk of this text as one that never gets a vector; how many there are."""
    connection.execute(
        f"UPDATE chunks SET vector = {vectors.SET_ASIDE} WHERE hash = ? AND vector = {vectors.WAITING}",
        (text_hash,),
    )
    return connection.changes()


def hashes(connection: apsw.Connection) -> list[TextHash]:
    """The hash of every chunk's embedded text, each once."""
    return [TextHash(text_hash) for (text_hash,) in connection.execute("SELECT DISTINCT hash FROM chunks")]


def counts(connection: apsw.Connection) -> Counts:
    """How much there is."""
    files: int = connection.execute("SELECT count(*) FROM files").get
    chunks: int = connection.execute("SELECT count(*) FROM chunks").get
    # Each by its own index: a table scan would read all texts, and this is asked after each batch of vectors.
    waiting: int = connection.execute(f"SELECT count(*) FROM chunks WHERE vector = {vectors.WAITING}").get
    aside: int = connection.execute(f"SELECT count(*) FROM chunks WHERE vector = {vectors.SET_ASIDE}").get
    return Counts(files, chunks, chunks - waiting - aside, waiting, aside)
