"""Reads whole files of an index, and the terms of their chunks, that a publisher sends to a server."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import apsw
import msgspec

from memd.domain_types import ChunkId, Kind, TextHash, Turn
from memd.store import meta, sessions, vector_table
from memd.store.chunks import SUPERSEDED, WRITTEN_NS, typed
from memd.store.postings import TermReader

TERMS_VERSION = 1000 * meta.TOKENIZER + 1
"""The version of the terms of a chunk, as TermReader.terms gives them: to be raised with each change there."""


class PublishedPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a chunk."""

    first: int  # text[first:last] of the chunk is the part
    last: int
    vector: bytes | None  # float16, little-endian; None: none yet, or refused by the provider


class PublishedChunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk with its vector and parts."""

    start_line: int
    end_line: int
    text: str
    context: str
    hash: bytes  # of the embedded text
    numbers: bytes | None  # see chunks.numbers_read
    scripts: bytes | None  # see chunks.scripts_read
    first_s: int | None
    last_s: int | None
    vector: bytes | None  # float32, little-endian, length 1
    parts: tuple[PublishedPart, ...]


class PublishedFile(msgspec.Struct, frozen=True, array_like=True):
    """A note or a transcript as the index holds it."""

    path: str
    kind: Kind
    sha256: bytes  # of the file's content when it was read
    written_ns: int
    superseded: str | None  # see StoredChunk
    labels: tuple[tuple[int, str, str], ...]
    chunks: tuple[PublishedChunk, ...]
    turns: tuple[Turn, ...] = ()  # of transcripts only

    def digests(self, lines: Sequence[str], space: object) -> bytes:
        """Return two sha256 digests: of the text with its metadata, and of the vectors.

        Args:
            lines: The lines of the file.
            space: The space of the vectors.
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
    """Values that differ whenever the content to publish of a file may differ."""

    text: tuple[object, ...]
    vectors: tuple[object, ...]
    waiting: int  # the number of texts without vectors that may still get one


def states(connection: apsw.Connection, kinds: Collection[Kind], *, with_parts: bool) -> dict[str, FileState]:
    """Return the states of files by path.

    Args:
        connection: A reader's.
        kinds: The kinds of files to include.
        with_parts: Whether parts of chunks get vectors too.
    """
    wanted = ", ".join(str(int(kind)) for kind in sorted(kinds))
    rows = connection.execute(
        f"SELECT files.path, files.kind, files.hash, {WRITTEN_NS}, max(chunks.id), count(chunks.id),"
        f" coalesce(sum(chunks.vector = {vector_table.DONE}), 0), coalesce(sum(chunks.vector = {vector_table.WAITING}), 0),"
        " coalesce(sum((SELECT count(*) FROM parts WHERE parts.chunk_id = chunks.id AND length(parts.vector) > 0)), 0),"
        " coalesce(sum((SELECT count(*) FROM parts WHERE parts.chunk_id = chunks.id AND parts.vector IS NULL)), 0)"
        f" FROM files LEFT JOIN chunks ON chunks.file_id = files.id WHERE files.kind IN ({wanted}) GROUP BY files.id"
    )
    return {
        path: FileState(tuple(text), (done, parts_done), waiting + (parts_waiting if with_parts else 0))
        for path, *text, done, waiting, parts_done, parts_waiting in rows
    }


def read(connection: apsw.Connection, path: str) -> PublishedFile | None:
    """Return all data of a file; None: it is not indexed.

    Raises:
        StoreDamaged: a stored value has the wrong type.
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
    vector_of = vector_table.of_texts(connection, list({TextHash(one[5]) for one in rows}))
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
    """A part of a chunk without a vector."""

    id: int  # negative, see chunk_parts.PartId
    hash: bytes  # of the text to embed
    first: int  # text[first:last] of the chunk is the part
    last: int


class LackingChunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk that has no vector, or has parts without one."""

    id: ChunkId
    hash: bytes  # of the embedded text
    is_waiting: bool  # whether the chunk itself has no vector
    parts: tuple[LackingPart, ...]  # the parts without vectors


def lacking(
    connection: apsw.Connection, after: int, limit: int, kinds: Collection[Kind], *, with_parts: bool
) -> tuple[list[LackingChunk], int]:
    """Return the next chunks that lack vectors, in order of ids, and the last id that was looked at.

    Args:
        connection: A reader's.
        after: Only chunks with larger ids are returned.
        limit: The most chunks.
        kinds: The kinds of files to include.
        with_parts: Whether parts of chunks get vectors too.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    wanted = ", ".join(str(int(kind)) for kind in sorted(kinds))
    waits = f"chunks.vector = {vector_table.WAITING}"
    if with_parts:
        waits += " OR EXISTS (SELECT 1 FROM parts WHERE parts.chunk_id = chunks.id AND parts.vector IS NULL)"
    newest: int = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").get
    rows = connection.execute(
        f"SELECT chunks.id, chunks.hash, chunks.vector = {vector_table.WAITING} FROM chunks JOIN files ON files.id = chunks.file_id"
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
    """Return a TermReader that needs no index."""
    return TermReader(apsw.Connection(":memory:"))
