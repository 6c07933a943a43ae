"""Reads files of an index whole, as another store that is to hold the same needs them, and what they hold as terms."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import apsw
import msgspec

from memd.domain_types import ChunkId, Kind, TextHash, Turn
from memd.store import meta, sessions, vectors
from memd.store.chunks import SUPERSEDED, WRITTEN_NS, typed
from memd.store.postings import TermReader

TERMS_VERSION = 1000 * meta.TOKENIZER + 1
"""The version of the terms of a chunk, as TermReader.terms gives them: to be raised with each change there."""


class PublishedPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a chunk."""

    first: int  # text[first:last] of the chunk
    last: int
    vector: bytes | None  # float16, little-endian; None: it has none yet, or never


class PublishedChunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk with all that finds it."""

    start_line: int
    end_line: int
    text: str
    context: str
    hash: bytes  # of the embedded text
    numbers: bytes | None  # see chunks.numbers_read
    scripts: bytes | None  # see chunks.scripts_read
    first_s: int | None
    last_s: int | None
    vector: bytes | None  # float32, little-endian, of length 1
    parts: tuple[PublishedPart, ...]


class PublishedFile(msgspec.Struct, frozen=True, array_like=True):
    """A note or a transcript as an index holds it."""

    path: str
    kind: Kind
    sha256: bytes  # of the bytes that it was read from
    written_ns: int
    superseded: str | None  # as of StoredChunk
    labels: tuple[tuple[int, str, str], ...]
    chunks: tuple[PublishedChunk, ...]
    turns: tuple[Turn, ...] = ()  # of a transcript

    def digests(self, lines: Sequence[str], space: object) -> bytes:
        """Two digests of 32 bytes: of the text with all that is known of it, and of the vectors.

        Args:
            lines: Of the file.
            space: That the vectors belong to.
        """
        text = [
            (
                one.start_line,
                one.end_line,
                one.text,
                one.context,
                one.hash,
                one.numbers,
                one.scripts,
                one.first_s,
                one.last_s,
            )
            for one in self.chunks
        ]
        known = (
            self.path,
            int(self.kind),
            self.written_ns,
            self.superseded,
            self.labels,
            text,
            lines,
            TERMS_VERSION,
        )
        found = [(one.vector, one.parts) for one in self.chunks]
        return _digest(known) + _digest((space, found))


def _digest(value: object) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(value)).digest()


class FileState(msgspec.Struct, frozen=True):
    """What differs whenever that may which is read of a file."""

    text: tuple[object, ...]
    vectors: tuple[object, ...]
    waiting: int  # texts that may get a vector yet


def states(connection: apsw.Connection, kinds: Collection[Kind], *, with_parts: bool) -> dict[str, FileState]:
    """The files of some kinds, by path.

    Args:
        connection: Of a reader.
        kinds: Of the files.
        with_parts: Parts of chunks get vectors, too.
    """
    wanted = ", ".join(str(int(kind)) for kind in sorted(kinds))
    rows = connection.execute(
        f"SELECT files.path, files.kind, files.hash, {WRITTEN_NS}, max(chunks.id), count(chunks.id),"
        f" coalesce(sum(chunks.vector = {vectors.DONE}), 0), coalesce(sum(chunks.vector = {vectors.WAITING}), 0),"
        " coalesce(sum((SELECT count(*) FROM parts WHERE parts.chunk_id = chunks.id AND length(parts.vector) > 0)), 0),"
        " coalesce(sum((SELECT count(*) FROM parts WHERE parts.chunk_id = chunks.id AND parts.vector IS NULL)), 0)"
        f" FROM files LEFT JOIN chunks ON chunks.file_id = files.id WHERE files.kind IN ({wanted}) GROUP BY files.id"
    )
    return {
        path: FileState(tuple(text), (done, parts_done), waiting + (parts_waiting if with_parts else 0))
        for path, *text, done, waiting, parts_done, parts_waiting in rows
    }


def read(connection: apsw.Connection, path: str) -> PublishedFile | None:
    """All that an index holds of a file; None: it does not hold it.

    Raises:
        StoreDamaged: what is stored is no such thing.
    """
    row = connection.execute(
        f"SELECT files.id, files.kind, files.hash, {WRITTEN_NS}, {SUPERSEDED} FROM files WHERE files.path = ?",
        (path,),
    ).fetchone()
    if row is None:
        return None
    file_id, *known = row
    labels = connection.execute(
        "SELECT kind, name, value FROM labels WHERE file_id = ? ORDER BY kind, name, value", (file_id,)
    ).fetchall()
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT id, start_line, end_line, text, context, hash, numbers, scripts, first_s, last_s FROM chunks"
        " WHERE file_id = ? ORDER BY start_line, end_line, id",
        (file_id,),
    ).fetchall()
    vector_of = vectors.of_texts(connection, list({TextHash(one[5]) for one in rows}))
    chunks = []
    for chunk_id, *facts in rows:
        parts = connection.execute(
            "SELECT first, last, nullif(vector, x'') FROM parts WHERE chunk_id = ? ORDER BY id", (chunk_id,)
        ).fetchall()
        chunks.append((*facts, vector_of.get(TextHash(facts[4])), parts))
    file = typed((path, *known, labels, chunks), PublishedFile)
    if file.kind.is_session:
        return msgspec.structs.replace(file, turns=tuple(sessions.turns(connection, path, 0)))
    return file


class LackingPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a chunk that waits for a vector."""

    id: int  # negative, see chunk_parts.PartId
    hash: bytes  # of what is embedded for it
    first: int  # text[first:last] of the chunk
    last: int


class LackingChunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk that waits for a vector, or has parts that do."""

    id: ChunkId
    hash: bytes  # of the embedded text
    is_waiting: bool  # itself
    parts: tuple[LackingPart, ...]  # that wait


def lacking(
    connection: apsw.Connection, after: int, limit: int, kinds: Collection[Kind], *, with_parts: bool
) -> tuple[list[LackingChunk], int]:
    """The next chunks of files of some kinds that lack vectors, by id, and up to which id there are no others.

    Args:
        connection: Of a reader.
        after: An id: only chunks with larger ones.
        limit: How many at most.
        kinds: Of the files.
        with_parts: Parts of chunks get vectors, too.

    Raises:
        StoreDamaged: what is stored is no such thing.
    """
    wanted = ", ".join(str(int(kind)) for kind in sorted(kinds))
    waits = f"chunks.vector = {vectors.WAITING}"
    if with_parts:
        waits += " OR EXISTS (SELECT 1 FROM parts WHERE parts.chunk_id = chunks.id AND parts.vector IS NULL)"
    newest: int = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").get
    rows = connection.execute(
        f"SELECT chunks.id, chunks.hash, chunks.vector = {vectors.WAITING} FROM chunks JOIN files ON files.id = chunks.file_id"
        f" WHERE chunks.id > ? AND files.kind IN ({wanted}) AND ({waits}) ORDER BY chunks.id LIMIT ?",
        (after, limit),
    ).fetchall()
    found = []
    for chunk_id, text_hash, is_waiting in rows:
        parts = connection.execute(
            "SELECT -id, hash, first, last FROM parts WHERE chunk_id = ? AND vector IS NULL AND ? ORDER BY id",
            (chunk_id, with_parts),
        ).fetchall()
        found.append((chunk_id, text_hash, bool(is_waiting), parts))
    lacking_chunks = typed(found, list[LackingChunk])
    return lacking_chunks, lacking_chunks[-1].id if len(found) == limit else newest


def term_reader() -> TermReader:
    """Reads texts as terms, without an index."""
    return TermReader(apsw.Connection(":memory:"))
